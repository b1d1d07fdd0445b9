/* Units format, parse_json: one line, many lines, JSON; printing and parsing are inverse. */
#include "tests/unit/query/query_corpus.h"
#include "tests/unit/query/query_text.h"

#include "query/query.h"
#include "storage/base/rng.h"

static void test_one_line(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"SUM  (x)", "sum(x)"},
        {"sum(x)without(a)", "sum without (a) (x)"},
        {"topk by(a)(5,x)", "topk by (a) (5, x)"},
        {"a-on()c", "a - on () c"},
        {"a - on(b) group_left(x, y) c", "a - on (b) group_left (x, y) c"},
        {"a - on(b) group_right c", "a - on (b) group_right () c"},
        {"a - ignoring() c", "a - c"},
        {"a - ignoring() group_left c", "a - ignoring () group_left () c"},
        {"a > bool 0", "a > bool 0"},
        {"a + fill(0) b", "a + fill (0) b"},
        {"a + fill_right(Inf) fill_left(-1e30) b", "a + fill_left (-1e+30) fill_right (+Inf) b"},
        {"a offset 60s", "a offset 1m"},
        {"a offset -7m", "a offset -7m"},
        {"a offset 0s", "a"},
        {"a offset 0.0005 - 4", "a - 4"},
        {"a[300] offset 1m @ 10", "a[5m] @ 10.000 offset 1m"},
        {"a[90d:12w]", "a[90d:12w]"},
        {"a[1h:5m] @ start() offset 1m", "a[1h:5m] @ start() offset 1m"},
        {"a @ -0.0015", "a @ -0.002"},
        {"a smoothed @ 5 offset 1m", "a @ 5.000 smoothed offset 1m"},
        {"a[5m] anchored @ 5", "a[5m] anchored @ 5.000"},
        {"{z=\"1\",b!=\"2\",\"a.b\"=~\"3\",c!~\"4\"}", "{\"a.b\"=~\"3\",b!=\"2\",c!~\"4\",z=\"1\"}"},
        {"{__name__=\"a\"}", "{__name__=\"a\"}"},
        {"{\"a b\"}", "{__name__=\"a b\"}"},
        {"1e3", "1000"},
        {"1e-7", "0.0000001"},
        {"-Inf", "-Inf"},
        {"+inf", "+Inf"},
        {"-inf ^ 2", "-Inf ^ 2"},
        {"nan", "NaN"},
        {"-0", "-0"},
        {"1h30m", "1h30m"},
        {"-90s", "-1m30s"},
        {"1s1ms", "1s1ms"},
        {"x[1h + 30 * 2]", "x[1h + 30 * 2]"},
        {"x[((step()))]", "x[(step())]"},
        {"x[+step()]", "x[step()]"},
        {"x[-(-step())]", "x[-(-step())]"},
        {"x[(5m)]", "x[5m]"},
        {"x offset -step()", "x offset -step()"},
        {"x offset - -5m", "x offset 5m"},
        {"x offset (1h + 2)", "x offset (1h + 2)"},
        {"x offset (5m) * 2", "x offset (5m * 2)"},
        {"x offset (1m + 2m) * 2", "x offset (1m + 2m) * 2"},
        {"x offset -+2 ^ 2", "x offset (-2 ^ 2)"},
        {"x offset -+step() + 3", "x offset (-step() + 3)"},
        {"x offset (1m + 2m) @ end() + y", "x offset (1m + 2m) @ end() + y"},
        {"((a))", "((a))"},
        {"- (a)", "-(a)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_text(cases[i][0], cases[i][1]);
}

static void expect_pretty(const char *query, const char *want)
{
    struct arena a = {0};
    struct expr *e;
    struct buf out = {0};
    assert_ok(promql_parse(str_of(query), true, &a, &e));
    promql_pretty(e, &out);
    expr_deinit(e);
    char *got = mem_dup_str(buf_as_str(&out));
    assert_string_equal(got, want);
    mem_free(got);
    buf_deinit(&out);
    arena_deinit(&a);
}

#define LONG "a_rather_long_metric_name_that_fills_most_of_a_line{with=\"a_label\",and=\"another\"}"
#define LONG_OUT "a_rather_long_metric_name_that_fills_most_of_a_line{and=\"another\",with=\"a_label\"}"

