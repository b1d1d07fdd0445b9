/*
 * test_rollup.c: range functions over a whole grid against plain window-by-window formulas, on random series with gaps,
 * resets, NaN, infinities and constants.
 */
#include "tests/unit/testing.h"

#include <math.h>

#include "query/rollup.h"
#include "storage/base/alloc.h"
#include "storage/base/rng.h"

#define SAMPLES_MAX 400
#define STEPS_MAX 120

struct example {
    int64_t t[SAMPLES_MAX];
    double v[SAMPLES_MAX];
    size_t n;
    uint32_t lo[STEPS_MAX], hi[STEPS_MAX];
    double param[STEPS_MAX];
    struct rollup_scratch scratch;
    struct rollup_in in;
};

static double random_value(struct rng *r, int kind, double before)
{
    uint64_t x = rng_next(r);
    switch (kind) {
    case 0: /* counter with resets */
        return x % 20 == 0 ? (double)(x % 7) : before + (double)(x % 50);
    case 1: /* gauge */
        return (double)(int64_t)(x % 2000) / 10 - 100;
    case 2: /* constant but for now and then */
        return x % 10 == 0 ? (double)(x % 5) : before;
    case 3: /* far from zero: what varies would drown in squares */
        return 1e9 + (double)(x % 100) / 1000;
    default: /* anything */
        if (x % 15 == 0) return NAN;
        if (x % 15 == 1) return INFINITY;
        return ldexp((double)(int64_t)x, (int)(x % 60) - 90);
    }
}

static void make_example(struct rng *r, struct example *x, int kind)
{
    x->n = rng_next(r) % SAMPLES_MAX;
    int64_t t = (int64_t)(rng_next(r) % 100000);
    double v = 0;
    for (size_t i = 0; i < x->n; i++) {
        t += rng_next(r) % 8 == 0 ? (int64_t)(rng_next(r) % 90000) + 1 : 15000;
        x->t[i] = t;
        x->v[i] = v = random_value(r, kind, v);
    }
    x->in = (struct rollup_in){.t = x->t,
                               .v = x->v,
                               .n = x->n,
                               .lo = x->lo,
                               .hi = x->hi,
                               .n_steps = (uint32_t)(rng_next(r) % STEPS_MAX) + 1,
                               .end = (int64_t)(rng_next(r) % 200000),
                               .end_step = (int64_t)(rng_next(r) % 200000) + 1,
                               .range = (int64_t)(rng_next(r) % 1500000) + 1,
                               .param = {x->param, x->param},
                               .scratch = &x->scratch};
    x->in.grid = (struct grid){x->in.end, x->in.end_step, x->in.n_steps};
    for (uint32_t i = 0; i < STEPS_MAX; i++)
        x->param[i] = (double)(rng_next(r) % 100) / 100 + 0.001;
    rollup_windows(x->t, x->n, x->in.end, x->in.end_step, x->in.range, 0, x->in.n_steps, x->lo, x->hi);
}

static bool same(double a, double b, double tolerance)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= tolerance * fmax(fabs(a), fabs(b));
}

/* ---- the plain formulas -------------------------------------------------------------------------------- */

static double plain_rate(const struct rollup_in *in, uint32_t i, const int64_t *t, const double *v, size_t n,
                         enum rollup_code code)
{
    if (n < 2) return no_sample();
    double gain = v[n - 1] - v[0];
    for (size_t k = 1; k < n && code != ROLLUP_DELTA; k++)
        if (v[k] < v[k - 1]) gain += v[k - 1];
    double end = (double)(in->end + (int64_t)i * in->end_step) / 1000, start = end - (double)in->range / 1000;
    double first = (double)t[0] / 1000, last = (double)t[n - 1] / 1000, sampled = last - first;
    double average = sampled / (double)(n - 1), before = first - start, after = end - last;
    if (before >= 1.1 * average) before = average / 2;
    if (code != ROLLUP_DELTA && gain > 0 && v[0] >= 0) before = fmin(before, sampled * (v[0] / gain));
    if (after >= 1.1 * average) after = average / 2;
    double result = gain * ((sampled + before + after) / sampled);
    return code == ROLLUP_RATE ? result / ((double)in->range / 1000) : result;
}

