/*
 * hash.c: XXH3 behind a few calls, the only unit that includes xxhash.h. The library is compiled in
 * (XXH_INLINE_ALL), so short inputs, which labels are, cost no call through a shared library. The
 * algorithm is fixed by its specification: hashes may be written to disk. Any thread.
 */
#include "storage/base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

struct hash128 hash128(const struct hash_key *key, const void *p, size_t n)
{
    XXH128_hash_t h = XXH3_128bits_withSecret(p, n, key->secret, HASH_KEY_SIZE);
    return (struct hash128){h.low64, h.high64};
}

uint64_t hash64(const struct hash_key *key, const void *p, size_t n)
{
    return XXH3_64bits_withSecret(p, n, key->secret, HASH_KEY_SIZE);
}

uint64_t checksum64(const void *p, size_t n)
{
    return XXH3_64bits(p, n);
}

uint64_t checksum64_two(const void *a, size_t an, const void *b, size_t bn)
{
    XXH3_state_t state;
    XXH3_64bits_reset(&state);
    XXH3_64bits_update(&state, a, an);
    XXH3_64bits_update(&state, b, bn);
    return XXH3_64bits_digest(&state);
}

uint64_t checksum64_stream(checksum_next_fn next, void *arg)
{
    XXH3_state_t state;
    const void *p;
    size_t n;
    XXH3_64bits_reset(&state);
    while (next(arg, &p, &n))
        XXH3_64bits_update(&state, p, n);
    return XXH3_64bits_digest(&state);
}

uint64_t hash_xxh64(const void *p, size_t n)
{
    return XXH64(p, n, 0);
}