static void test_pretty(void **state)
{
    (void)state;
    expect_pretty("sum(x)", "sum(x)");
    expect_pretty("sum by (a, b, c) (rate(" LONG "[5m]))", "sum by (a, b, c) (\n"
                                                           "  rate(" LONG_OUT "[5m])\n"
                                                           ")");
    expect_pretty(LONG " + on (x) " LONG " * 2 + 1", "    " LONG_OUT "\n"
                                                     "  + on (x)\n"
                                                     "    " LONG_OUT " * 2\n"
                                                     "+\n"
                                                     "  1");
    expect_pretty("label_join(sum(" LONG " > 1), \"a\", \"b\", \"c\")",
                  "label_join(\n  sum(" LONG_OUT " > 1),\n  \"a\",\n  \"b\",\n  \"c\"\n)");
    expect_pretty("topk(3, (" LONG " - " LONG "))", "topk(\n"
                                                    "  3,\n"
                                                    "  (\n"
                                                    "      " LONG_OUT "\n"
                                                    "    -\n"
                                                    "      " LONG_OUT "\n"
                                                    "  )\n"
                                                    ")");
    expect_pretty("-sum(" LONG " + " LONG ")", "-sum(\n"
                                               "    " LONG_OUT "\n"
                                               "  +\n"
                                               "    " LONG_OUT "\n"
                                               ")");
}

static void expect_tree(const char *query, const char *want)
{
    struct buf out = {0};
    assert_ok(query_parse_tree(str_of(query), true, &out));
    char *got = mem_dup_str(buf_as_str(&out));
    assert_string_equal(got, want);
    mem_free(got);
    buf_deinit(&out);
}

#define SELECTOR(name, type)                                                                                           \
    "\"name\":\"" name "\",\"offset\":0,\"startOrEnd\":null,\"timestamp\":null,\"type\":\"" type "\"}"
#define VECTOR(name)                                                                                                   \
    "{\"matchers\":[{\"name\":\"__name__\",\"type\":\"=\",\"value\":\"" name "\"}]," SELECTOR(name, "vectorSelector")

static void test_tree(void **state)
{
    (void)state;
    expect_tree("1h", "{\"type\":\"numberLiteral\",\"val\":\"3600\"}");
    expect_tree("\"a\\n<\"", "{\"type\":\"stringLiteral\",\"val\":\"a\\n<\"}");
    expect_tree("-(x)",
                "{\"expr\":{\"expr\":" VECTOR("x") ",\"type\":\"parenExpr\"},\"op\":\"-\",\"type\":\"unaryExpr\"}");
    expect_tree("x + on (a) fill_left(5) y",
                "{\"bool\":false,\"lhs\":" VECTOR(
                    "x") ",\"matching\":{\"card\":\"one-to-one\",\"fillValues\":{\"lhs\":5,"
                         "\"rhs\":null},\"include\":[],\"labels\":[\"a\"],\"on\":true},\"op\":\"+\",\"rhs\":" VECTOR(
                             "y") ",\"type\":"
                                  "\"binaryExpr\"}");
    expect_tree("x * y", "{\"bool\":false,\"lhs\":" VECTOR(
                             "x") ",\"matching\":{\"card\":\"one-to-one\",\"include\":[],\"labels\":"
                                  "[],\"on\":false},\"op\":\"*\",\"rhs\":" VECTOR("y") ",\"type\":\"binaryExpr\"}");
    expect_tree("x > bool 1 > 2", "{\"bool\":false,\"lhs\":{\"bool\":true,\"lhs\":" VECTOR(
                                      "x") ",\"matching\":null,\"op\":\">\",\"rhs\":"
                                           "{\"type\":\"numberLiteral\",\"val\":\"1\"},\"type\":\"binaryExpr\"},"
                                           "\"matching\":null,\"op\":\">\",\"rhs\":"
                                           "{\"type\":\"numberLiteral\",\"val\":\"2\"},\"type\":\"binaryExpr\"}");
    expect_tree(
        "sum by (a) (hour())",
        "{\"expr\":{\"args\":[],\"func\":{\"argTypes\":[\"vector\"],\"name\":\"hour\",\"returnType\":\"vector\","
        "\"variadic\":1},\"type\":\"call\"},\"grouping\":[\"a\"],\"op\":\"sum\",\"param\":null,\"type\":"
        "\"aggregation\",\"without\":false}");
    expect_tree("x[5m:1m] @ 5",
                "{\"expr\":" VECTOR("x") ",\"offset\":0,\"range\":300000,\"startOrEnd\":null,\"step\":60000,"
                                         "\"timestamp\":5000,\"type\":\"subquery\"}");
    struct buf out = {0};
    assert_ok(query_format(STR("sum (x)by( a )>1"), false, &out));
    assert_true(str_eq(buf_as_str(&out), STR("\"sum by (a) (x) > 1\"")));
    buf_clear(&out);
    assert_err(query_format(STR("sum("), false, &out), ERR_INVALID);
    assert_err(query_parse_tree(STR("sum("), false, &out), ERR_INVALID);
    assert_int_equal(out.n, 0);
    buf_deinit(&out);
}

