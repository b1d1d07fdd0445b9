/*
 * read_request.h: a remote read request, parsed. Private to the room; query.h has the opaque type.
 */
#ifndef VARVE_QUERY_READ_REQUEST_H
#define VARVE_QUERY_READ_REQUEST_H

#include "query/query.h"

#define READ_QUERIES_MAX 1024  /* in one request */
#define READ_MATCHERS_MAX 4096 /* in one request */
#define READ_REGEXES_MAX 1024  /* in one request: each costs some 0.1 ms and kilobytes outside the arena */

struct read_query {
    int64_t t_min, t_max; /* inclusive, ms; an empty range if t_max < t_min */
    struct matcher *m;
    uint32_t n;
};

struct read_request {
    struct arena arena;
    struct buf raw; /* the message, which the matchers' texts lie in */
    struct read_query *queries;
    uint32_t n, n_matchers, n_regexes;
    enum query_read_type type;
};

#endif
