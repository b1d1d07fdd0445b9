/*
 * rollup.c: the range functions, all steps of a series at once: windows themselves, rates, extremes, first and last,
 * counts, quantiles.
 *
 * Cost is O(samples + steps) a series. How:
 *   rate, increase, delta      ends of the window, plus the resets inside it from a list of all resets
 *   changes, resets            differences of prefix counts
 *   sums and what is made of them   rollup_sums.c
 *   min, max and their times   a monotonic queue of candidates
 *   quantile                   the window kept sorted
 *   others                     by index, or by rollup_one (rollup_one.c) window by window
 * Sources: Prometheus querying documentation (functions), its extrapolation rules for rate.
 */
#include "query/rollup.h"

#include <math.h>

#include "storage/base/alloc.h"

#define WORK_PER_CHECK 65536 /* samples between two looks at the budget */

void rollup_scratch_deinit(struct rollup_scratch *s)
{
    mem_free(s->p);
    *s = (struct rollup_scratch){0};
}

void *rollup_scratch_need(struct rollup_scratch *s, size_t bytes)
{
    if (s->bytes < bytes) {
        mem_free(s->p);
        s->p = mem_alloc(bytes * 2);
        s->bytes = bytes * 2;
    }
    return s->p;
}

void rollup_windows(const int64_t *t, size_t n, int64_t end, int64_t end_step, int64_t left, int64_t right,
                    uint32_t n_steps, uint32_t *lo, uint32_t *hi)
{
    size_t a = 0, b = 0;
    for (uint32_t i = 0; i < n_steps; i++) {
        int64_t at = end + (int64_t)i * end_step;
        while (a < n && t[a] <= at - left)
            a++;
        if (b < a) b = a;
        while (b < n && t[b] <= at + right)
            b++;
        lo[i] = (uint32_t)a;
        hi[i] = (uint32_t)b;
    }
}

/* ---- rates -------------------------------------------------------------------------------------------- */

/* Positions k with v[k] < v[k - 1]. */
static size_t list_resets(const double *v, size_t n, uint32_t *at)
{
    size_t found = 0;
    for (size_t k = 1; k < n; k++) {
        at[found] = (uint32_t)k;
        found += v[k] < v[k - 1];
    }
    return found;
}

static struct rate_time time_at(const struct rollup_in *in, uint32_t i, double per_seconds)
{
    uint32_t lo = in->lo[i], hi = in->hi[i];
    int64_t end = in->end + (int64_t)i * in->end_step;
    struct rate_span span = {in->t[lo], in->t[hi - 1], hi - lo, end - in->range, end};
    return rate_time_of(&span, per_seconds);
}

void rollup_rate_times(const struct rollup_in *in, bool per_second, struct rate_time *times)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        if (in->hi[i] - in->lo[i] >= 2) times[i] = time_at(in, i, per_second ? (double)in->range / 1000 : 0);
}

static inline void rates(const struct rollup_in *in, double *out, bool counter, bool per_second)
{
    double none = no_sample(), per_seconds = per_second ? (double)in->range / 1000 : 0;
    uint32_t *resets = counter ? rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *resets) : NULL;
    size_t n_resets = counter ? list_resets(in->v, in->n, resets) : 0;
    size_t from = 0; /* first reset behind the window's first sample */
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t lo = in->lo[i], hi = in->hi[i];
        out[i] = none;
        if (hi - lo < 2) continue;
        double increase = in->v[hi - 1] - in->v[lo];
        while (from < n_resets && resets[from] <= lo)
            from++;
        for (size_t r = from; r < n_resets && resets[r] < hi; r++)
            increase += in->v[resets[r] - 1];
        struct rate_time computed;
        if (!in->times) computed = time_at(in, i, per_seconds);
        const struct rate_time *time = in->times ? &in->times[i] : &computed;
        out[i] = increase * (counter ? rate_counter_factor(time, in->v[lo], increase, per_seconds) : time->factor);
    }
}

/* ---- anchored and smoothed ranges ----------------------------------------------------------------------- */

struct point {
    int64_t t;
    double v;
};

/* Value at `at` on the line from a to b; a counter that was reset between them starts from zero. */
static double between(struct point a, struct point b, int64_t at, bool counter)
{
    double y = counter && b.v < a.v ? 0 : a.v;
    return y + (b.v - y) * (double)(at - a.t) / (double)(b.t - a.t);
}

