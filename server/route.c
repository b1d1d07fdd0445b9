/*
 * route.c: the table, finding in it, and where handlers run.
 *
 * Paths are compared after runs of '/' are collapsed and a last '/' is dropped; every /api path and
 * /federate are also served under /prometheus. An unknown path is 404 and a known one with the wrong method 405
 * with Allow, both as JSON: clients decide by that what a server can do.
 *
 * POST is allowed wherever clients send it out of habit (label values, buildinfo): answering 404 or
 * 405 there makes some of them give up.
 */
#include "server/route.h"

#include <strings.h>

#include "server/handlers.h"
#include "server/quick.h"
#include "storage/base/assert.h"

#define FORM_MAX (16u << 20)        /* body of anything that is not a write */
#define WRITE_INLINE_MAX (4u << 20) /* body that is decoded on the loop */

#define GET_POST (VERB_GET | VERB_POST)
#define POST_PUT (VERB_POST | VERB_PUT)

static const struct route routes[] = {
    {"/api/v1/write", VERB_POST, ROUTE_WRITE, 0, h_remote_write},
    {"/api/v1/push", VERB_POST, ROUTE_WRITE, 0, h_remote_write},
    {"/api/v1/import/prometheus", POST_PUT, ROUTE_WRITE, 0, h_import_text},
    {"/api/v1/import", POST_PUT, ROUTE_WRITE, 0, h_import_json},

    {"/api/v1/query", GET_POST, ROUTE_QUERY, 0, h_query_instant},
    {"/api/v1/query_range", GET_POST, ROUTE_QUERY, 0, h_query_range},
    {"/api/v1/query_exemplars", GET_POST, ROUTE_QUERY, 0, h_query_exemplars},
    {"/api/v1/format_query", GET_POST, ROUTE_QUERY, 0, h_query_format},
    {"/api/v1/parse_query", GET_POST, ROUTE_QUERY, 0, h_query_parse},
    {"/api/v1/series", GET_POST, ROUTE_QUERY, 0, h_meta_series},
    {"/api/v1/series/count", GET_POST, ROUTE_QUERY, 0, h_meta_series_count},
    {"/api/v1/labels", GET_POST, ROUTE_QUERY, 0, h_meta_labels},
    {"/api/v1/label/<>/values", GET_POST, ROUTE_QUERY, 0, h_meta_label_values},
    {"/api/v1/metadata", GET_POST, ROUTE_QUERY, 0, h_meta_metadata},
    {"/federate", VERB_GET, ROUTE_QUERY, 0, h_federate},
    {"/api/v1/status/tsdb", GET_POST, ROUTE_QUERY, 0, h_tsdb_status},
    {"/api/v1/read", VERB_POST, ROUTE_READ, ROUTE_BODY, h_remote_read},
    {"/api/v1/export", GET_POST, ROUTE_EXPORT, 0, h_export_samples},
    {"/api/v1/export/csv", GET_POST, ROUTE_EXPORT, 0, h_export_csv},

    {"/api/v1/status/storage", GET_POST, ROUTE_QUERY, 0, h_storage_status},
    {"/api/v1/status/top_queries", GET_POST, ROUTE_QUERY, 0, h_top_queries},
    {"/api/v1/status/metric_names_stats", GET_POST, ROUTE_QUERY, 0, h_top_metric_names},
    {"/api/v1/admin/status/metric_names_stats/reset", GET_POST, ROUTE_QUERY, 0, h_top_metric_names_reset},

    {"/api/v1/status/active_queries", GET_POST, ROUTE_INLINE, 0, h_active_queries},
    {"/api/v1/status/active_queries/cancel", POST_PUT, ROUTE_INLINE, 0, h_active_cancel},
    {"/api/v1/rules", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_rules},
    {"/api/v1/alerts", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_alerts},
    {"/api/v1/alertmanagers", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_alertmanagers},
    {"/api/v1/targets", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_targets},
    {"/api/v1/targets/metadata", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_target_metadata},
    {"/api/v1/scrape_pools", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_scrape_pools},
    {"/api/v1/notifications", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_none_notifications},
    {"/api/v1/status/buildinfo", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_status_buildinfo},
    {"/api/v1/status/config", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_status_config},
    {"/api/v1/status/flags", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_status_flags},
    {"/api/v1/status/runtimeinfo", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_status_runtimeinfo},
    {"/api/v1/status/walreplay", GET_POST, ROUTE_INLINE, ROUTE_ALWAYS, h_status_walreplay},
    {"/-/reload", POST_PUT, ROUTE_INLINE, ROUTE_ALWAYS | ROUTE_LIFECYCLE, h_status_reload},
    {"/-/quit", POST_PUT, ROUTE_INLINE, ROUTE_ALWAYS | ROUTE_LIFECYCLE, h_status_quit},
    {"/-/ready", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_status_ready},
    {"/-/healthy", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_status_healthy},
    {"/health", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_status_health},
    {"/metrics", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_status_metrics},

    {"/", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_page_index},
    {"/graph", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_page_index},
    {"/assets/<>", VERB_GET, ROUTE_INLINE, ROUTE_ALWAYS, h_page_asset},

    {"/api/v1/admin/tsdb/delete_series", POST_PUT, ROUTE_SLOW, ROUTE_ADMIN, h_admin_delete_series},
    {"/api/v1/admin/tsdb/clean_tombstones", POST_PUT, ROUTE_SLOW, ROUTE_ADMIN, h_admin_clean_tombstones},
    {"/api/v1/admin/tsdb/snapshot", POST_PUT, ROUTE_SLOW, 0, h_admin_snapshot},
    {"/snapshot/create", GET_POST, ROUTE_SLOW, 0, h_admin_snapshot_create},
    {"/snapshot/list", GET_POST, ROUTE_SLOW, 0, h_admin_snapshot_list},
    {"/snapshot/delete", GET_POST, ROUTE_SLOW, 0, h_admin_snapshot_delete},
    {"/snapshot/delete_all", GET_POST, ROUTE_SLOW, 0, h_admin_snapshot_delete_all},
    {"/internal/force_flush", GET_POST, ROUTE_SLOW, 0, h_admin_force_flush},
    {"/internal/resetRollupResultCache", GET_POST, ROUTE_SLOW, 0, h_admin_forget_results},
    {"/internal/force_merge", GET_POST, ROUTE_SLOW, 0, h_admin_force_merge},
};

