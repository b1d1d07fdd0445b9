/*
 * wal.c: the write-ahead log (wal.h).
 *
 * The queue is a list of items; an item is bytes bound for one segment and the last write number in
 * them. The appender fills the newest item; the log's thread takes the whole list, writes item by
 * item, syncs once per segment, settles. So batches that arrive while a sync runs share the next one.
 *
 * Segment states: fresh (no file yet) -> open [first item written] -> failed [write or sync error]
 *                                                                  -> closed [retired]
 * Locks: `lock` guards the queue, the list of segments, `settled` and the failures. Nothing else is
 * taken while it is held; the settled callback runs without it.
 */
#include "storage/wal.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/mono.h"

#define FAILURES_KEPT 64 /* failed ranges that waiters can still ask for */
#define SYNC_INTERVAL_NS UINT64_C(1000000000)

struct segment {
    struct segment *next; /* older ones first */
    struct env_file *file;
    uint32_t generation;
    uint32_t items; /* queued or being written */
    uint64_t bytes; /* put so far */
    atomic_bool failed;
    bool dirty; /* written since the last sync; the log thread's */
};

struct item {
    struct item *next;
    struct segment *segment;
    struct buf bytes;
    uint64_t seq; /* last one in bytes */
};

struct failure {
    uint64_t from, to;
    enum err_code code;
    char message[160];
};

struct wal {
    struct env *env;
    char *dir;
    enum wal_sync sync;
    struct log *log;
    struct histogram *sync_seconds;
    struct counter *written_bytes, *failed_writes;
    storage_settled_fn on_settled;
    void *on_settled_arg;

    pthread_mutex_t lock;
    pthread_cond_t work, progress;
    struct item *first, *last; /* queue */
    struct segment *oldest, *current;
    struct buf spare;
    uint64_t settled;
    struct failure failures[FAILURES_KEPT];
    uint32_t n_failures; /* ever; the newest is at (n - 1) % FAILURES_KEPT */
    bool stop, abandoned, threaded;
    pthread_t thread;
    uint64_t last_sync_ns;
};

void wal_path(char *out, size_t n, const char *dir, uint32_t generation)
{
    snprintf(out, n, "%s/%010u.wal", dir, generation);
}

static struct segment *segment_add(struct wal *w, uint32_t generation)
{
    struct segment *s = mem_zalloc(sizeof *s);
    s->generation = generation;
    s->bytes = WAL_SEGMENT_HEADER;
    if (w->current != NULL)
        w->current->next = s;
    else
        w->oldest = s;
    w->current = s;
    return s;
}

/* ---- the log thread's work -------------------------------------------------------------------------------------- */

static err segment_open(struct wal *w, struct segment *s)
{
    char path[4096];
    wal_path(path, sizeof path, w->dir, s->generation);
    TRY(w->env->ops->file_open(w->env, path, ENV_CREATE, &s->file));
    struct buf header = {0};
    wal_segment_header(&header, s->generation);
    err e = w->env->ops->file_append(s->file, header.data, header.n);
    buf_deinit(&header);
    TRY(e);
    return w->env->ops->dir_sync(w->env, w->dir);
}

static err segment_write(struct wal *w, struct segment *s, const struct buf *bytes)
{
    if (atomic_load(&s->failed)) return err_new(ERR_IO, "the log segment failed before");
    if (s->file == NULL) TRY(segment_open(w, s));
    TRY(w->env->ops->file_append(s->file, bytes->data, bytes->n));
    s->dirty = true;
    counter_add(w->written_bytes, bytes->n);
    return NULL;
}

static err segment_sync(struct wal *w, struct segment *s)
{
    if (!s->dirty || s->file == NULL) return NULL;
    uint64_t start = w->env->ops->mono_ns(w->env);
    err e = w->env->ops->file_sync(s->file);
    w->last_sync_ns = w->env->ops->mono_ns(w->env);
    histogram_observe(w->sync_seconds, (double)(w->last_sync_ns - start) / 1e9);
    s->dirty = e != NULL;
    return e;
}

/* Moves `settled` up to seq; e (taken) says that the numbers on the way failed. */
static void settle(struct wal *w, uint64_t seq, err e)
{
    pthread_mutex_lock(&w->lock);
    if (e != NULL) {
        struct failure *f = &w->failures[w->n_failures++ % FAILURES_KEPT];
        *f = (struct failure){.from = w->settled + 1, .to = seq, .code = err_code(e)};
        snprintf(f->message, sizeof f->message, "%s", err_message(e));
    }
    w->settled = seq;
    pthread_cond_broadcast(&w->progress);
    pthread_mutex_unlock(&w->lock);
    if (w->on_settled != NULL) w->on_settled(w->on_settled_arg, seq, e);
    err_free(e);
}

