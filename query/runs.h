/*
 * runs.h: one long window of a series from storage, without decoding the blocks that lie wholly inside it.
 */
#ifndef VARVE_QUERY_RUNS_H
#define VARVE_QUERY_RUNS_H

#include "query/budget.h"
#include "query/digest.h"

/* Shorter windows seldom cover a block, which holds up to 2,048 samples. */
#define RUNS_RANGE_MIN_MS (INT64_C(3) * 3600 * 1000)

struct runs {
    struct budget *budget;
    struct digest digest; /* of the series asked for last */
    struct sample_run *v; /* copies: the reader's own go when it reads; heap */
    size_t n, cap;
};

void runs_deinit(struct runs *r);
/* Sums up series i in [t_min, t_max] into r->digest. *plain false: it has no such block, or histograms or start
 * timestamps; it must be read as samples. */
err runs_digest(struct runs *r, struct reader *reader, size_t i, int64_t t_min, int64_t t_max, bool *plain)
    __attribute__((warn_unused_result));

#endif
