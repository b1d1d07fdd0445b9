/*
 * kernels.h: the tight loops under the columns: byte planes, decimal scaling, float bit order.
 *
 * A plane holds one byte of each of n unsigned numbers; planes stand most significant first. There are
 * variants for several processors (kernels_choice.h); all compute the same bits. Pointers need no
 * alignment unless typed; lengths may be 0; results never overlap arguments. Any thread.
 */
#ifndef VARVE_STORAGE_KERNELS_H
#define VARVE_STORAGE_KERNELS_H

#include "storage/base/types.h"

#define KERNELS_EXPONENT_MAX 22                /* 10^22 is the largest exact power of ten */
#define KERNELS_DECIMAL_MAX (INT64_C(1) << 51) /* |k| of a decimal never exceeds this */
#define KERNELS_RESIDUAL_MAX 32767             /* ulps between a decimal and the true value */

/* Writes the low `width` (0..8) bytes of u[0..n) as width * n bytes. */
void kernels_split(const uint64_t *u, size_t n, unsigned width, uint8_t *planes);
/* The inverse: reads width * n bytes. */
void kernels_join(const uint8_t *planes, size_t n, unsigned width, uint64_t *u);

/* v[i] = (double)k[i] / 10^exponent, correctly rounded, for |k[i]| <= KERNELS_DECIMAL_MAX; other k give some
 * double. exponent <= KERNELS_EXPONENT_MAX. */
void kernels_unscale(const int64_t *k, size_t n, unsigned exponent, double *v);
/* Adds r[i] ulps: bits(v[i]) += r[i], modulo 2^64. */
void kernels_add_ulps(double *v, const int64_t *r, size_t n);
/* Finds for each value the nearest decimal k / 10^exponent and the residual in ulps, so that kernels_unscale and
 * kernels_add_ulps give v back bit for bit. Where k or the residual would exceed its bound, bad[i] is 1, else 0, and
 * k[i], r[i] mean nothing then. Returns the number of bad values; *any_residual tells whether a good one is not 0. */
size_t kernels_scale(const double *v, size_t n, unsigned exponent, int64_t *k, int64_t *r, uint8_t *bad,
                     bool *any_residual);

/* Doubles' bits as integers in the order of the numbers (involution on the sign), and back. */
void kernels_order(const double *v, size_t n, int64_t *k);
void kernels_unorder(const int64_t *k, size_t n, double *v);

#endif
