/*
 * binop.h: the binary operators on values: floats in whole columns, histograms one by one.
 */
#ifndef VARVE_QUERY_BINOP_H
#define VARVE_QUERY_BINOP_H

#include "query/exec.h"

static inline bool binop_compares(enum binary_op op)
{
    return op >= OP_EQ && op <= OP_GE;
}
/* Arithmetic makes another metric of it: the name goes. */
static inline bool binop_renames(enum binary_op op)
{
    return op <= OP_ATAN2;
}

/* One side of an operation on columns: a column, or one value for all steps (v NULL). */
struct operand {
    const double *v;
    struct hist **h; /* NULL: no histograms */
    double constant;
};

/* How results come about. */
struct binop {
    enum binary_op op;
    bool as_bool;    /* comparisons yield 1 and 0 */
    bool keep_right; /* comparisons that filter keep the right value (scalar op vector) */
    bool scalar;     /* scalar op scalar: comparisons are always as_bool */
    uint32_t at;     /* offset of the expression in the query, for notes */
    struct notes *notes;
    struct arena *arena; /* histograms that are made */
};

/* out[i] = l op r where both sides have a sample and a comparison holds, else "no sample". hists as out, needed if a
 * side has histograms, else NULL. out and hists may be an operand's own columns. */
void binop_columns(const struct binop *b, const struct operand *l, const struct operand *r, uint32_t n, double *out,
                   struct hist **hists);

#endif
