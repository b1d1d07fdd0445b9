/*
 * op_subquery.c: the rows of an inner expression as series of samples for a range function.
 *
 * The inner operator runs on its own grid (plan.c: multiples of the subquery's step). Its rows come
 * one by one, unless rows of equal labels may occur: those are collected and merged first, so that a
 * window sees one series. Counter-reset hints of histograms are forgotten: between the steps samples
 * may be missing or repeated.
 */
#include "query/source.h"

struct subquery_source {
    struct op op;
    struct source source;
    struct op *inner;
    bool collected; /* rows holds all rows of inner */
    struct held_rows rows;
    size_t at;          /* next of rows */
    int64_t *t, *times; /* of the present samples; of all steps */
    double *v;
    struct hist **h;
};

static err next_row(struct subquery_source *o, struct row *row, bool *more)
{
    if (!o->inner->node->may_repeat) return op_next(o->inner, row, more);
    if (!o->collected) {
        TRY(held_collect(o->inner, &o->rows));
        TRY(held_merge(o->op.x, &o->rows, o->inner->n));
        o->collected = true;
    }
    *more = o->at < o->rows.n;
    if (*more) *row = held_as_row(&o->rows.v[o->at++]);
    return NULL;
}

static struct hist *without_hint(struct hist *h, struct arena *a)
{
    if (h->reset_hint != HIST_RESET_YES && h->reset_hint != HIST_RESET_NO) return h;
    struct hist *copy = arena_dup(a, h, sizeof *h);
    copy->reset_hint = HIST_RESET_UNKNOWN;
    return copy;
}

/* The steps that have a sample. */
static void gather(struct subquery_source *o, const struct row *row, struct series *out)
{
    size_t n = 0;
    arena_reset(&o->op.scratch);
    for (uint32_t i = 0; i < o->inner->n; i++) {
        if (!row_has(row, i)) continue;
        o->t[n] = o->times[i];
        o->v[n] = row->v[i];
        if (row->h) o->h[n] = row->h[i] ? without_hint(row->h[i], &o->op.scratch) : NULL;
        n++;
    }
    *out = (struct series){.t = o->t, .v = o->v, .h = row->h ? o->h : NULL, .n = n, .labels = *row};
}

static err subquery_next(struct source *source, struct series *out, bool *more)
{
    struct subquery_source *o = (struct subquery_source *)source->op;
    struct row row;
    do {
        TRY(next_row(o, &row, more));
        if (!*more) return NULL;
        gather(o, &row, out);
        TRY(budget_tick(o->op.x->budget, out->n));
    } while (out->n == 0);
    return NULL;
}

err source_subquery_open(struct exec *x, const struct plan_node *samples, struct source **out)
{
    struct subquery_source *o = op_new(x, samples, sizeof *o, NULL, NULL);
    o->source = (struct source){subquery_next, &o->op};
    *out = &o->source;
    TRY(exec_open(x, samples->kids[0], &o->inner));
    uint32_t n = o->inner->n;
    TRY(budget_hold(x->budget, 2 * (uint64_t)n, 4 * sizeof(double) * (size_t)n));
    o->t = arena_alloc(x->arena, (n + 1) * sizeof *o->t);
    o->times = arena_alloc(x->arena, (n + 1) * sizeof *o->times);
    o->v = arena_alloc(x->arena, (n + 1) * sizeof *o->v);
    o->h = arena_alloc(x->arena, (n + 1) * sizeof *o->h);
    const struct grid *g = &samples->kids[0]->grid;
    for (uint32_t i = 0; i < n; i++)
        o->times[i] = grid_time(g, i);
    return NULL;
}