size_t route_count(void)
{
    return ARRAY_LEN(routes);
}

const struct route *route_at(size_t i)
{
    return &routes[i];
}

size_t route_index(const struct route *r)
{
    return (size_t)(r - routes);
}

/* True if the path fits the pattern; *arg is what stood for its "<>". */
static bool pattern_fits(const char *pattern, str path, str *arg)
{
    const char *hole = strstr(pattern, "<>");
    if (hole == NULL) return str_eq(str_of(pattern), path);
    str before = {pattern, (size_t)(hole - pattern)};
    str after = str_of(hole + 2);
    if (path.n <= before.n + after.n || !str_starts_with(path, before)) return false;
    str end = {path.p + path.n - after.n, after.n};
    *arg = (str){path.p + before.n, path.n - before.n - after.n};
    return str_eq(end, after) && memchr(arg->p, '/', arg->n) == NULL;
}

static const struct route *route_find(str path, str *arg)
{
    str prefix = STR("/prometheus");
    bool prefixed = str_starts_with(path, STR("/prometheus/api/")) || str_eq(path, STR("/prometheus/federate"));
    str rest = prefixed ? (str){path.p + prefix.n, path.n - prefix.n} : path;
    for (size_t i = 0; i < ARRAY_LEN(routes); i++)
        if (pattern_fits(routes[i].path, rest, arg)) return &routes[i];
    return NULL;
}

static unsigned route_verbs(const struct route *r)
{
    bool head = (r->verbs & VERB_GET) && r->where != ROUTE_SLOW && r->where != ROUTE_EXPORT;
    return r->verbs | (head ? VERB_HEAD : 0) | VERB_OPTIONS;
}

void route_resolve(struct exchange *x)
{
    struct http_request *rq = &x->in;
    x->path = params_path((str){rq->target.p, rq->target.n}, &rq->arena, &x->query);
    str arg = {0};
    const struct route *r = route_find(x->path, &arg);
    if (rq->verb == VERB_OPTIONS && (r != NULL || str_eq(x->path, STR("*")))) {
        x->out.status = 204;
        x->out.preflight = true;
        x->out.allow = r != NULL ? route_verbs(r) : VERB_GET | VERB_HEAD | VERB_POST | VERB_OPTIONS;
        return;
    }
    if (r == NULL) {
        answer_error(&x->out, 404, "not_found", "no such path: %.*s", (int)(x->path.n < 200 ? x->path.n : 200),
                     x->path.p);
        return;
    }
    if (!(route_verbs(r) & rq->verb)) {
        answer_error(&x->out, 405, "bad_data", "this path does not take the method");
        x->out.allow = route_verbs(r);
        return;
    }
    err e = params_unescape(arg, false, &rq->arena, &x->path_arg);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        x->route = r;
}

uint64_t route_body_max(const struct exchange *x)
{
    uint64_t max = x->server->config->max_body_bytes;
    bool write = x->route != NULL && x->route->where == ROUTE_WRITE;
    return write || max < FORM_MAX ? max : FORM_MAX;
}

/* True if the body is a form. Without a type it is taken as one: some clients send none. */
static bool body_is_form(const struct http_request *rq)
{
    str type = http_header(rq, HEADER_CONTENT_TYPE);
    str form = STR("application/x-www-form-urlencoded");
    if (rq->body.n == 0) return false;
    return type.n == 0 || (type.n >= form.n && strncasecmp(type.p, form.p, form.n) == 0);
}

/* Fields of body and query string, before the body's memory goes back to the connection. */
static err parse_params(struct exchange *x)
{
    bool form = x->route->where != ROUTE_WRITE && !(x->route->flags & ROUTE_BODY) && body_is_form(&x->in);
    if (form) TRY(params_parse(&x->params, x->in.body, &x->in.arena));
    return params_parse(&x->params, x->query, &x->in.arena);
}

