/*
 * binop.c: the binary operators on values.
 *
 * Float columns run in one loop per operator: the operator is a constant inside it. "No sample" on
 * either side gives "no sample"; it must be tested for, since arithmetic would turn its bits into an
 * ordinary NaN. Where a side has histograms, each step is looked at for itself; combinations that have
 * no meaning give no sample and a note, as in Prometheus.
 */
#include "query/binop.h"

#include <math.h>

static inline double arithmetic(enum binary_op op, double l, double r)
{
    switch (op) {
    case OP_ADD:
        return l + r;
    case OP_SUB:
        return l - r;
    case OP_MUL:
        return l * r;
    case OP_DIV:
        return l / r;
    case OP_MOD:
        return fmod(l, r);
    case OP_POW:
        return pow(l, r);
    default:
        return atan2(l, r);
    }
}

static inline bool holds(enum binary_op op, double l, double r)
{
    switch (op) {
    case OP_EQ:
        return l == r;
    case OP_NE:
        return l != r;
    case OP_LT:
        return l < r;
    case OP_GT:
        return l > r;
    case OP_LE:
        return l <= r;
    default:
        return l >= r;
    }
}

/* One float result; l and r are samples. */
static inline double float_result(const struct binop *b, enum binary_op op, double l, double r)
{
    if (!binop_compares(op)) return arithmetic(op, l, r);
    bool yes = holds(op, l, r);
    if (b->as_bool || b->scalar) return yes ? 1 : 0;
    return yes ? (b->keep_right ? r : l) : no_sample();
}

static inline __attribute__((always_inline)) void loop(const struct binop *b, enum binary_op op,
                                                       const struct operand *l, const struct operand *r, uint32_t n,
                                                       double *out)
{
    const double *lv = l->v, *rv = r->v;
    double lc = l->constant, rc = r->constant;
    for (uint32_t i = 0; i < n; i++) {
        double x = lv ? lv[i] : lc, y = rv ? rv[i] : rc;
        bool none = is_stale_nan(x) || is_stale_nan(y);
        out[i] = none ? no_sample() : float_result(b, op, x, y);
    }
}

static void float_columns(const struct binop *b, const struct operand *l, const struct operand *r, uint32_t n,
                          double *out)
{
    switch (b->op) {
    case OP_ADD:
        loop(b, OP_ADD, l, r, n, out);
        break;
    case OP_SUB:
        loop(b, OP_SUB, l, r, n, out);
        break;
    case OP_MUL:
        loop(b, OP_MUL, l, r, n, out);
        break;
    case OP_DIV:
        loop(b, OP_DIV, l, r, n, out);
        break;
    case OP_GT:
        loop(b, OP_GT, l, r, n, out);
        break;
    case OP_LT:
        loop(b, OP_LT, l, r, n, out);
        break;
    default:
        loop(b, b->op, l, r, n, out);
    }
}

/* ---- steps with a histogram on one side or both -------------------------------------------------------- */

struct sample {
    double v;
    struct hist *h;
};

static struct sample operand_at(const struct operand *o, uint32_t i)
{
    return (struct sample){o->v ? o->v[i] : o->constant, o->h ? o->h[i] : NULL};
}

static struct sample nothing(void)
{
    return (struct sample){no_sample(), NULL};
}

static struct sample incompatible(const struct binop *b, bool left_hist, bool right_hist)
{
    static const char *const NAMES[] = {"float", "histogram"};
    const char *op = binary_op_text(b->op);
    notes_add(b->notes, NOTE_INFO, b->at, "incompatible sample types encountered for binary operator \"%s\": %s %s %s",
              op, NAMES[left_hist], op, NAMES[right_hist]);
    return nothing();
}

static struct sample of_hist(struct hist *h)
{
    return (struct sample){no_sample(), h};
}

static struct sample scaled(const struct binop *b, const struct hist *h, double factor, bool divide)
{
    struct hist *copy = hist_copy(b->arena, h);
    if (divide)
        hist_div(copy, factor);
    else
        hist_mul(copy, factor);
    hist_compact(copy, b->arena);
    return of_hist(copy);
}

static struct sample added(const struct binop *b, const struct hist *l, const struct hist *r)
{
    bool sub = b->op == OP_SUB;
    const char *what = sub ? "subtraction" : "addition";
    struct hist *copy = hist_copy(b->arena, l);
    struct hist_outcome outcome = sub ? hist_sub(copy, r, b->arena) : hist_add(copy, r, b->arena);
    if (outcome.incompatible) {
        notes_add(b->notes, NOTE_WARNING, b->at, "incompatible bucket layout encountered for binary operator %s",
                  binary_op_text(b->op));
        return nothing();
    }
    if (outcome.reset_collision) note_reset_collision(b->notes, b->at, what);
    if (outcome.reconciled) note_bounds_reconciled(b->notes, b->at, what);
    if (sub) copy->reset_hint = HIST_RESET_GAUGE;
    hist_compact(copy, b->arena);
    return of_hist(copy);
}

static struct sample compared(const struct binop *b, struct hist *l, struct hist *r)
{
    bool yes = hist_equal(l, r) == (b->op == OP_EQ);
    if (b->as_bool) return (struct sample){yes ? 1 : 0, NULL};
    return yes ? of_hist(b->keep_right ? r : l) : nothing();
}

static struct sample mixed(const struct binop *b, struct sample l, struct sample r)
{
    if (l.h && r.h) {
        if (b->op == OP_ADD || b->op == OP_SUB) return added(b, l.h, r.h);
        if (b->op == OP_EQ || b->op == OP_NE) return compared(b, l.h, r.h);
        return incompatible(b, true, true);
    }
    if (l.h) {
        if (b->op == OP_MUL || b->op == OP_DIV) return scaled(b, l.h, r.v, b->op == OP_DIV);
        if (b->op != OP_TRIM_UPPER && b->op != OP_TRIM_LOWER) return incompatible(b, true, false);
        struct hist *copy = hist_copy(b->arena, l.h);
        hist_trim(copy, r.v, b->op == OP_TRIM_UPPER, b->arena);
        return of_hist(copy);
    }
    if (r.h) return b->op == OP_MUL ? scaled(b, r.h, l.v, false) : incompatible(b, false, true);
    if (b->op == OP_TRIM_UPPER || b->op == OP_TRIM_LOWER) return incompatible(b, false, false);
    return (struct sample){float_result(b, b->op, l.v, r.v), NULL};
}

static bool is_present(struct sample s)
{
    return s.h || !is_stale_nan(s.v);
}

void binop_columns(const struct binop *b, const struct operand *l, const struct operand *r, uint32_t n, double *out,
                   struct hist **hists)
{
    bool trims = b->op == OP_TRIM_UPPER || b->op == OP_TRIM_LOWER;
    if (!l->h && !r->h && !trims) {
        float_columns(b, l, r, n, out);
        return;
    }
    for (uint32_t i = 0; i < n; i++) {
        struct sample x = operand_at(l, i), y = operand_at(r, i);
        struct sample result = is_present(x) && is_present(y) ? mixed(b, x, y) : nothing();
        out[i] = result.v;
        if (hists) hists[i] = result.h;
    }
}
