/*
 * conn.h: the connections of one loop: listening, reading requests, sending answers, timeouts.
 *
 * A `conns` is made before its loop starts and destroyed after it ended; everything else in between
 * happens on the loop's thread, except conns_stop and conns_settled.
 */
#ifndef VARVE_SERVER_CONN_H
#define VARVE_SERVER_CONN_H

#include "server/loop.h"
#include "server/server.h"

struct conns;

struct conns *conns_create(struct server *server, struct loop *loop);
void conns_destroy(struct conns *cs); /* after loop_join, before loop_destroy; NULL allowed */
/* Before loop_start: all loops' connections; new ones go to the loop that has fewest. The array is the caller's. */
void conns_share(struct conns *cs, struct conns *const *all, unsigned n);
/* Before loop_start: accept on this bound socket, which it takes. */
err conns_listen(struct conns *cs, int fd) __attribute__((warn_unused_result));

/* Any thread, once: stop accepting, close idle connections, finish requests in flight, then let the loop end. */
void conns_stop(struct conns *cs);
/* The WAL thread: see storage_settled_fn. */
void conns_settled(struct conns *cs, uint64_t seq, const struct err *e);

#endif
