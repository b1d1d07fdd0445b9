/*
 * chunk_hist.h: native histograms as a Prometheus histogram chunk, integer or float: begin with the first one, add
 * those that fit, end. One thread.
 */
#ifndef VARVE_QUERY_CHUNK_HIST_H
#define VARVE_QUERY_CHUNK_HIST_H

#include "query/chunk_bits.h"
#include "storage/column_hist.h"

struct chunk_bucket;

struct chunk_hist {
    struct chunk_bits bits;
    size_t start; /* of the chunk in the buf */
    uint32_t n;
    bool gauge, stale;  /* stale: of the last sample, after which only stale ones fit */
    struct hist layout; /* of all samples; arrays in the arena */
    struct arena arena;
    int64_t t, delta;                            /* of the last sample, and its distance from the one before */
    struct chunk_bucket *count, *zero, *buckets; /* positive ones, then negative ones */
    struct chunk_double sum;
};

/* {0} is ready to begin. */
void chunk_hist_deinit(struct chunk_hist *c);
/* Appends a chunk to out, whose layout is that of its first sample. */
void chunk_hist_begin(struct chunk_hist *c, struct buf *out, int64_t t, const struct hist *sample);
/* True if h can follow in the same chunk: same layout, no counter reset, room left. */
bool chunk_hist_fits(const struct chunk_hist *c, const struct hist *h);
void chunk_hist_add(struct chunk_hist *c, int64_t t, const struct hist *sample);
void chunk_hist_end(struct chunk_hist *c);

#endif
