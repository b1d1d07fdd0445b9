/*
 * db_merge.c: which parts to merge, and when parts go for good.
 *
 * Only neighbours in write order inside one partition are merged, so that "last write wins" and "a
 * delete holds for what was written before it" need no per-sample write numbers. The choice is
 * size-tiered: of all runs of 2 to 16 neighbours the one whose total is the largest multiple of its
 * largest member, if that multiple is high enough to pay: each byte is rewritten a logarithmic number
 * of times. A part that a delete still concerns is rewritten alone when nothing else is due.
 */
#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/db_internal.h"
#include "storage/merge.h"
#include "storage/partition.h"

#define RUN_MAX 16
#define GAIN_MIN 2.5 /* total size over largest part: below it a merge rewrites too much for too little */
#define PARTS_MAX 24 /* in a partition, beyond which any merge of neighbours pays */
#define PART_BYTES_MAX (32ull << 30) /* no merge makes a larger part */

struct run {
    size_t first, n; /* in view->parts */
};

/* ---- choosing --------------------------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct view *v, size_t i)
{
    return part_meta(v->parts[i].part)->bytes + 4096; /* a part costs something of itself */
}

/* The best run among parts [first, first + n), all of one partition. */
static struct run best_run(const struct view *v, size_t first, size_t n)
{
    struct run best = {0};
    double best_gain = n > PARTS_MAX ? 1.0 : GAIN_MIN;
    for (size_t i = first; i < first + n; i++) {
        uint64_t total = 0, largest = 0;
        for (size_t k = i; k < first + n && k < i + RUN_MAX; k++) {
            if (part_damaged(v->parts[k].part)) break;
            uint64_t bytes = bytes_of(v, k);
            total += bytes;
            if (bytes > largest) largest = bytes;
            if (total > PART_BYTES_MAX) break;
            double gain = (double)total / (double)largest;
            if (k > i && gain > best_gain) {
                best_gain = gain;
                best = (struct run){i, k - i + 1};
            }
        }
    }
    return best;
}

static bool has_pending_delete(const struct view *v, size_t i)
{
    const struct part_meta *m = part_meta(v->parts[i].part);
    for (size_t t = 0; t < v->n_tombstones; t++)
        if (tombstone_concerns(v->tombstones[t], m->seq_max, v->parts[i].clean_seq) &&
            m->t_min <= v->tombstones[t]->t_max && m->t_max >= v->tombstones[t]->t_min)
            return true;
    return false;
}

static size_t partition_end(const struct view *v, size_t first)
{
    size_t end = first + 1;
    while (end < v->n_parts && part_meta(v->parts[end].part)->partition == part_meta(v->parts[first].part)->partition)
        end++;
    return end;
}

static struct run choose(const struct view *v)
{
    for (size_t first = 0, end; first < v->n_parts; first = end) {
        end = partition_end(v, first);
        struct run r = best_run(v, first, end - first);
        if (r.n > 0) return r;
    }
    for (size_t i = 0; i < v->n_parts; i++)
        if (has_pending_delete(v, i) && !part_damaged(v->parts[i].part)) return (struct run){i, 1};
    return (struct run){0};
}

size_t db_merges_waiting(const struct view *v)
{
    size_t n = 0;
    for (size_t first = 0, end; first < v->n_parts; first = end) {
        end = partition_end(v, first);
        n += best_run(v, first, end - first).n > 0;
    }
    return n;
}

/* ---- merging ---------------------------------------------------------------------------------------------------- */

struct delete_context {
    const struct view *view;
    struct run run;
};

static err deletes_of(void *arg, const struct labels *ls, size_t input, struct time_ranges *out)
{
    const struct delete_context *c = arg;
    const struct view_part *p = &c->view->parts[c->run.first + input];
    for (size_t i = 0; i < c->view->n_tombstones; i++) {
        const struct tombstone *t = c->view->tombstones[i];
        if (!tombstone_concerns(t, part_meta(p->part)->seq_max, p->clean_seq)) continue;
        bool matched;
        TRY(matchers_match(t->m, t->n, ls, &matched));
        if (matched) time_ranges_add(out, t->t_min, t->t_max);
    }
    return NULL;
}

