/* rng.h: a small deterministic generator (xoshiro256++) for tests, the simulator and jitter. Not for secrets. */
#ifndef VARVE_STORAGE_BASE_RNG_H
#define VARVE_STORAGE_BASE_RNG_H

#include "storage/base/types.h"

struct rng {
    uint64_t s[4];
};

void rng_seed(struct rng *r, uint64_t seed);
uint64_t rng_next(struct rng *r);
uint64_t rng_below(struct rng *r, uint64_t n); /* 0 .. n-1, n > 0 */
double rng_unit(struct rng *r);                /* [0, 1) */
bool rng_chance(struct rng *r, double p);

#endif
