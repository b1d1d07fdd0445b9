/*
 * db.c: the write path (storage_append), views, and what the background threads do and when.
 *
 * A batch passes in four steps under append_lock: look up each series by its alias (new ones are
 * resolved and registered), sort out samples beyond the retention or too far in the future, queue one
 * log record, append to the head. Answering waits for the log (wal.c), not for this lock.
 */
#include "storage/db_internal.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/limits.h"
#include "storage/base/map.h"
#include "storage/base/mono.h"

#define FROZEN_MAX 3        /* heads waiting to be written out before writers have to wait */
#define ROOM_WAIT_SECONDS 5 /* how long a writer waits for a flush before it is refused */
#define PREFETCH_AHEAD 12
#define METADATA_MAX 200000

int64_t db_now(const struct db *db)
{
    return db->env->ops->now_ms(db->env);
}

int64_t db_retention_start(const struct db *db)
{
    return db->o.retention_ms > 0 ? db_now(db) - db->o.retention_ms : INT64_MIN;
}

const struct hash_key *storage_hash_key(const struct db *db)
{
    return &db->key;
}

/* ---- views ------------------------------------------------------------------------------------------------------ */

struct view *db_view(struct db *db)
{
    pthread_mutex_lock(&db->view_lock);
    struct view *v = db->view;
    atomic_fetch_add_explicit(&v->refs, 1, memory_order_relaxed);
    pthread_mutex_unlock(&db->view_lock);
    return v;
}

void view_unref(struct view *v)
{
    if (v == NULL || atomic_fetch_sub_explicit(&v->refs, 1, memory_order_acq_rel) != 1) return;
    for (size_t i = 0; i < v->n_parts; i++)
        part_unref(v->parts[i].part);
    for (size_t i = 0; i < v->n_heads; i++)
        head_unref(v->heads[i]);
    for (size_t i = 0; i < v->n_tombstones; i++)
        tombstone_unref(v->tombstones[i]);
    mem_free(v->parts);
    mem_free(v->heads);
    mem_free(v->tombstones);
    mem_free(v);
}

/* ---- appending -------------------------------------------------------------------------------------------------- */

static void reject(struct append_result *result, uint32_t series, err e)
{
    if (result->first == NULL) {
        result->first = e;
        result->first_series = series;
    } else {
        err_free(e);
    }
}

/* An alias not seen before: asks for the labels, registers them. Returns the alias number or ALIAS_NONE. */
static uint32_t register_series(struct db *db, const struct batch *b, uint32_t i, struct append_result *result)
{
    struct append_scratch *s = &db->scratch;
    struct labels ls = {0};
    arena_reset(&s->arena);
    err e = b->resolve(b->resolve_arg, i, &s->arena, &ls);
    if (e == NULL) e = labels_canonicalize(&ls);
    if (e == NULL && b->require_name && labels_get(&ls, LABEL_NAME).n == 0)
        e = err_new(ERR_INVALID, "the series has no metric name (label __name__)");
    if (e == NULL && ls.n == 0) e = err_new(ERR_INVALID, "the series has no labels");
    if (e != NULL) {
        result->bad_labels += b->series[i].n;
        reject(result, i, e);
        return ALIAS_NONE;
    }
    uint32_t before = registry_count(db->registry);
    uint32_t alias = registry_add(db->registry, b->series[i].alias, &ls);
    if (registry_count(db->registry) == before) return alias;
    counter_inc(db->metrics.new_series);
    creations_add(db->creations, registry_id(db->registry, before), labels_get(&ls, LABEL_NAME), db_now(db));
    return alias;
}

