/*
 * head.h: the newest samples, in memory, uncompressed, by series.
 *
 * Each series has a list of chunks that grow in size (6, 12, 24 … 192 samples): 12 bytes a sample (20 with a start
 * timestamp), no encoding on the write path. A head is bounded (storage_options.head_max_bytes, wal_max_bytes), so
 * that replaying its log is too; when it is full it is frozen and written out as parts.
 *
 * One writer (under the database's append lock); any number of readers without a lock: what a slot's
 * tail counts is complete, and nothing moves or goes away before the last reference does. Samples of a
 * series may be in any order.
 */
#ifndef VARVE_STORAGE_HEAD_H
#define VARVE_STORAGE_HEAD_H

#include "storage/block_pool.h"
#include "storage/sample_set.h"
#include "storage/series.h"

struct head_chunk;

/*
 * The writer works on the slot and the sample's own bytes only; a chunk's header is not touched once it is linked.
 * `tail` says in one atomic word which chunk is the last (by its place in the list), its kind, and how many samples
 * it has: readers take it first and read that far.
 */
struct head_slot {
    _Atomic(struct head_chunk *) first;
    _Atomic uint64_t tail;
    struct head_chunk *last; /* the writer's */
    int64_t base;            /* of the last chunk; the writer's */
};

struct head {
    atomic_uint refs;
    struct registry *registry; /* the handles' meaning; referenced */
    uint32_t wal_gen;          /* first log segment that holds its samples */
    uint32_t defined_gen;    /* the segment that defines every series with samples here; 0 = none does; the writer's */
    struct pages slots;      /* struct head_slot, by handle */
    struct block_pool *pool; /* borrowed */
    struct head_block *blocks; /* taken so far, newest first; the writer's */
    char *at, *end;            /* free space in the newest; the writer's */
    atomic_size_t bytes;       /* of chunks */
    _Atomic uint64_t samples;
    _Atomic uint64_t chunks;
    _Atomic uint32_t series; /* that have samples */
    _Atomic int64_t t_min, t_max;
    uint64_t seq_min, seq_max; /* write numbers; the writer's, fixed once frozen */
    uint64_t born_ns;          /* monotonic time of the first sample, 0 = none yet; the writer's */
};

struct head *head_create(struct registry *r, struct block_pool *pool, uint32_t wal_gen);
struct head *head_ref(struct head *h);
void head_unref(struct head *h); /* NULL allowed */

/* ---- the writer */

/* n samples of one series. hist: NULL, or blobs (n = 0: a float) that are copied; v of a histogram is its sum. start:
 * NULL, or start timestamps (0 = none). */
void head_append(struct head *h, uint32_t handle, const int64_t *t, const double *v, const str *hist,
                 const int64_t *start, uint32_t n);
/* True if the series has no sample yet. */
bool head_is_new(const struct head *h, uint32_t handle);
/* Brings the place of a series' next sample near (hint for a later append). */
void head_prefetch(const struct head *h, uint32_t handle);

/* ---- anyone */

bool head_has(const struct head *h, uint32_t handle);
/* Adds the samples in [t_min, t_max] to the set, in the order written. Histogram bytes are the head's. */
void head_read(const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max, struct sample_set *out);
/* True if some sample lies in [t_min, t_max]. */
bool head_touches(const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max);
static inline bool head_is_empty(const struct head *h)
{
    return atomic_load_explicit(&h->samples, memory_order_relaxed) == 0;
}

#endif
