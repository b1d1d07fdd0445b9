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

#include "query/budget.h"
#include "query/functions.h"
#include "query/value.h"

/* Working memory that grows and is reused from series to series. */
struct rollup_scratch {
    void *p;
    size_t bytes;
};
void *rollup_scratch_need(struct rollup_scratch *s, size_t bytes);
void rollup_scratch_deinit(struct rollup_scratch *s);

struct rate_time;

struct rollup_in {
    const int64_t *t;
    const double *v;
    size_t n;
    const int64_t *start;    /* start timestamps of the samples, 0 = none; NULL: none has one */
    bool *overlaps;          /* with start: set if a counter's sample says it started before the sample before it */
    const uint32_t *lo, *hi; /* windows, one a step */
    uint32_t n_steps;
    int64_t end, end_step;         /* the window of step i ends at end + i * end_step */
    int64_t range;                 /* and begins (open) this long before, ms */
    struct grid grid;              /* evaluation times of the steps */
    bool anchored, smoothed;       /* windows in lo and hi are wider than range then */
    const double *param[2];        /* scalar arguments, one a step */
    const struct rate_time *times; /* for rates, of each window with two samples or more; NULL: not known yet */
    struct rollup_scratch *scratch;
    struct budget *budget; /* asked now and then where windows cost what they are long; NULL: there is none */
};

/* Fills lo and hi for windows (end - left, end + right]. */
void rollup_windows(const int64_t *t, size_t n, int64_t end, int64_t end_step, int64_t left, int64_t right,
                    uint32_t n_steps, uint32_t *lo, uint32_t *hi);

/* out[i]: the function's value at step i, or "no sample". */
typedef void (*rollup_fn)(const struct rollup_in *in, double *out);
rollup_fn rollup_function(enum rollup_code code);
/* The variant for in->start != NULL (rollup_start.c); the same function where start timestamps change nothing. */
rollup_fn rollup_started_function(enum rollup_code code, bool extended);
/* After another n samples of work, for functions whose windows cost what they are long: true if the query must end. The
 * rest of the output is left as it is then, and whoever called finds the reason with budget_check. *work: 0 at first.
 */
bool rollup_must_end(const struct rollup_in *in, uint64_t *work, size_t n);
/* Each window by rollup_one. */
void rollup_each(const struct rollup_in *in, double *out, enum rollup_code code);
/* rollup_sums.c: functions that are made of sums over the window. */
void rollup_sum(const struct rollup_in *in, double *out);
void rollup_avg(const struct rollup_in *in, double *out);
void rollup_stddev(const struct rollup_in *in, double *out);
void rollup_stdvar(const struct rollup_in *in, double *out);
void rollup_deriv(const struct rollup_in *in, double *out);
void rollup_predict_linear(const struct rollup_in *in, double *out);
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

/* What the times of the samples alone say about an extrapolation, in seconds: equal for all series of one target. */
struct rate_time {
    double sampled, to_start, to_end; /* between the samples; on to the window's ends */
    double factor;                    /* how much of the window the increase between the samples stands for */
};

static inline double rate_factor_of(double sampled, double to_start, double to_end, double per_seconds)
{
    double factor = (sampled + to_start + to_end) / sampled;
    return per_seconds > 0 ? factor / per_seconds : factor;
}

/* Samples that are within 1.1 average distances of an end are taken to reach it, others half a distance towards it.
 * per_seconds: the window's length for a rate, 0 for an increase. */
static inline struct rate_time rate_time_of(const struct rate_span *s, double per_seconds)
{
    struct rate_time r = {.sampled = (double)(s->last - s->first) / 1000,
                          .to_start = (double)(s->first - s->start) / 1000,
                          .to_end = (double)(s->end - s->last) / 1000};
    double average = r.sampled / (double)(s->n - 1), threshold = average * 1.1;
    if (r.to_start >= threshold) r.to_start = average / 2;
    if (r.to_end >= threshold) r.to_end = average / 2;
    r.factor = rate_factor_of(r.sampled, r.to_start, r.to_end, per_seconds);
    return r;
}

/* The factor for a counter, which does not begin below zero. Since to_start is at most 1.1 * sampled, a first value
 * beyond 1.2 * increase cannot matter, which spares the division. */
static inline double rate_counter_factor(const struct rate_time *r, double first_value, double increase,
                                         double per_seconds)
{
    if (!(increase > 0 && first_value >= 0) || first_value > 1.2 * increase) return r->factor;
    double to_zero = r->sampled * (first_value / increase);
    return to_zero < r->to_start ? rate_factor_of(r->sampled, to_zero, r->to_end, per_seconds) : r->factor;
}

/* All of it at once; first_value is the counter's first sample, increase what it gained. */
static inline double rate_factor(const struct rate_span *s, double first_value, double increase, bool counter,
                                 bool per_second)
{
    double per_seconds = per_second ? (double)(s->end - s->start) / 1000 : 0;
    struct rate_time r = rate_time_of(s, per_seconds);
    return counter ? rate_counter_factor(&r, first_value, increase, per_seconds) : r.factor;
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

/* Fills times for in's windows. */
void rollup_rate_times(const struct rollup_in *in, bool per_second, struct rate_time *times);

/* The q-quantile of n >= 1 values sorted by double_order; out of [0, 1] gives an infinity, NaN gives NaN. */
double quantile_of_sorted(double q, const double *v, size_t n);
/* Order of values: NaN first. For qsort. */
int double_order(const void *a, const void *b);

#endif
