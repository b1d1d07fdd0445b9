/*
 * decimal.h: which decimal exponent fits a column of doubles.
 *
 * A double is a decimal of exponent e if it equals (double)k / 10^e for a whole k, up to a residual of a few
 * ulps (sums of decimals collect such noise). The choice is by cost on a sample. No state.
 */
#ifndef VARVE_STORAGE_DECIMAL_H
#define VARVE_STORAGE_DECIMAL_H

#include "storage/base/types.h"

#define DECIMAL_EXPONENT_MAX 18
#define DECIMAL_NONE 255 /* the bits themselves are cheaper than any decimal */

/* The exponent with the least estimated cost for v[0..n), or DECIMAL_NONE. n >= 1. */
uint8_t decimal_choose(const double *v, size_t n);

/* True if not all k are multiples of ten, that is, if no smaller exponent would do for them. */
bool decimal_is_tight(const int64_t *k, size_t n);

#endif
