/*
 * oracle_window.c: what range functions make of one window, and the statistics that aggregations share with them.
 *
 * A window is an array of samples; each function walks it from the start. See oracle.h.
 */
#include "tests/oracle/oracle.h"

#include <math.h>
#include <stdlib.h>

/* ---- statistics -------------------------------------------------------------------------------------------- */

void oracle_sum_add(struct oracle_sum *s, double v)
{
    double t = s->sum + v;
    if (isinf(t))
        s->c = 0;
    else if (fabs(s->sum) >= fabs(v))
        s->c += (s->sum - t) + v;
    else
        s->c += (v - t) + s->sum;
    s->sum = t;
}

static double sum_of(const double *v, size_t n)
{
    struct oracle_sum s = {0};
    for (size_t i = 0; i < n; i++)
        oracle_sum_add(&s, v[i]);
    return isinf(s.sum) ? s.sum : s.sum + s.c;
}

/* The sum divided, or, where the sum overflows, the mean moved along value by value. */
double oracle_mean(const double *v, size_t n)
{
    struct oracle_sum s = {v[0], 0};
    for (size_t i = 1; i < n; i++)
        oracle_sum_add(&s, v[i]);
    if (!isinf(s.sum)) return s.sum / (double)n + s.c / (double)n;
    double mean = 0;
    for (size_t i = 0; i < n; i++)
        mean = mean * ((double)i / (double)(i + 1)) + v[i] / (double)(i + 1);
    return mean;
}

/* A spread far below the values themselves drowns in their rounding: the digits depend on the way of counting. */
double oracle_variance(struct oracle *o, const double *v, size_t n)
{
    double mean = oracle_mean(v, n);
    o->counted = true;
    struct oracle_sum s = {0};
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) return NAN;
        oracle_sum_add(&s, (v[i] - mean) * (v[i] - mean));
    }
    double variance = (s.sum + s.c) / (double)n;
    if (variance > 0 && mean * mean > 1e10 * variance) oracle_unsure(o, "variance far below the square of the mean");
    return variance;
}

static int compare_nan_first(const void *pa, const void *pb)
{
    double a = *(const double *)pa, b = *(const double *)pb;
    if (isnan(a) || isnan(b)) return isnan(b) - isnan(a);
    return (a > b) - (a < b);
}

double oracle_quantile(struct oracle *o, double q, const double *v, size_t n)
{
    if (n == 0 || isnan(q)) return NAN;
    if (q < 0) return -INFINITY;
    if (q > 1) return INFINITY;
    double *sorted = arena_dup(o->arena, v, n * sizeof *v);
    qsort(sorted, n, sizeof *sorted, compare_nan_first);
    double rank = q * (double)(n - 1);
    size_t low = (size_t)floor(rank), high = low + 1 < n ? low + 1 : n - 1;
    double weight = rank - floor(rank);
    return sorted[low] * (1 - weight) + sorted[high] * weight;
}

/* A NaN among the values leaves no middle. */
static double median_deviation(struct oracle *o, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i])) return NAN;
    double median = oracle_quantile(o, 0.5, v, n);
    double *away = arena_alloc(o->arena, n * sizeof *away);
    for (size_t i = 0; i < n; i++)
        away[i] = fabs(v[i] - median);
    return oracle_quantile(o, 0.5, away, n);
}

/* ---- counters and slopes ----------------------------------------------------------------------------------- */

/* Growth between first and last sample, stretched to the window's edges where samples come close to them. */
static bool extrapolated(const struct oracle_window *w, bool counter, bool per_second, double *out)
{
    if (w->n < 2) return false;
    double grown = w->v[w->n - 1] - w->v[0];
    for (size_t i = 1; counter && i < w->n; i++)
        if (w->v[i] < w->v[i - 1]) grown += w->v[i - 1];
    double to_start = (double)(w->t[0] - w->start) / 1000, to_end = (double)(w->end - w->t[w->n - 1]) / 1000;
    double seen = (double)(w->t[w->n - 1] - w->t[0]) / 1000, gap = seen / (double)(w->n - 1);
    if (to_start >= gap * 1.1) to_start = gap / 2;
    if (to_end >= gap * 1.1) to_end = gap / 2;
    if (counter && grown > 0 && w->v[0] >= 0) {
        double to_zero = seen * (w->v[0] / grown);
        if (to_zero < to_start) to_start = to_zero;
    }
    double factor = (seen + to_start + to_end) / seen;
    if (per_second) factor /= (double)(w->end - w->start) / 1000;
    *out = grown * factor;
    return true;
}

static bool last_two(const struct oracle_window *w, bool rate, double *out)
{
    if (w->n < 2) return false;
    double a = w->v[w->n - 2], b = w->v[w->n - 1];
    *out = rate && b < a ? b : b - a;
    if (rate) *out /= (double)(w->t[w->n - 1] - w->t[w->n - 2]) / 1000;
    return true;
}

