/*
 * db_open.c: opening and closing a database: lock, identity, manifest, parts, log replay, threads.
 *
 *   IDENTITY  MANIFEST  MANIFEST.prev  EXEMPLARS  LOCK  parts/YYYY-MM-<number>.part  wal/<generation>.wal
 *   quarantine/  parts that could not be opened      snapshots/<name>/  as snapshot.c has it
 *
 * A part that can't be opened is moved to quarantine/ and its loss is logged with time range and rows;
 * the server starts. A damaged manifest is rebuilt from the footers of the parts that are there.
 */
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/map.h"
#include "storage/base/mono.h"
#include "storage/db_internal.h"
#include "storage/recover.h"

#define DEFAULT_HEAD_BYTES (96u << 20)
#define DEFAULT_WAL_BYTES (128u << 20)
#define DEFAULT_HEAD_AGE_MS (2 * 3600 * INT64_C(1000))
#define DEFAULT_CACHE_BYTES (32u << 20)
#define DISK_CHECK_NS INT64_C(1000000000)
#define TRIM_NS INT64_C(5000000000)
#define RETENTION_CHECK_MS INT64_C(60000)
#define MERGE_WAIT_SECONDS 5
#define CREATIONS_QUIET_MS INT64_C(300000) /* so long, series that register are those of before the start */
#define FLUSHER_NICE 5
#define MERGER_NICE 10

/* ---- fields ----------------------------------------------------------------------------------------------------- */

static char *join(const char *dir, const char *name)
{
    size_t n = strlen(dir) + strlen(name) + 2;
    char *path = mem_alloc(n);
    snprintf(path, n, "%s/%s", dir, name);
    return path;
}

static void init_metrics(struct db_metrics *m, struct metrics *r)
{
    m->samples = metrics_counter(r, "varve_storage_samples_total", NULL, "Samples appended.");
    m->batches = metrics_counter(r, "varve_storage_batches_total", NULL, "Batches appended.");
    m->new_series = metrics_counter(r, "varve_storage_new_series_total", NULL, "Series registered.");
    const char *rejected = "varve_storage_rejected_samples_total", *help = "Samples not stored, by reason.";
    m->rejected_old = metrics_counter(r, rejected, "reason=\"too_old\"", help);
    m->rejected_new = metrics_counter(r, rejected, "reason=\"too_far_in_the_future\"", help);
    m->rejected_labels = metrics_counter(r, rejected, "reason=\"bad_labels\"", help);
    m->rejected_busy =
        metrics_counter(r, "varve_storage_busy_batches_total", NULL, "Batches refused because flushes lag behind.");
    m->flushes = metrics_counter(r, "varve_flushes_total", NULL, "Heads written out as parts.");
    m->flush_failures = metrics_counter(r, "varve_flush_failures_total", NULL, "Flushes that failed.");
    m->flushed_samples = metrics_counter(r, "varve_flushed_samples_total", NULL, "Samples written by flushes.");
    m->flushed_bytes = metrics_counter(r, "varve_flushed_bytes_total", NULL, "Bytes of parts written by flushes.");
    m->flush_seconds = metrics_histogram(r, "varve_flush_seconds", NULL, "Time of a flush.");
    m->merges = metrics_counter(r, "varve_merges_total", NULL, "Merges done.");
    m->merge_failures = metrics_counter(r, "varve_merge_failures_total", NULL, "Merges that failed.");
    m->merged_samples = metrics_counter(r, "varve_merged_samples_total", NULL, "Samples written by merges.");
    m->merged_bytes = metrics_counter(r, "varve_merged_bytes_total", NULL, "Bytes of parts written by merges.");
    m->merge_seconds = metrics_histogram(r, "varve_merge_seconds", NULL, "Time of a merge.");
    m->retired_parts = metrics_counter(r, "varve_retired_parts_total", NULL, "Parts dropped by retention.");
    m->wal_damaged = metrics_counter(r, "varve_wal_damaged_records_total", NULL, "Damaged log records at replay.");
    m->lost_parts = metrics_counter(r, "varve_lost_parts_total", NULL, "Parts missing or quarantined at the start.");
}

