/*
 * h_meta.c: which series, label names, label values and metric descriptions there are.
 *
 * On a query worker, or on the loop where the same call was quick before (quick.h). Without start and end the whole
 * time axis is meant, as in Prometheus.
 */
#include "server/args.h"
#include "server/handlers.h"
#include "server/quick.h"
#include "storage/base/alloc.h"
#include "storage/base/limits.h"

struct meta_call {
    uint64_t begun_ns;
    struct match_sets sets;
    struct meta_request rq;
    struct query_notes notes;
};

/* An end before the start is no error here, as in Prometheus: nothing lies in between. */
static err meta_range(const struct exchange *x, struct meta_request *rq)
{
    rq->start_ms = LIMIT_TIME_MIN;
    rq->end_ms = LIMIT_TIME_MAX;
    TRY(args_time(x, "start", &rq->start_ms));
    return args_time(x, "end", &rq->end_ms);
}

static err meta_arguments(struct exchange *x, bool match_needed, struct meta_call *call)
{
    call->begun_ns = x->server->env->ops->mono_ns(x->server->env);
    TRY(args_match(x, match_needed, &call->sets));
    call->rq.match = &call->sets;
    TRY(meta_range(x, &call->rq));
    return args_count(x, "limit", &call->rq.limit);
}

/* Ends the answer, or turns it into an error's; frees. */
static void meta_finish(struct exchange *x, struct meta_call *call, err e)
{
    quick_note(x->server->quick, x->shape, x->server->env->ops->mono_ns(x->server->env) - call->begun_ns);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        answer_data_end(&x->out, &call->notes);
    query_notes_deinit(&call->notes);
    match_sets_deinit(&call->sets);
}

void h_meta_series(struct server *s, struct exchange *x)
{
    struct meta_call call = {0};
    answer_data_begin(&x->out);
    err e = meta_arguments(x, true, &call);
    if (e == NULL) e = query_series(s->engine, &call.rq, &x->out.body, &call.notes);
    meta_finish(x, &call, e);
}

static err count_series(struct server *s, struct exchange *x, uint64_t *n)
{
    struct match_set all = {0};
    struct select_options o = {0};
    struct match_sets extra;
    struct selection *selection = NULL;
    err e = args_extra(x, &extra);
    if (e == NULL) e = args_range(x, &o.t_min, &o.t_max);
    if (e == NULL && extra.n > 0) e = storage_select_any(s->db, extra.sets, extra.n, &o, &selection);
    if (e == NULL && extra.n == 0) e = storage_select_any(s->db, &all, 1, &o, &selection);
    *n = e == NULL ? selection_count(selection) : 0;
    selection_destroy(selection);
    match_sets_deinit(&extra);
    return e;
}

/* VictoriaMetrics's: all series there are, as a list of one number. */
void h_meta_series_count(struct server *s, struct exchange *x)
{
    uint64_t n;
    err e = count_series(s, x, &n);
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    answer_data_begin(&x->out);
    buf_printf(&x->out.body, "[%llu]", (unsigned long long)n);
    answer_data_end(&x->out, NULL);
}

void h_meta_labels(struct server *s, struct exchange *x)
{
    struct meta_call call = {0};
    answer_data_begin(&x->out);
    err e = meta_arguments(x, false, &call);
    if (e == NULL) e = query_label_names(s->engine, &call.rq, &x->out.body, &call.notes);
    meta_finish(x, &call, e);
}

void h_meta_label_values(struct server *s, struct exchange *x)
{
    struct meta_call call = {0};
    answer_data_begin(&x->out);
    str name = params_label_name(x->path_arg, &x->in.arena);
    err e = meta_arguments(x, false, &call);
    if (e == NULL && (name.n == 0 || !utf8_valid(name))) e = err_new(ERR_INVALID, "invalid label name");
    if (e == NULL) e = query_label_values(s->engine, name, &call.rq, &x->out.body, &call.notes);
    meta_finish(x, &call, e);
}

/* ---- metadata ------------------------------------------------------------------------------------------------ */

/* {"up":[{"type":...,"help":...,"unit":...}],...}: entries of one metric come side by side. */
struct metadata_list {
    struct json j;
    uint64_t metrics, metrics_max; /* 0 = no limit */
    uint64_t of_metric, of_metric_max;
    char *current; /* owned; the metric whose array is open, NULL if none */
};

static void metadata_next_metric(struct metadata_list *l, str metric)
{
    if (l->current != NULL) json_array_end(&l->j);
    mem_free(l->current);
    l->current = mem_dup_str(metric);
    l->metrics++;
    l->of_metric = 0;
    json_key_str(&l->j, metric);
    json_array(&l->j);
}

static bool metadata_add(void *arg, const struct metric_metadata *m)
{
    struct metadata_list *l = arg;
    if (l->current == NULL || !str_eq(str_of(l->current), m->metric)) {
        if (l->metrics_max > 0 && l->metrics == l->metrics_max) return false;
        metadata_next_metric(l, m->metric);
    }
    if (l->of_metric_max > 0 && l->of_metric == l->of_metric_max) return true;
    l->of_metric++;
    json_object(&l->j);
    json_key(&l->j, "type");
    json_str(&l->j, m->type);
    json_key(&l->j, "help");
    json_str(&l->j, m->help);
    json_key(&l->j, "unit");
    json_str(&l->j, m->unit);
    json_object_end(&l->j);
    return true;
}

void h_meta_metadata(struct server *s, struct exchange *x)
{
    struct metadata_list l = {0};
    err e = args_count(x, "limit", &l.metrics_max);
    if (e == NULL) e = args_count(x, "limit_per_metric", &l.of_metric_max);
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    answer_data_begin(&x->out);
    json_init(&l.j, &x->out.body);
    json_object(&l.j);
    storage_metadata_each(s->db, args_text(x, "metric"), metadata_add, &l);
    if (l.current != NULL) json_array_end(&l.j);
    json_object_end(&l.j);
    mem_free(l.current);
    answer_data_end(&x->out, NULL);
}
