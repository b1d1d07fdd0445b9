/*
 * server.c: start and stop, in order.
 *
 * Start: sockets are bound and the loops answer (503, starting) before the storage is opened, so a
 * long replay is seen from outside; then the rooms are made and the phase becomes ready, which
 * publishes them. Stop, on SIGTERM or SIGINT: loops stop accepting and finish what is in flight, then
 * workers, query engine, ingest and at last the storage are closed, which flushes the head. A second
 * signal, or one while the storage is being opened, ends the process at once: the log has whatever
 * was acknowledged.
 *
 * The main thread does all of this and waits on `wake` in between; signals arrive on the first loop.
 */
#include "server/server.h"
#include "server/active.h"
#include "server/quick.h"
#include "server/top.h"

#include <signal.h>
#include <stdio.h>
#include <unistd.h>

#include "server/conn.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/machine.h"
#include "server/self.h"
#include "storage/base/alloc.h"

#define LOOPS_MAX 64

/* What only start and stop need to know. */
struct life {
    struct server server;
    struct loop *loops[LOOPS_MAX];
    struct conns *conns[LOOPS_MAX];
    unsigned n_loops;
    uv_signal_t signals[2]; /* on the first loop */
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool told_to_stop; /* guarded by lock */
};

/* ---- signals ------------------------------------------------------------------------------------------------- */

static void on_signal(uv_signal_t *handle, int number)
{
    struct life *l = handle->data;
    struct server *s = &l->server;
    pthread_mutex_lock(&l->lock);
    bool again = l->told_to_stop;
    l->told_to_stop = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    if (again || atomic_load(&s->phase) == PHASE_STARTING) {
        log_warn(s->log, "ending at once", "signal=%d", number);
        _exit(again ? 1 : 0);
    }
    log_info(s->log, "stopping", "signal=%d", number);
}

static void watch_signals(struct life *l)
{
    static const int numbers[] = {SIGTERM, SIGINT};
    signal(SIGPIPE, SIG_IGN);
    for (size_t i = 0; i < ARRAY_LEN(numbers); i++) {
        uv_signal_init(&l->loops[0]->uv, &l->signals[i]);
        l->signals[i].data = l;
        uv_signal_start(&l->signals[i], on_signal, numbers[i]);
        uv_unref((uv_handle_t *)&l->signals[i]);
    }
}

static void wait_for_signal(struct life *l)
{
    pthread_mutex_lock(&l->lock);
    while (!l->told_to_stop)
        pthread_cond_wait(&l->wake, &l->lock);
    pthread_mutex_unlock(&l->lock);
}

/* ---- start --------------------------------------------------------------------------------------------------- */

/* The next item of a comma-separated list, without spaces around it. */
static str next_address(str *list)
{
    const char *comma = memchr(list->p, ',', list->n);
    str item = {list->p, comma == NULL ? list->n : (size_t)(comma - list->p)};
    size_t taken = item.n + (comma != NULL);
    *list = (str){list->p + taken, list->n - taken};
    while (item.n > 0 && item.p[0] == ' ')
        item = (str){item.p + 1, item.n - 1};
    while (item.n > 0 && item.p[item.n - 1] == ' ')
        item.n--;
    return item;
}

static err listen_all(struct life *l)
{
    struct server *s = &l->server;
    str list = str_of(s->config->listen);
    for (unsigned count = 0; list.n > 0; count++) {
        struct listen_address bound;
        if (count == CONFIG_LISTEN_MAX)
            return err_new(ERR_INVALID, "--web.listen-address: more than %d", CONFIG_LISTEN_MAX);
        TRY(listen_bind(next_address(&list), l->n_loops, &bound));
        for (unsigned i = 0; i < l->n_loops; i++)
            TRY(conns_listen(l->conns[i], bound.fds[i]));
        log_info(s->log, "listening", "address=%s", bound.text);
    }
    return NULL;
}

static void make_loops(struct life *l)
{
    const struct config *c = l->server.config;
    l->n_loops = c->web_threads < LOOPS_MAX ? (unsigned)c->web_threads : LOOPS_MAX;
    for (unsigned i = 0; i < l->n_loops; i++) {
        l->loops[i] = loop_create(i);
        l->conns[i] = conns_create(&l->server, l->loops[i]);
        conns_share(l->conns[i], l->conns, l->n_loops);
    }
}

static err start_loops(struct life *l)
{
    for (unsigned i = 0; i < l->n_loops; i++)
        TRY(loop_start(l->loops[i]));
    return NULL;
}

static void on_settled(void *arg, uint64_t seq, const struct err *e)
{
    struct life *l = arg;
    for (unsigned i = 0; i < l->n_loops; i++)
        conns_settled(l->conns[i], seq, e);
}

#define EXEMPLARS_MAX 50000000u
#define FOREVER_MS (INT64_C(1000) * 365 * 86400 * 1000)

static err open_storage(struct life *l)
{
    struct server *s = &l->server;
    const struct config *c = s->config;
    struct storage_options o = {
        .env = s->env,
        .path = c->storage_path,
        .retention_ms = c->retention_ms > 0 ? c->retention_ms : FOREVER_MS,
        .future_ms = c->future_ms,
        .wal_sync = (enum wal_sync)c->wal_sync,
        .min_free_disk = c->min_free_disk,
        .head_max_bytes = c->head_max_bytes,
        .wal_max_bytes = c->wal_max_bytes,
        .cache_bytes = c->cache_bytes,
        .dedup_ms = c->dedup_ms,
        .snapshot_max_ms = c->snapshot_max_ms,
        .max_exemplars = c->max_exemplars < EXEMPLARS_MAX ? (uint32_t)c->max_exemplars : EXEMPLARS_MAX,
        .log = s->log,
        .metrics = s->metrics,
        .settled = on_settled,
        .settled_arg = l,
    };
    return err_wrap(storage_open(&o, &s->db), "can't open %s", c->storage_path);
}

