/*
 * h_query.c: instant and range queries, exemplars, and what only looks at a query's text.
 *
 * On a query worker: arguments → query_run → envelope. The engine appends its JSON to the answer's
 * body behind the envelope's beginning; an error replaces all of that.
 */
#include "server/active.h"
#include "server/args.h"
#include "server/handlers.h"
#include "server/quick.h"
#include "server/top.h"
#include "storage/base/num.h"

/* VictoriaMetrics's: decimal digits to round to. Beyond a double's range it leaves values alone, so do we. */
static err round_argument(const struct exchange *x, struct query_request *rq)
{
    str text = args_text(x, "round_digits");
    int64_t digits;
    if (text.n == 0) return NULL;
    if (!num_parse_i64(text, &digits)) return err_new(ERR_INVALID, "invalid parameter \"round_digits\": not a number");
    rq->round = digits > -100 && digits < 100;
    rq->round_digits = rq->round ? (int)digits : 0;
    return NULL;
}

/* The arguments that both kinds share. extra: deinit after the query, also after an error. */
static err common_arguments(struct server *s, struct exchange *x, struct query_request *rq, struct match_sets *extra)
{
    TRY(args_extra(x, extra));
    rq->extra = extra;
    TRY(round_argument(x, rq));
    rq->text = args_text(x, "query");
    if (rq->text.n == 0) return err_new(ERR_INVALID, "invalid parameter \"query\": it is missing");
    TRY(args_duration(x, "timeout", &rq->timeout_ms));
    TRY(args_duration(x, "lookback_delta", &rq->lookback_ms));
    TRY(args_count(x, "limit", &rq->limit));
    if (rq->timeout_ms < 0 || rq->lookback_ms < 0) return err_new(ERR_INVALID, "a duration must not be negative");
    if (rq->timeout_ms > s->config->query_timeout_ms) rq->timeout_ms = s->config->query_timeout_ms;
    if (x->hurried && (rq->timeout_ms == 0 || rq->timeout_ms > QUICK_TIMEOUT_MS)) rq->timeout_ms = QUICK_TIMEOUT_MS;
    rq->stats = args_text(x, "stats").n > 0;
    rq->stats_per_step = str_eq(args_text(x, "stats"), STR("all"));
    rq->queued_ns = x->start_ns > 0 ? uv_hrtime() - x->start_ns : 0;
    rq->explain = args_text(x, "explain").n > 0;
    str nocache = args_text(x, "nocache");
    rq->nocache = nocache.n > 0 && !str_eq(nocache, STR("0")) && !str_eq(nocache, STR("false"));
    rq->canceled = &x->canceled;
    return NULL;
}

static err instant_arguments(struct server *s, struct exchange *x, struct query_request *rq, struct match_sets *extra)
{
    rq->start_ms = s->env->ops->now_ms(s->env);
    TRY(args_time(x, "time", &rq->start_ms));
    rq->end_ms = rq->start_ms;
    return common_arguments(s, x, rq, extra);
}

static err needed(const struct exchange *x, const char *name)
{
    if (args_text(x, name).n > 0) return NULL;
    return err_new(ERR_INVALID, "invalid parameter \"%s\": it is missing", name);
}

static err check_grid(const struct query_request *rq)
{
    if (rq->end_ms < rq->start_ms)
        return err_new(ERR_INVALID, "invalid parameter \"end\": end timestamp must not be before start time");
    if (rq->step_ms > 0) return NULL;
    return err_new(ERR_INVALID, "invalid parameter \"step\": zero or negative query resolution step widths are not "
                                "accepted. Try a positive integer");
}

static err range_arguments(struct server *s, struct exchange *x, struct query_request *rq, struct match_sets *extra)
{
    TRY(needed(x, "start"));
    TRY(needed(x, "end"));
    TRY(needed(x, "step"));
    TRY(args_time(x, "start", &rq->start_ms));
    TRY(args_time(x, "end", &rq->end_ms));
    TRY(args_duration(x, "step", &rq->step_ms));
    TRY(check_grid(rq));
    return common_arguments(s, x, rq, extra);
}

/* Listed while it runs, and ended when someone asks for it; *ended says so. */
static err run_listed(struct server *s, struct exchange *x, const struct query_request *rq, uint64_t now_ns,
                      struct query_notes *notes, bool *ended)
{
    struct active_query q = {.text = rq->text,
                             .start_ms = rq->start_ms,
                             .end_ms = rq->end_ms,
                             .step_ms = rq->step_ms,
                             .remote = &x->peer,
                             .canceled = &x->canceled};
    active_enter(s->active, &q, now_ns);
    err e = query_run(s->engine, rq, &x->out.body, notes);
    active_leave(s->active, &q);
    *ended = q.ended && err_code(e) == ERR_CANCELED;
    return e;
}

