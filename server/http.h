/*
 * http.h: HTTP/1.x requests out of bytes; no sockets, no routes.
 *
 * A reader belongs to one connection and fills one request at a time, whatever pieces the bytes come
 * in. The request owns the memory of what it holds (arena, body); the reader borrows the request.
 * One thread at a time.
 */
#ifndef VARVE_SERVER_HTTP_H
#define VARVE_SERVER_HTTP_H

#include <http_parser.h>

#include "storage/base/arena.h"
#include "storage/base/buf.h"

#define HTTP_HEAD_MAX (32u << 10) /* request line and headers together */

/* Methods as bits, so that a route names the ones it takes. */
enum http_verb {
    VERB_GET = 1,
    VERB_HEAD = 2,
    VERB_POST = 4,
    VERB_PUT = 8,
    VERB_DELETE = 16,
    VERB_OPTIONS = 32,
    VERB_OTHER = 64,
};

/* The headers that anyone here looks at; the rest is skipped. */
enum http_header {
    HEADER_ACCEPT,
    HEADER_ACCEPT_ENCODING,
    HEADER_CONTENT_ENCODING,
    HEADER_CONTENT_TYPE,
    HEADER_EXPECT,
    HEADER_IF_NONE_MATCH,
    HEADER_ORIGIN,
    HEADER_ACCESS_CONTROL_REQUEST_HEADERS,
    HEADER_COUNT,
};

struct http_text {
    char *p; /* in the request's arena */
    uint32_t n, cap;
};

struct http_request {
    struct arena arena;
    enum http_verb verb;
    struct http_text target; /* as sent: path?query */
    struct http_text headers[HEADER_COUNT];
    bool http11, keep_alive, chunked;
    bool has_length;
    uint64_t content_length;
    struct buf body_buf; /* owned; not used if the whole body came in one piece */
    str body;            /* complete once READ_DONE was returned; valid until more is read */
};

static inline str http_header(const struct http_request *rq, enum http_header h)
{
    return (str){rq->headers[h].p, rq->headers[h].n};
}

void http_request_reset(struct http_request *rq);  /* ready for the next one; keeps memory */
void http_request_deinit(struct http_request *rq); /* frees; {0} is a fresh one */

enum http_read_event {
    READ_MORE, /* all bytes are used up; the request is not complete */
    READ_HEAD, /* request line and headers are complete; call again for the body */
    READ_DONE, /* the request is complete */
    READ_BAD,  /* it can't be read on: status and reason say why */
};

struct http_reader {
    http_parser parser;
    struct http_request *rq; /* borrowed; NULL between requests */
    enum http_read_event event;
    int status;         /* of READ_BAD: 400, 413, 431, 501, 505 */
    const char *reason; /* static text */
    uint64_t body_max;  /* set by http_reader_begin; may be lowered at READ_HEAD */
    uint64_t body_n;
    bool head_done;
    bool discard; /* set at READ_HEAD: body bytes are counted, not kept */
    int8_t header;
    uint8_t name_n;
    char name[32]; /* header name so far, lower case */
};

/* Once a process, before the first reader: the head's size limit is global in the parser library. */
void http_setup(void);
void http_reader_init(struct http_reader *r);
/* The next request goes into rq, which is empty. */
void http_reader_begin(struct http_reader *r, struct http_request *rq, uint64_t body_max);
/* Reads up to n > 0 bytes; *used of them belong to this request so far. */
enum http_read_event http_read(struct http_reader *r, const char *p, size_t n, size_t *used);

/*
 * Where the socket may put the next body bytes so that they need no copying: the tail of the body buffer, no longer
 * than what is left of the body. NULL when the bytes should come through another buffer. Hand them to http_read.
 */
uint8_t *http_body_tail(struct http_reader *r, size_t *n);

const char *http_status_text(int status);

#endif
