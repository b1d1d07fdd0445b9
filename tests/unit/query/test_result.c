/*
 * test_result.c: answers as JSON: numbers, escapes, histograms, order of series; native histograms through the engine.
 */
#include "tests/unit/query/query_db.h"

#include "query/result.h"
#include "storage/base/rng.h"
#include "storage/column_hist.h"

static struct query_db q;

/* Samples of a histogram with one positive bucket (1,2] and a zero bucket, one a minute; it grows by one each time. */
static void load_hist(const char *series, uint32_t n, uint8_t hint)
{
    struct buf blobs[8] = {0};
    str hist[8] = {0};
    int64_t t[8] = {0};
    double v[8] = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct hist_span span = {1, 1};
        double count = i + 1;
        struct hist h = {.reset_hint = hint,
                         .zero_threshold = 0.5,
                         .zero_count = 1,
                         .count = count + 1,
                         .sum = count * 1.5,
                         .n_positive_spans = 1,
                         .n_positive = 1,
                         .positive_spans = &span,
                         .positive = &count};
        hist_encode(&h, &blobs[i]);
        hist[i] = buf_as_str(&blobs[i]);
        t[i] = i * 60000;
        v[i] = h.sum;
    }
    query_db_append(&q, series, t, v, hist, n);
    for (uint32_t i = 0; i < n; i++)
        buf_deinit(&blobs[i]);
}

static int setup(void **state)
{
    (void)state;
    query_db_open(&q, NULL);
    query_db_load(&q, 60000, "v{z=\"1\"}", "0.1 1e21 -0 NaN Inf -Inf 1e-7");
    query_db_load(&q, 60000, "v{a=\"2\"}", "1");
    query_db_load(&q, 60000, "v", "2");
    query_db_load(&q, 60000, "{\"weird name\",\"l.x\"=\"tab\\there \\\"quoted\\\" \xc3\xa9\"}", "3");
    load_hist("h", 4, HIST_RESET_UNKNOWN);
    load_hist("g", 4, HIST_RESET_GAUGE);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_db_close(&q);
    return 0;
}

static void test_matrix(void **state)
{
    (void)state;
    query_db_expect(
        &q, "v", 0, 360, 60,
        "{\"resultType\":\"matrix\",\"result\":["
        "{\"metric\":{\"__name__\":\"v\"},\"values\":[[0,\"2\"],[60,\"2\"],[120,\"2\"],[180,\"2\"],[240,\"2\"]]},"
        "{\"metric\":{\"__name__\":\"v\",\"a\":\"2\"},\"values\":[[0,\"1\"],[60,\"1\"],[120,\"1\"],[180,\"1\"],[240,"
        "\"1\"]]},"
        "{\"metric\":{\"__name__\":\"v\",\"z\":\"1\"},\"values\":[[0,\"0.1\"],[60,\"1000000000000000000000\"],"
        "[120,\"-0\"],[180,\"NaN\"],[240,\"+Inf\"],[300,\"-Inf\"],[360,\"0.0000001\"]]}]}");
    query_db_expect(
        &q, "1", 0.5, 1, 0.25,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":[[0.5,\"1\"],[0.75,\"1\"],[1,\"1\"]]}]}");
    query_db_expect(&q, "nope", 0, 1, 1, "{\"resultType\":\"matrix\",\"result\":[]}");
}

static void test_escapes(void **state)
{
    (void)state;
    expect_at(&q, 0, "{\"weird name\"}",
              "[{\"metric\":{\"__name__\":\"weird name\",\"l.x\":\"tab\\there \\\"quoted\\\" "
              "\xc3\xa9\"},\"value\":[0,\"3\"]}]");
}

