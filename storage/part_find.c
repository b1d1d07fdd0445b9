/*
 * part_find.c: which series of a part satisfy all matchers.
 *
 * Each matcher becomes one set operation on the candidates: a matcher that an absent label can't satisfy
 * keeps the union of the sets of its values; one that an absent label does satisfy takes away the union
 * of the sets of the values it refuses. The values are found by
 *
 *   look-ups   equality, and regexes that are a few literals
 *   a range    regexes with a literal prefix: each value there is tried once
 *   a scan     the rest: each value of the label is tried once
 *
 * Every matcher gets a weight, roughly the bytes it has to go through, and light ones go first; sets are decoded
 * between the first and the last candidate only. When few candidates are left for a heavy matcher, their own
 * labels are read instead. Every step stops at an empty set.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define FEW_CANDIDATES 4096 /* whose labels may be read */
#define LABELS_WEIGHT 64    /* of reading and trying one candidate's labels */
#define VALUE_WEIGHT 32     /* of looking up or trying one value */
#define LITERALS_WEIGHED 8u /* the others are taken to be like these */
#define PREFIX_SHARE 8      /* a prefix is taken to choose this part of a label's values */

enum cost { COST_LOOKUP, COST_PREFIX, COST_SCAN };

/* A matcher and what is known of its label in this part. */
struct condition {
    const struct matcher *m;
    enum cost cost;
    bool has_name; /* the label occurs */
    uint32_t name;
    uint64_t weight;
};

struct find {
    struct part_cursor *c;
    uint32_t n_series;
    struct postings *set; /* candidates so far */
    uint32_t from, to;    /* its bounds, as far as they matter */
};

/* What a walk over the values of one label collects. */
struct walk {
    const struct matcher *m;
    bool wanted; /* collect values that the matcher accepts (true) or refuses (false) */
    str prefix;  /* accepted values start with it */
    struct postings *into;
};

/* ---- values of one label ------------------------------------------------------------------------------------ */

static err add_set(struct find *f, const struct part_entry *it, struct postings *into)
{
    return part_cursor_blame(f->c, PART_FRAME_POSTINGS, it->frame,
                             postings_decode_or(it->set, f->n_series, f->from, f->to, into));
}

/* Finds name="value"; it->end if no series has it. */
static err seek_value(struct find *f, uint32_t name, str value, struct part_entry *it)
{
    bool found;
    uint32_t symbol;
    *it = (struct part_entry){.end = true};
    TRY(part_symbol_lower_bound(f->c, value, &symbol, &found));
    if (!found) return NULL;
    TRY(part_entry_seek(f->c, (struct part_key){name, symbol}, it));
    if (!it->end && (it->key.name != name || it->key.value != symbol)) it->end = true;
    return NULL;
}

/* Adds the series that have name="value". */
static err add_value(struct find *f, uint32_t name, str value, struct postings *into)
{
    struct part_entry it;
    err e = seek_value(f, name, value, &it);
    if (e == NULL && !it.end) e = add_set(f, &it, into);
    part_entry_close(&it);
    return e;
}

static err walk_values(struct find *f, uint32_t name, const struct walk *w)
{
    struct part_entry it = {0};
    bool equal;
    uint32_t from = 0;
    err e = NULL;
    if (w->prefix.n > 0) TRY(part_symbol_lower_bound(f->c, w->prefix, &from, &equal));
    TRY_OUT(part_entry_seek(f->c, (struct part_key){name, from}, &it));
    while (!it.end && it.key.name == name) {
        str value;
        bool matched;
        TRY_OUT(part_symbol(f->c, it.key.value, &value));
        if (!str_starts_with(value, w->prefix)) break;
        TRY_OUT(matcher_match(w->m, value, &matched));
        if (matched == w->wanted) TRY_OUT(add_set(f, &it, w->into));
        TRY_OUT(part_entry_next(&it));
    }
out:
    part_entry_close(&it);
    return e;
}