/* Fills scratch.handles and counts, one a batch series; SERIES_NONE marks a rejected one. */
static bool find_series(struct db *db, const struct batch *b, struct append_result *result)
{
    struct append_scratch *s = &db->scratch;
    if (b->n_series > s->handles_cap) {
        s->handles = mem_grow(s->handles, &s->handles_cap, b->n_series, sizeof *s->handles);
        s->counts = mem_grow(s->counts, &s->counts_cap, b->n_series, sizeof *s->counts);
    }
    uint32_t previous = ALIAS_NONE;
    bool all = true;
    for (uint32_t i = 0; i < b->n_series; i++) {
        uint32_t alias = registry_find(db->registry, b->series[i].alias, previous);
        if (alias == ALIAS_NONE) alias = register_series(db, b, i, result);
        s->counts[i] = b->series[i].n;
        s->handles[i] = alias == ALIAS_NONE ? SERIES_NONE : registry_alias_series(db->registry, alias);
        if (alias == ALIAS_NONE)
            all = false;
        else
            previous = alias;
    }
    return all;
}

struct time_window {
    int64_t from, to; /* what samples may have, inclusive */
};

static struct time_window accepted_times(const struct db *db)
{
    int64_t now = db_now(db);
    struct time_window w = {LIMIT_TIME_MIN, LIMIT_TIME_MAX};
    if (db->o.retention_ms > 0 && now - db->o.retention_ms > w.from) w.from = now - db->o.retention_ms;
    if (db->o.future_ms > 0 && now + db->o.future_ms < w.to) w.to = now + db->o.future_ms;
    return w;
}

static bool times_fit(const struct batch *b, struct time_window w)
{
    bool fit = true;
    for (uint32_t i = 0; i < b->n_samples; i++)
        fit &= (b->t[i] >= w.from) & (b->t[i] <= w.to);
    return fit;
}

static void reject_time(struct append_result *result, uint32_t series, int64_t t, struct time_window w)
{
    bool old = t < w.from;
    if (old)
        result->too_old++;
    else
        result->too_new++;
    if (result->first == NULL)
        reject(result, series,
               old ? err_new(ERR_INVALID, "timestamp %lld ms is older than the retention (--storage.retention) allows",
                             (long long)t)
                   : err_new(ERR_INVALID,
                             "timestamp %lld ms is further in the future than --storage.future-window allows",
                             (long long)t));
}

/* The value of a histogram is its sum. ERR_INVALID on a malformed blob. */
static err hist_value(struct db *db, str blob, double *sum)
{
    struct hist h;
    arena_reset(&db->scratch.arena);
    TRY(hist_decode(blob, &db->scratch.arena, &h));
    *sum = h.sum;
    return NULL;
}

/* Copies what is acceptable to scratch.kept, and compacts handles and counts. Returns the number of runs. */
static uint32_t sort_out(struct db *db, const struct batch *b, struct time_window w, struct append_result *result)
{
    struct append_scratch *s = &db->scratch;
    uint32_t runs = 0, at = 0;
    sample_set_clear(&s->kept);
    for (uint32_t i = 0; i < b->n_series; at += b->series[i++].n) {
        if (s->handles[i] == SERIES_NONE) continue;
        uint32_t kept = 0;
        for (uint32_t k = at; k < at + b->series[i].n; k++) {
            bool is_hist = b->hist != NULL && b->hist[k].n > 0;
            double v = b->v[k];
            if (b->t[k] < w.from || b->t[k] > w.to) {
                reject_time(result, i, b->t[k], w);
                continue;
            }
            err e = is_hist ? hist_value(db, b->hist[k], &v) : NULL;
            if (e != NULL) {
                result->bad_labels++;
                reject(result, i, e);
                continue;
            }
            result->accepted_hists += is_hist;
            if (is_hist)
                sample_set_push_hist(&s->kept, b->t[k], v, b->hist[k]);
            else
                sample_set_push(&s->kept, b->t[k], v);
            if (b->start != NULL) sample_set_mark_start(&s->kept, b->start[k]);
            kept++;
        }
        if (kept == 0) continue;
        s->handles[runs] = s->handles[i];
        s->counts[runs++] = kept;
    }
    return runs;
}

void db_define_series(struct db *db, uint32_t handle, uint32_t generation)
{
    struct wal_defs *defs = &db->scratch.defs;
    struct series *series = registry_at(db->registry, handle);
    if (series->wal_gen == generation) return;
    series->wal_gen = generation;
    const uint32_t *pairs = registry_pairs(db->registry, series);
    for (uint32_t k = 0; k < 2u * series->n_pairs; k++) {
        struct symbol *symbol = registry_symbol_at(db->registry, pairs[k]);
        if (symbol->wal_gen == generation) continue;
        symbol->wal_gen = generation;
        wal_defs_symbol(defs, pairs[k], (str){symbol->p, symbol->n});
    }
    wal_defs_series(defs, handle, pairs, series->n_pairs);
}

