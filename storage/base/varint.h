/*
 * varint.h: LEB128 integers (as protobuf encodes them) and zigzag, on raw pointers for hot loops.
 * Source: protobuf encoding documentation, "Base 128 Varints" and "Signed Integers".
 */
#ifndef VARVE_STORAGE_BASE_VARINT_H
#define VARVE_STORAGE_BASE_VARINT_H

#include "storage/base/types.h"

#define VARINT_MAX 10 /* bytes a 64-bit varint can take */

static inline uint64_t zigzag(int64_t v)
{
    return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}
static inline int64_t unzigzag(uint64_t u)
{
    return (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
}

/* Writes v at p (room for VARINT_MAX bytes), returns the byte after it. */
static inline uint8_t *varint_put(uint8_t *p, uint64_t v)
{
    while (v >= 0x80) {
        *p++ = (uint8_t)v | 0x80;
        v >>= 7;
    }
    *p++ = (uint8_t)v;
    return p;
}

/* Reads from [p, end) into *v, returns the byte after it; NULL when cut off or longer than 10 bytes. */
const uint8_t *varint_get_slow(const uint8_t *p, const uint8_t *end, uint64_t *v);
static inline const uint8_t *varint_get(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    if (__builtin_expect(p < end && *p < 0x80, 1)) {
        *v = *p;
        return p + 1;
    }
    return varint_get_slow(p, end, v);
}

#endif