static struct point point_at(const struct rollup_in *in, size_t k)
{
    return (struct point){in->t[k], in->v[k]};
}

/* What a counter lost to resets between the edge values. */
static double lost_to_resets(const double *v, size_t from, size_t to, double left, double right)
{
    double lost = 0, previous = left;
    for (size_t k = from; k < to; k++) {
        if (v[k] < previous) lost += previous;
        previous = v[k];
    }
    return right < previous ? lost + previous : lost;
}

/* The last sample at or before `start` in [lo, hi), or lo. */
static size_t anchor(const struct rollup_in *in, size_t lo, size_t hi, int64_t start)
{
    size_t first = lo;
    while (first + 1 < hi && in->t[first + 1] <= start)
        first++;
    return first;
}

static double extended_rate(const struct rollup_in *in, uint32_t step, bool counter, bool per_second)
{
    size_t lo = in->lo[step], hi = in->hi[step], last = hi - 1;
    int64_t end = in->end + (int64_t)step * in->end_step, start = end - in->range;
    if (lo == hi) return no_sample();
    size_t first = anchor(in, lo, last > lo ? last : lo + 1, start);
    if (in->smoothed)
        for (last = lo; last < hi - 1 && in->t[last] < end;)
            last++;
    if (in->t[last] <= start || in->t[first] > end) return no_sample();
    double left = in->v[first], right = in->v[last];
    if (in->smoothed && in->t[first] < start)
        left = between(point_at(in, first), point_at(in, first + 1), start, counter);
    if (in->smoothed && last > lo && in->t[last] > end)
        right = between(point_at(in, last - 1), point_at(in, last), end, counter);
    double result = right - left;
    if (counter) {
        size_t from = in->t[first] <= start ? first + 1 : first;
        size_t to = in->t[last] >= end ? last : last + 1;
        result += lost_to_resets(in->v, from, to, left, right);
    }
    return per_second ? result / ((double)in->range / 1000) : result;
}

static void extended_rates(const struct rollup_in *in, double *out, bool counter, bool per_second)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = extended_rate(in, i, counter, per_second);
}

static void roll_rate(const struct rollup_in *in, double *out)
{
    if (in->anchored || in->smoothed)
        extended_rates(in, out, true, true);
    else
        rates(in, out, true, true);
}

static void roll_increase(const struct rollup_in *in, double *out)
{
    if (in->anchored || in->smoothed)
        extended_rates(in, out, true, false);
    else
        rates(in, out, true, false);
}

static void roll_delta(const struct rollup_in *in, double *out)
{
    if (in->anchored || in->smoothed)
        extended_rates(in, out, false, false);
    else
        rates(in, out, false, false);
}

/* ---- extremes --------------------------------------------------------------------------------------------- */

/* What of the extreme is wanted. */
enum extreme { EXTREME_VALUE, EXTREME_TIME };

/* True if a earlier than b can no longer be the extreme once b is in the window. Of equal ones the latest has the time.
 */
static inline bool yields_to(double a, double b, bool max, enum extreme what)
{
    return isnan(a) || (max ? a < b : a > b) || (what == EXTREME_TIME && a == b);
}

/* The queue holds positions in order, each better than all behind it; its head is the window's extreme. */
static inline void extremes(const struct rollup_in *in, double *out, bool max, enum extreme what)
{
    double none = no_sample();
    uint32_t *queue = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *queue);
    size_t head = 0, tail = 0, added = 0;
    for (uint32_t i = 0; i < in->n_steps; i++) {
        for (; added < in->hi[i]; added++) {
            double x = in->v[added];
            if (isnan(x) && tail > head && !isnan(in->v[queue[tail - 1]])) continue; /* never beats a number */
            while (tail > head && yields_to(in->v[queue[tail - 1]], x, max, what))
                tail--;
            queue[tail++] = (uint32_t)added;
        }
        while (head < tail && queue[head] < in->lo[i])
            head++;
        if (in->lo[i] == in->hi[i]) {
            out[i] = none;
            continue;
        }
        uint32_t best = head < tail ? queue[head] : in->hi[i] - 1; /* an empty queue: all are NaN */
        out[i] = what == EXTREME_TIME ? (double)in->t[best] / 1000 : in->v[best];
    }
}

