/*
 * column_value.h: a column of doubles as bytes and back, bit for bit (NaN payloads, -0, denormals, Inf).
 *
 * The raw encoding is chosen per column by cost: constant, constant step, decimal-scaled integers (with
 * delta, delta of delta or frame of reference; ulp residuals; patched exceptions) in byte planes, or the
 * bits of true floats, in numeric order, the same way. The output is meant to be framed with its neighbours
 * and compressed by zstd.
 * Layout: column_value.c and storage/FORMAT.md. Facts behind it: design/ENCODING.md. No I/O.
 */
#ifndef VARVE_STORAGE_COLUMN_VALUE_H
#define VARVE_STORAGE_COLUMN_VALUE_H

#include "storage/base/buf.h"

/* What worked for this series last time; the encoder tries it first and verifies it. Zero is a fine start, noise is
 * harmless. The fields are the encoder's own. */
struct column_hint {
    uint8_t valid, encoding, exponent, flags;
};

/* Scratch of one encoding or decoding thread: some 100 KiB. */
struct column_scratch;
struct column_scratch *column_scratch_create(void);
void column_scratch_destroy(struct column_scratch *s);

/* Appends the encoding of v[0..n), 1 <= n <= LIMIT_BLOCK_SAMPLES. n is not part of it. hint may be NULL. */
void column_value_encode(struct column_scratch *s, const double *v, size_t n, struct column_hint *hint,
                         struct buf *out);
/* Expands n doubles from [p, p+bytes), which must be used up whole; ERR_CORRUPT otherwise. v needs room for
 * COLUMN_VALUE_PAD doubles more than n (SIMD stores). */
#define COLUMN_VALUE_PAD 32
err column_value_decode(struct column_scratch *s, const void *p, size_t bytes, size_t n, double *v)
    __attribute__((warn_unused_result));
/* True if the bytes are the encoding of one repeated value, which is then stored in *v (no decode needed). */
bool column_value_is_constant(const void *p, size_t bytes, double *v);

#endif