/* ---- one matcher -------------------------------------------------------------------------------------------- */

static bool is_negative(const struct matcher *m)
{
    return m->op == MATCH_NE || m->op == MATCH_NRE;
}

/* The values that a matcher names, if it names a few. */
static const str *literals_of(const struct matcher *m, size_t *n)
{
    if (m->re != NULL) return regex_literals(m->re, n);
    *n = m->value.n > 0; /* an empty value names all series without the label */
    return &m->value;
}

/* The sets to collect are those of named values, or within a prefix, only if no value beyond them is collected: if a
 * positive matcher refuses absent labels, or a negative one accepts them. */
static enum cost cost_of(const struct matcher *m)
{
    size_t n;
    if (is_negative(m) != matcher_matches_empty(m)) return COST_SCAN;
    literals_of(m, &n);
    if (n > 0) return COST_LOOKUP;
    return m->re != NULL && regex_prefix(m->re).n > 0 ? COST_PREFIX : COST_SCAN;
}

static err collect(struct find *f, const struct condition *k, struct postings *into)
{
    if (k->cost != COST_LOOKUP) {
        str prefix = k->cost == COST_PREFIX ? regex_prefix(k->m->re) : (str){0};
        struct walk w = {k->m, !matcher_matches_empty(k->m), prefix, into};
        return walk_values(f, k->name, &w);
    }
    size_t n;
    const str *values = literals_of(k->m, &n);
    for (size_t i = 0; i < n; i++)
        TRY(add_value(f, k->name, values[i], into));
    return NULL;
}

static err apply(struct find *f, const struct condition *k)
{
    err e = NULL;
    struct postings *values = postings_create();
    if (k->has_name) TRY_OUT(collect(f, k, values));
    if (matcher_matches_empty(k->m))
        postings_andnot(f->set, values);
    else
        postings_and(f->set, values);
out:
    postings_destroy(values);
    return e;
}

/* ---- weights ------------------------------------------------------------------------------------------------ */

static err weigh_literals(struct find *f, struct condition *k)
{
    size_t n, bytes = 0;
    const str *values = literals_of(k->m, &n);
    size_t weighed = n < LITERALS_WEIGHED ? n : LITERALS_WEIGHED;
    for (size_t i = 0; i < weighed; i++) {
        struct part_entry it;
        err e = seek_value(f, k->name, values[i * n / weighed], &it);
        bytes += it.end ? 0 : it.set.n;
        part_entry_close(&it);
        TRY(e);
    }
    k->weight = n * VALUE_WEIGHT + (weighed > 0 ? bytes * n / weighed : 0);
    return NULL;
}

/* Postings frames that start with this label. */
static uint64_t frames_of_label(const struct part_index *ix, uint32_t name)
{
    uint64_t n = 0;
    for (size_t i = 0; i < ix->frames[PART_FRAME_POSTINGS].n; i++)
        n += ix->postings_first[i].name == name;
    return n;
}

static err weigh(struct find *f, const struct matcher *m, struct condition *k)
{
    *k = (struct condition){.m = m, .cost = cost_of(m)};
    TRY(part_symbol_lower_bound(f->c, m->name, &k->name, &k->has_name));
    if (!k->has_name) return NULL; /* known at once */
    if (k->cost == COST_LOOKUP) return weigh_literals(f, k);
    k->weight = (frames_of_label(f->c->ix, k->name) + 1) * LIMIT_FRAME_TARGET;
    if (k->cost == COST_PREFIX) k->weight /= PREFIX_SHARE;
    return NULL;
}

static int compare_weights(const void *a, const void *b)
{
    uint64_t x = ((const struct condition *)a)->weight, y = ((const struct condition *)b)->weight;
    return (x > y) - (x < y);
}

/* ---- few candidates ----------------------------------------------------------------------------------------- */

