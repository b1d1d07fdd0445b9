/*
 * query.c: the facade: text in, JSON out.
 *
 * query_run is the whole path of a query: parse → plan → open operators → stream rows into JSON. A range query first
 * looks whether an earlier one knew some of its steps (reuse.h). All
 * memory of a query is in its arena and its operators, and is gone when the call returns. The engine
 * itself is constant after query_create, so any number of threads may run queries.
 */
#include "query/query.h"

#include <pthread.h>

#include "query/engine.h"
#include "query/explain.h"
#include "query/parser.h"
#include "query/result.h"
#include "query/reuse.h"
#include "query/tally.h"
#include "query/usage.h"
#include "storage/base/alloc.h"
#include "storage/base/env.h"
#include "storage/base/json.h"
#include "storage/base/limits.h"

#define LOOKBACK_DEFAULT_MS (5 * 60 * 1000)
#define TIMEOUT_DEFAULT_MS (2 * 60 * 1000)
#define MAX_SAMPLES_DEFAULT 50000000
#define MAX_MEMORY_DEFAULT ((size_t)256 << 20)
#define MAX_POINTS_DEFAULT 11000
#define SUBQUERY_STEP_DEFAULT_MS (60 * 1000)
#define HELPERS_MAX 63
#define HELPERS_QUEUE_MAX 256 /* calls for help; beyond, queries do without */

/* Trees higher than this run on a stack of their own, STACK_PER_LEVEL bytes a level: chains of thousands of operators
 * are legal, and planning and execution recurse as deep as the tree is high. */
#define HEIGHT_SHALLOW 100
#define STACK_PER_LEVEL ((size_t)8 << 10)

/* Of the engine without a database (tests). */
static const struct hash_key NO_KEY;

struct query_engine *query_create(const struct query_options *o)
{
    struct query_engine *q = mem_zalloc(sizeof *q);
    q->o = *o;
    if (q->o.lookback_ms == 0) q->o.lookback_ms = LOOKBACK_DEFAULT_MS;
    if (q->o.timeout_ms == 0) q->o.timeout_ms = TIMEOUT_DEFAULT_MS;
    if (q->o.max_samples == 0) q->o.max_samples = MAX_SAMPLES_DEFAULT;
    if (q->o.max_memory == 0) q->o.max_memory = MAX_MEMORY_DEFAULT;
    if (q->o.max_points == 0) q->o.max_points = MAX_POINTS_DEFAULT;
    q->hash = o->db ? storage_hash_key(o->db) : &NO_KEY;
    unsigned helpers = o->threads > HELPERS_MAX ? HELPERS_MAX : o->threads > 0 ? o->threads - 1 : 0;
    if (helpers > 0) q->helpers = worker_create("helper", helpers, HELPERS_QUEUE_MAX);
    q->queries = metrics_counter(o->metrics, "varve_queries_total", "", "PromQL queries answered or failed.");
    q->samples = metrics_counter(o->metrics, "varve_query_samples_total", "",
                                 "Samples read by PromQL queries and remote reads.");
    q->reads = metrics_counter(o->metrics, "varve_remote_reads_total", "", "Remote read requests answered or failed.");
    q->seconds = metrics_histogram(o->metrics, "varve_query_seconds", "", "Time that PromQL queries took.");
    q->steps_known = metrics_counter(o->metrics, "varve_query_steps_known_total", "",
                                     "Steps of range queries that were taken from the answers before.");
    q->steps = metrics_counter(o->metrics, "varve_query_steps_total", "", "Steps of range queries.");
    q->usage = usage_create(q->hash);
    if (o->db && o->result_cache_bytes > 0)
        q->results = result_cache_create(q->hash, o->result_cache_bytes, o->metrics);
    return q;
}

size_t query_bytes(const struct query_engine *q)
{
    return atomic_load_explicit(&q->bytes, memory_order_relaxed);
}

size_t query_results_bytes(const struct query_engine *q)
{
    return result_cache_bytes(q->results);
}

void query_results_forget(struct query_engine *q)
{
    result_cache_clear(q->results);
}

void query_destroy(struct query_engine *q)
{
    if (q == NULL) return;
    worker_destroy(q->helpers);
    result_cache_destroy(q->results);
    usage_destroy(q->usage);
    mem_free(q);
}

/* One query while it runs. */
struct run {
    struct query_engine *q;
    const struct query_request *rq;
    struct buf *out;
    struct arena arena;
    struct expr *expr;
    struct plan *plan;
    struct budget budget;
    struct notes *notes;
    struct exec exec;
    bool exec_open;
    struct reuse reuse;
    uint64_t began_ns, prepared_ns, evaluated_ns; /* times on the monotonic clock; the latter two for stats */
    err outcome;                                  /* of run_deep's thread */
};

static uint64_t now_ns(void)
{
    return env_posix()->ops->mono_ns(env_posix());
}

