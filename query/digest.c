/*
 * digest.c: a window summed up.
 *
 * Joining two stretches needs their ends only: a fall from the last value of one to the first of the
 * next is a counter reset like any other. Sums of blocks were compensated when the block was written
 * and are compensated again here. NaN never gets into a block with aggregates; among samples it is
 * treated as the range functions do.
 */
#include "query/digest.h"

#include <math.h>

/* The part of joining that does not depend on what is joined. */
static void join(struct digest *d, int64_t first_t, int64_t last_t, double first, double last, double low, double high)
{
    if (d->n == 0) {
        d->first_t = first_t;
        d->first = first;
        d->min = low;
        d->max = high;
    } else if (first < d->last) {
        d->resets += d->last;
    }
    if (low < d->min || isnan(d->min)) d->min = low;
    if (high > d->max || isnan(d->max)) d->max = high;
    d->last_t = last_t;
    d->last = last;
}

void digest_add_samples(struct digest *d, const int64_t *t, const double *v, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        join(d, t[i], t[i], v[i], v[i], v[i], v[i]);
        kahan_add(&d->sum, v[i]);
        d->n++;
    }
}

void digest_add_run(struct digest *d, const struct sample_run *run)
{
    join(d, run->t_min, run->t_max, run->first, run->last, run->min, run->max);
    kahan_add(&d->sum, run->sum);
    d->resets += run->resets;
    d->n += run->n;
}

bool digest_serves(enum rollup_code code)
{
    switch (code) {
    case ROLLUP_AVG:
    case ROLLUP_COUNT:
    case ROLLUP_DELTA:
    case ROLLUP_FIRST:
    case ROLLUP_INCREASE:
    case ROLLUP_LAST:
    case ROLLUP_MAX:
    case ROLLUP_MIN:
    case ROLLUP_PRESENT:
    case ROLLUP_RATE:
    case ROLLUP_SUM:
    case ROLLUP_TS_OF_FIRST:
    case ROLLUP_TS_OF_LAST:
        return true;
    default:
        return false;
    }
}

static double rate_of(const struct digest *d, enum rollup_code code, int64_t start, int64_t end)
{
    bool counter = code != ROLLUP_DELTA;
    if (d->n < 2) return no_sample();
    double increase = d->last - d->first + (counter ? d->resets : 0);
    struct rate_span span = {d->first_t, d->last_t, (uint32_t)d->n, start, end};
    return increase * rate_factor(&span, d->first, increase, counter, code == ROLLUP_RATE);
}

double digest_value(const struct digest *d, enum rollup_code code, int64_t start, int64_t end)
{
    if (d->n == 0) return no_sample();
    switch (code) {
    case ROLLUP_AVG:
        return d->sum.sum / (double)d->n + d->sum.c / (double)d->n;
    case ROLLUP_COUNT:
        return (double)d->n;
    case ROLLUP_FIRST:
        return d->first;
    case ROLLUP_LAST:
        return d->last;
    case ROLLUP_MAX:
        return d->max;
    case ROLLUP_MIN:
        return d->min;
    case ROLLUP_PRESENT:
        return 1;
    case ROLLUP_SUM:
        return isinf(d->sum.sum) ? d->sum.sum : d->sum.sum + d->sum.c;
    case ROLLUP_TS_OF_FIRST:
        return (double)d->first_t / 1000;
    case ROLLUP_TS_OF_LAST:
        return (double)d->last_t / 1000;
    default:
        return rate_of(d, code, start, end);
    }
}
