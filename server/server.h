/*
 * server.h: the running server: what every request may need, and its life from start to stop.
 *
 * The struct is made by server_run and outlives all loops and workers. Fields are set before the
 * phase that uses them is entered and constant afterwards, but for the atomics.
 */
#ifndef VARVE_SERVER_SERVER_H
#define VARVE_SERVER_SERVER_H

#include <stdatomic.h>

#include "ingest/ingest.h"
#include "query/query.h"
#include "server/config.h"
#include "server/cors.h"
#include "storage/base/worker.h"
#include "storage/storage.h"

#define SERVER_QUEUE_MAX 1024 /* queries that may wait for a worker */
#define SERVER_SLOW_MAX 64    /* admin jobs and very long bodies that may wait; exports likewise */
#define SERVER_SLOW_THREADS 4
#define SERVER_EXPORT_THREADS 4
#define SERVER_READ_THREADS 10 /* remote reads at once, as many as Prometheus allows */

/* starting -> ready [storage is open] -> stopping [signal]; starting -> stopping */
enum server_phase {
    PHASE_STARTING, /* the log is being replayed: everything but health answers 503 */
    PHASE_READY,
    PHASE_STOPPING, /* requests in flight are finished, connections closed */
};

struct self;

struct server {
    const struct config *config; /* borrowed */
    struct log *log;
    struct metrics *metrics;
    struct self *self; /* what is measured about requests and the process */
    struct cors cors;
    _Atomic int phase;           /* enum server_phase */
    struct db *db;               /* from PHASE_READY on, as the next ones */
    struct ingest *ingest;       /* ... */
    struct query_engine *engine; /* ... */
    struct quick *quick;         /* which queries are short */
    struct counter *slow_queries;
    struct top *top;        /* what they cost, by text */
    struct active *active;  /* those that run now */
    struct worker *queries; /* ... bounded in time by the query timeout */
    struct worker *slow;    /* merges, snapshots, very long bodies: may take minutes */
    struct worker *exports; /* as slow as their clients read */
    struct worker *reads;   /* remote read: likewise, but another server's queries wait for them */
    struct env *env;
    atomic_uint_fast64_t connections; /* open now, all loops */
    atomic_uint_fast64_t body_bytes;  /* held by request bodies, all loops */
    uint64_t body_bytes_max;
};

static inline bool server_is_ready(struct server *s)
{
    return atomic_load_explicit(&s->phase, memory_order_acquire) == PHASE_READY;
}

/* Runs until a signal ends it. Returns the exit code; says on stderr and in the log what went wrong. */
int server_run(const struct config *config);

#endif
