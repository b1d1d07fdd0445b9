/*
 * client.c: a small blocking HTTP client over plain sockets.
 *
 * Sockets are non-blocking underneath and waited for with poll, so that connecting, sending and
 * receiving all keep to one timeout, which bounds a pause and not the whole: an export may take an
 * hour as long as it moves. While a request is being sent the answer is looked for too: a server that
 * refuses a body early (413, 401) answers and stops reading. One client is one thread's.
 */
#include "server/client.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <sys/socket.h>
#include <unistd.h>

#include "server/url.h"
#include "storage/base/alloc.h"

#define PIECE ((size_t)64 << 10)

struct client {
    struct arena arena; /* the URL's strings */
    struct url url;
    const char *authorization; /* a whole header line, or "" */
    int timeout_ms;
    int fd;    /* -1: not connected */
    bool used; /* the connection has carried an answer already */
    struct client_reader *reader;
    struct buf head;
    char piece[PIECE];
};

/* ---- making one ---------------------------------------------------------------------------------------------- */

static str base64(str s, struct arena *a)
{
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *out = arena_alloc(a, (s.n + 2) / 3 * 4 + 1), *to = out;
    for (size_t i = 0; i < s.n; i += 3) {
        size_t left = s.n - i < 3 ? s.n - i : 3;
        uint32_t v = 0;
        for (size_t k = 0; k < 3; k++)
            v = v << 8 | (k < left ? (uint8_t)s.p[i + k] : 0u);
        for (size_t k = 0; k < 4; k++)
            *to++ = k <= left ? digits[v >> (18 - 6 * k) & 63] : '=';
    }
    *to = '\0';
    return (str){out, (size_t)(to - out)};
}

/* A token goes into a header line: it must not be able to end it. */
static err check_token(const char *token)
{
    for (const char *p = token; *p != '\0'; p++)
        if (*p < '!' || *p > '~') return err_new(ERR_INVALID, "the bearer token has a character that none may have");
    return NULL;
}

static err set_authorization(struct client *c, const char *bearer)
{
    c->authorization = "";
    if (bearer != NULL && bearer[0] != '\0') {
        TRY(check_token(bearer));
        c->authorization = arena_printf(&c->arena, "Authorization: Bearer %s\r\n", bearer).p;
    } else if (c->url.userinfo != NULL) {
        str pair = base64(str_of(c->url.userinfo), &c->arena);
        c->authorization = arena_printf(&c->arena, "Authorization: Basic %s\r\n", pair.p).p;
    }
    return NULL;
}

err client_create(const struct client_options *o, struct client **out)
{
    struct client *c = mem_zalloc(sizeof *c);
    c->fd = -1;
    c->timeout_ms = o->timeout_ms > 0 && o->timeout_ms < INT32_MAX ? (int)o->timeout_ms : INT32_MAX;
    c->reader = client_reader_create();
    err e = url_parse(str_of(o->url), &c->arena, &c->url);
    if (e == NULL) e = set_authorization(c, o->bearer);
    if (e != NULL) {
        client_destroy(c);
        return e;
    }
    *out = c;
    return NULL;
}

static void hang_up(struct client *c)
{
    if (c->fd >= 0) close(c->fd);
    c->fd = -1;
    c->used = false;
}

void client_destroy(struct client *c)
{
    if (c == NULL) return;
    hang_up(c);
    client_reader_destroy(c->reader);
    buf_deinit(&c->head);
    arena_deinit(&c->arena);
    mem_free(c);
}

const char *client_url(const struct client *c)
{
    return c->url.shown;
}

/* ---- sockets ------------------------------------------------------------------------------------------------- */

/* Waits for any of `events`; *got says which came. */
static err wait_for(struct client *c, short events, short *got)
{
    struct pollfd p = {.fd = c->fd, .events = events};
    int n;
    do
        n = poll(&p, 1, c->timeout_ms);
    while (n < 0 && errno == EINTR);
    if (n < 0) return err_errno(errno, "poll");
    if (n == 0) return err_new(ERR_TIMEOUT, "no sign of life for %d ms", c->timeout_ms);
    *got = p.revents;
    return NULL;
}

