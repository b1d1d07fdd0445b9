/*
 * conn.c: one connection: bytes in, requests, answers out.
 *
 * A connection handles one request at a time, so answers leave in the order asked; bytes of further
 * requests wait in `ahead` (bounded, then the socket is not read). Reads go through the loop's one
 * buffer, long bodies straight into the request's. An answer is tried at once with one writev; only
 * what the socket does not take is queued. States and their changes: conn_internal.h.
 *
 * While an exchange is away (worker, log) the connection may close; then x->conn is NULL and the
 * exchange goes back to the pool when it comes home. A connection's memory lives until libuv's close
 * callback, so pointers stay good for the rest of a turn after conn_close. The loop's thread only.
 */
#include <stdio.h>
#include <strings.h>
#include <unistd.h>

#include "server/conn_internal.h"
#include "server/route.h"
#include "server/self.h"
#include "server/wire.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

/* Bytes on their way out that the socket did not take at once. */
struct sending {
    uv_write_t req;
    struct conn *conn;
    char head[WIRE_HEAD_MAX];
};

#define WRITE_TIMEOUT_MS 60000 /* without the socket taking anything */
#define LINGER_TIMEOUT_MS 2000

static void feed_ahead(struct conn *c);
static void stream_next(struct conn *c);

/* ---- closing ------------------------------------------------------------------------------------------------- */

static void on_closed(uv_handle_t *handle)
{
    struct conn *c = handle->data;
    struct conns *cs = c->set;
    buf_deinit(&c->ahead);
    mem_free(c);
    cs->n_conns--;
    atomic_fetch_sub(&cs->load, 1);
    atomic_fetch_sub(&cs->server->connections, 1);
    conn_release_if_done(cs);
}

/* The request under way loses its client. */
static void abandon(struct conn *c)
{
    struct exchange *x = c->x;
    if (x == NULL) return;
    c->x = NULL;
    x->conn = NULL;
    if (x->stream != NULL) stream_drop(x->stream);
    if (x->away)
        atomic_store_explicit(&x->canceled, true, memory_order_relaxed);
    else if (x->seq == 0)
        conn_pool_put(c->set, x);
}

void conn_close(struct conn *c)
{
    if (c->state == CONN_CLOSING) return;
    conn_list_leave(c);
    abandon(c);
    uv_close((uv_handle_t *)&c->tcp, on_closed);
}

/* The answer is out; the client may still be sending the request. */
static void linger(struct conn *c)
{
    uv_os_fd_t fd;
    if (c->eof || uv_fileno((uv_handle_t *)&c->tcp, &fd) != 0) {
        conn_close(c);
        return;
    }
    shutdown(fd, SHUT_WR);
    c->lingered = 0;
    conn_list_enter(c, CONN_LINGER);
}

/* ---- answering ----------------------------------------------------------------------------------------------- */

static bool ends_after(const struct conn *c)
{
    return c->x->out.close || c->unread || !c->x->in.keep_alive || c->set->stopping;
}

static const char *date_text(struct conns *cs)
{
    int64_t now = cs->server->env->ops->now_ms(cs->server->env);
    if (now / 1000 != cs->date_s) {
        cs->date_s = now / 1000;
        wire_date(now, cs->date);
    }
    return cs->date;
}

static void resume_reading(struct conn *c);

/* The whole answer has left. */
static void answer_sent(struct conn *c)
{
    bool ends = ends_after(c);
    struct exchange *x = c->x;
    c->x = NULL;
    conn_pool_put(c->set, x);
    if (ends) {
        if (c->unread)
            linger(c);
        else
            conn_close(c);
        return;
    }
    conn_list_enter(c, CONN_IDLE);
    if (!c->feeding) feed_ahead(c);
    if (c->state == CONN_CLOSING) return;
    if (c->eof && c->ahead.n == c->ahead_at && c->state <= CONN_BODY)
        conn_close(c);
    else
        resume_reading(c);
}

static void on_sent(uv_write_t *req, int status)
{
    struct sending *s = (struct sending *)req;
    struct conn *c = s->conn;
    mem_free(s);
    if (c->state == CONN_CLOSING) return;
    if (status < 0)
        conn_close(c);
    else if (c->x->stream != NULL)
        stream_next(c);
    else
        answer_sent(c);
}

