/*
 * plan_duration.c: the value of a duration: a literal, or arithmetic over seconds, step() and range().
 *
 * Pure; recursion is bounded by DURATION_HEIGHT_MAX. Numbers inside an expression are seconds,
 * results milliseconds, cut towards zero as Prometheus does.
 */
#include "query/plan.h"

#include <math.h>

#include "storage/base/limits.h"

/* Chains of operators are trees as high as they are long. */
#define DURATION_HEIGHT_MAX 1000

static err evaluate(const struct expr *e, const struct plan_request *rq, double *out);

static err evaluate_binary(const struct expr *e, const struct plan_request *rq, double *out)
{
    double l, r;
    TRY(evaluate(e->binary.lhs, rq, &l));
    TRY(evaluate(e->binary.rhs, rq, &r));
    switch (e->binary.op) {
    case OP_ADD:
        *out = l + r;
        return NULL;
    case OP_SUB:
        *out = l - r;
        return NULL;
    case OP_MUL:
        *out = l * r;
        return NULL;
    case OP_DIV:
        if (r == 0) return err_new(ERR_INVALID, "division by zero in a duration");
        *out = l / r;
        return NULL;
    case OP_MOD:
        if (r == 0) return err_new(ERR_INVALID, "modulo by zero in a duration");
        *out = fmod(l, r);
        return NULL;
    case OP_POW:
        *out = pow(l, r);
        return NULL;
    default:
        return err_new(ERR_INVALID, "operator %s is not allowed in a duration", binary_op_text(e->binary.op));
    }
}

static err evaluate_call(const struct expr *e, const struct plan_request *rq, double *out)
{
    uint16_t code = e->call.fn->code;
    if (e->call.fn->class == FN_SPECIAL && e->call.n_args == 2 && (code == SPECIAL_MIN_OF || code == SPECIAL_MAX_OF)) {
        double a, b;
        TRY(evaluate(e->call.args[0], rq, &a));
        TRY(evaluate(e->call.args[1], rq, &b));
        *out = code == SPECIAL_MIN_OF ? fmin(a, b) : fmax(a, b);
        return NULL;
    }
    return err_new(ERR_INVALID, "%s() is not allowed in a duration", e->call.fn->name);
}

static err evaluate(const struct expr *e, const struct plan_request *rq, double *out)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        *out = e->number;
        return NULL;
    case EXPR_PAREN:
        return evaluate(e->paren, rq, out);
    case EXPR_UNARY:
        TRY(evaluate(e->unary.inner, rq, out));
        if (e->unary.negate) *out = -*out;
        return NULL;
    case EXPR_STEP:
        *out = (double)rq->step_ms / 1000;
        return NULL;
    case EXPR_QRANGE:
        *out = (double)(rq->end_ms - rq->start_ms) / 1000;
        return NULL;
    case EXPR_BINARY:
        return evaluate_binary(e, rq, out);
    case EXPR_CALL:
        return evaluate_call(e, rq, out);
    default:
        return err_new(ERR_INVALID, "a duration may only hold numbers, durations, step(), range() and arithmetic");
    }
}

err plan_duration(const struct duration *d, const struct plan_request *rq, int64_t *ms)
{
    *ms = d->ms;
    if (d->expr && d->expr->height > DURATION_HEIGHT_MAX)
        return err_new(ERR_INVALID, "a duration has more than %d operators", DURATION_HEIGHT_MAX);
    if (d->expr) {
        double seconds;
        TRY(evaluate(d->expr, rq, &seconds));
        /* the negated form also catches NaN */
        if (!(fabs(seconds) < (double)LIMIT_TIME_MAX / 1000)) return err_new(ERR_INVALID, "duration is out of range");
        *ms = (int64_t)(seconds * 1000);
    }
    if (*ms > LIMIT_TIME_MAX || *ms < LIMIT_TIME_MIN) return err_new(ERR_INVALID, "duration is out of range");
    return NULL;
}
