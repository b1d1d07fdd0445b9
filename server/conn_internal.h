/*
 * conn_internal.h: what the three files of the connections share (conn_pool, conn, conn_set).
 *
 * Arrows: conn_set → conn → conn_pool. All on one loop's thread.
 */
#ifndef VARVE_SERVER_CONN_INTERNAL_H
#define VARVE_SERVER_CONN_INTERNAL_H

#include "server/conn.h"
#include "server/exchange.h"

#define CONN_READ_BYTES ((size_t)64 << 10)   /* one read; the buffer is the loop's, not the connection's */
#define CONN_AHEAD_MAX ((size_t)64 << 10)    /* bytes of further requests kept while one is answered */
#define CONN_LINGER_BYTES ((size_t)64 << 20) /* read and thrown away at most after an early refusal */

/*
 * What a connection is doing; each state has its timeout.
 *
 *   IDLE -> HEAD [first byte]            HEAD -> BODY [head complete]        BODY -> BUSY [request complete]
 *   BUSY -> WRITE [answer did not fit the socket]    BUSY, WRITE -> IDLE [answer sent]
 *   HEAD, BODY -> WRITE or LINGER [refused early]    WRITE -> LINGER [sent, body unread]
 *   BUSY <-> WRITE [a stream's pieces]   any -> CLOSING [conn_close]
 */
enum conn_state {
    CONN_IDLE,    /* between requests */
    CONN_HEAD,    /* a request has begun */
    CONN_BODY,    /* its head is complete */
    CONN_BUSY,    /* it is being answered: by a worker, or it waits for the log */
    CONN_WRITE,   /* the socket is taking the answer */
    CONN_LINGER,  /* answered before all was read; what comes is thrown away so that the client sees the answer */
    CONN_CLOSING, /* libuv has the last word; on no list */
    CONN_STATES,
};

struct conn {
    uv_tcp_t tcp;
    struct conns *set;
    struct exchange *x; /* the request under way; NULL when idle */
    struct http_reader reader;
    struct conn *prev, *next; /* on the list of its state, oldest first */
    uint64_t since;           /* when it entered the state, or made progress in it */
    struct buf ahead;         /* bytes that came while busy; ahead_at of them are used up */
    size_t ahead_at;
    size_t lingered; /* bytes thrown away; and while writing: bytes the socket had not taken at the last look */
    enum conn_state state;
    struct peer peer;
    bool eof;       /* the client sends no more */
    bool stopped;   /* reading is paused: enough is ahead */
    bool feeding;   /* conn_feed is on the stack */
    bool unread;    /* the answer goes out before the request was read: linger after it */
    bool head_sent; /* of a stream */
};

struct conn_list {
    struct conn *first, *last;
};

struct conns_listener {
    uv_tcp_t tcp;
    struct conns *set;
};

struct conns {
    struct exchange_home home;
    struct server *server;
    struct acks acks;
    struct conn_list lists[CONN_CLOSING];
    size_t n_conns;           /* not yet freed */
    _Atomic unsigned load;    /* connections given to this loop; counted by whoever accepts them */
    struct conns *const *all; /* of all loops, this one too */
    unsigned n_all;
    size_t n_away; /* exchanges with workers or waiting for the log */
    struct exchange *pool;
    size_t pool_n, pool_low, pool_bytes;     /* low: fewest since the last tick */
    struct exchange *wait_first, *wait_last; /* for the log, by seq */
    struct conns_listener *listeners[CONFIG_LISTEN_MAX];
    size_t n_listeners;
    uv_timer_t tick;
    unsigned scratch_idle; /* ticks since the last write */
    bool ticking, stopping, released;
    uint64_t stop_deadline;
    struct task stop;
    char *read_buf; /* CONN_READ_BYTES */
    int64_t date_s; /* second that `date` is of */
    char date[32];
};

static inline struct conns *conns_of(const struct exchange *x)
{
    return (struct conns *)((char *)x->home - offsetof(struct conns, home));
}

/* ---- conn_pool.c */
struct exchange *conn_pool_get(struct conns *cs);
void conn_pool_put(struct conns *cs, struct exchange *x);
void conn_pool_trim(struct conns *cs); /* once a tick: lets go of what was not needed */
void conn_list_enter(struct conn *c, enum conn_state state);
void conn_list_leave(struct conn *c);
void conn_wait_push(struct conns *cs, struct exchange *x);
/* False: the bodies of all requests together are over their budget. */
bool conn_body_count(struct conns *cs, struct exchange *x);
/* Lets the loop end if the server is stopping and nothing is left. */
void conn_release_if_done(struct conns *cs);

/* ---- conn.c */
void conn_accept(struct conns *cs, uv_stream_t *listener); /* counted in cs->load already, as the next */
void conn_adopt(struct conns *cs, int fd);                 /* a connected socket, which it takes */
void conn_close(struct conn *c);
void conn_expire(struct conn *c, uint64_t now); /* its state's timeout has passed */
/* An exchange that waited for the log has its outcome. Takes e. */
void conn_written(struct exchange *x, err e);

#endif