/* Deletes up to this number are applied in a merge over this view. */
static uint64_t clean_seq_after(const struct view *v, struct run r)
{
    uint64_t seq = UINT64_MAX;
    for (size_t i = r.first; i < r.first + r.n; i++)
        if (v->parts[i].clean_seq < seq) seq = v->parts[i].clean_seq;
    for (size_t i = 0; i < v->n_tombstones; i++)
        if (v->tombstones[i]->seq > seq) seq = v->tombstones[i]->seq;
    return seq;
}

/*
 * The oldest time that is kept by what can't be undone; INT64_MIN if all is. The wall clock counts only as far as
 * samples have come: one that runs years ahead (a board without a battery, a wrong time server) drops nothing.
 */
static int64_t drop_before(const struct db *db, const struct view *v)
{
    int64_t newest = INT64_MIN, now = db_now(db);
    for (size_t i = 0; i < v->n_parts; i++)
        if (part_meta(v->parts[i].part)->t_max > newest) newest = part_meta(v->parts[i].part)->t_max;
    for (size_t i = 0; i < v->n_heads; i++) {
        int64_t t_max = atomic_load(&v->heads[i]->t_max);
        if (t_max > newest) newest = t_max;
    }
    if (newest > now) newest = now;
    if (db->o.retention_ms <= 0 || newest < INT64_MIN + db->o.retention_ms) return INT64_MIN;
    return newest - db->o.retention_ms;
}

static err merge_run(struct db *db, const struct view *v, struct run r)
{
    uint64_t start = db->env->ops->mono_ns(db->env), bytes_in = 0;
    struct part *inputs[RUN_MAX * 64];
    check(r.n > 0);
    check(r.n <= ARRAY_LEN(inputs));
    for (size_t i = 0; i < r.n; i++) {
        inputs[i] = v->parts[r.first + i].part;
        bytes_in += part_meta(inputs[i])->bytes;
    }
    char path[4096];
    struct part_meta meta = {.id = db_new_part(db, part_meta(inputs[0])->partition, path, sizeof path)};
    struct delete_context deletes = {v, r};
    struct merge_options o = {.t_keep_min = drop_before(db, v),
                              .dedup_ms = db->o.dedup_ms,
                              .deletes = v->n_tombstones > 0 ? deletes_of : NULL,
                              .deletes_arg = &deletes,
                              .cancel = &db->merges_off};
    TRY(merge_parts(db->env, &db->key, inputs, r.n, path, &meta, &o));

    struct view_part out = {.clean_seq = clean_seq_after(v, r)};
    struct db_change change = {.remove = inputs, .n_remove = r.n, .add = &out, .n_add = meta.samples > 0};
    if (meta.samples > 0) {
        TRY(part_open(db->env, path, &db->key, db->cache, &out.part));
        err e = db->env->ops->dir_sync(db->env, db->parts_dir);
        if (e != NULL) {
            part_delete_on_unref(out.part);
            part_unref(out.part);
            return e;
        }
    }
    err e = db_commit(db, &change);
    part_unref(out.part);
    TRY(e);
    counter_inc(db->metrics.merges);
    counter_add(db->metrics.merged_samples, meta.samples);
    counter_add(db->metrics.merged_bytes, meta.bytes);
    histogram_observe(db->metrics.merge_seconds, (double)(db->env->ops->mono_ns(db->env) - start) / 1e9);
    log_info(db->log, "parts merged", "path=%s parts=%zu samples=%llu bytes_in=%llu bytes=%llu", path, r.n,
             (unsigned long long)meta.samples, (unsigned long long)bytes_in, (unsigned long long)meta.bytes);
    return NULL;
}

/* A merge needs room for its output beside its inputs. */
static bool disk_has_room(struct db *db, const struct view *v, struct run r)
{
    uint64_t need = db->o.min_free_disk, free_bytes = 0, total;
    for (size_t i = 0; i < r.n; i++)
        need += bytes_of(v, r.first + i);
    err e = db->env->ops->free_space(db->env, db->path, &free_bytes, &total);
    bool known = e == NULL;
    err_free(e);
    return !known || free_bytes >= need;
}

