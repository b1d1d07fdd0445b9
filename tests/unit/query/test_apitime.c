/* Unit apitime: times and durations of the HTTP API. */
#include "tests/unit/testing.h"

#include "query/parser.h"
#include "query/query.h"

static void expect_time(const char *text, int64_t want)
{
    int64_t ms = 0;
    assert_ok(query_parse_time(str_of(text), &ms));
    if (ms != want) print_message("%s gives %lld\n", text, (long long)ms);
    assert_true(ms == want);
}

static void test_times(void **state)
{
    (void)state;
    expect_time("0", 0);
    expect_time("1700000000", INT64_C(1700000000000));
    expect_time("1700000000.123", INT64_C(1700000000123));
    expect_time("1.7e9", INT64_C(1700000000000));
    expect_time("-1.5", -1500);
    expect_time("1970-01-01T00:00:00Z", 0);
    expect_time("2023-11-14T22:13:20.5Z", INT64_C(1700000000500));
    expect_time("2023-11-14T22:13:20.123456789Z", INT64_C(1700000000123));
    expect_time("2023-11-14T23:43:20+01:30", INT64_C(1700000000000));
    expect_time("2023-11-14T17:13:20-05:00", INT64_C(1700000000000));
    expect_time("2024-02-29T00:00:00Z", INT64_C(1709164800000));
    expect_time("2000-03-01T00:00:00Z", INT64_C(951868800000));
    expect_time("1969-12-31T23:59:59.9Z", -100);
    expect_time("0001-01-01T00:00:00Z", INT64_C(-62135596800000));
    expect_time("9999-12-31T23:59:59Z", INT64_C(253402300799000));
    expect_time("-292273086-05-16T16:47:06Z", INT64_C(-9223309901257974000));
    expect_time("292277025-08-18T07:12:54.999999999Z", INT64_C(9223309901257974999));
}

static void test_bad_times(void **state)
{
    (void)state;
    static const char *const bad[] = {"",
                                      "now",
                                      "1e300",
                                      "NaN",
                                      "Inf",
                                      "2023-11-14",
                                      "2023-11-14T22:13:20",
                                      "2023-13-14T22:13:20Z",
                                      "2023-02-29T22:13:20Z",
                                      "2023-11-14T24:13:20Z",
                                      "2023-11-14T22:60:20Z",
                                      "2023-11-14T22:13:60Z",
                                      "2023-11-14t22:13:20Z",
                                      "2023-11-14T22:13:20.Z",
                                      "2023-11-14T22:13:20+0100",
                                      "2023-11-14T22:13:20Zx",
                                      "20231-1-14T22:13:20Z"};
    int64_t ms;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_err(query_parse_time(str_of(bad[i]), &ms), ERR_INVALID);
}

/* Every day of some centuries, counted by hand. */
static void test_calendar(void **state)
{
    (void)state;
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    int64_t day = 0;
    for (int year = 1970; year < 2105; year++)
        for (int month = 1; month <= 12; month++) {
            bool leap = year % 4 == 0 && year != 2100;
            for (int d = 1; d <= days[month - 1] + (month == 2 && leap); d++, day++) {
                char text[64];
                snprintf(text, sizeof text, "%04d-%02d-%02dT00:00:00Z", year, month, d);
                expect_time(text, day * 86400000);
            }
        }
}

static void test_durations(void **state)
{
    (void)state;
    static const struct {
        const char *text;
        int64_t ms;
    } cases[] = {{"5m", 300000}, {"1h30m", 5400000},           {"15", 15000}, {"0.5", 500}, {"1e-3", 1}, {"0", 0},
                 {"-3", -3000},  {"1y", INT64_C(31536000000)}, {"250ms", 250}};
    int64_t ms;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_ok(promql_parse_duration(str_of(cases[i].text), &ms));
        assert_true(ms == cases[i].ms);
        assert_ok(query_parse_duration(str_of(cases[i].text), &ms));
        assert_true(ms == cases[i].ms);
    }
    static const char *const bad[] = {"", "m", "5x", "5m1h", "1.5h", "-5m", "1e300", "NaN", "Inf", "5 m", "400y"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_err(promql_parse_duration(str_of(bad[i]), &ms), ERR_INVALID);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_bad_times),
        cmocka_unit_test(test_calendar),
        cmocka_unit_test(test_durations),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