/* Writes the items of one segment, a run at the front of the list; returns the item after them. */
static struct item *write_run(struct wal *w, struct item *item)
{
    struct segment *s = item->segment;
    uint64_t seq = 0;
    uint32_t n = 0;
    err e = NULL;
    for (; item != NULL && item->segment == s; n++) {
        if (e == NULL) e = segment_write(w, s, &item->bytes);
        seq = item->seq;
        struct item *next = item->next;
        pthread_mutex_lock(&w->lock);
        if (w->spare.cap < item->bytes.cap && item->bytes.cap <= (4u << 20)) {
            struct buf swap = w->spare;
            w->spare = item->bytes;
            item->bytes = swap;
        }
        pthread_mutex_unlock(&w->lock);
        buf_deinit(&item->bytes);
        mem_free(item);
        item = next;
    }
    if (e == NULL && w->sync == WAL_SYNC_ALWAYS) e = segment_sync(w, s);
    if (e != NULL) {
        if (!atomic_exchange(&s->failed, true))
            log_error(w->log, "log segment failed", "generation=%u error=\"%s\"", s->generation, err_message(e));
        counter_inc(w->failed_writes);
    }
    settle(w, seq, e);
    pthread_mutex_lock(&w->lock);
    s->items -= n;
    pthread_cond_broadcast(&w->progress);
    pthread_mutex_unlock(&w->lock);
    return item;
}

static struct item *take_queue(struct wal *w)
{
    struct item *items = w->first;
    w->first = w->last = NULL;
    return items;
}

/* In 1s mode: syncs what is due. */
static void sync_if_due(struct wal *w, struct segment *s)
{
    if (w->sync != WAL_SYNC_1S || w->env->ops->mono_ns(w->env) - w->last_sync_ns < SYNC_INTERVAL_NS) return;
    err e = segment_sync(w, s);
    if (e == NULL) return;
    log_error(w->log, "log sync failed", "generation=%u error=\"%s\"", s->generation, err_message(e));
    atomic_store(&s->failed, true);
    err_free(e);
}

static void wait_for_work(struct wal *w)
{
    if (w->sync != WAL_SYNC_1S) {
        pthread_cond_wait(&w->work, &w->lock);
        return;
    }
    struct timespec until = mono_deadline(1);
    mono_cond_wait(&w->work, &w->lock, &until);
}

