/*
 * test_str_sort.c: against qsort, with strings that share beginnings, repeat, end early and hold any byte.
 */
#include "tests/unit/testing.h"

#include "storage/base/rng.h"
#include "storage/base/str_sort.h"

#define MANY 3000
#define LONG 40

static int compare(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static void expect_sorted(str *v, size_t n)
{
    static str want[MANY];
    memcpy(want, v, n * sizeof *v);
    qsort(want, n, sizeof *want, compare);
    str_sort(v, n);
    for (size_t i = 0; i < n; i++)
        assert_true(str_eq(v[i], want[i]));
}

static void test_random(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static char bytes[MANY][LONG];
    static str v[MANY];
    for (int round = 0; round < 60; round++) {
        size_t n = rng_below(&r, round < 30 ? 30 : MANY);
        unsigned letters = round % 3 == 0 ? 256 : 2;
        for (size_t i = 0; i < n; i++) {
            size_t shared = i == 0 ? 0 : rng_below(&r, v[i - 1].n + 1);
            size_t length = shared + rng_below(&r, LONG - shared + 1);
            for (size_t k = 0; k < length; k++)
                bytes[i][k] = k < shared ? bytes[i - 1][k] : (char)(255 - rng_below(&r, letters));
            v[i] = (str){bytes[i], length};
        }
        expect_sorted(v, n);
        str_sort(v, n); /* sorted already */
        for (size_t i = 1; i < n; i++)
            assert_true(str_cmp(v[i - 1], v[i]) <= 0);
    }
}

static void test_edges(void **state)
{
    (void)state;
    str v[MANY];
    str_sort(NULL, 0);
    assert_int_equal(str_sort_unique(NULL, 0), 0);
    for (size_t i = 0; i < MANY; i++) /* the shorter first */
        v[i] = (str){"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", (i * 7) % 60};
    expect_sorted(v, MANY);
    assert_int_equal(str_sort_unique(v, MANY), 60);
    for (size_t i = 0; i < 60; i++)
        assert_int_equal(v[i].n, i);
    str twice[] = {STR("b"), STR(""), STR("a"), STR("b"), STR("")};
    assert_int_equal(str_sort_unique(twice, 5), 3);
    assert_true(str_eq(twice[0], STR("")) && str_eq(twice[2], STR("b")));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random), cmocka_unit_test(test_edges)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
