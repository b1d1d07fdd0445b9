/* Units buf and varint: what is written comes back, caps and broken input turn into sticky failures. */
#include "tests/unit/testing.h"

#include "storage/base/alloc.h"
#include "storage/base/buf.h"
#include "storage/base/rng.h"
#include "storage/base/varint.h"

static const uint64_t edges[] = {0, 1, 127, 128, 16383, 16384, UINT32_MAX, UINT64_C(1) << 63, UINT64_MAX};

static void test_round_trip(void **state)
{
    (void)state;
    struct buf b = {0};
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        buf_u8(&b, (uint8_t)edges[i]);
        buf_u16(&b, (uint16_t)edges[i]);
        buf_u32(&b, (uint32_t)edges[i]);
        buf_u64(&b, edges[i]);
        buf_varint(&b, edges[i]);
        buf_zigzag(&b, (int64_t)edges[i]);
    }
    buf_lenstr(&b, STR("hello"));
    buf_lenstr(&b, (str){NULL, 0});
    assert_ok(buf_status(&b, "test"));
    struct cursor c = cursor_of(b.data, b.n);
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        assert_int_equal(cursor_u8(&c), (uint8_t)edges[i]);
        assert_int_equal(cursor_u16(&c), (uint16_t)edges[i]);
        assert_int_equal(cursor_u32(&c), (uint32_t)edges[i]);
        assert_true(cursor_u64(&c) == edges[i]);
        assert_true(cursor_varint(&c) == edges[i]);
        assert_true(cursor_zigzag(&c) == (int64_t)edges[i]);
    }
    assert_true(str_eq(cursor_lenstr(&c), STR("hello")));
    assert_int_equal(cursor_lenstr(&c).n, 0);
    assert_false(c.failed);
    assert_int_equal(cursor_left(&c), 0);
    buf_deinit(&b);
}

static void test_layout_is_little_endian(void **state)
{
    (void)state;
    struct buf b = {0};
    buf_u32(&b, 0x01020304);
    buf_varint(&b, 300);
    buf_zigzag(&b, -2);
    static const uint8_t expected[] = {4, 3, 2, 1, 0xac, 0x02, 3};
    assert_int_equal(b.n, sizeof expected);
    assert_memory_equal(b.data, expected, sizeof expected);
    buf_set_u32(&b, 0, 7);
    assert_int_equal(b.data[0], 7);
    buf_clear(&b);
    assert_int_equal(b.n, 0);
    buf_deinit(&b);
}

static void test_cap_is_sticky(void **state)
{
    (void)state;
    struct buf b = {.max = 10};
    buf_put(&b, "12345678", 8);
    buf_u32(&b, 1);
    assert_true(b.failed);
    buf_u8(&b, 1); /* would fit, but something before it is missing */
    assert_int_equal(b.n, 8);
    buf_set_u64(&b, 8, 1); /* where the lost bytes would have been: ignored */
    assert_null(buf_reserve(&b, 1));
    err e = buf_status(&b, "thing");
    assert_non_null(strstr(err_message(e), "thing is over its limit of 10 bytes"));
    assert_err(e, ERR_TOO_LARGE);
    buf_clear(&b);
    buf_put(&b, "1234567890", 10);
    assert_ok(buf_status(&b, "thing"));
    assert_null(buf_reserve(&b, SIZE_MAX));
    buf_deinit(&b);
}

static void test_printf(void **state)
{
    (void)state;
    struct buf b = {.max = 8};
    buf_printf(&b, "%d", 123);
    buf_printf(&b, "%s", "45678"); /* exactly full: the NUL needs no room */
    assert_false(b.failed);
    assert_true(str_eq(buf_as_str(&b), STR("12345678")));
    buf_printf(&b, "%s", "");
    assert_false(b.failed);
    buf_printf(&b, "x");
    assert_true(b.failed);
    buf_deinit(&b);
}

static void test_cursor_fails_once_and_for_all(void **state)
{
    (void)state;
    static const uint8_t bytes[] = {1, 2, 3};
    struct cursor c = cursor_of(bytes, sizeof bytes);
    assert_int_equal(cursor_u32(&c), 0);
    assert_true(c.failed);
    assert_int_equal(cursor_u8(&c), 0); /* one byte would be there */
    assert_null(cursor_bytes(&c, 0));
    assert_int_equal(cursor_left(&c), 0);
    static const uint8_t length_lies[] = {200, 1, 'a', 'b'};
    c = cursor_of(length_lies, sizeof length_lies);
    assert_int_equal(cursor_lenstr(&c).n, 0);
    assert_true(c.failed);
    c = cursor_of(NULL, 0);
    assert_int_equal(cursor_varint(&c), 0);
    assert_true(c.failed);
}

static void test_broken_varints(void **state)
{
    (void)state;
    uint8_t bytes[11];
    uint64_t v;
    memset(bytes, 0x80, sizeof bytes);
    for (size_t n = 0; n <= sizeof bytes; n++)
        assert_null(varint_get(bytes, bytes + n, &v));
    bytes[9] = 0x01;
    assert_ptr_equal(varint_get(bytes, bytes + 10, &v), bytes + 10);
    assert_true(v == UINT64_C(1) << 63);
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        uint8_t *end = varint_put(bytes, edges[i]);
        for (uint8_t *cut = bytes; cut < end; cut++)
            assert_null(varint_get(bytes, cut, &v));
    }
}

static void test_random_varints(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (int i = 0; i < 100000; i++) {
        uint64_t v = rng_next(&r) >> rng_below(&r, 64), got;
        uint8_t bytes[VARINT_MAX];
        uint8_t *end = varint_put(bytes, v);
        assert_ptr_equal(varint_get(bytes, end, &got), end);
        assert_true(got == v);
        assert_true(unzigzag(zigzag((int64_t)v)) == (int64_t)v);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_layout_is_little_endian),
        cmocka_unit_test(test_cap_is_sticky),
        cmocka_unit_test(test_printf),
        cmocka_unit_test(test_cursor_fails_once_and_for_all),
        cmocka_unit_test(test_broken_varints),
        cmocka_unit_test(test_random_varints),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
