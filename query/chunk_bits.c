/*
 * chunk_bits.c: bits and codes of Prometheus's chunks.
 *
 *   varbit  0                      zero           xor   0                             the same value
 *           10 + 3 bits            -3 .. 4              10 + bits                     inside the last window
 *           110 + 6   1110 + 9   11110 + 12             11 + 5 leading zeros (at most 31)
 *           111110 + 18   1111110 + 25                     + 6 number of bits (0 = 64) + bits
 *           11111110 + 56   11111111 + 64
 *
 * Source: tsdb/docs/format/chunks.md and bstream.md of Prometheus. Pure functions of their arguments.
 */
#include "query/chunk_bits.h"

#include "storage/base/varint.h"

/* Eight bytes, highest first. */
static void flush(struct chunk_bits *b)
{
    buf_u64(b->out, __builtin_bswap64(b->pending));
}

void chunk_bits_put(struct chunk_bits *b, uint64_t v, unsigned n)
{
    unsigned room = 64 - b->n;
    if (n < 64) v &= (UINT64_C(1) << n) - 1;
    if (n < room) {
        b->pending |= v << (room - n);
        b->n += n;
        return;
    }
    b->n = n - room;
    b->pending |= v >> b->n;
    flush(b);
    b->pending = b->n ? v << (64 - b->n) : 0;
}

void chunk_bits_end(struct chunk_bits *b)
{
    for (unsigned done = 0; done < b->n; done += 8)
        buf_u8(b->out, (uint8_t)(b->pending >> (56 - done)));
    b->n = 0;
    b->pending = 0;
}

static const uint8_t SIZES[] = {3, 6, 9, 12, 18, 25, 56};

/* The prefix of class k (k ones more than "1", then a zero), and the number. */
static void put_class(struct chunk_bits *b, uint64_t v, size_t k)
{
    unsigned ones = (unsigned)k + 1;
    if (k == ARRAY_LEN(SIZES)) {
        chunk_bits_put(b, 0xff, 8);
        chunk_bits_put(b, v, 64);
        return;
    }
    chunk_bits_put(b, (UINT64_C(1) << (ones + 1)) - 2, ones + 1);
    chunk_bits_put(b, v, SIZES[k]);
}

void chunk_bits_int(struct chunk_bits *b, int64_t v)
{
    size_t k = 0;
    if (v == 0) {
        chunk_bits_put(b, 0, 1);
        return;
    }
    while (k < ARRAY_LEN(SIZES) && !chunk_bits_fit(v, SIZES[k]))
        k++;
    put_class(b, (uint64_t)v, k);
}

void chunk_bits_uint(struct chunk_bits *b, uint64_t v)
{
    size_t k = 0;
    if (v == 0) {
        chunk_bits_put(b, 0, 1);
        return;
    }
    while (k < ARRAY_LEN(SIZES) && v >> SIZES[k] != 0)
        k++;
    put_class(b, v, k);
}

void chunk_bits_varint(struct chunk_bits *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];
    const uint8_t *end = varint_put(bytes, v);
    for (const uint8_t *p = bytes; p < end; p++)
        chunk_bits_put(b, *p, 8);
}

void chunk_bits_double(struct chunk_bits *b, struct chunk_double *before, double v)
{
    uint64_t differs = before->bits ^ f64_bits(v);
    before->bits = f64_bits(v);
    if (differs == 0) {
        chunk_bits_put(b, 0, 1);
        return;
    }
    uint8_t leading = (uint8_t)__builtin_clzll(differs), trailing = (uint8_t)__builtin_ctzll(differs);
    if (leading > 31) leading = 31;
    if (before->leading != CHUNK_LEADING_NONE && leading >= before->leading && trailing >= before->trailing) {
        chunk_bits_put(b, 2, 2);
        chunk_bits_put(b, differs >> before->trailing, 64u - before->leading - before->trailing);
        return;
    }
    unsigned size = 64u - leading - trailing;
    before->leading = leading;
    before->trailing = trailing;
    chunk_bits_put(b, 3, 2);
    chunk_bits_put(b, leading, 5);
    chunk_bits_put(b, size, 6); /* 64 leaves zeros */
    chunk_bits_put(b, differs >> trailing, size);
}
