/*
 * column_time.h: a column of timestamps (ms since the epoch, strictly increasing) as bytes and back.
 * The byte layout is drawn in column_time.c and in storage/FORMAT.md. No I/O, no shared state.
 */
#ifndef VARVE_STORAGE_COLUMN_TIME_H
#define VARVE_STORAGE_COLUMN_TIME_H

#include "storage/base/buf.h"

/* Appends the encoding of t[0..n), 1 <= n <= LIMIT_BLOCK_SAMPLES. The number n is not part of it. */
void column_time_encode(const int64_t *t, size_t n, struct buf *out);
/* Expands n timestamps from [p, p+bytes), which must be used up whole. ERR_CORRUPT on anything else; also verifies
 * that they increase. */
err column_time_decode(const void *p, size_t bytes, size_t n, int64_t *t) __attribute__((warn_unused_result));

#endif
