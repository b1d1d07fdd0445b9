/* test_quick.c: which queries count as one shape, and how durations decide. */
#include "server/quick.h"
#include "storage/base/alloc.h"
#include "tests/unit/testing.h"

static uint64_t shape(const char *query, const char *start, const char *end, const char *step)
{
    struct exchange *x = mem_zalloc(sizeof *x);
    struct label args[] = {{STR("query"), str_of(query)},
                           {STR("start"), str_of(start)},
                           {STR("end"), str_of(end)},
                           {STR("step"), str_of(step)}};
    x->params.v = args;
    x->params.n = ARRAY_LEN(args);
    uint64_t hash = quick_shape(x);
    mem_free(x);
    return hash;
}

static void test_shapes(void **state)
{
    (void)state;
    uint64_t a = shape("rate(x{h=\"host-1\"}[5m])", "100", "3700", "15");
    assert_int_equal(a,
                     shape("rate(x{h=\"another\\\"host\"}[5m])", "200", "3800", "15")); /* another host, a bit later */
    assert_int_not_equal(a, shape("rate(x{h=\"host-1\"}[1d])", "100", "3700", "15"));
    assert_int_not_equal(a, shape("rate(x{h=\"host-1\"}[5m])", "100", "90000", "15"));
    assert_int_not_equal(a, shape("rate(x{h=\"host-1\"}[5m])", "100", "3700", "1"));
    assert_int_not_equal(shape("x{h=~\"a\"}", "", "", ""), shape("x{h=~\".*\"}", "", "", ""));
    assert_int_equal(shape("", "", "", ""), 0);
    char *text = mem_zalloc(5000);
    memset(text, 'x', 4000);
    assert_int_equal(shape(text, "", "", ""), 0); /* too long to be remembered */
    mem_free(text);
}

static void test_durations(void **state)
{
    (void)state;
    struct quick *q = quick_create();
    uint64_t a = shape("up", "", "", ""), b = shape("down", "", "", "");
    assert_false(quick_expected(q, a)); /* nothing is known */
    quick_note(q, a, 50000);
    assert_true(quick_expected(q, a));
    assert_false(quick_expected(q, b));
    quick_note(q, a, 90000000); /* one slow run sends it to the workers at once ... */
    assert_false(quick_expected(q, a));
    for (int i = 0; i < 3; i++)
        quick_note(q, a, 50000);
    assert_false(quick_expected(q, a)); /* ... and several quick ones bring it back */
    for (int i = 0; i < 20; i++)
        quick_note(q, a, 50000);
    assert_true(quick_expected(q, a));
    quick_note(q, 0, 1);
    assert_false(quick_expected(q, 0));
    quick_destroy(q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_shapes), cmocka_unit_test(test_durations)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
