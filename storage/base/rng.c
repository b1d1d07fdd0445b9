/*
 * rng.c: xoshiro256++ seeded by splitmix64, so that any seed, 0 too, gives a good state.
 * Source: Blackman and Vigna, "Scrambled linear pseudorandom number generators".
 */
#include "storage/base/rng.h"

#include "storage/base/assert.h"

static uint64_t rotl(uint64_t x, int k)
{
    return (x << k) | (x >> (64 - k));
}

void rng_seed(struct rng *r, uint64_t seed)
{
    for (size_t i = 0; i < ARRAY_LEN(r->s); i++) {
        seed += UINT64_C(0x9e3779b97f4a7c15);
        uint64_t z = seed;
        z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
        z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
        r->s[i] = z ^ (z >> 31);
    }
}

uint64_t rng_next(struct rng *r)
{
    uint64_t *s = r->s;
    uint64_t result = rotl(s[0] + s[3], 23) + s[0];
    uint64_t t = s[1] << 17;
    s[2] ^= s[0];
    s[3] ^= s[1];
    s[1] ^= s[2];
    s[0] ^= s[3];
    s[2] ^= t;
    s[3] = rotl(s[3], 45);
    return result;
}

/* The high half of a 128-bit product: the bias, below n / 2^64, is nothing to tests and jitter. */
uint64_t rng_below(struct rng *r, uint64_t n)
{
    check(n > 0);
    return (uint64_t)(((unsigned __int128)rng_next(r) * n) >> 64);
}

double rng_unit(struct rng *r)
{
    return (double)(rng_next(r) >> 11) * 0x1p-53;
}

bool rng_chance(struct rng *r, double p)
{
    return rng_unit(r) < p;
}
