/*
 * query_exemplars.c: /api/v1/query_exemplars: the exemplars behind the series that an expression selects.
 *
 *   [{"seriesLabels":{...},"exemplars":[{"labels":{...},"value":"0.5","timestamp":1700000000.123}, ...]}, ...]
 *
 * Only the expression's selectors count, each for itself; functions, ranges, offsets and @ do not. Series are sorted
 * by labels, exemplars by time. Nothing but the call's arena is held; any thread.
 */
#include "query/engine.h"
#include "query/parser.h"
#include "query/result.h"
#include "storage/base/alloc.h"
#include "storage/base/json.h"

struct selectors {
    struct exemplar_selector *v; /* heap */
    size_t n, cap;
};

static void collect(void *arg, struct expr *e)
{
    struct selectors *all = arg;
    if (e->kind != EXPR_SELECTOR) return;
    all->v = mem_grow(all->v, &all->cap, all->n + 1, sizeof *all->v);
    all->v[all->n++] = (struct exemplar_selector){e->selector.matchers, e->selector.n_matchers};
}

static void put_exemplar(struct json *j, const struct exemplar *x)
{
    json_object(j);
    json_key(j, "labels");
    result_labels(j, &x->labels);
    json_key(j, "value");
    json_sample_value(j, x->v);
    json_key(j, "timestamp");
    json_ms(j, x->t);
    json_object_end(j);
}

static void put_all(const struct exemplar_series *s, size_t n, struct buf *out)
{
    struct json j;
    json_init(&j, out);
    json_array(&j);
    for (size_t i = 0; i < n; i++) {
        json_object(&j);
        json_key(&j, "seriesLabels");
        result_labels(&j, &s[i].labels);
        json_key(&j, "exemplars");
        json_array(&j);
        for (size_t k = 0; k < s[i].n; k++)
            put_exemplar(&j, &s[i].v[k]);
        json_array_end(&j);
        json_object_end(&j);
    }
    json_array_end(&j);
}

err query_exemplars(struct query_engine *q, str text, int64_t start_ms, int64_t end_ms, struct buf *out)
{
    struct arena arena = {0};
    struct selectors all = {0};
    struct expr *tree = NULL;
    struct exemplar_series *series;
    size_t n;
    err e = NULL;
    TRY_OUT(promql_parse(text, q->o.experimental, &arena, &tree));
    expr_walk(tree, collect, &all);
    TRY_OUT(storage_exemplars(q->o.db, all.v, all.n, start_ms, end_ms, &arena, &series, &n));
    put_all(series, n, out);
    e = buf_status(out, "the answer");
out:
    expr_deinit(tree);
    mem_free(all.v);
    arena_deinit(&arena);
    return e;
}
