/*
 * op_digits.c: values rounded to decimal digits: the last thing before the answer, when round_digits asks for it.
 *
 * Makes answers smaller to send and to compress. Histograms pass as they are. The query's thread.
 */
#include "query/exec.h"

#include <math.h>

struct op_digits {
    struct op op;
    struct op *inner;
    double scale;
};

double op_digits_scale(int digits)
{
    return pow(10, digits);
}

/* NaN keeps its bits: it may mean "no sample". So does what is infinite, or too large for the digits. */
double op_digits_round(double v, double scale)
{
    double rounded = round(v * scale) / scale;
    return isfinite(rounded) ? rounded : v;
}

static err digits_next(struct op *op, struct row *row, bool *more)
{
    struct op_digits *o = (struct op_digits *)op;
    TRY(op_next(o->inner, row, more));
    for (uint32_t i = 0; *more && i < op->n; i++)
        row->v[i] = op_digits_round(row->v[i], o->scale);
    return NULL;
}

err op_digits_open(struct exec *x, struct op *inner, int digits, struct op **out)
{
    struct op_digits *o = op_new(x, inner->node, sizeof *o, digits_next, NULL);
    o->inner = inner;
    o->op.n = inner->n;
    o->scale = op_digits_scale(digits);
    *out = &o->op;
    return NULL;
}