static void compress(struct exchange *x)
{
    if (x->server->config->compression == COMPRESSION_GZIP)
        answer_compress(&x->out, http_header(&x->in, HEADER_ACCEPT_ENCODING));
}

/* The last touch of x on the worker is what sends it home: from then on it is the loop's. */
static void run_on_worker(void *arg)
{
    struct exchange *x = arg;
    if (atomic_load_explicit(&x->canceled, memory_order_relaxed))
        answer_error(&x->out, 499, "canceled", "the client went away");
    else
        x->route->handle(x->server, x);
    if (x->streamed) {
        stream_end(x->stream, x->stream_complete);
        return;
    }
    compress(x);
    loop_post(x->home->loop, &x->task);
}

/* A query that is known to be short, here on the loop. False: it was not, and is to be begun again on a worker. */
static bool run_hurried(struct exchange *x)
{
    x->hurried = true;
    x->route->handle(x->server, x);
    x->hurried = false;
    if (x->out.status != 503) return true;
    answer_reset(&x->out);
    return false;
}

static bool run_inline(struct exchange *x)
{
    x->route->handle(x->server, x);
    compress(x);
    return true;
}

/* Writes are run on the loop unless they would hold it up for long. */
static bool runs_inline(const struct exchange *x)
{
    enum route_where where = x->route->where;
    return where == ROUTE_INLINE || (where == ROUTE_WRITE && x->in.body.n <= WRITE_INLINE_MAX);
}

static struct worker *worker_of(struct server *s, enum route_where where)
{
    if (where == ROUTE_QUERY) return s->queries;
    if (where == ROUTE_READ) return s->reads;
    return where == ROUTE_EXPORT ? s->exports : s->slow;
}

/* A body may lie in the connection's read buffer, which is the loop's: a worker gets its own copy, or none. */
static void keep_body(struct exchange *x)
{
    struct http_request *rq = &x->in;
    bool own = (const uint8_t *)rq->body.p == rq->body_buf.data;
    if (x->route->where == ROUTE_WRITE)
        check(own); /* it is longer than a read */
    else if (!(x->route->flags & ROUTE_BODY))
        rq->body = (str){0};
    else if (!own)
        rq->body = arena_str(&rq->arena, rq->body);
}

/* False: the queue is full. */
static bool send_away(struct server *s, struct exchange *x)
{
    enum route_where where = x->route->where;
    keep_body(x);
    if (where == ROUTE_EXPORT || where == ROUTE_READ) x->stream = stream_create(x->home->loop, &x->task);
    x->away = true;
    if (worker_submit(worker_of(s, x->route->where), run_on_worker, x)) return true;
    x->away = false;
    stream_destroy(x->stream);
    x->stream = NULL;
    return false;
}

/* True if the operator has not let clients do this; x->out says so. */
static bool refuse_disabled(struct exchange *x)
{
    const struct config *c = x->server->config;
    const char *flag = NULL;
    if ((x->route->flags & ROUTE_ADMIN) && !c->admin_api) flag = "--web.enable-admin-api";
    if ((x->route->flags & ROUTE_LIFECYCLE) && !c->lifecycle) flag = "--web.enable-lifecycle";
    if (flag == NULL) return false;
    answer_error(&x->out, 403, "unavailable", "this call is switched off; the server has to be started with %s", flag);
    return true;
}

/* 0: never on the loop. */
static uint64_t shape_of(const struct exchange *x)
{
    void (*h)(struct server * s, struct exchange * x) = x->route->handle;
    if (h == h_query_instant || h == h_query_range) return quick_shape(x);
    if (h == h_meta_labels || h == h_meta_label_values || h == h_meta_series) return quick_shape_meta(x);
    return 0;
}

bool route_run(struct exchange *x)
{
    struct server *s = x->server;
    if (refuse_disabled(x)) return true;
    bool starting = atomic_load_explicit(&s->phase, memory_order_acquire) == PHASE_STARTING;
    if (starting && !(x->route->flags & ROUTE_ALWAYS)) {
        answer_error(&x->out, 503, "unavailable", "the server is starting: the log is being replayed");
        x->out.retry_after_s = 5;
        return true;
    }
    err e = parse_params(x);
    if (e != NULL) {
        answer_err(&x->out, e);
        return true;
    }
    if (runs_inline(x)) return run_inline(x);
    x->shape = shape_of(x);
    if (quick_expected(s->quick, x->shape) && run_hurried(x)) {
        compress(x);
        return true;
    }
    if (send_away(s, x)) return false;
    struct worker *busy = worker_of(s, x->route->where);
    answer_error(&x->out, 503, "unavailable", "too many requests are waiting: %zu, while %u run%s", worker_queued(busy),
                 worker_threads(busy), busy == s->queries ? " (--query.concurrency)" : "");
    x->out.retry_after_s = 5;
    return true;
}