/* A query that was too long for the loop begins again on a worker, and a wrong one is none: neither is counted. */
static bool counts(const struct exchange *x, enum err_code code)
{
    return code != ERR_INVALID && !(x->hurried && code == ERR_TIMEOUT);
}

#define SLOW_TEXT_MAX 1000 /* bytes of a slow query in the log */

/* Double quotes become single ones, which mean the same in a query: a log field stands in double quotes. */
static void log_slow(struct server *s, const struct exchange *x, const struct query_request *rq, uint64_t samples,
                     uint64_t ns)
{
    char remote[PEER_TEXT_MAX], text[SLOW_TEXT_MAX];
    size_t n = rq->text.n < sizeof text ? rq->text.n : sizeof text;
    for (size_t i = 0; i < n; i++)
        text[i] = rq->text.p[i] == '"' ? '\'' : rq->text.p[i];
    peer_print(&x->peer, remote);
    counter_inc(s->slow_queries);
    log_warn(s->log, "slow query", "seconds=%.3f samples=%llu start=%.3f end=%.3f step=%.3f remote=%s query=\"%.*s%s\"",
             (double)ns / 1e9, (unsigned long long)samples, (double)rq->start_ms / 1e3, (double)rq->end_ms / 1e3,
             (double)rq->step_ms / 1e3, remote, (int)n, text, n < rq->text.n ? "..." : "");
}

/* Takes down what a query cost: for the choice of where it runs, the list of the top ones, the log of slow ones. */
static void account(struct server *s, struct exchange *x, const struct query_request *rq, enum err_code code,
                    uint64_t samples, uint64_t begun_ns)
{
    uint64_t now_ns = s->env->ops->mono_ns(s->env), ns = now_ns - begun_ns;
    int64_t slow_ms = s->config->query_slow_ms;
    quick_note(s->quick, x->shape, ns);
    if (!counts(x, code)) return;
    top_note(s->top, rq->text, rq->end_ms - rq->start_ms, ns, now_ns);
    if (slow_ms > 0 && ns / 1000000 >= (uint64_t)slow_ms) log_slow(s, x, rq, samples, ns);
}

static void run(struct server *s, struct exchange *x, const struct query_request *rq)
{
    struct query_notes notes = {0};
    bool ended = false;
    uint64_t begun_ns = s->env->ops->mono_ns(s->env);
    answer_data_begin(&x->out);
    err e =
        x->hurried ? query_run(s->engine, rq, &x->out.body, &notes) : run_listed(s, x, rq, begun_ns, &notes, &ended);
    account(s, x, rq, err_code(e), notes.samples, begun_ns);
    if (ended) {
        err_free(e);
        answer_error(&x->out, 422, "canceled", "the query was ended through /api/v1/status/active_queries/cancel");
    } else if (e != NULL) {
        answer_err(&x->out, e);
    } else {
        answer_data_end(&x->out, &notes);
    }
    query_notes_deinit(&notes);
}

void h_query_instant(struct server *s, struct exchange *x)
{
    struct query_request rq = {0};
    struct match_sets extra = {0};
    err e = instant_arguments(s, x, &rq, &extra);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        run(s, x, &rq);
    match_sets_deinit(&extra);
}

void h_query_range(struct server *s, struct exchange *x)
{
    struct query_request rq = {0};
    struct match_sets extra = {0};
    err e = range_arguments(s, x, &rq, &extra);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        run(s, x, &rq);
    match_sets_deinit(&extra);
}

void h_query_exemplars(struct server *s, struct exchange *x)
{
    int64_t start_ms, end_ms;
    answer_data_begin(&x->out);
    err e = args_range(x, &start_ms, &end_ms);
    if (e == NULL) e = args_no_extra(x);
    if (e == NULL) e = needed(x, "query");
    if (e == NULL) e = query_exemplars(s->engine, args_text(x, "query"), start_ms, end_ms, &x->out.body);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        answer_data_end(&x->out, NULL);
}

/* Text in, text about it out: nothing is read from the storage. */
typedef err (*text_fn)(str text, bool experimental, struct buf *out);

static void about_text(struct server *s, struct exchange *x, text_fn fn)
{
    answer_data_begin(&x->out);
    err e = needed(x, "query");
    if (e == NULL) e = fn(args_text(x, "query"), s->config->query_experimental, &x->out.body);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        answer_data_end(&x->out, NULL);
}

void h_query_format(struct server *s, struct exchange *x)
{
    about_text(s, x, query_format);
}

void h_query_parse(struct server *s, struct exchange *x)
{
    about_text(s, x, query_parse_tree);
}
