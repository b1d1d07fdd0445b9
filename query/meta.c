/*
 * meta.c: which series, label names and label values there are.
 *
 * A request may hold several sets of matchers; the answer is their union, sorted and without repeats.
 * With one set storage's own order is the answer's and nothing is held. Any thread.
 */
#include "query/engine.h"

#include <stdlib.h>

#include "query/parser.h"
#include "query/result.h"
#include "query/value.h"
#include "storage/base/alloc.h"
#include "storage/base/map.h"
#include "storage/base/str_sort.h"

#define SETS_MAX 10000 /* of match[] and extra filters together */

/* Appends m to the set; its memory is the arena's, its regular expressions the set's from now on. */
static void extend(struct match_set *set, struct arena *a, const struct matcher *m, uint32_t n)
{
    struct matcher *all = arena_alloc(a, (set->n + n + 1) * sizeof *all);
    if (set->n > 0) memcpy(all, set->m, set->n * sizeof *all);
    if (n > 0) memcpy(all + set->n, m, n * sizeof *all);
    *set = (struct match_set){all, set->n + n};
}

static err add_labels(struct match_set *set, const struct match_extra *extra, struct arena *a)
{
    for (uint32_t i = 0; i < extra->n_labels; i++) {
        struct matcher m;
        TRY(matcher_init(&m, MATCH_EQ, arena_str(a, extra->labels[i].name), arena_str(a, extra->labels[i].value)));
        extend(set, a, &m, 1);
    }
    return NULL;
}

/* One match[] (NULL: none) with one filter (NULL: none) and the labels; *set is to be freed also after an error. */
static err parse_set(const str *text, const str *filter, const struct match_extra *extra, struct arena *a,
                     struct match_set *set)
{
    if (text) TRY(err_wrap(promql_parse_selector(*text, a, &set->m, &set->n), "invalid parameter \"match[]\""));
    if (filter) {
        struct matcher *m;
        uint32_t n;
        TRY(err_wrap(promql_parse_filter(*filter, a, &m, &n), "invalid parameter \"extra_filters[]\""));
        if (n == 0) return err_new(ERR_INVALID, "invalid parameter \"extra_filters[]\": {} confines to nothing");
        extend(set, a, m, n);
    }
    return add_labels(set, extra, a);
}

err match_sets_parse_confined(const str *texts, uint32_t n, const struct match_extra *extra, struct match_sets *out)
{
    *out = (struct match_sets){0};
    bool confined = extra->n_labels > 0 || extra->n_filters > 0;
    uint64_t n_texts = n > 0 ? n : confined, n_filters = extra->n_filters > 0 ? extra->n_filters : 1;
    if (n_texts * n_filters > SETS_MAX)
        return err_new(ERR_INVALID, "match[] and extra_filters[] together make more than %d selectors", SETS_MAX);
    out->sets = arena_zalloc(&out->arena, (n_texts * n_filters + 1) * sizeof *out->sets);
    for (uint32_t i = 0; i < n_texts; i++) {
        for (uint32_t k = 0; k < n_filters; k++) {
            const str *text = n > 0 ? &texts[i] : NULL, *filter = extra->n_filters > 0 ? &extra->filters[k] : NULL;
            TRY(parse_set(text, filter, extra, &out->arena, &out->sets[out->n++]));
        }
    }
    return NULL;
}

err match_sets_parse(const str *texts, uint32_t n, struct match_sets *out)
{
    static const struct match_extra nothing;
    return match_sets_parse_confined(texts, n, &nothing, out);
}

void match_sets_deinit(struct match_sets *s)
{
    for (uint32_t i = 0; i < s->n; i++)
        for (uint32_t k = 0; k < s->sets[i].n; k++)
            matcher_deinit(&s->sets[i].m[k]);
    arena_deinit(&s->arena);
    *s = (struct match_sets){0};
}

static void note_truncated(struct query_notes *notes)
{
    notes->warnings = mem_realloc(notes->warnings, (notes->n_warnings + 1) * sizeof *notes->warnings);
    notes->warnings[notes->n_warnings++] = mem_dup_str(STR("results truncated due to limit"));
}

/* Elements of the answer's array, up to the limit. */
struct printer {
    struct json j;
    uint64_t n, limit; /* printed; at most, 0 = all */
    bool truncated;
};

