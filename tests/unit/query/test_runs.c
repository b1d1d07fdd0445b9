/*
 * test_runs.c: one long window answered from blocks' aggregates is the window answered from samples; and quickselect is
 * sorting.
 */
#include "tests/unit/query/query_db.h"

#include <math.h>

#include "query/digest.h"
#include "query/quantile.h"
#include "query/rollup.h"
#include "storage/base/rng.h"

#define SAMPLES 6000
#define STEP_MS 15000

static struct query_db q;

static void load(const char *series, struct rng *r, bool counter, bool gaps)
{
    static int64_t t[SAMPLES];
    static double v[SAMPLES];
    double x = 0;
    for (uint32_t i = 0; i < SAMPLES; i++) {
        x = counter ? (rng_below(r, 700) == 0 ? 3 : x + (double)rng_below(r, 50))
                    : (double)rng_below(r, 2000) / 10 - 100;
        t[i] = (int64_t)i * STEP_MS;
        v[i] = gaps && rng_below(r, 500) == 0 ? (rng_chance(r, 0.5) ? f64_from_bits(STALE_NAN_BITS) : NAN) : x;
    }
    query_db_append(&q, series, t, v, NULL, SAMPLES);
}

static int setup(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    query_db_open(&q, NULL);
    load("counter_total", &r, true, false);
    load("gauge", &r, false, false);
    load("gaps", &r, false, true);
    query_db_ok(storage_flush(q.db));
    query_db_ok(storage_merge(q.db, -1));
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_db_close(&q);
    return 0;
}

/* The last number in quotes of an answer. */
static double last_number(const char *answer)
{
    const char *end = strrchr(answer, '"');
    if (!end) return -12345;
    const char *p = end;
    while (p > answer && p[-1] != '"')
        p--;
    double v;
    return num_parse_double((str){p, (size_t)(end - p)}, &v) ? v : -54321;
}

static bool near(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    return a == b || fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

static void test_blocks_and_samples_agree(void **state)
{
    (void)state;
    static const char *const FUNCTIONS[] = {"avg", "count", "delta",   "first", "increase",    "last",      "max",
                                            "min", "sum",   "present", "rate",  "ts_of_first", "ts_of_last"};
    static const char *const SERIES[] = {"counter_total", "gauge", "gaps"};
    static const double ENDS[] = {90000, 89985, 70000.5, 45000, 200000};
    for (size_t f = 0; f < ARRAY_LEN(FUNCTIONS); f++)
        for (size_t s = 0; s < ARRAY_LEN(SERIES); s++)
            for (size_t e = 0; e < ARRAY_LEN(ENDS); e++) {
                char text[128];
                bool plain = !strcmp(FUNCTIONS[f], "rate") || !strcmp(FUNCTIONS[f], "increase") ||
                             !strcmp(FUNCTIONS[f], "delta");
                snprintf(text, sizeof text, "%s%s(%s[%dh])", FUNCTIONS[f], plain ? "" : "_over_time", SERIES[s],
                         e == 3 ? 6 : 20);
                char *blocks = query_db_run(&q, text, ENDS[e], ENDS[e], 0);
                char *samples = query_db_run(&q, text, ENDS[e] - 1, ENDS[e], 1);
                if (!near(last_number(blocks), last_number(samples)))
                    fail_msg("%s at %g\nblocks:  %s\nsamples: %s", text, ENDS[e], blocks, samples);
                mem_free(blocks);
                mem_free(samples);
            }
}

/* A digest of pieces is the digest of the whole. */
static void test_digests_join(void **state)
{
    (void)state;
    const int64_t t[] = {1000, 2000, 3000, 4000, 5000, 6000};
    const double v[] = {5, 9, 2, 4, 1, 3};
    struct digest whole = {0}, parts = {0};
    digest_add_samples(&whole, t, v, 6);
    digest_add_samples(&parts, t, v, 1);
    struct sample_run run = {
        .t_min = 2000, .t_max = 4000, .n = 3, .first = 9, .last = 4, .min = 2, .max = 9, .sum = 15, .resets = 9};
    digest_add_run(&parts, &run);
    digest_add_samples(&parts, t + 4, v + 4, 2);
    assert_true(parts.n == 6 && parts.resets == whole.resets && parts.min == 1 && parts.max == 9);
    assert_true(parts.sum.sum + parts.sum.c == 24);
    assert_true(digest_value(&parts, ROLLUP_INCREASE, 0, 6000) == digest_value(&whole, ROLLUP_INCREASE, 0, 6000));
    struct digest none = {0};
    assert_true(is_stale_nan(digest_value(&none, ROLLUP_COUNT, 0, 1)));
}

static void test_select_is_sort(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static double v[300], sorted[300];
    for (int round = 0; round < 3000; round++) {
        size_t n = rng_below(&r, 300) + 1;
        uint64_t values = rng_below(&r, 100) + 1;
        for (size_t i = 0; i < n; i++)
            sorted[i] = v[i] = rng_below(&r, 50) == 0 ? NAN
                               : round % 3 == 0       ? (double)i
                                                      : (double)rng_below(&r, values);
        qsort(sorted, n, sizeof *sorted, double_order);
        double at = (double)rng_below(&r, 101) / 100;
        assert_true(near(quantile_select(at, v, n), quantile_of_sorted(at, sorted, n)));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks_and_samples_agree),
        cmocka_unit_test(test_digests_join),
        cmocka_unit_test(test_select_is_sort),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
