/*
 * column_start.h: start timestamps of the samples of a block (ms since the epoch, 0 = none) as bytes and back.
 * The byte layout is drawn in column_start.c and in storage/FORMAT.md. No I/O, no shared state.
 */
#ifndef VARVE_STORAGE_COLUMN_START_H
#define VARVE_STORAGE_COLUMN_START_H

#include "storage/integers.h"

/* What worked for the columns before: one for each way of writing them. */
struct column_start_hint {
    struct integers_hint absolute, relative;
};

/* Appends the encoding of start[0..n), 1 <= n <= LIMIT_BLOCK_SAMPLES, of samples at t. n and t are not part of it. */
void column_start_encode(const int64_t *t, const int64_t *start, size_t n, struct column_start_hint *hint,
                         struct buf *out);
/* Expands n start timestamps from [p, p+bytes), which must be used up whole. ERR_CORRUPT on anything else. */
err column_start_decode(const void *p, size_t bytes, const int64_t *t, size_t n, int64_t *start)
    __attribute__((warn_unused_result));

#endif
