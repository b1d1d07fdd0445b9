/*
 * listen.h: addresses as text → bound sockets.
 */
#ifndef VARVE_SERVER_LISTEN_H
#define VARVE_SERVER_LISTEN_H

#include "storage/base/err.h"

struct listen_address {
    char text[128]; /* as bound: "[::]:8428", port filled in */
    int fds[64];    /* one a loop, bound, not yet listening; the caller's */
};

/* Binds n sockets to one address ("host:port", ":port", "[v6]:port"), sharing it by SO_REUSEPORT. */
err listen_bind(str address, unsigned n, struct listen_address *out) __attribute__((warn_unused_result));

#endif
