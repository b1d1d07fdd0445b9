/*
 * digest.h: a window summed up: what range functions need of it that look at nothing but ends, extremes and sums.
 *
 * A digest grows by samples or by whole blocks whose aggregates storage knows, in time order. Pure.
 */
#ifndef VARVE_QUERY_DIGEST_H
#define VARVE_QUERY_DIGEST_H

#include "query/rollup.h"

struct digest {
    uint64_t n;
    int64_t first_t, last_t;
    double first, last, min, max;
    double resets; /* what a counter lost: the value before each fall */
    struct kahan sum;
};

/* n samples, none a stale marker. */
void digest_add_samples(struct digest *d, const int64_t *t, const double *v, size_t n);
/* A covered run. */
void digest_add_run(struct digest *d, const struct sample_run *run);

/* True if a digest is all that the function needs. */
bool digest_serves(enum rollup_code code);
/* The function's value over the window (start, end], ms; "no sample" if there is none. */
double digest_value(const struct digest *d, enum rollup_code code, int64_t start, int64_t end);

#endif