static struct db *db_create(const struct storage_options *o)
{
    struct db *db = mem_zalloc(sizeof *db);
    db->o = *o;
    db->env = o->env != NULL ? o->env : env_posix();
    db->log = o->log;
    db->path = mem_dup_str(str_of(o->path));
    db->o.path = db->path;
    if (db->o.head_max_bytes == 0) db->o.head_max_bytes = DEFAULT_HEAD_BYTES;
    if (db->o.wal_max_bytes == 0) db->o.wal_max_bytes = DEFAULT_WAL_BYTES;
    if (db->o.head_max_age_ms == 0) db->o.head_max_age_ms = DEFAULT_HEAD_AGE_MS;
    if (db->o.cache_bytes == 0) db->o.cache_bytes = DEFAULT_CACHE_BYTES;
    db->parts_dir = join(db->path, "parts");
    db->wal_dir = join(db->path, "wal");
    db->snapshots_dir = join(db->path, "snapshots");
    init_metrics(&db->metrics, o->metrics);
    block_pool_init(&db->pool);
    db->cache = fcache_create(db->o.cache_bytes, o->metrics);
    pthread_mutex_t *locks[] = {&db->append_lock, &db->view_lock, &db->manifest_lock, &db->flush_lock,
                                &db->merge_lock,  &db->wake_lock, &db->metadata_lock};
    for (size_t i = 0; i < ARRAY_LEN(locks); i++)
        pthread_mutex_init(locks[i], NULL);
    pthread_cond_t *waits[] = {&db->flush_wake, &db->merge_wake, &db->room};
    for (size_t i = 0; i < ARRAY_LEN(waits); i++)
        mono_cond_init(waits[i]);
    db->metadata = strmap_create(NULL);
    db->creations = creations_create(&db->key);
    db->changes = changes_create();
    db_exemplars_init(db);
    return db;
}

static void append_scratch_deinit(struct append_scratch *s)
{
    mem_free(s->handles);
    mem_free(s->counts);
    sample_set_deinit(&s->kept);
    wal_defs_deinit(&s->defs);
    buf_deinit(&s->record);
    buf_deinit(&s->exemplars);
    arena_deinit(&s->arena);
}

static void db_destroy(struct db *db)
{
    append_scratch_deinit(&db->scratch);
    view_unref(db->view);
    head_unref(db->head);
    registry_unref(db->registry);
    creations_destroy(db->creations);
    changes_destroy(db->changes);
    db_metadata_destroy(db);
    exemplars_destroy(db->exemplars);
    fcache_destroy(db->cache);
    block_pool_deinit(&db->pool);
    if (db->lock_file != NULL) db->env->ops->unlock(db->lock_file);
    pthread_mutex_t *locks[] = {&db->append_lock, &db->view_lock, &db->manifest_lock, &db->flush_lock,
                                &db->merge_lock,  &db->wake_lock, &db->metadata_lock};
    for (size_t i = 0; i < ARRAY_LEN(locks); i++)
        pthread_mutex_destroy(locks[i]);
    pthread_cond_destroy(&db->flush_wake);
    pthread_cond_destroy(&db->merge_wake);
    pthread_cond_destroy(&db->room);
    mem_free(db->parts_dir);
    mem_free(db->wal_dir);
    mem_free(db->snapshots_dir);
    mem_free(db->path);
    mem_free(db);
}

/* ---- background ------------------------------------------------------------------------------------------------- */

void db_check_disk(struct db *db)
{
    int64_t now = (int64_t)db->env->ops->mono_ns(db->env);
    if (db->disk_checked_ns != 0 && now - db->disk_checked_ns < DISK_CHECK_NS) return;
    db->disk_checked_ns = now == 0 ? 1 : now;
    uint64_t free_bytes, total;
    err e = db->env->ops->free_space(db->env, db->path, &free_bytes, &total);
    if (e != NULL) {
        err_free(e);
        return;
    }
    bool low = free_bytes < db->o.min_free_disk;
    if (atomic_exchange(&db->read_only, low) == low) return;
    if (low)
        log_error(db->log, "disk is nearly full: read-only", "free=%llu min=%llu", (unsigned long long)free_bytes,
                  (unsigned long long)db->o.min_free_disk);
    else
        log_info(db->log, "disk has room again: writes are accepted", "free=%llu", (unsigned long long)free_bytes);
}

static err flush_if_full(struct db *db)
{
    pthread_mutex_lock(&db->flush_lock);
    pthread_mutex_lock(&db->append_lock);
    bool full = db_head_is_full(db) && !head_is_empty(db->head);
    pthread_mutex_unlock(&db->append_lock);
    if (full) db_turn_over(db, NULL);
    err e = db_flush_frozen(db);
    if (e == NULL) e = db_flush_exemplars(db);
    pthread_mutex_unlock(&db->flush_lock);
    return e;
}

static err expire_snapshots(struct db *db)
{
    size_t removed;
    if (db->o.snapshot_max_ms <= 0) return NULL;
    err e = storage_snapshots_remove(db, db_now(db) - db->o.snapshot_max_ms, &removed);
    if (removed > 0) log_info(db->log, "old snapshots removed", "snapshots=%zu", removed);
    return e;
}

static err retain_if_due(struct db *db)
{
    int64_t now = db_now(db);
    if (now - db->retention_checked_ms < RETENTION_CHECK_MS && now >= db->retention_checked_ms) return NULL;
    db->retention_checked_ms = now;
    err e = expire_snapshots(db);
    KEEP_FIRST(db_retain(db));
    return e;
}

