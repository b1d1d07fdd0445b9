/*
 * op_special.c: functions with an operator of their own that is a few lines long: scalars from
 * nothing (time, start, pi, ...), scalar(), vector(), timestamp(), min_of(), max_of().
 */
#include "query/exec.h"
#include "query/mapfn.h"

#include <math.h>

struct op_special {
    struct op op;
    struct op *vector;
    const double *param[2];
    bool done;
    double *v;
};

/* A scalar function's value at a step. */
static double scalar_at(const struct op_special *o, uint32_t i)
{
    const struct plan *p = o->op.x->plan;
    switch (o->op.node->fn->code) {
    case SPECIAL_TIME:
        return (double)grid_time(&o->op.node->grid, i) / 1000;
    case SPECIAL_START:
        return (double)p->start / 1000;
    case SPECIAL_END:
        return (double)p->end / 1000;
    case SPECIAL_RANGE:
        return (double)(p->end - p->start) / 1000;
    case SPECIAL_STEP:
        return (double)p->step / 1000;
    case SPECIAL_MIN_OF:
        return go_min(o->param[0][i], o->param[1][i]);
    case SPECIAL_MAX_OF:
        return go_max(o->param[0][i], o->param[1][i]);
    case SPECIAL_VECTOR:
        return o->param[0][i];
    default:
        return M_PI;
    }
}

static err column_next(struct op *op, struct row *row, bool *more)
{
    struct op_special *o = (struct op_special *)op;
    *more = !o->done;
    if (o->done) return NULL;
    o->done = true;
    TRY(exec_columns(op->x, 1, op->n, &o->v));
    for (uint32_t i = 0; i < op->n; i++)
        o->v[i] = scalar_at(o, i);
    *row = (struct row){.v = o->v, .resolved = true};
    return NULL;
}

/* scalar(): the value of the only float; NaN if there is none or more than one. */
static err scalar_next(struct op *op, struct row *row, bool *more)
{
    struct op_special *o = (struct op_special *)op;
    *more = !o->done;
    if (o->done) return NULL;
    o->done = true;
    TRY(exec_columns(op->x, 1, op->n, &o->v));
    uint8_t *found = arena_zalloc(&op->scratch, op->n + 1);
    struct row in;
    for (bool rows = true; rows;) {
        TRY(op_next(o->vector, &in, &rows));
        for (uint32_t i = 0; rows && i < op->n; i++) {
            if (is_stale_nan(in.v[i])) continue;
            if (found[i] < 2) found[i]++;
            o->v[i] = in.v[i];
        }
    }
    for (uint32_t i = 0; i < op->n; i++)
        if (found[i] != 1) o->v[i] = NAN;
    *row = (struct row){.v = o->v, .resolved = true};
    return NULL;
}

/* timestamp() of something computed: the step's own time. */
static err timestamp_next(struct op *op, struct row *row, bool *more)
{
    struct op_special *o = (struct op_special *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    for (uint32_t i = 0; i < op->n; i++)
        if (row_has(row, i)) row->v[i] = (double)grid_time(&op->node->grid, i) / 1000;
    row->h = NULL;
    row->drop_name = true;
    return NULL;
}

/* start_timestamp() of something computed: what is computed did not start at some time. */
static err no_start_next(struct op *op, struct row *row, bool *more)
{
    struct op_special *o = (struct op_special *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    for (uint32_t i = 0; i < op->n; i++)
        row->v[i] = no_sample();
    row->h = NULL;
    row->drop_name = true;
    return NULL;
}

/* timestamp(), start_timestamp() of a selector: the rows come with their samples' times already. */
static err named_next(struct op *op, struct row *row, bool *more)
{
    struct op_special *o = (struct op_special *)op;
    TRY(op_next(o->vector, row, more));
    if (*more) row->drop_name = true;
    return NULL;
}

/* computed: what to do with anything but a selector. */
static err open_timestamp(struct exec *x, const struct plan_node *node, struct op_special *o, enum select_yield yield,
                          err (*computed)(struct op *op, struct row *row, bool *more))
{
    const struct plan_node *kid = node->kids[0];
    if (kid->kind != PLAN_SELECT || kid->window.smoothed) {
        o->op.next = computed;
        return exec_open(x, kid, &o->vector);
    }
    /* with @ the selector has one step, but each step of ours needs a sample: all have the same */
    o->op.next = named_next;
    struct plan_node *own = arena_dup(x->arena, kid, sizeof *kid);
    own->grid = node->grid;
    own->repeat = 0;
    return op_select_open(x, own, yield, &o->vector);
}

err op_special_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    enum special_code code = (enum special_code)node->fn->code;
    if (code == SPECIAL_ABSENT) return op_absent_open(x, node, out);
    struct op_special *o = op_new(x, node, sizeof *o, column_next, NULL);
    *out = &o->op;
    if (code == SPECIAL_TIMESTAMP) return open_timestamp(x, node, o, SELECT_TIMES, timestamp_next);
    if (code == SPECIAL_START_TIMESTAMP) return open_timestamp(x, node, o, SELECT_STARTS, no_start_next);
    if (code == SPECIAL_SCALAR) {
        o->op.next = scalar_next;
        return exec_open(x, node->kids[0], &o->vector);
    }
    for (uint32_t i = 0; i < node->n_kids && i < 2; i++) {
        double *column;
        TRY(exec_column(x, node->kids[i], &column));
        o->param[i] = column;
    }
    return NULL;
}
