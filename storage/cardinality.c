/*
 * cardinality.c: who has the series (storage_cardinality): rankings over the registry's index.
 *
 * The registry keeps the series of every (name, value) pair as a list, so without conditions a ranking
 * is a walk over the lists' lengths. Conditions make a bitmap of the chosen series first, and a list
 * counts what it has in common with that. The walk goes in turns under the registry's lock; series
 * that come up meanwhile may be counted in some pairs and not in others.
 *
 * Any thread; the memory of a call is 24 bytes a row of its rankings and one bit a series.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/db_internal.h"

#define TURN_WORK 200000 /* handles or lists looked at under one lock: a millisecond or so */
#define NO_VALUE SYMBOL_NONE

struct row {
    uint64_t n;
    uint32_t name, value; /* symbols; value NO_VALUE: the row is the name's */
};

/* The largest rows so far: a heap with the smallest on top. */
struct top {
    struct row *v;
    size_t n, max;
};

struct created_list {
    struct cardinality *out;
    size_t cap; /* of out->created_by_metric.rows, which are on the heap until they are ranked */
};

struct tally {
    struct db *db;
    const struct registry *r;
    const uint64_t *chosen; /* a bit a series; NULL: all are */
    uint32_t n_chosen;      /* bits */
    uint32_t metric_label;  /* symbols of __name__ and of the focus label, SYMBOL_NONE if nobody has it */
    uint32_t focus;
    uint32_t name; /* the label that is being walked */
    uint64_t values, series, bytes;
    uint64_t pairs;
    struct created_list created;
    struct top by_metric, by_pair, by_label, by_focus, values_by_label, bytes_by_label;
};

/* ---- the largest ------------------------------------------------------------------------------------------------ */

static str symbol_text(const struct registry *r, uint32_t symbol)
{
    if (symbol == NO_VALUE) return (str){"", 0};
    const struct symbol *s = registry_symbol_at(r, symbol);
    return (str){s->p, s->n};
}

/* Negative: a ranks before b. */
static int compare_rows(const struct registry *r, const struct row *a, const struct row *b)
{
    if (a->n != b->n) return a->n > b->n ? -1 : 1;
    int by_name = a->name == b->name ? 0 : str_cmp(symbol_text(r, a->name), symbol_text(r, b->name));
    return by_name != 0 ? by_name : str_cmp(symbol_text(r, a->value), symbol_text(r, b->value));
}

static void sift_down(const struct registry *r, struct top *t, size_t at)
{
    for (;;) {
        size_t last = at;
        for (size_t child = 2 * at + 1; child <= 2 * at + 2 && child < t->n; child++)
            if (compare_rows(r, &t->v[child], &t->v[last]) > 0) last = child;
        if (last == at) return;
        struct row swap = t->v[at];
        t->v[at] = t->v[last];
        t->v[last] = swap;
        at = last;
    }
}

static void top_add(const struct registry *r, struct top *t, struct row row)
{
    if (t->n < t->max) {
        size_t at = t->n++;
        for (; at > 0 && compare_rows(r, &row, &t->v[(at - 1) / 2]) > 0; at = (at - 1) / 2)
            t->v[at] = t->v[(at - 1) / 2];
        t->v[at] = row;
    } else if (t->max > 0 && compare_rows(r, &row, &t->v[0]) < 0) {
        t->v[0] = row;
        sift_down(r, t, 0);
    }
}

/* name=value, or the one of them that there is. */
static str row_text(const struct registry *r, const struct row *row, struct arena *a)
{
    str name = symbol_text(r, row->name), value = symbol_text(r, row->value);
    bool pair = name.n > 0 && value.n > 0;
    char *text = arena_alloc(a, name.n + value.n + 1);
    memcpy(text, name.p, name.n);
    if (pair) text[name.n] = '=';
    memcpy(text + name.n + pair, value.p, value.n);
    return (str){text, name.n + pair + value.n};
}

