/*
 * op_aggregate.c: sum, avg, min, max, count, group, stddev, stdvar, folded while rows stream by.
 *
 * A group holds a few columns of steps, whatever the number of series; rows are folded and forgotten.
 * Terms come in the order of the series, compensated as Prometheus does (Neumaier), so sums agree with
 * it but for what the order of series decides. Histograms: sum and avg add them up, count and group
 * count them, the others say that they are ignored.
 *
 * The vector of an aggregation over many series is folded in slices, each on a thread, whose groups are joined in the
 * order of the slices (slices.h). With histograms among the rows one thread folds all.
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
#include "query/slices.h"

struct agg_group {
    double *a, *b, *c;
    bool *means;
    struct hist_sum *hists; /* one a step; NULL until the first histogram comes */
    bool drop_name;
};

/* Rows folded into groups: those of the whole vector, or of one slice of it. */
struct fold {
    struct exec *x;
    const struct plan_node *node; /* the aggregation */
    enum aggregate_op code;
    uint32_t n; /* steps */
    struct grouping grouping;
    struct agg_group *groups; /* arena of x */
    size_t cap;
    atomic_bool *give_up; /* NULL, or: set when a histogram came */
};

struct op_aggregate {
    struct op op;
    struct fold fold;
    bool folded;
    size_t at;       /* next group to yield */
    struct hist **h; /* column of the row to yield */
};

static void aggregate_close(struct op *op)
{
    grouping_deinit(&((struct op_aggregate *)op)->fold.grouping);
}

static void fold_init(struct fold *f, struct exec *x, const struct plan_node *node)
{
    *f = (struct fold){.x = x, .node = node, .code = node->expr->aggregate.op, .n = node->grid.n};
    grouping_init(&f->grouping, x, node->expr, (str){0});
}

static err add_group(struct fold *f)
{
    size_t n = f->grouping.n; /* the new one is counted already */
    struct exec *x = f->x;
    if (n > f->cap) {
        size_t cap = f->cap ? f->cap * 2 : 16;
        struct agg_group *v = arena_alloc(x->arena, cap * sizeof *v);
        if (f->cap) memcpy(v, f->groups, f->cap * sizeof *v);
        f->groups = v;
        f->cap = cap;
    }
    bool three = f->code == AGG_AVG || f->code == AGG_STDDEV || f->code == AGG_STDVAR;
    double *columns;
    TRY(exec_columns(x, three ? 3 : 2, f->n, &columns));
    struct agg_group *g = &f->groups[n - 1];
    *g = (struct agg_group){.a = columns, .b = columns + f->n, .c = three ? columns + 2 * (size_t)f->n : NULL};
    column_clear(g->a, f->n);
    if (f->code == AGG_AVG) g->means = arena_zalloc(x->arena, f->n + 1);
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

static uint32_t vector_start(const struct plan_node *aggregation)
{
    return aggregation->kids[0]->expr->start;
}

static err fold_hist(struct fold *f, struct hist_sum *sum, struct row *row, const struct hist *h)
{
    bool before = sum->incompatible;
    sum->mean = f->code == AGG_AVG;
    hist_sum_add(sum, h, f->x->arena);
    if (!sum->incompatible || before) return NULL;
    str name;
    TRY(row_name(row, &name));
    note_mixed_schemas(f->x->notes, vector_start(f->node), name);
    return NULL;
}

static err fold_hists(struct fold *f, struct agg_group *g, struct row *row)
{
    static const char *const NAMES[] = {
        [AGG_MIN] = "min", [AGG_MAX] = "max", [AGG_STDDEV] = "stddev", [AGG_STDVAR] = "stdvar"};
    bool adds = f->code == AGG_SUM || f->code == AGG_AVG;
    size_t before = f->x->arena->bytes;
    for (uint32_t i = 0; i < f->n; i++) {
        if (!row->h[i]) continue;
        if (f->code == AGG_COUNT || f->code == AGG_GROUP) {
            bool more = f->code == AGG_COUNT && !is_stale_nan(g->a[i]);
            g->a[i] = more ? g->a[i] + 1 : 1;
        } else if (adds) {
            if (!g->hists) g->hists = arena_zalloc(f->x->arena, (f->n + 1) * sizeof *g->hists);
            TRY(fold_hist(f, &g->hists[i], row, row->h[i]));
        } else {
            note_ignored_in_aggregation(f->x->notes, vector_start(f->node), NAMES[f->code]);
        }
    }
    return budget_hold(f->x->budget, 0, f->x->arena->bytes - before);
}

/* ---- folding ------------------------------------------------------------------------------------------- */

static err fold_rows(struct fold *f, struct op *vector)
{
    struct row row;
    bool more, added;
    size_t number;
    for (;;) {
        TRY(op_next(vector, &row, &more));
        if (!more) return NULL;
        if (f->give_up && row.h) {
            atomic_store(f->give_up, true);
            return NULL;
        }
        TRY(grouping_find(&f->grouping, &row, &number, &added));
        if (added) TRY(add_group(f));
        struct agg_group *g = &f->groups[number];
        if (row.drop_name && !g->drop_name) g->drop_name = row_any(&row, f->n);
        fold_floats(f->code, g, row.v, f->n);
        if (row.h) TRY(fold_hists(f, g, &row));
    }
}

/* ---- in slices ----------------------------------------------------------------------------------------- */

struct sliced {
    struct fold *folds; /* one a slice */
    const struct plan_node *node;
    atomic_bool hists;
};

static err fold_slice(void *arg, unsigned i, struct op *vector)
{
    struct sliced *s = arg;
    struct fold *f = &s->folds[i];
    fold_init(f, vector->x, s->node);
    f->give_up = &s->hists;
    return fold_rows(f, vector);
}

static void join_sums(struct agg_group *to, const struct agg_group *from, uint32_t i)
{
    struct kahan k = {to->a[i], to->b[i]};
    kahan_add(&k, from->a[i]);
    to->a[i] = k.sum;
    to->b[i] = k.c + from->b[i];
}

/* The mean of all from the means of both, weighted: sums of either may have been too large for a double. */
static void join_means(struct agg_group *to, const struct agg_group *from, uint32_t i)
{
    double count = to->c[i] + from->c[i], sum = to->a[i] + from->a[i];
    if (!to->means[i] && !from->means[i] && !isinf(sum)) {
        join_sums(to, from, i);
    } else {
        double x = to->means[i] ? to->a[i] + to->b[i] : to->a[i] / to->c[i] + to->b[i] / to->c[i];
        double y = from->means[i] ? from->a[i] + from->b[i] : from->a[i] / from->c[i] + from->b[i] / from->c[i];
        to->a[i] = x * (to->c[i] / count) + y * (from->c[i] / count);
        to->b[i] = 0;
        to->means[i] = true;
    }
    to->c[i] = count;
}

/* Source: Chan, Golub, LeVeque, "Updating Formulae and a Pairwise Algorithm for Computing Sample Variances" (1979). */
static void join_variances(struct agg_group *to, const struct agg_group *from, uint32_t i)
{
    double count = to->c[i] + from->c[i], delta = from->b[i] - to->b[i];
    to->a[i] += from->a[i] + delta * delta * (to->c[i] * from->c[i] / count);
    to->b[i] += delta * (from->c[i] / count);
    to->c[i] = count;
}

static void join_step(enum aggregate_op code, struct agg_group *to, const struct agg_group *from, uint32_t i)
{
    switch (code) {
    case AGG_SUM:
        join_sums(to, from, i);
        break;
    case AGG_AVG:
        join_means(to, from, i);
        break;
    case AGG_STDDEV:
    case AGG_STDVAR:
        join_variances(to, from, i);
        break;
    case AGG_COUNT:
        to->a[i] += from->a[i];
        break;
    default:
        break;
    }
}

/* Folds `from`, of later series, into `to`. */
static void join_groups(enum aggregate_op code, struct agg_group *to, const struct agg_group *from, uint32_t n)
{
    to->drop_name |= from->drop_name;
    if (code == AGG_MIN || code == AGG_MAX || code == AGG_GROUP) {
        fold_floats(code, to, from->a, n);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(from->a[i])) continue;
        if (!is_stale_nan(to->a[i])) {
            join_step(code, to, from, i);
            continue;
        }
        to->a[i] = from->a[i];
        to->b[i] = from->b[i];
        if (to->c) to->c[i] = from->c[i];
        if (to->means) to->means[i] = from->means[i];
    }
}