static void roll_max(const struct rollup_in *in, double *out)
{
    extremes(in, out, true, EXTREME_VALUE);
}

static void roll_min(const struct rollup_in *in, double *out)
{
    extremes(in, out, false, EXTREME_VALUE);
}

static void roll_ts_of_max(const struct rollup_in *in, double *out)
{
    extremes(in, out, true, EXTREME_TIME);
}

static void roll_ts_of_min(const struct rollup_in *in, double *out)
{
    extremes(in, out, false, EXTREME_TIME);
}

/* ---- by index and by prefix counts ------------------------------------------------------------------------ */

static void roll_count(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = in->hi[i] > in->lo[i] ? (double)(in->hi[i] - in->lo[i]) : no_sample();
}

static void roll_present(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = in->hi[i] > in->lo[i] ? 1 : no_sample();
}

static void roll_last(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = in->hi[i] > in->lo[i] ? in->v[in->hi[i] - 1] : no_sample();
}

static void roll_first(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = in->hi[i] > in->lo[i] ? in->v[in->lo[i]] : no_sample();
}

static void roll_ts_of_last(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = in->hi[i] > in->lo[i] ? (double)in->t[in->hi[i] - 1] / 1000 : no_sample();
}

static void roll_ts_of_first(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++)
        out[i] = in->hi[i] > in->lo[i] ? (double)in->t[in->lo[i]] / 1000 : no_sample();
}

/* Transitions between neighbours: of value (changes) or downwards (resets). */
static inline void transitions(const struct rollup_in *in, double *out, bool down)
{
    uint32_t *before = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *before); /* transitions up to sample k */
    before[0] = 0;
    for (size_t k = 1; k < in->n; k++) {
        double a = in->v[k - 1], b = in->v[k];
        bool counts = down ? b < a : b != a && !(isnan(a) && isnan(b));
        if (down && in->start != NULL)
            counts |= start_is_reset((struct started){in->start[k - 1], in->t[k - 1]},
                                     (struct started){in->start[k], in->t[k]});
        before[k] = before[k - 1] + counts;
    }
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t lo = in->lo[i], hi = in->hi[i];
        out[i] = no_sample();
        if (lo == hi) continue;
        if (in->anchored) {
            int64_t start = in->end + (int64_t)i * in->end_step - in->range;
            if (in->t[hi - 1] <= start) continue;
            lo = (uint32_t)anchor(in, lo, hi - 1 > lo ? hi - 1 : hi, start);
        }
        out[i] = before[hi - 1] - before[lo];
    }
}

static void roll_changes(const struct rollup_in *in, double *out)
{
    transitions(in, out, false);
}

static void roll_resets(const struct rollup_in *in, double *out)
{
    transitions(in, out, true);
}

/* ---- window by window ---------------------------------------------------------------------------------------- */

/* Fewest floats that give a value. */
static uint32_t least_samples(enum rollup_code code)
{
    bool two = code == ROLLUP_DERIV || code == ROLLUP_PREDICT_LINEAR || code == ROLLUP_IRATE || code == ROLLUP_IDELTA ||
               code == ROLLUP_DOUBLE_EXPONENTIAL;
    return two ? 2 : 1;
}

bool rollup_must_end(const struct rollup_in *in, uint64_t *work, size_t n)
{
    *work += n;
    if (*work < WORK_PER_CHECK || !in->budget) return false;
    *work = 0;
    err e = budget_check(in->budget);
    err_free(e);
    return e != NULL;
}

void rollup_each(const struct rollup_in *in, double *out, enum rollup_code code)
{
    uint32_t least = least_samples(code);
    uint64_t work = 0;
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t lo = in->lo[i], n = in->hi[i] - lo;
        if (rollup_must_end(in, &work, n)) return;
        out[i] = n < least ? no_sample() : rollup_one(code, in, i, in->t + lo, in->v + lo, n);
    }
}

/* ---- quantiles ---------------------------------------------------------------------------------------------- */

int double_order(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    if (isnan(x) || isnan(y)) return isnan(y) - isnan(x);
    return (x > y) - (x < y);
}