/* One matcher against the labels of one series. */
static err try_labels(struct find *f, const struct condition *k, const uint32_t *pairs, uint32_t n_pairs, bool *matched)
{
    for (uint32_t i = 0; i < n_pairs; i++) {
        if (!k->has_name || pairs[2 * i] != k->name) continue;
        str value;
        TRY(part_symbol(f->c, pairs[2 * i + 1], &value));
        return matcher_match(k->m, value, matched);
    }
    *matched = matcher_matches_empty(k->m);
    return NULL;
}

static err filter_by_labels(struct find *f, const struct condition *k)
{
    uint32_t ids[FEW_CANDIDATES], n_kept = 0;
    size_t n = postings_list(f->set, ids, FEW_CANDIDATES);
    for (size_t i = 0; i < n; i++) {
        const uint32_t *pairs;
        uint32_t n_pairs;
        bool matched;
        TRY(part_series_pairs(f->c, ids[i], &pairs, &n_pairs));
        TRY(try_labels(f, k, pairs, n_pairs, &matched));
        if (matched) ids[n_kept++] = ids[i];
    }
    postings_destroy(f->set);
    f->set = postings_of(ids, n_kept);
    return NULL;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

/* The series alive on the days that touch the range. */
static err start_with_alive(struct find *f, int64_t t_min, int64_t t_max)
{
    const struct part_footer *footer = &f->c->p->footer;
    uint32_t n_days = footer->n_frames[PART_FRAME_ALIVE];
    int64_t first = footer->alive_first_day;
    if (t_min > footer->meta.t_max || t_max < footer->meta.t_min || t_min > t_max) return NULL;
    int64_t from = part_day_of(t_min > footer->meta.t_min ? t_min : footer->meta.t_min);
    int64_t to = part_day_of(t_max < footer->meta.t_max ? t_max : footer->meta.t_max);
    if (n_days == 0 || to - from + 1 == n_days) {
        postings_destroy(f->set);
        f->set = postings_range(0, f->n_series);
        return NULL;
    }
    for (int64_t day = from; day <= to; day++) {
        const struct fcache_entry *e;
        uint32_t frame = (uint32_t)(day - first);
        TRY(part_cursor_hold(f->c, PART_FRAME_ALIVE, frame, &e));
        err bad = postings_decode_or((str){(const char *)e->data, e->n}, f->n_series, 0, UINT32_MAX, f->set);
        part_cursor_release(f->c, e);
        TRY(part_cursor_blame(f->c, PART_FRAME_ALIVE, frame, bad));
    }
    return NULL;
}

static err apply_all(struct find *f, const struct condition *k, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        if (!postings_bounds(f->set, &f->from, &f->to)) return NULL;
        uint64_t count = postings_count(f->set);
        bool by_labels = count <= FEW_CANDIDATES && count * LABELS_WEIGHT < k[i].weight;
        TRY(by_labels ? filter_by_labels(f, &k[i]) : apply(f, &k[i]));
    }
    return NULL;
}

static err find(struct find *f, const struct matcher *m, struct condition *k, size_t n, int64_t t_min, int64_t t_max)
{
    TRY(start_with_alive(f, t_min, t_max));
    if (postings_is_empty(f->set)) return NULL;
    for (size_t i = 0; i < n; i++)
        TRY(weigh(f, &m[i], &k[i]));
    qsort(k, n, sizeof *k, compare_weights);
    return apply_all(f, k, n);
}

err part_find(struct part_cursor *c, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max,
              struct postings **out)
{
    TRY(part_cursor_index(c));
    struct find f = {c, (uint32_t)c->p->footer.meta.series, postings_create(), 0, UINT32_MAX};
    struct condition *k = mem_alloc((n + 1) * sizeof *k);
    err e = find(&f, m, k, n, t_min, t_max);
    mem_free(k);
    if (e != NULL) {
        postings_destroy(f.set);
        return e;
    }
    *out = f.set;
    return NULL;
}
