/* Unit parser: what each form means in the tree, precedence, modifiers, limits, the corpora of queries. */
#include "tests/unit/query/query_corpus.h"
#include "tests/unit/query/query_text.h"

#include "query/functions.h"

/* A tree with its arena. */
struct parsed {
    struct arena arena;
    struct expr *e;
};

static struct parsed parse(const char *query)
{
    struct parsed p = {0};
    assert_ok(promql_parse(str_of(query), true, &p.arena, &p.e));
    return p;
}

static void parsed_free(struct parsed *p)
{
    expr_deinit(p->e);
    arena_deinit(&p->arena);
}

/* ---- the tree ----------------------------------------------------------------------------------- */

/* Parentheses around every operator. */
static void shape(const struct expr *e, struct buf *out)
{
    switch (e->kind) {
    case EXPR_BINARY:
        buf_u8(out, '(');
        shape(e->binary.lhs, out);
        buf_printf(out, " %s ", binary_op_text(e->binary.op));
        shape(e->binary.rhs, out);
        buf_u8(out, ')');
        break;
    case EXPR_UNARY:
        buf_str(out, e->unary.negate ? STR("(-") : STR("(+"));
        shape(e->unary.inner, out);
        buf_u8(out, ')');
        break;
    default:
        promql_print(e, out);
    }
}

static void expect_shape(const char *query, const char *want)
{
    struct parsed p = parse(query);
    struct buf out = {0};
    shape(p.e, &out);
    char *got = mem_dup_str(buf_as_str(&out));
    assert_string_equal(got, want);
    mem_free(got);
    buf_deinit(&out);
    parsed_free(&p);
}

static void test_precedence(void **state)
{
    (void)state;
    expect_shape("1 + 2 * 3", "(1 + (2 * 3))");
    expect_shape("1 - 2 - 3", "((1 - 2) - 3)");
    expect_shape("2 ^ 3 ^ 2", "(2 ^ (3 ^ 2))");
    expect_shape("-2 ^ 2", "(-(2 ^ 2))");
    expect_shape("-2 * 3", "(-2 * 3)");
    expect_shape("-a * b", "((-a) * b)");
    expect_shape("2 ^ -a * b", "((2 ^ (-a)) * b)");
    expect_shape("2 ^ -a ^ b", "(2 ^ (-(a ^ b)))");
    expect_shape("- - a", "(-(-a))");
    expect_shape("+a", "(+a)");
    expect_shape("a or b and c unless d", "(a or ((b and c) unless d))");
    expect_shape("a == b + c", "(a == (b + c))");
    expect_shape("a == b > c", "((a == b) > c)");
    expect_shape("a / b % c atan2 d", "(((a / b) % c) atan2 d)");
    expect_shape("a + b </ c", "((a + b) </ c)");
    expect_shape("a >/ b == c", "((a >/ b) == c)");
    expect_shape("-a offset 5m", "(-a offset 5m)");
    expect_shape("x offset -2 ^ 2", "(x offset -2s ^ 2)");
    expect_shape("x offset 100 + 2", "(x offset 1m40s + 2)");
    expect_shape("x offset -(min_of(step(), 2s) - 5) + 8000", "(x offset -(min_of(step(), 2s) - 5) + 8000)");
    expect_shape("x offset +min_of(step(), 1s) ^ 0", "(x offset min_of(step(), 1s) ^ 0)");
    expect_shape("and and and", "(and and and)");
    expect_shape("a - 1", "(a - 1)");
    expect_shape("1 -1", "(1 - 1)");
    expect_shape("--1", "1");
}

static void test_selector(void **state)
{
    (void)state;
    struct parsed p = parse("  foo{a=\"1\", \"b.c\"!=`2`, d=~'x|y', e!~\"z.*\",} @ -1.5 offset 1h30m ");
    const struct selector *s = &p.e->selector;
    assert_int_equal(p.e->kind, EXPR_SELECTOR);
    assert_int_equal(p.e->type, TYPE_VECTOR);
    assert_int_equal(p.e->start, 2);
    assert_true(str_eq(s->name, STR("foo")));
    assert_int_equal(s->n_matchers, 5);
    assert_true(str_eq(s->matchers[1].name, STR("b.c")) && s->matchers[1].op == MATCH_NE);
    assert_true(s->matchers[2].re != NULL && s->matchers[3].re != NULL);
    assert_true(str_eq(s->matchers[4].name, LABEL_NAME) && str_eq(s->matchers[4].value, STR("foo")));
    assert_int_equal(s->mod.at, AT_TIME);
    assert_int_equal(s->mod.at_ms, -1500);
    assert_true(s->mod.has_offset);
    assert_int_equal(s->mod.offset.ms, 5400000);
    parsed_free(&p);
}

