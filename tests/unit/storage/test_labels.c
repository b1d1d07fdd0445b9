/* test_labels.c: canonical form, order, identity and text of label sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/labels.h"

#define LABEL(n, v) ((struct label){STR(n), STR(v)})
#define LABELS(...) ((struct labels){(struct label[]){__VA_ARGS__}, ARRAY_LEN(((struct label[]){__VA_ARGS__}))})

static void test_utf8(void **state)
{
    (void)state;
    static const char *const good[] = {"",
                                       "abc",
                                       "\x7f",
                                       "\xc2\x80",
                                       "\xdf\xbf",
                                       "\xe0\xa0\x80",
                                       "\xed\x9f\xbf",
                                       "\xee\x80\x80",
                                       "\xef\xbf\xbf",
                                       "\xf0\x90\x80\x80",
                                       "\xf4\x8f\xbf\xbf",
                                       "12345678\xc3\xa9"
                                       "12345678",
                                       "1234567\xc3\xa9"};
    static const char *const bad[] = {"\x80",
                                      "\xc0\x80",
                                      "\xc1\xbf",
                                      "\xc2",
                                      "\xe0\x9f\xbf",
                                      "\xed\xa0\x80",
                                      "\xe2\x82",
                                      "\xf0\x8f\xbf\xbf",
                                      "\xf4\x90\x80\x80",
                                      "\xf5\x80\x80\x80",
                                      "\xff",
                                      "\xc3(",
                                      "12345678\xc3",
                                      "12345678"
                                      "1234567\x80",
                                      "\xe2\x28\xa1",
                                      "\xf0\x90\x80"
                                      "a"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        if (!utf8_valid(str_of(good[i]))) fail_msg("good %zu", i);
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (utf8_valid(str_of(bad[i]))) fail_msg("bad %zu", i);
    assert_true(utf8_valid((str){"a\0b", 3}));
    assert_true(utf8_valid((str){NULL, 0}));
}

static void test_canonicalize(void **state)
{
    (void)state;
    struct labels ls = LABELS(LABEL("z", "1"), LABEL("empty", ""), LABEL("__name__", "up"), LABEL("a", "2"));
    assert_null(labels_canonicalize(&ls));
    assert_int_equal(ls.n, 3);
    assert_true(labels_eq(&ls, &LABELS(LABEL("__name__", "up"), LABEL("a", "2"), LABEL("z", "1"))));
    ls.n = 0;
    assert_null(labels_canonicalize(&ls));
}

static void refused(struct labels ls, const char *why)
{
    err e = labels_canonicalize(&ls);
    if (e == NULL) fail_msg("accepted, expected: %s", why);
    assert_int_equal(err_code(e), ERR_INVALID);
    if (strstr(err_message(e), why) == NULL) fail_msg("`%s` does not say `%s`", err_message(e), why);
    err_free(e);
}

static void test_refusals(void **state)
{
    (void)state;
    refused(LABELS(LABEL("a", "1"), LABEL("b", "1"), LABEL("a", "2")), "duplicate label name \"a\"");
    refused(LABELS(LABEL("a", "1"), LABEL("a", "1")), "duplicate label name \"a\"");
    refused(LABELS(LABEL("", "1")), "empty label name");
    refused(LABELS(LABEL("a", "\xff")), "value of label \"a\" is not valid UTF-8");
    refused(LABELS(LABEL("\xff", "a")), "label name is not valid UTF-8");
    char *big = mem_alloc(LIMIT_LABEL_VALUE + 1);
    memset(big, 'x', LIMIT_LABEL_VALUE + 1);
    refused(LABELS({{big, LIMIT_LABEL_NAME + 1}, STR("v")}), "the limit is 1024");
    refused(LABELS({STR("a"), {big, LIMIT_LABEL_VALUE + 1}}), "the limit is 65535");
    refused(LABELS({STR("a"), {big, 65535}}, {STR("b"), {big, 65535}}, {STR("c"), {big, 1000}}),
            "labels of the series");
    struct label many[LIMIT_LABELS + 1];
    for (int i = 0; i <= LIMIT_LABELS; i++)
        many[i] = (struct label){{big, (size_t)i + 1}, STR("v")};
    refused((struct labels){many, LIMIT_LABELS + 1}, "series has 257 labels");
    struct labels full = {many, LIMIT_LABELS};
    assert_null(labels_canonicalize(&full));
    mem_free(big);
}

static void test_order(void **state)
{
    (void)state;
    struct labels ascending[] = {
        {0},
        LABELS(LABEL("a", "1")),
        LABELS(LABEL("a", "1"), LABEL("b", "1")),
        LABELS(LABEL("a", "1"), LABEL("b", "2")),
        LABELS(LABEL("a", "2")),
        LABELS(LABEL("aa", "1")),
        LABELS(LABEL("b", "0")),
    };
    for (size_t i = 0; i < ARRAY_LEN(ascending); i++)
        for (size_t k = 0; k < ARRAY_LEN(ascending); k++) {
            int c = labels_cmp(&ascending[i], &ascending[k]);
            assert_int_equal((c > 0) - (c < 0), (i > k) - (i < k));
            assert_int_equal(labels_eq(&ascending[i], &ascending[k]), i == k);
        }
    struct labels stored[] = {
        LABELS(LABEL("z", "1")),
        LABELS(LABEL("__name__", "a"), LABEL("b", "9")),
        LABELS(LABEL("__name__", "a"), LABEL("a", "1"), LABEL("instance", "i"), LABEL("job", "j")),
        LABELS(LABEL("__name__", "a"), LABEL("a", "0"), LABEL("instance", "k"), LABEL("job", "j")),
        LABELS(LABEL("__name__", "a"), LABEL("a", "0"), LABEL("instance", "a"), LABEL("job", "k")),
        LABELS(LABEL("__name__", "b")),
    };
    for (size_t i = 0; i + 1 < ARRAY_LEN(stored); i++)
        assert_true(labels_cmp_storage(&stored[i], &stored[i + 1]) < 0);
}

static void test_print(void **state)
{
    (void)state;
    static const struct {
        struct label v[3];
        uint32_t n;
        const char *text;
    } table[] = {
        {{{{0}, {0}}}, 0, "{}"},
        {{{{"__name__", 8}, {"up", 2}}}, 1, "up"},
        {{{{"__name__", 8}, {"up", 2}}, {{"job", 3}, {"x", 1}}}, 2, "up{job=\"x\"}"},
        {{{{"__name__", 8}, {"up", 2}}, {{"a", 1}, {"1", 1}}, {{"job", 3}, {"x", 1}}}, 3, "up{a=\"1\", job=\"x\"}"},
        {{{{"a", 1}, {"q\"b\\n\n", 6}}}, 1, "{a=\"q\\\"b\\\\n\\n\"}"},
        {{{{"__name__", 8}, {"a.b", 3}}}, 1, "{\"a.b\"}"},
        {{{{"__name__", 8}, {"a.b", 3}}, {{"l.x", 3}, {"v", 1}}}, 2, "{\"a.b\", \"l.x\"=\"v\"}"},
        {{{{"__name__", 8}, {"a:b", 3}}, {{"a:b", 3}, {"\x01", 1}}}, 2, "a:b{\"a:b\"=\"\\x01\"}"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct buf b = {0};
        struct label v[3];
        memcpy(v, table[i].v, sizeof v);
        labels_print(&(struct labels){v, table[i].n}, &b);
        if (!str_eq(buf_as_str(&b), str_of(table[i].text))) fail_msg("%zu: %.*s", i, (int)b.n, (char *)b.data);
        buf_deinit(&b);
    }
    assert_true(metric_name_is_legacy(STR("a:b_1")));
    assert_false(label_name_is_legacy(STR("a:b")));
    assert_false(label_name_is_legacy(STR("1a")));
    assert_false(label_name_is_legacy(STR("")));
}

/* Any order of the same pairs: one canonical form, one identity; another pair: another identity. */
static void test_identity(void **state)
{
    (void)state;
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_seed(&rng, seed);
    struct hash_key key;
    for (size_t i = 0; i < sizeof key.secret; i++)
        key.secret[i] = (uint8_t)rng_next(&rng);
    struct arena a = {0};
    for (int round = 0; round < 200; round++) {
        uint32_t n = 1 + (uint32_t)rng_below(&rng, 40);
        struct labels one = {arena_alloc(&a, n * sizeof(struct label)), n};
        for (uint32_t i = 0; i < n; i++)
            one.v[i] =
                (struct label){arena_printf(&a, "n%u", (unsigned)i), arena_printf(&a, "v%d", (int)rng_below(&rng, 9))};
        struct labels two = labels_copy(&a, &one);
        for (uint32_t i = n; i > 1; i--) {
            uint32_t k = (uint32_t)rng_below(&rng, i);
            struct label swap = two.v[k];
            two.v[k] = two.v[i - 1];
            two.v[i - 1] = swap;
        }
        assert_true(hash128_eq(labels_id(&key, &one), labels_id(&key, &two)));
        assert_null(labels_canonicalize(&one));
        assert_null(labels_canonicalize(&two));
        assert_true(labels_eq(&one, &two));
        assert_true(hash128_eq(labels_id(&key, &one), labels_id(&key, &two)));
        two.v[0].value = STR("other");
        assert_false(hash128_eq(labels_id(&key, &one), labels_id(&key, &two)));
        struct label swapped = {one.v[0].value, one.v[0].name};
        struct labels pair = {&one.v[0], 1}, reverse = {&swapped, 1};
        assert_false(hash128_eq(labels_id(&key, &pair), labels_id(&key, &reverse)));
        arena_reset(&a);
    }
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_utf8),  cmocka_unit_test(test_canonicalize), cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_order), cmocka_unit_test(test_print),        cmocka_unit_test(test_identity),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
