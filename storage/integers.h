/*
 * integers.h: a column of 64-bit integers as bytes and back, the part all columns share.
 *
 * The encoder tries a few predictions (none, the last value, the last step, a straight line, XOR),
 * estimates what zstd would leave of each, and writes the differences as byte planes; outliers go to a
 * patch list instead of widening every number. Layout: integers.c and storage/FORMAT.md. No state.
 */
#ifndef VARVE_STORAGE_INTEGERS_H
#define VARVE_STORAGE_INTEGERS_H

#include "storage/base/buf.h"
#include "storage/base/limits.h"

/* Scratch of one encoding call. */
struct integers_scratch {
    uint64_t d[LIMIT_BLOCK_SAMPLES], u[LIMIT_BLOCK_SAMPLES];
};

/* Appends the encoding of k[0..n), 1 <= n <= LIMIT_BLOCK_SAMPLES; n is not part of it. */
void integers_encode(const int64_t *k, size_t n, struct integers_scratch *s, struct buf *out);
/* Reads n integers; the cursor then stands behind them. ERR_CORRUPT on anything the encoder would not write. */
err integers_decode(struct cursor *c, size_t n, int64_t *k) __attribute__((warn_unused_result));

#endif
