/* Unit params: paths, form fields, escapes, merging of body and query string, U__ names. */
#include "tests/unit/testing.h"

#include "server/params.h"
#include "storage/base/buf.h"

static void assert_str(str got, const char *expected)
{
    if (got.n != strlen(expected) || (got.n > 0 && memcmp(got.p, expected, got.n) != 0))
        fail_msg("got \"%.*s\", expected \"%s\"", STR_ARG(got), expected);
}

static void test_path(void **state)
{
    static const struct {
        const char *target, *path, *query;
    } cases[] = {
        {"/", "/", ""},
        {"/a/b", "/a/b", ""},
        {"//a///b//", "/a/b", ""},
        {"/a?x=/y//z", "/a", "x=/y//z"},
        {"/a?x=1?y#z", "/a", "x=1?y"},
        {"/a#b", "/a", ""},
        {"http://host:1/a//b?c", "/a/b", "c"},
        {"https://host", "/", ""},
        {"*", "*", ""},
        {"?x", "", "x"},
    };
    (void)state;
    struct arena a = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        str query;
        assert_str(params_path(str_of(cases[i].target), &a, &query), cases[i].path);
        assert_str(query, cases[i].query);
    }
    arena_deinit(&a);
}

static void test_unescape(void **state)
{
    static const struct {
        const char *in, *out; /* NULL: an error */
        bool plus;
    } cases[] = {
        {"", "", true},        {"plain", "plain", true},   {"a+b", "a b", true},
        {"a+b", "a+b", false}, {"%41%4a%4A", "AJJ", true}, {"%7E~", "~~", true},
        {"%", NULL, true},     {"%4", NULL, true},         {"%4g", NULL, true},
        {"%g4", NULL, true},   {"a%zz", NULL, false},      {"%C3%A9", "\xc3\xa9", true},
        {"%25", "%", true},    {"%2B+", "+ ", true},       {"100%%", NULL, true},
    };
    (void)state;
    struct arena a = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        str out;
        err e = params_unescape(str_of(cases[i].in), cases[i].plus, &a, &out);
        if (cases[i].out == NULL) {
            assert_err(e, ERR_INVALID);
        } else {
            assert_ok(e);
            assert_str(out, cases[i].out);
        }
    }
    arena_deinit(&a);
}

/* The body's fields come first: they win, and match[] of both add up. */
static void test_merging(void **state)
{
    (void)state;
    struct arena a = {0};
    struct params p = {0};
    uint32_t n;
    assert_ok(params_parse(&p, STR("query=body&match[]=a&limit=&empty&match%5B%5D=b"), &a));
    assert_ok(params_parse(&p, STR("query=url&&match=c&limit=5&time=+4&match[]="), &a));
    assert_str(params_get(&p, STR("query")), "body");
    assert_str(params_get(&p, STR("limit")), "5");
    assert_str(params_get(&p, STR("time")), " 4");
    assert_str(params_get(&p, STR("empty")), "");
    assert_str(params_get(&p, STR("nothing")), "");
    str *all = params_all(&p, STR("match[]"), STR("match"), &a, &n);
    assert_int_equal(n, 3);
    assert_str(all[0], "a");
    assert_str(all[1], "b");
    assert_str(all[2], "c");
    arena_deinit(&a);
}

static void test_broken_forms(void **state)
{
    (void)state;
    struct arena a = {0};
    struct params p = {0};
    assert_err(params_parse(&p, STR("a=1&b=%q1"), &a), ERR_INVALID);
    p = (struct params){0};
    assert_err(params_parse(&p, STR("%=1"), &a), ERR_INVALID);
    p = (struct params){0};
    assert_ok(params_parse(&p, STR("&&&&&=&=x&a==b"), &a));
    assert_int_equal(p.n, 3);
    assert_str(params_get(&p, STR("a")), "=b");
    arena_deinit(&a);
}

/* A body of separators must not become gigabytes of field records. */
static void test_too_many_fields(void **state)
{
    (void)state;
    struct arena a = {0};
    struct params p = {0};
    struct buf text = {0};
    for (int i = 0; i < 2 * PARAMS_MAX; i++)
        buf_str(&text, STR("a&"));
    assert_err(params_parse(&p, buf_as_str(&text), &a), ERR_TOO_LARGE);
    assert_int_equal(p.n, PARAMS_MAX);
    buf_deinit(&text);
    arena_deinit(&a);
}

static void test_label_name(void **state)
{
    static const struct {
        const char *in, *out;
    } cases[] = {
        {"job", "job"},
        {"U__status_2e_code", "status.code"},
        {"U___22_status_2e_code_22_", "\"status.code\""},
        {"U__a__b", "a_b"},
        {"U__", ""},
        {"U__caf_e9_", "caf\xc3\xa9"},
        {"U___1F600_x", "\xf0\x9f\x98\x80x"},
        {"U__a_zz_", "U__a_zz_"},
        {"U__a_2e", "U__a_2e"},
        {"U__a_d800_", "U__a_d800_"},
        {"U__a_110000_", "U__a_110000_"},
        {"U__a_0000000001_", "U__a_0000000001_"},
        {"U__a_", "U__a_"},
    };
    (void)state;
    struct arena a = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        assert_str(params_label_name(str_of(cases[i].in), &a), cases[i].out);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_path),         cmocka_unit_test(test_unescape),        cmocka_unit_test(test_merging),
        cmocka_unit_test(test_broken_forms), cmocka_unit_test(test_too_many_fields), cmocka_unit_test(test_label_name),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
