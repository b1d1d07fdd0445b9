/* Units check, functions: types, argument counts, matchers, vector matching; the table of functions. */
#include "tests/unit/query/query_text.h"

#include "query/functions.h"

static void test_types(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"rate(5)", "1:6: parse error: expected type range vector in call to function \"rate\", got scalar"},
        {"rate(x)", "expected type range vector in call to function \"rate\", got instant vector"},
        {"abs(x[5m])", "expected type instant vector in call to function \"abs\", got range vector"},
        {"label_replace(x, 1, \"\", \"\", \"\")",
         "expected type string in call to function \"label_replace\", got scalar"},
        {"round(x, y)", "expected type scalar in call to function \"round\", got instant vector"},
        {"histogram_quantiles(x, \"l\", 0.5, y)", "expected type scalar in call to function \"histogram_quantiles\""},
        {"label_join(x, \"a\", \"b\", \"c\", 1)",
         "expected type string in call to function \"label_join\", got scalar"},
        {"sum(1)", "expected type instant vector in aggregation expression, got scalar"},
        {"sum(x[5m])", "expected type instant vector in aggregation expression, got range vector"},
        {"topk(x, y)", "expected type scalar in aggregation parameter, got instant vector"},
        {"topk(\"1\", y)", "expected type scalar in aggregation parameter, got string"},
        {"count_values(1, y)", "expected type string in aggregation parameter, got scalar"},
        {"1 + \"a\"", "1:5: parse error: binary expression must contain only scalar and instant vector types"},
        {"x[5m] + 1", "1:1: parse error: binary expression must contain only scalar and instant vector types"},
        {"-\"a\"", "unary expression only allowed on expressions of type scalar or instant vector, got \"string\""},
        {"-x[5m]",
         "unary expression only allowed on expressions of type scalar or instant vector, got \"range vector\""},
        {"1[5m:]", "subquery is only allowed on instant vector, got scalar instead"},
        {"x[5m][5m:]", "subquery is only allowed on instant vector, got range vector instead"},
        {"(x[5m])", ""},
        {"rate((x[5m]))", ""},
        {"default_rollup(x[5m])", ""},
        {"default_rollup(x)", ""},
        {"default_rollup(1)", "expected type range vector in call to function \"default_rollup\", got scalar"},
        {"vector(scalar(x))", ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        if (cases[i][1][0])
            expect_error(cases[i][0], cases[i][1]);
        else
            expect_text(cases[i][0], cases[i][0]);
    }
}

static void test_argument_counts(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"rate()", "expected 1 argument(s) in call to \"rate\", got 0"},
        {"rate(x[5m], 1)", "expected 1 argument(s) in call to \"rate\", got 2"},
        {"time(1)", "expected 0 argument(s) in call to \"time\", got 1"},
        {"round()", "expected at least 1 argument(s) in call to \"round\", got 0"},
        {"round(x, 1, 2)", "expected at most 2 argument(s) in call to \"round\", got 3"},
        {"hour(x, y)", "expected at most 1 argument(s) in call to \"hour\", got 2"},
        {"label_join(x, \"a\")", "expected at least 3 argument(s) in call to \"label_join\", got 2"},
        {"sort_by_label()", "expected at least 1 argument(s) in call to \"sort_by_label\", got 0"},
        {"histogram_quantiles(x, \"l\", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)", "expected at most 12 argument(s)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_error(cases[i][0], cases[i][1]);
    static const char *const right[] = {"hour()",
                                        "hour(x)",
                                        "round(x)",
                                        "round(x, 2)",
                                        "label_join(x, \"a\", \"b\")",
                                        "label_join(x, \"a\", \"b\", \"c\", \"d\", \"e\", \"f\")",
                                        "sort_by_label(x)",
                                        "histogram_quantiles(x, \"l\", 1, 1, 1, 1, 1, 1, 1, 1, 1, 1)"};
    for (size_t i = 0; i < ARRAY_LEN(right); i++)
        expect_text(right[i], right[i]);
}

static void test_selectors(void **state)
{
    (void)state;
    static const char nothing[] = "vector selector must contain at least one non-empty matcher";
    static const char *const empty[] = {"{}",         "{a=\"\"}", "{a=~\".*\"}", "{a!=\"b\"}",
                                        "{a!~\"b\"}", "{\"\"}",   "{}[5m]"};
    for (size_t i = 0; i < ARRAY_LEN(empty); i++)
        expect_error(empty[i], nothing);
    expect_text("{a!=\"\"}", "{a!=\"\"}");
    expect_text("{a=~\".+\",b=\"\"}", "{a=~\".+\",b=\"\"}");
    expect_text("x{}", "x");
    expect_error("x{__name__=\"y\"}", "metric name must not be set twice: \"x\" or \"y\"");
    expect_error("x{\"y\"}", "metric name must not be set twice: \"x\" or \"y\"");
    expect_error("x{__name__=\"x\"}[5m]", "metric name must not be set twice");
    expect_text("{__name__=\"x\",__name__=~\"x.*\"}", "{__name__=\"x\",__name__=~\"x.*\"}");
}

