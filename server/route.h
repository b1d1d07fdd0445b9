/*
 * route.h: one table, path × method → handler.
 *
 * A handler fills x->out. Where it runs is the table's business. Handlers are declared in handlers.h
 * and written in the h_*.c files.
 */
#ifndef VARVE_SERVER_ROUTE_H
#define VARVE_SERVER_ROUTE_H

#include "server/exchange.h"
#include "server/server.h"

enum route_where {
    ROUTE_INLINE, /* on the loop: short, never blocks */
    ROUTE_WRITE,  /* on the loop, or a slow worker if the body is very long; the answer may wait for the log */
    ROUTE_QUERY,  /* on the query workers */
    ROUTE_SLOW,   /* on the workers for long jobs */
    ROUTE_READ,   /* on the remote read workers; may answer through x->stream as exports do */
    ROUTE_EXPORT, /* on the export workers; may answer through x->stream: stream_write, then x->streamed */
};

enum route_flags {
    ROUTE_ALWAYS = 1,    /* also before the storage is open */
    ROUTE_BODY = 2,      /* the body is no form: the handler reads it, on a worker too */
    ROUTE_ADMIN = 4,     /* only with --web.enable-admin-api */
    ROUTE_LIFECYCLE = 8, /* only with --web.enable-lifecycle */
};

struct route {
    const char *path; /* "<>" stands for one segment, handed over as x->path_arg */
    unsigned verbs;   /* of enum http_verb; GET includes HEAD unless the job is long, OPTIONS is always answered */
    enum route_where where;
    unsigned flags;
    void (*handle)(struct server *s, struct exchange *x);
};

size_t route_count(void);
const struct route *route_at(size_t i);
size_t route_index(const struct route *r);

/*
 * At the end of the head: fills x->path, query, path_arg and route. When nothing fits, x->out has the 404 or 405
 * already; for OPTIONS it has that answer.
 */
void route_resolve(struct exchange *x);
/* Largest body that the route of x takes. */
uint64_t route_body_max(const struct exchange *x);
/*
 * At the end of the body, on the loop: runs the handler or hands x to a worker. True: x->out is filled (or x->seq is
 * to be waited for); false: x comes back through its task, with x->away until then.
 */
bool route_run(struct exchange *x);

#endif