static err check_times(const struct query_engine *q, const struct query_request *rq)
{
    if (rq->start_ms < LIMIT_TIME_MIN || rq->end_ms > LIMIT_TIME_MAX || rq->step_ms > LIMIT_TIME_MAX)
        return err_new(ERR_INVALID, "time out of range");
    if (rq->end_ms < rq->start_ms) return err_new(ERR_INVALID, "end timestamp must not be before start time");
    if (rq->step_ms < 0)
        return err_new(ERR_INVALID, "zero or negative query resolution step widths are not accepted. Try a positive "
                                    "integer");
    /* As Prometheus: so many steps after the first point. */
    if (rq->step_ms == 0 || (rq->end_ms - rq->start_ms) / rq->step_ms <= q->o.max_points) return NULL;
    int64_t least = (rq->end_ms - rq->start_ms) / ((int64_t)q->o.max_points + 1) + 1;
    return err_new(ERR_INVALID,
                   "exceeded maximum resolution of %u points per timeseries (--query.max-points); the smallest step "
                   "that passes is %.10g s",
                   q->o.max_points, (double)least / 1000);
}

static err check_type(const struct run *r)
{
    enum value_type t = r->expr->type;
    if (r->rq->step_ms == 0 || t == TYPE_VECTOR || t == TYPE_SCALAR) return NULL;
    return err_new(ERR_INVALID, "invalid expression type \"%s\" for range query, must be Scalar or instant Vector",
                   value_type_name(t));
}

static err plan_from(struct run *r, int64_t start_ms)
{
    const struct query_request *rq = r->rq;
    const struct query_options *o = &r->q->o;
    struct plan_request p = {.start_ms = start_ms,
                             .end_ms = rq->end_ms,
                             .step_ms = rq->step_ms,
                             .lookback_ms = rq->lookback_ms ? rq->lookback_ms : o->lookback_ms,
                             .default_subquery_step_ms = SUBQUERY_STEP_DEFAULT_MS,
                             .max_steps = o->max_samples};
    return plan_build(r->expr, &p, &r->arena, &r->plan);
}

/* Takes what is known of a range query's answer; the plan is for the rest. */
static err plan_the_rest(struct run *r)
{
    struct reuse *u = &r->reuse;
    if (r->rq->step_ms == 0) return NULL;
    reuse_begin(u, r->q->results, r->q->o.db, r->plan, r->expr, r->rq);
    counter_add(r->q->steps, u->grid.n);
    counter_add(r->q->steps_known, u->n);
    if (u->n == u->grid.n)
        for (const struct plan_select *s = r->plan->selects; s; s = s->next)
            usage_note_known(r->q->usage, s);
    return u->n > 0 && u->n < u->grid.n ? plan_from(r, grid_time(&u->grid, u->n)) : NULL;
}

static err prepare(struct run *r)
{
    const struct query_request *rq = r->rq;
    const struct query_options *o = &r->q->o;
    TRY(plan_from(r, rq->start_ms));
    TRY(plan_the_rest(r));
    if (rq->stats) tally_start(r->plan, &r->arena);
    exec_init(&r->exec, o->db, r->q->hash, r->plan, &r->arena, &r->budget, r->notes);
    r->exec_open = true;
    r->exec.timed = rq->explain;
    r->exec.usage = r->q->usage;
    r->exec.helpers = r->q->helpers;
    r->exec.extra = rq->extra;
    return NULL;
}

/* The operator that yields the result's rows. */
static err open_root(struct run *r, struct op **out)
{
    TRY(exec_open(&r->exec, r->plan->root, out));
    return r->rq->round ? op_digits_open(&r->exec, *out, r->rq->round_digits, out) : NULL;
}

/* A range query's: what was known, then what is evaluated. */
static err put_matrix(struct run *r, struct buf *out, bool *truncated)
{
    struct reuse *u = &r->reuse;
    struct held_rows rows = {0};
    if (u->n < u->grid.n) {
        struct op *op;
        TRY(open_root(r, &op));
        TRY(result_rows(op, &rows));
    }
    TRY(reuse_join(u, &r->exec, &rows));
    reuse_keep(u, &rows, r->notes);
    return result_matrix(&r->exec, &rows, &u->grid, r->rq->limit, out, truncated);
}

static err put_result(struct run *r, struct buf *out, bool *truncated)
{
    const struct plan_node *root = r->plan->root;
    uint64_t limit = r->rq->limit;
    if (root->kind == PLAN_STRING) {
        result_string(r->plan->start, root->string, out);
        return NULL;
    }
    if (root->kind == PLAN_SAMPLES) {
        struct source *s;
        TRY(source_open(&r->exec, root, false, &s));
        return result_samples(s, limit, out, truncated);
    }
    if (root->type == TYPE_SCALAR && r->rq->step_ms == 0) {
        double *column;
        TRY(exec_column(&r->exec, root, &column));
        double v = r->rq->round ? op_digits_round(column[0], op_digits_scale(r->rq->round_digits)) : column[0];
        result_scalar(r->plan->start, v, out);
        return NULL;
    }
    if (r->rq->step_ms > 0) return put_matrix(r, out, truncated);
    struct op *op;
    TRY(open_root(r, &op));
    return result_vector(op, limit, out, truncated);
}

