/*
 * varint.c: the several-byte half of varint_get. Ten bytes at most; bits beyond the 64th are dropped
 * as protobuf's decoders do.
 */
#include "storage/base/varint.h"

const uint8_t *varint_get_slow(const uint8_t *p, const uint8_t *end, uint64_t *v)
{
    uint64_t value = 0;
    size_t n = (size_t)(end - p) < VARINT_MAX ? (size_t)(end - p) : VARINT_MAX;
    for (size_t i = 0; i < n; i++) {
        value |= (uint64_t)(p[i] & 0x7f) << (7 * i);
        if (p[i] < 0x80) {
            *v = value;
            return p + i + 1;
        }
    }
    *v = 0;
    return NULL;
}
