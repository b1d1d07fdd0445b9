/*
 * part_aggregate.c: what a block of floats comes to, so that a window that covers it needs no decoding.
 *
 * Only blocks of finite values have aggregates, and only if their sum is finite too: NaN, stale markers
 * and infinities have rules of their own, which the query engine applies to the samples themselves.
 * Pure functions.
 */
#include <math.h>

#include "storage/part_format.h"

/* Neumaier: the compensation is added once, at the end. */
struct sum {
    double sum, lost;
};

static inline void sum_add(struct sum *s, double v)
{
    double t = s->sum + v;
    s->lost += fabs(s->sum) >= fabs(v) ? (s->sum - t) + v : (v - t) + s->sum;
    s->sum = t;
}

bool part_aggregate(const double *v, size_t n, struct block_aggregates *a)
{
    struct sum s = {0}, resets = {0};
    double low = v[0], high = v[0];
    for (size_t i = 0; i < n; i++) {
        if (!isfinite(v[i])) return false;
        sum_add(&s, v[i]);
        if (v[i] < low) low = v[i];
        if (v[i] > high) high = v[i];
        if (i > 0 && v[i] < v[i - 1]) sum_add(&resets, v[i - 1]);
    }
    *a = (struct block_aggregates){v[0], v[n - 1], low, high, s.sum + s.lost, resets.sum + resets.lost};
    return isfinite(a->sum) && isfinite(a->resets);
}

bool part_aggregate_constant(double v, size_t n, struct block_aggregates *a)
{
    *a = (struct block_aggregates){v, v, v, v, v * (double)n, 0};
    return isfinite(v) && isfinite(a->sum);
}
