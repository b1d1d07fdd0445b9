/*
 * http.c: the parser library's callbacks, and what a request looks like afterwards.
 *
 * The library (http-parser 2.9) does the grammar; here its pieces are put together. Two points of
 * a request stop it, by pausing in the callback: the end of the head, where the caller decides what
 * becomes of the body, and the end of the message, so that bytes of a following request (pipelining)
 * stay with the caller. Values that arrive in several pieces grow by doubling inside the request's
 * arena, so a head sent byte by byte costs at most twice its size. Bodies are kept in one buffer:
 * borrowed from the caller when the whole body came in one piece, read in place (http_body_tail)
 * when it is long, copied once otherwise.
 *
 * Upgrade headers (curl's h2c) are ignored: the request is answered as HTTP/1.1. Requests with both
 * Content-Length and Transfer-Encoding are refused by the library.
 */
#include "server/http.h"

#include "storage/base/assert.h"

#define TAIL_MIN ((size_t)64 << 10) /* body bytes still to come that are worth reading in place */

static const struct {
    const char *name;
    enum http_header header;
} wanted[] = {
    {"accept", HEADER_ACCEPT},
    {"accept-encoding", HEADER_ACCEPT_ENCODING},
    {"content-encoding", HEADER_CONTENT_ENCODING},
    {"content-type", HEADER_CONTENT_TYPE},
    {"expect", HEADER_EXPECT},
    {"if-none-match", HEADER_IF_NONE_MATCH},
    {"origin", HEADER_ORIGIN},
    {"access-control-request-headers", HEADER_ACCESS_CONTROL_REQUEST_HEADERS},
};

void http_request_reset(struct http_request *rq)
{
    struct arena arena = rq->arena;
    struct buf body_buf = rq->body_buf;
    arena_reset(&arena);
    buf_clear(&body_buf);
    *rq = (struct http_request){.arena = arena, .body_buf = body_buf};
}

void http_request_deinit(struct http_request *rq)
{
    arena_deinit(&rq->arena);
    buf_deinit(&rq->body_buf);
}

static void text_append(struct http_text *t, struct arena *a, const char *p, size_t n)
{
    if (t->n + n > t->cap) {
        size_t cap = t->n == 0 ? n : 2 * (t->n + n);
        char *grown = arena_alloc(a, cap);
        if (t->n > 0) memcpy(grown, t->p, t->n);
        t->p = grown;
        t->cap = (uint32_t)cap;
    }
    memcpy(t->p + t->n, p, n);
    t->n += (uint32_t)n;
}

static enum http_verb verb_of(unsigned method)
{
    switch (method) {
    case HTTP_GET:
        return VERB_GET;
    case HTTP_HEAD:
        return VERB_HEAD;
    case HTTP_POST:
        return VERB_POST;
    case HTTP_PUT:
        return VERB_PUT;
    case HTTP_DELETE:
        return VERB_DELETE;
    case HTTP_OPTIONS:
        return VERB_OPTIONS;
    default:
        return VERB_OTHER;
    }
}

static int refuse(struct http_reader *r, int status, const char *reason)
{
    r->event = READ_BAD;
    r->status = status;
    r->reason = reason;
    return -1; /* 1 and 2 have meanings of their own at the end of the head */
}

static int on_url(http_parser *p, const char *at, size_t n)
{
    struct http_reader *r = p->data;
    text_append(&r->rq->target, &r->rq->arena, at, n);
    return 0;
}

static int on_header_field(http_parser *p, const char *at, size_t n)
{
    struct http_reader *r = p->data;
    if (r->header != -1) { /* a value came before: a new name begins */
        r->header = -1;
        r->name_n = 0;
    }
    for (size_t i = 0; i < n; i++) {
        if (r->name_n == sizeof r->name) break; /* longer than any wanted name: can't match any more */
        char c = at[i];
        r->name[r->name_n++] = c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
    }
    return 0;
}

/* Number of the header whose name has just ended; HEADER_COUNT if nobody wants it. */
static int header_of(const struct http_reader *r)
{
    str name = {r->name, r->name_n};
    for (size_t i = 0; i < ARRAY_LEN(wanted); i++)
        if (str_eq(name, str_of(wanted[i].name))) return (int)wanted[i].header;
    return HEADER_COUNT;
}

static int on_header_value(http_parser *p, const char *at, size_t n)
{
    struct http_reader *r = p->data;
    bool first = r->header == -1;
    if (first) r->header = (int8_t)header_of(r);
    if (r->header == HEADER_COUNT) return 0;
    struct http_text *t = &r->rq->headers[r->header];
    if (first && t->n > 0) text_append(t, &r->rq->arena, ", ", 2); /* the header is repeated */
    if (n > 0) text_append(t, &r->rq->arena, at, n);
    return 0;
}

