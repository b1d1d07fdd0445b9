/*
 * hash.h: XXH3, keyed for identities that outsiders could attack, plain for checksums.
 * Source: the xxHash specification (XXH3_64bits, XXH3_128bits_withSecret).
 */
#ifndef VARVE_STORAGE_BASE_HASH_H
#define VARVE_STORAGE_BASE_HASH_H

#include "storage/base/types.h"

#define HASH_KEY_SIZE 192 /* bytes of secret; made at random once per database */

struct hash_key {
    uint8_t secret[HASH_KEY_SIZE];
};

struct hash128 {
    uint64_t lo, hi;
};

static inline bool hash128_eq(struct hash128 a, struct hash128 b)
{
    return a.lo == b.lo && a.hi == b.hi;
}

/* Keyed 128-bit hash. Any thread. */
struct hash128 hash128(const struct hash_key *key, const void *p, size_t n);
/* Keyed 64-bit hash. */
uint64_t hash64(const struct hash_key *key, const void *p, size_t n);
/* Unkeyed XXH3-64: the checksum of every frame, section and log record. */
uint64_t checksum64(const void *p, size_t n);
/* The checksum of two ranges as if they stood one behind the other. */
uint64_t checksum64_two(const void *a, size_t an, const void *b, size_t bn);

/* The checksum of bytes that come piece by piece: next hands out one after the other, false ends them. */
typedef bool (*checksum_next_fn)(void *arg, const void **p, size_t *n);
uint64_t checksum64_stream(checksum_next_fn next, void *arg);

/* Unkeyed XXH64, seed 0: only where the outside world expects this very hash (Prometheus's limit_ratio). */
uint64_t hash_xxh64(const void *p, size_t n);

/* Mixes two 128-bit hashes in order (name, value) into one; for sums over label pairs. */
static inline struct hash128 hash128_pair(struct hash128 a, struct hash128 b)
{
    unsigned __int128 x = (unsigned __int128)(a.lo ^ UINT64_C(0x9e3779b97f4a7c15)) * (b.hi | 1);
    unsigned __int128 y = (unsigned __int128)(a.hi ^ UINT64_C(0xc2b2ae3d27d4eb4f)) * (b.lo | 1);
    struct hash128 r = {(uint64_t)x ^ (uint64_t)(y >> 64) ^ b.lo, (uint64_t)y ^ (uint64_t)(x >> 64) ^ a.lo};
    r.lo = (r.lo ^ (r.lo >> 29)) * UINT64_C(0xbf58476d1ce4e5b9) + (b.hi << 1);
    r.hi = (r.hi ^ (r.hi >> 32)) * UINT64_C(0x94d049bb133111eb) + (a.hi << 1);
    r.lo ^= r.lo >> 31;
    r.hi ^= r.hi >> 29;
    return r;
}

/* Adds pair hashes up without regard to their order: a set of labels has one sum. */
static inline struct hash128 hash128_add(struct hash128 a, struct hash128 b)
{
    unsigned __int128 x = ((unsigned __int128)a.hi << 64 | a.lo) + ((unsigned __int128)b.hi << 64 | b.lo);
    return (struct hash128){(uint64_t)x, (uint64_t)(x >> 64)};
}

#endif
