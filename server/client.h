/*
 * client.h: a small blocking HTTP client, for the commands that talk to a running server.
 *
 * One client is one server and at most one connection, kept between requests. Not thread-safe.
 */
#ifndef VARVE_SERVER_CLIENT_H
#define VARVE_SERVER_CLIENT_H

#include "server/client_reader.h"

struct client_options {
    const char *url;    /* url.h */
    const char *bearer; /* token for "Authorization: Bearer"; NULL or "": none. Wins over a password in the URL */
    int64_t timeout_ms; /* longest time to connect, and longest pause of the server */
};

struct client;
/* ERR_INVALID, ERR_UNSUPPORTED: the URL. Nothing is connected yet. */
err client_create(const struct client_options *o, struct client **out) __attribute__((warn_unused_result));
void client_destroy(struct client *c);          /* NULL allowed */
const char *client_url(const struct client *c); /* for messages: without password */

struct client_request {
    const char *method;       /* "GET", "POST" */
    const char *path;         /* from '/', with the query string; no prefix */
    const char *content_type; /* of the body; NULL: no body */
    str body;
};

/*
 * Sends the request and reads the answer, whatever its status; see client_reader.h for fn. A kept connection that turns
 * out closed is replaced once, before anything of an answer came. ERR_IO, ERR_TIMEOUT name the server.
 */
err client_do(struct client *c, const struct client_request *rq, struct client_answer *a, client_body_fn fn, void *arg)
    __attribute__((warn_unused_result));

#endif
