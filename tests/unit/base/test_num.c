/* Unit num: printing is shortest and reads back, reading is correctly rounded: both against the libc. */
#include "tests/unit/testing.h"

#include "storage/base/num.h"
#include "storage/base/rng.h"

#include <float.h>
#include <math.h>

enum { ROUNDS = 200000 }; /* per property; with the sanitizers a second and a half in all */

static void check_format(double v, const char *plain, const char *brief)
{
    char text[NUM_DOUBLE_MAX + 1];
    text[num_format_double(v, text)] = '\0';
    assert_string_equal(text, plain);
    text[num_format_double_short(v, text)] = '\0';
    assert_string_equal(text, brief);
}

static void test_known_texts(void **state)
{
    (void)state;
    check_format(0, "0", "0");
    check_format(-0.0, "-0", "-0");
    check_format(1, "1", "1");
    check_format(-12.5, "-12.5", "-12.5");
    check_format(0.1, "0.1", "0.1");
    check_format(0.3, "0.3", "0.3");
    check_format(0.1 + 0.2, "0.30000000000000004", "0.30000000000000004");
    check_format(NAN, "NaN", "NaN");
    check_format(INFINITY, "+Inf", "+Inf");
    check_format(-INFINITY, "-Inf", "-Inf");
    check_format(0.0001, "0.0001", "0.0001");
    check_format(0.00001, "0.00001", "1e-05");
    check_format(1.5e-7, "0.00000015", "1.5e-07");
    check_format(123456789012345680.0, "123456789012345680", "123456789012345680");
    check_format(1e20, "100000000000000000000", "100000000000000000000");
    check_format(1e21, "1000000000000000000000", "1e+21");
    check_format(-1.25e25, "-12500000000000000000000000", "-1.25e+25");
    check_format(1e23, "100000000000000000000000", "1e+23"); /* not the double's exact value */
    check_format(9007199254740993.0, "9007199254740992", "9007199254740992");
    check_format(9007199254740994.0, "9007199254740994", "9007199254740994");
    char text[NUM_DOUBLE_MAX + 1];
    assert_int_equal(num_format_double(5e-324, text), 326); /* 0. and 323 zeros */
    assert_memory_equal(text + 320, "000005", 6);
    assert_true(str_eq((str){text, num_format_double_short(5e-324, text)}, STR("5e-324")));
    assert_int_equal(num_format_double(DBL_MAX, text), 309);
    assert_int_equal(num_format_double(-2.2250738585072014e-308, text), 327);
    assert_true(num_format_double(-DBL_TRUE_MIN, text) <= NUM_DOUBLE_MAX);
}

static void test_integers(void **state)
{
    (void)state;
    char text[24];
    static const int64_t edges[] = {0, 9, 10, -1, 99, 100, INT64_MAX, INT64_MIN, INT64_C(1000000000000000000)};
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        char expected[24];
        int64_t back;
        size_t n = num_format_i64(edges[i], text);
        snprintf(expected, sizeof expected, "%lld", (long long)edges[i]);
        assert_true(str_eq((str){text, n}, str_of(expected)));
        assert_true(num_parse_i64((str){text, n}, &back) && back == edges[i]);
    }
    uint64_t power = 1;
    for (int digits = 1; digits <= 20; digits++, power *= 10) {
        assert_int_equal(num_format_u64(power, text), digits);
        assert_int_equal(num_format_u64(power - 1, text), digits == 1 ? 1 : digits - 1);
    }
    assert_true(str_eq((str){text, num_format_u64(UINT64_MAX, text)}, STR("18446744073709551615")));
}

