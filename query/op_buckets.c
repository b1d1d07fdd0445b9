/*
 * op_buckets.c: histogram_quantile, histogram_quantiles, histogram_fraction.
 *
 * Classic histograms arrive as one row per bucket, told apart by the le label; native ones as
 * histogram samples. Rows are collected into groups of equal labels but for le; then each group yields
 * one row, or one per quantile. Where a group has both kinds at a step, neither counts.
 */
#include "query/exec.h"

#include <math.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/num.h"

#define LE STR("le")

struct bucket_column {
    double le;
    double *v;
};

struct bucket_group {
    struct labels labels;          /* without le */
    struct bucket_column *columns; /* heap */
    size_t n, cap;
    struct hist **natives; /* NULL if there is none */
};

struct op_buckets {
    struct op op;
    struct op *vector;
    const struct plan_node *vector_node;
    const struct plan_node **params; /* the scalars: quantiles, or the bounds of a fraction */
    const double **values;           /* their columns */
    uint32_t n_params;
    str label; /* histogram_quantiles: the label that gets the quantile */
    bool fraction;
    struct map numbers;          /* labels without le → group */
    struct bucket_group *groups; /* heap */
    size_t n_groups, cap;
    bool collected;
    size_t at; /* next group */
    uint32_t at_param;
    struct classic_bucket *buckets; /* scratch of one step, heap */
    size_t buckets_cap;
    double *v;
};

static void buckets_close(struct op *op)
{
    struct op_buckets *o = (struct op_buckets *)op;
    for (size_t i = 0; i < o->n_groups; i++)
        mem_free(o->groups[i].columns);
    mem_free(o->groups);
    mem_free(o->buckets);
    map_deinit(&o->numbers);
}

/* ---- collecting -------------------------------------------------------------------------------------------- */

static struct bucket_group *group_of(struct op_buckets *o, const struct labels *ls)
{
    struct label_key all = {.hash = o->op.x->hash, .except = true};
    bool added;
    uint64_t number = *map_put(&o->numbers, label_key_hash(&all, ls), o->n_groups, &added);
    if (added) {
        if (o->n_groups == o->cap) o->groups = mem_grow(o->groups, &o->cap, o->n_groups + 1, sizeof *o->groups);
        o->groups[o->n_groups++] = (struct bucket_group){.labels = labels_keep(ls, o->op.x->arena)};
    }
    return &o->groups[number];
}

static err add_bucket(struct op_buckets *o, struct row *row)
{
    str le = labels_get(&row->labels, LE);
    double bound;
    if (!num_parse_double(le, &bound) || isnan(bound)) {
        str name = labels_get(&row->labels, LABEL_NAME);
        notes_add(o->op.x->notes, NOTE_WARNING, o->vector_node->expr->start,
                  "bucket label \"le\" is missing or has a malformed value of \"%.*s\" for metric name \"%.*s\"",
                  STR_ARG(le), STR_ARG(name));
        return NULL;
    }
    struct labels ls = labels_set(&row->labels, LE, (str){0}, &o->op.scratch);
    struct bucket_group *g = group_of(o, &ls);
    if (g->n == g->cap) g->columns = mem_grow(g->columns, &g->cap, g->n + 1, sizeof *g->columns);
    struct bucket_column *c = &g->columns[g->n++];
    c->le = bound;
    TRY(exec_columns(o->op.x, 1, o->op.n, &c->v));
    memcpy(c->v, row->v, o->op.n * sizeof *c->v);
    return NULL;
}

static err add_natives(struct op_buckets *o, struct row *row)
{
    struct bucket_group *g = group_of(o, &row->labels);
    if (!g->natives) TRY(exec_hist_column(o->op.x, o->op.n, &g->natives));
    size_t before = o->op.x->arena->bytes;
    for (uint32_t i = 0; i < o->op.n; i++)
        if (row->h[i]) g->natives[i] = hist_copy(o->op.x->arena, row->h[i]);
    return budget_hold(o->op.x->budget, 0, o->op.x->arena->bytes - before);
}

static int compare_columns(const void *a, const void *b)
{
    double x = ((const struct bucket_column *)a)->le, y = ((const struct bucket_column *)b)->le;
    return (x > y) - (x < y);
}

static err collect(struct op_buckets *o)
{
    struct row row;
    bool more;
    for (;;) {
        TRY(op_next(o->vector, &row, &more));
        if (!more) break;
        TRY(row_resolve(&row));
        arena_reset(&o->op.scratch);
        bool floats = false, hists = false;
        for (uint32_t i = 0; i < o->op.n; i++) {
            floats = floats || !is_stale_nan(row.v[i]);
            hists = hists || row_has_hist(&row, i);
        }
        if (floats) TRY(add_bucket(o, &row));
        if (hists) TRY(add_natives(o, &row));
    }
    for (size_t i = 0; i < o->n_groups; i++) /* so that no step needs to sort */
        if (o->groups[i].n > 1)
            qsort(o->groups[i].columns, o->groups[i].n, sizeof *o->groups[i].columns, compare_columns);
    return NULL;
}

/* ---- values ------------------------------------------------------------------------------------------------- */

static void note_nan(struct op_buckets *o, const struct bucket_group *g, enum hist_nan_note note)
{
    static const char *const TEXTS[] = {
        [HIST_NAN_RESULT] = "input to histogram_quantile has NaN observations, result is NaN",
        [HIST_NAN_SKEW] = "input to histogram_quantile has NaN observations, result is skewed higher",
        [HIST_NAN_FRACTION] =
            "input to histogram_fraction has NaN observations, which are excluded from all fractions"};
    str name = labels_get(&g->labels, LABEL_NAME);
    if (note != HIST_NAN_NONE)
        notes_add(o->op.x->notes, NOTE_INFO, o->params[0]->expr->start, "%s for metric name \"%.*s\"", TEXTS[note],
                  STR_ARG(name));
}

