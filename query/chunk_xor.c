/*
 * chunk_xor.c: float samples as a Prometheus XOR chunk, bit for bit what Prometheus writes.
 *
 *   u16 (high byte first)   number of samples
 *   sample 1   zigzag varint time; 64 bits value
 *   sample 2   varint time since sample 1; xor value
 *   others     how the distance of times differs from the one before; xor value
 *                0  none    10 + 14 bits    110 + 17    1110 + 20    1111 + 64
 *   zero bits up to a whole byte
 *
 * Source: tsdb/docs/format/chunks.md of Prometheus. The codes are in chunk_bits.c. The chunk grows at the
 * end of the caller's buf; nothing is allocated here.
 */
#include "query/chunk_xor.h"

#include "storage/base/varint.h"

void chunk_xor_begin(struct chunk_xor *c, struct buf *out)
{
    *c = (struct chunk_xor){.bits = {.out = out}, .start = out->n};
    buf_u16(out, 0);
}

static void put_time(struct chunk_bits *b, int64_t change)
{
    static const uint8_t sizes[] = {14, 17, 20};
    if (change == 0) {
        chunk_bits_put(b, 0, 1);
        return;
    }
    for (unsigned k = 0; k < ARRAY_LEN(sizes); k++) {
        if (!chunk_bits_fit(change, sizes[k])) continue;
        chunk_bits_put(b, (UINT64_C(4) << k) - 2, k + 2);
        chunk_bits_put(b, (uint64_t)change, sizes[k]);
        return;
    }
    chunk_bits_put(b, 15, 4);
    chunk_bits_put(b, (uint64_t)change, 64);
}

void chunk_xor_add(struct chunk_xor *c, int64_t t, double v)
{
    uint64_t delta = (uint64_t)t - (uint64_t)c->t;
    if (c->n == 0) {
        chunk_bits_varint(&c->bits, zigzag(t));
        chunk_bits_put(&c->bits, f64_bits(v), 64);
        c->v = chunk_double_of(v);
        delta = 0;
    } else {
        if (c->n == 1)
            chunk_bits_varint(&c->bits, delta);
        else
            put_time(&c->bits, (int64_t)(delta - c->delta));
        chunk_bits_double(&c->bits, &c->v, v);
    }
    c->t = t;
    c->delta = delta;
    c->n++;
}

void chunk_xor_count(struct buf *out, size_t start, uint32_t n)
{
    if (out->failed) return;
    out->data[start] = (uint8_t)(n >> 8);
    out->data[start + 1] = (uint8_t)n;
}

void chunk_xor_end(struct chunk_xor *c)
{
    chunk_bits_end(&c->bits);
    chunk_xor_count(c->bits.out, c->start, c->n);
}
