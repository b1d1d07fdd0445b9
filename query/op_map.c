/*
 * op_map.c: functions of one value over a vector (FN_MAP, FN_DATE) and unary minus.
 *
 * Rows pass through and are changed in place; scalar parameters are evaluated once, when the operator
 * is opened. A date function without argument is a row of its own: the steps' times.
 */
#include "query/exec.h"
#include "query/mapfn.h"

struct op_map {
    struct op op;
    struct op *vector; /* NULL: date function without argument */
    const double *param[2];
    bool done;
    double *v;
    struct hist **h;
};

static void hist_values(struct op_map *o, struct row *row, enum map_code code)
{
    for (uint32_t i = 0; i < o->op.n; i++)
        row->v[i] = row_has_hist(row, i) ? mapfn_hist(code, row->h[i], &o->op.scratch) : no_sample();
}

static err map_next(struct op *op, struct row *row, bool *more)
{
    struct op_map *o = (struct op_map *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    enum map_code code = (enum map_code)op->node->fn->code;
    arena_reset(&op->scratch);
    if (mapfn_takes_hists(code))
        hist_values(o, row, code);
    else
        mapfn_floats(code, row->v, op->n, o->param);
    row->h = NULL;
    row->drop_name = true;
    return NULL;
}

static err date_next(struct op *op, struct row *row, bool *more)
{
    struct op_map *o = (struct op_map *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    for (uint32_t i = 0; i < op->n; i++)
        if (!is_stale_nan(row->v[i])) row->v[i] = datefn((enum date_code)op->node->fn->code, row->v[i]);
    row->h = NULL;
    row->drop_name = true;
    return NULL;
}

static err step_date_next(struct op *op, struct row *row, bool *more)
{
    struct op_map *o = (struct op_map *)op;
    *more = !o->done;
    if (o->done) return NULL;
    o->done = true;
    TRY(exec_columns(op->x, 1, op->n, &o->v));
    for (uint32_t i = 0; i < op->n; i++) {
        int64_t ms = grid_time(&op->node->grid, i);
        o->v[i] = datefn((enum date_code)op->node->fn->code, (double)(ms / 1000));
    }
    *row = (struct row){.v = o->v, .resolved = true};
    return NULL;
}

static err negate_next(struct op *op, struct row *row, bool *more)
{
    struct op_map *o = (struct op_map *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    arena_reset(&op->scratch);
    for (uint32_t i = 0; i < op->n; i++) {
        if (!is_stale_nan(row->v[i])) row->v[i] = -row->v[i];
        if (!row_has_hist(row, i)) continue;
        row->h[i] = hist_copy(&op->scratch, row->h[i]);
        hist_mul(row->h[i], -1);
    }
    row->drop_name = true;
    return NULL;
}

err op_map_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    bool negate = node->kind == PLAN_NEGATE;
    bool date = !negate && node->fn->class == FN_DATE;
    struct op_map *o = op_new(x, node, sizeof *o, negate ? negate_next : date ? date_next : map_next, NULL);
    *out = &o->op;
    if (node->n_kids == 0) {
        o->op.next = step_date_next;
        return NULL;
    }
    for (uint32_t i = 1; i < node->n_kids && i <= 2; i++) {
        double *column;
        TRY(exec_column(x, node->kids[i], &column));
        o->param[i - 1] = column;
    }
    return exec_open(x, node->kids[0], &o->vector);
}
