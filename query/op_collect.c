/*
 * op_collect.c: aggregations that need all values of a group at once: quantile and count_values.
 *
 * quantile holds the columns of each group's rows (counted against the budget) and sorts step by step.
 * count_values makes one row per group and value text; equal values in a row, the common case, are
 * formatted once.
 */
#include "query/group.h"

#include <math.h>
#include <stdlib.h>

#include "query/quantile.h"
#include "query/rollup.h"
#include "storage/base/alloc.h"
#include "storage/base/num.h"

/* ---- quantile ------------------------------------------------------------------------------------------ */

struct value_group {
    double **columns; /* query arena */
    size_t n, cap;
    bool drop_name;
};

struct op_quantile {
    struct op op;
    struct op *vector;
    const double *q;
    struct grouping grouping;
    struct value_group *groups; /* heap */
    size_t cap;
    bool collected;
    size_t at;
    double *v;
};

static void quantile_close(struct op *op)
{
    struct op_quantile *o = (struct op_quantile *)op;
    grouping_deinit(&o->grouping);
    for (size_t i = 0; i < o->cap; i++)
        mem_free(o->groups[i].columns);
    mem_free(o->groups);
}

static err collect_row(struct op_quantile *o, struct value_group *g, struct row *row)
{
    if (row->drop_name) g->drop_name = true;
    for (uint32_t i = 0; row->h && i < o->op.n; i++)
        if (row->h[i]) note_ignored_in_aggregation(o->op.x->notes, o->op.node->kids[0]->expr->start, "quantile");
    if (g->n == g->cap) g->columns = mem_grow(g->columns, &g->cap, g->n + 1, sizeof *g->columns);
    TRY(exec_columns(o->op.x, 1, o->op.n, &g->columns[g->n]));
    memcpy(g->columns[g->n++], row->v, o->op.n * sizeof *row->v);
    return NULL;
}

static err collect_all(struct op_quantile *o)
{
    struct row row;
    bool more, added;
    size_t number;
    for (;;) {
        TRY(op_next(o->vector, &row, &more));
        if (!more) return NULL;
        if (!row_any(&row, o->op.n)) continue;
        TRY(grouping_find(&o->grouping, &row, &number, &added));
        if (number >= o->cap) {
            size_t old = o->cap;
            o->groups = mem_grow(o->groups, &o->cap, number + 1, sizeof *o->groups);
            memset(o->groups + old, 0, (o->cap - old) * sizeof *o->groups);
        }
        TRY(collect_row(o, &o->groups[number], &row));
    }
}

static void quantile_group(struct op_quantile *o, const struct value_group *g)
{
    double *values = mem_alloc((g->n + 1) * sizeof *values);
    for (uint32_t i = 0; i < o->op.n; i++) {
        size_t n = 0;
        for (size_t k = 0; k < g->n; k++)
            if (!is_stale_nan(g->columns[k][i])) values[n++] = g->columns[k][i];
        o->v[i] = n ? quantile_select(o->q[i], values, n) : no_sample();
    }
    mem_free(values);
}

static err quantile_next(struct op *op, struct row *row, bool *more)
{
    struct op_quantile *o = (struct op_quantile *)op;
    if (!o->collected) TRY(collect_all(o));
    o->collected = true;
    *more = o->at < o->grouping.n;
    if (!*more) return NULL;
    TRY(budget_check(op->x->budget));
    quantile_group(o, &o->groups[o->at]);
    *row = (struct row){
        .v = o->v, .drop_name = o->groups[o->at].drop_name, .resolved = true, .labels = o->grouping.labels[o->at]};
    o->at++;
    return NULL;
}

err op_quantile_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_quantile *o = op_new(x, node, sizeof *o, quantile_next, quantile_close);
    *out = &o->op;
    grouping_init(&o->grouping, x, node->expr, (str){0});
    double *q;
    TRY(exec_column(x, node->kids[1], &q));
    o->q = q;
    for (uint32_t i = 0; i < o->op.n; i++)
        if (!(q[i] >= 0 && q[i] <= 1)) note_bad_quantile(x->notes, node->kids[1]->expr->start, q[i]);
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    return exec_open(x, node->kids[0], &o->vector);
}

/* ---- count_values ----------------------------------------------------------------------------------------- */

struct op_count_values {
    struct op op;
    struct op *vector;
    str label;
    struct grouping grouping;
    double **counts; /* one column a group; heap array, columns in the query's arena */
    size_t cap;
    bool counted;
    size_t at;
};

static void count_values_close(struct op *op)
{
    struct op_count_values *o = (struct op_count_values *)op;
    grouping_deinit(&o->grouping);
    mem_free(o->counts);
}

/* The group of a row's value at one step. */
static err value_group(struct op_count_values *o, const struct row *row, uint32_t i, size_t *number)
{
    char text[NUM_DOUBLE_MAX];
    struct buf hist = {0};
    str value = {text, 0};
    struct arena *a = &o->op.scratch;
    struct arena_mark mark = arena_mark(a);
    if (row_has_hist(row, i)) {
        hist_print(row->h[i], &hist, a);
        value = buf_as_str(&hist);
    } else {
        value.n = num_format_double(row->v[i], text);
    }
    struct labels ls = labels_set(&row->labels, o->label, value, a);
    bool added;
    *number = grouping_of(&o->grouping, &ls, &added);
    buf_deinit(&hist);
    arena_rewind(a, mark);
    if (!added) return NULL;
    if (*number >= o->cap) o->counts = mem_grow(o->counts, &o->cap, *number + 1, sizeof *o->counts);
    TRY(exec_columns(o->op.x, 1, o->op.n, &o->counts[*number]));
    column_clear(o->counts[*number], o->op.n);
    return NULL;
}

static err count_row(struct op_count_values *o, struct row *row)
{
    TRY(row_resolve(row));
    size_t number = SIZE_MAX;
    double last = 0;
    for (uint32_t i = 0; i < o->op.n; i++) {
        if (!row_has(row, i)) continue;
        bool hist = row_has_hist(row, i);
        if (number == SIZE_MAX || hist || f64_bits(row->v[i]) != f64_bits(last)) TRY(value_group(o, row, i, &number));
        last = row->v[i];
        double *count = &o->counts[number][i];
        *count = is_stale_nan(*count) ? 1 : *count + 1;
        if (hist) number = SIZE_MAX;
    }
    return NULL;
}

static err count_all(struct op_count_values *o)
{
    struct row row;
    bool more;
    for (;;) {
        TRY(op_next(o->vector, &row, &more));
        if (!more) return NULL;
        if (row_any(&row, o->op.n)) TRY(count_row(o, &row));
    }
}

static err count_values_next(struct op *op, struct row *row, bool *more)
{
    struct op_count_values *o = (struct op_count_values *)op;
    if (!o->counted) TRY(count_all(o));
    o->counted = true;
    *more = o->at < o->grouping.n;
    if (!*more) return NULL;
    *row = (struct row){.v = o->counts[o->at], .resolved = true, .labels = o->grouping.labels[o->at]};
    o->at++;
    return NULL;
}

err op_count_values_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_count_values *o = op_new(x, node, sizeof *o, count_values_next, count_values_close);
    *out = &o->op;
    o->label = node->kids[1]->string;
    grouping_init(&o->grouping, x, node->expr, o->label);
    if (o->label.n == 0 || !utf8_valid(o->label))
        return err_new(ERR_EXECUTION, "invalid label name \"%.*s\" in count_values()", STR_ARG(o->label));
    return exec_open(x, node->kids[0], &o->vector);
}