/* Definitions that the log segment lacks, for the series of the runs: those without samples in the head, as a rule. */
static void gather_defs(struct db *db, const struct wal_batch *w)
{
    uint32_t generation = wal_generation(db->wal);
    bool all = db->head->defined_gen != generation; /* a segment failed, or the head was replayed */
    wal_defs_clear(&db->scratch.defs);
    for (uint32_t i = 0; i < w->n_runs; i++)
        if (all || head_is_new(db->head, w->handles[i])) db_define_series(db, w->handles[i], generation);
}

/* One log record and the samples into the head. */
static void append_runs(struct db *db, const struct wal_batch *w)
{
    struct append_scratch *s = &db->scratch;
    struct head *h = db->head;
    uint64_t seq = ++db->seq;
    gather_defs(db, w);
    size_t at = wal_record_begin(&s->record);
    enum wal_type type = wal_batch_encode(&s->record, &s->defs, w);
    wal_record_end(&s->record, at, type, seq);
    wal_put(db->wal, seq, &s->record);

    if (h->born_ns == 0) h->born_ns = db->env->ops->mono_ns(db->env) + 1;
    if (seq < h->seq_min) h->seq_min = seq;
    h->seq_max = seq;
    uint32_t sample = 0;
    for (uint32_t i = 0; i < w->n_runs; i++) {
        if (i + PREFETCH_AHEAD < w->n_runs) head_prefetch(h, w->handles[i + PREFETCH_AHEAD]);
        head_append(h, w->handles[i], w->t + sample, w->v + sample, w->hist == NULL ? NULL : w->hist + sample,
                    w->start == NULL ? NULL : w->start + sample, w->counts[i]);
        sample += w->counts[i];
    }
}

static int64_t oldest_time(const struct wal_batch *w)
{
    int64_t oldest = INT64_MAX;
    for (uint32_t i = 0; i < w->n_samples; i++)
        oldest = w->t[i] < oldest ? w->t[i] : oldest;
    return oldest;
}

static void append_locked(struct db *db, const struct batch *b, struct append_result *result)
{
    struct append_scratch *s = &db->scratch;
    struct time_window window = accepted_times(db);
    bool whole = find_series(db, b, result) && b->hist == NULL && times_fit(b, window);
    struct wal_batch w = {.handles = s->handles, .counts = s->counts};
    if (whole) {
        w.n_runs = b->n_series;
        w.n_samples = b->n_samples;
        w.t = b->t;
        w.v = b->v;
        w.start = b->start;
    } else {
        w.n_runs = sort_out(db, b, window, result);
        w.n_samples = (uint32_t)s->kept.n;
        w.t = s->kept.t;
        w.v = s->kept.v;
        w.hist = s->kept.hist;
        w.start = s->kept.start;
    }
    result->accepted = w.n_samples;
    if (w.n_samples > 0) {
        append_runs(db, &w);
        changes_note(db->changes, oldest_time(&w));
        result->seq = db->seq;
    }
    db_append_exemplars_locked(db, b, result);
}

/* Waits (bounded) while flushes lag behind. Not under append_lock. */
static err wait_for_room(struct db *db)
{
    if (atomic_load_explicit(&db->frozen, memory_order_relaxed) < FROZEN_MAX) return NULL;
    if (!db->threads_started) return NULL;
    struct timespec until = mono_deadline(ROOM_WAIT_SECONDS);
    bool in_time = true;
    pthread_mutex_lock(&db->wake_lock);
    while (atomic_load(&db->frozen) >= FROZEN_MAX && in_time)
        in_time = mono_cond_wait(&db->room, &db->wake_lock, &until);
    pthread_mutex_unlock(&db->wake_lock);
    if (in_time) return NULL;
    counter_inc(db->metrics.rejected_busy);
    return err_new(ERR_BUSY, "memory for new samples is full and writing it out lags behind; try again");
}

