/*
 * classic.c: quantiles and fractions of classic histograms, whose buckets are series with an le label.
 *
 * Buckets arrive in any order; they are sorted, equal bounds added up, tiny dents levelled and real
 * ones filled, as a count must not fall with le. Pure, in place.
 */
#include "query/histogram.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* Relative differences up to this are rounding noise of a rate. */
#define CLASSIC_TOLERANCE 1e-12

static int compare_le(const void *a, const void *b)
{
    double x = ((const struct classic_bucket *)a)->le, y = ((const struct classic_bucket *)b)->le;
    return (x > y) - (x < y);
}

/* Sorts, adds up equal bounds; the new number of buckets, 0 if the last is not +Inf. */
static size_t settle(struct classic_bucket *b, size_t n)
{
    size_t sorted = 1;
    while (sorted < n && b[sorted - 1].le <= b[sorted].le)
        sorted++;
    if (sorted < n) qsort(b, n, sizeof *b, compare_le);
    if (b[n - 1].le != INFINITY) return 0;
    size_t last = 0;
    for (size_t i = 1; i < n; i++) {
        if (b[i].le == b[last].le)
            b[last].count += b[i].count;
        else
            b[++last] = b[i];
    }
    return last + 1;
}

static bool almost_equal(double a, double b)
{
    if (a == b || (isnan(a) && isnan(b))) return true;
    double sum = fabs(a) + fabs(b), diff = fabs(a - b);
    if (a == 0 || b == 0 || sum < DBL_MIN) return diff < CLASSIC_TOLERANCE * DBL_MIN;
    return diff / fmin(sum, DBL_MAX) < CLASSIC_TOLERANCE;
}

static void make_monotonic(struct classic_bucket *b, size_t n, struct classic_fix *fix)
{
    double before = b[0].count;
    for (size_t i = 1; i < n; i++) {
        if (b[i].count == before) continue;
        if (almost_equal(before, b[i].count)) {
            b[i].count = before;
            continue;
        }
        if (!(b[i].count < before)) {
            before = b[i].count;
            continue;
        }
        if (!fix->forced) fix->low = b[i].le;
        fix->forced = true;
        fix->high = b[i].le;
        fix->diff = fmax(fix->diff, before - b[i].count);
        b[i].count = before;
    }
}

double classic_quantile(double q, struct classic_bucket *b, size_t n, struct classic_fix *fix)
{
    *fix = (struct classic_fix){0};
    if (isnan(q)) return NAN;
    if (q < 0) return -INFINITY;
    if (q > 1) return INFINITY;
    n = settle(b, n);
    if (n == 0) return NAN;
    make_monotonic(b, n, fix);
    if (n < 2 || b[n - 1].count == 0 || isnan(b[n - 1].count)) return NAN;
    double rank = q * b[n - 1].count;
    size_t at = 0;
    while (at < n - 1 && !(b[at].count >= rank))
        at++;
    if (at == n - 1) return b[n - 2].le;
    if (at == 0 && b[0].le <= 0) return b[0].le;
    double start = 0, count = b[at].count;
    if (at > 0) {
        start = b[at - 1].le;
        count -= b[at - 1].count;
        rank -= b[at - 1].count;
    }
    return start + (b[at].le - start) * (rank / count);
}

double classic_fraction(double lower, double upper, struct classic_bucket *b, size_t n)
{
    n = settle(b, n);
    if (n == 0) return NAN;
    double total = b[n - 1].count;
    if (total == 0 || isnan(lower) || isnan(upper)) return NAN;
    if (lower >= upper) return 0;
    double bound[2] = {lower, upper}, found[2] = {0, 0}, rank = 0, start = -INFINITY;
    bool set[2] = {false, false};
    if (b[0].le > 0) start = 0;
    for (size_t i = 0; i < n; i++) {
        for (int k = 0; k < 2; k++) {
            if (set[k] || (start < bound[k] && b[i].le <= bound[k])) continue;
            if (start >= bound[k])
                found[k] = rank;
            else
                found[k] = start == -INFINITY ? b[i].count
                                              : rank + (b[i].count - rank) * (bound[k] - start) / (b[i].le - start);
            set[k] = true;
        }
        rank = b[i].count;
        start = b[i].le;
    }
    for (int k = 0; k < 2; k++)
        if (!set[k] || found[k] > total) found[k] = total;
    return (found[1] - found[0]) / total;
}
