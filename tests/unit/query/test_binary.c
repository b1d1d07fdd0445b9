/*
 * test_binary.c: operators between scalars and vectors, vector matching with its errors, set operators, fill.
 */
#include "tests/unit/query/query_db.h"

static struct query_db q;

static int setup(void **state)
{
    (void)state;
    query_db_open(&q, NULL);
    query_db_load(&q, 60000, "a{i=\"1\",x=\"p\"}", "1 2 3");
    query_db_load(&q, 60000, "a{i=\"2\",x=\"p\"}", "10 _ 30");
    query_db_load(&q, 60000, "b{i=\"1\"}", "4 5 6");
    query_db_load(&q, 60000, "b{i=\"3\"}", "7");
    query_db_load(&q, 60000, "one{n=\"z\"}", "100");
    query_db_load(&q, 60000, "churn{i=\"1\",v=\"old\"}", "1 stale");
    query_db_load(&q, 60000, "churn{i=\"1\",v=\"new\"}", "_ 2");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_db_close(&q);
    return 0;
}

#define A(labels, v) "{\"metric\":{" labels "},\"value\":[0,\"" v "\"]}"
#define I1 "\"i\":\"1\""
#define I2 "\"i\":\"2\""
#define I3 "\"i\":\"3\""
#define XP "\"x\":\"p\""
#define N(name) "\"__name__\":\"" name "\","

static void test_vector_and_scalar(void **state)
{
    (void)state;
    expect_at(&q, 0, "a * 2", "[" A(I1 "," XP, "2") "," A(I2 "," XP, "20") "]");
    expect_at(&q, 0, "2 - a", "[" A(I1 "," XP, "1") "," A(I2 "," XP, "-8") "]");
    expect_at(&q, 0, "a > 5", "[" A(N("a") I2 "," XP, "10") "]");
    expect_at(&q, 0, "5 < a", "[" A(N("a") I2 "," XP, "10") "]");
    expect_at(&q, 0, "a > bool 5", "[" A(I1 "," XP, "0") "," A(I2 "," XP, "1") "]");
    expect_at(&q, 0, "-a", "[" A(I1 "," XP, "-1") "," A(I2 "," XP, "-10") "]");
    expect_at(&q, 0, "a / 0 == Inf", "[" A(I1 "," XP, "+Inf") "," A(I2 "," XP, "+Inf") "]");
    expect_at(&q, 0, "a % 3 ^ 2 atan2 1 != NaN",
              "[" A(I1 "," XP, "0.7853981633974483") "," A(I2 "," XP, "0.7853981633974483") "]");
}

static void test_one_to_one(void **state)
{
    (void)state;
    expect_at(&q, 0, "a + on(i) b", "[" A(I1, "5") "]");
    expect_at(&q, 0, "a + ignoring(x) b", "[" A(I1, "5") "]");
    expect_at(&q, 0, "a + b", "[]");
    expect_at(&q, 0, "b > on(i) a", "[" A(I1, "4") "]");
    expect_at(&q, 0, "b > ignoring(x) a", "[" A(N("b") I1, "4") "]");
    expect_at(&q, 0, "b < bool on(i) a", "[" A(I1, "0") "]");
    expect_failure(&q, 0, "a + on() one", "execution",
                   "multiple matches for labels: many-to-one matching must be explicit");
    expect_failure(&q, 0, "b + on() a", "execution", "found duplicate series for the match group {} on the right");
    expect_at(&q, 0, "nope + on() a", "[]"); /* nothing to match, nothing to complain of */
}

static void test_many_to_one(void **state)
{
    (void)state;
    expect_at(&q, 0, "a * on() group_left one", "[" A(I1 "," XP, "100") "," A(I2 "," XP, "1000") "]");
    expect_at(&q, 0, "a * on() group_left(n) one",
              "[" A(I1 ",\"n\":\"z\"," XP, "100") "," A(I2 ",\"n\":\"z\"," XP, "1000") "]");
    expect_at(&q, 0, "one - on() group_right(n, x) a",
              "[" A(I1 ",\"n\":\"z\"", "99") "," A(I2 ",\"n\":\"z\"", "90") "]");
    expect_failure(&q, 0, "a * on() group_left(i) one", "execution", "grouping labels must ensure unique match");
    expect_failure(&q, 0, "one * on() group_left a", "execution", "on the right hand-side");
}

static void test_series_that_take_turns(void **state)
{
    (void)state;
    /* two series of one match group, at different steps: one result */
    query_db_expect(
        &q, "churn * on(i) b", 0, 60, 60,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"i\":\"1\"},\"values\":[[0,\"4\"],[60,\"10\"]]}]}");
    query_db_expect(
        &q, "b * on(i) churn", 0, 60, 60,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"i\":\"1\"},\"values\":[[0,\"4\"],[60,\"10\"]]}]}");
    query_db_expect(&q, "max_over_time((b * on(i) churn)[2m:1m])", 60, 60, 60,
                    "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"i\":\"1\"},\"values\":[[60,\"10\"]]}]}");
    query_db_expect(
        &q, "b * on(i) group_left(v) churn", 0, 60, 60,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"i\":\"1\",\"v\":\"new\"},\"values\":[[60,\"10\"]]},"
        "{\"metric\":{\"i\":\"1\",\"v\":\"old\"},\"values\":[[0,\"4\"]]}]}");
}

static void test_sets(void **state)
{
    (void)state;
    expect_at(&q, 0, "a and on(i) b", "[" A(N("a") I1 "," XP, "1") "]");
    expect_at(&q, 0, "a unless on(i) b", "[" A(N("a") I2 "," XP, "10") "]");
    expect_at(&q, 0, "b or on(i) a", "[" A(N("b") I1, "4") "," A(N("b") I3, "7") "," A(N("a") I2 "," XP, "10") "]");
    expect_at(&q, 0, "a and ignoring(x) b", "[" A(N("a") I1 "," XP, "1") "]");
    expect_at(&q, 0, "a and nope", "[]");
    expect_at(&q, 0, "nope or one", "[" A(N("one") "\"n\":\"z\"", "100") "]");
    query_db_expect(&q, "a{i=\"2\"} or on() b{i=\"1\"}", 0, 360, 180,
                    "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"__name__\":\"a\",\"i\":\"2\",\"x\":\"p\"},"
                    "\"values\":[[0,\"10\"],[180,\"30\"],[360,\"30\"]]}]}");
}

static void test_fill(void **state)
{
    (void)state;
    expect_at(&q, 0, "a + on(i) fill(0) b", "[" A(I1, "5") "," A(I2, "10") "," A(I3, "7") "]");
    expect_at(&q, 0, "a + on(i) fill_right(-1) b", "[" A(I1, "5") "," A(I2, "9") "]");
    expect_at(&q, 0, "a + on(i) fill_left(1) b", "[" A(I1, "5") "," A(I3, "8") "]");
}

static void test_repeated_labels(void **state)
{
    (void)state;
    expect_failure(&q, 0, "sum by (__name__) ({i=\"1\"} * 2)", "execution", "same labelset");
    expect_at(&q, 0, "sum by (__name__) (a * 2)", "[{\"metric\":{},\"value\":[0,\"22\"]}]");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_vector_and_scalar),
        cmocka_unit_test(test_one_to_one),
        cmocka_unit_test(test_many_to_one),
        cmocka_unit_test(test_series_that_take_turns),
        cmocka_unit_test(test_sets),
        cmocka_unit_test(test_fill),
        cmocka_unit_test(test_repeated_labels),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
