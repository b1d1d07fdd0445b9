/*
 * db_commit.c: how the set of parts changes: build the new list, write the manifest, swap the view.
 *
 * Order is what makes a crash harmless: new part files are complete and synced before the manifest
 * names them; the manifest is on disk before the view changes; files that the new manifest no longer
 * names are unlinked only when the last reader lets go of them. If writing the manifest fails, it is
 * unknown which one the disk holds, so nothing that either of them names is removed.
 */
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/db_internal.h"
#include "storage/partition.h"

void db_part_path(const struct db *db, const struct part_meta *m, char *path, size_t n)
{
    char month[32];
    partition_name(m->partition, month);
    snprintf(path, n, "%s/%s-%012llu.part", db->parts_dir, month, (unsigned long long)m->id);
}

uint64_t db_new_part(struct db *db, int32_t partition, char *path, size_t n)
{
    pthread_mutex_lock(&db->manifest_lock);
    struct part_meta m = {.id = db->next_part++, .partition = partition};
    pthread_mutex_unlock(&db->manifest_lock);
    db_part_path(db, &m, path, n);
    return m.id;
}

static int compare_parts(const void *a, const void *b)
{
    const struct part_meta *x = part_meta(((const struct view_part *)a)->part);
    const struct part_meta *y = part_meta(((const struct view_part *)b)->part);
    if (x->partition != y->partition) return x->partition < y->partition ? -1 : 1;
    if (x->seq_min != y->seq_min) return x->seq_min < y->seq_min ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

struct view *view_create(const struct view_part *parts, size_t n_parts, const struct view *from)
{
    struct view *v = mem_zalloc(sizeof *v);
    atomic_init(&v->refs, 1);
    v->n_parts = n_parts;
    v->parts = mem_alloc(n_parts * sizeof *v->parts + 1);
    for (size_t i = 0; i < n_parts; i++)
        v->parts[i] = (struct view_part){part_ref(parts[i].part), parts[i].clean_seq};
    if (n_parts > 0) qsort(v->parts, n_parts, sizeof *v->parts, compare_parts);
    v->n_heads = from == NULL ? 0 : from->n_heads;
    v->heads = mem_alloc((v->n_heads + 1) * sizeof(struct head *)); /* room to add one */
    for (size_t i = 0; i < v->n_heads; i++)
        v->heads[i] = head_ref(from->heads[i]);
    v->n_tombstones = from == NULL ? 0 : from->n_tombstones;
    v->tombstones = mem_alloc((v->n_tombstones + 1) * sizeof(struct tombstone *)); /* likewise */
    for (size_t i = 0; i < v->n_tombstones; i++)
        v->tombstones[i] = tombstone_ref(from->tombstones[i]);
    return v;
}

void view_swap_locked(struct db *db, struct view *v)
{
    struct view *old = db->view;
    db->view = v;
    view_unref(old);
}

static bool is_removed(const struct db_change *c, const struct part *p)
{
    for (size_t i = 0; i < c->n_remove; i++)
        if (c->remove[i] == p) return true;
    return false;
}

/* The parts after the change; borrowed pointers, heap array. */
static struct view_part *changed_parts(const struct view *v, const struct db_change *c, size_t *n)
{
    struct view_part *parts = mem_alloc((v->n_parts + c->n_add) * sizeof *parts + 1);
    *n = 0;
    for (size_t i = 0; i < v->n_parts; i++)
        if (!is_removed(c, v->parts[i].part)) parts[(*n)++] = v->parts[i];
    for (size_t i = 0; i < c->n_add; i++)
        parts[(*n)++] = c->add[i];
    return parts;
}

/* A delete is done with when no part is left that it still concerns. */
static bool is_spent(const struct tombstone *t, const struct view_part *parts, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        const struct part_meta *m = part_meta(parts[i].part);
        if (tombstone_concerns(t, m->seq_max, parts[i].clean_seq) && m->t_min <= t->t_max && m->t_max >= t->t_min)
            return false;
    }
    return true;
}

/* Adds and drops deletes of a view that nobody sees yet. */
static void change_tombstones(struct view *v, const struct db_change *c)
{
    size_t kept = 0;
    for (size_t i = 0; i < v->n_tombstones; i++) {
        if (is_spent(v->tombstones[i], v->parts, v->n_parts))
            tombstone_unref(v->tombstones[i]);
        else
            v->tombstones[kept++] = v->tombstones[i];
    }
    v->n_tombstones = kept;
    if (c->tombstone != NULL && !is_spent(c->tombstone, v->parts, v->n_parts))
        v->tombstones[v->n_tombstones++] = tombstone_ref(c->tombstone);
}

static err write_manifest(struct db *db, const struct view *v, const struct db_change *c)
{
    uint32_t wal_floor = c->wal_floor > db->wal_floor ? c->wal_floor : db->wal_floor;
    uint64_t durable_seq = c->durable_seq > db->durable_seq ? c->durable_seq : db->durable_seq;
    struct manifest m = {.generation = ++db->manifest_generation,
                         .next_part = db->next_part,
                         .seq = durable_seq,
                         .wal_floor = wal_floor,
                         .n_parts = v->n_parts,
                         .tombstones = v->tombstones,
                         .n_tombstones = v->n_tombstones};
    m.parts = mem_alloc(v->n_parts * sizeof *m.parts + 1);
    for (size_t i = 0; i < v->n_parts; i++)
        m.parts[i] = (struct manifest_part){*part_meta(v->parts[i].part), v->parts[i].clean_seq};
    err e = manifest_write(db->env, db->path, &m);
    mem_free(m.parts);
    if (e != NULL) return e; /* the next manifest must not say that the log of a head is done with that is in no part */
    db->wal_floor = wal_floor;
    db->durable_seq = durable_seq;
    return NULL;
}

/* Heads may have turned over since the view was built: takes today's, without the one that was written out. */
static void take_heads(struct view *v, const struct view *today, const struct head *written_out)
{
    for (size_t i = 0; i < v->n_heads; i++)
        head_unref(v->heads[i]);
    mem_free(v->heads);
    v->heads = mem_alloc((today->n_heads + 1) * sizeof(struct head *));
    v->n_heads = 0;
    for (size_t i = 0; i < today->n_heads; i++)
        if (today->heads[i] != written_out) v->heads[v->n_heads++] = head_ref(today->heads[i]);
}

/* What was deleted, and what a merge of a database that thins samples out may have dropped. */
static void note_change(struct db *db, const struct db_change *c)
{
    if (c->tombstone != NULL) changes_note(db->changes, c->tombstone->t_min);
    for (size_t i = 0; i < c->n_remove && db->o.dedup_ms > 0; i++)
        changes_note(db->changes, part_meta(c->remove[i])->t_min);
}

err db_commit(struct db *db, const struct db_change *change)
{
    pthread_mutex_lock(&db->manifest_lock);
    struct view *old = db_view(db);
    size_t n;
    struct view_part *parts = changed_parts(old, change, &n);
    struct view *v = view_create(parts, n, old);
    mem_free(parts);
    change_tombstones(v, change);
    err e = write_manifest(db, v, change);
    if (e != NULL) {
        view_unref(v);
    } else {
        for (size_t i = 0; i < change->n_remove; i++)
            part_delete_on_unref(change->remove[i]);
        pthread_mutex_lock(&db->view_lock);
        take_heads(v, db->view, change->written_out);
        view_swap_locked(db, v);
        pthread_mutex_unlock(&db->view_lock);
        note_change(db, change);
    }
    view_unref(old);
    pthread_mutex_unlock(&db->manifest_lock);
    return e;
}
