/*
 * db_flush.c: turning the head over and writing frozen heads out as parts.
 *
 * A frozen head goes to one part per UTC month it has samples of. Its series are visited in storage
 * order, which the registry keeps from flush to flush; months other than the first cost a pass over
 * the series each (backfill). Once the manifest names the parts, the log segments of the head go.
 */
#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/db_internal.h"
#include "storage/partition.h"

#define DEAD_SERIES_MIN 20000 /* a registry smaller than this is not worth replacing */
#define PARTITIONS_MAX 4096   /* months that one head may span: 1970 .. 2262 and some */

bool db_head_is_full(struct db *db)
{
    const struct head *h = db->head;
    if (atomic_load_explicit(&h->bytes, memory_order_relaxed) >= db->o.head_max_bytes) return true;
    if (wal_bytes(db->wal) >= db->o.wal_max_bytes && !head_is_empty(h)) return true;
    if (h->born_ns == 0) return false;
    return db->env->ops->mono_ns(db->env) - h->born_ns >= (uint64_t)db->o.head_max_age_ms * 1000000;
}

/* A third of the registry has no samples in the head: live series will register again, dead ones are forgotten. */
static bool registry_is_stale(const struct db *db)
{
    uint32_t all = registry_count(db->registry);
    uint32_t live = atomic_load_explicit(&db->head->series, memory_order_relaxed);
    return all > DEAD_SERIES_MIN && (uint64_t)(all - live) * 3 > all;
}

void db_turn_over(struct db *db, uint64_t *seq)
{
    pthread_mutex_lock(&db->append_lock);
    if (seq != NULL) *seq = ++db->seq;
    if (!head_is_empty(db->head)) {
        if (registry_is_stale(db)) {
            registry_unref(db->registry);
            db->registry = registry_create(&db->key);
            creations_turn_over(db->creations);
        }
        struct head *fresh = head_create(db->registry, &db->pool, wal_rotate(db->wal));
        pthread_mutex_lock(&db->view_lock);
        struct view *v = view_create(db->view->parts, db->view->n_parts, db->view);
        v->heads[v->n_heads++] = head_ref(fresh);
        view_swap_locked(db, v);
        pthread_mutex_unlock(&db->view_lock);
        head_unref(db->head);
        db->head = fresh;
        atomic_fetch_add(&db->frozen, 1);
    }
    pthread_mutex_unlock(&db->append_lock);
}

/* ---- one head → parts ------------------------------------------------------------------------------------------- */

struct flush {
    struct db *db;
    struct head *head;
    struct registry_order order;
    bool single;          /* all samples are of one month */
    int64_t t_min, t_max; /* of the month being written */
    uint32_t *rank;       /* registry symbol → symbol of the part */
    str *symbols;         /* of the part */
    uint32_t n_symbols;
    struct sample_set set, part_of_set;
    uint32_t *pairs;
    size_t pairs_cap;
};

static bool series_concerned(const struct flush *f, uint32_t handle)
{
    return f->single ? head_has(f->head, handle) : head_touches(f->head, handle, f->t_min, f->t_max);
}

/* Marks the symbols in use, then lists them in byte order. */
static void collect_symbols(struct flush *f)
{
    const struct registry *r = f->head->registry;
    memset(f->rank, 0, f->order.n_symbols * sizeof *f->rank);
    for (uint32_t i = 0; i < f->order.n_series; i++) {
        uint32_t handle = f->order.series[i];
        if (!series_concerned(f, handle)) continue;
        const struct series *s = registry_at(r, handle);
        const uint32_t *pairs = registry_pairs(r, s);
        for (uint32_t k = 0; k < 2u * s->n_pairs; k++)
            f->rank[pairs[k]] = 1;
    }
    f->n_symbols = 0;
    for (uint32_t i = 0; i < f->order.n_symbols; i++) {
        uint32_t number = f->order.symbols[i];
        if (f->rank[number] == 0) continue;
        const struct symbol *symbol = registry_symbol_at(r, number);
        f->symbols[f->n_symbols] = (str){symbol->p, symbol->n};
        f->rank[number] = f->n_symbols++;
    }
}