/* Memory that nobody needed for a while goes back to the system. */
static void trim_if_idle(struct db *db)
{
    int64_t now = (int64_t)db->env->ops->mono_ns(db->env);
    if (now - db->trimmed_ns < TRIM_NS) return;
    db->trimmed_ns = now;
    block_pool_trim(&db->pool);
}

/* What the flusher does each time it wakes. */
static err flusher_turn(struct db *db)
{
    db_check_disk(db);
    err e = flush_if_full(db);
    KEEP_FIRST(retain_if_due(db));
    trim_if_idle(db);
    return e;
}

err storage_tick(struct db *db)
{
    wal_drain(db->wal);
    err e = flusher_turn(db);
    bool did;
    KEEP_FIRST(db_merge_due(db, &did));
    return e;
}

/* Waits until asked, for some seconds at most. False when stopping. */
static bool wait_asked(struct db *db, pthread_cond_t *wake, bool *asked, unsigned seconds)
{
    struct timespec until = mono_deadline(seconds);
    pthread_mutex_lock(&db->wake_lock);
    bool in_time = true;
    while (!*asked && in_time && !atomic_load(&db->stopping))
        in_time = mono_cond_wait(wake, &db->wake_lock, &until);
    *asked = false;
    pthread_mutex_unlock(&db->wake_lock);
    return !atomic_load(&db->stopping);
}

/* Neither may hold up those who wait for an answer. */
static void step_back(struct db *db, int niceness)
{
    if (db->env->ops->step_back != NULL) db->env->ops->step_back(db->env, niceness);
}

static void *run_flusher(void *arg)
{
    struct db *db = arg;
    step_back(db, FLUSHER_NICE);
    while (wait_asked(db, &db->flush_wake, &db->flush_asked, 1)) {
        err e = flusher_turn(db);
        if (e == NULL) continue;
        log_error(db->log, "flush failed, will be tried again", "error=\"%s\"", err_message(e));
        err_free(e);
        if (!wait_asked(db, &db->flush_wake, &db->flush_asked, 1)) break;
    }
    return NULL;
}

static void *run_merger(void *arg)
{
    struct db *db = arg;
    step_back(db, MERGER_NICE);
    while (wait_asked(db, &db->merge_wake, &db->merge_asked, MERGE_WAIT_SECONDS)) {
        bool did = true;
        while (did && !atomic_load(&db->stopping))
            err_free(db_merge_due(db, &did));
    }
    return NULL;
}

static err start_threads(struct db *db)
{
    if (!db->env->threads) return NULL;
    if (pthread_create(&db->flusher, NULL, run_flusher, db) != 0)
        return err_new(ERR_INTERNAL, "can't start the flush thread");
    if (pthread_create(&db->merger, NULL, run_merger, db) != 0) {
        atomic_store(&db->stopping, true);
        db_ask_flush(db);
        pthread_join(db->flusher, NULL);
        return err_new(ERR_INTERNAL, "can't start the merge thread");
    }
    db->threads_started = true;
    return NULL;
}

void storage_stop_merges(struct db *db)
{
    atomic_store(&db->merges_off, true);
}

static void stop_threads(struct db *db)
{
    storage_stop_merges(db);
    atomic_store(&db->stopping, true);
    if (!db->threads_started) return;
    db_ask_flush(db);
    db_ask_merge(db);
    pthread_join(db->flusher, NULL);
    pthread_join(db->merger, NULL);
    db->threads_started = false;
}

/* ---- opening and closing ---------------------------------------------------------------------------------------- */

static err make_directories(struct db *db)
{
    const char *dirs[] = {db->path, db->parts_dir, db->wal_dir, db->snapshots_dir};
    for (size_t i = 0; i < ARRAY_LEN(dirs); i++)
        TRY(db->env->ops->mkdir(db->env, dirs[i]));
    return db->env->ops->dir_sync(db->env, db->path);
}

static err take_lock(struct db *db)
{
    char *path = join(db->path, "LOCK");
    err e = db->env->ops->lock(db->env, path, &db->lock_file);
    mem_free(path);
    return e;
}

/* The key only serves hashes in memory, so a damaged one is replaced, loudly. */
static err open_identity(struct db *db)
{
    err e = identity_open(db->env, db->path, true, &db->key);
    if (err_code(e) != ERR_CORRUPT) return e;
    log_error(db->log, "the identity file is damaged and is made anew", "error=\"%s\"", err_message(e));
    err_free(e);
    char *path = join(db->path, "IDENTITY");
    e = db->env->ops->unlink(db->env, path);
    mem_free(path);
    return e != NULL ? e : identity_open(db->env, db->path, true, &db->key);
}