err storage_append(struct db *db, const struct batch *batch, struct append_result *result)
{
    *result = (struct append_result){0};
    if (atomic_load(&db->read_only))
        return err_new(ERR_READ_ONLY, "the disk is nearly full (--storage.min-free-disk); writes are refused until "
                                      "there is room again");
    TRY(wait_for_room(db));
    pthread_mutex_lock(&db->append_lock);
    append_locked(db, batch, result);
    bool full = db_head_is_full(db);
    pthread_mutex_unlock(&db->append_lock);
    wal_drain(db->wal);
    if (full) db_ask_flush(db);
    counter_inc(db->metrics.batches);
    counter_add(db->metrics.samples, result->accepted);
    counter_add(db->metrics.rejected_old, result->too_old);
    counter_add(db->metrics.rejected_new, result->too_new);
    counter_add(db->metrics.rejected_labels, result->bad_labels);
    return NULL;
}

uint64_t storage_version(struct db *db)
{
    return changes_version(db->changes);
}

int64_t storage_unchanged_before(struct db *db, uint64_t version)
{
    return changes_since(db->changes, version);
}

int64_t storage_retention_start(struct db *db)
{
    return db_retention_start(db);
}

err storage_wait(struct db *db, uint64_t seq)
{
    return seq == 0 ? NULL : wal_wait(db->wal, seq);
}

/* ---- waking the background -------------------------------------------------------------------------------------- */

void db_ask_flush(struct db *db)
{
    pthread_mutex_lock(&db->wake_lock);
    db->flush_asked = true;
    pthread_cond_signal(&db->flush_wake);
    pthread_mutex_unlock(&db->wake_lock);
}

void db_ask_merge(struct db *db)
{
    pthread_mutex_lock(&db->wake_lock);
    db->merge_asked = true;
    pthread_cond_signal(&db->merge_wake);
    pthread_mutex_unlock(&db->wake_lock);
}

/* ---- metadata --------------------------------------------------------------------------------------------------- */

struct metadata_entry {
    struct metric_metadata m;
    struct arena arena;
};

void storage_metadata_put(struct db *db, const struct metric_metadata *m)
{
    pthread_mutex_lock(&db->metadata_lock);
    void **found = strmap_get(db->metadata, m->metric);
    struct metadata_entry *entry = found == NULL ? NULL : *found;
    if (entry == NULL && strmap_count(db->metadata) < METADATA_MAX) {
        entry = mem_zalloc(sizeof *entry);
        strmap_put(db->metadata, m->metric, entry, NULL);
    }
    if (entry != NULL && !(str_eq(entry->m.type, m->type) && str_eq(entry->m.help, m->help) &&
                           str_eq(entry->m.unit, m->unit) && entry->m.metric.n > 0)) {
        struct arena *a = &entry->arena;
        arena_reset(a);
        entry->m = (struct metric_metadata){arena_str(a, m->metric), arena_str(a, m->type), arena_str(a, m->help),
                                            arena_str(a, m->unit)};
    }
    pthread_mutex_unlock(&db->metadata_lock);
}

void storage_metadata_each(struct db *db, str metric, storage_metadata_fn fn, void *arg)
{
    pthread_mutex_lock(&db->metadata_lock);
    size_t at = 0;
    str key;
    void *value;
    if (metric.n > 0) {
        void **found = strmap_get(db->metadata, metric);
        if (found != NULL) fn(arg, &((struct metadata_entry *)*found)->m);
    } else {
        while (strmap_next(db->metadata, &at, &key, &value))
            if (!fn(arg, &((struct metadata_entry *)value)->m)) break;
    }
    pthread_mutex_unlock(&db->metadata_lock);
}

void db_metadata_destroy(struct db *db)
{
    size_t at = 0;
    str key;
    void *value;
    while (strmap_next(db->metadata, &at, &key, &value)) {
        arena_deinit(&((struct metadata_entry *)value)->arena);
        mem_free(value);
    }
    strmap_destroy(db->metadata);
}
