/*
 * scratch.h: what one decoding needs for its duration: a decompressor, room for column decoding, a buffer. They
 * are large (some 300 KiB) and needed for microseconds, so readers borrow them from a pool instead of
 * owning one each. Taking and giving are a few atomic instructions. Any thread; a scratch is one thread's at a time.
 */
#ifndef VARVE_STORAGE_SCRATCH_H
#define VARVE_STORAGE_SCRATCH_H

#include <stdatomic.h>

#include "storage/base/buf.h"
#include "storage/base/zframe.h"
#include "storage/column_value.h"

struct scratch {
    struct zctx *z;
    struct column_scratch *columns;
    struct buf disk; /* bytes of a frame as they are on disk */
};

#define SCRATCH_POOL_MAX 16 /* idle ones kept; more are freed */

struct scratch_pool {
    _Atomic(struct scratch *) idle[SCRATCH_POOL_MAX]; /* NULL: no scratch here */
};

void scratch_pool_init(struct scratch_pool *pool);
void scratch_pool_deinit(struct scratch_pool *pool); /* all borrowed ones must be back */
struct scratch *scratch_take(struct scratch_pool *pool);
void scratch_give(struct scratch_pool *pool, struct scratch *s);

#endif
