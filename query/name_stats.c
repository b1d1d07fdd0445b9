/*
 * name_stats.c: the metric names that are stored, with how often each was queried: the least queried first.
 *
 * All names of the storage are gathered, so that those never asked for are there too. Any thread.
 */
#include "query/engine.h"

#include <stdlib.h>

#include "query/usage.h"
#include "storage/base/alloc.h"
#include "storage/base/json.h"
#include "storage/base/limits.h"

struct stat {
    str name;
    struct name_use use;
};

struct stats {
    struct query_engine *q;
    const struct name_stats_request *rq;
    struct regex *pattern; /* NULL: all names */
    struct arena arena;
    struct stat *v; /* heap */
    size_t n, cap;
    uint64_t total; /* names, whether they are asked for or not */
    bool too_hard;  /* the pattern ran into its limit */
};

static bool take_name(void *arg, str name)
{
    struct stats *s = arg;
    s->total++;
    if (s->pattern != NULL) {
        enum regex_result r = regex_match(s->pattern, name);
        s->too_hard |= r == REGEX_LIMIT;
        if (r != REGEX_YES) return !s->too_hard;
    }
    struct name_use use = usage_of(s->q->usage, name);
    if (use.requests > s->rq->requests_max) return true;
    if (s->n == s->cap) s->v = mem_grow(s->v, &s->cap, s->n + 1, sizeof *s->v);
    s->v[s->n++] = (struct stat){arena_str(&s->arena, name), use};
    return true;
}

static int least_first(const void *pa, const void *pb)
{
    const struct stat *a = pa, *b = pb;
    if (a->use.requests != b->use.requests) return a->use.requests < b->use.requests ? -1 : 1;
    return str_cmp(a->name, b->name);
}

/* A pattern may fit anywhere in a name, as in VictoriaMetrics; our expressions fit as a whole. */
static err compile(struct stats *s)
{
    if (s->rq->pattern.n == 0) return NULL;
    struct buf text = {0};
    buf_str(&text, STR(".*(?:"));
    buf_str(&text, s->rq->pattern);
    buf_str(&text, STR(").*"));
    err e = err_wrap(regex_create((str){(const char *)text.data, text.n}, &s->pattern),
                     "invalid parameter \"match_pattern\"");
    buf_deinit(&text);
    return e;
}

/* VictoriaMetrics has had two pairs of names for the two figures; both are given. */
static void put_stat(struct json *j, const struct stat *s)
{
    json_object(j);
    json_key(j, "metricName");
    json_str(j, s->name);
    json_key(j, "requestsCount");
    json_u64(j, s->use.requests);
    json_key(j, "lastRequestTimestamp");
    json_i64(j, s->use.last_s);
    json_key(j, "queryRequestsCount");
    json_u64(j, s->use.requests);
    json_key(j, "lastQueryRequestTimestamp");
    json_i64(j, s->use.last_s);
    json_object_end(j);
}

static void put_stats(const struct stats *s, struct buf *out)
{
    struct json j;
    buf_printf(out, "\"statsCollectedSince\":%lld,\"statsCollectedRecordsTotal\":%llu,\"records\":",
               (long long)usage_since(s->q->usage), (unsigned long long)s->total);
    json_init(&j, out);
    json_array(&j);
    for (size_t i = 0; i < s->n && i < s->rq->limit; i++)
        put_stat(&j, &s->v[i]);
    json_array_end(&j);
}

err query_name_stats(struct query_engine *q, const struct name_stats_request *rq, struct buf *out)
{
    struct stats s = {.q = q, .rq = rq};
    struct select_options o = {.t_min = LIMIT_TIME_MIN, .t_max = LIMIT_TIME_MAX};
    err e = compile(&s);
    if (e == NULL) e = storage_label_values(q->o.db, LABEL_NAME, NULL, 0, &o, take_name, &s);
    if (e == NULL && s.too_hard) e = err_new(ERR_LIMIT, "invalid parameter \"match_pattern\": it is too hard to match");
    if (e == NULL) {
        if (s.n > 1) qsort(s.v, s.n, sizeof *s.v, least_first);
        put_stats(&s, out);
    }
    regex_destroy(s.pattern);
    arena_deinit(&s.arena);
    mem_free(s.v);
    return e;
}

void query_name_stats_reset(struct query_engine *q)
{
    usage_reset(q->usage);
}