static void printer_begin(struct printer *p, uint64_t limit, struct buf *out)
{
    *p = (struct printer){.limit = limit};
    json_init(&p->j, out);
    json_array(&p->j);
}

/* True if one more may be printed, which is counted. */
static bool printer_next(struct printer *p)
{
    p->truncated = p->limit > 0 && p->n == p->limit;
    p->n += !p->truncated;
    return !p->truncated;
}

static void printer_end(struct printer *p, struct query_notes *notes)
{
    json_array_end(&p->j);
    if (p->truncated) note_truncated(notes);
}

/* ---- strings ------------------------------------------------------------------------------------------------ */

/* Strings are printed as they come: in order, each once. */
static bool print_string(void *arg, str s)
{
    struct printer *p = arg;
    bool more = printer_next(p);
    if (more) json_str(&p->j, s);
    return more;
}

/* Names of labels, or values of one (name.n > 0), of set i; without sets, of everything. */
static err ask_set(struct db *db, str name, const struct meta_request *rq, uint32_t i, storage_string_fn fn, void *arg)
{
    struct select_options o = {.t_min = rq->start_ms, .t_max = rq->end_ms};
    struct match_set set = rq->match && i < rq->match->n ? rq->match->sets[i] : (struct match_set){0};
    if (name.n > 0) return storage_label_values(db, name, set.m, set.n, &o, fn, arg);
    return storage_label_names(db, set.m, set.n, &o, fn, arg);
}

struct strings {
    struct arena arena;
    str *v; /* heap */
    size_t n, cap;
};

static bool take_string(void *arg, str s)
{
    struct strings *all = arg;
    if (all->n == all->cap) all->v = mem_grow(all->v, &all->cap, all->n + 1, sizeof *all->v);
    all->v[all->n++] = arena_str(&all->arena, s);
    return true;
}

static err print_union(struct db *db, str name, const struct meta_request *rq, struct printer *p)
{
    struct strings all = {0};
    err e = NULL;
    for (uint32_t i = 0; i < rq->match->n; i++)
        TRY_OUT(ask_set(db, name, rq, i, take_string, &all));
    if (all.v == NULL) goto out; /* nothing was found */
    all.n = str_sort_unique(all.v, all.n);
    for (size_t i = 0; i < all.n; i++)
        if (!print_string(p, all.v[i])) break;
out:
    arena_deinit(&all.arena);
    mem_free(all.v);
    return e;
}

static err put_strings(struct query_engine *q, str name, const struct meta_request *rq, struct buf *out,
                       struct query_notes *notes)
{
    bool several = rq->match && rq->match->n > 1;
    struct printer p;
    printer_begin(&p, rq->limit, out);
    TRY(several ? print_union(q->o.db, name, rq, &p) : ask_set(q->o.db, name, rq, 0, print_string, &p));
    printer_end(&p, notes);
    return NULL;
}

err query_label_names(struct query_engine *q, const struct meta_request *rq, struct buf *out, struct query_notes *notes)
{
    return put_strings(q, (str){0}, rq, out, notes);
}

err query_label_values(struct query_engine *q, str name, const struct meta_request *rq, struct buf *out,
                       struct query_notes *notes)
{
    if (name.n == 0) return err_new(ERR_INVALID, "invalid label name: it is empty");
    return put_strings(q, name, rq, out, notes);
}

/* ---- series ------------------------------------------------------------------------------------------------- */

/* Series of which some block touches the range: as exact as can be told without decoding samples. */
static err select_set(struct query_engine *q, const struct match_set *set, const struct meta_request *rq,
                      struct selection **out)
{
    struct select_options o = {.t_min = rq->start_ms, .t_max = rq->end_ms};
    return storage_select(q->o.db, set->m, set->n, &o, out);
}

struct series_printer {
    struct printer p;
    struct label_printer labels;
};

static void print_series(struct series_printer *s, const struct labels *ls)
{
    if (printer_next(&s->p)) label_printer_put(&s->labels, &s->p.j, ls);
}

