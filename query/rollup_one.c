/*
 * rollup_one.c: range functions as plain formulas over the samples of one window.
 *
 * Used where no moving state helps, where windows are short, and where a window also holds histograms.
 * Formulas, order of operations and treatment of NaN follow Prometheus, so that results agree bit for
 * bit. Pure; scratch memory from the caller.
 */
#include "query/rollup.h"

#include <math.h>

#include "query/quantile.h"
#include "storage/base/alloc.h"

static double sum_of(const double *v, size_t n)
{
    struct kahan k = {0, 0};
    for (size_t i = 0; i < n; i++)
        kahan_add(&k, v[i]);
    return isinf(k.sum) ? k.sum : k.sum + k.c;
}

/* The mean goes on incrementally from where the sum would overflow. */
static double avg_of(const double *v, size_t n)
{
    struct kahan k = {v[0], 0};
    size_t i = 1;
    for (; i < n; i++) {
        struct kahan next = k;
        kahan_add(&next, v[i]);
        if (isinf(next.sum)) break;
        k = next;
    }
    if (i == n) return k.sum / (double)n + k.c / (double)n;
    k.sum /= (double)i;
    k.c /= (double)i;
    for (; i < n; i++) {
        double count = (double)(i + 1), q = (count - 1) / count;
        k.sum *= q;
        k.c *= q;
        kahan_add(&k, v[i] / count);
    }
    return k.sum + k.c;
}

static double variance_of(const double *v, size_t n)
{
    struct kahan mean = {0, 0}, aux = {0, 0};
    double count = 0;
    for (size_t i = 0; i < n; i++) {
        count++;
        double delta = v[i] - (mean.sum + mean.c);
        kahan_add(&mean, delta / count);
        kahan_add(&aux, delta * (v[i] - (mean.sum + mean.c)));
    }
    return (aux.sum + aux.c) / count;
}

/* Least squares; x is seconds from `origin`. */
static void regression(const int64_t *t, const double *v, size_t n, int64_t origin, double *slope, double *intercept)
{
    struct kahan x = {0, 0}, y = {0, 0}, xy = {0, 0}, x2 = {0, 0};
    bool constant = true;
    for (size_t i = 0; i < n; i++) {
        if (v[i] != v[0]) constant = false;
        double at = (double)(t[i] - origin) / 1e3;
        kahan_add(&x, at);
        kahan_add(&y, v[i]);
        kahan_add(&xy, at * v[i]);
        kahan_add(&x2, at * at);
    }
    if (constant) {
        *slope = isinf(v[0]) ? NAN : 0;
        *intercept = isinf(v[0]) ? NAN : v[0];
        return;
    }
    double sx = x.sum + x.c, sy = y.sum + y.c, count = (double)n;
    double covariance = (xy.sum + xy.c) - sx * sy / count;
    double variance = (x2.sum + x2.c) - sx * sx / count;
    *slope = covariance / variance;
    *intercept = sy / count - *slope * sx / count;
}

static double deriv_of(const int64_t *t, const double *v, size_t n)
{
    double slope, intercept;
    regression(t, v, n, t[0], &slope, &intercept);
    return slope;
}

static double predict_of(const struct rollup_in *in, uint32_t step, const int64_t *t, const double *v, size_t n)
{
    double slope, intercept;
    regression(t, v, n, grid_time(&in->grid, step), &slope, &intercept);
    return slope * in->param[0][step] + intercept;
}

static double instant_of(const int64_t *t, const double *v, size_t n, bool rate)
{
    double a = v[n - 2], b = v[n - 1];
    double value = rate && b < a ? b : b - a;
    return rate ? value / ((double)(t[n - 1] - t[n - 2]) / 1000) : value;
}

static double smooth_of(const double *v, size_t n, double smoothing, double trend)
{
    double previous = 0, level = v[0], slope = v[1] - v[0];
    for (size_t i = 1; i < n; i++) {
        double x = smoothing * v[i];
        if (i > 1) slope = trend * (level - previous) + (1 - trend) * slope;
        double y = (1 - smoothing) * (level + slope);
        previous = level;
        level = x + y;
    }
    return level;
}

static double quantile_of(double q, const double *v, size_t n)
{
    double *values = mem_dup(v, n * sizeof *v);
    double result = quantile_select(q, values, n);
    mem_free(values);
    return result;
}

static double mad_of(const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i])) return NAN;
    double median = quantile_of(0.5, v, n);
    double *away = mem_alloc(n * sizeof *away);
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(v[i] - median);
    double result = quantile_of(0.5, away, n);
    mem_free(away);
    return result;
}

/* Position of the extreme; with `latest`, of the last of equal ones. */
static size_t extreme_of(const double *v, size_t n, bool max, bool latest)
{
    size_t best = 0;
    for (size_t i = 0; i < n; i++) {
        bool better = max ? v[i] > v[best] : v[i] < v[best];
        if (better || isnan(v[best]) || (latest && v[i] == v[best])) best = i;
    }
    return best;
}

double rollup_one(enum rollup_code code, const struct rollup_in *in, uint32_t step, const int64_t *t, const double *v,
                  size_t n)
{
    switch (code) {
    case ROLLUP_SUM:
        return sum_of(v, n);
    case ROLLUP_AVG:
        return avg_of(v, n);
    case ROLLUP_MAX:
    case ROLLUP_MIN:
        return v[extreme_of(v, n, code == ROLLUP_MAX, false)];
    case ROLLUP_TS_OF_MAX:
    case ROLLUP_TS_OF_MIN:
        return (double)t[extreme_of(v, n, code == ROLLUP_TS_OF_MAX, true)] / 1000;
    case ROLLUP_STDDEV:
        return sqrt(variance_of(v, n));
    case ROLLUP_STDVAR:
        return variance_of(v, n);
    case ROLLUP_QUANTILE:
        return quantile_of(in->param[0][step], v, n);
    case ROLLUP_MAD:
        return mad_of(v, n);
    case ROLLUP_DERIV:
        return deriv_of(t, v, n);
    case ROLLUP_PREDICT_LINEAR:
        return predict_of(in, step, t, v, n);
    case ROLLUP_DOUBLE_EXPONENTIAL:
        return smooth_of(v, n, in->param[0][step], in->param[1][step]);
    case ROLLUP_IRATE:
    case ROLLUP_IDELTA:
        return instant_of(t, v, n, code == ROLLUP_IRATE);
    case ROLLUP_FIRST:
        return v[0];
    case ROLLUP_LAST:
        return v[n - 1];
    default:
        return no_sample();
    }
}
