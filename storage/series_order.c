/*
 * series_order.c: the registry's series in storage order, for flushes (series.h, registry_sorted).
 *
 * Both orders are kept from flush to flush; only what is new is sorted and merged in. Series compare
 * by the ranks of their symbols, so a comparison touches integers only.
 */
#include <stdlib.h>

#include "storage/series_internal.h"

struct order_context {
    const struct registry *r;
    const uint32_t *rank;         /* by symbol number */
    uint32_t name, job, instance; /* symbol numbers, SYMBOL_NONE if absent */
};

typedef int (*order_compare)(const struct order_context *c, uint32_t a, uint32_t b);

static int compare_symbols(const struct order_context *c, uint32_t a, uint32_t b)
{
    return str_cmp(symbols_str(&c->r->symbols, a), symbols_str(&c->r->symbols, b));
}

/* Rank + 1 of the value of a label, 0 if the series lacks it. */
static uint32_t value_rank(const struct order_context *c, const uint32_t *pairs, uint32_t n, uint32_t name)
{
    for (uint32_t i = 0; i < n; i++)
        if (pairs[2 * i] == name) return c->rank[pairs[2 * i + 1]] + 1;
    return 0;
}

static int compare_u32(uint32_t a, uint32_t b)
{
    return (a > b) - (a < b);
}

/* labels_cmp_storage on symbol ranks. */
static int compare_series(const struct order_context *c, uint32_t a, uint32_t b)
{
    const struct series *x = registry_at(c->r, a), *y = registry_at(c->r, b);
    const uint32_t *p = registry_pairs(c->r, x), *q = registry_pairs(c->r, y);
    const uint32_t leading[] = {c->name, c->job, c->instance};
    for (size_t i = 0; i < ARRAY_LEN(leading); i++) {
        int d = compare_u32(value_rank(c, p, x->n_pairs, leading[i]), value_rank(c, q, y->n_pairs, leading[i]));
        if (d != 0) return d;
    }
    uint32_t n = 2u * (x->n_pairs < y->n_pairs ? x->n_pairs : y->n_pairs);
    for (uint32_t i = 0; i < n; i++)
        if (p[i] != q[i]) return compare_u32(c->rank[p[i]], c->rank[q[i]]);
    return compare_u32(x->n_pairs, y->n_pairs);
}

struct sort_argument {
    const struct order_context *c;
    order_compare compare;
};

static int sort_compare(const void *a, const void *b, void *arg)
{
    const struct sort_argument *s = arg;
    return s->compare(s->c, *(const uint32_t *)a, *(const uint32_t *)b);
}

/* Extends a sorted array of the numbers [0, n_old) to [0, n_new); frees old, returns the new one. */
static uint32_t *extend(const struct order_context *c, order_compare compare, uint32_t *old, uint32_t n_old,
                        uint32_t n_new)
{
    if (n_old == n_new) return old;
    uint32_t n_tail = n_new - n_old;
    uint32_t *tail = mem_alloc(n_tail * sizeof *tail);
    for (uint32_t i = 0; i < n_tail; i++)
        tail[i] = n_old + i;
    qsort_r(tail, n_tail, sizeof *tail, sort_compare, &(struct sort_argument){c, compare});

    uint32_t *merged = mem_alloc(n_new * sizeof *merged);
    for (uint32_t i = 0, j = 0, k = 0; k < n_new; k++) {
        bool take_old = i < n_old && (j == n_tail || compare(c, old[i], tail[j]) <= 0);
        merged[k] = take_old ? old[i++] : tail[j++];
    }
    mem_free(tail);
    mem_free(old);
    return merged;
}

struct registry_order registry_sorted(struct registry *r)
{
    struct order_context c = {.r = r};
    pthread_rwlock_rdlock(&r->lock);
    uint32_t n_series = registry_count(r), n_symbols = r->symbols.n;
    c.name = symbols_find(&r->symbols, LABEL_NAME);
    c.job = symbols_find(&r->symbols, STR("job"));
    c.instance = symbols_find(&r->symbols, STR("instance"));
    pthread_rwlock_unlock(&r->lock);

    r->order_symbols = extend(&c, compare_symbols, r->order_symbols, r->n_order_symbols, n_symbols);
    r->n_order_symbols = n_symbols;
    uint32_t *rank = mem_alloc((n_symbols + 1) * sizeof *rank);
    for (uint32_t i = 0; i < n_symbols; i++)
        rank[r->order_symbols[i]] = i;
    c.rank = rank;
    r->order_series = extend(&c, compare_series, r->order_series, r->n_order_series, n_series);
    r->n_order_series = n_series;
    mem_free(rank);
    return (struct registry_order){r->order_series, n_series, r->order_symbols, n_symbols};
}
