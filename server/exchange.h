/*
 * exchange.h: one request and its answer, from the first byte in to the last byte out.
 *
 * Belongs to the loop it came in on. While a worker has it, the loop touches only `conn`, `canceled`
 * and `stream`'s loop side; the worker hands it back by posting `task` (exchange_finish) or through
 * the stream. If the client goes away meanwhile, `conn` is NULL and the exchange is dropped when it
 * comes back.
 */
#ifndef VARVE_SERVER_EXCHANGE_H
#define VARVE_SERVER_EXCHANGE_H

#include "ingest/ingest.h"
#include "server/acks.h"
#include "server/answer.h"
#include "server/http.h"
#include "server/loop.h"
#include "server/params.h"
#include "server/peer.h"
#include "server/stream.h"

struct conn;
struct route;
struct server;

/* What a loop lends to the handlers that run on it. */
struct exchange_home {
    struct loop *loop;
    struct acks *acks;
    struct ingest_scratch *scratch; /* made at the first write, gone again when none comes for a while */
    bool scratch_used;              /* since the last tick */
};

struct exchange {
    struct task task; /* what brings it back to its loop; first, so that a task is an exchange */
    struct http_request in;
    str path, query; /* of in.target */
    str path_arg;    /* what stood for the <name> in the route's path, decoded */
    struct params params;
    struct answer out;
    const struct route *route; /* NULL: not found; out says so already */
    struct server *server;
    struct exchange_home *home;
    struct conn *conn; /* loop's; NULL: the client is gone */
    atomic_bool canceled;
    uint64_t seq;          /* the write whose outcome the answer waits for; 0 = none */
    bool write_begun;      /* counted in home->acks */
    struct stream *stream; /* for a long answer; owned, made before the worker gets the exchange */
    bool streamed;         /* worker's: the answer goes through the stream, out is its head */
    bool stream_complete;  /* worker's: all of it was written */
    bool hurried;          /* a query on the loop: it gets QUICK_TIMEOUT_MS */
    uint64_t shape;        /* of the query, for quick.h; 0 = none */
    bool away;             /* a worker has it; set before the worker gets it */
    uint64_t start_ns;
    struct peer peer;      /* who asks */
    struct exchange *next; /* in the list of those that wait for their write, or in the pool */
    size_t counted;        /* bytes of the body counted in the server's budget */
};

struct exchange *exchange_create(struct server *server, struct exchange_home *home);
void exchange_destroy(struct exchange *x);
void exchange_reset(struct exchange *x);         /* ready for another request; keeps memory */
size_t exchange_bytes(const struct exchange *x); /* heap it holds */

static inline struct exchange *exchange_of_task(struct task *t)
{
    return (struct exchange *)t;
}

#endif
