/*
 * op_aggregate.c: sum, avg, min, max, count, group, stddev, stdvar, folded while rows stream by.
 *
 * A group holds a few columns of steps, whatever the number of series; rows are folded and forgotten.
 * Terms come in the order of the series, compensated as Prometheus does (Neumaier), so sums agree with
 * it but for what the order of series decides. Histograms: sum and avg add them up, count and group
 * count them, the others say that they are ignored.
 *
 * Columns of a group, by operator ("no sample" in `a` marks a step not seen yet):
 *   sum            a sum, b compensation
 *   avg            a sum, b compensation, c count; a is the mean where `means` is set (after an overflow)
 *   min, max       a
 *   count, group   a
 *   stddev, stdvar a sum of squared differences, b mean, c count
 */
#include "query/group.h"

#include <math.h>

#include "query/rollup.h"

struct agg_group {
    double *a, *b, *c;
    bool *means;
    struct hist_sum *hists; /* one a step; NULL until the first histogram comes */
    bool drop_name;
};

struct op_aggregate {
    struct op op;
    struct op *vector;
    enum aggregate_op code;
    struct grouping grouping;
    struct agg_group *groups; /* query arena */
    size_t cap;
    bool folded;
    size_t at;       /* next group to yield */
    struct hist **h; /* column of the row to yield */
};

static void aggregate_close(struct op *op)
{
    grouping_deinit(&((struct op_aggregate *)op)->grouping);
}

static err add_group(struct op_aggregate *o)
{
    size_t n = o->grouping.n; /* the new one is counted already */
    struct exec *x = o->op.x;
    if (n > o->cap) {
        size_t cap = o->cap ? o->cap * 2 : 16;
        struct agg_group *v = arena_alloc(x->arena, cap * sizeof *v);
        if (o->cap) memcpy(v, o->groups, o->cap * sizeof *v);
        o->groups = v;
        o->cap = cap;
    }
    bool three = o->code == AGG_AVG || o->code == AGG_STDDEV || o->code == AGG_STDVAR;
    double *columns;
    TRY(exec_columns(x, three ? 3 : 2, o->op.n, &columns));
    struct agg_group *g = &o->groups[n - 1];
    *g = (struct agg_group){.a = columns, .b = columns + o->op.n, .c = three ? columns + 2 * (size_t)o->op.n : NULL};
    column_clear(g->a, o->op.n);
    if (o->code == AGG_AVG) g->means = arena_zalloc(x->arena, o->op.n + 1);
    return NULL;
}

/* ---- floats ------------------------------------------------------------------------------------------ */

static void fold_sum(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(v[i])) continue;
        if (is_stale_nan(g->a[i])) {
            g->a[i] = v[i];
            g->b[i] = 0;
            continue;
        }
        struct kahan k = {g->a[i], g->b[i]};
        kahan_add(&k, v[i]);
        g->a[i] = k.sum;
        g->b[i] = k.c;
    }
}

/* One more term of a mean: summed up as long as the sum does not overflow. */
static void fold_mean(struct agg_group *g, uint32_t i, double x)
{
    double count = ++g->c[i];
    struct kahan k = {g->a[i], g->b[i]};
    if (!g->means[i]) {
        kahan_add(&k, x);
        if (!isinf(k.sum)) {
            g->a[i] = k.sum;
            g->b[i] = k.c;
            return;
        }
        g->means[i] = true;
        k = (struct kahan){g->a[i] / (count - 1), g->b[i] / (count - 1)};
    }
    double q = (count - 1) / count;
    k.sum *= q;
    k.c *= q;
    kahan_add(&k, x / count);
    g->a[i] = k.sum;
    g->b[i] = k.c;
}

static void fold_avg(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(v[i])) continue;
        if (!is_stale_nan(g->a[i])) {
            fold_mean(g, i, v[i]);
            continue;
        }
        g->a[i] = v[i];
        g->b[i] = 0;
        g->c[i] = 1;
    }
}

static void fold_min(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) /* "no sample" is a NaN, too */
        if (!is_stale_nan(v[i]) && (g->a[i] > v[i] || isnan(g->a[i]))) g->a[i] = v[i];
}

static void fold_max(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_stale_nan(v[i]) && (g->a[i] < v[i] || isnan(g->a[i]))) g->a[i] = v[i];
}

static void fold_count(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_stale_nan(v[i])) g->a[i] = is_stale_nan(g->a[i]) ? 1 : g->a[i] + 1;
}

static void fold_group(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_stale_nan(v[i])) g->a[i] = 1;
}

static void fold_variance(struct agg_group *g, const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(v[i])) continue;
        if (is_stale_nan(g->a[i])) {
            g->a[i] = isfinite(v[i]) ? 0 : NAN;
            g->b[i] = v[i];
            g->c[i] = 1;
            continue;
        }
        g->c[i]++;
        double delta = v[i] - g->b[i];
        g->b[i] += delta / g->c[i];
        g->a[i] += delta * (v[i] - g->b[i]);
    }
}

static void fold_floats(enum aggregate_op code, struct agg_group *g, const double *v, uint32_t n)
{
    switch (code) {
    case AGG_SUM:
        fold_sum(g, v, n);
        break;
    case AGG_AVG:
        fold_avg(g, v, n);
        break;
    case AGG_MIN:
        fold_min(g, v, n);
        break;
    case AGG_MAX:
        fold_max(g, v, n);
        break;
    case AGG_COUNT:
        fold_count(g, v, n);
        break;
    case AGG_GROUP:
        fold_group(g, v, n);
        break;
    default:
        fold_variance(g, v, n);
    }
}

