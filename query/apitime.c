/*
 * apitime.c: times and durations as the HTTP API takes them.
 *
 *   time      1700000000.123, 1.7e9 (unix seconds) | 2023-11-14T22:13:20.123Z, ...+01:00 (RFC 3339)
 *             | Prometheus's own names of the first and last time it knows
 *   duration  0.5, 15 (seconds) | 5m, 1h30m
 *
 * Results are milliseconds. What does not fit is refused, never wrapped. Stateless: any thread.
 */
#include <math.h>

#include "query/literal.h"
#include "query/parser.h"
#include "query/query.h"
#include "storage/base/num.h"

#define TIME_MAX_SECONDS 9223309901257974.0
#define TIME_MIN_MS (INT64_C(-9223309901257974) * 1000)
#define TIME_MAX_MS (INT64_C(9223309901257974) * 1000 + 999)
#define TIME_MIN_TEXT "-292273086-05-16T16:47:06Z"
#define TIME_MAX_TEXT "292277025-08-18T07:12:54.999999999Z"

/* ---- RFC 3339 ----------------------------------------------------------------------------------- */

struct scan {
    str left;
    bool failed;
};

static int take_digits(struct scan *s, size_t n)
{
    int v = 0;
    for (size_t i = 0; i < n && !s->failed; i++) {
        s->failed = i >= s->left.n || s->left.p[i] < '0' || s->left.p[i] > '9';
        if (!s->failed) v = v * 10 + (s->left.p[i] - '0');
    }
    if (!s->failed) s->left = (str){s->left.p + n, s->left.n - n};
    return v;
}

static bool take_if(struct scan *s, char c)
{
    if (s->failed || s->left.n == 0 || s->left.p[0] != c) return false;
    s->left = (str){s->left.p + 1, s->left.n - 1};
    return true;
}

static void take(struct scan *s, char c)
{
    if (!take_if(s, c)) s->failed = true;
}

/* Days since 1970-01-01 of a date of the Gregorian calendar. Source: H. Hinnant, "chrono-compatible low-level date
 * algorithms": years begin in March, so that the leap day comes last. */
static int64_t days_from_date(int year, int month, int day)
{
    int y = month <= 2 ? year - 1 : year;
    int era = (y >= 0 ? y : y - 399) / 400;
    int year_of_era = y - era * 400;
    int day_of_year = (153 * (month + (month > 2 ? -3 : 9)) + 2) / 5 + day - 1;
    int day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    return (int64_t)era * 146097 + day_of_era - 719468;
}

static int days_in_month(int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    bool leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    return days[month - 1] + (month == 2 && leap);
}

static int64_t take_date(struct scan *s)
{
    int year = take_digits(s, 4);
    take(s, '-');
    int month = take_digits(s, 2);
    take(s, '-');
    int day = take_digits(s, 2);
    if (s->failed || month < 1 || month > 12 || day < 1 || day > days_in_month(year, month)) {
        s->failed = true;
        return 0;
    }
    return days_from_date(year, month, day) * 86400;
}

static int64_t take_clock(struct scan *s)
{
    int hour = take_digits(s, 2);
    take(s, ':');
    int minute = take_digits(s, 2);
    take(s, ':');
    int second = take_digits(s, 2);
    if (hour > 23 || minute > 59 || second > 59) s->failed = true;
    return hour * 3600 + minute * 60 + second;
}

/* The fraction of a second: ms, what is finer is cut. */
static int64_t take_fraction(struct scan *s)
{
    if (!take_if(s, '.') && !take_if(s, ',')) return 0;
    int64_t ms = 0, unit = 100;
    size_t n = 0;
    for (; n < s->left.n && s->left.p[n] >= '0' && s->left.p[n] <= '9'; n++, unit /= 10)
        ms += (s->left.p[n] - '0') * unit;
    if (n == 0) s->failed = true;
    s->left = (str){s->left.p + n, s->left.n - n};
    return ms;
}

/* Seconds east of Greenwich. */
static int64_t take_zone(struct scan *s)
{
    if (take_if(s, 'Z')) return 0;
    bool west = take_if(s, '-');
    if (!west) take(s, '+');
    int hours = take_digits(s, 2);
    take(s, ':');
    int minutes = take_digits(s, 2);
    if (hours > 23 || minutes > 59) s->failed = true;
    int64_t seconds = hours * 3600 + minutes * 60;
    return west ? -seconds : seconds;
}

static bool parse_rfc3339(str text, int64_t *ms)
{
    struct scan s = {.left = text};
    int64_t seconds = take_date(&s);
    take(&s, 'T');
    seconds += take_clock(&s);
    int64_t fraction = take_fraction(&s);
    seconds -= take_zone(&s);
    *ms = seconds * 1000 + fraction;
    return !s.failed && s.left.n == 0;
}

/* ---- entries ------------------------------------------------------------------------------------ */

err query_parse_time(str text, int64_t *ms)
{
    double seconds;
    if (num_parse_double(text, &seconds)) {
        double whole, fraction = modf(seconds, &whole);
        if (fabs(seconds) < TIME_MAX_SECONDS) {
            *ms = (int64_t)whole * 1000 + (int64_t)round(fraction * 1000);
            return NULL;
        }
    } else if (parse_rfc3339(text, ms)) {
        return NULL;
    } else if (str_eq(text, STR(TIME_MIN_TEXT))) {
        *ms = TIME_MIN_MS;
        return NULL;
    } else if (str_eq(text, STR(TIME_MAX_TEXT))) {
        *ms = TIME_MAX_MS;
        return NULL;
    }
    str shown = {text.p, text.n < 100 ? text.n : 100};
    return err_new(ERR_INVALID, "cannot parse \"%.*s\" to a valid timestamp", STR_ARG(shown));
}

err promql_parse_duration(str text, int64_t *ms)
{
    double seconds;
    int64_t ns;
    str shown = {text.p, text.n < 100 ? text.n : 100};
    if (num_parse_double(text, &seconds)) {
        if (!(fabs(seconds) < 9223372036.854775)) /* an int64 of nanoseconds; also NaN */
            return err_new(ERR_INVALID, "cannot parse \"%.*s\" to a valid duration, it is out of range",
                           STR_ARG(shown));
        *ms = (int64_t)(seconds * 1e9) / 1000000;
        return NULL;
    }
    if (!literal_duration(text, &ns, NULL))
        return err_new(ERR_INVALID, "cannot parse \"%.*s\" to a valid duration", STR_ARG(shown));
    *ms = ns / 1000000;
    return NULL;
}

err query_parse_duration(str text, int64_t *ms)
{
    return promql_parse_duration(text, ms);
}
