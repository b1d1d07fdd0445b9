/*
 * snappy.h: the snappy block format, both ways. Stateless; any thread.
 */
#ifndef VARVE_STORAGE_BASE_SNAPPY_H
#define VARVE_STORAGE_BASE_SNAPPY_H

#include "storage/base/buf.h"

/* Appends the expanded block to out, whose cap bounds the result. ERR_INVALID for a malformed block, ERR_TOO_LARGE for
 * one over the cap; out is as before then. */
err snappy_expand(const void *p, size_t n, struct buf *out) __attribute__((warn_unused_result));

/* Appends n <= UINT32_MAX bytes as one block. The cap of out, if it has one, must allow for SNAPPY_PACKED_MAX(n) more;
 * else out is failed. */
#define SNAPPY_PACKED_MAX(n) ((n) + (n) / 6 + 32)
void snappy_pack(const void *p, size_t n, struct buf *out);

#endif