static int on_headers_complete(http_parser *p)
{
    struct http_reader *r = p->data;
    struct http_request *rq = r->rq;
    if (p->http_major != 1) return refuse(r, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
    rq->verb = verb_of(p->method);
    rq->http11 = p->http_minor >= 1;
    rq->chunked = (p->flags & F_CHUNKED) != 0;
    rq->has_length = (p->flags & F_CONTENTLENGTH) != 0;
    rq->content_length = rq->has_length ? p->content_length : 0;
    rq->keep_alive = http_should_keep_alive(p) != 0 && p->method != HTTP_CONNECT;
    if (p->method != HTTP_CONNECT) p->upgrade = 0;
    r->head_done = true;
    r->event = READ_HEAD;
    http_parser_pause(p, 1);
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    struct http_reader *r = p->data;
    struct http_request *rq = r->rq;
    r->body_n += n;
    if (r->body_n > r->body_max) return refuse(r, 413, "the body is larger than --web.max-body-size allows");
    if (r->discard) return 0;
    struct buf *b = &rq->body_buf;
    if (rq->has_length && n == rq->content_length)
        rq->body = (str){at, n}; /* whole: borrowed */
    else if (b->data != NULL && (const uint8_t *)at == b->data + b->n)
        b->n += n; /* was read in place */
    else
        buf_put(b, at, n);
    return 0;
}

static int on_message_complete(http_parser *p)
{
    struct http_reader *r = p->data;
    if (r->rq->body.n == 0 && r->rq->body_buf.n > 0) r->rq->body = buf_as_str(&r->rq->body_buf);
    r->event = READ_DONE;
    http_parser_pause(p, 1);
    return 0;
}

static const http_parser_settings callbacks = {
    .on_url = on_url,
    .on_header_field = on_header_field,
    .on_header_value = on_header_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_message_complete,
};

void http_setup(void)
{
    http_parser_set_max_header_size(HTTP_HEAD_MAX);
}

void http_reader_init(struct http_reader *r)
{
    *r = (struct http_reader){.header = -1};
    http_parser_init(&r->parser, HTTP_REQUEST);
    r->parser.data = r;
}

void http_reader_begin(struct http_reader *r, struct http_request *rq, uint64_t body_max)
{
    r->rq = rq;
    r->body_max = body_max;
    r->body_n = 0;
    r->head_done = r->discard = false;
    r->header = -1;
    r->name_n = 0;
}

/* What the client is told about an error of the grammar. */
static void refuse_grammar(struct http_reader *r)
{
    switch (HTTP_PARSER_ERRNO(&r->parser)) {
    case HPE_HEADER_OVERFLOW:
        refuse(r, r->head_done ? 400 : 431, "request line and headers are larger than 32 KiB");
        break;
    case HPE_INVALID_METHOD:
        refuse(r, 501, "unknown method");
        break;
    case HPE_INVALID_VERSION:
        refuse(r, 505, "only HTTP/1.0 and HTTP/1.1 are spoken here");
        break;
    default:
        refuse(r, 400, http_errno_description(HTTP_PARSER_ERRNO(&r->parser)));
    }
}

enum http_read_event http_read(struct http_reader *r, const char *p, size_t n, size_t *used)
{
    check(r->rq != NULL && n > 0);
    r->event = READ_MORE;
    *used = http_parser_execute(&r->parser, &callbacks, p, n);
    enum http_errno code = HTTP_PARSER_ERRNO(&r->parser);
    if (code == HPE_PAUSED)
        http_parser_pause(&r->parser, 0);
    else if (code != HPE_OK && r->event != READ_BAD)
        refuse_grammar(r);
    if (r->event == READ_DONE) r->rq = NULL;
    return r->event;
}

uint8_t *http_body_tail(struct http_reader *r, size_t *n)
{
    if (r->rq == NULL || !r->head_done || r->discard || !r->rq->has_length) return NULL;
    uint64_t left = r->rq->content_length - r->body_n;
    struct buf *b = &r->rq->body_buf;
    if (left < TAIL_MIN && b->cap - b->n < left) return NULL;
    size_t room = b->n > TAIL_MIN ? b->n : TAIL_MIN; /* at most double what has really come */
    if (room > left) room = (size_t)left;
    uint8_t *at = buf_reserve(b, room);
    *n = at != NULL ? room : 0;
    return at;
}

const char *http_status_text(int status)
{
    if (status == 499) return "Client Closed Request";
    return http_status_str((enum http_status)status);
}
