/*
 * fuzz.h: the differential fuzzer of PromQL: random data, random queries, the engine against the oracle.
 *
 * A world is one random data set, kept in plain arrays for the oracle and written into a database in pieces, out of
 * order, with overwritten values, flushes and merges between. A query is a tree of text so that it can be shrunk.
 * Everything follows from one seed. One thread.
 */
#ifndef VARVE_TESTS_ORACLE_FUZZ_H
#define VARVE_TESTS_ORACLE_FUZZ_H

#include "query/query.h"
#include "storage/base/rng.h"
#include "tests/oracle/oracle.h"

#define FUZZ_T0 INT64_C(1767225600000) /* a multiple of an hour */
#define FUZZ_SPAN INT64_C(3600000)

/* ---- fuzz_data.c */
struct fuzz_world {
    struct arena arena;
    struct oracle_data data;
    char dir[64];
    struct db *db;
    struct query_engine *engine;
};
err fuzz_world_init(struct fuzz_world *w, struct rng *rng) __attribute__((warn_unused_result));
err fuzz_world_deinit(struct fuzz_world *w) __attribute__((warn_unused_result));
void fuzz_world_print(const struct fuzz_world *w, struct buf *out); /* one line a series */

/* ---- fuzz_query.c */
#define FUZZ_KIDS 5
struct fuzz_node {
    enum value_type type;
    int n; /* kids; text[0] kid[0] text[1] ... kid[n-1] text[n] */
    const char *text[FUZZ_KIDS + 1];
    struct fuzz_node *kid[FUZZ_KIDS];
};
struct fuzz_node *fuzz_query(struct rng *rng, struct arena *a);
str fuzz_text(const struct fuzz_node *n, struct arena *a);

/* ---- fuzz_compare.c */
enum fuzz_verdict {
    FUZZ_SAME,
    FUZZ_EMPTY, /* the same, but there is nothing in it */
    FUZZ_FAILED /* the same: an error */,
    FUZZ_DIFFERENT,
    FUZZ_OPEN, /* ambiguous: nothing to compare */
    FUZZ_VERDICTS,
};
struct fuzz_times {
    int64_t start, step; /* step 0: instant */
    size_t n;
};
/* Runs the text both ways. report (may be NULL): both answers, if they differ. */
enum fuzz_verdict fuzz_compare(struct fuzz_world *w, str text, struct fuzz_times times, struct buf *report);
/* Drops subtrees as long as the answers stay different. */
void fuzz_shrink(struct fuzz_world *w, struct fuzz_node *n, struct fuzz_times times);

#endif
