/*
 * budget.h: what one query may take: time, samples, bytes; and the flag that cancels it.
 *
 * Operators call budget_tick once a series; it reads the clock every few calls. Exceeding gives
 * ERR_TIMEOUT, ERR_CANCELED or ERR_LIMIT, with the number and the flag that sets it. The helpers of a
 * query share one budget: counters are atomic, so any of its threads may call.
 */
#ifndef VARVE_QUERY_BUDGET_H
#define VARVE_QUERY_BUDGET_H

#include <stdatomic.h>

#include "storage/base/err.h"

struct budget {
    int64_t deadline_ns; /* monotonic clock; 0 = none */
    int64_t timeout_ms;  /* for the message */
    const atomic_bool *canceled;
    uint64_t max_samples;
    size_t max_bytes;
    atomic_uint_fast64_t read;    /* samples read so far */
    atomic_uint_fast64_t touched; /* samples that fell into windows: the query's statistics */
    atomic_uint_fast64_t held;    /* samples held in memory now */
    atomic_uint_fast64_t peak;    /* the most that were held */
    atomic_size_t bytes;          /* bytes held now */
    atomic_uint ticks;
    atomic_size_t *total; /* bytes of all queries, told in steps of a MiB; NULL: nobody is told */
    atomic_size_t told;   /* this one's part of it */
};

/* timeout_ms 0: no deadline. canceled may be NULL. */
void budget_init(struct budget *b, int64_t timeout_ms, uint64_t max_samples, size_t max_bytes,
                 const atomic_bool *canceled);
/* One more series, with this many samples read. */
err budget_tick(struct budget *b, uint64_t samples) __attribute__((warn_unused_result));
/* Deadline and cancel flag, at once. */
err budget_check(struct budget *b) __attribute__((warn_unused_result));
/* Memory that stays until the query ends or is given back. */
err budget_hold(struct budget *b, uint64_t samples, size_t bytes) __attribute__((warn_unused_result));
/* At the end: takes this query out of the total. */
void budget_end(struct budget *b);
void budget_release(struct budget *b, uint64_t samples, size_t bytes);

#endif