static err join_folds(struct fold *to, const struct fold *from)
{
    for (size_t i = 0; i < from->grouping.n; i++) {
        bool added;
        size_t number = grouping_of(&to->grouping, &from->grouping.labels[i], &added);
        if (added) TRY(add_group(to));
        join_groups(to->code, &to->groups[number], &from->groups[i], to->n);
    }
    return NULL;
}

/* *done false: a histogram came, and their sums are not made of parts. */
static err fold_sliced(struct fold *f, unsigned n_slices, bool *done)
{
    const struct plan_node *vector = f->node->kids[0];
    struct sliced s = {.folds = arena_zalloc(f->x->arena, n_slices * sizeof *s.folds), .node = f->node};
    err e = slices_run(f->x, vector, n_slices, fold_slice, &s);
    *done = !atomic_load(&s.hists);
    for (unsigned i = 0; i < n_slices; i++) {
        if (e == NULL && *done) e = join_folds(f, &s.folds[i]);
        grouping_deinit(&s.folds[i].grouping);
    }
    return e;
}

static err fold_all(struct fold *f)
{
    unsigned n_slices;
    bool done = false;
    TRY(slices_worth(f->x, f->node->kids[0], &n_slices));
    if (n_slices > 1) TRY(fold_sliced(f, n_slices, &done));
    if (done) return NULL;
    struct op *vector;
    TRY(exec_open(f->x, f->node->kids[0], &vector));
    return fold_rows(f, vector);
}

/* ---- yielding ------------------------------------------------------------------------------------------ */
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
    uint32_t at = vector_start(o->op.node);
    for (uint32_t i = 0; i < o->op.n; i++) {
        struct hist_sum *sum = &g->hists[i];
        o->h[i] = NULL;
        if (!sum->sum) continue;
        if (!is_stale_nan(g->a[i])) {
            notes_add(notes, NOTE_WARNING, at, "encountered a mix of histograms and floats for aggregation");
            g->a[i] = no_sample();
            continue;
        }
        if (sum->reconciled) note_bounds_reconciled(notes, at, "aggregation");
        if (sum->incompatible) continue;
        if (sum->reset && sum->no_reset) note_reset_collision(notes, at, "aggregation");
        o->h[i] = hist_sum_take(sum, o->op.x->arena);
        hist_compact(o->h[i], o->op.x->arena);
    }
}

static err aggregate_next(struct op *op, struct row *row, bool *more)
{
    struct op_aggregate *o = (struct op_aggregate *)op;
    struct fold *f = &o->fold;
    if (!o->folded) TRY(fold_all(f));
    o->folded = true;
    *more = o->at < f->grouping.n;
    if (!*more) return NULL;
    struct agg_group *g = &f->groups[o->at];
    finish_floats(f->code, g, op->n);
    *row = (struct row){.v = g->a, .drop_name = g->drop_name, .resolved = true, .labels = f->grouping.labels[o->at++]};
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
    fold_init(&o->fold, x, node);
    return NULL;
}
