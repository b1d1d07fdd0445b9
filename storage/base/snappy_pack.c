/*
 * snappy_pack.c: the snappy block format, encoding. The format is drawn in snappy.c.
 *
 * The input is cut into fragments of 64 KiB. In each, a table from the hash of four bytes to where they
 * were seen last finds repeats: greedily, the first that fits is taken. Where nothing repeats, the steps
 * between probes grow, so incompressible bytes are passed over quickly. A fragment never refers to the
 * one before it, so the table's entries are 16 bits wide. The table is on the stack; any thread.
 */
#include "storage/base/assert.h"
#include "storage/base/snappy.h"
#include "storage/base/varint.h"

#define FRAGMENT ((size_t)64 << 10)
#define TABLE_BITS 14
#define MARGIN 16        /* bytes at a fragment's end that are not probed: loads of 8 stay inside */
#define PROBES_A_STEP 32 /* this many misses, and the step is one longer */

static inline uint32_t load32(const uint8_t *p)
{
    uint32_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint64_t load64(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
    return v;
}

static inline uint32_t slot_of(const uint8_t *p)
{
    return (load32(p) * UINT32_C(0x9e3779b1)) >> (32 - TABLE_BITS);
}

static uint8_t *put_literal(uint8_t *to, const uint8_t *p, size_t n)
{
    if (n == 0) return to;
    size_t last = n - 1;
    if (last < 60) {
        *to++ = (uint8_t)(last << 2);
    } else if (last < 256) {
        *to++ = 60 << 2;
        *to++ = (uint8_t)last;
    } else {
        *to++ = 61 << 2;
        *to++ = (uint8_t)last;
        *to++ = (uint8_t)(last >> 8);
    }
    memcpy(to, p, n);
    return to + n;
}

/* One element of kind 10: 1 to 64 bytes from up to 64 KiB back. */
static uint8_t *put_far_copy(uint8_t *to, size_t offset, size_t n)
{
    *to++ = (uint8_t)((n - 1) << 2 | 2);
    *to++ = (uint8_t)offset;
    *to++ = (uint8_t)(offset >> 8);
    return to;
}

/* n >= 4 bytes; what is left for the last element is never less than 4, which kind 01 takes. */
static uint8_t *put_copy(uint8_t *to, size_t offset, size_t n)
{
    for (; n >= 68; n -= 64)
        to = put_far_copy(to, offset, 64);
    if (n > 64) {
        to = put_far_copy(to, offset, 60);
        n -= 60;
    }
    if (n > 11 || offset >= 2048) return put_far_copy(to, offset, n);
    *to++ = (uint8_t)((n - 4) << 2 | 1 | (offset >> 8) << 5);
    *to++ = (uint8_t)offset;
    return to;
}

/* How far p and q agree; q is before p. */
static size_t match_length(const uint8_t *p, const uint8_t *q, const uint8_t *end)
{
    const uint8_t *start = p;
    while (end - p >= 8) {
        uint64_t differs = load64(p) ^ load64(q);
        if (differs) return (size_t)(p - start) + (size_t)__builtin_ctzll(differs) / 8;
        p += 8;
        q += 8;
    }
    while (p < end && *p == *q) {
        p++;
        q++;
    }
    return (size_t)(p - start);
}

static uint8_t *pack_fragment(const uint8_t *base, size_t n, uint8_t *to)
{
    uint16_t seen[1 << TABLE_BITS];
    const uint8_t *end = base + n, *literal = base;
    if (n < 2 * MARGIN) return put_literal(to, base, n);
    memset(seen, 0, sizeof seen);
    const uint8_t *p = base + 1, *limit = end - MARGIN;
    size_t misses = PROBES_A_STEP;
    while (p <= limit) {
        uint32_t slot = slot_of(p);
        const uint8_t *before = base + seen[slot];
        seen[slot] = (uint16_t)(p - base);
        if (load32(before) != load32(p)) {
            p += misses++ / PROBES_A_STEP;
            continue;
        }
        size_t length = 4 + match_length(p + 4, before + 4, end);
        to = put_literal(to, literal, (size_t)(p - literal));
        to = put_copy(to, (size_t)(p - before), length);
        p += length;
        literal = p;
        misses = PROBES_A_STEP;
        if (p <= limit) seen[slot_of(p - 1)] = (uint16_t)(p - 1 - base);
    }
    return put_literal(to, literal, (size_t)(end - literal));
}

void snappy_pack(const void *p, size_t n, struct buf *out)
{
    check(n <= UINT32_MAX);
    uint8_t *start = buf_reserve(out, SNAPPY_PACKED_MAX(n));
    if (start == NULL) return;
    const uint8_t *from = n ? p : (const uint8_t *)"";
    uint8_t *to = varint_put(start, n);
    for (size_t at = 0; at < n; at += FRAGMENT)
        to = pack_fragment(from + at, n - at < FRAGMENT ? n - at : FRAGMENT, to);
    out->n += (size_t)(to - start);
}
