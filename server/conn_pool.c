/*
 * conn_pool.c: the bookkeeping under the connections of a loop.
 *
 * Lists: every open connection is on the list of its state, in the order of `since`; as a state has
 * one timeout, only list heads need looking at. Pool: exchanges that were used a moment ago, warm.
 * Waiting list: writes in the order of their log numbers. The loop's thread only.
 */
#include "server/conn_internal.h"
#include "storage/base/assert.h"

#define POOL_MAX 64
#define POOL_BYTES ((size_t)4 << 20)

struct exchange *conn_pool_get(struct conns *cs)
{
    struct exchange *x = cs->pool;
    if (x == NULL) return exchange_create(cs->server, &cs->home);
    cs->pool = x->next;
    x->next = NULL;
    cs->pool_n--;
    cs->pool_bytes -= exchange_bytes(x);
    if (cs->pool_n < cs->pool_low) cs->pool_low = cs->pool_n;
    return x;
}

void conn_pool_put(struct conns *cs, struct exchange *x)
{
    atomic_fetch_sub(&cs->server->body_bytes, x->counted);
    exchange_reset(x);
    size_t bytes = exchange_bytes(x);
    if (cs->pool_n == POOL_MAX || cs->pool_bytes + bytes > POOL_BYTES) {
        exchange_destroy(x);
        return;
    }
    x->next = cs->pool;
    cs->pool = x;
    cs->pool_n++;
    cs->pool_bytes += bytes;
}

void conn_pool_trim(struct conns *cs)
{
    for (size_t spare = (cs->pool_low + 1) / 2; spare > 0; spare--)
        exchange_destroy(conn_pool_get(cs));
    cs->pool_low = cs->pool_n;
}

void conn_list_leave(struct conn *c)
{
    if (c->state == CONN_CLOSING) return;
    struct conn_list *list = &c->set->lists[c->state];
    *(c->prev != NULL ? &c->prev->next : &list->first) = c->next;
    *(c->next != NULL ? &c->next->prev : &list->last) = c->prev;
    c->prev = c->next = NULL;
    c->state = CONN_CLOSING;
}

void conn_list_enter(struct conn *c, enum conn_state state)
{
    check(state < CONN_CLOSING);
    conn_list_leave(c);
    struct conn_list *list = &c->set->lists[state];
    c->state = state;
    c->since = loop_now_ms(c->set->home.loop);
    c->prev = list->last;
    *(list->last != NULL ? &list->last->next : &list->first) = c;
    list->last = c;
}

void conn_wait_push(struct conns *cs, struct exchange *x)
{
    cs->n_away++;
    struct exchange **at = &cs->wait_first;
    if (cs->wait_last != NULL && cs->wait_last->seq <= x->seq) at = &cs->wait_last->next; /* the rule */
    while (*at != NULL && (*at)->seq <= x->seq)
        at = &(*at)->next;
    x->next = *at;
    *at = x;
    if (x->next == NULL) cs->wait_last = x;
}

bool conn_body_count(struct conns *cs, struct exchange *x)
{
    size_t now = x->in.body_buf.cap;
    if (now <= x->counted) return true;
    uint64_t total = atomic_fetch_add(&cs->server->body_bytes, now - x->counted) + (now - x->counted);
    x->counted = now;
    return total <= cs->server->body_bytes_max;
}

void conn_release_if_done(struct conns *cs)
{
    if (!cs->stopping || cs->released || cs->n_conns > 0 || cs->n_away > 0) return;
    cs->released = true;
    uv_close((uv_handle_t *)&cs->tick, NULL);
    loop_release(cs->home.loop);
}
