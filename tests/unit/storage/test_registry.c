/* test_registry.c: symbols, aliases, series, matchers over the registry, storage order, months. */
#include <stdlib.h>
#include <time.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/partition.h"
#include "storage/series.h"
#include "tests/unit/testing.h"

static struct hash_key key;

static struct labels make_labels(struct arena *a, uint32_t i)
{
    struct labels ls = {arena_alloc(a, 4 * sizeof *ls.v), 4};
    ls.v[0] = (struct label){LABEL_NAME, arena_printf(a, "metric_%u", i % 7)};
    ls.v[1] = (struct label){STR("instance"), arena_printf(a, "host-%u", i / 7 % 50)};
    ls.v[2] = (struct label){STR("job"), i % 2 ? STR("node") : STR("app")};
    ls.v[3] = (struct label){STR("n"), arena_printf(a, "%u", i)};
    return ls;
}

static struct hash128 alias_of(uint32_t i)
{
    return hash128(&key, &i, sizeof i);
}

static struct registry *filled(uint32_t n)
{
    struct registry *r = registry_create(&key);
    struct arena a = {0};
    for (uint32_t i = 0; i < n; i++) {
        struct labels ls = make_labels(&a, i);
        uint32_t alias = registry_add(r, alias_of(i), &ls);
        assert_int_equal(registry_alias_series(r, alias), i);
        arena_reset(&a);
    }
    arena_deinit(&a);
    return r;
}

static void test_aliases(void **state)
{
    (void)state;
    enum { N = 20000 };
    struct registry *r = filled(N);
    for (int round = 0; round < 3; round++) {
        uint32_t previous = ALIAS_NONE;
        for (uint32_t k = 0; k < N; k++) {
            uint32_t i = round == 2 ? (k * 7919) % N : k; /* the usual order twice, then another one */
            previous = registry_find(r, alias_of(i), previous);
            assert_int_not_equal(previous, ALIAS_NONE);
            assert_int_equal(registry_alias_series(r, previous), i);
        }
    }
    assert_int_equal(registry_find(r, alias_of(N), ALIAS_NONE), ALIAS_NONE);
    struct arena a = {0};
    struct labels ls = make_labels(&a, 5);
    uint32_t second = registry_add(r, alias_of(N + 1), &ls); /* another spelling of a known series */
    assert_int_equal(registry_alias_series(r, second), 5);
    assert_int_equal(registry_count(r), N);
    struct labels back = registry_labels(r, 5, &a);
    assert_true(labels_eq(&ls, &back));
    assert_true(hash128_eq(registry_id(r, 5), labels_id(&key, &ls)));
    arena_deinit(&a);
    registry_unref(r);
}

/* Matchers through the index give what matching each label set gives. */
static void test_select_against_scan(void **state)
{
    (void)state;
    enum { N = 2000 };
    struct registry *r = filled(N);
    static const struct {
        enum match_op op;
        const char *name, *value;
    } conditions[] = {{MATCH_EQ, "__name__", "metric_3"},
                      {MATCH_EQ, "instance", "host-11"},
                      {MATCH_EQ, "job", "node"},
                      {MATCH_EQ, "job", ""},
                      {MATCH_EQ, "nothing", ""},
                      {MATCH_EQ, "nothing", "x"},
                      {MATCH_NE, "job", "node"},
                      {MATCH_NE, "nothing", "x"},
                      {MATCH_RE, "__name__", "metric_[12]"},
                      {MATCH_RE, "instance", "host-1.*"},
                      {MATCH_RE, "instance", "host-1|host-2|nowhere"},
                      {MATCH_RE, "job", ".*"},
                      {MATCH_NRE, "instance", "host-[0-4].*"},
                      {MATCH_NRE, "nothing", ".+"}};
    struct arena a = {0};
    for (size_t i = 0; i < ARRAY_LEN(conditions); i++) {
        for (size_t k = 0; k < ARRAY_LEN(conditions); k++) {
            struct matcher m[2];
            size_t pick[] = {i, k};
            for (int j = 0; j < 2; j++)
                assert_null(matcher_init(&m[j], conditions[pick[j]].op, str_of(conditions[pick[j]].name),
                                         str_of(conditions[pick[j]].value)));
            uint32_t *handles;
            size_t n, at = 0;
            assert_null(registry_select(r, m, 2, &handles, &n));
            for (uint32_t h = 0; h < N; h++) {
                bool matched;
                arena_reset(&a);
                struct labels ls = registry_labels(r, h, &a);
                assert_null(matchers_match(m, 2, &ls, &matched));
                if (matched) assert_true(at < n && handles[at++] == h);
            }
            assert_int_equal(at, n);
            mem_free(handles);
            matcher_deinit(&m[0]);
            matcher_deinit(&m[1]);
        }
    }
    arena_deinit(&a);
    registry_unref(r);
}

static void assert_sorted(struct registry *r, uint32_t n)
{
    struct registry_order order = registry_sorted(r);
    struct arena a = {0};
    assert_int_equal(order.n_series, n);
    for (uint32_t i = 1; i < n; i++) {
        arena_reset(&a);
        struct labels x = registry_labels(r, order.series[i - 1], &a), y = registry_labels(r, order.series[i], &a);
        assert_true(labels_cmp_storage(&x, &y) < 0);
    }
    for (uint32_t i = 1; i < order.n_symbols; i++) {
        const struct symbol *x = registry_symbol_at(r, order.symbols[i - 1]),
                            *y = registry_symbol_at(r, order.symbols[i]);
        assert_true(str_cmp((str){x->p, x->n}, (str){y->p, y->n}) < 0);
    }
    arena_deinit(&a);
}

static void test_order_is_kept_and_extended(void **state)
{
    (void)state;
    struct registry *r = filled(700);
    assert_sorted(r, 700);
    struct arena a = {0};
    struct labels bare = {arena_alloc(&a, 2 * sizeof *bare.v), 2};
    bare.v[0] = (struct label){LABEL_NAME, STR("metric_3")};
    bare.v[1] = (struct label){STR("zone"), STR("a")}; /* neither job nor instance: sorts first in its metric */
    registry_add(r, alias_of(9000), &bare);
    for (uint32_t i = 700; i < 1000; i++) {
        struct labels ls = make_labels(&a, i);
        registry_add(r, alias_of(i), &ls);
    }
    assert_sorted(r, 1001);
    arena_deinit(&a);
    registry_unref(r);
}

static void test_months_agree_with_the_calendar(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, 7);
    for (int i = 0; i < 20000; i++) {
        time_t seconds = (time_t)rng_below(&rng, UINT64_C(20000000000)) - INT64_C(5000000000);
        struct tm tm;
        gmtime_r(&seconds, &tm);
        int32_t p = partition_of((int64_t)seconds * 1000);
        assert_int_equal(p, (tm.tm_year - 70) * 12 + tm.tm_mon);
        assert_true(partition_start(p) <= (int64_t)seconds * 1000);
        assert_true(partition_start(p + 1) > (int64_t)seconds * 1000);
        assert_int_equal(partition_of(partition_start(p) - 1), p - 1);
    }
    assert_int_equal(partition_start(0), 0);
    assert_int_equal(partition_of(-1), -1);
}

int main(void)
{
    for (size_t i = 0; i < sizeof key.secret; i++)
        key.secret[i] = (uint8_t)(i * 37 + 11);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_aliases),
        cmocka_unit_test(test_select_against_scan),
        cmocka_unit_test(test_order_is_kept_and_extended),
        cmocka_unit_test(test_months_agree_with_the_calendar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
