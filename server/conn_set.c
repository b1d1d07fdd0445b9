/*
 * conn_set.c: the connections of a loop as a whole: listening, the clock, the log's outcomes, the end.
 *
 * The kernel spreads connections over the loops' sockets by a hash, and with the few long connections
 * that a database has, that is often lopsided: who accepts one gives it to the loop that has fewest.
 *
 * One timer a second looks at the heads of the state lists and trims the pool; it runs only while
 * there is something to look at, so an idle server does not wake up. Stopping: listeners close, idle
 * connections close, others after their answer; what is not done after STOP_MS is cut off. The loop
 * ends when the last connection and the last exchange are gone.
 */
#include <fcntl.h>
#include <unistd.h>

#include "server/conn_internal.h"
#include "storage/base/alloc.h"

#define TICK_MS 1000
#define STOP_MS 4000          /* docker stop kills after 10 s, and the head is still to be written out */
#define SCRATCH_IDLE_TICKS 30 /* longer than senders pause between two requests */

static void start_ticking(struct conns *cs);

static void close_all(struct conns *cs, enum conn_state state)
{
    while (cs->lists[state].first != NULL)
        conn_close(cs->lists[state].first);
}

/* The head of a list moves to its end or off it when it expires: stop at the first that has time left. */
static void expire_list(struct conn_list *list, uint64_t now)
{
    for (;;) {
        struct conn *c = list->first;
        if (c == NULL) return;
        conn_expire(c, now);
        if (list->first == c) return;
    }
}

/* Gives the memory for decoding writes back when no more writes come. */
static void trim_scratch(struct conns *cs)
{
    cs->scratch_idle = cs->home.scratch_used ? 0 : cs->scratch_idle + 1;
    cs->home.scratch_used = false;
    if (cs->scratch_idle < SCRATCH_IDLE_TICKS) return;
    ingest_scratch_destroy(cs->home.scratch);
    cs->home.scratch = NULL;
}

static void on_tick(uv_timer_t *timer)
{
    struct conns *cs = timer->data;
    uint64_t now = loop_now_ms(cs->home.loop);
    for (int state = 0; state < CONN_CLOSING; state++)
        expire_list(&cs->lists[state], now);
    conn_pool_trim(cs);
    trim_scratch(cs);
    if (cs->stopping && now >= cs->stop_deadline)
        for (int state = 0; state < CONN_CLOSING; state++)
            close_all(cs, state);
    conn_release_if_done(cs);
    bool idle = cs->n_conns == 0 && cs->pool_n == 0 && cs->home.scratch == NULL && !cs->stopping;
    if (cs->released || !idle) return;
    uv_timer_stop(timer);
    cs->ticking = false;
}

static void start_ticking(struct conns *cs)
{
    if (cs->ticking || cs->released) return;
    cs->ticking = true;
    uv_timer_start(&cs->tick, on_tick, TICK_MS, TICK_MS);
}

/* ---- new connections ----------------------------------------------------------------------------------------- */

/* A connection on its way from the loop that accepted it to the one that has fewest. */
struct parcel {
    struct task task; /* first */
    struct conns *to;
    int fd;
};

static void unpack(struct task *t)
{
    struct parcel *p = (struct parcel *)t;
    struct conns *cs = p->to;
    if (cs->stopping) {
        close(p->fd);
    } else {
        conn_adopt(cs, p->fd);
        start_ticking(cs);
    }
    mem_free(p);
}

static void free_handle(uv_handle_t *handle)
{
    mem_free(handle);
}

/* Accepts into a handle of this loop and sends a copy of the descriptor over: libuv can't move handles. */
static void send_over(struct conns *cs, uv_stream_t *listener, struct conns *to)
{
    uv_tcp_t *here = mem_zalloc(sizeof *here);
    uv_os_fd_t fd;
    int copy = -1;
    uv_tcp_init(&cs->home.loop->uv, here);
    bool accepted = uv_accept(listener, (uv_stream_t *)here) == 0 && uv_fileno((uv_handle_t *)here, &fd) == 0;
    if (accepted) copy = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    uv_close((uv_handle_t *)here, free_handle);
    struct parcel *p = mem_zalloc(sizeof *p);
    *p = (struct parcel){.task = {.run = unpack}, .to = to, .fd = copy};
    if (copy >= 0 && loop_post(to->home.loop, &p->task)) return;
    if (copy >= 0) close(copy);
    atomic_fetch_sub(&to->load, 1);
    mem_free(p);
}

