/*
 * fcache.h: the cache of decoded frames, one a process, bounded in bytes.
 *
 * Keys are (part number, file offset). Entries are immutable; a pin keeps one alive while it is read.
 * Sharded locks, CLOCK eviction; a miss is loaded by the caller of fcache_get outside the lock.
 * Any thread.
 */
#ifndef VARVE_STORAGE_FCACHE_H
#define VARVE_STORAGE_FCACHE_H

#include "storage/base/err.h"
#include "storage/base/metrics.h"

struct fcache;
struct scratch_pool;
struct fcache_entry {
    const uint8_t *data;
    size_t n;
};

/* Loads and expands one frame: allocates *data with mem_alloc (ownership goes to the cache). */
typedef err (*fcache_load_fn)(void *arg, uint64_t offset, uint8_t **data, size_t *n);

struct fcache *fcache_create(size_t max_bytes, struct metrics *metrics);
void fcache_destroy(struct fcache *c); /* no pins may be left */
/* Pins the frame, loading it if absent. The entry stays valid until fcache_unpin. */
err fcache_get(struct fcache *c, uint64_t part, uint64_t offset, fcache_load_fn load, void *arg,
               const struct fcache_entry **out) __attribute__((warn_unused_result));
void fcache_unpin(struct fcache *c, const struct fcache_entry *e);
/* Drops all unpinned frames of a part (it was deleted). */
void fcache_forget(struct fcache *c, uint64_t part);
size_t fcache_bytes(const struct fcache *c);
/* Scratch for loading frames and decoding what is in them, shared by all readers of the cache. */
struct scratch_pool *fcache_scratch(struct fcache *c);

#endif
