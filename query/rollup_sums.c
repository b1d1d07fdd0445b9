/*
 * rollup_sums.c: range functions made of sums over the window: sum, average, variance, regression.
 *
 * Short windows are summed up one by one, exactly as Prometheus does. Windows that are long and overlap are
 * differences of prefix sums over all samples of the series, in two doubles (some 106 bits), so that each step costs
 * the same whatever its window: O(samples + steps). The last bits may differ from Prometheus's.
 *
 * Where what is summed up cancels (the slope of a clock, the spread of values far from zero), Prometheus's own formulas
 * lose digits, and answers are to be the same as its: such windows are taken one by one, like those of a series with
 * a value that is not finite, or huge.
 *
 * Squares and products are taken of v - v[0] and of whole milliseconds since t[0].
 * Source of the arithmetic: Dekker, "A floating-point technique for extending the available precision" (1971).
 */
#include "query/rollup.h"

#include <math.h>

/* Windows up to this many samples are summed one by one. */
#define SUM_DIRECT_MAX 16
/* Beyond this, prefix sums could overflow or drown small values; their squares must not overflow either. */
#define SUM_SANE_MAX 1e200
#define SQUARE_SANE_MAX 1e100
/* A variance below this share of the mean's square, or a covariance below this share of the products' sum, depends in
 * its eleventh digit on the way of counting. */
#define VARIANCE_SHARE_MIN 0x1p-33
#define COVARIANCE_SHARE_MIN 0x1p-16

/* ---- sums in two doubles ----------------------------------------------------------------------------------- */

/* An unevaluated sum of two doubles. */
struct wide {
    double hi, lo;
};

static inline struct wide wide_of(double hi, double lo)
{
    double s = hi + lo;
    return (struct wide){s, lo - (s - hi)};
}

static inline struct wide wide_plus(struct wide a, struct wide b)
{
    double s = a.hi + b.hi, part = s - a.hi;
    return wide_of(s, ((a.hi - (s - part)) + (b.hi - part)) + (a.lo + b.lo));
}

static inline struct wide wide_minus(struct wide a, struct wide b)
{
    return wide_plus(a, (struct wide){-b.hi, -b.lo});
}

static inline struct wide wide_add(struct wide a, double x)
{
    return wide_plus(a, (struct wide){x, 0});
}

static inline struct wide product(double a, double b)
{
    double p = a * b;
    return (struct wide){p, fma(a, b, -p)};
}

static inline struct wide wide_times(struct wide a, double x)
{
    struct wide p = product(a.hi, x);
    return wide_of(p.hi, p.lo + a.lo * x);
}

static inline struct wide wide_over(struct wide a, double x)
{
    double q = a.hi / x;
    return wide_of(q, (fma(-q, x, a.hi) + a.lo) / x);
}

/* a * b - c */
static inline struct wide product_minus(struct wide a, struct wide b, struct wide c)
{
    struct wide p = product(a.hi, b.hi);
    return wide_minus(wide_of(p.hi, p.lo + (a.hi * b.lo + a.lo * b.hi)), c);
}

static inline double wide_value(struct wide a)
{
    return a.hi + a.lo;
}

/* ---- which way ------------------------------------------------------------------------------------------------ */

/* True if taking all windows one by one costs no more than prefix sums over all samples do. */
static bool direct_is_cheap(const struct rollup_in *in)
{
    uint64_t longest = 0, total = 0;
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t n = in->hi[i] - in->lo[i];
        if (n > longest) longest = n;
        total += n;
    }
    return longest <= SUM_DIRECT_MAX || total <= 2 * (uint64_t)in->n;
}

static bool all_within(const struct rollup_in *in, double bound)
{
    for (size_t k = 0; k < in->n; k++)
        if (!(fabs(in->v[k]) < bound)) return false;
    return true;
}

/* rollup_one for step i; its window has samples. */
static double one(const struct rollup_in *in, enum rollup_code code, uint32_t i)
{
    uint32_t lo = in->lo[i];
    return rollup_one(code, in, i, in->t + lo, in->v + lo, in->hi[i] - lo);
}

/* ---- sum and average ------------------------------------------------------------------------------------------ */

static void sums(const struct rollup_in *in, double *out, enum rollup_code code)
{
    if (direct_is_cheap(in) || !all_within(in, SUM_SANE_MAX)) {
        rollup_each(in, out, code);
        return;
    }
    struct wide *prefix = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *prefix);
    prefix[0] = (struct wide){0, 0};
    for (size_t k = 0; k < in->n; k++)
        prefix[k + 1] = wide_add(prefix[k], in->v[k]);
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t lo = in->lo[i], hi = in->hi[i];
        if (lo == hi || hi - lo <= SUM_DIRECT_MAX) {
            out[i] = lo == hi ? no_sample() : one(in, code, i);
            continue;
        }
        struct wide w = wide_minus(prefix[hi], prefix[lo]);
        double count = (double)(hi - lo);
        out[i] = code == ROLLUP_SUM ? wide_value(w) : w.hi / count + w.lo / count;
    }
}

void rollup_sum(const struct rollup_in *in, double *out)
{
    sums(in, out, ROLLUP_SUM);
}

void rollup_avg(const struct rollup_in *in, double *out)
{
    sums(in, out, ROLLUP_AVG);
}

/* ---- variance --------------------------------------------------------------------------------------------------- */

struct moments {
    struct wide sum, squares; /* of v - v[0], of the samples before */
    uint32_t changes;         /* samples that differ from the one before, this one included */
};