static void test_histograms(void **state)
{
    (void)state;
    expect_at(
        &q, 0, "h",
        "[{\"metric\":{\"__name__\":\"h\"},\"histogram\":[0,{\"count\":\"2\",\"sum\":\"1.5\",\"buckets\":[[3,\"-0.5\","
        "\"0.5\",\"1\"],[0,\"1\",\"2\",\"1\"]]}]}]");
    query_db_expect(
        &q, "h or v{a=\"2\"}", 0, 60, 60,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"__name__\":\"h\"},\"histograms\":[[0,{\"count\":"
        "\"2\",\"sum\":\"1.5\",\"buckets\":[[3,\"-0.5\",\"0.5\",\"1\"],[0,\"1\",\"2\",\"1\"]]}],[60,{\"count\":"
        "\"3\",\"sum\":\"3\",\"buckets\":[[3,\"-0.5\",\"0.5\",\"1\"],[0,\"1\",\"2\",\"2\"]]}]]},{\"metric\":{"
        "\"__name__\":\"v\",\"a\":\"2\"},\"values\":[[0,\"1\"],[60,\"1\"]]}]}");
}

static void test_histograms_in_functions(void **state)
{
    (void)state;
    expect_at(&q, 180, "histogram_count(increase(h[4m]))", "[{\"metric\":{},\"value\":[180,\"4\"]}]");
    expect_at(&q, 180, "histogram_sum(h) / histogram_count(h)", "[{\"metric\":{},\"value\":[180,\"1.2\"]}]");
    expect_at(&q, 180, "histogram_count(sum({__name__=~\"h|g\"}))", "[{\"metric\":{},\"value\":[180,\"10\"]}]");
    expect_at(&q, 180, "histogram_quantile(1, h)", "[{\"metric\":{},\"value\":[180,\"2\"]}]");
    expect_at(&q, 180, "histogram_fraction(1, 2, h)", "[{\"metric\":{},\"value\":[180,\"0.8\"]}]");
    expect_at(&q, 180, "histogram_count(h * 2 - on() g)", "[{\"metric\":{},\"value\":[180,\"5\"]}]");
    expect_at(&q, 180, "count_over_time(h[5m]) + changes(h[5m])", "[{\"metric\":{},\"value\":[180,\"7\"]}]");
    expect_at(&q, 180, "abs(h)", "[]");
    char *got = query_db_run(&q, "rate(g[5m])", 180, 180, 0);
    assert_int_equal(q.notes.n_warnings, 1);
    mem_free(got);
    expect_at(&q, 180, "h + v{a=\"2\"}", "[]");
    assert_int_equal(q.notes.n_infos, 0); /* labels differ: nothing was matched */
    expect_at(&q, 180, "h + on() v{a=\"2\"}", "[]");
    assert_int_equal(q.notes.n_infos, 1);
}

/* Printed one after the other, with what the neighbour left, labels are what they are alone. */
static void test_label_printer(void **state)
{
    (void)state;
    static const str TEXTS[] = {STR("a"), STR("bb"), STR("c\"c"), STR("\n"), STR(""), STR("long enough to be copied"),
                                STR("z")};
    struct rng r;
    rng_seed(&r, test_seed());
    struct buf alone = {0}, together = {0};
    struct json one, other;
    struct label_printer p;
    json_init(&one, &alone);
    json_init(&other, &together);
    label_printer_init(&p);
    json_array(&one);
    json_array(&other);
    struct label v[8] = {0};
    for (int i = 0; i < 3000; i++) {
        struct labels ls = {v, (uint32_t)rng_below(&r, ARRAY_LEN(v) + 1)};
        for (size_t k = 0; k < ARRAY_LEN(v); k++)
            if (i == 0 || rng_chance(&r, 0.3))
                v[k] = (struct label){TEXTS[rng_below(&r, ARRAY_LEN(TEXTS))], TEXTS[rng_below(&r, ARRAY_LEN(TEXTS))]};
        result_labels(&one, &ls);
        label_printer_put(&p, &other, &ls);
    }
    json_array_end(&one);
    json_array_end(&other);
    assert_int_equal(alone.n, together.n);
    assert_memory_equal(alone.data, together.data, alone.n);
    buf_deinit(&alone);
    buf_deinit(&together);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matrix),
        cmocka_unit_test(test_label_printer),
        cmocka_unit_test(test_escapes),
        cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_histograms_in_functions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
