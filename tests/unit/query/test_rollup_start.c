/*
 * test_rollup_start.c: start timestamps in range functions: kernels against formulas over one window, and the way
 * from a batch through the database and a query to an answer.
 */
#include "tests/unit/query/query_db.h"

#include <math.h>

#include "query/rollup.h"
#include "storage/base/rng.h"

#define SAMPLES_MAX 200
#define STEPS_MAX 60

struct example {
    int64_t t[SAMPLES_MAX], start[SAMPLES_MAX];
    double v[SAMPLES_MAX];
    uint32_t lo[STEPS_MAX], hi[STEPS_MAX];
    bool overlaps;
    struct rollup_scratch scratch;
    struct rollup_in in;
};

/* Known, unknown, at the sample before, nonsense. */
static int64_t random_start(struct rng *r, const struct example *x, size_t i, int64_t before)
{
    static const int64_t odd[] = {INT64_MIN, INT64_MAX, -1, 1};
    switch (rng_below(r, 8)) {
    case 0:
        return 0;
    case 1:
        return i > 0 ? x->t[i - 1] : 0;
    case 2:
        return x->t[i] - (int64_t)rng_below(r, 40000);
    case 3:
        return x->t[i] + (int64_t)rng_below(r, 2);
    case 4:
        return odd[rng_below(r, ARRAY_LEN(odd))];
    default:
        return before;
    }
}

static void make_example(struct rng *r, struct example *x)
{
    size_t n = rng_below(r, SAMPLES_MAX);
    int64_t t = 1000, start = 0;
    double v = 0;
    for (size_t i = 0; i < n; i++) {
        x->t[i] = t += 1 + (int64_t)rng_below(r, 30000);
        x->v[i] = v = rng_chance(r, 0.1) ? (double)rng_below(r, 5) : v + (double)rng_below(r, 50);
        x->start[i] = start = random_start(r, x, i, start);
    }
    x->overlaps = false;
    x->in = (struct rollup_in){.t = x->t,
                               .v = x->v,
                               .start = x->start,
                               .overlaps = &x->overlaps,
                               .n = n,
                               .lo = x->lo,
                               .hi = x->hi,
                               .n_steps = 1 + (uint32_t)rng_below(r, STEPS_MAX - 1),
                               .end = (int64_t)rng_below(r, 100000),
                               .end_step = 1 + (int64_t)rng_below(r, 100000),
                               .range = 1 + (int64_t)rng_below(r, 400000),
                               .scratch = &x->scratch};
    rollup_windows(x->t, n, x->in.end, x->in.end_step, x->in.range, 0, x->in.n_steps, x->lo, x->hi);
}

/* ---- the plain formulas */

static bool is_reset(const struct example *x, size_t k)
{
    int64_t a = x->t[k - 1], sa = x->start[k - 1], b = x->t[k], sb = x->start[k];
    if (x->v[k] < x->v[k - 1]) return true;
    if (sb == 0 || sb >= b) return false;
    if (sb != a) return sb > a;
    return sa != 0 && sa < a;
}

static bool is_overlap(const struct example *x, size_t k)
{
    int64_t s = x->start[k];
    return s != 0 && s < x->t[k - 1] && s != x->start[k - 1];
}

/* A known start within the window is one more sample, of zero, at which no extrapolation is needed. Seconds are made of
 * whole differences, as Prometheus makes them: where a gap is exactly 1.1 steps, the last bit decides. */
static double plain_rate(const struct example *x, uint32_t i, bool per_second)
{
    size_t lo = x->lo[i], hi = x->hi[i], n = hi - lo;
    int64_t end = x->in.end + i * x->in.end_step, from = end - x->in.range;
    if (n == 0) return no_sample();
    double sum = x->v[hi - 1] - x->v[lo], left;
    int64_t first = x->t[lo], last = x->t[hi - 1];
    for (size_t k = lo + 1; k < hi; k++)
        sum += is_reset(x, k) ? x->v[k - 1] : 0;
    double step = n > 1 ? (double)(last - first) / 1000 / (double)(n - 1) : 0, right = (double)(end - last) / 1000;
    if (right >= step * 1.1) right = step / 2;
    if (x->start[lo] != 0 && x->start[lo] > from && x->start[lo] < x->t[lo]) {
        sum += x->v[lo];
        left = 0;
        first = x->start[lo];
    } else {
        if (n < 2) return no_sample();
        left = (double)(first - from) / 1000;
        if (left >= step * 1.1) left = step / 2;
        if (sum > 0 && x->v[lo] >= 0) left = fmin(left, (double)(last - first) / 1000 * x->v[lo] / sum);
    }
    double sampled = (double)(last - first) / 1000, all = sum * ((sampled + left + right) / sampled);
    return per_second ? all / ((double)x->in.range / 1000) : all;
}

static double plain_irate(const struct example *x, uint32_t i)
{
    size_t lo = x->lo[i], hi = x->hi[i];
    if (hi - lo < 2) return no_sample();
    double b = x->v[hi - 1], gain = is_reset(x, hi - 1) ? b : b - x->v[hi - 2];
    return gain / ((double)(x->t[hi - 1] - x->t[hi - 2]) / 1000);
}

static double plain_resets(const struct example *x, uint32_t i)
{
    double n = 0;
    if (x->lo[i] == x->hi[i]) return no_sample();
    for (size_t k = x->lo[i] + 1; k < x->hi[i]; k++)
        n += is_reset(x, k);
    return n;
}