static double native_value(struct op_buckets *o, const struct bucket_group *g, uint32_t i)
{
    enum hist_nan_note note;
    double v = o->fraction ? hist_fraction(g->natives[i], o->values[0][i], o->values[1][i], &o->op.scratch, &note)
                           : hist_quantile(g->natives[i], o->values[o->at_param][i], &o->op.scratch, &note);
    note_nan(o, g, note);
    return v;
}

static double classic_value(struct op_buckets *o, const struct bucket_group *g, size_t n, uint32_t i)
{
    if (o->fraction) return classic_fraction(o->values[0][i], o->values[1][i], o->buckets, n);
    struct classic_fix fix;
    double v = classic_quantile(o->values[o->at_param][i], o->buckets, n, &fix);
    if (fix.forced) {
        str name = labels_get(&g->labels, LABEL_NAME);
        notes_add(o->op.x->notes, NOTE_INFO, o->vector_node->expr->start,
                  "input to histogram_quantile needed to be fixed for monotonicity, from buckets %g to %g, with a max "
                  "diff of %g, for metric name \"%.*s\"",
                  fix.low, fix.high, fix.diff, STR_ARG(name));
    }
    return v;
}

static double value_at(struct op_buckets *o, const struct bucket_group *g, uint32_t i)
{
    size_t n = 0;
    for (size_t k = 0; k < g->n; k++)
        if (!is_stale_nan(g->columns[k].v[i]))
            o->buckets[n++] = (struct classic_bucket){g->columns[k].le, g->columns[k].v[i]};
    bool native = g->natives && g->natives[i];
    if (native && n > 0) {
        str name = labels_get(&g->labels, LABEL_NAME);
        notes_add(o->op.x->notes, NOTE_WARNING, o->vector_node->expr->start,
                  "vector contains a mix of classic and native histograms for metric name \"%.*s\"", STR_ARG(name));
        return no_sample();
    }
    if (native) return native_value(o, g, i);
    return n > 0 ? classic_value(o, g, n, i) : no_sample();
}

/* A quantile as a label value: 0.5, 1.0, 1e-05. */
static str quantile_text(double q, struct arena *a)
{
    char *text = arena_alloc(a, NUM_DOUBLE_MAX + 2);
    size_t n = num_format_double_short(q, text);
    bool whole = true;
    for (size_t i = 0; i < n; i++)
        whole = whole && (text[i] == '-' || (text[i] >= '0' && text[i] <= '9'));
    if (whole) {
        text[n++] = '.';
        text[n++] = '0';
    }
    return (str){text, n};
}

static err buckets_next(struct op *op, struct row *row, bool *more)
{
    struct op_buckets *o = (struct op_buckets *)op;
    if (!o->collected) TRY(collect(o));
    o->collected = true;
    *more = o->at < o->n_groups;
    if (!*more) return NULL;
    TRY(budget_tick(op->x->budget, 0));
    struct bucket_group *g = &o->groups[o->at];
    arena_reset(&op->scratch);
    if (g->n > o->buckets_cap) o->buckets = mem_grow(o->buckets, &o->buckets_cap, g->n, sizeof *o->buckets);
    for (uint32_t i = 0; i < op->n; i++) {
        struct arena_mark mark = arena_mark(&op->scratch);
        o->v[i] = value_at(o, g, i);
        arena_rewind(&op->scratch, mark);
    }
    *row = (struct row){.v = o->v, .drop_name = true, .resolved = true, .labels = g->labels};
    if (o->label.n)
        row->labels =
            labels_set(&g->labels, o->label, quantile_text(o->values[o->at_param][0], &op->scratch), &op->scratch);
    if (o->fraction || ++o->at_param == o->n_params) {
        o->at_param = 0;
        o->at++;
    }
    return NULL;
}

/* ---- opening -------------------------------------------------------------------------------------------------- */

static void check_quantiles(struct op_buckets *o)
{
    for (uint32_t k = 0; !o->fraction && k < o->n_params; k++)
        for (uint32_t i = 0; i < o->op.n; i++)
            if (!(o->values[k][i] >= 0 && o->values[k][i] <= 1))
                note_bad_quantile(o->op.x->notes, o->params[k]->expr->start, o->values[k][i]);
}

err op_buckets_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_buckets *o = op_new(x, node, sizeof *o, buckets_next, buckets_close);
    *out = &o->op;
    o->fraction = node->fn->code == SPECIAL_HISTOGRAM_FRACTION;
    o->params = arena_alloc(x->arena, (node->n_kids + 1) * sizeof(struct plan_node *));
    o->values = arena_alloc(x->arena, (node->n_kids + 1) * sizeof(double *));
    for (uint32_t i = 0; i < node->n_kids; i++) {
        const struct plan_node *kid = node->kids[i];
        if (kid->type == TYPE_VECTOR)
            o->vector_node = kid;
        else if (kid->type == TYPE_STRING)
            o->label = kid->string;
        else
            o->params[o->n_params++] = kid;
    }
    for (uint32_t i = 0; i < o->n_params; i++) {
        double *column;
        TRY(exec_column(x, o->params[i], &column));
        o->values[i] = column;
    }
    check_quantiles(o);
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    return exec_open(x, o->vector_node, &o->vector);
}