/* Least squares over seconds from `origin`. A slope far below the values' own size drowns like a spread does. */
static void regression(struct oracle *o, const struct oracle_window *w, int64_t origin, double *slope,
                       double *intercept)
{
    struct oracle_sum x = {0}, y = {0}, xy = {0}, xx = {0};
    bool constant = true;
    for (size_t i = 0; i < w->n; i++) {
        double sx = (double)(w->t[i] - origin) / 1000;
        constant = constant && w->v[i] == w->v[0];
        oracle_sum_add(&x, sx);
        oracle_sum_add(&y, w->v[i]);
        oracle_sum_add(&xy, sx * w->v[i]);
        oracle_sum_add(&xx, sx * sx);
    }
    if (constant) {
        *slope = isinf(w->v[0]) ? NAN : 0;
        *intercept = isinf(w->v[0]) ? NAN : w->v[0];
        return;
    }
    double n = (double)w->n, sum_x = x.sum + x.c, sum_y = y.sum + y.c;
    double covariance = xy.sum + xy.c - sum_x * sum_y / n, variance = xx.sum + xx.c - sum_x * sum_x / n;
    o->counted = true;
    if (fabs(covariance) < 1e-6 * fabs(xy.sum)) oracle_unsure(o, "covariance far below its terms");
    *slope = covariance / variance;
    *intercept = sum_y / n - *slope * sum_x / n;
}

static bool linear(struct oracle *o, const struct oracle_window *w, bool predict, double *out)
{
    if (w->n < 2) return false;
    double slope, intercept;
    regression(o, w, predict ? w->now : w->t[0], &slope, &intercept);
    *out = predict ? slope * w->a + intercept : slope;
    return true;
}

static bool smoothing(struct oracle *o, const struct oracle_window *w, double *out)
{
    if (!(w->a >= 0 && w->a <= 1) || !(w->b >= 0 && w->b <= 1)) oracle_unsure(o, "smoothing factor");
    if (w->n < 2) return false;
    double level = w->v[0], trend = w->v[1] - w->v[0];
    for (size_t i = 1; i < w->n; i++) {
        double before = level;
        level = w->a * w->v[i] + (1 - w->a) * (before + trend);
        if (i + 1 < w->n) trend = w->b * (level - before) + (1 - w->b) * trend;
    }
    *out = level;
    return true;
}

/* ---- counting and picking ---------------------------------------------------------------------------------- */

static double changes(const struct oracle_window *w)
{
    double n = 0;
    for (size_t i = 1; i < w->n; i++)
        if (w->v[i] != w->v[i - 1] && !(isnan(w->v[i]) && isnan(w->v[i - 1]))) n++;
    return n;
}

static double resets(const struct oracle_window *w)
{
    double n = 0;
    for (size_t i = 1; i < w->n; i++)
        if (w->v[i] < w->v[i - 1]) n++;
    return n;
}

/* The greatest (or least) sample, the first or the last of several; numbers win over NaN. */
static size_t extreme(const struct oracle_window *w, bool max, bool last)
{
    size_t best = 0;
    for (size_t i = 1; i < w->n; i++) {
        double a = max ? w->v[i] : w->v[best], b = max ? w->v[best] : w->v[i];
        if (isnan(w->v[best]) || a > b || (last && a == b)) best = i;
    }
    return best;
}

bool oracle_rollup(struct oracle *o, str f, const struct oracle_window *w, double *out)
{
    if (str_eq(f, STR("rate"))) return extrapolated(w, true, true, out);
    if (str_eq(f, STR("increase"))) return extrapolated(w, true, false, out);
    if (str_eq(f, STR("delta"))) return extrapolated(w, false, false, out);
    if (str_eq(f, STR("irate"))) return last_two(w, true, out);
    if (str_eq(f, STR("idelta"))) return last_two(w, false, out);
    if (str_eq(f, STR("deriv"))) return linear(o, w, false, out);
    if (str_eq(f, STR("predict_linear"))) return linear(o, w, true, out);
    if (str_eq(f, STR("double_exponential_smoothing"))) return smoothing(o, w, out);
    if (w->n == 0) return false;
    size_t last = w->n - 1;
    if (str_eq(f, STR("avg_over_time")))
        *out = oracle_mean(w->v, w->n);
    else if (str_eq(f, STR("sum_over_time")))
        *out = sum_of(w->v, w->n);
    else if (str_eq(f, STR("count_over_time")))
        *out = (double)w->n;
    else if (str_eq(f, STR("present_over_time")))
        *out = 1;
    else if (str_eq(f, STR("last_over_time")))
        *out = w->v[last];
    else if (str_eq(f, STR("first_over_time")))
        *out = w->v[0];
    else if (str_eq(f, STR("max_over_time")))
        *out = w->v[extreme(w, true, false)];
    else if (str_eq(f, STR("min_over_time")))
        *out = w->v[extreme(w, false, false)];
    else if (str_eq(f, STR("ts_of_max_over_time")))
        *out = (double)w->t[extreme(w, true, true)] / 1000;
    else if (str_eq(f, STR("ts_of_min_over_time")))
        *out = (double)w->t[extreme(w, false, true)] / 1000;
    else if (str_eq(f, STR("ts_of_first_over_time")))
        *out = (double)w->t[0] / 1000;
    else if (str_eq(f, STR("ts_of_last_over_time")))
        *out = (double)w->t[last] / 1000;
    else if (str_eq(f, STR("changes")))
        *out = changes(w);
    else if (str_eq(f, STR("resets")))
        *out = resets(w);
    else if (str_eq(f, STR("stddev_over_time")))
        *out = sqrt(oracle_variance(o, w->v, w->n));
    else if (str_eq(f, STR("stdvar_over_time")))
        *out = oracle_variance(o, w->v, w->n);
    else if (str_eq(f, STR("quantile_over_time")))
        *out = oracle_quantile(o, w->a, w->v, w->n);
    else if (str_eq(f, STR("mad_over_time")))
        *out = median_deviation(o, w->v, w->n);
    else
        oracle_unsure(o, "the oracle does not know this range function");
    return true;
}