/* Floats and histograms go to the writer apart. */
static err write_mixed(struct flush *f, struct part_writer *w)
{
    const struct sample_set *s = &f->set;
    struct sample_set *part = &f->part_of_set;
    sample_set_clear(part);
    for (size_t i = 0; i < s->n; i++) {
        if (s->hist[i].n > 0) continue;
        sample_set_push(part, s->t[i], s->v[i]);
        if (s->start != NULL) sample_set_mark_start(part, s->start[i]);
    }
    TRY(part_writer_floats_started(w, part->t, part->v, part->start, part->n));
    sample_set_clear(part);
    for (size_t i = 0; i < s->n; i++) {
        if (s->hist[i].n == 0) continue;
        sample_set_push_hist(part, s->t[i], s->v[i], s->hist[i]);
        if (s->start != NULL) sample_set_mark_start(part, s->start[i]);
    }
    return part_writer_hists_started(w, part->t, part->hist, part->start, part->n);
}

static err write_series(struct flush *f, struct part_writer *w, uint32_t handle)
{
    const struct registry *r = f->head->registry;
    sample_set_clear(&f->set);
    head_read(f->head, handle, f->t_min, f->t_max, &f->set);
    if (f->set.n == 0) return NULL;
    sample_set_settle(&f->set);

    const struct series *s = registry_at(r, handle);
    const uint32_t *pairs = registry_pairs(r, s);
    f->pairs = mem_grow(f->pairs, &f->pairs_cap, 2u * s->n_pairs + 1, sizeof *f->pairs);
    for (uint32_t k = 0; k < 2u * s->n_pairs; k++)
        f->pairs[k] = f->rank[pairs[k]];
    TRY(part_writer_series(w, f->pairs, s->n_pairs));
    if (f->set.hist != NULL) return write_mixed(f, w);
    return part_writer_floats_started(w, f->set.t, f->set.v, f->set.start, f->set.n);
}

static err write_all_series(struct flush *f, struct part_writer *w)
{
    for (uint32_t i = 0; i < f->order.n_series; i++)
        if (series_concerned(f, f->order.series[i])) TRY(write_series(f, w, f->order.series[i]));
    return NULL;
}

/* The part of one month. */
static err write_partition(struct flush *f, int32_t partition, struct view_part *out)
{
    struct db *db = f->db;
    char path[4096];
    struct part_meta meta = {.partition = partition, .seq_min = f->head->seq_min, .seq_max = f->head->seq_max};
    meta.id = db_new_part(db, partition, path, sizeof path);
    f->t_min = partition_start(partition);
    f->t_max = partition_start(partition + 1) - 1;
    collect_symbols(f);

    struct part_writer *w = NULL;
    err e = part_writer_create(db->env, path, &meta, f->symbols, f->n_symbols, &w);
    if (e == NULL) e = write_all_series(f, w);
    if (e == NULL) e = part_writer_finish(w, &meta);
    part_writer_destroy(w);
    if (e == NULL) e = part_open(db->env, path, &db->key, db->cache, &out->part);
    if (e != NULL) return err_wrap(e, "writing %s", path);
    counter_add(db->metrics.flushed_samples, meta.samples);
    counter_add(db->metrics.flushed_bytes, meta.bytes);
    log_info(db->log, "part written", "path=%s samples=%llu series=%llu bytes=%llu", path,
             (unsigned long long)meta.samples, (unsigned long long)meta.series, (unsigned long long)meta.bytes);
    return NULL;
}

/* Which months have samples: all between the first and the last that some series touches. */
static size_t months_of(const struct flush *f, int32_t first, int32_t last, int32_t *out)
{
    size_t n = 0;
    for (int32_t p = first; p <= last && n < PARTITIONS_MAX; p++) {
        int64_t from = partition_start(p), to = partition_start(p + 1) - 1;
        for (uint32_t i = 0; i < f->order.n_series; i++) {
            if (!head_touches(f->head, f->order.series[i], from, to)) continue;
            out[n++] = p;
            break;
        }
    }
    return n;
}