/* ---- histograms -------------------------------------------------------------------------------------- */

static uint32_t vector_start(const struct op_aggregate *o)
{
    return o->op.node->kids[0]->expr->start;
}

static err fold_hist(struct op_aggregate *o, struct hist_sum *sum, struct row *row, const struct hist *h)
{
    bool before = sum->incompatible;
    sum->mean = o->code == AGG_AVG;
    hist_sum_add(sum, h, o->op.x->arena);
    if (!sum->incompatible || before) return NULL;
    str name;
    TRY(row_name(row, &name));
    note_mixed_schemas(o->op.x->notes, vector_start(o), name);
    return NULL;
}

static err fold_hists(struct op_aggregate *o, struct agg_group *g, struct row *row)
{
    static const char *const NAMES[] = {
        [AGG_MIN] = "min", [AGG_MAX] = "max", [AGG_STDDEV] = "stddev", [AGG_STDVAR] = "stdvar"};
    bool adds = o->code == AGG_SUM || o->code == AGG_AVG;
    size_t before = o->op.x->arena->bytes;
    for (uint32_t i = 0; i < o->op.n; i++) {
        if (!row->h[i]) continue;
        if (o->code == AGG_COUNT || o->code == AGG_GROUP) {
            bool more = o->code == AGG_COUNT && !is_stale_nan(g->a[i]);
            g->a[i] = more ? g->a[i] + 1 : 1;
        } else if (adds) {
            if (!g->hists) g->hists = arena_zalloc(o->op.x->arena, (o->op.n + 1) * sizeof *g->hists);
            TRY(fold_hist(o, &g->hists[i], row, row->h[i]));
        } else {
            note_ignored_in_aggregation(o->op.x->notes, vector_start(o), NAMES[o->code]);
        }
    }
    return budget_hold(o->op.x->budget, 0, o->op.x->arena->bytes - before);
}

/* ---- folding and yielding ------------------------------------------------------------------------------ */

static err fold_all(struct op_aggregate *o)
{
    struct row row;
    bool more, added;
    size_t number;
    for (;;) {
        TRY(op_next(o->vector, &row, &more));
        if (!more) return NULL;
        TRY(grouping_find(&o->grouping, &row, &number, &added));
        if (added) TRY(add_group(o));
        struct agg_group *g = &o->groups[number];
        if (row.drop_name && !g->drop_name) g->drop_name = row_any(&row, o->op.n);
        fold_floats(o->code, g, row.v, o->op.n);
        if (row.h) TRY(fold_hists(o, g, &row));
    }
}

/* From state to value. */
static void finish_floats(enum aggregate_op code, struct agg_group *g, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(g->a[i])) continue;
        if (code == AGG_SUM) g->a[i] += g->b[i];
        if (code == AGG_AVG) g->a[i] = g->means[i] ? g->a[i] + g->b[i] : g->a[i] / g->c[i] + g->b[i] / g->c[i];
        if (code == AGG_STDVAR) g->a[i] /= g->c[i];
        if (code == AGG_STDDEV) g->a[i] = sqrt(g->a[i] / g->c[i]);
    }
}

/* A step that saw both kinds has no value. */
static void finish_hists(struct op_aggregate *o, struct agg_group *g)
{
    struct notes *notes = o->op.x->notes;
    for (uint32_t i = 0; i < o->op.n; i++) {
        struct hist_sum *sum = &g->hists[i];
        o->h[i] = NULL;
        if (!sum->sum) continue;
        if (!is_stale_nan(g->a[i])) {
            notes_add(notes, NOTE_WARNING, vector_start(o),
                      "encountered a mix of histograms and floats for aggregation");
            g->a[i] = no_sample();
            continue;
        }
        if (sum->reconciled) note_bounds_reconciled(notes, vector_start(o), "aggregation");
        if (sum->incompatible) continue;
        if (sum->reset && sum->no_reset) note_reset_collision(notes, vector_start(o), "aggregation");
        o->h[i] = hist_sum_take(sum, o->op.x->arena);
        hist_compact(o->h[i], o->op.x->arena);
    }
}

static err aggregate_next(struct op *op, struct row *row, bool *more)
{
    struct op_aggregate *o = (struct op_aggregate *)op;
    if (!o->folded) TRY(fold_all(o));
    o->folded = true;
    *more = o->at < o->grouping.n;
    if (!*more) return NULL;
    struct agg_group *g = &o->groups[o->at];
    finish_floats(o->code, g, op->n);
    *row = (struct row){.v = g->a, .drop_name = g->drop_name, .resolved = true, .labels = o->grouping.labels[o->at++]};
    if (!g->hists) return NULL;
    if (!o->h) TRY(exec_hist_column(op->x, op->n, &o->h));
    finish_hists(o, g);
    row->h = o->h;
    return NULL;
}

err op_aggregate_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_aggregate *o = op_new(x, node, sizeof *o, aggregate_next, aggregate_close);
    *out = &o->op;
    o->code = node->expr->aggregate.op;
    grouping_init(&o->grouping, x, node->expr, (str){0});
    return exec_open(x, node->kids[0], &o->vector);
}
