/*
 * quantile.c: quantiles without sorting everything.
 *
 * NaNs go to the front first, so that the rest compares plainly; then quickselect finds the value of
 * the lower rank, and the upper one is the least of what lies behind it. Pivots are medians of three
 * at fixed places; input that defeats them again and again is sorted instead, so cost stays within
 * n log n. Pure.
 */
#include "query/quantile.h"

#include <math.h>
#include <stdlib.h>

static void swap(double *a, double *b)
{
    double t = *a;
    *a = *b;
    *b = t;
}

static size_t nans_first(double *v, size_t n)
{
    size_t found = 0;
    for (size_t i = 0; i < n; i++)
        if (isnan(v[i])) swap(&v[i], &v[found++]);
    return found;
}

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median_of_three(double a, double b, double c)
{
    if (a > b) swap(&a, &b);
    return c <= a ? a : c >= b ? b : c;
}

/* Puts the value of rank k at its place, smaller ones before and greater ones behind it. No NaN among them. */
static void select_rank(double *v, size_t n, size_t k)
{
    size_t low = 0, high = n; /* k is in [low, high) */
    for (int rounds = 0; high - low > 16; rounds++) {
        if (rounds == 40) break;
        double pivot = median_of_three(v[low], v[low + (high - low) / 2], v[high - 1]);
        size_t less = low, more = high;
        for (size_t i = low; i < more;) { /* three parts: less, equal, more */
            if (v[i] < pivot)
                swap(&v[i++], &v[less++]);
            else if (v[i] > pivot)
                swap(&v[i], &v[--more]);
            else
                i++;
        }
        if (k < less)
            high = less;
        else if (k >= more)
            low = more;
        else
            return;
    }
    qsort(v + low, high - low, sizeof *v, compare);
}

double quantile_select(double q, double *v, size_t n)
{
    if (isnan(q)) return NAN;
    if (q < 0) return -INFINITY;
    if (q > 1) return INFINITY;
    double rank = q * (double)(n - 1), floor_rank = floor(rank), weight = rank - floor_rank;
    size_t k = (size_t)floor_rank, nans = nans_first(v, n);
    if (k >= nans) select_rank(v + nans, n - nans, k - nans);
    double lower = v[k], upper = lower;
    if (k + 1 < n && k + 1 < nans) {
        upper = v[k + 1];
    } else if (k + 1 < n) {
        size_t from = k + 1 > nans ? k + 1 : nans;
        upper = v[from];
        for (size_t i = from + 1; i < n; i++)
            if (v[i] < upper) upper = v[i];
    }
    return lower * (1 - weight) + upper * weight;
}