static err merge_counted(struct db *db, const struct view *v, struct run r)
{
    atomic_fetch_add_explicit(&db->merging, 1, memory_order_relaxed);
    err e = merge_run(db, v, r);
    atomic_fetch_sub_explicit(&db->merging, 1, memory_order_relaxed);
    if (e != NULL && err_code(e) != ERR_CANCELED) {
        counter_inc(db->metrics.merge_failures);
        log_error(db->log, "merge failed", "error=\"%s\"", err_message(e));
    }
    return e;
}

err db_merge_due(struct db *db, bool *did)
{
    *did = false;
    if (atomic_load(&db->merges_off)) return NULL;
    pthread_mutex_lock(&db->merge_lock);
    struct view *v = db_view(db);
    struct run r = choose(v);
    err e = NULL;
    if (r.n > 0 && disk_has_room(db, v, r)) {
        e = merge_counted(db, v, r);
        *did = e == NULL;
    }
    view_unref(v);
    pthread_mutex_unlock(&db->merge_lock);
    return e;
}

/* The next run that a forced merge still has to do in a partition at or after *from; n = 0 at the end. */
static struct run forced_run(const struct view *v, int32_t partition, int32_t *from)
{
    for (size_t first = 0, end; first < v->n_parts; first = end) {
        end = partition_end(v, first);
        int32_t p = part_meta(v->parts[first].part)->partition;
        if (p < *from || (partition >= 0 && p != partition)) continue;
        size_t sound = first; /* the run ends before a damaged part */
        while (sound < end && part_damaged(v->parts[sound].part))
            sound++;
        size_t n = 0;
        while (sound + n < end && n < RUN_MAX * 64 && !part_damaged(v->parts[sound + n].part))
            n++;
        if (n > 1 || (n == 1 && has_pending_delete(v, sound))) return (struct run){sound, n};
        *from = p + 1;
    }
    return (struct run){0};
}

err storage_merge(struct db *db, int32_t partition)
{
    err e = NULL;
    int32_t from = INT32_MIN;
    for (bool more = true; more && e == NULL && !atomic_load(&db->merges_off);) {
        pthread_mutex_lock(&db->merge_lock);
        struct view *v = db_view(db);
        struct run r = forced_run(v, partition, &from);
        more = r.n > 0;
        if (more && !disk_has_room(db, v, r))
            e = err_new(ERR_NO_SPACE, "not enough free disk space for the merge");
        else if (more)
            e = merge_counted(db, v, r);
        if (more) from = part_meta(v->parts[r.first].part)->partition + (r.n < RUN_MAX * 64);
        view_unref(v);
        pthread_mutex_unlock(&db->merge_lock);
    }
    if (!atomic_load(&db->merges_off)) return e;
    err_free(e);
    return err_new(ERR_BUSY, "the server is stopping; merges go on when it runs again");
}

/* ---- retention -------------------------------------------------------------------------------------------------- */

err db_retain(struct db *db)
{
    if (db->o.retention_ms <= 0) return NULL;
    pthread_mutex_lock(&db->merge_lock); /* a merge must not have these as inputs */
    struct view *v = db_view(db);
    int64_t start = drop_before(db, v);
    struct part **gone = mem_alloc(v->n_parts * sizeof(struct part *) + 1);
    size_t n = 0;
    for (size_t i = 0; i < v->n_parts; i++)
        if (part_meta(v->parts[i].part)->t_max < start) gone[n++] = v->parts[i].part;
    err e = n > 0 ? db_commit(db, &(struct db_change){.remove = gone, .n_remove = n}) : NULL;
    if (e == NULL && n > 0) {
        counter_add(db->metrics.retired_parts, n);
        log_info(db->log, "parts beyond the retention dropped", "parts=%zu", n);
    }
    mem_free(gone);
    view_unref(v);
    pthread_mutex_unlock(&db->merge_lock);
    return e;
}
