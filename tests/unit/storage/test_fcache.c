/* test_fcache.c: the frame cache: hits and misses, its bound, what CLOCK keeps, pins, forgetting, failing loads. */
#include "tests/unit/storage/fcache_tests.h"

static void touch(struct fcache *c, struct loader *l, uint64_t offset)
{
    const struct fcache_entry *e;
    assert_ok(fcache_get(c, l->part, offset, load_known, l, &e));
    check_known(e, l->part, offset);
    fcache_unpin(c, e);
}

static void test_hits(void **state)
{
    (void)state;
    struct metrics *m = metrics_create();
    struct fcache *c = fcache_create(1 << 20, m);
    struct loader a = {.part = 1}, b = {.part = 2};
    touch(c, &a, 5);
    touch(c, &a, 5);
    touch(c, &b, 5);
    touch(c, &a, 6);
    assert_int_equal(a.loads, 2);
    assert_int_equal(b.loads, 1);
    struct buf text = {0};
    metrics_print(m, &text);
    buf_u8(&text, 0);
    assert_non_null(strstr((char *)text.data, "varve_cache_hits_total 1\n"));
    assert_non_null(strstr((char *)text.data, "varve_cache_misses_total 3\n"));
    buf_deinit(&text);
    fcache_destroy(c);
    metrics_destroy(m);
}

static void test_bound(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static const size_t sizes[] = {0, 5000, 100000, 3 << 20};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct fcache *c = fcache_create(sizes[i], NULL);
        struct loader l = {.part = 3};
        for (int k = 0; k < 5000; k++) {
            touch(c, &l, rng_below(&r, 4000));
            assert_true(fcache_bytes(c) <= sizes[i] + 16 * 3300); /* a newest entry a shard may be over */
        }
        if (sizes[i] > 16 * 3300) assert_true(fcache_bytes(c) > sizes[i] / 2); /* it is used, too */
        fcache_destroy(c);
    }
}

/* What is used again and again survives a scan of everything else. */
static void test_clock(void **state)
{
    (void)state;
    struct fcache *c = fcache_create(200000, NULL);
    struct loader hot = {.part = 1}, cold = {.part = 2};
    for (uint64_t i = 0; i < 2000; i++) {
        touch(c, &cold, i * 3000);
        for (uint64_t k = 0; k < 5; k++)
            touch(c, &hot, k * 3000);
    }
    assert_int_equal(hot.loads, 5);
    assert_int_equal(cold.loads, 2000);
    fcache_destroy(c);
}

static void test_pins_and_forgetting(void **state)
{
    (void)state;
    struct fcache *c = fcache_create(2000, NULL);
    struct loader a = {.part = 1}, b = {.part = 2};
    const struct fcache_entry *pinned;
    assert_ok(fcache_get(c, 1, 2999, load_known, &a, &pinned));
    for (uint64_t i = 0; i < 50; i++)
        touch(c, &b, i);
    fcache_forget(c, 1);
    check_known(pinned, 1, 2999);
    touch(c, &a, 2999);
    assert_int_equal(a.loads, 1);
    fcache_unpin(c, pinned);
    fcache_forget(c, 1);
    touch(c, &a, 2999);
    assert_int_equal(a.loads, 2);
    fcache_forget(c, 1);
    fcache_forget(c, 2);
    assert_int_equal(fcache_bytes(c), 0);
    fcache_destroy(c);
}

static void test_failing_load(void **state)
{
    (void)state;
    struct fcache *c = fcache_create(1 << 20, NULL);
    struct loader l = {.part = 1, .fail = true};
    const struct fcache_entry *e;
    assert_err(fcache_get(c, 1, 1, load_known, &l, &e), ERR_IO);
    l.fail = false;
    touch(c, &l, 1);
    assert_int_equal(l.loads, 2);
    fcache_destroy(c);
    fcache_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hits),         cmocka_unit_test(test_bound),
        cmocka_unit_test(test_clock),        cmocka_unit_test(test_pins_and_forgetting),
        cmocka_unit_test(test_failing_load), cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
