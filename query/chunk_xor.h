/*
 * chunk_xor.h: float samples as a Prometheus XOR chunk: begin, add in time order, end. One thread.
 */
#ifndef VARVE_QUERY_CHUNK_XOR_H
#define VARVE_QUERY_CHUNK_XOR_H

#include "query/chunk_bits.h"

#define CHUNK_SAMPLES_MAX 120 /* what Prometheus puts into one */

struct chunk_xor {
    struct chunk_bits bits;
    size_t start; /* of the chunk in the buf */
    uint32_t n;
    int64_t t;      /* of the last sample */
    uint64_t delta; /* from the one before it */
    struct chunk_double v;
};

/* Appends a chunk to out. */
void chunk_xor_begin(struct chunk_xor *c, struct buf *out);
void chunk_xor_add(struct chunk_xor *c, int64_t t, double v);
void chunk_xor_end(struct chunk_xor *c);

/* Overwrites the 2 bytes at `start` with the number of samples: how every chunk begins. */
void chunk_xor_count(struct buf *out, size_t start, uint32_t n);

#endif