/* One set: each series once, in storage's order, and nothing is held. */
static err print_set(struct query_engine *q, const struct meta_request *rq, struct budget *b, struct series_printer *p)
{
    struct selection *s;
    TRY(select_set(q, &rq->match->sets[0], rq, &s));
    struct reader *r = reader_create(s);
    struct arena arena = {0};
    err e = NULL;
    for (size_t i = 0; i < selection_count(s) && !p->p.truncated; i++) {
        struct labels ls;
        arena_reset(&arena);
        TRY_OUT(budget_tick(b, 0));
        TRY_OUT(reader_labels_shared(r, i, &arena, &ls));
        print_series(p, &ls);
    }
out:
    arena_deinit(&arena);
    reader_destroy(r);
    selection_destroy(s);
    return e;
}

/* Several sets: their union, sorted. */
struct series_list {
    struct arena arena;
    struct labels *v; /* heap; arrays in the arena, strings with the readers */
    size_t n, cap;
    size_t held; /* bytes told to the budget */
    struct map seen;
    struct label_key all;
    struct selection **selections; /* one a set */
    struct reader **readers;       /* one a selection, which go first */
    uint32_t n_selections, n_readers;
};

static err add_series(struct series_list *list, struct reader *r, size_t i)
{
    struct labels ls;
    bool added;
    TRY(reader_labels_shared(r, i, &list->arena, &ls));
    map_put(&list->seen, label_key_hash(&list->all, &ls), 0, &added);
    if (!added) return NULL;
    if (list->n == list->cap) list->v = mem_grow(list->v, &list->cap, list->n + 1, sizeof *list->v);
    list->v[list->n++] = ls;
    return NULL;
}

/* What the list takes counts against the memory of a query. */
static err hold_list(struct series_list *list, struct budget *b)
{
    size_t bytes = list->arena.bytes + list->cap * sizeof *list->v;
    if (bytes <= list->held) return NULL;
    size_t more = bytes - list->held;
    list->held = bytes;
    return budget_hold(b, 0, more);
}

static err collect_set(struct query_engine *q, uint32_t set, const struct meta_request *rq, struct budget *b,
                       struct series_list *list)
{
    struct selection *s;
    TRY(select_set(q, &rq->match->sets[set], rq, &s));
    list->selections[list->n_selections++] = s;
    struct reader *r = reader_create(s);
    list->readers[list->n_readers++] = r;
    for (size_t i = 0; i < selection_count(s); i++) {
        TRY(budget_tick(b, 0));
        TRY(add_series(list, r, i));
        TRY(hold_list(list, b));
    }
    return NULL;
}

static int compare_labels(const void *a, const void *b)
{
    return labels_cmp(a, b);
}

static err print_sets(struct query_engine *q, const struct meta_request *rq, struct budget *b, struct series_printer *p)
{
    struct series_list list = {.all = {.hash = q->hash, .except = true}};
    list.selections = mem_alloc(rq->match->n * sizeof(struct selection *));
    list.readers = mem_alloc(rq->match->n * sizeof(struct reader *));
    err e = NULL;
    for (uint32_t i = 0; i < rq->match->n; i++)
        TRY_OUT(collect_set(q, i, rq, b, &list));
    if (list.n > 1) qsort(list.v, list.n, sizeof *list.v, compare_labels);
    for (size_t i = 0; i < list.n && !p->p.truncated; i++)
        print_series(p, &list.v[i]);
out:
    for (uint32_t i = 0; i < list.n_readers; i++)
        reader_destroy(list.readers[i]);
    for (uint32_t i = 0; i < list.n_selections; i++)
        selection_destroy(list.selections[i]);
    mem_free(list.readers);
    mem_free(list.selections);
    map_deinit(&list.seen);
    arena_deinit(&list.arena);
    mem_free(list.v);
    return e;
}

err query_series(struct query_engine *q, const struct meta_request *rq, struct buf *out, struct query_notes *notes)
{
    if (!rq->match || rq->match->n == 0) return err_new(ERR_INVALID, "no match[] parameter provided");
    struct series_printer p;
    printer_begin(&p.p, rq->limit, out);
    label_printer_init(&p.labels);
    struct budget b;
    budget_init(&b, q->o.timeout_ms, 0, q->o.max_memory, NULL);
    TRY(rq->match->n == 1 ? print_set(q, rq, &b, &p) : print_sets(q, rq, &b, &p));
    printer_end(&p.p, notes);
    return NULL;
}
