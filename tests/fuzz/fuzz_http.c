/*
 * Fuzzes the way of a request from bytes to decoded arguments: http reader, route, path, query string, form.
 * The first byte of the input says in which pieces the rest arrives.
 */
#include "server/params.h"
#include "server/route.h"
#include "server/wire.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define BODY_MAX 4096

/* What a handler would look at. */
static void use(struct exchange *x)
{
    uint32_t n;
    str *all = params_all(&x->params, STR("match[]"), STR("match"), &x->in.arena, &n);
    for (uint32_t i = 0; i < n; i++)
        check(all[i].n > 0 && all[i].p != NULL);
    str value = params_get(&x->params, STR("query"));
    check(value.n == 0 || value.p != NULL);
    params_label_name(value, &x->in.arena);
    params_label_name(x->path_arg, &x->in.arena);
}

static void resolve(struct exchange *x)
{
    char head[WIRE_HEAD_MAX];
    route_resolve(x);
    check((x->route != NULL) == (x->out.status == 0));
    if (x->out.status == 0) x->out.status = 200;
    wire_head(x, &(struct wire_options){.date = "now"}, head);
}

static void decode(struct exchange *x)
{
    err e = params_parse(&x->params, x->in.body, &x->in.arena);
    if (e == NULL) e = params_parse(&x->params, x->query, &x->in.arena);
    err_free(e);
    use(x);
}

/* One piece; false once the request can't be read on. */
static bool feed(struct http_reader *r, struct exchange *x, const char *p, size_t n)
{
    while (n > 0) {
        if (r->rq == NULL) {
            exchange_reset(x);
            http_reader_begin(r, &x->in, BODY_MAX);
        }
        size_t used = 0;
        enum http_read_event event = http_read(r, p, n, &used);
        check(used <= n);
        if (event == READ_BAD) {
            check(r->status >= 400 && r->reason != NULL);
            return false;
        }
        if (event == READ_HEAD) resolve(x);
        if (event == READ_DONE) decode(x);
        p += used;
        n -= used;
    }
    return true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    struct config config = {.max_body_bytes = BODY_MAX};
    struct server server = {.config = &config, .cors = {.any = true, .active = true}};
    struct exchange *x = exchange_create(&server, NULL);
    struct http_reader r;
    http_setup();
    http_reader_init(&r);
    size_t piece = data[0] == 0 ? n : data[0];
    for (size_t at = 1; at < n; at += piece) {
        size_t now = n - at < piece ? n - at : piece;
        char *exact = mem_dup(data + at, now);
        bool go_on = feed(&r, x, exact, now);
        mem_free(exact);
        if (!go_on) break;
        if (x->in.body_buf.n == 0) x->in.body = (str){0}; /* it was borrowed from the piece */
    }
    exchange_destroy(x);
    return 0;
}