static err connect_one(struct client *c, const struct addrinfo *to)
{
    int failure = 0;
    socklen_t size = sizeof failure;
    short got;
    c->fd = socket(to->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (c->fd < 0) return err_errno(errno, "socket");
    if (connect(c->fd, to->ai_addr, to->ai_addrlen) == 0) return NULL;
    if (errno != EINPROGRESS) return err_errno(errno, "connect");
    TRY(wait_for(c, POLLOUT, &got));
    if (getsockopt(c->fd, SOL_SOCKET, SO_ERROR, &failure, &size) != 0) failure = errno;
    return failure != 0 ? err_errno(failure, "connect") : NULL;
}

/*
 * Tries the host's addresses in the order the system gives them. "localhost" is loopback without asking: in an image
 * there may be no file of hosts, and a name server may not know it.
 */
static err dial(struct client *c)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    const char *host = strcmp(c->url.host, "localhost") == 0 ? NULL : c->url.host;
    int problem = getaddrinfo(host, c->url.port, &hints, &found);
    if (problem != 0) return err_new(ERR_IO, "can't find host \"%s\": %s", c->url.host, gai_strerror(problem));
    err e = NULL;
    for (struct addrinfo *a = found; a != NULL && c->fd < 0; a = a->ai_next) {
        err_free(e);
        e = connect_one(c, a);
        if (e != NULL) hang_up(c);
    }
    freeaddrinfo(found);
    return e;
}

/* ---- one request --------------------------------------------------------------------------------------------- */

static void write_head(struct client *c, const struct client_request *rq)
{
    bool v6 = strchr(c->url.host, ':') != NULL;
    buf_clear(&c->head);
    buf_printf(&c->head, "%s %s%s HTTP/1.1\r\nHost: %s%s%s:%s\r\nUser-Agent: varve/%s\r\nAccept: */*\r\n", rq->method,
               c->url.prefix, rq->path, v6 ? "[" : "", c->url.host, v6 ? "]" : "", c->url.port, VARVE_VERSION);
    buf_str(&c->head, str_of(c->authorization));
    if (rq->content_type != NULL)
        buf_printf(&c->head, "Content-Type: %s\r\nContent-Length: %zu\r\n", rq->content_type, rq->body.n);
    else if (strcmp(rq->method, "POST") == 0)
        buf_str(&c->head, STR("Content-Length: 0\r\n"));
    buf_str(&c->head, STR("\r\n"));
}

/* Sends all of s, unless an answer comes before: *answered, the rest is not wanted then. */
static err send_all(struct client *c, str s, bool *answered)
{
    while (s.n > 0 && !*answered) {
        short got;
        TRY(wait_for(c, POLLIN | POLLOUT, &got));
        *answered = got & (POLLIN | POLLHUP | POLLERR);
        if (*answered || !(got & POLLOUT)) continue;
        ssize_t n = send(c->fd, s.p, s.n, MSG_NOSIGNAL);
        if (n < 0 && errno != EAGAIN && errno != EINTR) return err_errno(errno, "send");
        if (n > 0) s = (str){s.p + n, s.n - (size_t)n};
    }
    return NULL;
}

/* *begun: something of an answer has come, so the request must not be sent again. */
static err receive(struct client *c, bool *begun)
{
    bool done = false;
    while (!done) {
        short got;
        TRY(wait_for(c, POLLIN, &got));
        ssize_t n = recv(c->fd, c->piece, sizeof c->piece, 0);
        if (n < 0 && (errno == EAGAIN || errno == EINTR)) continue;
        if (n < 0) return err_errno(errno, "receive");
        if (n > 0) *begun = true;
        TRY(client_reader_feed(c->reader, c->piece, (size_t)n, &done));
    }
    return NULL;
}

static err attempt(struct client *c, const struct client_request *rq, bool *begun)
{
    bool answered = false;
    if (c->fd < 0) TRY(err_wrap(dial(c), "can't connect"));
    TRY(send_all(c, buf_as_str(&c->head), &answered));
    if (rq->content_type != NULL) TRY(send_all(c, rq->body, &answered));
    TRY(receive(c, begun));
    c->used = true;
    if (answered || !client_reader_reusable(c->reader)) hang_up(c);
    return NULL;
}

err client_do(struct client *c, const struct client_request *rq, struct client_answer *a, client_body_fn fn, void *arg)
{
    bool begun = false, was_used = c->used;
    write_head(c, rq);
    client_reader_begin(c->reader, a, fn, arg);
    err e = attempt(c, rq, &begun);
    if (e != NULL && was_used && !begun && err_code(e) == ERR_IO) { /* the server had closed the idle connection */
        err_free(e);
        hang_up(c);
        client_reader_begin(c->reader, a, fn, arg);
        e = attempt(c, rq, &begun);
    }
    if (e == NULL) return NULL;
    hang_up(c);
    return err_code(e) == ERR_IO || err_code(e) == ERR_TIMEOUT ? err_wrap(e, "%s", c->url.shown) : e;
}