static void make_rooms(struct server *s)
{
    const struct config *c = s->config;
    struct ingest_options io = {.db = s->db, .metrics = s->metrics, .log = s->log};
    s->ingest = ingest_create(&io);
    struct query_options qo = {
        .db = s->db,
        .metrics = s->metrics,
        .log = s->log,
        .lookback_ms = c->lookback_ms,
        .timeout_ms = c->query_timeout_ms,
        .max_samples = c->query_max_samples,
        .max_memory = c->query_max_memory,
        .max_points = (uint32_t)c->query_max_points,
        .experimental = c->query_experimental,
        .threads = (uint32_t)c->query_threads,
        .result_cache_bytes = c->query_cache_bytes,
    };
    s->engine = query_create(&qo);
    s->quick = quick_create();
    s->slow_queries = metrics_counter(s->metrics, "varve_slow_queries_total", NULL,
                                      "Queries that took longer than --query.log-slower-than.");
    s->top = top_create();
    s->active = active_create();
    s->queries = worker_create("query", (unsigned)c->query_concurrency, SERVER_QUEUE_MAX);
    s->slow = worker_create("slow", SERVER_SLOW_THREADS, SERVER_SLOW_MAX);
    s->exports = worker_create("export", SERVER_EXPORT_THREADS, SERVER_SLOW_MAX);
    s->reads = worker_create("read", SERVER_READ_THREADS, SERVER_QUEUE_MAX);
    self_register_storage(s->self);
}

/* ---- stop ---------------------------------------------------------------------------------------------------- */

static void stop_loops(struct life *l)
{
    for (unsigned i = 0; i < l->n_loops; i++)
        if (l->loops[i]->started) conns_stop(l->conns[i]);
    for (unsigned i = 0; i < l->n_loops; i++)
        loop_join(l->loops[i]);
    signal(SIGTERM, SIG_DFL); /* no loop is left to hear a second signal: it ends the process */
    signal(SIGINT, SIG_DFL);
}

/* Requests are finished: close what answered them. */
static err close_rooms(struct server *s)
{
    worker_destroy(s->queries);
    worker_destroy(s->slow);
    worker_destroy(s->exports);
    worker_destroy(s->reads);
    query_destroy(s->engine);
    quick_destroy(s->quick);
    top_destroy(s->top);
    active_destroy(s->active);
    ingest_destroy(s->ingest);
    return storage_close(s->db);
}

static void free_loops(struct life *l)
{
    for (unsigned i = 0; i < l->n_loops; i++) {
        loop_destroy(l->loops[i]); /* first: its handles lie in the connections */
        conns_destroy(l->conns[i]);
    }
}

/* ---- the whole ----------------------------------------------------------------------------------------------- */

static err run(struct life *l)
{
    struct server *s = &l->server;
    err e = NULL;
    uint64_t begun = uv_hrtime();
    TRY_OUT(cors_init(&s->cors, s->config->cors_origin));
    make_loops(l);
    watch_signals(l);
    TRY_OUT(listen_all(l));
    TRY_OUT(start_loops(l));
    TRY_OUT(open_storage(l));
    make_rooms(s);
    atomic_store_explicit(&s->phase, PHASE_READY, memory_order_release);
    log_info(s->log, "ready", "path=%s seconds=%.3f loops=%u queries=%llu memory_limit=%llu", s->config->storage_path,
             (double)(uv_hrtime() - begun) / 1e9, l->n_loops, (unsigned long long)s->config->query_concurrency,
             (unsigned long long)s->config->memory_limit);
    wait_for_signal(l);
    atomic_store(&s->phase, PHASE_STOPPING);
    storage_stop_merges(s->db); /* they may run for hours, a container is killed after seconds */
out:
    stop_loops(l);
    if (s->db != NULL) KEEP_FIRST(close_rooms(s));
    free_loops(l);
    cors_deinit(&s->cors);
    return e;
}

int server_run(const struct config *config)
{
    struct life *l = mem_zalloc(sizeof *l);
    struct server *s = &l->server;
    pthread_mutex_init(&l->lock, NULL);
    pthread_cond_init(&l->wake, NULL);
    s->config = config;
    s->env = env_posix();
    s->log = log_create(STDERR_FILENO, (enum log_level)config->log_level, config->log_json != 0);
    s->metrics = metrics_create();
    s->self = self_create(s);
    s->body_bytes_max = config->memory_limit / 4; /* config_derive: one body is no larger */
    http_setup();
    machine_raise_files();
    log_info(s->log, "starting", "version=%s revision=%s pid=%d", VARVE_VERSION, VARVE_REVISION, (int)getpid());

    err e = run(l);
    if (e != NULL)
        log_error(s->log, "ended by an error", "error=\"%s\"", err_message(e));
    else
        log_info(s->log, "stopped", "clean=true");
    int code = e == NULL ? 0 : 1;
    err_free(e);
    self_destroy(s->self);
    metrics_destroy(s->metrics);
    log_destroy(s->log);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
    return code;
}
