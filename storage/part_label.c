/*
 * part_label.c: label names and values of a part, of all its series or of some.
 *
 * Both come out of the postings, sorted. With a filter of few series their own labels are read instead;
 * with one of many, a value counts when its set meets the filter. Names of many series: a sample of them has nearly
 * all, so that sets are left for the rare ones. Names and values are gathered as symbol numbers, whose order is that of
 * the strings.
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define FEW_SERIES 8192    /* whose labels are read rather than all sets */
#define SAMPLE_SERIES 256u /* that tell nearly all names */

static err emit(struct part_cursor *c, uint32_t symbol, part_string_fn fn, void *arg, bool *go_on)
{
    str s;
    TRY(part_symbol(c, symbol, &s));
    *go_on = fn(arg, s);
    return NULL;
}

/* Calls fn for each symbol of a set. */
static err emit_set(struct part_cursor *c, const struct postings *symbols, part_string_fn fn, void *arg)
{
    size_t n = postings_count(symbols);
    uint32_t *list = mem_alloc((n + 1) * sizeof *list);
    bool go_on = true;
    err e = NULL;
    postings_list(symbols, list, n);
    for (size_t i = 0; i < n && go_on; i++)
        TRY_OUT(emit(c, list[i], fn, arg, &go_on));
out:
    mem_free(list);
    return e;
}

/* Names (name == NULL) or values of one name that occur among the labels of each stride-th of some series. */
static err gather_from_labels(struct part_cursor *c, const uint32_t *name, const uint32_t *ids, size_t n, size_t stride,
                              struct postings *into)
{
    for (size_t i = 0; i < n; i += stride) {
        const uint32_t *pairs;
        uint32_t n_pairs;
        TRY(part_series_pairs(c, ids[i], &pairs, &n_pairs));
        for (uint32_t k = 0; k < n_pairs; k++) {
            if (name == NULL)
                postings_add(into, pairs[2 * k]);
            else if (pairs[2 * k] == *name)
                postings_add(into, pairs[2 * k + 1]);
        }
    }
    return NULL;
}

static err emit_from_labels(struct part_cursor *c, const uint32_t *name, const struct postings *filter,
                            part_string_fn fn, void *arg)
{
    size_t n = postings_count(filter);
    uint32_t *ids = mem_alloc(n * sizeof *ids + 1);
    struct postings *symbols = postings_create();
    err e = gather_from_labels(c, name, ids, postings_list(filter, ids, n), 1, symbols);
    if (e == NULL) e = emit_set(c, symbols, fn, arg);
    postings_destroy(symbols);
    mem_free(ids);
    return e;
}

/* Whether an entry's set meets the filter. */
static err meets(struct part_cursor *c, const struct part_entry *it, const struct postings *filter, bool *yes)
{
    *yes = true;
    if (filter == NULL) return NULL;
    struct postings *set;
    err e = postings_decode(it->set, (uint32_t)c->p->footer.meta.series, &set);
    if (e != NULL) return part_cursor_blame(c, PART_FRAME_POSTINGS, it->frame, e);
    *yes = postings_intersects(set, filter);
    postings_destroy(set);
    return NULL;
}

/* Moves on to the first entry of the next name. */
static err next_name(struct part_cursor *c, struct part_entry *it)
{
    uint32_t name = it->key.name + 1;
    part_entry_close(it);
    return part_entry_seek(c, (struct part_key){name, 0}, it);
}

static err all_names(struct part_cursor *c, part_string_fn fn, void *arg)
{
    struct part_entry it = {0};
    bool go_on = true;
    err e = NULL;
    TRY_OUT(part_entry_seek(c, (struct part_key){0, 0}, &it));
    while (!it.end && go_on) {
        TRY_OUT(emit(c, it.key.name, fn, arg, &go_on));
        TRY_OUT(next_name(c, &it));
    }
out:
    part_entry_close(&it);
    return e;
}

/* Adds the names that are not known and some value of which meets the filter. *done false: so many sets were looked at
 * that reading the labels is cheaper. */
static err find_rare_names(struct part_cursor *c, const struct postings *filter, struct postings *known, bool *done)
{
    struct part_entry it = {0};
    uint64_t patience = postings_count(filter);
    err e = NULL;
    TRY_OUT(part_entry_seek(c, (struct part_key){0, 0}, &it));
    while (!it.end && patience > 0) {
        bool yes = postings_has(known, it.key.name);
        if (!yes) {
            patience--;
            TRY_OUT(meets(c, &it, filter, &yes));
            if (yes) postings_add(known, it.key.name);
        }
        TRY_OUT(yes ? next_name(c, &it) : part_entry_next(&it));
    }
    *done = it.end;
out:
    part_entry_close(&it);
    return e;
}

static err find_names(struct part_cursor *c, const struct postings *filter, struct postings *known)
{
    size_t n = postings_count(filter), stride = n > SAMPLE_SERIES ? n / SAMPLE_SERIES : 1;
    uint32_t *ids = mem_alloc(n * sizeof *ids + 1);
    bool done = stride == 1;
    err e = NULL;
    postings_list(filter, ids, n);
    TRY_OUT(gather_from_labels(c, NULL, ids, n, stride, known));
    if (!done) TRY_OUT(find_rare_names(c, filter, known, &done));
    if (!done) TRY_OUT(gather_from_labels(c, NULL, ids, n, 1, known));
out:
    mem_free(ids);
    return e;
}

err part_label_names(struct part_cursor *c, const struct postings *filter, part_string_fn fn, void *arg)
{
    if (filter == NULL) return all_names(c, fn, arg);
    struct postings *names = postings_create();
    err e = find_names(c, filter, names);
    if (e == NULL) e = emit_set(c, names, fn, arg);
    postings_destroy(names);
    return e;
}

err part_label_values(struct part_cursor *c, str name, const struct postings *filter, part_string_fn fn, void *arg)
{
    uint32_t symbol;
    bool found, go_on = true;
    TRY(part_symbol_lower_bound(c, name, &symbol, &found));
    if (!found) return NULL;
    bool few = filter != NULL && postings_count(filter) <= FEW_SERIES;
    if (few) return emit_from_labels(c, &symbol, filter, fn, arg);
    struct part_entry it = {0};
    err e = NULL;
    TRY_OUT(part_entry_seek(c, (struct part_key){symbol, 0}, &it));
    while (!it.end && it.key.name == symbol && go_on) {
        bool yes;
        TRY_OUT(meets(c, &it, filter, &yes));
        if (yes) TRY_OUT(emit(c, it.key.value, fn, arg, &go_on));
        TRY_OUT(part_entry_next(&it));
    }
out:
    part_entry_close(&it);
    return e;
}
