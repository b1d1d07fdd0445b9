/*
 * xxh64.c: XXH64 with seed 0, for one purpose: limit_ratio must pick the series that Prometheus picks.
 *
 * Everything else in this program hashes with XXH3 (storage/base/hash.h). Pure; any thread.
 * Source: the xxHash fast digest algorithm specification, section XXH64.
 */
#include "query/xxh64.h"

#define P1 UINT64_C(0x9e3779b185ebca87)
#define P2 UINT64_C(0xc2b2ae3d27d4eb4f)
#define P3 UINT64_C(0x165667b19e3779f9)
#define P4 UINT64_C(0x85ebca77c2b2ae63)
#define P5 UINT64_C(0x27d4eb2f165667c5)

static uint64_t rotate(uint64_t x, int by)
{
    return x << by | x >> (64 - by);
}

static uint64_t read64(const uint8_t *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint32_t read32(const uint8_t *p)
{
    uint32_t x;
    memcpy(&x, p, sizeof x);
    return x;
}

static uint64_t mix(uint64_t lane, uint64_t input)
{
    return rotate(lane + input * P2, 31) * P1;
}

/* Whole stripes of 32 bytes in four lanes, then the lanes into one. */
static uint64_t stripes(const uint8_t **p, const uint8_t *end)
{
    uint64_t lane[4] = {P1 + P2, P2, 0, (uint64_t)0 - P1};
    for (; end - *p >= 32; *p += 32)
        for (int i = 0; i < 4; i++)
            lane[i] = mix(lane[i], read64(*p + 8 * i));
    uint64_t h = rotate(lane[0], 1) + rotate(lane[1], 7) + rotate(lane[2], 12) + rotate(lane[3], 18);
    for (int i = 0; i < 4; i++)
        h = (h ^ mix(0, lane[i])) * P1 + P4;
    return h;
}

uint64_t xxh64(const void *data, size_t n)
{
    const uint8_t *p = data, *end = p + n;
    uint64_t h = (n >= 32 ? stripes(&p, end) : P5) + n;
    for (; end - p >= 8; p += 8)
        h = rotate(h ^ mix(0, read64(p)), 27) * P1 + P4;
    if (end - p >= 4) {
        h = rotate(h ^ read32(p) * P1, 23) * P2 + P3;
        p += 4;
    }
    for (; p < end; p++)
        h = rotate(h ^ *p * P5, 11) * P1;
    h = (h ^ h >> 33) * P2;
    h = (h ^ h >> 29) * P3;
    return h ^ h >> 32;
}
