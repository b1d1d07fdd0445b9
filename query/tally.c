/*
 * tally.c: counting the samples that a query loads (tally.h).
 *
 * Slices of a query count at the same time, so the counters are atomic; what counts at every step is kept as one
 * number and added at the end.
 */
#include "query/tally.h"

#include <stdatomic.h>

struct tally {
    _Atomic uint64_t *each; /* one a step */
    _Atomic uint64_t all;
};

static void mark(struct plan_node *n, enum tally_kind kind)
{
    if (n->repeat) kind = TALLY_ALL;
    bool subquery = n->kind == PLAN_SAMPLES && n->window.inner;
    if (n->kind == PLAN_SELECT || n->kind == PLAN_SAMPLES) n->counted = (uint8_t)kind;
    if (subquery) return; /* its function counts its windows */
    for (uint32_t i = 0; i < n->n_kids; i++)
        mark(n->kids[i], kind);
}

void tally_start(struct plan *plan, struct arena *a)
{
    plan->tally = arena_zalloc(a, sizeof *plan->tally);
    plan->tally->each = arena_zalloc(a, (plan->grid.n + 1) * sizeof *plan->tally->each);
    if (plan->root->kind == PLAN_SAMPLES && plan->root->window.inner)
        mark(plan->root->window.inner, TALLY_ALL); /* no function takes it: what it loads counts after all */
    else
        mark(plan->root, TALLY_EACH);
}

static void add(const struct exec *x, const struct plan_node *node, uint32_t step, uint64_t samples)
{
    struct tally *t = x->plan->tally;
    _Atomic uint64_t *to = node->counted == TALLY_ALL ? &t->all : &t->each[step];
    atomic_fetch_add_explicit(to, samples, memory_order_relaxed);
}

/* Bytes of a histogram and its timestamp in the reference's memory, in samples. */
static uint64_t weight(const struct hist *h)
{
    uint64_t elements = h->n_positive_spans + h->n_negative_spans + h->n_positive + h->n_negative + h->n_custom;
    return (168 + 8 + 8 * elements) / 16;
}

void tally_row(const struct exec *x, const struct plan_node *node, const double *v, struct hist **h, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (h && h[i])
            add(x, node, i, weight(h[i]));
        else if (!is_stale_nan(v[i]))
            add(x, node, i, 1);
    }
}

void tally_series(const struct exec *x, const struct plan_node *samples, const struct series *s)
{
    const struct plan_window *w = &samples->window;
    if (s->digest) { /* one window, all of it */
        add(x, samples, 0, s->digest->n);
        return;
    }
    size_t first = 0, next = 0; /* of the window, and behind it */
    uint64_t loaded = 0;
    for (uint32_t i = 0; i < samples->grid.n; i++) {
        int64_t end = (w->has_at ? w->at : grid_time(&samples->grid, i)) - w->offset;
        for (; next < s->n && s->t[next] <= end; next++)
            loaded += s->h && s->h[next] ? weight(s->h[next]) : 1;
        for (; first < next && s->t[first] <= end - w->range; first++)
            loaded -= s->h && s->h[first] ? weight(s->h[first]) : 1;
        if (loaded > 0) add(x, samples, i, loaded);
    }
}

uint64_t tally_at(const struct plan *plan, uint32_t i)
{
    return atomic_load(&plan->tally->each[i]) + atomic_load(&plan->tally->all);
}

uint64_t tally_total(const struct plan *plan)
{
    uint64_t total = 0;
    for (uint32_t i = 0; i < plan->grid.n; i++)
        total += tally_at(plan, i);
    return total;
}
