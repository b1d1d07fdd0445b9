/*
 * rollup.h: range functions over the float samples of one series, for all steps at once.
 *
 * The window of step i is the samples [lo[i], hi[i]); both only grow from step to step, so each
 * function walks the samples once with moving state where its definition allows. Results are those of
 * Prometheus; sums over long windows come from compensated prefix sums and may differ in the last bit.
 * Pure functions over the caller's memory: any thread, one rollup_scratch each.
 */
#ifndef VARVE_QUERY_ROLLUP_H
#define VARVE_QUERY_ROLLUP_H

#include "query/functions.h"
#include "query/value.h"

/* Working memory that grows and is reused from series to series. */
struct rollup_scratch {
    void *p;
    size_t bytes;
};
void *rollup_scratch_need(struct rollup_scratch *s, size_t bytes);
void rollup_scratch_deinit(struct rollup_scratch *s);

struct rollup_in {
    const int64_t *t;
    const double *v;
    size_t n;
    const int64_t *start;    /* start timestamps of the samples, 0 = none; NULL: none has one */
    bool *overlaps;          /* with start: set if a counter's sample says it started before the sample before it */
    const uint32_t *lo, *hi; /* windows, one a step */
    uint32_t n_steps;
    int64_t end, end_step;   /* the window of step i ends at end + i * end_step */
    int64_t range;           /* and begins (open) this long before, ms */
    struct grid grid;        /* evaluation times of the steps */
    bool anchored, smoothed; /* windows in lo and hi are wider than range then */
    const double *param[2];  /* scalar arguments, one a step */
    struct rollup_scratch *scratch;
};

/* Fills lo and hi for windows (end - left, end + right]. */
void rollup_windows(const int64_t *t, size_t n, int64_t end, int64_t end_step, int64_t left, int64_t right,
                    uint32_t n_steps, uint32_t *lo, uint32_t *hi);

/* out[i]: the function's value at step i, or "no sample". */
typedef void (*rollup_fn)(const struct rollup_in *in, double *out);
rollup_fn rollup_function(enum rollup_code code);
/* The variant for in->start != NULL (rollup_start.c); the same function where start timestamps change nothing. */
rollup_fn rollup_started_function(enum rollup_code code, bool extended);
/* last_over_time and first_over_time keep the metric name. */
bool rollup_keeps_name(enum rollup_code code);

/* One window at a time, for windows that also hold histograms (rollup_hist.c); n >= 1 floats. */
double rollup_one(enum rollup_code code, const struct rollup_in *in, uint32_t step, const int64_t *t, const double *v,
                  size_t n);

/* kahansum: one more term, Neumaier's variant. */
struct kahan {
    double sum, c;
};
static inline void kahan_add(struct kahan *k, double x)
{
    double t = k->sum + x;
    if (__builtin_isinf(t))
        k->c = 0;
    else if (__builtin_fabs(k->sum) >= __builtin_fabs(x))
        k->c += (k->sum - t) + x;
    else
        k->c += (x - t) + k->sum;
    k->sum = t;
}

/* What a rate is extrapolated from: n >= 2 samples from first to last in the window (start, end], ms. */
struct rate_span {
    int64_t first, last;
    uint32_t n;
    int64_t start, end;
};

/*
 * How much of the window the increase between the samples stands for, as a factor on it. Samples that are within 1.1
 * average distances of an end are taken to reach it, others half a distance towards it; a counter does not begin below
 * zero: first_value is its first sample, increase what it gained.
 */
static inline double rate_factor(const struct rate_span *s, double first_value, double increase, bool counter,
                                 bool per_second)
{
    double to_start = (double)(s->first - s->start) / 1000, to_end = (double)(s->end - s->last) / 1000;
    double sampled = (double)(s->last - s->first) / 1000;
    double average = sampled / (double)(s->n - 1);
    double threshold = average * 1.1;
    if (to_start >= threshold) to_start = average / 2;
    if (counter && increase > 0 && first_value >= 0) {
        double to_zero = sampled * (first_value / increase);
        if (to_zero < to_start) to_start = to_zero;
    }
    if (to_end >= threshold) to_end = average / 2;
    double factor = (sampled + to_start + to_end) / sampled;
    return per_second ? factor / ((double)(s->end - s->start) / 1000) : factor;
}

/* The factor where the counter is known to have begun at zero within the window, before its first sample. n >= 1. */
static inline double rate_factor_begun(const struct rate_span *s, int64_t begun, bool per_second)
{
    double to_end = (double)(s->end - s->last) / 1000, sampled = (double)(s->last - begun) / 1000;
    double average = s->n > 1 ? (double)(s->last - s->first) / 1000 / (double)(s->n - 1) : 0;
    if (to_end >= average * 1.1) to_end = average / 2;
    double factor = (sampled + to_end) / sampled;
    return per_second ? factor / ((double)(s->end - s->start) / 1000) : factor;
}

/* ---- start timestamps: a counter was at zero then ------------------------------------------------------------ */

/* A sample and when its counter started; start 0: nobody knows. */
struct started {
    int64_t start, t;
};

/*
 * True if b's counter is another than a's. A start at b itself says nothing; one at a is that of deltas, which follow
 * each other without a gap, unless a's own start is unknown: then a told where the knowledge begins.
 */
static inline bool start_is_reset(struct started a, struct started b)
{
    if (b.start == 0 || b.start >= b.t || b.start < a.t) return false;
    return b.start > a.t || (a.start != 0 && a.start < a.t);
}

/* True if b says that it started before a, but a does not say the same. */
static inline bool start_overlaps(struct started a, struct started b)
{
    return b.start != 0 && b.start < a.t && b.start != a.start;
}

/* True if a window that is open at `from` holds the start of its first sample: it counts as a sample of zero. */
static inline bool start_is_within(struct started first, int64_t from)
{
    return first.start != 0 && first.start > from && first.start < first.t;
}

/* The q-quantile of n >= 1 values sorted by double_order; out of [0, 1] gives an infinity, NaN gives NaN. */
double quantile_of_sorted(double q, const double *v, size_t n);
/* Order of values: NaN first. For qsort. */
int double_order(const void *a, const void *b);

#endif
