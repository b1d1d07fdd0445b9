/*
 * reuse.h: a range query and the answer that is kept of the one before (result_cache.h).
 *
 * A panel that is refreshed asks the same expression with the same step for a range that has moved by a few steps. What
 * was known and is still right are the first steps of the new answer; the rest is evaluated, and the whole is kept.
 * Timestamps are those that were asked for: answers are only shared where steps fall on the same times.
 */
#ifndef VARVE_QUERY_REUSE_H
#define VARVE_QUERY_REUSE_H

#include "query/query.h"
#include "query/result_cache.h"

struct reuse {
    struct result_cache *cache; /* NULL: the query takes no part */
    struct buf question;        /* what answers are kept under */
    struct grid grid;           /* of the whole answer */
    uint64_t version;           /* of the storage, from before anything was read */
    const struct kept_result *kept;
    uint32_t first, n; /* its steps first ... first + n - 1 are the first n of the answer */
};

/* Looks for what is known of the expression on the plan's grid. cache NULL, or an expression whose values do not depend
 * on a step's time and older samples alone: nothing. */
void reuse_begin(struct reuse *u, struct result_cache *cache, struct db *db, const struct plan *plan, struct expr *e,
                 const struct query_request *rq);
/* rows: evaluated on the steps that were not known, sorted; afterwards all of the answer. They point into what is kept
 * until reuse_end. */
err reuse_join(const struct reuse *u, struct exec *x, struct held_rows *rows) __attribute__((warn_unused_result));
/* Keeps the answer, if it has more than was known. notes: those of the steps that were evaluated; afterwards all. */
void reuse_keep(const struct reuse *u, const struct held_rows *rows, struct notes *notes);
void reuse_end(struct reuse *u);

#endif