static void put_seconds(struct json *j, const char *key, uint64_t ns)
{
    json_key(j, key);
    json_double(j, (double)ns / 1e9);
}

/* Rows go into the answer as they come, so sorting them is part of the evaluation. */
static void put_timings(const struct run *r, struct json *j)
{
    uint64_t total = now_ns() - r->began_ns;
    json_key(j, "timings");
    json_object(j);
    put_seconds(j, "evalTotalTime", r->evaluated_ns - r->began_ns);
    put_seconds(j, "resultSortTime", 0);
    put_seconds(j, "queryPreparationTime", r->prepared_ns - r->began_ns);
    put_seconds(j, "innerEvalTime", r->evaluated_ns - r->prepared_ns);
    put_seconds(j, "execQueueTime", r->rq->queued_ns);
    put_seconds(j, "execTotalTime", total);
    json_object_end(j);
}

static void put_samples_per_step(const struct plan *plan, struct json *j)
{
    json_key(j, "totalQueryableSamplesPerStep");
    json_array(j);
    for (uint32_t i = 0; i < plan->grid.n; i++) {
        json_array(j);
        json_ms(j, grid_time(&plan->grid, i));
        json_u64(j, tally_at(plan, i));
        json_array_end(j);
    }
    json_array_end(j);
}

static void put_stats(const struct run *r, struct buf *out)
{
    struct json j;
    buf_str(out, STR(",\"stats\":"));
    json_init(&j, out);
    json_object(&j);
    put_timings(r, &j);
    json_key(&j, "samples");
    json_object(&j);
    if (r->rq->stats_per_step) put_samples_per_step(r->plan, &j);
    json_key(&j, "totalQueryableSamples");
    json_u64(&j, tally_total(r->plan));
    json_key(&j, "peakSamples");
    json_u64(&j, atomic_load(&r->budget.peak));
    json_object_end(&j);
    json_object_end(&j);
}

static err plan_and_execute(struct run *r)
{
    struct buf *out = r->out;
    bool truncated = false;
    TRY(prepare(r));
    if (r->rq->stats) r->prepared_ns = now_ns();
    TRY(put_result(r, out, &truncated));
    if (r->rq->stats) r->evaluated_ns = now_ns();
    if (truncated) notes_plain(r->notes, "results truncated due to limit");
    if (r->rq->stats) put_stats(r, out);
    if (r->rq->explain) {
        buf_str(out, STR(",\"explain\":"));
        explain_put(&r->exec, out);
    }
    buf_u8(out, '}');
    return buf_status(out, "the answer");
}

static void *on_own_stack(void *arg)
{
    struct run *r = arg;
    r->outcome = plan_and_execute(r);
    return NULL;
}

static err run_deep(struct run *r)
{
    pthread_attr_t attr;
    pthread_t thread;
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, ((size_t)1 << 20) + r->expr->height * STACK_PER_LEVEL);
    int failed = pthread_create(&thread, &attr, on_own_stack, r);
    pthread_attr_destroy(&attr);
    if (failed) return err_errno(failed, "a thread for a query of %u levels", r->expr->height);
    pthread_join(thread, NULL);
    return r->outcome;
}

static err run(struct run *r)
{
    TRY(check_times(r->q, r->rq));
    TRY(promql_parse(r->rq->text, r->q->o.experimental, &r->arena, &r->expr));
    TRY(check_type(r));
    return r->expr->height > HEIGHT_SHALLOW ? run_deep(r) : plan_and_execute(r);
}

err query_run(struct query_engine *q, const struct query_request *rq, struct buf *out, struct query_notes *notes)
{
    struct run r = {.q = q, .rq = rq, .out = out, .notes = notes_create(rq->text), .began_ns = now_ns()};
    int64_t timeout = rq->timeout_ms > 0 && rq->timeout_ms < q->o.timeout_ms ? rq->timeout_ms : q->o.timeout_ms;
    budget_init(&r.budget, timeout, q->o.max_samples, q->o.max_memory, rq->canceled);
    r.budget.total = &q->bytes;
    err e = run(&r);
    notes_take(r.notes, notes);
    notes->samples = atomic_load(&r.budget.read);
    reuse_end(&r.reuse);
    if (r.exec_open) exec_deinit(&r.exec);
    expr_deinit(r.expr);
    arena_deinit(&r.arena);
    notes_destroy(r.notes);
    budget_end(&r.budget);
    counter_inc(q->queries);
    counter_add(q->samples, atomic_load(&r.budget.read));
    histogram_observe(q->seconds, (double)(now_ns() - r.began_ns) / 1e9);
    return e;
}