static void test_ranges(void **state)
{
    (void)state;
    struct parsed p = parse("rate(x[5m] anchored offset -1m @ end())");
    const struct expr *range = p.e->call.args[0];
    assert_string_equal(p.e->call.fn->name, "rate");
    assert_int_equal(range->kind, EXPR_RANGE);
    assert_int_equal(range->range.range.ms, 300000);
    const struct modifiers *m = &range->range.selector->selector.mod;
    assert_true(m->anchored && !m->smoothed && m->at == AT_END && m->offset.ms == -60000);
    parsed_free(&p);

    p = parse("max_over_time(x[1h + step():] offset (step() * 2))");
    const struct expr *sub = p.e->call.args[0];
    assert_int_equal(sub->kind, EXPR_SUBQUERY);
    assert_non_null(sub->subquery.range.expr);
    assert_int_equal(sub->subquery.range.expr->binary.rhs->kind, EXPR_STEP);
    assert_false(sub->subquery.has_step);
    assert_int_equal(sub->subquery.mod.offset.expr->kind, EXPR_PAREN);
    parsed_free(&p);

    p = parse("x[5m:1m]");
    assert_true(p.e->subquery.has_step && p.e->subquery.step.ms == 60000 && p.e->subquery.range.ms == 300000);
    parsed_free(&p);
}

static void test_matching(void **state)
{
    (void)state;
    struct parsed p = parse("a == bool on (x, \"y.z\") group_left (by) fill_right (-1) fill_left (1h) b");
    const struct matching *m = &p.e->binary.matching;
    assert_true(p.e->binary.return_bool && m->given && m->on && m->card == CARD_MANY_TO_ONE);
    assert_int_equal(m->n_labels, 2);
    assert_true(str_eq(m->labels[1], STR("y.z")) && str_eq(m->include[0], STR("by")));
    assert_true(m->fill_left && m->fill_right && !m->fill_both);
    assert_true(m->fill_left_value == 3600 && m->fill_right_value == -1);
    parsed_free(&p);
    p = parse("a and b");
    assert_int_equal(p.e->binary.matching.card, CARD_MANY_TO_MANY);
    parsed_free(&p);
}

static void test_numbers(void **state)
{
    (void)state;
    struct parsed p = parse("1h30m");
    assert_true(p.e->kind == EXPR_NUMBER && p.e->number == 5400 && p.e->is_duration);
    parsed_free(&p);
    p = parse("-0x1F");
    assert_true(p.e->kind == EXPR_NUMBER && p.e->number == -31 && p.e->start == 0 && p.e->end == 5);
    parsed_free(&p);
}

static void test_words(void **state)
{
    (void)state;
    static const char *const accepted[][2] = {
        {"sum", "sum"},
        {"sum{a=\"b\"}", "sum{a=\"b\"}"},
        {"SUM(x) BY (a)", "sum by (a) (x)"},
        {"offset offset 5m", "offset offset 5m"},
        {"sum by (by, on, bool, group_left, offset, and, atan2, start, fill) (x)",
         "sum by (by, on, bool, group_left, offset, and, atan2, start, fill) (x)"},
        {"sum without () (x)", "sum without () (x)"},
        {"sum by () (x)", "sum(x)"},
        {"by + without + start + step + fill + anchored", "by + without + start + step + fill + anchored"},
        {"other + fill(0) fill", "other + fill (0) fill"},
        {"step() + start() + end() + range() + pi()", "step() + start() + end() + range() + pi()"},
        {"max_of(1, min_of(2, 3))", "max_of(1, min_of(2, 3))"},
        {"a:b:c", "a:b:c"},
        {"sum by (a:b) (x)", "sum by (\"a:b\") (x)"},
        {"{\"a.b\", l=\"v\"}", "{__name__=\"a.b\",l=\"v\"}"},
        {"{\"\"=\"x\"}", "{\"\"=\"x\"}"},
        {"x # comment\n+ # more\ny", "x + y"},
        {"quantile(0.9, x) by (a,)", "quantile by (a) (0.9, x)"},
    };
    for (size_t i = 0; i < ARRAY_LEN(accepted); i++)
        expect_text(accepted[i][0], accepted[i][1]);
}