/* Hostile length: the layout's size grows with the square of a chain, and is capped. */
static void test_long_chain(void **state)
{
    (void)state;
    struct buf query = {0}, out = {0};
    for (int i = 0; i < 10000; i++)
        buf_str(&query, STR("1+"));
    buf_str(&query, STR("1"));
    assert_err(query_format(buf_as_str(&query), false, &out), ERR_TOO_LARGE);
    assert_int_equal(out.n, 0);
    assert_ok(query_parse_tree(buf_as_str(&query), false, &out));
    assert_true(out.n > 10000 * 30);
    buf_deinit(&query);
    buf_deinit(&out);
}

/* ---- round trips -------------------------------------------------------------------------------- */

static void check_round_trip(str query, bool may_fail, void *context)
{
    (void)may_fail;
    char *text = query_text_with(query, true);
    if (strncmp(text, "error", 5) != 0) {
        char *again = query_text(text);
        assert_string_equal(again, text);
        mem_free(again);
        struct buf tree = {0};
        assert_ok(query_parse_tree(query, true, &tree));
        buf_deinit(&tree);
        ++*(size_t *)context;
    }
    mem_free(text);
}

static void test_corpora_round_trip(void **state)
{
    (void)state;
    size_t n = 0;
    if (corpus_walk_scripts(check_round_trip, &n) == 0) skip();
    corpus_walk_deep(check_round_trip, &n);
    assert_true(n > 2500);
}

/* Random queries from a grammar: most are right, all are answered, and what prints reads back. */
static void grow(struct rng *r, struct buf *q, int depth)
{
    static const char *const leaves[] = {"x",
                                         "a.b",
                                         "{\"a.b\"}",
                                         "x{l=\"v\"}",
                                         "1",
                                         "1h",
                                         "-2",
                                         "x @ end()",
                                         "x[5m]",
                                         "x[step()*2:1m]",
                                         "\"s\"",
                                         "x offset (1m+range())",
                                         "time()",
                                         "x anchored",
                                         "x offset (5m)*2",
                                         "x offset (1+2) @ end()",
                                         "x offset -+2^2",
                                         "x offset - -step()"};
    static const char *const binary[] = {" + ",
                                         " - on () ",
                                         " * ",
                                         "^",
                                         " == bool ",
                                         " and ",
                                         " or on (a) ",
                                         " > ",
                                         " / ignoring (a) group_left (b) ",
                                         " + fill (1) ",
                                         " </ ",
                                         " atan2 "};
    static const char *const around[] = {"(",  "sum by (a) (", "rate(",          "topk(3, ",
                                         "-(", "abs(",         "max_over_time(", "sum("};
    uint64_t choice = depth <= 0 ? 0 : rng_below(r, 4);
    if (choice == 0) {
        buf_str(q, str_of(leaves[rng_below(r, ARRAY_LEN(leaves))]));
    } else if (choice == 1) {
        buf_str(q, str_of(around[rng_below(r, ARRAY_LEN(around))]));
        grow(r, q, depth - 1);
        buf_str(q, STR(")"));
        if (rng_chance(r, 0.2)) buf_str(q, STR("[1h:]"));
    } else {
        grow(r, q, depth - 1);
        buf_str(q, str_of(binary[rng_below(r, ARRAY_LEN(binary))]));
        grow(r, q, depth - 1);
    }
}

static void test_random_round_trip(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    size_t accepted = 0;
    for (int i = 0; i < 3000; i++) {
        struct buf q = {0};
        grow(&r, &q, 4);
        check_round_trip(buf_as_str(&q), true, &accepted);
        buf_deinit(&q);
    }
    assert_true(accepted > 300);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_one_line),
        cmocka_unit_test(test_pretty),
        cmocka_unit_test(test_tree),
        cmocka_unit_test(test_long_chain),
        cmocka_unit_test(test_corpora_round_trip),
        cmocka_unit_test(test_random_round_trip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