/* Takes the heap apart into a ranking, the last row first. */
static struct cardinality_ranking top_take(const struct registry *r, struct top *t, struct arena *a)
{
    struct cardinality_ranking out = {arena_alloc(a, t->n * sizeof *out.rows + 1), t->n};
    while (t->n > 0) {
        struct row row = t->v[0];
        t->v[0] = t->v[--t->n];
        sift_down(r, t, 0);
        out.rows[t->n] = (struct cardinality_row){row_text(r, &row, a), row.n};
    }
    return out;
}

static void add_created(void *arg, str metric, uint64_t n)
{
    struct created_list *l = arg;
    struct cardinality_ranking *to = &l->out->created_by_metric;
    if (to->n == l->cap) to->rows = mem_grow(to->rows, &l->cap, to->n + 1, sizeof *to->rows);
    to->rows[to->n++] = (struct cardinality_row){arena_str(&l->out->arena, metric), n};
}

/* ---- the walk --------------------------------------------------------------------------------------------------- */

static uint32_t count_chosen(const struct tally *t, const uint32_t *handles, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n && handles[i] < t->n_chosen; i++)
        count += t->chosen[handles[i] / 64] >> handles[i] % 64 & 1;
    return count;
}

/* The label whose pairs were walked is complete. */
static void end_label(struct tally *t)
{
    if (t->series > 0) {
        top_add(t->r, &t->by_label, (struct row){t->series, t->name, NO_VALUE});
        top_add(t->r, &t->values_by_label, (struct row){t->values, t->name, NO_VALUE});
        top_add(t->r, &t->bytes_by_label, (struct row){t->bytes, t->name, NO_VALUE});
    }
    t->pairs += t->values;
    t->values = t->series = t->bytes = 0;
}

static void tally_metric(struct tally *t, uint32_t value, uint32_t series)
{
    top_add(t->r, &t->by_metric, (struct row){series, NO_VALUE, value});
    if (t->chosen == NULL) return; /* then all metrics with new series are listed, also those without others */
    str metric = symbol_text(t->r, value);
    uint64_t created = creations_of(t->db->creations, metric, db_now(t->db));
    if (created > 0) add_created(&t->created, metric, created);
}

static size_t tally_pair(void *arg, uint32_t name, uint32_t value, const uint32_t *handles, uint32_t n)
{
    struct tally *t = arg;
    if (name != t->name) {
        end_label(t);
        t->name = name;
    }
    uint32_t series = t->chosen == NULL ? n : count_chosen(t, handles, n);
    if (series == 0) return n;
    t->values++;
    t->series += series;
    t->bytes += (uint64_t)series * registry_symbol_at(t->r, value)->n;
    top_add(t->r, &t->by_pair, (struct row){series, name, value});
    if (name == t->metric_label) tally_metric(t, value, series);
    if (name == t->focus) top_add(t->r, &t->by_focus, (struct row){series, NO_VALUE, value});
    return t->chosen == NULL ? 0 : n;
}

static err walk(struct registry *r, struct tally *t, int64_t timeout_ms)
{
    struct db *db = t->db;
    uint64_t start = db->env->ops->mono_ns(db->env);
    struct registry_walk at = {0};
    while (registry_walk(r, &at, TURN_WORK, tally_pair, t)) {
        uint64_t spent = db->env->ops->mono_ns(db->env) - start;
        if (timeout_ms > 0 && spent / 1000000 > (uint64_t)timeout_ms)
            return err_new(ERR_TIMEOUT, "counting series took longer than %lld ms; narrow it with match[]",
                           (long long)timeout_ms);
    }
    end_label(t);
    return NULL;
}

/* ---- what is counted -------------------------------------------------------------------------------------------- */

