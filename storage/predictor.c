/*
 * predictor.c: tries the predictors on a column of integers and applies the best.
 *
 * A family of predictors has one difference formula and up to two ways to make it unsigned: zigzag, or
 * the offset from the least difference. The least is a robust one: differences far below the bulk are
 * ignored and wrap to huge numbers, which go to the patch list, instead of widening all the others.
 *
 * The estimate of a number's cost is its bit length and a few bits more if it is not 0: measured on
 * real series, that chooses as well as the entropy of the bit lengths (sizes within 0.5 %) and needs
 * no tables. Pure functions over the caller's arrays, all arithmetic modulo 2^64; any thread.
 */
#include "storage/predictor.h"

#include "storage/base/varint.h"

enum family { PLAIN, DELTA, DELTA2, LINEAR };

#define NONZERO_BITS 3 /* what breaking a run of zeros costs */
#define FIELD_BITS 2   /* the length bits of a varint */

/* Second differences of noise are spread wider than their bit lengths tell: they must win by one part in so many
 * (counters with uniform steps chose them in one block of 20 and cost 1 % more). */
#define DELTA2_HANDICAP 16

bool predictor_has_parameter(enum predictor p)
{
    return p == DELTA_OFFSET || p == DELTA2_ZIGZAG || p == LINEAR_OFFSET;
}

static enum family family_of(enum predictor p)
{
    static const enum family families[PREDICTORS] = {PLAIN, PLAIN, DELTA, DELTA, DELTA2, LINEAR};
    return families[p];
}

static size_t order_of(enum family f)
{
    return f == DELTA2 ? 2 : f == DELTA ? 1 : 0;
}

size_t predictor_count(enum predictor p, size_t n)
{
    size_t order = order_of(family_of(p));
    return n > order ? n - order : 0;
}

/* ---- estimating */

static inline uint64_t shift_down(uint64_t d, unsigned shift)
{
    return (uint64_t)((int64_t)d >> shift);
}

/* Bit length and what a number other than 0 costs besides. */
static inline uint64_t number_cost(uint64_t u)
{
    return (u == 0 ? 0 : NONZERO_BITS) + 64 - (uint64_t)__builtin_clzll(u << 1 | 1);
}

static uint64_t field_cost(uint64_t field)
{
    return number_cost(zigzag((int64_t)field)) + FIELD_BITS;
}

/* The i-th difference, before offset or zigzag; i counts from order_of(family). */
static inline __attribute__((always_inline)) uint64_t difference(const enum family f, const struct plan *p,
                                                                 const uint64_t *k, size_t i)
{
    switch (f) {
    case PLAIN:
        return shift_down(k[i] - p->anchor, p->shift);
    case DELTA:
        return shift_down(k[i] - k[i - 1], p->shift);
    case DELTA2:
        return shift_down(k[i] - 2 * k[i - 1] + k[i - 2], p->shift);
    case LINEAR:
    default:
        return shift_down(k[i] - p->anchor - i * (p->parameter << p->shift), p->shift);
    }
}

static inline __attribute__((always_inline)) uint64_t sum_zigzag(const enum family f, const struct plan *p,
                                                                 const uint64_t *k, size_t n)
{
    uint64_t cost = 0;
    for (size_t i = order_of(f); i < n; i++)
        cost += number_cost(zigzag((int64_t)difference(f, p, k, i)));
    return cost;
}

static inline __attribute__((always_inline)) uint64_t sum_offset(const enum family f, const struct plan *p,
                                                                 const uint64_t *k, size_t n, uint64_t base)
{
    uint64_t cost = 0;
    for (size_t i = order_of(f); i < n; i++)
        cost += number_cost(difference(f, p, k, i) - base);
    return cost;
}

/* Below this lie outliers only, judged by a sample of the differences. */
static inline __attribute__((always_inline)) int64_t bottom_of(const enum family f, const struct plan *p,
                                                               const uint64_t *k, size_t n)
{
    int64_t sample[16] = {0};
    size_t count = 0, step = (n - order_of(f)) / ARRAY_LEN(sample) + 1;
    for (size_t i = order_of(f); i < n; i += step) {
        int64_t d = (int64_t)difference(f, p, k, i);
        size_t at = count++;
        for (; at > 0 && sample[at - 1] > d; at--)
            sample[at] = sample[at - 1];
        sample[at] = d;
    }
    int64_t low = sample[count > 4], high = sample[count > 4 ? count - 2 : count - 1];
    uint64_t slack = 4 * ((uint64_t)high - (uint64_t)low) + 64;
    if ((uint64_t)low - (uint64_t)INT64_MIN < slack) return INT64_MIN;
    return (int64_t)((uint64_t)low - slack);
}

