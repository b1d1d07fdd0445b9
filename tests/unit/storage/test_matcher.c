/* test_matcher.c: the four operators, absent labels, limits and text of matchers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

#include "storage/matcher.h"

static void test_operators(void **state)
{
    (void)state;
    static const struct {
        enum match_op op;
        const char *value, *subject;
        bool yes, empty;
    } table[] = {
        {MATCH_EQ, "a", "a", true, false},   {MATCH_EQ, "a", "b", false, false},
        {MATCH_EQ, "", "", true, true},      {MATCH_NE, "a", "a", false, true},
        {MATCH_NE, "a", "", true, true},     {MATCH_NE, "", "x", true, false},
        {MATCH_RE, "a|b", "b", true, false}, {MATCH_RE, "a|b", "c", false, false},
        {MATCH_RE, ".*", "", true, true},    {MATCH_RE, "a?", "", true, true},
        {MATCH_NRE, "a|b", "c", true, true}, {MATCH_NRE, ".*", "x", false, false},
        {MATCH_NRE, ".+", "", true, true},   {MATCH_NRE, "[a-c]+x", "abx", false, true},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct matcher m;
        bool matched;
        assert_null(matcher_init(&m, table[i].op, STR("n"), str_of(table[i].value)));
        assert_null(matcher_match(&m, str_of(table[i].subject), &matched));
        if (matched != table[i].yes) fail_msg("row %zu", i);
        if (matcher_matches_empty(&m) != table[i].empty) fail_msg("row %zu, empty", i);
        matcher_deinit(&m);
    }
}

static void test_label_sets(void **state)
{
    (void)state;
    struct label v[] = {{STR("__name__"), STR("up")}, {STR("job"), STR("web")}};
    struct labels ls = {v, 2};
    struct matcher m[3];
    bool matched;
    assert_null(matcher_init(&m[0], MATCH_EQ, LABEL_NAME, STR("up")));
    assert_null(matcher_init(&m[1], MATCH_RE, STR("job"), STR("w.*")));
    assert_null(matcher_init(&m[2], MATCH_NE, STR("absent"), STR("")));
    assert_null(matchers_match(m, 0, &ls, &matched));
    assert_true(matched);
    assert_null(matchers_match(m, 2, &ls, &matched));
    assert_true(matched);
    assert_null(matchers_match(m, 3, &ls, &matched));
    assert_false(matched);
    for (int i = 0; i < 3; i++)
        matcher_deinit(&m[i]);
}

static void test_errors(void **state)
{
    (void)state;
    struct matcher m;
    bool matched;
    err e = matcher_init(&m, MATCH_NRE, STR("n"), STR("("));
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
    matcher_deinit(&m);
    assert_null(matcher_init(&m, MATCH_RE, STR("n"), STR("(a|a)*b")));
    e = matcher_match(&m, STR("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaabx"), &matched);
    if (e) assert_int_equal(err_code(e), ERR_LIMIT);
    assert_false(matched);
    err_free(e);
    matcher_deinit(&m);
}

static void test_print(void **state)
{
    (void)state;
    static const char *const expected[] = {"n=\"a\\\"\"", "n!=\"a\\\"\"", "n=~\"a\\\"\"", "n!~\"a\\\"\""};
    for (int op = MATCH_EQ; op <= MATCH_NRE; op++) {
        struct matcher m;
        struct buf b = {0};
        assert_null(matcher_init(&m, (enum match_op)op, STR("n"), STR("a\"")));
        matcher_print(&m, &b);
        assert_true(str_eq(buf_as_str(&b), str_of(expected[op])));
        buf_deinit(&b);
        matcher_deinit(&m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_operators),
        cmocka_unit_test(test_label_sets),
        cmocka_unit_test(test_errors),
        cmocka_unit_test(test_print),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
