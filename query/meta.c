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

/* ---- strings ------------------------------------------------------------------------------------------------ */

struct strings {
    struct arena arena;
    str *v; /* heap */
    size_t n, cap;
    size_t max; /* no more than this are of interest; 0 = all */
};

static bool take_string(void *arg, str s)
{
    struct strings *all = arg;
    if (all->n == all->cap) all->v = mem_grow(all->v, &all->cap, all->n + 1, sizeof *all->v);
    all->v[all->n++] = arena_str(&all->arena, s);
    return all->max == 0 || all->n % (all->max + 1) != 0;
}

static int compare_strs(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static void sort_unique(struct strings *all)
{
    if (all->n == 0) return;
    qsort(all->v, all->n, sizeof *all->v, compare_strs);
    size_t n = 1;
    for (size_t i = 1; i < all->n; i++)
        if (!str_eq(all->v[i], all->v[n - 1])) all->v[n++] = all->v[i];
    all->n = n;
}

static void put_strings(struct strings *all, uint64_t limit, struct buf *out, struct query_notes *notes)
{
    struct json j;
    json_init(&j, out);
    json_array(&j);
    for (size_t i = 0; i < all->n && (limit == 0 || i < limit); i++)
        json_str(&j, all->v[i]);
    json_array_end(&j);
    if (limit && all->n > limit) note_truncated(notes);
}

/* Names of labels, or values of one (name.n > 0), of all sets. */
static err collect_strings(struct db *db, str name, const struct meta_request *rq, struct strings *all)
{
    struct select_options o = {.t_min = rq->start_ms, .t_max = rq->end_ms};
    uint32_t n_sets = rq->match && rq->match->n ? rq->match->n : 1;
    for (uint32_t i = 0; i < n_sets; i++) {
        const struct matcher *m = rq->match && rq->match->n ? rq->match->sets[i].m : NULL;
        uint32_t n = m ? rq->match->sets[i].n : 0;
        if (name.n)
            TRY(storage_label_values(db, name, m, n, &o, take_string, all));
        else
            TRY(storage_label_names(db, m, n, &o, take_string, all));
    }
    sort_unique(all);
    return NULL;
}

static err put_collected(struct query_engine *q, str name, const struct meta_request *rq, struct buf *out,
                         struct query_notes *notes)
{
    bool single = !rq->match || rq->match->n <= 1;
    struct strings all = {.max = single ? rq->limit : 0};
    err e = collect_strings(q->o.db, name, rq, &all);
    if (!e) put_strings(&all, rq->limit, out, notes);
    arena_deinit(&all.arena);
    mem_free(all.v);
    return e;
}

err query_label_names(struct query_engine *q, const struct meta_request *rq, struct buf *out, struct query_notes *notes)
{
    return put_collected(q, (str){0}, rq, out, notes);
}

err query_label_values(struct query_engine *q, str name, const struct meta_request *rq, struct buf *out,
                       struct query_notes *notes)
{
    if (name.n == 0) return err_new(ERR_INVALID, "invalid label name: it is empty");
    return put_collected(q, name, rq, out, notes);
}

/* ---- series ------------------------------------------------------------------------------------------------- */

struct series_list {
    struct arena arena;
    struct labels *v; /* heap; the strings live in the arena or with the selections */
    size_t n, cap;
    size_t max;   /* no more than this are of interest; 0 = all */
    size_t held;  /* bytes told to the budget */
    bool several; /* sets: a series may come twice */
    struct map seen;
    struct label_key all;
    struct selection **selections; /* one a set */
    uint32_t n_selections;
};

/* Series of which some block touches the range: as exact as can be told without decoding samples. */
static err add_series(struct series_list *list, struct reader *r, size_t i)
{
    struct labels ls;
    bool added = true;
    TRY(reader_labels(r, i, &list->arena, &ls));
    if (list->several) map_put(&list->seen, label_key_hash(&list->all, &ls), 0, &added);
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

static err collect_set(struct query_engine *q, const struct match_set *set, const struct meta_request *rq,
                       struct budget *b, struct series_list *list)
{
    struct select_options o = {.t_min = rq->start_ms, .t_max = rq->end_ms};
    struct selection *s;
    TRY(storage_select(q->o.db, set->m, set->n, &o, &s));
    list->selections[list->n_selections++] = s;
    struct reader *r = reader_create(s);
    err e = NULL;
    for (size_t i = 0; i < selection_count(s) && e == NULL && (list->max == 0 || list->n < list->max); i++) {
        e = budget_tick(b, 0);
        if (e == NULL) e = add_series(list, r, i);
        if (e == NULL) e = hold_list(list, b);
    }
    reader_destroy(r);
    return e;
}

static int compare_labels(const void *a, const void *b)
{
    return labels_cmp(a, b);
}

static void put_series(const struct series_list *list, uint64_t limit, struct buf *out, struct query_notes *notes)
{
    struct json j;
    json_init(&j, out);
    json_array(&j);
    for (size_t i = 0; i < list->n && (limit == 0 || i < limit); i++)
        result_labels(&j, &list->v[i]);
    json_array_end(&j);
    if (limit && list->n > limit) note_truncated(notes);
}

err query_series(struct query_engine *q, const struct meta_request *rq, struct buf *out, struct query_notes *notes)
{
    if (!rq->match || rq->match->n == 0) return err_new(ERR_INVALID, "no match[] parameter provided");
    struct series_list list = {.all = {.hash = q->hash, .except = true}, .several = rq->match->n > 1};
    if (rq->limit > 0 && rq->limit < SIZE_MAX) list.max = (size_t)rq->limit + 1; /* one more tells of the rest */
    list.selections = mem_alloc(rq->match->n * sizeof(struct selection *));
    struct budget b;
    budget_init(&b, q->o.timeout_ms, 0, q->o.max_memory, NULL);
    err e = NULL;
    for (uint32_t i = 0; i < rq->match->n; i++)
        TRY_OUT(collect_set(q, &rq->match->sets[i], rq, &b, &list));
    if (list.n > 1) qsort(list.v, list.n, sizeof *list.v, compare_labels);
    put_series(&list, rq->limit, out, notes);
out:
    for (uint32_t i = 0; i < list.n_selections; i++)
        selection_destroy(list.selections[i]);
    mem_free(list.selections);
    map_deinit(&list.seen);
    arena_deinit(&list.arena);
    mem_free(list.v);
    return e;
}
