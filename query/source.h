/*
 * source.h: series of raw samples for range functions: from storage (op_select.c) or from a subquery
 * (op_subquery.c).
 *
 * A source yields one series at a time, stale markers removed; its memory lives until the next call.
 */
#ifndef VARVE_QUERY_SOURCE_H
#define VARVE_QUERY_SOURCE_H

#include "query/digest.h"
#include "query/exec.h"

/* Samples of one series, increasing in time. */
struct series {
    const int64_t *t;
    const double *v; /* undefined where h[i] is set */
    struct hist **h; /* NULL: floats only */
    size_t n;
    const int64_t *start;        /* start timestamps, 0 = none; NULL: no sample has one, or they come from a subquery */
    const struct digest *digest; /* set instead of all above: the only window, summed up */
    struct row labels;           /* its columns are unused: labels and drop_name */
};

struct source {
    err (*next)(struct source *s, struct series *out, bool *more);
    struct op *op; /* whose scratch and life it shares */
};

/* The next series; counts it, and its samples if someone asked for that. */
err source_next(struct source *s, struct series *out, bool *more) __attribute__((warn_unused_result));

/* Of a PLAN_SAMPLES node. digests: the consumer takes a digest where one is cheaper than the samples. */
err source_open(struct exec *x, const struct plan_node *samples, bool digests, struct source **out)
    __attribute__((warn_unused_result));
err source_select_open(struct exec *x, const struct plan_node *samples, bool digests, struct source **out)
    __attribute__((warn_unused_result));
err source_subquery_open(struct exec *x, const struct plan_node *samples, struct source **out)
    __attribute__((warn_unused_result));

#endif