static void test_syntax_errors(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", "1:1: parse error: no expression found in input"},
        {"# nothing", "no expression found"},
        {"a +", "1:4: parse error: unexpected end of input"},
        {"a\n+\n+ +", "3:4: parse error: unexpected end of input"},
        {"(a", "unclosed left parenthesis"},
        {"a b", "unexpected identifier \"b\""},
        {"sum(a,)", "trailing commas not allowed"},
        {"sum(a b)", "unexpected identifier \"b\""},
        {"sum()", "no arguments for aggregate expression provided"},
        {"sum(a, b)", "wrong number of arguments for aggregate expression provided, expected 1, got 2"},
        {"topk(a)", "expected 2, got 1"},
        {"sum(x) by (a) by (b)", "unexpected <by>"},
        {"sum by (without) (x)", "unexpected <without> in grouping opts, expected label"},
        {"sum by a (x)", "in grouping opts, expected \"(\""},
        {"sum by (a b) (x)", "expected \",\" or \")\""},
        {"sum by (\"\") (x)", "invalid label name for grouping: \"\""},
        {"sum by (\"\\xff\") (x)", "invalid label name for grouping"},
        {"sum by (a)", "in aggregation"},
        {"atan2", "unexpected <op:atan2>"},
        {"bool", "unexpected <bool>"},
        {"Rate(x[5m])", "unknown function with name \"Rate\""},
        {"a:b(x)", "unexpected \"(\""},
        {"foo{,}", "expected identifier or \"}\""},
        {"foo{a}", "expected label matching operator"},
        {"foo{a=b}", "expected string"},
        {"foo{a=\"b\" c=\"d\"}", "expected \",\" or \"}\""},
        {"foo{a=~\"(\"}", "1:5: parse error: error parsing regexp"},
        {"x[0s]", "duration must be greater than 0"},
        {"x[-5m]", "duration must be greater than 0"},
        {"x[5m:0s]", "duration must be greater than 0"},
        {"x[(0)]", "duration must be greater than 0"},
        {"x[5m/0]", "division by zero"},
        {"x[5m%0]", "modulo by zero"},
        {"x[1e20]", "duration out of range"},
        {"x[1m1h]", "not a valid duration string"},
        {"x[1.5h]", "unknown unit"},
        {"x[]", "in subquery or range selector, expected number, duration, step(), or range()"},
        {"x[5m 1m]", "in subquery or range, expected \":\" or \"]\""},
        {"x[step]", "expected number, duration"},
        {"x[min_of(1)]", "expected number, duration"},
        {"x offset", "in offset, expected number, duration"},
        {"x offset bar", "in offset, expected number, duration"},
        {"x offset (5m) + bar", "in offset, expected number, duration"},
        {"x offset inf", "duration out of range"},
        {"x offset 5m offset 1m", "offset may not be set multiple times"},
        {"x offset 5m [1m]", "no offset modifiers allowed before range"},
        {"x @ 5 [1m]", "no @ modifiers allowed before range"},
        {"x @", "unexpected end of input in @, expected timestamp"},
        {"x @ start", "in @, expected timestamp"},
        {"x @ 5 @ 6", "@ <timestamp> may not be set multiple times"},
        {"x @ start() @ end()", "@ <timestamp> may not be set multiple times"},
        {"x @ inf", "timestamp out of bounds for @ modifier"},
        {"x @ 1e19", "timestamp out of bounds for @ modifier"},
        {"(x) offset 5m", "offset modifier must be preceded by"},
        {"(x) @ 5", "@ modifier must be preceded by"},
        {"(x)[5m]", "ranges only allowed for vector selectors"},
        {"x anchored smoothed", "anchored and smoothed modifiers cannot be used together"},
        {"x[5m:] anchored", "anchored modifier is not supported for subqueries"},
        {"(x) smoothed", "smoothed modifier can only follow a selector, such as x[5m] smoothed"},
        {"a + fill 0 b", "unexpected number \"0\""},
        {"a + fill(b) c", "in fill modifier, expected number"},
        {"a + group_left b", "unexpected <group_left>"},
        {"08x", "bad number or duration syntax"},
        {"1e400", "error parsing number"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        expect_error(cases[i][0], cases[i][1]);
}

static void test_experimental(void **state)
{
    (void)state;
    static const char *const gated[] = {"limitk(1, x)",  "limit_ratio(0.5, x)", "info(x)",
                                        "step()",        "x anchored",          "x[5m] smoothed",
                                        "a + fill(0) b", "min_of(1, 2)",        "mad_over_time(x[5m])"};
    for (size_t i = 0; i < ARRAY_LEN(gated); i++) {
        char *text = query_text_with(str_of(gated[i]), false);
        assert_non_null(strstr(text, "not enabled"));
        mem_free(text);
        text = query_text(gated[i]);
        assert_int_not_equal(strncmp(text, "error", 5), 0);
        mem_free(text);
    }
    char *text = query_text_with(STR("first_over_time(x[min_of(5m, step())])"), false);
    assert_string_equal(text, "first_over_time(x[min_of(5m, step())])");
    mem_free(text);
}

/* ---- limits ------------------------------------------------------------------------------------- */

static char *repeat(const char *before, const char *part, size_t n, const char *middle, const char *after)
{
    struct buf b = {0};
    buf_str(&b, str_of(before));
    for (size_t i = 0; i < n; i++)
        buf_str(&b, str_of(part));
    buf_str(&b, str_of(middle));
    for (size_t i = 0; i < n; i++)
        buf_str(&b, str_of(after));
    char *s = mem_dup_str(buf_as_str(&b));
    buf_deinit(&b);
    return s;
}

static void expect_deep(const char *part, size_t n, const char *middle, const char *after, const char *error)
{
    char *query = repeat("", part, n, middle, after), *got = query_text(query);
    if (error)
        assert_non_null(strstr(got, error));
    else
        assert_int_not_equal(strncmp(got, "error", 5), 0);
    mem_free(got);
    mem_free(query);
}

static void test_depth(void **state)
{
    (void)state;
    static const char deep[] = "nested too deeply";
    expect_deep("(", 249, "1", ")", NULL);
    expect_deep("(", 251, "1", ")", deep);
    expect_deep("(", 100000, "1", ")", deep);
    expect_deep("-", 200, "a", "", NULL);
    expect_deep("-", 100000, "a", "", deep);
    expect_deep("abs(", 200, "a", ")", NULL);
    expect_deep("abs(", 100000, "a", ")", deep);
    expect_deep("sum by (a) (", 60000, "a", ")", deep);
    expect_deep("a ^ ", 200, "a", "", NULL);
    expect_deep("a ^ ", 100000, "a", "", deep);
    expect_deep("a", 1, "", "[5m:]", "");
    char *query = repeat("a", "[5m:]", 100000, "", ""), *got = query_text(query);
    assert_non_null(strstr(got, deep));
    mem_free(got);
    mem_free(query);
    query = repeat("a[", "(", 100000, "5m", ")"), got = query_text(query);
    assert_non_null(strstr(got, deep));
    mem_free(got);
    mem_free(query);
}

static void test_chains(void **state)
{
    (void)state;
    expect_deep("a + ", 10000, "a", "", NULL);
    expect_deep("a or b and ", 5000, "a", "", NULL);
    expect_deep("1 * ", 11998, "1", "", NULL);
    expect_deep("1+", 500000, "1", "", "more than 12000 operators in a row");
    expect_deep("(1+", 250, "1", ")", "nested too deeply");
    char *query = repeat("x[", "1s + ", 10000, "1s]", ""), *got = query_text(query);
    assert_string_equal(got, query);
    mem_free(got);
    mem_free(query);
}

/* Long lists cost no more than linear time, or this test would not end. */
static void test_long_lists(void **state)
{
    (void)state;
    char *on = repeat("a + on (", "b,", 200000, "", ""), *query = repeat(on, "", 0, ") group_left (", "");
    char *whole = repeat(query, "c,", 200000, ") d", ""), *got = query_text(whole);
    assert_int_not_equal(strncmp(got, "error", 5), 0);
    mem_free(on);
    mem_free(query);
    mem_free(whole);
    mem_free(got);
    query = repeat("x{", "a=\"b\",", 100000, "}", "");
    got = query_text(query);
    assert_int_equal(strlen(got), strlen(query) - 1); /* but for the last comma */
    mem_free(query);
    mem_free(got);
    query = repeat("x{", "a=~\"b.c\",", 100000, "}", "");
    got = query_text(query);
    assert_non_null(strstr(got, "too many regular expressions"));
    mem_free(query);
    mem_free(got);
    query = repeat("label_join(x,\"a\",\"b\"", ",\"c\"", 200000, ")", "");
    got = query_text(query);
    assert_int_not_equal(strncmp(got, "error", 5), 0);
    mem_free(query);
    mem_free(got);
}

static void test_text_limit(void **state)
{
    (void)state;
    char *query = repeat("1", " ", PROMQL_TEXT_MAX - 1, "", ""), *got = query_text(query);
    assert_string_equal(got, "1");
    mem_free(got);
    mem_free(query);
    query = repeat("1", " ", PROMQL_TEXT_MAX, "", "");
    got = query_text(query);
    assert_non_null(strstr(got, "too long"));
    mem_free(got);
    mem_free(query);
}

static void test_match_selector(void **state)
{
    (void)state;
    struct arena a = {0};
    struct matcher *m;
    uint32_t n;
    assert_ok(promql_parse_selector(STR("up{job=~\"a.*\"}"), &a, &m, &n));
    assert_int_equal(n, 2);
    for (uint32_t i = 0; i < n; i++)
        matcher_deinit(&m[i]);
    static const char *const bad[] = {"",     "up[5m]",   "up offset 5m",  "up @ 5",
                                      "{}",   "{a=\"\"}", "sum(x)",        "{a=~\".*\"}",
                                      "(up)", "1",        "up{a=~\"b\"} x"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_err(promql_parse_selector(str_of(bad[i]), &a, &m, &n), ERR_INVALID);
    arena_deinit(&a);
}

/* ---- corpora ------------------------------------------------------------------------------------ */

struct tally {
    size_t queries, refused, wrong;
};

static void visit(str query, bool may_fail, void *context)
{
    struct tally *t = context;
    char *text = query_text_with(query, true);
    bool refused = strncmp(text, "error", 5) == 0;
    t->queries++;
    t->refused += refused;
    if (refused && !may_fail) {
        print_message("refused: %.*s\n  %s\n", STR_ARG(query), text);
        t->wrong++;
    }
    mem_free(text);
}

static void test_scripts(void **state)
{
    (void)state;
    struct tally t = {0};
    if (corpus_walk_scripts(visit, &t) == 0) skip();
    print_message("%zu queries, %zu refused\n", t.queries, t.refused);
    assert_true(t.queries > 2000);
    assert_int_equal(t.wrong, 0);
}

static void test_deep_corpus(void **state)
{
    (void)state;
    struct tally t = {0};
    if (corpus_walk_deep(visit, &t) == 0) skip();
    print_message("%zu queries, %zu refused\n", t.queries, t.refused);
    assert_int_equal(t.wrong, 0);
    assert_true(t.refused >= 90);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_precedence),     cmocka_unit_test(test_selector),     cmocka_unit_test(test_ranges),
        cmocka_unit_test(test_matching),       cmocka_unit_test(test_numbers),      cmocka_unit_test(test_words),
        cmocka_unit_test(test_syntax_errors),  cmocka_unit_test(test_experimental), cmocka_unit_test(test_depth),
        cmocka_unit_test(test_chains),         cmocka_unit_test(test_text_limit),   cmocka_unit_test(test_long_lists),
        cmocka_unit_test(test_match_selector), cmocka_unit_test(test_scripts),      cmocka_unit_test(test_deep_corpus),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