/* The least difference that is no outlier. */
static inline __attribute__((always_inline)) uint64_t least_of(const enum family f, const struct plan *p,
                                                               const uint64_t *k, size_t n)
{
    int64_t bottom = bottom_of(f, p, k, n), least[2] = {INT64_MAX, INT64_MAX};
    size_t i = order_of(f);
    for (; i + 2 <= n; i += 2) {
        int64_t a = (int64_t)difference(f, p, k, i), b = (int64_t)difference(f, p, k, i + 1);
        least[0] = a >= bottom && a < least[0] ? a : least[0];
        least[1] = b >= bottom && b < least[1] ? b : least[1];
    }
    if (i < n) {
        int64_t a = (int64_t)difference(f, p, k, i);
        least[0] = a >= bottom && a < least[0] ? a : least[0];
    }
    return (uint64_t)(least[0] < least[1] ? least[0] : least[1]);
}

/* ---- planning; `values` has at least order_of(family) + 1 integers */

/* Trailing zero bits that all differences have; 0 if there is no difference. */
static unsigned common_shift(const int64_t *values, size_t n)
{
    const uint64_t *k = (const uint64_t *)values;
    uint64_t any[2] = {0};
    for (size_t i = 0; i + 2 <= n; i += 2) {
        any[0] |= k[i] ^ k[0];
        any[1] |= k[i + 1] ^ k[0];
    }
    any[0] |= any[1] | (k[n - 1] ^ k[0]);
    return any[0] == 0 ? 0 : (unsigned)__builtin_ctzll(any[0]);
}

static struct plan plan_plain_zigzag(const uint64_t *k, size_t n, unsigned shift)
{
    struct plan p = {.predictor = PLAIN_ZIGZAG, .shift = shift};
    p.anchor = k[0] & ((UINT64_C(1) << shift) - 1);
    p.cost = sum_zigzag(PLAIN, &p, k, n) + field_cost(p.anchor);
    return p;
}

static struct plan plan_plain_offset(const uint64_t *k, size_t n, unsigned shift)
{
    struct plan p = {.predictor = PLAIN_OFFSET, .shift = shift, .anchor = k[0]};
    p.anchor += least_of(PLAIN, &p, k, n) << shift;
    p.cost = sum_offset(PLAIN, &p, k, n, 0) + field_cost(p.anchor);
    return p;
}

static struct plan plan_delta_zigzag(const uint64_t *k, size_t n, unsigned shift)
{
    struct plan p = {.predictor = DELTA_ZIGZAG, .shift = shift, .anchor = k[0]};
    p.cost = sum_zigzag(DELTA, &p, k, n) + field_cost(p.anchor);
    return p;
}

static struct plan plan_delta_offset(const uint64_t *k, size_t n, unsigned shift)
{
    struct plan p = {.predictor = DELTA_OFFSET, .shift = shift, .anchor = k[0]};
    p.parameter = least_of(DELTA, &p, k, n);
    p.cost = sum_offset(DELTA, &p, k, n, p.parameter) + field_cost(p.anchor) + field_cost(p.parameter);
    return p;
}

static struct plan plan_delta2(const uint64_t *k, size_t n, unsigned shift)
{
    struct plan p = {.predictor = DELTA2_ZIGZAG, .shift = shift, .anchor = k[0]};
    p.parameter = shift_down(k[1] - k[0], shift);
    uint64_t sum = sum_zigzag(DELTA2, &p, k, n);
    p.cost = sum + sum / DELTA2_HANDICAP + field_cost(p.anchor) + field_cost(p.parameter);
    return p;
}

static struct plan plan_linear(const uint64_t *k, size_t n, unsigned shift)
{
    struct plan p = {.predictor = LINEAR_OFFSET, .shift = shift, .anchor = k[0]};
    int64_t rise = (int64_t)shift_down(k[n - 1] - k[0], shift), steps = (int64_t)n - 1;
    int64_t step = rise / steps, rest = rise % steps;
    p.parameter = (uint64_t)(step + (2 * rest >= steps) - (2 * rest <= -steps));
    p.anchor += least_of(LINEAR, &p, k, n) << shift;
    p.cost = sum_offset(LINEAR, &p, k, n, 0) + field_cost(p.anchor) + field_cost(p.parameter);
    return p;
}

static struct plan plan_with(enum predictor predictor, const uint64_t *k, size_t n, unsigned shift)
{
    switch (predictor) {
    case PLAIN_ZIGZAG:
        return plan_plain_zigzag(k, n, shift);
    case DELTA_OFFSET:
        return plan_delta_offset(k, n, shift);
    case DELTA_ZIGZAG:
        return plan_delta_zigzag(k, n, shift);
    case DELTA2_ZIGZAG:
        return plan_delta2(k, n, shift);
    case LINEAR_OFFSET:
        return plan_linear(k, n, shift);
    default:
        return plan_plain_offset(k, n, shift);
    }
}