static bool any_overlap(const struct example *x)
{
    for (uint32_t i = 0; i < x->in.n_steps; i++)
        for (size_t k = x->lo[i] + 1; k < x->hi[i]; k++)
            if (is_overlap(x, k)) return true;
    return false;
}

static void check(double got, double want)
{
    assert_int_equal(is_stale_nan(got), is_stale_nan(want));
    if (!is_stale_nan(want)) assert_true(fabs(got - want) <= 1e-9 * fmax(1, fabs(want)));
}

static void test_kernels(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct example x = {0};
    double out[STEPS_MAX];
    for (int round = 0; round < 2000; round++) {
        make_example(&r, &x);
        rollup_started_function(ROLLUP_INCREASE, false)(&x.in, out);
        assert_int_equal(x.overlaps, any_overlap(&x));
        for (uint32_t i = 0; i < x.in.n_steps; i++)
            check(out[i], plain_rate(&x, i, false));
        rollup_started_function(ROLLUP_RATE, false)(&x.in, out);
        for (uint32_t i = 0; i < x.in.n_steps; i++)
            check(out[i], plain_rate(&x, i, true));
        rollup_started_function(ROLLUP_IRATE, false)(&x.in, out);
        for (uint32_t i = 0; i < x.in.n_steps; i++)
            check(out[i], plain_irate(&x, i));
        rollup_started_function(ROLLUP_RESETS, false)(&x.in, out);
        for (uint32_t i = 0; i < x.in.n_steps; i++)
            check(out[i], plain_resets(&x, i));
    }
    rollup_scratch_deinit(&x.scratch);
}

/* What knows no start timestamps stays what it is. */
static void test_others_are_untouched(void **state)
{
    (void)state;
    assert_true(rollup_started_function(ROLLUP_DELTA, false) == rollup_function(ROLLUP_DELTA));
    assert_true(rollup_started_function(ROLLUP_CHANGES, false) == rollup_function(ROLLUP_CHANGES));
    assert_true(rollup_started_function(ROLLUP_RATE, true) == rollup_function(ROLLUP_RATE));
    assert_true(rollup_started_function(ROLLUP_INCREASE, true) == rollup_function(ROLLUP_INCREASE));
}

/* ---- queries -------------------------------------------------------------------------------------------- */

/* Counters of one sample a minute that start anew half a minute before each, as floats and as histograms. */
static void load(struct query_db *q)
{
    int64_t t[5], start[5];
    double v[5];
    str hist[5];
    struct buf blob = {0};
    struct hist h = {.zero_threshold = 0.5, .zero_count = 60, .count = 60, .sum = 60};
    hist_encode(&h, &blob);
    for (int i = 0; i < 5; i++) {
        t[i] = (i + 1) * 60000;
        start[i] = t[i] - 30000;
        v[i] = 60;
        hist[i] = buf_as_str(&blob);
    }
    query_db_append_started(q, "a_total", t, v, NULL, start, 5);
    query_db_append_started(q, "h_total", t, v, hist, start, 5);
    start[4] = t[2];
    query_db_append_started(q, "o_total", t, v, NULL, start, 5);
    query_db_load(q, 60000, "n_total", "_ 60 60 60 60 60");
    buf_deinit(&blob);
}

/* The sum of a query's only row at a time. */
static void value_is(struct query_db *q, int at, const char *text, int want)
{
    char sum[200], json[100];
    snprintf(sum, sizeof sum, "sum(%s)", text);
    snprintf(json, sizeof json, "[{\"metric\":{},\"value\":[%d,\"%d\"]}]", at, want);
    expect_at(q, at, sum, json);
}

static void test_queries(void **state)
{
    (void)state;
    struct query_db q;
    query_db_open(&q, NULL);
    load(&q);
    for (int stored = 0; stored < 2; stored++) { /* from memory, then from a part */
        value_is(&q, 300, "increase(a_total[2m])", 120);
        value_is(&q, 300, "increase(n_total[2m])", 0);
        value_is(&q, 300, "histogram_count(increase(h_total[2m]))", 120);
        value_is(&q, 300, "increase(a_total[1m])", 60);                /* one sample is enough */
        value_is(&q, 300, "histogram_sum(increase(h_total[1m]))", 60); /* here too */
        value_is(&q, 300, "irate(a_total[3m])", 1);
        value_is(&q, 300, "histogram_count(irate(h_total[3m]))", 1);
        value_is(&q, 300, "resets(a_total[3m])", 2);
        value_is(&q, 300, "resets(h_total[3m])", 2);
        value_is(&q, 300, "resets(n_total[3m])", 0);
        value_is(&q, 300, "increase(a_total[3m:1m])", 0); /* a subquery's samples have none */
        value_is(&q, 310, "start_timestamp(a_total)", 270);
        value_is(&q, 310, "start_timestamp(h_total)", 270);
        value_is(&q, 310, "start_timestamp(n_total)", 0);
        value_is(&q, 310, "count(start_timestamp(a_total + 0)) or vector(-1)", -1);
        assert_int_equal(q.notes.n_warnings, 0);
        value_is(&q, 300, "increase(o_total[4m]) * 0", 0);
        assert_int_equal(q.notes.n_warnings, 1);
        query_db_ok(storage_flush(q.db));
    }
    query_db_close(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kernels),
        cmocka_unit_test(test_others_are_untouched),
        cmocka_unit_test(test_queries),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
