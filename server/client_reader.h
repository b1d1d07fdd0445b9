/*
 * client_reader.h: an HTTP answer, from bytes in any pieces to status, headers that matter and body.
 */
#ifndef VARVE_SERVER_CLIENT_READER_H
#define VARVE_SERVER_CLIENT_READER_H

#include "storage/base/buf.h"

/* Takes a piece of a body; an error ends the reading and is what the caller gets. */
typedef err (*client_body_fn)(void *arg, str piece);

struct client_answer {
    int status;
    int64_t retry_after_s; /* -1: the server named none */
    struct buf body;       /* owned, client_answer_deinit; its max bounds it. Empty if the body went to a function */
};
void client_answer_deinit(struct client_answer *a);

struct client_reader; /* one connection's; not thread-safe */
struct client_reader *client_reader_create(void);
void client_reader_destroy(struct client_reader *r); /* NULL allowed */

/* The next answer goes to *a (reset; body.max is kept). Bodies of status 2xx go to fn piece by piece, unless NULL. */
void client_reader_begin(struct client_reader *r, struct client_answer *a, client_body_fn fn, void *arg);
/*
 * Feeds n bytes; n = 0: the connection has ended, which completes an answer without a length and is an error in any
 * other. *done once the answer is complete; bytes behind it are ignored, as nothing was asked that they could answer.
 * ERR_IO: what came is not HTTP; ERR_TOO_LARGE: the body is longer than body.max; else fn's error.
 */
err client_reader_feed(struct client_reader *r, const char *p, size_t n, bool *done)
    __attribute__((warn_unused_result));
/* May the connection carry another request? After *done. */
bool client_reader_reusable(const struct client_reader *r);

#endif