static void test_bad_integers(void **state)
{
    (void)state;
    int64_t v = 5;
    static const char *const bad[] = {"",
                                      "-",
                                      "+",
                                      "1 ",
                                      " 1",
                                      "1.0",
                                      "0x1",
                                      "9223372036854775808",
                                      "-9223372036854775809",
                                      "1e3",
                                      "--1",
                                      "99999999999999999999999"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(num_parse_i64(str_of(bad[i]), &v));
    assert_true(num_parse_i64(STR("+007"), &v) && v == 7);
}

static void check_ms(int64_t ms, const char *expected)
{
    char text[25] = {0};
    text[num_format_ms(ms, text)] = '\0';
    assert_string_equal(text, expected);
}

static void test_milliseconds(void **state)
{
    (void)state;
    check_ms(0, "0");
    check_ms(12000, "12");
    check_ms(1700000000500, "1700000000.5");
    check_ms(1700000000050, "1700000000.05");
    check_ms(1700000000005, "1700000000.005");
    check_ms(-1, "-0.001");
    check_ms(-1500, "-1.5");
    check_ms(INT64_MIN, "-9223372036854775.808");
    check_ms(INT64_MAX, "9223372036854775.807");
}

/* A double of one of several kinds: any bits, few decimals, whole, close to a power of two or ten. */
static double random_double(struct rng *r)
{
    static const double divisors[] = {1, 10, 100, 1000, 1e4, 1e6};
    switch (rng_below(r, 6)) {
    case 0:
        return f64_from_bits(rng_next(r));
    case 1:
        return (double)rng_below(r, 1000000000) / divisors[rng_below(r, ARRAY_LEN(divisors))];
    case 2:
        return (double)(int64_t)(rng_next(r) >> rng_below(r, 64));
    case 3:
        return f64_from_bits((rng_below(r, 2047) << 52) + rng_below(r, 5) - 2);
    case 4:
        return f64_from_bits(f64_bits(pow(10, (double)rng_below(r, 600) - 300)) + rng_below(r, 5) - 2);
    default:
        return f64_from_bits(rng_next(r) >> (12 + rng_below(r, 52))); /* subnormal */
    }
}

/* Significant digits without trailing zeros of a plain decimal. */
static int significant(str s)
{
    int digits = 0, zeros = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9' || (s.p[i] == '0' && digits == 0)) continue;
        digits++;
        zeros = s.p[i] == '0' ? zeros + 1 : 0;
    }
    return digits ? digits - zeros : 1;
}

static void test_printing_reads_back(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (int i = 0; i < ROUNDS; i++) {
        double v = random_double(&r), back;
        if (!isfinite(v)) continue;
        char text[NUM_DOUBLE_MAX + 1];
        size_t n = num_format_double(v, text);
        text[n] = '\0';
        assert_true(n <= NUM_DOUBLE_MAX);
        if (f64_bits(strtod(text, NULL)) != f64_bits(v)) fail_msg("%a printed as %s", v, text);
        if (!num_parse_double((str){text, n}, &back) || f64_bits(back) != f64_bits(v))
            fail_msg("%s read as %a", text, back);
        text[n = num_format_double_short(v, text)] = '\0';
        if (f64_bits(strtod(text, NULL)) != f64_bits(v)) fail_msg("%a printed short as %s", v, text);
        if (!num_parse_double((str){text, n}, &back) || f64_bits(back) != f64_bits(v))
            fail_msg("%s read as %a", text, back);
    }
}

/* One digit fewer never reads back, and as many digits as printf needs give printf's own: the closest. */
static void test_printing_is_shortest(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (int i = 0; i < ROUNDS / 4; i++) {
        double v = fabs(random_double(&r));
        if (!isfinite(v)) continue;
        char text[NUM_DOUBLE_MAX + 1], shorter[64];
        size_t n = num_format_double(v, text);
        text[n] = '\0';
        int digits = significant((str){text, n});
        assert_in_range(digits, 1, 17);
        if (digits > 1) {
            snprintf(shorter, sizeof shorter, "%.*e", digits - 2, v);
            if (strtod(shorter, NULL) == v) fail_msg("%s is shorter than %s", shorter, text);
        }
        snprintf(shorter, sizeof shorter, "%.*e", digits - 1, v);
        double closest = strtod(shorter, NULL);
        /* only where printf's rounding of the exact value leaves the interval may ours differ */
        if (closest == v) assert_int_equal(significant(str_of(shorter)) >= digits, 1);
    }
}

static void check_parse(const char *text)
{
    double v = 0, expected = strtod(text, NULL);
    if (!num_parse_double(str_of(text), &v)) fail_msg("%s not taken", text);
    if (f64_bits(v) != f64_bits(expected)) fail_msg("%s read as %a, not %a", text, v, expected);
}

static void test_reading_is_correctly_rounded(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    char text[1200];
    for (int i = 0; i < ROUNDS; i++) {
        double v = random_double(&r);
        if (!isfinite(v)) continue;
        snprintf(text, sizeof text, "%.*e", (int)rng_below(&r, 30), v);
        if (isfinite(strtod(text, NULL))) check_parse(text);
    }
    for (int i = 0; i < ROUNDS; i++) {
        snprintf(text, sizeof text, "%llu.%llue%d", (unsigned long long)(rng_next(&r) >> rng_below(&r, 64)),
                 (unsigned long long)(rng_next(&r) >> rng_below(&r, 64)), (int)rng_below(&r, 640) - 340);
        if (isfinite(strtod(text, NULL))) check_parse(text);
    }
}

