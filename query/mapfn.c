/*
 * mapfn.c: functions of one value.
 *
 * Pure. One loop a column; the function is picked per value by a switch that the branch predictor
 * always guesses, which costs less than the mathematics. Dates are computed on the proleptic Gregorian
 * calendar in 64 bits, for any second that a double can name.
 */
#include "query/mapfn.h"

#include <math.h>

double go_min(double a, double b)
{
    if (a == -INFINITY || b == -INFINITY) return -INFINITY;
    if (isnan(a) || isnan(b)) return NAN;
    if (a == 0 && a == b) return signbit(a) ? a : b;
    return a < b ? a : b;
}

double go_max(double a, double b)
{
    if (a == INFINITY || b == INFINITY) return INFINITY;
    if (isnan(a) || isnan(b)) return NAN;
    if (a == 0 && a == b) return signbit(a) ? b : a;
    return a > b ? a : b;
}

static double sign_of(double x)
{
    return x < 0 ? -1 : x > 0 ? 1 : x;
}

static double round_to(double x, double nearest)
{
    double inverse = 1.0 / nearest;
    return floor(x * inverse + 0.5) / inverse;
}

static double plain(enum map_code code, double x)
{
    switch (code) {
    case MAP_ABS:
        return fabs(x);
    case MAP_ACOS:
        return acos(x);
    case MAP_ACOSH:
        return acosh(x);
    case MAP_ASIN:
        return asin(x);
    case MAP_ASINH:
        return asinh(x);
    case MAP_ATAN:
        return atan(x);
    case MAP_ATANH:
        return atanh(x);
    case MAP_CEIL:
        return ceil(x);
    case MAP_COS:
        return cos(x);
    case MAP_COSH:
        return cosh(x);
    case MAP_DEG:
        return x * 180 / M_PI;
    case MAP_EXP:
        return exp(x);
    case MAP_FLOOR:
        return floor(x);
    case MAP_LN:
        return log(x);
    case MAP_LOG10:
        return log10(x);
    case MAP_LOG2:
        return log2(x);
    case MAP_RAD:
        return x * M_PI / 180;
    case MAP_SGN:
        return sign_of(x);
    case MAP_SIN:
        return sin(x);
    case MAP_SINH:
        return sinh(x);
    case MAP_SQRT:
        return sqrt(x);
    case MAP_TAN:
        return tan(x);
    case MAP_TANH:
        return tanh(x);
    default:
        return x;
    }
}

/* A clamp to an empty interval has no value. */
static double clamp(double x, double low, double high)
{
    return high < low ? no_sample() : go_max(low, go_min(high, x));
}

void mapfn_floats(enum map_code code, double *v, uint32_t n, const double *const param[2])
{
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(v[i])) continue;
        if (code == MAP_CLAMP)
            v[i] = clamp(v[i], param[0][i], param[1][i]);
        else if (code == MAP_CLAMP_MIN)
            v[i] = clamp(v[i], param[0][i], INFINITY);
        else if (code == MAP_CLAMP_MAX)
            v[i] = clamp(v[i], -INFINITY, param[0][i]);
        else if (code == MAP_ROUND)
            v[i] = round_to(v[i], param[0] ? param[0][i] : 1);
        else
            v[i] = plain(code, v[i]);
    }
}

bool mapfn_takes_hists(enum map_code code)
{
    return code == MAP_HISTOGRAM_AVG || code == MAP_HISTOGRAM_COUNT || code == MAP_HISTOGRAM_SUM ||
           code == MAP_HISTOGRAM_STDDEV || code == MAP_HISTOGRAM_STDVAR;
}

double mapfn_hist(enum map_code code, const struct hist *h, struct arena *a)
{
    switch (code) {
    case MAP_HISTOGRAM_AVG:
        return h->sum / h->count;
    case MAP_HISTOGRAM_COUNT:
        return h->count;
    case MAP_HISTOGRAM_SUM:
        return h->sum;
    case MAP_HISTOGRAM_STDDEV:
        return sqrt(hist_variance(h, a));
    default:
        return hist_variance(h, a);
    }
}

/* ---- dates ---------------------------------------------------------------------------------------------- */

struct date {
    int64_t year;
    int month, day; /* from 1 */
    int64_t days;   /* since the epoch */
    int64_t second; /* of the day */
};

static bool is_leap(int64_t year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static int days_in_month(int64_t year, int month)
{
    static const int8_t DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    return month == 2 && is_leap(year) ? 29 : DAYS[month - 1];
}

/* Eras of 400 years have the same number of days; years are counted from March, so that the leap day ends one. */
static struct date date_of(int64_t days, int64_t second)
{
    struct date d = {.days = days, .second = second};
    int64_t shifted = days + 719468; /* days since 0000-03-01 */
    int64_t era = (shifted >= 0 ? shifted : shifted - 146096) / 146097;
    int64_t of_era = shifted - era * 146097;
    int64_t year = (of_era - of_era / 1460 + of_era / 36524 - of_era / 146096) / 365;
    int64_t of_year = of_era - (365 * year + year / 4 - year / 100);
    int64_t month = (5 * of_year + 2) / 153; /* March = 0 */
    d.day = (int)(of_year - (153 * month + 2) / 5 + 1);
    d.month = (int)(month < 10 ? month + 3 : month - 9);
    d.year = year + era * 400 + (d.month <= 2);
    return d;
}

/* Go counts seconds without sign from the year -292277022399; what lies before comes out at the other end. */
#define GO_FIRST_SECOND (-INT64_C(9223372028715321600))

static struct date date_of_double(double seconds)
{
    /* what no int64 holds becomes the least one, as on the machines that Prometheus runs on */
    int64_t s = seconds >= -0x1p63 && seconds < 0x1p63 ? (int64_t)seconds : INT64_MIN;
    __int128 wide = s < GO_FIRST_SECOND ? (__int128)s + ((__int128)1 << 64) : s;
    int64_t second = (int64_t)(wide % 86400), days = (int64_t)(wide / 86400);
    return second < 0 ? date_of(days - 1, second + 86400) : date_of(days, second);
}

static int day_of_year(const struct date *d)
{
    int days = d->day;
    for (int m = 1; m < d->month; m++)
        days += days_in_month(d->year, m);
    return days;
}

double datefn(enum date_code code, double seconds)
{
    struct date d = date_of_double(seconds);
    switch (code) {
    case DATE_DAY_OF_MONTH:
        return d.day;
    case DATE_DAY_OF_WEEK:
        return (double)(((d.days + 4) % 7 + 7) % 7);
    case DATE_DAY_OF_YEAR:
        return day_of_year(&d);
    case DATE_DAYS_IN_MONTH:
        return days_in_month(d.year, d.month);
    case DATE_HOUR:
        return (double)(d.second / 3600);
    case DATE_MINUTE:
        return (double)(d.second / 60 % 60);
    case DATE_MONTH:
        return d.month;
    default:
        return (double)d.year;
    }
}