/* Queues the n buffers, of which the first is copied: it lies on the caller's stack. Empty ones are left out. */
static void send_later(struct conn *c, uv_buf_t *bufs, unsigned n)
{
    struct sending *s = mem_alloc(sizeof *s);
    s->conn = c;
    check(bufs[0].len <= sizeof s->head);
    if (bufs[0].len > 0) memcpy(s->head, bufs[0].base, bufs[0].len);
    bufs[0].base = s->head;
    unsigned used = 0;
    for (unsigned i = 0; i < n; i++)
        if (bufs[i].len > 0) bufs[used++] = bufs[i];
    int rc = uv_write(&s->req, (uv_stream_t *)&c->tcp, bufs, used, on_sent);
    if (rc != 0) {
        mem_free(s);
        conn_close(c);
        return;
    }
    c->lingered = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp);
    conn_list_enter(c, CONN_WRITE);
}

static void send_answer(struct conn *c)
{
    struct exchange *x = c->x;
    char head[WIRE_HEAD_MAX];
    struct wire_options o = {.date = date_text(c->set), .close = ends_after(c)};
    size_t head_n = wire_head(x, &o, head);
    bool bodyless = x->in.verb == VERB_HEAD || x->out.status == 204 || x->out.status == 304;
    size_t body_n = bodyless ? 0 : x->out.body.n;
    self_observe(c->set->server->self, x);

    uv_buf_t bufs[2] = {uv_buf_init(head, (unsigned)head_n), uv_buf_init((char *)x->out.body.data, (unsigned)body_n)};
    unsigned n = body_n > 0 ? 2 : 1;
    int rc = uv_try_write((uv_stream_t *)&c->tcp, bufs, n);
    if (rc < 0 && rc != UV_EAGAIN) {
        conn_close(c);
        return;
    }
    size_t sent = rc < 0 ? 0 : (size_t)rc;
    if (sent == head_n + body_n) {
        answer_sent(c);
        return;
    }
    size_t of_head = sent < head_n ? sent : head_n;
    bufs[0] = uv_buf_init(head + of_head, (unsigned)(head_n - of_head));
    if (n == 2)
        bufs[1] = uv_buf_init((char *)x->out.body.data + (sent - of_head), (unsigned)(body_n - (sent - of_head)));
    send_later(c, bufs, n);
}

/* Answers a request that can't be read to its end. */
static void refuse(struct conn *c)
{
    c->unread = true;
    send_answer(c);
}

/* To the client, if it is still there. */
static void send_or_drop(struct exchange *x)
{
    if (x->conn != NULL)
        send_answer(x->conn);
    else
        conn_pool_put(conns_of(x), x);
}

void conn_written(struct exchange *x, err e)
{
    x->seq = 0;
    if (e != NULL) answer_err(&x->out, e);
    send_or_drop(x);
}

/* ---- streams ------------------------------------------------------------------------------------------------- */

static void stream_gone(struct conns *cs, struct exchange *x)
{
    cs->n_away--;
    conn_pool_put(cs, x);
    conn_release_if_done(cs);
}

static void send_piece(struct conn *c, bool last)
{
    struct exchange *x = c->x;
    char head[WIRE_HEAD_MAX];
    bool chunked = x->in.http11;
    size_t n = 0;
    if (!c->head_sent) {
        struct wire_options o = {.date = date_text(c->set), .close = !chunked || ends_after(c), .chunked = chunked};
        if (!chunked) x->out.close = true;
        n = wire_head(x, &o, head);
        c->head_sent = true;
        self_observe(c->set->server->self, x);
    }
    if (last && !chunked && n == 0) { /* HTTP/1.0: the end is the connection's */
        answer_sent(c);
        return;
    }
    size_t body_n = last ? 0 : x->out.body.n;
    if (chunked) n += (size_t)snprintf(head + n, sizeof head - n, last ? "0\r\n\r\n" : "%zx\r\n", body_n);
    uv_buf_t bufs[3] = {uv_buf_init(head, (unsigned)n), uv_buf_init((char *)x->out.body.data, (unsigned)body_n),
                        uv_buf_init("\r\n", chunked && !last ? 2 : 0)};
    send_later(c, bufs, 3);
}

