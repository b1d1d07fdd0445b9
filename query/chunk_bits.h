/*
 * chunk_bits.h: bits, highest first, and the three codes that Prometheus's chunks are made of.
 * A writer appends to a buf that others must leave alone until chunk_bits_end. One thread.
 */
#ifndef VARVE_QUERY_CHUNK_BITS_H
#define VARVE_QUERY_CHUNK_BITS_H

#include "storage/base/buf.h"

struct chunk_bits {
    struct buf *out;
    uint64_t pending; /* bits not yet in out, at the top */
    unsigned n;       /* how many, below 64 */
};

/* The lowest n (1 to 64) bits of v. */
void chunk_bits_put(struct chunk_bits *b, uint64_t v, unsigned n);
/* Pads to whole bytes. */
void chunk_bits_end(struct chunk_bits *b);
/* Bytes that the bits put so far take in the end. */
static inline size_t chunk_bits_size(const struct chunk_bits *b)
{
    return b->out->n + (b->n + 7) / 8;
}

/* True if v fits n bits as the formats count: the range is shifted by one, to [-(2^(n-1) - 1), 2^(n-1)]. */
static inline bool chunk_bits_fit(int64_t v, unsigned n)
{
    return v >= -((INT64_C(1) << (n - 1)) - 1) && v <= INT64_C(1) << (n - 1);
}

/* A variable number of bits, 1 to 72: a prefix of ones says how many follow. */
void chunk_bits_int(struct chunk_bits *b, int64_t v);
void chunk_bits_uint(struct chunk_bits *b, uint64_t v);
/* LEB128, byte by byte, at any bit. */
void chunk_bits_varint(struct chunk_bits *b, uint64_t v);

/* A double that is written as its difference (xor) from the one before it. */
struct chunk_double {
    uint64_t bits;
    uint8_t leading, trailing; /* zeros around the last difference that was written with its size */
};
#define CHUNK_LEADING_NONE 0xff /* of leading: none was written yet */

static inline struct chunk_double chunk_double_of(double v)
{
    return (struct chunk_double){.bits = f64_bits(v), .leading = CHUNK_LEADING_NONE};
}
void chunk_bits_double(struct chunk_bits *b, struct chunk_double *before, double v);

#endif