static void *run(void *arg)
{
    struct wal *w = arg;
    pthread_mutex_lock(&w->lock);
    while (!w->abandoned) {
        if (w->first == NULL && w->stop) break;
        if (w->first == NULL) wait_for_work(w);
        struct item *items = take_queue(w);
        struct segment *current = w->current;
        pthread_mutex_unlock(&w->lock);
        while (items != NULL)
            items = write_run(w, items);
        sync_if_due(w, current);
        pthread_mutex_lock(&w->lock);
    }
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

void wal_drain(struct wal *w)
{
    if (w->threaded) return;
    pthread_mutex_lock(&w->lock);
    struct item *items = take_queue(w);
    pthread_mutex_unlock(&w->lock);
    while (items != NULL)
        items = write_run(w, items);
    sync_if_due(w, w->current);
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

err wal_open(const struct wal_options *o, struct wal **out)
{
    struct wal *w = mem_zalloc(sizeof *w);
    w->env = o->env;
    w->dir = mem_dup_str(str_of(o->dir));
    w->sync = o->sync;
    w->log = o->log;
    w->on_settled = o->settled;
    w->on_settled_arg = o->settled_arg;
    w->settled = o->seq;
    w->threaded = o->env->threads;
    w->sync_seconds = metrics_histogram(o->metrics, "varve_wal_sync_seconds", NULL, "Time of one sync of the log.");
    w->written_bytes = metrics_counter(o->metrics, "varve_wal_written_bytes_total", NULL, "Bytes written to the log.");
    w->failed_writes =
        metrics_counter(o->metrics, "varve_wal_failed_writes_total", NULL, "Writes or syncs of the log that failed.");
    pthread_mutex_init(&w->lock, NULL);
    mono_cond_init(&w->work);
    pthread_cond_init(&w->progress, NULL);
    segment_add(w, o->generation);
    *out = w;
    if (w->threaded && pthread_create(&w->thread, NULL, run, w) != 0) {
        w->threaded = false;
        wal_abandon(w);
        *out = NULL;
        return err_new(ERR_INTERNAL, "can't start the log's thread");
    }
    return NULL;
}

static void segment_close(struct wal *w, struct segment *s)
{
    if (s->file != NULL) w->env->ops->file_close(s->file);
    mem_free(s);
}

static void destroy(struct wal *w)
{
    for (struct item *item = take_queue(w), *next; item != NULL; item = next) {
        next = item->next;
        buf_deinit(&item->bytes);
        mem_free(item);
    }
    for (struct segment *s = w->oldest, *next; s != NULL; s = next) {
        next = s->next;
        segment_close(w, s);
    }
    pthread_mutex_destroy(&w->lock);
    pthread_cond_destroy(&w->work);
    pthread_cond_destroy(&w->progress);
    buf_deinit(&w->spare);
    mem_free(w->dir);
    mem_free(w);
}

static void stop_thread(struct wal *w, bool abandon)
{
    pthread_mutex_lock(&w->lock);
    w->stop = true;
    w->abandoned = abandon;
    pthread_cond_broadcast(&w->work);
    pthread_mutex_unlock(&w->lock);
    if (w->threaded) pthread_join(w->thread, NULL);
}

void wal_close(struct wal *w)
{
    wal_drain(w);
    stop_thread(w, false);
    for (struct segment *s = w->oldest; s != NULL; s = s->next)
        if (!atomic_load(&s->failed)) err_free(segment_sync(w, s));
    destroy(w);
}

void wal_abandon(struct wal *w)
{
    stop_thread(w, true);
    destroy(w);
}

/* ---- the appender ----------------------------------------------------------------------------------------------- */

uint32_t wal_generation(struct wal *w)
{
    return atomic_load(&w->current->failed) ? wal_rotate(w) : w->current->generation;
}

uint32_t wal_rotate(struct wal *w)
{
    pthread_mutex_lock(&w->lock);
    uint32_t generation = segment_add(w, w->current->generation + 1)->generation;
    pthread_mutex_unlock(&w->lock);
    return generation;
}

void wal_put(struct wal *w, uint64_t seq, struct buf *record)
{
    pthread_mutex_lock(&w->lock);
    struct segment *s = w->current;
    s->bytes += record->n;
    struct item *item = w->last;
    if (item != NULL && item->segment == s) {
        buf_put(&item->bytes, record->data, record->n);
    } else {
        item = mem_zalloc(sizeof *item);
        item->segment = s;
        item->bytes = *record;
        *record = w->spare;
        w->spare = (struct buf){0};
        s->items++;
        if (w->last != NULL)
            w->last->next = item;
        else
            w->first = item;
        w->last = item;
        pthread_cond_signal(&w->work);
    }
    item->seq = seq;
    buf_clear(record);
    pthread_mutex_unlock(&w->lock);
}

uint64_t wal_bytes(const struct wal *w)
{
    return w->current->bytes;
}

uint64_t wal_written(const struct wal *w)
{
    return counter_value(w->written_bytes);
}

void wal_totals(struct wal *w, uint64_t *segments, uint64_t *bytes)
{
    *segments = *bytes = 0;
    pthread_mutex_lock(&w->lock);
    for (const struct segment *s = w->oldest; s != NULL; s = s->next) {
        ++*segments;
        *bytes += s->bytes;
    }
    pthread_mutex_unlock(&w->lock);
}

/* ---- waiting and retiring --------------------------------------------------------------------------------------- */

static err outcome_of(const struct wal *w, uint64_t seq)
{
    uint32_t kept = w->n_failures < FAILURES_KEPT ? w->n_failures : FAILURES_KEPT;
    for (uint32_t i = 0; i < kept; i++) {
        const struct failure *f = &w->failures[i];
        if (seq >= f->from && seq <= f->to) return err_new(f->code, "%s", f->message);
    }
    return NULL;
}

err wal_wait(struct wal *w, uint64_t seq)
{
    wal_drain(w);
    pthread_mutex_lock(&w->lock);
    while (w->settled < seq)
        pthread_cond_wait(&w->progress, &w->lock);
    err e = outcome_of(w, seq);
    pthread_mutex_unlock(&w->lock);
    return e;
}

/* Takes the segments below the generation off the list, once nothing is on its way to them. */
static struct segment *detach_below(struct wal *w, uint32_t generation)
{
    struct segment *first = NULL, **tail = &first;
    pthread_mutex_lock(&w->lock);
    while (w->oldest != w->current && w->oldest->generation < generation) {
        struct segment *s = w->oldest;
        while (s->items > 0)
            pthread_cond_wait(&w->progress, &w->lock);
        w->oldest = s->next;
        s->next = NULL;
        *tail = s;
        tail = &s->next;
    }
    pthread_mutex_unlock(&w->lock);
    return first;
}

err wal_retire(struct wal *w, uint32_t generation)
{
    wal_drain(w);
    for (struct segment *s = detach_below(w, generation), *next; s != NULL; s = next) {
        next = s->next;
        segment_close(w, s);
    }
    uint32_t *generations;
    size_t n;
    TRY(wal_list(w->env, w->dir, &generations, &n));
    err e = NULL;
    for (size_t i = 0; i < n && generations[i] < generation; i++) {
        char path[4096];
        wal_path(path, sizeof path, w->dir, generations[i]);
        KEEP_FIRST(w->env->ops->unlink(w->env, path));
    }
    mem_free(generations);
    return e;
}
