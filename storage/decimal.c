/*
 * decimal.c: which decimal exponent fits a column of doubles.
 *
 * A sample of up to three runs of neighbours is scaled with every exponent in turn. The cost of one is
 * the bits of the differences between neighbours and of the residuals; a value that does not fit costs
 * its patch. The first exponent that fits all of the sample without residual ends the search: a larger
 * one only makes the integers longer. Pure functions, any thread.
 */
#include "storage/decimal.h"

#include "storage/base/varint.h"
#include "storage/kernels.h"

#define RUN 16
#define RUNS 3
#define SAMPLE (RUN * RUNS)
#define PATCH_BITS 80
#define CLEAR_WIN 8 /* with residuals, decimals must save one bit in so many over the ordered bits */

struct sample {
    double v[SAMPLE];
    size_t n;
};

static unsigned bit_length(uint64_t u)
{
    return u == 0 ? 0 : 64 - (unsigned)__builtin_clzll(u);
}

static void take_sample(const double *v, size_t n, struct sample *s)
{
    if (n <= SAMPLE) {
        memcpy(s->v, v, n * sizeof *v);
        s->n = n;
        return;
    }
    size_t stride = (n - RUN) / (RUNS - 1);
    for (size_t run = 0; run < RUNS; run++)
        memcpy(s->v + run * RUN, v + run * stride, RUN * sizeof *v);
    s->n = SAMPLE;
}

/* Bits of the differences between neighbours, runs taken as one. */
static unsigned difference_bits(const int64_t *k, size_t n)
{
    unsigned bits = 0;
    for (size_t i = 1; i < n; i++)
        bits += bit_length(zigzag((int64_t)((uint64_t)k[i] - (uint64_t)k[i - 1])));
    return bits;
}

/* Cost of the sample as decimals; *perfect if nothing was left over. */
static unsigned decimal_cost(const struct sample *s, unsigned exponent, bool *perfect)
{
    int64_t k[SAMPLE], r[SAMPLE];
    uint8_t bad[SAMPLE];
    bool residual;
    size_t n_bad = kernels_scale(s->v, s->n, exponent, k, r, bad, &residual);
    *perfect = n_bad == 0 && !residual;
    unsigned bits = 0;
    size_t good = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (bad[i]) continue;
        bits += bit_length(zigzag(r[i]));
        k[good++] = k[i];
    }
    return bits + difference_bits(k, good) + (unsigned)n_bad * PATCH_BITS;
}

static bool is_number(double v)
{
    return (f64_bits(v) & UINT64_C(0x7ff0000000000000)) != UINT64_C(0x7ff0000000000000);
}

/* Takes out what no exponent can fit, so that it does not blur the choice. */
static void drop_exceptions(struct sample *s)
{
    size_t kept = 0;
    for (size_t i = 0; i < s->n; i++)
        if (is_number(s->v[i])) s->v[kept++] = s->v[i];
    s->n = kept;
}

uint8_t decimal_choose(const double *v, size_t n)
{
    struct sample s;
    take_sample(v, n, &s);
    drop_exceptions(&s);
    if (s.n == 0) return 0;
    int64_t order[SAMPLE];
    kernels_order(s.v, s.n, order);
    unsigned bits_cost = difference_bits(order, s.n);
    unsigned least = bits_cost - bits_cost / CLEAR_WIN;
    uint8_t best = DECIMAL_NONE;
    bool perfect = false;
    for (unsigned e = 0; e <= DECIMAL_EXPONENT_MAX && !perfect; e++) {
        unsigned cost = decimal_cost(&s, e, &perfect);
        bool better = cost < least || (perfect && best == DECIMAL_NONE && cost <= bits_cost);
        if (!better) continue;
        least = cost;
        best = (uint8_t)e;
    }
    return best;
}

bool decimal_is_tight(const int64_t *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (k[i] % 10 != 0) return true;
    return false;
}