/* The exact midpoint of two neighbours, and just above and below it, with all its digits. */
static void test_halfway_cases(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static char text[1500];
    for (int i = 0; i < 2000; i++) {
        double v = fabs(i % 2 ? random_double(&r) : f64_from_bits(rng_below(&r, UINT64_C(1) << 56)));
        if (!isfinite(v) || v > 1e300) continue;
        long double half = ((long double)v + (long double)nextafter(v, INFINITY)) / 2; /* 64 bits: exact */
        int n = snprintf(text, sizeof text - 8, "%.1090Lf", half);
        check_parse(text);
        text[n] = '1';
        text[n + 1] = '\0';
        check_parse(text);
    }
    check_parse("9007199254740993");
    check_parse("9007199254740993.0000000000000000000000000000000000000000001");
    check_parse("2.2250738585072011e-308"); /* once an endless loop elsewhere */
    check_parse("2.4703282292062327208e-324");
    check_parse("2.4703282292062328e-324");
    check_parse("1.7976931348623157e308");
}

static void test_long_numbers(void **state)
{
    (void)state;
    static char text[30000];
    double v;
    memset(text, '0', sizeof text);
    memcpy(text, "0.", 2);
    memcpy(text + 20000, "1e20000", 8);
    assert_true(num_parse_double(str_of(text), &v));
    assert_true(v == 10);
    memset(text, '9', 20000);
    memcpy(text + 20000, "e-20000", 8);
    assert_true(num_parse_double(str_of(text), &v));
    assert_true(v == 1);
    assert_true(num_parse_double(STR("1e-99999999999999999999999"), &v) && v == 0);
    assert_true(num_parse_double(STR("0e99999999999999999999999"), &v) && v == 0);
    assert_false(num_parse_double(STR("1e99999999999999999999999"), &v));
}

static void test_grammar(void **state)
{
    (void)state;
    double v;
    static const char *const good[] = {"1",
                                       "+1",
                                       "-1",
                                       "1.",
                                       ".5",
                                       "-.5",
                                       "1e5",
                                       "1E+5",
                                       "1e-5",
                                       "00012",
                                       "0x10",
                                       "0X1.8p1",
                                       "0x.8p-3",
                                       "0x1p-1074",
                                       "0x1.fffffffffffff8p0",
                                       "0x1.fffffffffffff7p0",
                                       "0x123456789abcdef01.8",
                                       "-0"};
    for (size_t i = 0; i < ARRAY_LEN(good); i++)
        check_parse(good[i]);
    static const char *const bad[] = {"",     "+",        "-",     ".",    "e5",  "1e",      "1e+",   "1 ",
                                      " 1",   "1_000",    "1.2.3", "0x",   "0x.", "0x1p",    "0xg",   "abc",
                                      "nanx", "+nan",     "-nan",  "infi", "--1", "1e5x",    "1e400", "-1e400",
                                      "1,5",  "0x1p2000", "1d5",   "i",    "in",  "infinit", "\xff",  "1e5.5"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        if (num_parse_double(str_of(bad[i]), &v)) fail_msg("'%s' was taken as %a", bad[i], v);
    assert_true(num_parse_double(STR("Inf"), &v) && v == INFINITY);
    assert_true(num_parse_double(STR("+INFINITY"), &v) && v == INFINITY);
    assert_true(num_parse_double(STR("-inf"), &v) && v == -INFINITY);
    assert_true(num_parse_double(STR("nAn"), &v) && f64_bits(v) == UINT64_C(0x7ff8000000000001));
    assert_true(num_parse_double((str){"12345", 2}, &v) && v == 12); /* not NUL-terminated */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known_texts),
        cmocka_unit_test(test_integers),
        cmocka_unit_test(test_bad_integers),
        cmocka_unit_test(test_milliseconds),
        cmocka_unit_test(test_printing_reads_back),
        cmocka_unit_test(test_printing_is_shortest),
        cmocka_unit_test(test_reading_is_correctly_rounded),
        cmocka_unit_test(test_halfway_cases),
        cmocka_unit_test(test_long_numbers),
        cmocka_unit_test(test_grammar),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