/* The last piece was taken by the socket, or there was none yet: what comes next? */
static void stream_next(struct conn *c)
{
    struct exchange *x = c->x;
    if (!x->away) { /* the end was sent */
        answer_sent(c);
        return;
    }
    buf_clear(&x->out.body);
    switch (stream_take(x->stream, &x->out.body)) {
    case STREAM_WAIT:
        if (c->state != CONN_BUSY) conn_list_enter(c, CONN_BUSY);
        return;
    case STREAM_DATA:
        send_piece(c, false);
        return;
    case STREAM_DONE:
        x->away = false;
        c->set->n_away--;
        send_piece(c, true);
        return;
    case STREAM_ABORTED:
        c->x = NULL;
        stream_gone(c->set, x);
        conn_close(c); /* without the last chunk: the client sees that something is missing */
        return;
    }
}

/* The stream has posted itself: there is data, or the end. */
static void on_stream(struct exchange *x, struct conns *cs)
{
    if (x->conn != NULL) {
        if (x->conn->state == CONN_BUSY) stream_next(x->conn);
        return;
    }
    stream_drop(x->stream);
    buf_clear(&x->out.body);
    if (stream_take(x->stream, &x->out.body) == STREAM_ABORTED) stream_gone(cs, x);
}

/* The answer is known: send it, or wait until the write is on disk first. */
static void answered(struct exchange *x)
{
    struct conns *cs = conns_of(x);
    err e = NULL;
    if (x->write_begun && x->seq == 0) acks_abandon(&cs->acks);
    if (x->seq == 0)
        send_or_drop(x);
    else if (acks_poll(&cs->acks, x->seq, &e))
        conn_written(x, e);
    else
        conn_wait_push(cs, x);
}

/* A worker is done with an exchange, or its stream wants attention. */
static void on_home(struct task *t)
{
    struct exchange *x = exchange_of_task(t);
    struct conns *cs = conns_of(x);
    if (x->stream != NULL && stream_task_ran(x->stream)) {
        on_stream(x, cs);
        return;
    }
    stream_destroy(x->stream); /* not used: the answer is an ordinary one */
    x->stream = NULL;
    x->away = false;
    cs->n_away--;
    answered(x);
    conn_release_if_done(cs);
}

/* ---- requests ------------------------------------------------------------------------------------------------ */

static void run_request(struct conn *c)
{
    struct exchange *x = c->x;
    conn_list_enter(c, CONN_BUSY);
    x->start_ns = uv_hrtime();
    x->peer = c->peer;
    x->task.run = on_home;
    if (x->out.status == 0) {
        x->write_begun = x->route->where == ROUTE_WRITE;
        if (x->write_begun) acks_begin(&c->set->acks);
        if (!route_run(x)) {
            c->set->n_away++;
            return;
        }
    }
    answered(x);
}

/* 100-continue is granted unless the answer is known already; other expectations are refused. False: answered. */
static bool meet_expectation(struct conn *c)
{
    struct exchange *x = c->x;
    str expect = http_header(&x->in, HEADER_EXPECT);
    str known = STR("100-continue");
    if (expect.n == 0 || !x->in.http11) return true;
    if (expect.n != known.n || strncasecmp(expect.p, known.p, known.n) != 0)
        answer_error(&x->out, 417, "bad_data", "the only expectation known here is 100-continue");
    if (x->out.status != 0) {
        refuse(c);
        return false;
    }
    static char go_on[] = "HTTP/1.1 100 Continue\r\n\r\n";
    uv_buf_t b = uv_buf_init(go_on, sizeof go_on - 1);
    if (uv_try_write((uv_stream_t *)&c->tcp, &b, 1) == (int)b.len) return true;
    conn_close(c); /* 25 bytes into an empty socket buffer */
    return false;
}

static void on_head(struct conn *c)
{
    struct exchange *x = c->x;
    x->conn = c;
    route_resolve(x);
    conn_list_enter(c, CONN_BODY);
    c->reader.body_max = route_body_max(x);
    if (x->in.has_length && x->in.content_length > c->reader.body_max) {
        answer_error(&x->out, 413, "too_large", "the body is larger than the %llu bytes allowed",
                     (unsigned long long)c->reader.body_max);
        refuse(c);
        return;
    }
    c->reader.discard = x->out.status != 0;
    meet_expectation(c);
}