struct plan predictor_plan(enum predictor predictor, const int64_t *k, size_t n)
{
    return plan_with(n > 2 ? predictor : PLAIN_OFFSET, (const uint64_t *)k, n, common_shift(k, n));
}

struct plan predictor_choose(const int64_t *k, size_t n)
{
    unsigned shift = common_shift(k, n);
    struct plan best = plan_plain_offset((const uint64_t *)k, n, shift);
    if (n <= 2) return best;
    for (enum predictor i = PLAIN_ZIGZAG; i < PREDICTORS; i++) {
        struct plan p = plan_with(i, (const uint64_t *)k, n, shift);
        if (p.cost < best.cost) best = p;
    }
    return best;
}

/* ---- applying */

static inline __attribute__((always_inline)) void apply_zigzag(const enum family f, const struct plan *p,
                                                               const uint64_t *k, size_t n, uint64_t *u)
{
    for (size_t i = order_of(f); i < n; i++)
        *u++ = zigzag((int64_t)difference(f, p, k, i));
}

static inline __attribute__((always_inline)) void apply_offset(const enum family f, const struct plan *p,
                                                               const uint64_t *k, size_t n, uint64_t base, uint64_t *u)
{
    for (size_t i = order_of(f); i < n; i++)
        *u++ = difference(f, p, k, i) - base;
}

static void apply(const struct plan p, const uint64_t *k, size_t n, uint64_t *u)
{
    switch (p.predictor) {
    case PLAIN_OFFSET:
        apply_offset(PLAIN, &p, k, n, 0, u);
        return;
    case PLAIN_ZIGZAG:
        apply_zigzag(PLAIN, &p, k, n, u);
        return;
    case DELTA_OFFSET:
        apply_offset(DELTA, &p, k, n, p.parameter, u);
        return;
    case DELTA_ZIGZAG:
        apply_zigzag(DELTA, &p, k, n, u);
        return;
    case DELTA2_ZIGZAG:
        apply_zigzag(DELTA2, &p, k, n, u);
        return;
    default:
        apply_offset(LINEAR, &p, k, n, 0, u);
    }
}

void predictor_apply(const struct plan *p, const int64_t *k, size_t n, uint64_t *u)
{
    apply(*p, (const uint64_t *)k, n, u);
}

/* ---- restoring */

static void restore_plain(const struct plan p, uint64_t *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        k[i] = p.anchor + (k[i] << p.shift);
}

static void restore_plain_zigzag(const struct plan p, uint64_t *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        k[i] = p.anchor + ((uint64_t)unzigzag(k[i]) << p.shift);
}

static void restore_delta(const struct plan p, uint64_t *k, size_t n)
{
    uint64_t last = p.anchor;
    k[0] = last;
    for (size_t i = 1; i < n; i++)
        k[i] = last += (k[i] + p.parameter) << p.shift;
}

static void restore_delta_zigzag(const struct plan p, uint64_t *k, size_t n)
{
    uint64_t last = p.anchor;
    k[0] = last;
    for (size_t i = 1; i < n; i++)
        k[i] = last += (uint64_t)unzigzag(k[i]) << p.shift;
}

static void restore_delta2(const struct plan p, uint64_t *k, size_t n)
{
    uint64_t last = p.anchor, step = p.parameter << p.shift;
    k[0] = last;
    if (n > 1) k[1] = last += step;
    for (size_t i = 2; i < n; i++) {
        step += (uint64_t)unzigzag(k[i]) << p.shift;
        k[i] = last += step;
    }
}

static void restore_linear(const struct plan p, uint64_t *k, size_t n)
{
    uint64_t line = p.anchor, step = p.parameter << p.shift;
    for (size_t i = 0; i < n; i++, line += step)
        k[i] = line + (k[i] << p.shift);
}

static void restore(const struct plan p, uint64_t *k, size_t n)
{
    switch (p.predictor) {
    case PLAIN_OFFSET:
        restore_plain(p, k, n);
        return;
    case PLAIN_ZIGZAG:
        restore_plain_zigzag(p, k, n);
        return;
    case DELTA_OFFSET:
        restore_delta(p, k, n);
        return;
    case DELTA_ZIGZAG:
        restore_delta_zigzag(p, k, n);
        return;
    case DELTA2_ZIGZAG:
        restore_delta2(p, k, n);
        return;
    default:
        restore_linear(p, k, n);
    }
}

void predictor_restore(const struct plan *p, int64_t *k, size_t n)
{
    restore(*p, (uint64_t *)k, n);
}
