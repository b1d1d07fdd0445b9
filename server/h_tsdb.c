/*
 * h_tsdb.c: who has the series: /api/v1/status/tsdb, on a query worker.
 *
 * The five members of Prometheus's answer, the ones that VictoriaMetrics adds (match[], focusLabel), and
 * what is new: the metrics that grew in the last hour. All are about live series: see storage.h.
 */
#include "server/args.h"
#include "server/handlers.h"

#define TOP_DEFAULT 10
#define TOP_MAX 10000

/* Prometheus's `limit`, or `topN` as VictoriaMetrics calls it. */
static err top_argument(const struct exchange *x, size_t *top)
{
    const char *name = args_text(x, "limit").n > 0 ? "limit" : "topN";
    uint64_t n = TOP_DEFAULT;
    TRY(args_count(x, name, &n));
    if (n < 1 || n > TOP_MAX)
        return err_new(ERR_INVALID, "invalid parameter \"%s\": it must be from 1 to %d", name, TOP_MAX);
    *top = (size_t)n;
    return NULL;
}

static void put_ranking(struct json *j, const char *key, const struct cardinality_ranking *r)
{
    json_key(j, key);
    json_array(j);
    for (size_t i = 0; i < r->n; i++) {
        json_object(j);
        json_key(j, "name");
        json_str(j, r->rows[i].name);
        json_key(j, "value");
        json_u64(j, r->rows[i].n);
        json_object_end(j);
    }
    json_array_end(j);
}

static void put_u64(struct json *j, const char *key, uint64_t v)
{
    json_key(j, key);
    json_u64(j, v);
}

static void put_i64(struct json *j, const char *key, int64_t v)
{
    json_key(j, key);
    json_i64(j, v);
}

/* Samples and series of the whole head; only the pairs follow match[]. */
static void put_head(struct json *j, struct db *db, uint64_t pairs)
{
    struct storage_stats stats;
    storage_stats(db, &stats);
    json_key(j, "headStats");
    json_object(j);
    put_u64(j, "numSeries", stats.registry_series);
    put_u64(j, "numLabelPairs", pairs);
    put_u64(j, "chunkCount", stats.head_chunks);
    put_i64(j, "minTime", stats.head_t_min);
    put_i64(j, "maxTime", stats.head_t_max);
    json_object_end(j);
}

static void put_cardinality(struct json *j, struct db *db, const struct cardinality *c, bool focus)
{
    json_object(j);
    put_head(j, db, c->label_pairs);
    put_u64(j, "totalSeries", c->series);
    put_u64(j, "totalLabelValuePairs", c->label_pairs);
    put_ranking(j, "seriesCountByMetricName", &c->series_by_metric);
    put_ranking(j, "labelValueCountByLabelName", &c->values_by_label);
    put_ranking(j, "memoryInBytesByLabelName", &c->bytes_by_label);
    put_ranking(j, "seriesCountByLabelValuePair", &c->series_by_pair);
    put_ranking(j, "seriesCountByLabelName", &c->series_by_label);
    if (focus) put_ranking(j, "seriesCountByFocusLabelValue", &c->series_by_focus);
    put_ranking(j, "seriesCreatedLastHourByMetricName", &c->created_by_metric);
    put_i64(j, "seriesCreatedSince", c->created_since_ms);
    json_object_end(j);
}

static err tsdb(struct server *s, struct exchange *x, struct match_sets *match, struct cardinality *c)
{
    struct cardinality_options o = {.focus = args_text(x, "focusLabel"), .timeout_ms = s->config->query_timeout_ms};
    TRY(top_argument(x, &o.top));
    TRY(args_match(x, false, match));
    struct matcher_set *sets = arena_alloc(&match->arena, match->n * sizeof *sets + 1);
    for (uint32_t i = 0; i < match->n; i++)
        sets[i] = (struct matcher_set){match->sets[i].m, match->sets[i].n};
    o.sets = sets;
    o.n_sets = match->n;
    TRY(storage_cardinality(s->db, &o, c));
    answer_data_begin(&x->out);
    struct json j;
    json_init(&j, &x->out.body);
    put_cardinality(&j, s->db, c, o.focus.n > 0);
    answer_data_end(&x->out, NULL);
    return NULL;
}

void h_tsdb_status(struct server *s, struct exchange *x)
{
    struct match_sets match = {0};
    struct cardinality c = {0};
    err e = tsdb(s, x, &match, &c);
    if (e != NULL) answer_err(&x->out, e);
    cardinality_deinit(&c);
    match_sets_deinit(&match);
}