static void on_bad(struct conn *c)
{
    struct exchange *x = c->x;
    const char *type = c->reader.status == 413 ? "too_large" : "bad_data";
    answer_error(&x->out, c->reader.status, type, "%s", c->reader.reason);
    x->in.keep_alive = false;
    x->start_ns = uv_hrtime();
    refuse(c);
}

static void begin_request(struct conn *c)
{
    c->x = conn_pool_get(c->set);
    c->unread = c->head_sent = false;
    http_reader_begin(&c->reader, &c->x->in, c->set->server->config->max_body_bytes);
    conn_list_enter(c, CONN_HEAD);
}

/* One step of reading; the bytes used. */
static size_t feed_step(struct conn *c, const char *p, size_t n)
{
    if (c->state == CONN_IDLE) {
        if (*p == '\r' || *p == '\n') return 1; /* between requests, stray line ends are tolerated */
        begin_request(c);
    }
    size_t used = 0;
    switch (http_read(&c->reader, p, n, &used)) {
    case READ_MORE:
        if (c->state == CONN_BODY) conn_list_enter(c, CONN_BODY); /* progress */
        break;
    case READ_HEAD:
        on_head(c);
        break;
    case READ_DONE:
        run_request(c);
        break;
    case READ_BAD:
        on_bad(c);
        break;
    }
    if (c->state != CONN_BODY || conn_body_count(c->set, c->x)) return used;
    answer_error(&c->x->out, 503, "unavailable", "request bodies use all memory set aside for them");
    c->x->out.retry_after_s = 5;
    refuse(c);
    return used;
}

/* Reads requests out of the bytes until one has to be waited for; how many bytes were used. */
static size_t conn_feed(struct conn *c, const char *p, size_t n)
{
    size_t at = 0;
    c->feeding = true;
    while (at < n && c->state <= CONN_BODY)
        at += feed_step(c, p + at, n - at);
    c->feeding = false;
    return at;
}

/* Goes on with the bytes that came while the connection was busy. */
static void feed_ahead(struct conn *c)
{
    if (c->ahead_at < c->ahead.n)
        c->ahead_at += conn_feed(c, (const char *)c->ahead.data + c->ahead_at, c->ahead.n - c->ahead_at);
    if (c->ahead_at < c->ahead.n) return;
    buf_deinit(&c->ahead);
    c->ahead = (struct buf){0};
    c->ahead_at = 0;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

static void on_room(uv_handle_t *handle, size_t suggested, uv_buf_t *out)
{
    (void)suggested;
    struct conn *c = handle->data;
    size_t n = 0;
    uint8_t *tail = c->state == CONN_BODY ? http_body_tail(&c->reader, &n) : NULL;
    if (tail != NULL && n > 0)
        *out = uv_buf_init((char *)tail, (unsigned)n);
    else
        *out = uv_buf_init(c->set->read_buf, CONN_READ_BYTES);
}

static void on_end(struct conn *c, ssize_t code)
{
    c->eof = true;
    bool answering = c->state == CONN_BUSY || c->state == CONN_WRITE;
    if (code != UV_EOF || !answering) {
        conn_close(c);
        return;
    }
    /* It may have closed only its sending half and still read: a query is given up, a write is not. */
    if (c->x->away && !c->x->write_begun) atomic_store_explicit(&c->x->canceled, true, memory_order_relaxed);
}

static void keep_ahead(struct conn *c, const char *p, size_t n)
{
    if (c->ahead_at > 0) {
        c->ahead.n -= c->ahead_at;
        memmove(c->ahead.data, c->ahead.data + c->ahead_at, c->ahead.n);
        c->ahead_at = 0;
    }
    buf_put(&c->ahead, p, n);
    if (c->ahead.n - c->ahead_at < CONN_AHEAD_MAX) return;
    uv_read_stop((uv_stream_t *)&c->tcp);
    c->stopped = true;
}

static void on_read(uv_stream_t *stream, ssize_t n, const uv_buf_t *b)
{
    struct conn *c = stream->data;
    if (c->state == CONN_CLOSING || n == 0) return;
    if (n < 0) {
        on_end(c, n);
        return;
    }
    if (c->state == CONN_LINGER) {
        c->lingered += (size_t)n;
        if (c->lingered > CONN_LINGER_BYTES) conn_close(c);
        return;
    }
    size_t used = c->state <= CONN_BODY ? conn_feed(c, b->base, (size_t)n) : 0;
    bool more = used < (size_t)n && c->state != CONN_CLOSING && c->state != CONN_LINGER && !c->unread;
    if (more) keep_ahead(c, b->base + used, (size_t)n - used);
}

static void resume_reading(struct conn *c)
{
    if (!c->stopped || c->ahead.n - c->ahead_at >= CONN_AHEAD_MAX) return;
    c->stopped = false;
    if (!c->eof && uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read) != 0) conn_close(c);
}