double quantile_of_sorted(double q, const double *v, size_t n)
{
    if (isnan(q)) return NAN;
    if (q < 0) return -INFINITY;
    if (q > 1) return INFINITY;
    double rank = q * (double)(n - 1);
    double floor_rank = floor(rank), weight = rank - floor_rank;
    size_t low = (size_t)floor_rank, high = low + 1 < n ? low + 1 : n - 1;
    return v[low] * (1 - weight) + v[high] * weight;
}

/* Position of x among n sorted values: the first not before it. */
static size_t sorted_at(const double *v, size_t n, double x)
{
    size_t low = 0, high = n;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (double_order(&v[mid], &x) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

/* The window is kept sorted: samples that enter and leave are found by bisection. */
static void roll_quantile(const struct rollup_in *in, double *out)
{
    if (in->n_steps == 1) {
        rollup_each(in, out, ROLLUP_QUANTILE);
        return;
    }
    double *sorted = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *sorted);
    size_t n = 0;
    uint64_t work = 0;
    uint32_t lo = 0, hi = 0;
    for (uint32_t i = 0; i < in->n_steps; i++) {
        for (; hi < in->hi[i]; hi++, n++) {
            if (rollup_must_end(in, &work, n)) return;
            size_t at = sorted_at(sorted, n, in->v[hi]);
            memmove(sorted + at + 1, sorted + at, (n - at) * sizeof *sorted);
            sorted[at] = in->v[hi];
        }
        for (; lo < in->lo[i]; lo++, n--) {
            if (rollup_must_end(in, &work, n)) return;
            size_t at = sorted_at(sorted, n, in->v[lo]);
            memmove(sorted + at, sorted + at + 1, (n - at - 1) * sizeof *sorted);
        }
        out[i] = n ? quantile_of_sorted(in->param[0][i], sorted, n) : no_sample();
    }
}

/* ---- functions that go window by window ---------------------------------------------------------------------- */

static void roll_double_exponential(const struct rollup_in *in, double *out)
{
    rollup_each(in, out, ROLLUP_DOUBLE_EXPONENTIAL);
}
static void roll_idelta(const struct rollup_in *in, double *out)
{
    rollup_each(in, out, ROLLUP_IDELTA);
}
static void roll_irate(const struct rollup_in *in, double *out)
{
    rollup_each(in, out, ROLLUP_IRATE);
}
static void roll_mad(const struct rollup_in *in, double *out)
{
    rollup_each(in, out, ROLLUP_MAD);
}

static const rollup_fn TABLE[ROLLUP_CODES] = {
    [ROLLUP_AVG] = rollup_avg,
    [ROLLUP_CHANGES] = roll_changes,
    [ROLLUP_COUNT] = roll_count,
    [ROLLUP_DELTA] = roll_delta,
    [ROLLUP_DERIV] = rollup_deriv,
    [ROLLUP_DOUBLE_EXPONENTIAL] = roll_double_exponential,
    [ROLLUP_FIRST] = roll_first,
    [ROLLUP_IDELTA] = roll_idelta,
    [ROLLUP_INCREASE] = roll_increase,
    [ROLLUP_IRATE] = roll_irate,
    [ROLLUP_LAST] = roll_last,
    [ROLLUP_MAD] = roll_mad,
    [ROLLUP_MAX] = roll_max,
    [ROLLUP_MIN] = roll_min,
    [ROLLUP_PREDICT_LINEAR] = rollup_predict_linear,
    [ROLLUP_PRESENT] = roll_present,
    [ROLLUP_QUANTILE] = roll_quantile,
    [ROLLUP_RATE] = roll_rate,
    [ROLLUP_RESETS] = roll_resets,
    [ROLLUP_STDDEV] = rollup_stddev,
    [ROLLUP_STDVAR] = rollup_stdvar,
    [ROLLUP_SUM] = rollup_sum,
    [ROLLUP_TS_OF_FIRST] = roll_ts_of_first,
    [ROLLUP_TS_OF_LAST] = roll_ts_of_last,
    [ROLLUP_TS_OF_MAX] = roll_ts_of_max,
    [ROLLUP_TS_OF_MIN] = roll_ts_of_min,
};

rollup_fn rollup_function(enum rollup_code code)
{
    return TABLE[code];
}

bool rollup_keeps_name(enum rollup_code code)
{
    return code == ROLLUP_LAST || code == ROLLUP_FIRST;
}
