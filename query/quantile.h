/*
 * quantile.h: quantiles of unsorted values.
 */
#ifndef VARVE_QUERY_QUANTILE_H
#define VARVE_QUERY_QUANTILE_H

#include <stddef.h>

/* The q-quantile of n >= 1 values, which are put in another order; NaN counts as smaller than all numbers. q outside
 * [0, 1] gives an infinity, NaN gives NaN. */
double quantile_select(double q, double *v, size_t n);

#endif
