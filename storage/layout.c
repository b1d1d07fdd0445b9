/*
 * layout.c: what lies on disk, for people who look: part by part, and the log and the disk as a whole.
 *
 * Reads a view, as any reader does: parts that a merge replaces meanwhile are still there until the
 * call ends. Any thread.
 */
#include "storage/base/alloc.h"
#include "storage/db_internal.h"
#include "storage/partition.h"

static void describe_part(const struct part *p, struct storage_part *out)
{
    const struct part_meta *m = part_meta(p);
    const char *path = part_path(p), *base = strrchr(path, '/');
    *out = (struct storage_part){.name = base == NULL ? path : base + 1,
                                 .partition = m->partition,
                                 .level = m->level,
                                 .series = m->series,
                                 .samples = m->samples,
                                 .blocks = m->blocks,
                                 .bytes = m->bytes,
                                 .t_min = m->t_min,
                                 .t_max = m->t_max,
                                 .resident_bytes = part_resident_bytes(p),
                                 .damaged = part_damaged(p)};
    partition_name(m->partition, out->partition_name);
}

void storage_parts_each(struct db *db, storage_part_fn fn, void *arg)
{
    struct view *v = db_view(db);
    for (size_t i = 0; i < v->n_parts; i++) {
        struct storage_part p;
        describe_part(v->parts[i].part, &p);
        fn(arg, &p);
    }
    view_unref(v);
}

static void read_merges(struct db *db, struct storage_disk *out)
{
    struct view *v = db_view(db);
    out->merges_waiting = db_merges_waiting(v);
    view_unref(v);
    out->merges_running = atomic_load_explicit(&db->merging, memory_order_relaxed);
    out->merges = counter_value(db->metrics.merges);
    if (out->merges_waiting > 0 && out->merges_running > 0) out->merges_waiting--; /* that one is under way */
}

err storage_disk(struct db *db, struct storage_disk *out)
{
    *out = (struct storage_disk){.path = db->path};
    read_merges(db, out);
    wal_totals(db->wal, &out->wal_segments, &out->wal_bytes);
    return db->env->ops->free_space(db->env, db->path, &out->free_bytes, &out->total_bytes);
}