static void test_info(void **state)
{
    (void)state;
    expect_text("info(x)", "info(x)");
    expect_text("info(x, {a=~\".*\"})", "info(x, {a=~\".*\"})");
    expect_text("info(x, {__name__=~\".+_info\"})", "info(x, {__name__=~\".+_info\"})");
    expect_error("info(x, y)", "expected label selectors only, got vector selector instead");
    expect_error("info(x, (y))", "expected label selectors only");
    expect_error("info(x, 1)", "expected label selectors only");
    expect_error("info({a=\"\"})", "at least one non-empty matcher");
}

static void test_binary(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"1 == 2", "1:3: parse error: comparisons between scalars must use BOOL modifier"},
        {"a + bool b", "bool modifier can only be used on comparison operators"},
        {"a </ bool b", "bool modifier can only be used on comparison operators"},
        {"a and bool b", "bool modifier can only be used on comparison operators"},
        {"a + on (x) group_left (y, x) b", "label \"x\" must not occur in ON and GROUP clause at once"},
        {"1 + on (x) b", "vector matching only allowed between instant vectors"},
        {"a + ignoring (x) 1", "vector matching only allowed between instant vectors"},
        {"1 + fill (0) a", "filling in missing series only allowed between instant vectors"},
        {"a and fill (0) b", "filling in missing series not allowed for set operators"},
        {"1 and a", "set operator \"and\" not allowed in binary scalar expression"},
        {"a or 1", "set operator \"or\" not allowed in binary scalar expression"},
        {"a unless on (x) group_left b", "no grouping allowed for \"unless\" operation"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_error(cases[i][0], cases[i][1]);
    expect_text("1 == bool 2", "1 == bool 2");
    expect_text("1 </ 2", "1 </ 2");
    expect_text("a + ignoring (x) group_left (x) b", "a + ignoring (x) group_left (x) b");
    expect_text("1 + on () b", "1 + b"); /* says nothing next to a scalar */
    expect_text("1 + on () group_left a", "1 + a");
    expect_text("a or on () b", "a or on () b");
    expect_text("sum by (a, a) (x)", "sum by (a, a) (x)");
}

/* The first fault is reported in the order of the reference; syntax before meaning. */
static void test_order_of_errors(void **state)
{
    (void)state;
    expect_error("rate(sum(5), 3)", "expected 1 argument(s) in call to \"rate\", got 2");
    expect_error("rate(5) +", "unexpected end of input");
    expect_error("sum(1) + sum(2)", "1:5: parse error");
    expect_error("(1 == 2) + (a + bool b)", "comparisons between scalars");
}

static void test_function_table(void **state)
{
    (void)state;
    size_t n;
    const struct function *table = function_table(&n);
    assert_int_equal(n, 91);
    static const unsigned codes[] = {
        [FN_ROLLUP] = ROLLUP_CODES, [FN_MAP] = MAP_CODES, [FN_DATE] = DATE_CODES, [FN_SPECIAL] = SPECIAL_CODES};
    bool seen[4][64] = {{false}};
    for (size_t i = 0; i < n; i++) {
        const struct function *f = &table[i];
        if (i > 0) assert_true(strcmp(table[i - 1].name, f->name) < 0);
        assert_ptr_equal(function_find(str_of(f->name)), f);
        assert_true(f->n_types <= FUNCTION_ARGS_MAX);
        assert_true(f->variadic == 0 || f->n_types > 0);
        assert_true(f->code < codes[f->class]);
        assert_false(seen[f->class][f->code]);
        seen[f->class][f->code] = true;
        for (unsigned j = 0; j < f->n_types; j++)
            assert_int_not_equal(f->types[j], TYPE_NONE);
    }
    for (size_t class = 0; class < ARRAY_LEN(codes); class ++)
        for (unsigned code = 0; code < codes[class]; code++)
            assert_true(seen[class][code]);
    assert_null(function_find(STR("RATE")));
    assert_null(function_find(STR("")));
    assert_null(function_find(STR("zzz")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_types),          cmocka_unit_test(test_argument_counts),
        cmocka_unit_test(test_selectors),      cmocka_unit_test(test_info),
        cmocka_unit_test(test_binary),         cmocka_unit_test(test_order_of_errors),
        cmocka_unit_test(test_function_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
