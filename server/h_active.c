/*
 * h_active.c: the queries that run now, and ending one of them, in VictoriaMetrics' words.
 *
 * On the loop, so that both answer when every worker is busy, which is when they are wanted.
 */
#include "server/active.h"
#include "server/args.h"
#include "server/handlers.h"

#include <stdio.h>

#define TEXT_SHOWN 8192 /* bytes of a query */

struct list {
    struct json j;
    uint64_t now_ns;
};

static void put_query(void *arg, const struct active_query *q)
{
    struct list *l = arg;
    struct json *j = &l->j;
    char text[64], remote[PEER_TEXT_MAX];
    uint64_t ns = l->now_ns > q->begun_ns ? l->now_ns - q->begun_ns : 0;
    json_object(j);
    snprintf(text, sizeof text, "%.3fs", (double)ns / 1e9);
    json_key(j, "duration");
    json_cstr(j, text);
    snprintf(text, sizeof text, "%016llX", (unsigned long long)q->id);
    json_key(j, "id");
    json_cstr(j, text);
    peer_print(q->remote, remote);
    json_key(j, "remote_addr");
    json_cstr(j, remote);
    json_key(j, "query");
    json_str(j, (str){q->text.p, q->text.n < TEXT_SHOWN ? q->text.n : TEXT_SHOWN});
    json_key(j, "start");
    json_i64(j, q->start_ms);
    json_key(j, "end");
    json_i64(j, q->end_ms);
    json_key(j, "step");
    json_i64(j, q->step_ms);
    json_object_end(j);
}

void h_active_queries(struct server *s, struct exchange *x)
{
    struct list l = {.now_ns = s->env->ops->mono_ns(s->env)};
    answer_reset(&x->out);
    x->out.status = 200;
    json_init(&l.j, &x->out.body);
    json_object(&l.j);
    json_key(&l.j, "status");
    json_cstr(&l.j, "ok");
    json_key(&l.j, "data");
    json_array(&l.j);
    active_each(s->active, put_query, &l);
    json_array_end(&l.j);
    json_object_end(&l.j);
}

/* 1 to 16 hexadecimal digits. */
static bool parse_id(str text, uint64_t *out)
{
    uint64_t v = 0;
    if (text.n == 0 || text.n > 16) return false;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        unsigned digit = c >= '0' && c <= '9'   ? (unsigned)(c - '0')
                         : c >= 'a' && c <= 'f' ? (unsigned)(c - 'a') + 10
                         : c >= 'A' && c <= 'F' ? (unsigned)(c - 'A') + 10
                                                : 16;
        if (digit > 15) return false;
        v = v << 4 | digit;
    }
    *out = v;
    return true;
}

void h_active_cancel(struct server *s, struct exchange *x)
{
    uint64_t id;
    if (!parse_id(args_text(x, "id"), &id)) {
        answer_error(&x->out, 400, "bad_data",
                     "invalid parameter \"id\": it is not one of those that /api/v1/status/active_queries lists");
        return;
    }
    if (!active_cancel(s->active, id)) {
        answer_error(&x->out, 404, "not_found", "no such query is running; it may have ended meanwhile");
        return;
    }
    answer_reset(&x->out);
    x->out.status = 200;
    buf_str(&x->out.body, STR("{\"status\":\"success\"}"));
}
