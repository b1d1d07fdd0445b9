/*
 * h_top.c: the queries that were run most, and those that took most time, in VictoriaMetrics' words; and which
 * metric names are queried at all.
 *
 * On a query worker.
 */
#include "server/args.h"
#include "server/handlers.h"
#include "server/top.h"

#include <stdio.h>

#define TOP_DEFAULT 20
#define LIFETIME_DEFAULT_MS (INT64_C(10) * 60 * 1000)
#define NAMES_DEFAULT 1000

/* 30m0s, 1h0m5s, 45s: as Go prints durations of whole seconds. */
static void print_lifetime(int64_t ms, char *out, size_t n)
{
    long long s = ms / 1000;
    if (s >= 3600)
        snprintf(out, n, "%lldh%lldm%llds", s / 3600, s / 60 % 60, s % 60);
    else if (s >= 60)
        snprintf(out, n, "%lldm%llds", s / 60, s % 60);
    else
        snprintf(out, n, "%llds", s);
}

/* Seconds to the microsecond. */
static double seconds(double ns)
{
    return (double)(int64_t)(ns / 1e3 + 0.5) / 1e6;
}

static void put_entry(struct json *j, const struct top_entry *e, enum top_order order)
{
    json_object(j);
    json_key(j, "query");
    json_str(j, e->text);
    json_key(j, "timeRangeSeconds");
    json_i64(j, e->range_s);
    if (order == TOP_BY_AVERAGE) {
        json_key(j, "avgDurationSeconds");
        json_double(j, seconds((double)e->ns / (double)e->count));
    } else if (order == TOP_BY_SUM) {
        json_key(j, "sumDurationSeconds");
        json_double(j, seconds((double)e->ns));
    }
    json_key(j, "count");
    json_u64(j, e->count);
    json_object_end(j);
}

static void put_list(struct json *j, const char *key, struct top_entry *v, size_t n, size_t shown, enum top_order order)
{
    top_sort(v, n, order);
    json_key(j, key);
    json_array(j);
    for (size_t i = 0; i < n && i < shown; i++)
        put_entry(j, &v[i], order);
    json_array_end(j);
}

static void put_top(struct server *s, struct exchange *x, uint64_t shown, int64_t lifetime_ms)
{
    char text[64];
    size_t n;
    uint64_t lifetime_ns = (uint64_t)(lifetime_ms < TOP_LIFETIME_MAX_MS ? lifetime_ms : TOP_LIFETIME_MAX_MS) * 1000000;
    struct arena a = {0};
    struct top_entry *v = top_take(s->top, lifetime_ns, s->env->ops->mono_ns(s->env), &a, &n);
    struct json j;
    answer_reset(&x->out);
    x->out.status = 200;
    json_init(&j, &x->out.body);
    json_object(&j);
    json_key(&j, "status");
    json_cstr(&j, "ok");
    snprintf(text, sizeof text, "%llu", (unsigned long long)shown);
    json_key(&j, "topN");
    json_cstr(&j, text);
    print_lifetime(lifetime_ms, text, sizeof text);
    json_key(&j, "maxLifetime");
    json_cstr(&j, text);
    put_list(&j, "topByCount", v, n, shown, TOP_BY_COUNT);
    put_list(&j, "topByAvgDuration", v, n, shown, TOP_BY_AVERAGE);
    put_list(&j, "topBySumDuration", v, n, shown, TOP_BY_SUM);
    json_object_end(&j);
    arena_deinit(&a);
}

void h_top_queries(struct server *s, struct exchange *x)
{
    uint64_t shown = TOP_DEFAULT;
    int64_t lifetime_ms = LIFETIME_DEFAULT_MS;
    err e = args_count(x, "topN", &shown);
    if (e == NULL) e = args_duration(x, "maxLifetime", &lifetime_ms);
    if (e == NULL && lifetime_ms <= 0)
        e = err_new(ERR_INVALID, "invalid parameter \"maxLifetime\": it must be more than 0");
    if (e != NULL)
        answer_err(&x->out, e);
    else
        put_top(s, x, shown, lifetime_ms);
}

/* ---- metric names -------------------------------------------------------------------------------------------- */

static err put_names(struct server *s, struct exchange *x)
{
    struct name_stats_request rq = {.limit = NAMES_DEFAULT, .requests_max = UINT64_MAX};
    TRY(args_count(x, "limit", &rq.limit));
    if (!str_eq(args_text(x, "le"), STR("-1"))) TRY(args_count(x, "le", &rq.requests_max)); /* -1 is VM's "any" */
    rq.pattern = args_text(x, "match_pattern");
    answer_reset(&x->out);
    x->out.status = 200;
    buf_str(&x->out.body, STR("{\"status\":\"success\","));
    TRY(query_name_stats(s->engine, &rq, &x->out.body));
    buf_str(&x->out.body, STR("}\n"));
    return NULL;
}

void h_top_metric_names(struct server *s, struct exchange *x)
{
    err e = put_names(s, x);
    if (e != NULL) answer_err(&x->out, e);
}

void h_top_metric_names_reset(struct server *s, struct exchange *x)
{
    query_name_stats_reset(s->engine);
    x->out.status = 204;
}