/* The loop that has fewest; this one if it is among them. */
static struct conns *least_loaded(struct conns *cs)
{
    struct conns *best = cs;
    for (unsigned i = 0; i < cs->n_all; i++)
        if (atomic_load(&cs->all[i]->load) < atomic_load(&best->load)) best = cs->all[i];
    return best;
}

static void on_connection(uv_stream_t *stream, int status)
{
    struct conns_listener *l = stream->data;
    struct conns *cs = l->set;
    if (status < 0) {
        log_warn(cs->server->log, "can't accept a connection", "error=\"%s\"", uv_strerror(status));
        return;
    }
    struct conns *to = least_loaded(cs);
    atomic_fetch_add(&to->load, 1);
    if (to != cs) {
        send_over(cs, stream, to);
        return;
    }
    conn_accept(cs, stream);
    start_ticking(cs);
}

/* ---- the loop's life ----------------------------------------------------------------------------------------- */

/* After each wake-up of the loop: answers writes whose outcome is known by now. */
static void on_woken(void *arg)
{
    struct conns *cs = arg;
    while (cs->wait_first != NULL) {
        struct exchange *x = cs->wait_first;
        err e = NULL;
        if (!acks_poll(&cs->acks, x->seq, &e)) return;
        cs->wait_first = x->next;
        if (cs->wait_first == NULL) cs->wait_last = NULL;
        x->next = NULL;
        cs->n_away--;
        conn_written(x, e);
    }
    conn_release_if_done(cs);
}

struct conns *conns_create(struct server *server, struct loop *loop)
{
    struct conns *cs = mem_zalloc(sizeof *cs);
    cs->server = server;
    acks_init(&cs->acks);
    cs->home = (struct exchange_home){.loop = loop, .acks = &cs->acks};
    cs->read_buf = mem_alloc(CONN_READ_BYTES);
    uv_timer_init(&loop->uv, &cs->tick);
    cs->tick.data = cs;
    loop->woken = on_woken;
    loop->arg = cs;
    return cs;
}

void conns_destroy(struct conns *cs)
{
    if (cs == NULL) return;
    while (cs->pool != NULL)
        exchange_destroy(conn_pool_get(cs));
    for (size_t i = 0; i < cs->n_listeners; i++)
        mem_free(cs->listeners[i]);
    ingest_scratch_destroy(cs->home.scratch);
    acks_deinit(&cs->acks);
    mem_free(cs->read_buf);
    mem_free(cs);
}

void conns_share(struct conns *cs, struct conns *const *all, unsigned n)
{
    cs->all = all;
    cs->n_all = n;
}

err conns_listen(struct conns *cs, int fd)
{
    struct conns_listener *l = mem_zalloc(sizeof *l);
    l->set = cs;
    cs->listeners[cs->n_listeners++] = l;
    uv_tcp_init(&cs->home.loop->uv, &l->tcp);
    l->tcp.data = l;
    int rc = uv_tcp_open(&l->tcp, fd);
    if (rc == 0) rc = uv_listen((uv_stream_t *)&l->tcp, 1024, on_connection);
    return rc == 0 ? NULL : err_new(ERR_IO, "can't listen: %s", uv_strerror(rc));
}

static void stop_on_loop(struct task *t)
{
    struct conns *cs = (struct conns *)((char *)t - offsetof(struct conns, stop));
    cs->stopping = true;
    cs->stop_deadline = loop_now_ms(cs->home.loop) + STOP_MS;
    for (size_t i = 0; i < cs->n_listeners; i++)
        uv_close((uv_handle_t *)&cs->listeners[i]->tcp, NULL);
    close_all(cs, CONN_IDLE);
    start_ticking(cs);
    conn_release_if_done(cs);
}

void conns_stop(struct conns *cs)
{
    cs->stop.run = stop_on_loop;
    loop_post(cs->home.loop, &cs->stop);
}

void conns_settled(struct conns *cs, uint64_t seq, const struct err *e)
{
    if (acks_settle(&cs->acks, seq, e)) loop_wake(cs->home.loop);
}
