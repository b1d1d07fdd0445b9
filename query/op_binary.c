/*
 * op_binary.c: scalar op scalar, vector op scalar, scalar op vector.
 *
 * The scalar's column is evaluated when the first row is asked for; rows of the vector pass through
 * and are computed in place.
 */
#include "query/binop.h"

struct op_scalar_binary {
    struct op op;
    struct op *vector; /* NULL: both sides are scalars */
    struct operand left, right;
    bool swapped; /* the vector is the right side */
    bool done;
    double *v;
    struct hist **h;
};

static struct binop binop_of(struct op_scalar_binary *o)
{
    const struct expr *e = o->op.node->expr;
    return (struct binop){.op = e->binary.op,
                          .as_bool = e->binary.return_bool,
                          .keep_right = o->swapped,
                          .scalar = o->vector == NULL,
                          .at = e->start,
                          .notes = o->op.x->notes,
                          .arena = &o->op.scratch};
}

static err scalar_next(struct op *op, struct row *row, bool *more)
{
    struct op_scalar_binary *o = (struct op_scalar_binary *)op;
    *more = !o->done;
    if (o->done) return NULL;
    o->done = true;
    struct binop b = binop_of(o);
    binop_columns(&b, &o->left, &o->right, op->n, o->v, NULL);
    *row = (struct row){.v = o->v, .resolved = true};
    return NULL;
}

static err vector_next(struct op *op, struct row *row, bool *more)
{
    struct op_scalar_binary *o = (struct op_scalar_binary *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    arena_reset(&op->scratch);
    struct binop b = binop_of(o);
    struct operand *side = o->swapped ? &o->right : &o->left;
    side->v = row->v;
    side->h = row->h;
    if (row->h && !o->h) o->h = arena_alloc(op->x->arena, (op->n + 1) * sizeof *o->h);
    binop_columns(&b, &o->left, &o->right, op->n, o->v, row->h ? o->h : NULL);
    row->v = o->v;
    if (row->h) row->h = o->h;
    if (binop_renames(b.op) || b.as_bool) row->drop_name = true;
    return NULL;
}

err op_scalar_binary_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    bool left_vector = node->kids[0]->type == TYPE_VECTOR, right_vector = node->kids[1]->type == TYPE_VECTOR;
    struct op_scalar_binary *o =
        op_new(x, node, sizeof *o, left_vector || right_vector ? vector_next : scalar_next, NULL);
    *out = &o->op;
    o->swapped = right_vector;
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    struct operand *sides[] = {&o->left, &o->right};
    for (int i = 0; i < 2; i++) {
        if (node->kids[i]->type == TYPE_VECTOR) {
            TRY(exec_open(x, node->kids[i], &o->vector));
        } else if (node->kids[i]->kind == PLAN_NUMBER) {
            sides[i]->constant = node->kids[i]->number;
        } else {
            double *column;
            TRY(exec_column(x, node->kids[i], &column));
            sides[i]->v = column;
        }
    }
    return NULL;
}