/* ---- life ---------------------------------------------------------------------------------------------------- */

/* One client too many: told so, if it can be done at once. */
static void turn_away(struct conn *c)
{
    static char text[] = "HTTP/1.1 503 Service Unavailable\r\nContent-Length: 0\r\nRetry-After: 5\r\n"
                         "Connection: close\r\n\r\n";
    uv_buf_t b = uv_buf_init(text, sizeof text - 1);
    uv_try_write((uv_stream_t *)&c->tcp, &b, 1);
    conn_close(c);
}

static struct conn *conn_create(struct conns *cs)
{
    struct conn *c = mem_zalloc(sizeof *c);
    c->set = cs;
    c->state = CONN_CLOSING;
    check(uv_tcp_init(&cs->home.loop->uv, &c->tcp) == 0);
    c->tcp.data = c;
    cs->n_conns++;
    atomic_fetch_add(&cs->server->connections, 1);
    http_reader_init(&c->reader);
    conn_list_enter(c, CONN_IDLE);
    return c;
}

/* The socket is there, unless rc says that it is not. */
static void conn_begin(struct conn *c, int rc)
{
    struct server *s = c->set->server;
    if (rc != 0) {
        conn_close(c);
        return;
    }
    if (atomic_load(&s->connections) > s->config->max_connections) {
        turn_away(c);
        return;
    }
    uv_os_fd_t fd;
    if (uv_fileno((uv_handle_t *)&c->tcp, &fd) == 0) peer_of_socket(fd, &c->peer);
    uv_tcp_nodelay(&c->tcp, 1);
    if (uv_read_start((uv_stream_t *)&c->tcp, on_room, on_read) != 0) conn_close(c);
}

void conn_accept(struct conns *cs, uv_stream_t *listener)
{
    struct conn *c = conn_create(cs);
    conn_begin(c, uv_accept(listener, (uv_stream_t *)&c->tcp));
}

void conn_adopt(struct conns *cs, int fd)
{
    struct conn *c = conn_create(cs);
    int rc = uv_tcp_open(&c->tcp, fd);
    if (rc != 0) close(fd);
    conn_begin(c, rc);
}

/* 0: none. One for all connections in the state, see conn_list. */
static uint64_t timeout_of(const struct conn *c)
{
    const struct config *config = c->set->server->config;
    switch (c->state) {
    case CONN_IDLE:
        return (uint64_t)config->idle_timeout_ms;
    case CONN_HEAD:
        return (uint64_t)config->head_timeout_ms;
    case CONN_BODY:
        return (uint64_t)config->body_timeout_ms;
    case CONN_WRITE:
        return WRITE_TIMEOUT_MS;
    case CONN_LINGER:
        return LINGER_TIMEOUT_MS;
    default:
        return 0;
    }
}

void conn_expire(struct conn *c, uint64_t now)
{
    uint64_t timeout = timeout_of(c);
    if (timeout == 0 || now - c->since < timeout) return;
    if (c->state == CONN_WRITE) {
        size_t left = uv_stream_get_write_queue_size((uv_stream_t *)&c->tcp);
        if (left < c->lingered) { /* slow, but it moves */
            c->lingered = left;
            conn_list_enter(c, CONN_WRITE);
            return;
        }
    }
    if (c->state == CONN_HEAD || c->state == CONN_BODY) {
        answer_error(&c->x->out, 408, "bad_data", "the request did not come in time");
        c->x->in.keep_alive = false;
        c->x->start_ns = uv_hrtime();
        refuse(c);
        return;
    }
    conn_close(c);
}
