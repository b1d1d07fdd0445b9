/*
 * test_aggregate.c: aggregations: grouping, sums with compensation and overflow, NaN, ranking, counting of values.
 */
#include "tests/unit/query/query_db.h"

static struct query_db q;

static int setup(void **state)
{
    (void)state;
    query_db_open(&q, NULL);
    query_db_load(&q, 60000, "m{g=\"a\",i=\"1\"}", "1 5");
    query_db_load(&q, 60000, "m{g=\"a\",i=\"2\"}", "3 _ 7");
    query_db_load(&q, 60000, "m{g=\"b\",i=\"1\"}", "NaN 2");
    query_db_load(&q, 60000, "m{g=\"b\",i=\"2\"}", "4 2");
    query_db_load(&q, 60000, "big{i=\"1\"}", "1e100");
    query_db_load(&q, 60000, "big{i=\"2\"}", "1");
    query_db_load(&q, 60000, "big{i=\"3\"}", "-1e100");
    query_db_load(&q, 60000, "huge{i=\"1\"}", "1.7e308");
    query_db_load(&q, 60000, "huge{i=\"2\"}", "1.7e308");
    query_db_load(&q, 60000, "zero", "-0");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_db_close(&q);
    return 0;
}

static void test_plain(void **state)
{
    (void)state;
    static const char *const CASES[][3] = {
        {"sum", "4", "NaN"}, {"avg", "2", "NaN"}, {"min", "1", "4"},      {"max", "3", "4"},
        {"count", "2", "2"}, {"group", "1", "1"}, {"stdvar", "1", "NaN"}, {"stddev", "1", "NaN"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char text[64], want[256];
        snprintf(text, sizeof text, "%s by (g) (m)", CASES[i][0]);
        snprintf(want, sizeof want,
                 "[{\"metric\":{\"g\":\"a\"},\"value\":[0,\"%s\"]},{\"metric\":{\"g\":\"b\"},\"value\":[0,\"%s\"]}]",
                 CASES[i][1], CASES[i][2]);
        expect_at(&q, 0, text, want);
    }
}

static void test_grouping(void **state)
{
    (void)state;
    expect_at(&q, 0, "count(m)", "[{\"metric\":{},\"value\":[0,\"4\"]}]");
    expect_at(&q, 0, "count by (nope) (m)", "[{\"metric\":{},\"value\":[0,\"4\"]}]");
    expect_at(&q, 0, "sum without (g, i) (m{g=\"a\"})", "[{\"metric\":{},\"value\":[0,\"4\"]}]");
    expect_at(&q, 0, "max without (i) (m{g=\"a\"})", "[{\"metric\":{\"g\":\"a\"},\"value\":[0,\"3\"]}]");
    expect_at(&q, 0, "count by (__name__) ({g=\"a\"})", "[{\"metric\":{\"__name__\":\"m\"},\"value\":[0,\"2\"]}]");
    expect_at(&q, 0, "sum(nope)", "[]");
}

static void test_compensation(void **state)
{
    (void)state;
    expect_at(&q, 0, "sum(big)", "[{\"metric\":{},\"value\":[0,\"1\"]}]");
    expect_at(&q, 0, "avg(big) * 3", "[{\"metric\":{},\"value\":[0,\"1\"]}]");
    expect_at(&q, 0, "sum(huge)", "[{\"metric\":{},\"value\":[0,\"+Inf\"]}]");
    expect_at(&q, 0, "avg(huge) / 1e308", "[{\"metric\":{},\"value\":[0,\"1.7\"]}]");
    expect_at(&q, 0, "1 / sum(zero)", "[{\"metric\":{},\"value\":[0,\"+Inf\"]}]");
}

static void test_each_step_for_itself(void **state)
{
    (void)state;
    query_db_expect(&q, "sum by (g) (m offset 0s) unless on() vector(1) > 1", 0, 120, 60,
                    "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"g\":\"a\"},\"values\":[[0,\"4\"],[60,\"8\"],"
                    "[120,\"12\"]]},{\"metric\":{\"g\":\"b\"},\"values\":[[0,\"NaN\"],[60,\"4\"],[120,\"4\"]]}]}");
    query_db_expect(
        &q, "count(m{i=\"2\",g=\"a\"})", 0, 480, 120,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":[[0,\"1\"],[120,\"1\"],[240,\"1\"],"
        "[360,\"1\"]]}]}");
}

#define ROW(g, i, v) "{\"metric\":{\"__name__\":\"m\",\"g\":\"" g "\",\"i\":\"" i "\"},\"value\":[0,\"" v "\"]}"

static void test_ranking(void **state)
{
    (void)state;
    expect_at(&q, 0, "topk(2, m)", "[" ROW("b", "2", "4") "," ROW("a", "2", "3") "]");
    expect_at(&q, 0, "bottomk(2, m)", "[" ROW("a", "1", "1") "," ROW("a", "2", "3") "]");
    expect_at(&q, 0, "topk(9, m)",
              "[" ROW("b", "2", "4") "," ROW("a", "2", "3") "," ROW("a", "1", "1") "," ROW("b", "1", "NaN") "]");
    expect_at(&q, 0, "topk by (g) (1, m)", "[" ROW("a", "2", "3") "," ROW("b", "2", "4") "]");
    expect_at(&q, 0, "limitk(1, m)", "[" ROW("a", "1", "1") "]");
    expect_at(&q, 0, "topk(0, m)", "[]");
    expect_at(&q, 0, "topk(-1, m)", "[]");
    expect_at(&q, 0, "count(limit_ratio(0.4, m) or limit_ratio(-0.6, m))", "[{\"metric\":{},\"value\":[0,\"4\"]}]");
    expect_at(&q, 0, "limit_ratio(0.4, m) and limit_ratio(-0.6, m)", "[]");
    expect_failure(&q, 0, "topk(NaN, m)", "execution", "Parameter value is NaN");
    expect_failure(&q, 0, "topk(1e30, m)", "execution", "overflows int64");
    query_db_expect(&q, "topk(1, m{g=\"a\"})", 0, 60, 60,
                    "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"__name__\":\"m\",\"g\":\"a\",\"i\":\"1\"},"
                    "\"values\":[[60,\"5\"]]},{\"metric\":{\"__name__\":\"m\",\"g\":\"a\",\"i\":\"2\"},\"values\":[[0,"
                    "\"3\"]]}]}");
}

static void test_quantile(void **state)
{
    (void)state;
    expect_at(&q, 0, "quantile(0.5, m{g=\"a\"})", "[{\"metric\":{},\"value\":[0,\"2\"]}]");
    expect_at(&q, 0, "quantile(0, m)", "[{\"metric\":{},\"value\":[0,\"NaN\"]}]"); /* NaN is the smallest */
    expect_at(&q, 0, "quantile(2, m)", "[{\"metric\":{},\"value\":[0,\"+Inf\"]}]");
    char *got = query_db_run(&q, "quantile(2, m)", 0, 0, 0);
    assert_int_equal(q.notes.n_warnings, 1);
    mem_free(got);
}

static void test_count_values(void **state)
{
    (void)state;
    expect_at(&q, 60, "count_values(\"v\", m offset 0s)",
              "[{\"metric\":{\"v\":\"5\"},\"value\":[60,\"1\"]},{\"metric\":{\"v\":\"3\"},\"value\":[60,\"1\"]},"
              "{\"metric\":{\"v\":\"2\"},\"value\":[60,\"2\"]}]");
    expect_at(&q, 60, "count_values by (g) (\"g\", m{g=\"b\"})", "[{\"metric\":{\"g\":\"2\"},\"value\":[60,\"2\"]}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_plain),        cmocka_unit_test(test_grouping),
        cmocka_unit_test(test_compensation), cmocka_unit_test(test_each_step_for_itself),
        cmocka_unit_test(test_ranking),      cmocka_unit_test(test_quantile),
        cmocka_unit_test(test_count_values),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
