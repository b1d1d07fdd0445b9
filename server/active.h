/*
 * active.h: the queries that run now, so that people can see and end them.
 *
 * A query enters when a worker begins it and leaves when its answer is complete; those that are short
 * enough for the loop (quick.h) never enter. The record lies on the worker's stack and borrows the
 * request's strings, so that entering costs a lock and no memory. Any thread.
 */
#ifndef VARVE_SERVER_ACTIVE_H
#define VARVE_SERVER_ACTIVE_H

#include "server/exchange.h"

struct active;

struct active_query {
    str text;
    int64_t start_ms, end_ms, step_ms;
    const struct peer *remote;
    atomic_bool *canceled; /* what ends it */
    bool ended;            /* by active_cancel; read it after active_leave */
    uint64_t id, begun_ns; /* set by active_enter */
    struct active_query *prev, *next;
};

struct active *active_create(void);
void active_destroy(struct active *a); /* NULL allowed; no queries may be left */

void active_enter(struct active *a, struct active_query *q, uint64_t now_ns);
void active_leave(struct active *a, struct active_query *q);
size_t active_count(struct active *a);

/* Ends the query of this number soon. False: there is none (any more). */
bool active_cancel(struct active *a, uint64_t id);

/* Called for each query, the oldest first, under the registry's lock: strings are valid during the call. */
typedef void (*active_fn)(void *arg, const struct active_query *q);
void active_each(struct active *a, active_fn fn, void *arg);

#endif
