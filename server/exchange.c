/*
 * exchange.c: life of the record of one request.
 *
 * Exchanges are reused: a loop keeps a few in a pool with their arena and buffers warm, so a request
 * on a busy loop takes nothing from the heap. See exchange.h for who may touch what.
 */
#include "server/exchange.h"

#include <assert.h>

#include "storage/base/alloc.h"

static_assert(offsetof(struct exchange, task) == 0, "exchange_of_task relies on it");

struct exchange *exchange_create(struct server *server, struct exchange_home *home)
{
    struct exchange *x = mem_zalloc(sizeof *x);
    x->server = server;
    x->home = home;
    return x;
}

void exchange_destroy(struct exchange *x)
{
    stream_destroy(x->stream);
    http_request_deinit(&x->in);
    answer_deinit(&x->out);
    mem_free(x);
}

void exchange_reset(struct exchange *x)
{
    stream_destroy(x->stream);
    http_request_reset(&x->in);
    answer_reset(&x->out);
    x->path = x->query = x->path_arg = (str){0};
    x->params = (struct params){0};
    x->route = NULL;
    x->conn = NULL;
    atomic_store(&x->canceled, false);
    x->seq = 0;
    x->write_begun = false;
    x->stream = NULL;
    x->streamed = x->stream_complete = x->away = false;
    x->counted = 0;
    x->start_ns = 0;
    x->next = NULL;
}

size_t exchange_bytes(const struct exchange *x)
{
    return sizeof *x + x->in.arena.bytes + x->in.body_buf.cap + x->out.body.cap;
}
