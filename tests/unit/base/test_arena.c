/* Units alloc and arena: growth, alignment, marks, reset, poisoning. */
#include "tests/unit/testing.h"

#include "storage/base/alloc.h"
#include "storage/base/arena.h"
#include "storage/base/rng.h"

#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

static void test_alloc(void **state)
{
    (void)state;
    char *p = mem_alloc(0);
    assert_non_null(p);
    mem_free(p);
    mem_free(NULL);
    uint8_t *z = mem_zalloc(1000);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(z[i], 0);
    z[999] = 7;
    z = mem_realloc(z, 5000);
    assert_int_equal(z[999], 7);
    uint8_t *copy = mem_dup(z, 1000);
    assert_int_equal(copy[999], 7);
    char *text = mem_dup_str((str){"abcdef", 3});
    assert_string_equal(text, "abc");
    mem_free(text);
    mem_free(copy);
    mem_free(z);
    mem_release();
}

static void test_grow(void **state)
{
    (void)state;
    uint32_t *a = NULL;
    size_t cap = 0, moves = 0;
    for (uint32_t i = 0; i < 10000; i++) {
        size_t before = cap;
        a = mem_grow(a, &cap, i + 1u, sizeof *a);
        moves += cap != before;
        assert_true(cap > i);
        a[i] = i;
    }
    assert_true(moves < 15); /* doubling, not creeping */
    for (uint32_t i = 0; i < 10000; i++)
        assert_int_equal(a[i], i);
    mem_free(a);
}

static void test_in_use_sees_allocations(void **state)
{
    (void)state;
    size_t before = mem_in_use();
    void *p = mem_alloc(10 << 20);
    memset(p, 1, 10 << 20);
    size_t with = mem_in_use();
    assert_true(with >= before + (9 << 20));
    mem_free(p);
    assert_true(mem_in_use() <= with - (9 << 20));
}

static void test_objects_are_apart_and_aligned(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct arena a = {0};
    enum { N = 3000 };
    static uint8_t *objects[N];
    static size_t sizes[N];
    for (int i = 0; i < N; i++) {
        sizes[i] = rng_below(&r, rng_chance(&r, 0.01) ? 100000 : 200);
        objects[i] = arena_alloc(&a, sizes[i]);
        assert_int_equal((uintptr_t)objects[i] % 16, 0);
        memset(objects[i], i & 0xff, sizes[i]);
    }
    for (int i = 0; i < N; i++)
        for (size_t k = 0; k < sizes[i]; k++)
            assert_int_equal(objects[i][k], i & 0xff);
    assert_true(a.bytes > 0);
    arena_deinit(&a);
    assert_int_equal(a.bytes, 0);
}

static void test_strings(void **state)
{
    (void)state;
    struct arena a;
    arena_init(&a);
    str s = arena_str(&a, STR("hello"));
    assert_int_equal(s.n, 5);
    assert_string_equal(s.p, "hello");
    str empty = arena_str(&a, (str){NULL, 0});
    assert_int_equal(empty.n, 0);
    assert_string_equal(empty.p, "");
    str f = arena_printf(&a, "%s-%d", "x", 42);
    assert_true(str_eq(f, STR("x-42")));
    uint64_t v = 9;
    assert_int_equal(*(uint64_t *)arena_dup(&a, &v, sizeof v), 9);
    assert_int_equal(*(uint64_t *)arena_zalloc(&a, sizeof v), 0);
    arena_deinit(&a);
}

static void test_rewind(void **state)
{
    (void)state;
    struct arena a = {0};
    struct arena_mark start = arena_mark(&a);
    arena_alloc(&a, 100);
    struct arena_mark mark = arena_mark(&a);
    size_t bytes = a.bytes;
    char *first = arena_alloc(&a, 32);
    for (int i = 0; i < 100; i++)
        arena_alloc(&a, 10000);
    assert_true(a.bytes > bytes);
    arena_rewind(&a, mark);
    assert_int_equal(a.bytes, bytes);
    assert_ptr_equal(arena_alloc(&a, 32), first);
    arena_rewind(&a, start);
    assert_int_equal(a.bytes, bytes); /* a block is kept for the next round */
    arena_deinit(&a);
}

static void test_reset_keeps_the_largest(void **state)
{
    (void)state;
    struct arena a = {0};
    arena_alloc(&a, 3 << 20);
    arena_alloc(&a, 2 << 20);
    arena_reset(&a);
    assert_true(a.bytes >= 3 << 20 && a.bytes < 4 << 20);
    size_t kept = a.bytes;
    arena_alloc(&a, 3 << 20);
    assert_int_equal(a.bytes, kept);
    arena_deinit(&a);
    arena_reset(&a);
    arena_deinit(&a);
}

static void test_blocks_double_to_a_megabyte(void **state)
{
    (void)state;
    struct arena a = {0};
    size_t last = 0, largest_step = 0;
    for (int i = 0; i < 100000; i++) {
        arena_alloc(&a, 100);
        if (a.bytes - last > largest_step) largest_step = a.bytes - last;
        last = a.bytes;
    }
    assert_int_equal(largest_step, 1 << 20);
    arena_deinit(&a);
}

static void test_poison(void **state)
{
    (void)state;
#ifdef __SANITIZE_ADDRESS__
    struct arena a = {0};
    struct arena_mark mark = arena_mark(&a);
    char *p = arena_alloc(&a, 10);
    assert_false(__asan_address_is_poisoned(p + 9));
    assert_true(__asan_address_is_poisoned(p + 10));
    assert_true(__asan_address_is_poisoned(p + 16));
    arena_rewind(&a, mark);
    assert_true(__asan_address_is_poisoned(p));
    arena_deinit(&a);
#else
    skip();
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_alloc),
        cmocka_unit_test(test_grow),
        cmocka_unit_test(test_in_use_sees_allocations),
        cmocka_unit_test(test_objects_are_apart_and_aligned),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_rewind),
        cmocka_unit_test(test_reset_keeps_the_largest),
        cmocka_unit_test(test_blocks_double_to_a_megabyte),
        cmocka_unit_test(test_poison),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