static double plain(enum rollup_code code, const struct rollup_in *in, uint32_t i)
{
    const int64_t *t = in->t + in->lo[i];
    const double *v = in->v + in->lo[i];
    size_t n = in->hi[i] - in->lo[i];
    if (code == ROLLUP_RATE || code == ROLLUP_INCREASE || code == ROLLUP_DELTA) return plain_rate(in, i, t, v, n, code);
    if (n == 0) return no_sample();
    long double sum = 0;
    double count = 0, low = NAN, high = NAN, changes = 0, resets = 0;
    for (size_t k = 0; k < n; k++) {
        sum += (long double)v[k];
        count++;
        low = fmin(low, v[k]);
        high = fmax(high, v[k]);
        changes += k > 0 && v[k] != v[k - 1] && !(isnan(v[k]) && isnan(v[k - 1]));
        resets += k > 0 && v[k] < v[k - 1];
    }
    switch (code) {
    case ROLLUP_SUM:
        return (double)sum;
    case ROLLUP_AVG:
        return (double)(sum / count);
    case ROLLUP_COUNT:
        return count;
    case ROLLUP_MIN:
        return low;
    case ROLLUP_MAX:
        return high;
    case ROLLUP_CHANGES:
        return changes;
    case ROLLUP_RESETS:
        return resets;
    case ROLLUP_LAST:
        return v[n - 1];
    case ROLLUP_FIRST:
        return v[0];
    case ROLLUP_DERIV:
    case ROLLUP_PREDICT_LINEAR:
        return n < 2 ? no_sample() : rollup_one(code, in, i, t, v, n);
    default:
        return rollup_one(code, in, i, t, v, n);
    }
}

static void compare(const struct example *x, enum rollup_code code, int kind, double tolerance)
{
    double out[STEPS_MAX];
    rollup_function(code)(&x->in, out);
    for (uint32_t i = 0; i < x->in.n_steps; i++) {
        double want = plain(code, &x->in, i);
        bool ok = is_stale_nan(want) == is_stale_nan(out[i]) && same(out[i], want, tolerance);
        if (!ok) fail_msg("function %d kind %d step %u: got %.17g, want %.17g", (int)code, kind, i, out[i], want);
    }
}

static void test_against_formulas(void **state)
{
    (void)state;
    static const enum rollup_code EXACT[] = {ROLLUP_COUNT,     ROLLUP_MIN,      ROLLUP_MAX,   ROLLUP_CHANGES,
                                             ROLLUP_RESETS,    ROLLUP_LAST,     ROLLUP_FIRST, ROLLUP_QUANTILE,
                                             ROLLUP_TS_OF_MAX, ROLLUP_TS_OF_MIN};
    static const enum rollup_code CLOSE[] = {ROLLUP_RATE, ROLLUP_INCREASE, ROLLUP_DELTA};
    struct rng r;
    rng_seed(&r, test_seed());
    struct example *x = mem_zalloc(sizeof *x);
    for (int round = 0; round < 500; round++) {
        int kind = round % 5;
        make_example(&r, x, kind);
        for (size_t i = 0; i < ARRAY_LEN(EXACT); i++)
            compare(x, EXACT[i], kind, 0);
        for (size_t i = 0; i < ARRAY_LEN(CLOSE) && kind != 4; i++)
            compare(x, CLOSE[i], kind, 1e-9);
        if (kind == 4) continue; /* sums of wild values are a matter of order */
        compare(x, ROLLUP_SUM, kind, 1e-13);
        compare(x, ROLLUP_AVG, kind, 1e-13);
        compare(x, ROLLUP_STDDEV, kind, 1e-10);
        compare(x, ROLLUP_STDVAR, kind, 1e-10);
        compare(x, ROLLUP_DERIV, kind, 1e-10);
        compare(x, ROLLUP_PREDICT_LINEAR, kind, 1e-10);
    }
    rollup_scratch_deinit(&x->scratch);
    mem_free(x);
}