/* One bit a series that satisfies some set; *out is heap memory. */
static err choose(struct registry *r, const struct cardinality_options *o, uint64_t **out, uint32_t *n_bits,
                  uint64_t *n_series)
{
    *n_bits = registry_count(r);
    *out = mem_zalloc((*n_bits / 64 + 1) * sizeof **out);
    *n_series = 0;
    for (size_t i = 0; i < o->n_sets; i++) {
        uint32_t *handles;
        size_t n;
        TRY(registry_select(r, o->sets[i].m, o->sets[i].n, &handles, &n));
        for (size_t k = 0; k < n && handles[k] < *n_bits; k++) {
            uint64_t *word = &(*out)[handles[k] / 64], bit = UINT64_C(1) << handles[k] % 64;
            *n_series += (*word & bit) == 0;
            *word |= bit;
        }
        mem_free(handles);
    }
    return NULL;
}

static int compare_created(const void *a, const void *b)
{
    const struct cardinality_row *x = a, *y = b;
    if (x->n != y->n) return x->n > y->n ? -1 : 1;
    return str_cmp(x->name, y->name);
}

static void rank_created(struct tally *t, size_t top, struct cardinality *out)
{
    struct creations *creations = t->db->creations;
    struct cardinality_ranking *to = &out->created_by_metric;
    if (t->chosen == NULL) creations_each(creations, db_now(t->db), add_created, &t->created);
    if (to->n > 0) qsort(to->rows, to->n, sizeof *to->rows, compare_created);
    if (to->n > top) to->n = top;
    struct cardinality_row *rows = to->rows;
    to->rows = arena_dup(&out->arena, rows, to->n * sizeof *rows);
    mem_free(rows);
    out->created_since_ms = creations_since(creations);
}

static void tally_init(struct tally *t, struct db *db, struct registry *r, const struct cardinality_options *o,
                       struct cardinality *out)
{
    struct top *tops[] = {&t->by_metric, &t->by_pair,         &t->by_label,
                          &t->by_focus,  &t->values_by_label, &t->bytes_by_label};
    *t = (struct tally){.db = db,
                        .r = r,
                        .created = {.out = out},
                        .name = NO_VALUE,
                        .metric_label = registry_find_symbol(r, LABEL_NAME),
                        .focus = registry_find_symbol(r, o->focus)};
    for (size_t i = 0; i < ARRAY_LEN(tops); i++)
        *tops[i] = (struct top){.v = mem_alloc(o->top * sizeof(struct row) + 1), .max = o->top};
}

/* Fills the rankings and frees the heaps. */
static void tally_take(struct tally *t, struct cardinality *out)
{
    struct arena *a = &out->arena;
    out->series_by_metric = top_take(t->r, &t->by_metric, a);
    out->series_by_pair = top_take(t->r, &t->by_pair, a);
    out->series_by_label = top_take(t->r, &t->by_label, a);
    out->series_by_focus = top_take(t->r, &t->by_focus, a);
    out->values_by_label = top_take(t->r, &t->values_by_label, a);
    out->bytes_by_label = top_take(t->r, &t->bytes_by_label, a);
    out->label_pairs = t->pairs;
    struct top *tops[] = {&t->by_metric, &t->by_pair,         &t->by_label,
                          &t->by_focus,  &t->values_by_label, &t->bytes_by_label};
    for (size_t i = 0; i < ARRAY_LEN(tops); i++)
        mem_free(tops[i]->v);
}

err storage_cardinality(struct db *db, const struct cardinality_options *o, struct cardinality *out)
{
    *out = (struct cardinality){0};
    pthread_mutex_lock(&db->append_lock);
    struct registry *r = registry_ref(db->registry);
    pthread_mutex_unlock(&db->append_lock);
    struct tally t;
    tally_init(&t, db, r, o, out);
    uint64_t *chosen = NULL;
    out->series = registry_count(r);
    err e = o->n_sets > 0 ? choose(r, o, &chosen, &t.n_chosen, &out->series) : NULL;
    t.chosen = chosen;
    if (e == NULL) e = walk(r, &t, o->timeout_ms);
    tally_take(&t, out);
    rank_created(&t, o->top, out);
    mem_free(chosen);
    registry_unref(r);
    return e;
}

void cardinality_deinit(struct cardinality *c)
{
    arena_deinit(&c->arena);
}
