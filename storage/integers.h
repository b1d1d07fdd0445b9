/*
 * integers.h: a column of 64-bit integers as bytes and back, the part all columns share.
 *
 * The encoder tries a few predictors (none, the last value, the last step, a straight line), estimates
 * what zstd would leave of each, and writes the numbers left as byte planes; outliers go to a patch
 * list instead of widening every number. Layout: integers.c and storage/FORMAT.md. No state.
 */
#ifndef VARVE_STORAGE_INTEGERS_H
#define VARVE_STORAGE_INTEGERS_H

#include "storage/base/buf.h"
#include "storage/base/limits.h"

/* Scratch of one encoding call. */
struct integers_scratch {
    uint64_t u[LIMIT_BLOCK_SAMPLES];
};

/* What worked for a like column before; verified by its cost. Zero: nothing known. */
struct integers_hint {
    bool valid;
    uint8_t predictor; /* a larger number than there are predictors is harmless */
    uint8_t cost;      /* quarter bits a number, when it was chosen */
};

/* Appends the encoding of k[0..n), 1 <= n <= LIMIT_BLOCK_SAMPLES; n is not part of it. hint may be NULL; it is
 * renewed when it no longer serves. */
void integers_encode(const int64_t *k, size_t n, struct integers_hint *hint, struct integers_scratch *s,
                     struct buf *out);
/* Reads n integers; the cursor then stands behind them. ERR_CORRUPT on malformed bytes. */
err integers_decode(struct cursor *c, size_t n, int64_t *k) __attribute__((warn_unused_result));

#endif
