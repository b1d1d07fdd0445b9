/*
 * num.h: doubles and integers as text, fast and exact.
 *
 * num_format_double writes the shortest decimal that reads back as the same double, in plain
 * notation as Prometheus prints sample values (Go's strconv 'f', -1): "0.1", "1e+300" never, "NaN",
 * "+Inf", "-Inf", "-0". num_parse_double is correctly rounded.
 */
#ifndef VARVE_STORAGE_BASE_NUM_H
#define VARVE_STORAGE_BASE_NUM_H

#include "storage/base/types.h"

#define NUM_DOUBLE_MAX 352 /* bytes that num_format_double may need */

size_t num_format_double(double v, char *out); /* returns the length, no NUL */
/* As Go's 'g' with shortest digits: exponent below -4 or from 21 on (label values made from numbers: le, quantile). */
size_t num_format_double_short(double v, char *out);
size_t num_format_i64(int64_t v, char *out);  /* out: 20 bytes */
size_t num_format_u64(uint64_t v, char *out); /* out: 20 bytes */
/* Milliseconds since the epoch as seconds with up to 3 decimals, as Prometheus does: 1700000000.5, 12, -0.001. out: 24
 * bytes. */
size_t num_format_ms(int64_t ms, char *out);
/* Writes exactly four digits of v < 10000. */
void num_put_4(unsigned v, char *out);

/* The whole of s must be a number: decimal or hex float, with sign, "Inf", "+Inf", "NaN" in any case. False if not. */
bool num_parse_double(str s, double *v);
bool num_parse_i64(str s, int64_t *v); /* decimal, whole of s, no overflow */

#endif
