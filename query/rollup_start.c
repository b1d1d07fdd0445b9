/*
 * rollup_start.c: rate, increase and irate of floats that carry start timestamps.
 *
 * A start timestamp says when the counter was zero. So a counter may be found reset although its value grew, and a
 * window that holds the start of its first sample needs no guess of what came before it: even a window of one
 * sample has an increase then. Kept apart from rollup.c, whose kernels need not ask. Pure functions, as there.
 */
#include "query/rollup.h"

static struct started started_at(const struct rollup_in *in, size_t k)
{
    return (struct started){in->start[k], in->t[k]};
}

/* Positions k where the counter of sample k is not that of sample k - 1. */
static size_t list_resets(const struct rollup_in *in, uint32_t *at)
{
    size_t found = 0;
    for (size_t k = 1; k < in->n; k++) {
        at[found] = (uint32_t)k;
        found += in->v[k] < in->v[k - 1] || start_is_reset(started_at(in, k - 1), started_at(in, k));
    }
    return found;
}

static void look_for_overlaps(const struct rollup_in *in, size_t lo, size_t hi)
{
    for (size_t k = lo + 1; k < hi && !*in->overlaps; k++)
        *in->overlaps = start_overlaps(started_at(in, k - 1), started_at(in, k));
}

/* The increase over [lo, hi) of the window that ends at `end`; sum: between the samples. */
static double window_rate(const struct rollup_in *in, uint32_t lo, uint32_t hi, int64_t end, double sum,
                          bool per_second)
{
    struct rate_span span = {in->t[lo], in->t[hi - 1], hi - lo, end - in->range, end};
    if (start_is_within(started_at(in, lo), span.start))
        return (sum + in->v[lo]) * rate_factor_begun(&span, in->start[lo], per_second);
    if (span.n < 2) return no_sample();
    return sum * rate_factor(&span, in->v[lo], sum, true, per_second);
}

static void rates(const struct rollup_in *in, double *out, bool per_second)
{
    uint32_t *resets = rollup_scratch_need(in->scratch, (in->n + 1) * sizeof *resets);
    size_t n_resets = list_resets(in, resets), from = 0; /* first reset behind the window's first sample */
    uint32_t looked = 0;                                 /* samples that were looked at for overlaps */
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t lo = in->lo[i], hi = in->hi[i];
        out[i] = no_sample();
        if (lo == hi) continue;
        double sum = in->v[hi - 1] - in->v[lo];
        while (from < n_resets && resets[from] <= lo)
            from++;
        for (size_t r = from; r < n_resets && resets[r] < hi; r++)
            sum += in->v[resets[r] - 1];
        look_for_overlaps(in, looked > lo ? looked - 1 : lo, hi);
        looked = hi;
        out[i] = window_rate(in, lo, hi, in->end + (int64_t)i * in->end_step, sum, per_second);
    }
}

static void roll_rate(const struct rollup_in *in, double *out)
{
    rates(in, out, true);
}

static void roll_increase(const struct rollup_in *in, double *out)
{
    rates(in, out, false);
}

static void roll_irate(const struct rollup_in *in, double *out)
{
    for (uint32_t i = 0; i < in->n_steps; i++) {
        uint32_t lo = in->lo[i], hi = in->hi[i];
        out[i] = no_sample();
        if (hi - lo < 2) continue;
        double a = in->v[hi - 2], b = in->v[hi - 1];
        bool reset = b < a || start_is_reset(started_at(in, hi - 2), started_at(in, hi - 1));
        out[i] = (reset ? b : b - a) / ((double)(in->t[hi - 1] - in->t[hi - 2]) / 1000);
    }
}

rollup_fn rollup_started_function(enum rollup_code code, bool extended)
{
    if (code == ROLLUP_IRATE) return roll_irate;
    if (code == ROLLUP_RATE && !extended) return roll_rate;
    if (code == ROLLUP_INCREASE && !extended) return roll_increase;
    return rollup_function(code);
}