static err open_wal(struct db *db, uint32_t generation)
{
    struct wal_options o = {.env = db->env,
                            .dir = db->wal_dir,
                            .sync = db->o.wal_sync,
                            .generation = generation,
                            .seq = db->seq,
                            .log = db->log,
                            .metrics = db->o.metrics,
                            .settled = db->o.settled,
                            .settled_arg = db->o.settled_arg};
    return wal_open(&o, &db->wal);
}

static err open_all(struct db *db)
{
    TRY(make_directories(db));
    TRY(take_lock(db));
    TRY(open_identity(db));
    TRY(recover_parts(db));
    TRY(db_load_exemplars(db));
    uint32_t generation;
    TRY(recover_log(db, &generation));
    creations_begin(db->creations, db_now(db) + (db->view->n_parts > 0 ? CREATIONS_QUIET_MS : 0));
    /* From now on parts without a manifest mean that it was lost, not that a crash cut the first flush short. */
    if (db->manifest_generation == 0) TRY(db_commit(db, &(struct db_change){0}));
    TRY(open_wal(db, generation));
    db_check_disk(db);
    return start_threads(db);
}

err storage_open(const struct storage_options *options, struct db **out)
{
    *out = NULL;
    struct db *db = db_create(options);
    err e = open_all(db);
    if (e != NULL) {
        if (db->wal != NULL) wal_abandon(db->wal);
        db_destroy(db);
        return err_wrap(e, "opening %s", options->path);
    }
    *out = db;
    return NULL;
}

err storage_close(struct db *db)
{
    stop_threads(db);
    err e = storage_flush(db);
    wal_close(db->wal);
    db_destroy(db);
    return e;
}

void storage_abandon(struct db *db)
{
    stop_threads(db);
    wal_abandon(db->wal);
    db_destroy(db);
}

/* ---- statistics ------------------------------------------------------------------------------------------------- */

static void add_part_stats(const struct part *p, struct storage_stats *out)
{
    const struct part_meta *m = part_meta(p);
    out->parts++;
    out->part_samples += m->samples;
    out->part_bytes += m->bytes;
    out->part_index_bytes += part_resident_bytes(p);
    out->damaged_parts += part_damaged(p);
    if (m->t_min < out->part_t_min) out->part_t_min = m->t_min;
    if (m->t_max > out->part_t_max) out->part_t_max = m->t_max;
}

static void add_head_stats(const struct head *h, struct storage_stats *out)
{
    uint32_t series = atomic_load(&h->series);
    int64_t t_min = atomic_load(&h->t_min), t_max = atomic_load(&h->t_max);
    if (series > out->head_series) out->head_series = series;
    out->head_samples += atomic_load(&h->samples);
    out->head_chunks += atomic_load(&h->chunks);
    out->head_bytes += atomic_load(&h->bytes);
    if (t_min < out->head_t_min) out->head_t_min = t_min;
    if (t_max > out->head_t_max) out->head_t_max = t_max;
}

/* Since the start; 0 before anything was written. */
static double write_amplification(struct db *db)
{
    uint64_t logged = wal_written(db->wal);
    uint64_t parts = counter_value(db->metrics.flushed_bytes) + counter_value(db->metrics.merged_bytes);
    return logged == 0 ? 0 : (double)parts / (double)logged;
}

static void count_snapshot(void *arg, str name)
{
    (void)name;
    ++*(uint64_t *)arg;
}

void storage_stats(struct db *db, struct storage_stats *out)
{
    *out = (struct storage_stats){
        .head_t_min = INT64_MAX, .head_t_max = INT64_MIN, .part_t_min = INT64_MAX, .part_t_max = INT64_MIN};
    struct view *v = db_view(db);
    for (size_t i = 0; i < v->n_parts; i++) { /* by partition */
        int32_t partition = part_meta(v->parts[i].part)->partition;
        out->partitions += i == 0 || partition != part_meta(v->parts[i - 1].part)->partition;
        add_part_stats(v->parts[i].part, out);
    }
    for (size_t i = 0; i < v->n_heads; i++)
        add_head_stats(v->heads[i], out);
    out->wal_segments = v->n_heads;
    view_unref(v);
    pthread_mutex_lock(&db->append_lock);
    out->registry_series = registry_count(db->registry);
    out->symbols = registry_symbols(db->registry);
    out->registry_bytes = registry_bytes(db->registry);
    out->wal_bytes = wal_bytes(db->wal);
    pthread_mutex_unlock(&db->append_lock);
    out->merges_running = atomic_load_explicit(&db->merging, memory_order_relaxed);
    out->write_amplification = write_amplification(db);
    err_free(storage_snapshot_list(db, count_snapshot, &out->snapshots));
    out->cache_bytes = fcache_bytes(db->cache);
    if (db->exemplars != NULL) exemplars_stats(db->exemplars, &out->exemplars);
    out->read_only = atomic_load(&db->read_only);
}
