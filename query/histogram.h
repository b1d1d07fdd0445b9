/*
 * histogram.h: native histograms as query values: arithmetic, comparison, buckets, quantiles.
 *
 * Values are `struct hist` of storage (absolute counts as doubles). All functions that make or change
 * one take the arena its arrays live in; inputs are never changed unless the comment says "in place".
 * Semantics follow the Prometheus native histogram specification and PromQL documentation.
 */
#ifndef VARVE_QUERY_HISTOGRAM_H
#define VARVE_QUERY_HISTOGRAM_H

#include "storage/column_hist.h"

/* Deep copy. */
struct hist *hist_copy(struct arena *a, const struct hist *h);
static inline bool hist_is_custom(const struct hist *h)
{
    return h->schema == HIST_SCHEMA_CUSTOM;
}

/* What happened while two histograms were combined. */
struct hist_outcome {
    bool incompatible;    /* exponential with custom buckets: no result */
    bool reset_collision; /* the hints "reset" and "no reset" met */
    bool reconciled;      /* custom bounds differed and were intersected */
};
/* h += other, h -= other, in place; arrays are replaced from the arena. */
struct hist_outcome hist_add(struct hist *h, const struct hist *other, struct arena *a);
struct hist_outcome hist_sub(struct hist *h, const struct hist *other, struct arena *a);
/* As hist_add, with compensation carried in *comp (NULL before the first addition). */
struct hist_outcome hist_kahan_add(struct hist *h, const struct hist *other, struct hist **comp, struct arena *a);
/* A running sum or mean of histograms, compensated. Zero is the start. */
struct hist_sum {
    struct hist *sum, *comp;
    double n;
    bool mean;                                      /* what is wanted */
    bool as_mean;                                   /* sum is the mean already, since the sum would overflow */
    bool reset, no_reset, reconciled, incompatible; /* what was met; incompatible: there is no result */
};
void hist_sum_add(struct hist_sum *s, const struct hist *h, struct arena *a);
/* The result; ends the sum. */
struct hist *hist_sum_take(struct hist_sum *s, struct arena *a);

/* The value a fraction of the way from x to y. A counter that was reset between them starts from zero. NULL if they
 * are incompatible. */
struct hist *hist_between(const struct hist *x, const struct hist *y, double fraction, bool counter, struct arena *a);

void hist_mul(struct hist *h, double f); /* in place; a negative factor makes it a gauge */
void hist_div(struct hist *h, double f); /* in place; by zero: buckets go, as in Prometheus */
/* Drops empty buckets at span ends and merges touching spans, in place. */
void hist_compact(struct hist *h, struct arena *a);
/* A copy in a lower resolution; schema <= h->schema. */
struct hist *hist_to_schema(const struct hist *h, int32_t schema, struct arena *a);
bool hist_has_overflow(const struct hist *h);
/* Equal as values: schema, zero bucket, count, sum and all buckets by their bits (span layout apart). */
bool hist_equal(const struct hist *a, const struct hist *b);
/* True if h cannot have grown out of prev. Scratch memory from the arena. */
bool hist_detect_reset(const struct hist *h, const struct hist *prev, struct arena *a);
/* Removes observations above (upper) or below the limit, in place. */
void hist_trim(struct hist *h, double limit, bool upper, struct arena *a);

/* One bucket with its bounds. */
struct hist_bucket {
    double lower, upper, count;
    bool lower_inclusive, upper_inclusive;
    int32_t index;
};
/* All buckets from the lowest value to the highest (negative, zero, positive), empty ones of spans included. Bounds
 * that reach into the zero bucket are cut at it. */
struct hist_bucket *hist_buckets(const struct hist *h, struct arena *a, size_t *n);
/* Upper bound of the bucket with this index. */
double hist_bound(int32_t index, int32_t schema, const double *custom, uint32_t n_custom);

/* Notes a quantile or fraction may come with. */
enum hist_nan_note { HIST_NAN_NONE, HIST_NAN_RESULT, HIST_NAN_SKEW, HIST_NAN_FRACTION };
double hist_quantile(const struct hist *h, double q, struct arena *a, enum hist_nan_note *note);
double hist_fraction(const struct hist *h, double lower, double upper, struct arena *a, enum hist_nan_note *note);
/* Variance of observations, estimated from bucket midpoints. */
double hist_variance(const struct hist *h, struct arena *a);
/* Text as count_values makes a label of it. */
void hist_print(const struct hist *h, struct buf *out, struct arena *a);

/* Classic buckets. */
struct classic_bucket {
    double le, count;
};
struct classic_fix {
    bool forced; /* counts had to be raised to be monotonic */
    double low, high, diff;
};
/* Sorts and repairs b in place. n >= 1. */
double classic_quantile(double q, struct classic_bucket *b, size_t n, struct classic_fix *fix);
double classic_fraction(double lower, double upper, struct classic_bucket *b, size_t n);

#endif