static err write_parts(struct flush *f, struct view_part **parts, size_t *n_parts)
{
    int32_t first = partition_of(atomic_load(&f->head->t_min)), last = partition_of(atomic_load(&f->head->t_max));
    int32_t *months = mem_alloc(PARTITIONS_MAX * sizeof *months);
    f->single = first == last;
    size_t n = 1;
    months[0] = first;
    if (!f->single) n = months_of(f, first, last, months);
    *parts = mem_zalloc(n * sizeof **parts);
    *n_parts = 0;
    err e = NULL;
    for (size_t i = 0; i < n && e == NULL; i++) {
        e = write_partition(f, months[i], &(*parts)[i]);
        if (e == NULL) (*n_parts)++;
    }
    mem_free(months);
    if (e == NULL) e = f->db->env->ops->dir_sync(f->db->env, f->db->parts_dir);
    return e;
}

err db_write_head(struct db *db, struct head *h, uint32_t wal_floor)
{
    uint64_t start = db->env->ops->mono_ns(db->env);
    struct flush f = {.db = db, .head = h, .order = registry_sorted(h->registry)};
    f.rank = mem_alloc(f.order.n_symbols * sizeof *f.rank + 1);
    f.symbols = mem_alloc(f.order.n_symbols * sizeof *f.symbols + 1);
    struct view_part *parts = NULL;
    size_t n_parts = 0;
    bool committing = false;
    err e = write_parts(&f, &parts, &n_parts);
    if (e == NULL && wal_floor > 0) e = db_save_exemplars(db);
    if (e == NULL) {
        committing = true;
        e = db_commit(
            db,
            &(struct db_change){
                .add = parts, .n_add = n_parts, .written_out = h, .wal_floor = wal_floor, .durable_seq = h->seq_max});
    }
    for (size_t i = 0; i < n_parts; i++) {
        if (e != NULL && !committing) part_delete_on_unref(parts[i].part);
        part_unref(parts[i].part);
    }
    mem_free(parts);
    mem_free(f.rank);
    mem_free(f.symbols);
    mem_free(f.pairs);
    sample_set_deinit(&f.set);
    sample_set_deinit(&f.part_of_set);
    counter_inc(e == NULL ? db->metrics.flushes : db->metrics.flush_failures);
    histogram_observe(db->metrics.flush_seconds, (double)(db->env->ops->mono_ns(db->env) - start) / 1e9);
    return e;
}

/* The oldest frozen head and the log generation that follows it, referenced; NULL if there is none. */
static struct head *oldest_frozen(struct db *db, uint32_t *next_generation)
{
    struct view *v = db_view(db);
    struct head *h = v->n_heads > 1 ? head_ref(v->heads[0]) : NULL;
    if (h != NULL) *next_generation = v->heads[1]->wal_gen;
    view_unref(v);
    return h;
}

static void announce_room(struct db *db)
{
    pthread_mutex_lock(&db->wake_lock);
    atomic_fetch_sub(&db->frozen, 1);
    pthread_cond_broadcast(&db->room);
    pthread_mutex_unlock(&db->wake_lock);
}

err db_flush_frozen(struct db *db)
{
    uint32_t next_generation;
    for (struct head *h; (h = oldest_frozen(db, &next_generation)) != NULL;) {
        err e = db_write_head(db, h, next_generation);
        head_unref(h);
        if (e != NULL) return e;
        announce_room(db);
        TRY(wal_retire(db->wal, next_generation));
        db_ask_merge(db);
    }
    return NULL;
}

err storage_flush(struct db *db)
{
    pthread_mutex_lock(&db->flush_lock);
    db_turn_over(db, NULL);
    err e = db_flush_frozen(db);
    pthread_mutex_unlock(&db->flush_lock);
    return e;
}

err storage_delete(struct db *db, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max)
{
    /* What was written so far goes to parts first: then the write number alone tells what the delete holds for. The
     * number is the delete's own, else one that a merge has applied already could hide the next. Until the delete is
     * in the view no later write may get to a part: merged with an earlier one, it would outlive the delete. */
    uint64_t seq;
    struct tombstone *t = NULL;
    pthread_mutex_lock(&db->flush_lock);
    db_turn_over(db, &seq);
    err e = db_flush_frozen(db);
    if (e == NULL) e = tombstone_create(seq, t_min, t_max, m, n, &t);
    if (e == NULL) e = db_commit(db, &(struct db_change){.tombstone = t, .durable_seq = seq});
    pthread_mutex_unlock(&db->flush_lock);
    tombstone_unref(t);
    db_ask_merge(db);
    return e;
}