static const struct moments *prefix_moments(const struct rollup_in *in)
{
    struct moments *m = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *m);
    m[0] = (struct moments){0};
    for (size_t k = 0; k < in->n; k++) {
        struct wide v = wide_add((struct wide){in->v[k], 0}, -in->v[0]);
        struct wide square = wide_plus(product(v.hi, v.hi), wide_times((struct wide){v.lo, 0}, 2 * v.hi));
        if (k > 0) m[k].changes = m[k - 1].changes + (in->v[k] != in->v[k - 1]);
        m[k + 1] = (struct moments){wide_plus(m[k].sum, v), wide_plus(m[k].squares, square), 0};
    }
    return m;
}

static double variance(const struct rollup_in *in, const struct moments *m, uint32_t i)
{
    uint32_t lo = in->lo[i], hi = in->hi[i];
    double count = (double)(hi - lo);
    if (m[hi - 1].changes == m[lo].changes) return 0; /* all are equal */
    struct wide sum = wide_minus(m[hi].sum, m[lo].sum), squares = wide_minus(m[hi].squares, m[lo].squares);
    double rest = -wide_value(product_minus(sum, wide_over(sum, count), squares));
    double mean = in->v[0] + sum.hi / count;
    if (rest < mean * mean * count * VARIANCE_SHARE_MIN) return one(in, ROLLUP_STDVAR, i);
    return rest / count;
}

static void variances(const struct rollup_in *in, double *out, enum rollup_code code)
{
    if (direct_is_cheap(in) || !all_within(in, SQUARE_SANE_MAX)) {
        rollup_each(in, out, code);
        return;
    }
    const struct moments *m = prefix_moments(in);
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t n = in->hi[i] - in->lo[i];
        if (n == 0)
            out[i] = no_sample();
        else if (n <= SUM_DIRECT_MAX)
            out[i] = one(in, code, i);
        else
            out[i] = code == ROLLUP_STDDEV ? sqrt(variance(in, m, i)) : variance(in, m, i);
    }
}

void rollup_stddev(const struct rollup_in *in, double *out)
{
    variances(in, out, ROLLUP_STDDEV);
}

void rollup_stdvar(const struct rollup_in *in, double *out)
{
    variances(in, out, ROLLUP_STDVAR);
}

/* ---- regression ---------------------------------------------------------------------------------------------------
 */

/* Sums over the samples before, x being whole milliseconds since t[0]. */
struct products {
    struct wide x, y, xy, xx;
    uint32_t changes; /* as in struct moments */
};

static const struct products *prefix_products(const struct rollup_in *in)
{
    struct products *p = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *p);
    p[0] = (struct products){0};
    for (size_t k = 0; k < in->n; k++) {
        double x = (double)(in->t[k] - in->t[0]), y = in->v[k];
        if (k > 0) p[k].changes = p[k - 1].changes + (y != in->v[k - 1]);
        p[k + 1] = (struct products){.x = wide_add(p[k].x, x),
                                     .y = wide_add(p[k].y, y),
                                     .xy = wide_plus(p[k].xy, product(x, y)),
                                     .xx = wide_plus(p[k].xx, product(x, x))};
    }
    return p;
}

/* The line of least squares through a window, x in ms from `origin` (ms since t[0]) on: its slope a second, and its
 * value at the origin. */
struct line {
    double slope, intercept;
    bool cancels; /* in doubles it would be of little worth */
};

static struct line line_through(const struct products *from, const struct products *to, double origin, double count)
{
    struct wide x = wide_minus(to->x, from->x), y = wide_minus(to->y, from->y);
    struct wide xy = wide_minus(wide_minus(to->xy, from->xy), wide_times(y, origin));
    struct wide xx = wide_minus(wide_minus(to->xx, from->xx), wide_times(x, 2 * origin));
    xx = wide_plus(xx, wide_times(product(origin, origin), count));
    x = wide_minus(x, product(origin, count));
    struct wide mean = wide_over(x, count);
    double covariance = wide_value(product_minus(mean, y, xy)), spread = wide_value(product_minus(mean, x, xx));
    double slope = covariance / spread;
    bool cancels = fabs(covariance) < fabs(xy.hi) * COVARIANCE_SHARE_MIN;
    return (struct line){slope * 1e3, wide_value(wide_over(y, count)) - slope * wide_value(mean), cancels};
}

static double regress(const struct rollup_in *in, const struct products *p, uint32_t i, enum rollup_code code)
{
    uint32_t lo = in->lo[i], hi = in->hi[i];
    bool predict = code == ROLLUP_PREDICT_LINEAR, constant = p[hi - 1].changes == p[lo].changes;
    if (constant) return predict ? in->v[lo] + 0 * in->param[0][i] : 0;
    int64_t origin = predict ? grid_time(&in->grid, i) : in->t[lo];
    struct line l = line_through(&p[lo], &p[hi], (double)(origin - in->t[0]), (double)(hi - lo));
    if (l.cancels) return one(in, code, i);
    return predict ? l.slope * in->param[0][i] + l.intercept : l.slope;
}

static void regressions(const struct rollup_in *in, double *out, enum rollup_code code)
{
    if (direct_is_cheap(in) || !all_within(in, SQUARE_SANE_MAX)) {
        rollup_each(in, out, code);
        return;
    }
    const struct products *p = prefix_products(in);
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t n = in->hi[i] - in->lo[i];
        if (n < 2)
            out[i] = no_sample();
        else
            out[i] = n <= SUM_DIRECT_MAX ? one(in, code, i) : regress(in, p, i, code);
    }
}

void rollup_deriv(const struct rollup_in *in, double *out)
{
    regressions(in, out, ROLLUP_DERIV);
}

void rollup_predict_linear(const struct rollup_in *in, double *out)
{
    regressions(in, out, ROLLUP_PREDICT_LINEAR);
}
