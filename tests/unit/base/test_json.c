/* Unit json: commas and nesting, escapes as Go's encoding/json writes them, numbers. */
#include "tests/unit/testing.h"

#include "storage/base/json.h"

#include <math.h>

static struct buf out;
static struct json j;

static int fresh(void **state)
{
    (void)state;
    out = (struct buf){0};
    json_init(&j, &out);
    return 0;
}

static int done(void **state)
{
    (void)state;
    buf_deinit(&out);
    return 0;
}

static void expect(const char *text)
{
    buf_u8(&out, 0);
    assert_string_equal((const char *)out.data, text);
}

static void test_nesting(void **state)
{
    (void)state;
    json_object(&j);
    json_key(&j, "a");
    json_array(&j);
    json_i64(&j, -1);
    json_array(&j);
    json_array_end(&j);
    json_object(&j);
    json_object_end(&j);
    json_null(&j);
    json_array_end(&j);
    json_key_str(&j, STR("b\n"));
    json_bool(&j, true);
    json_key(&j, "c");
    json_object(&j);
    json_key(&j, "d");
    json_cstr(&j, "e");
    json_object_end(&j);
    json_key(&j, "f");
    json_raw(&j, STR("[1,2]"));
    json_object_end(&j);
    expect("{\"a\":[-1,[],{},null],\"b\\n\":true,\"c\":{\"d\":\"e\"},\"f\":[1,2]}");
}

static void check_string(str s, const char *expected)
{
    fresh(NULL);
    json_str(&j, s);
    expect(expected);
    done(NULL);
}

static void test_strings(void **state)
{
    (void)state;
    check_string(STR(""), "\"\"");
    check_string(STR("plain <&> \x7f"), "\"plain <&> \x7f\"");
    check_string(STR("\"\\/"), "\"\\\"\\\\/\"");
    check_string(STR("\b\f\n\r\t\x01\x1f"), "\"\\b\\f\\n\\r\\t\\u0001\\u001f\"");
    check_string((str){"a\0b", 3}, "\"a\\u0000b\"");
    check_string(STR("\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80"), "\"\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80\"");
    check_string(STR("\xe2\x80\xa8\xe2\x80\xa9"), "\"\\u2028\\u2029\"");
}

static void test_invalid_utf8(void **state)
{
    (void)state;
    check_string(STR("a\xff"), "\"a\\ufffd\"");
    check_string(STR("\xc0\x80"), "\"\\ufffd\\ufffd\"");            /* overlong */
    check_string(STR("\xe0\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\""); /* overlong */
    check_string(STR("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\""); /* a surrogate */
    check_string(STR("\xf4\x90\x80\x80"), "\"\\ufffd\\ufffd\\ufffd\\ufffd\"");
    check_string(STR("\xe2\x82"), "\"\\ufffd\\ufffd\""); /* cut off */
    check_string(STR("\xc3("), "\"\\ufffd(\"");
}

static void test_numbers(void **state)
{
    (void)state;
    json_array(&j);
    json_u64(&j, UINT64_MAX);
    json_i64(&j, INT64_MIN);
    json_double(&j, 0.1);
    json_double(&j, 1e300);
    json_double(&j, NAN);
    json_sample_value(&j, 1.5);
    json_sample_value(&j, -INFINITY);
    json_sample_value(&j, 1e21);
    json_sample_value(&j, -9e20);
    json_sample_value(&j, 1.5e-7);
    json_sample_value(&j, 0.000001);
    json_ms(&j, 1700000000123);
    json_ms(&j, 1700000000000);
    json_array_end(&j);
    expect("[18446744073709551615,-9223372036854775808,0.1,1e+300,\"NaN\",\"1.5\",\"-Inf\",\"1e+21\","
           "\"-900000000000000000000\",\"1.5e-07\",\"0.000001\",1700000000.123,1700000000]");
}

static void test_cap_is_the_bufs(void **state)
{
    (void)state;
    out.max = 20;
    json_array(&j);
    for (int i = 0; i < 100; i++)
        json_str(&j, STR("long enough"));
    json_array_end(&j);
    assert_true(out.failed);
    assert_err(buf_status(&out, "result"), ERR_TOO_LARGE);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nesting, fresh, done),
        cmocka_unit_test(test_strings),
        cmocka_unit_test(test_invalid_utf8),
        cmocka_unit_test_setup_teardown(test_numbers, fresh, done),
        cmocka_unit_test_setup_teardown(test_cap_is_the_bufs, fresh, done),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