/* Long windows of a query that nobody waits for any more are not gone through to the end. */
static void test_ends_with_its_query(void **state)
{
    (void)state;
    static const enum rollup_code CODES[] = {ROLLUP_MAD, ROLLUP_QUANTILE, ROLLUP_DOUBLE_EXPONENTIAL};
    enum { N = 20000, STEPS = 64 };
    struct example *x = mem_zalloc(sizeof *x);
    int64_t *t = mem_alloc(N * sizeof *t);
    double *v = mem_alloc(N * sizeof *v), out[STEPS];
    uint32_t lo[STEPS], hi[STEPS];
    for (size_t i = 0; i < N; i++) {
        t[i] = (int64_t)i * 1000;
        v[i] = (double)(i % 977);
    }
    for (uint32_t i = 0; i < STEPS; i++) {
        lo[i] = i;
        hi[i] = N - STEPS + i;
        x->param[i] = 0.5;
    }
    atomic_bool canceled = true;
    struct budget budget;
    budget_init(&budget, 0, 0, 0, &canceled);
    struct rollup_in in = {.t = t, .v = v, .n = N, .lo = lo, .hi = hi, .n_steps = STEPS};
    in.grid = (struct grid){0, 1, STEPS};
    in.param[0] = in.param[1] = x->param;
    in.scratch = &x->scratch;
    in.budget = &budget;
    for (size_t i = 0; i < ARRAY_LEN(CODES); i++) {
        out[STEPS - 1] = -7;
        rollup_function(CODES[i])(&in, out);
        assert_true(out[STEPS - 1] == -7);
    }
    rollup_scratch_deinit(&x->scratch);
    mem_free(x);
    mem_free(t);
    mem_free(v);
}

static double once(enum rollup_code code, const double *v, size_t n)
{
    int64_t t[64];
    double out;
    uint32_t lo = 0, hi = (uint32_t)n;
    struct rollup_scratch scratch = {0};
    static const double PARAM[] = {0.5};
    for (size_t i = 0; i < n; i++)
        t[i] = (int64_t)(i + 1) * 1000;
    struct rollup_in in = {.t = t, .v = v, .n = n, .lo = &lo, .hi = &hi, .n_steps = 1};
    in.end = in.range = (int64_t)n * 1000;
    in.end_step = 1;
    in.grid = (struct grid){in.end, 1, 1};
    in.param[0] = in.param[1] = PARAM;
    in.scratch = &scratch;
    rollup_function(code)(&in, &out);
    rollup_scratch_deinit(&scratch);
    return out;
}

static void test_edges(void **state)
{
    (void)state;
    const double huge[] = {1.7e308, 1.7e308, 1.6e308, 1.7e308};
    assert_true(isinf(once(ROLLUP_SUM, huge, 4)));
    assert_true(same(once(ROLLUP_AVG, huge, 4), 1.675e308, 1e-15));
    const double cancel[] = {1, 1e100, 1, -1e100};
    assert_true(once(ROLLUP_SUM, cancel, 4) == 2);
    assert_true(once(ROLLUP_AVG, cancel, 4) == 0.5);
    const double nans[] = {NAN, NAN};
    assert_true(isnan(once(ROLLUP_MAX, nans, 2)) && !is_stale_nan(once(ROLLUP_MAX, nans, 2)));
    const double numbers[] = {NAN, 2, NAN, 1};
    assert_true(once(ROLLUP_MAX, numbers, 4) == 2 && once(ROLLUP_MIN, numbers, 4) == 1);
    assert_true(is_stale_nan(once(ROLLUP_RATE, numbers, 1)));
    assert_true(is_stale_nan(once(ROLLUP_IRATE, numbers, 1)));
    assert_true(is_stale_nan(once(ROLLUP_DERIV, numbers, 1)));
    const double line[] = {1, 3, 5, 7, 9};
    assert_true(once(ROLLUP_DERIV, line, 5) == 2);
    assert_true(once(ROLLUP_PREDICT_LINEAR, line, 5) == 10);
    assert_true(once(ROLLUP_DOUBLE_EXPONENTIAL, line, 5) == 9);
    assert_true(once(ROLLUP_STDVAR, line, 5) == 8);
    assert_true(once(ROLLUP_MAD, line, 5) == 2);
    const double ties[] = {5, 7, 7, 5, 5};
    assert_true(once(ROLLUP_TS_OF_MAX, ties, 5) == 3 && once(ROLLUP_TS_OF_MIN, ties, 5) == 5);
}

static void test_windows_are_left_open(void **state)
{
    (void)state;
    const int64_t t[] = {1000, 2000, 3000, 4000};
    uint32_t lo[3], hi[3];
    rollup_windows(t, 4, 2000, 1000, 1000, 0, 3, lo, hi);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(lo[i], i + 1);
        assert_int_equal(hi[i], i + 2);
    }
    rollup_windows(t, 4, 3000, 0, 2000, 1000, 2, lo, hi); /* @: the same window for all steps */
    assert_int_equal(lo[1], 1);
    assert_int_equal(hi[1], 4);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_formulas),
        cmocka_unit_test(test_ends_with_its_query),
        cmocka_unit_test(test_edges),
        cmocka_unit_test(test_windows_are_left_open),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
