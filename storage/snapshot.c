/*
 * snapshot.c: consistent copies that cost no space: hard links of the parts and a manifest over them.
 *
 * A snapshot is a data directory of its own: <snapshots>/<name>/{MANIFEST,EXEMPLARS,parts/}; a server started on a
 * copy of it finds everything that was written before the snapshot was taken (the head goes to parts first).
 */
#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/db_internal.h"
#include "storage/partition.h"

static bool name_is_safe(str name)
{
    if (name.n == 0 || name.n > 128 || name.p[0] == '.') return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool fine = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
                    c == '_' || c == '.';
        if (!fine) return false;
    }
    return true;
}

static err link_parts(struct db *db, const struct view *v, const char *dir)
{
    char to[8192];
    for (size_t i = 0; i < v->n_parts; i++) {
        const char *path = part_path(v->parts[i].part), *base = strrchr(path, '/');
        snprintf(to, sizeof to, "%s/parts/%s", dir, base == NULL ? path : base + 1);
        TRY(db->env->ops->link(db->env, path, to));
    }
    snprintf(to, sizeof to, "%s/parts", dir);
    return db->env->ops->dir_sync(db->env, to);
}

/* The key, so that the snapshot is a whole data directory. */
static err link_identity(struct db *db, const char *dir)
{
    char from[8192], to[8192];
    snprintf(from, sizeof from, "%s/IDENTITY", db->path);
    snprintf(to, sizeof to, "%s/IDENTITY", dir);
    return db->env->ops->link(db->env, from, to);
}

static err write_manifest(struct db *db, const struct view *v, const char *dir)
{
    struct manifest m = {.generation = 1, .tombstones = v->tombstones, .n_tombstones = v->n_tombstones};
    m.n_parts = v->n_parts;
    m.parts = mem_alloc(v->n_parts * sizeof *m.parts + 1);
    for (size_t i = 0; i < v->n_parts; i++) {
        m.parts[i] = (struct manifest_part){*part_meta(v->parts[i].part), v->parts[i].clean_seq};
        if (m.parts[i].meta.id >= m.next_part) m.next_part = m.parts[i].meta.id + 1;
        if (m.parts[i].meta.seq_max > m.seq) m.seq = m.parts[i].meta.seq_max;
    }
    err e = manifest_write(db->env, dir, &m);
    mem_free(m.parts);
    return e;
}

static void note_any(void *arg, str name, bool is_dir)
{
    (void)name;
    (void)is_dir;
    *(bool *)arg = true;
}

struct removal {
    struct db *db;
    const char *dir;
    err e;
};

static err remove_directory(struct db *db, const char *dir);

static void remove_entry(void *arg, str name, bool is_dir)
{
    struct removal *r = arg;
    char path[8192];
    if (r->e != NULL) return;
    int n = snprintf(path, sizeof path, "%s/%.*s", r->dir, STR_ARG(name));
    if ((size_t)n >= sizeof path)
        r->e = err_new(ERR_IO, "%s: a path in it is too long", r->dir);
    else
        r->e = is_dir ? remove_directory(r->db, path) : r->db->env->ops->unlink(r->db->env, path);
}

/* Removes a directory with all in it: a server that was started on a snapshot leaves a log there. One that is not
 * there is fine. */
static err remove_directory(struct db *db, const char *dir)
{
    struct removal r = {.db = db, .dir = dir};
    err e = db->env->ops->dir_list(db->env, dir, remove_entry, &r);
    KEEP_FIRST(r.e);
    if (err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        return NULL;
    }
    TRY(e);
    return db->env->ops->rmdir(db->env, dir);
}

/* The manifest goes first: what is left after a crash is no snapshot. */
static err remove_snapshot(struct db *db, const char *dir)
{
    char path[8192];
    snprintf(path, sizeof path, "%s/MANIFEST", dir);
    TRY(db->env->ops->unlink(db->env, path));
    TRY(db->env->ops->dir_sync(db->env, dir));
    TRY(remove_directory(db, dir));
    return db->env->ops->dir_sync(db->env, db->snapshots_dir);
}

static err take(struct db *db, const char *dir)
{
    char parts[8192];
    bool exists = false;
    err_free(db->env->ops->dir_list(db->env, dir, note_any, &exists));
    if (exists) return err_new(ERR_INVALID, "the snapshot exists already");
    snprintf(parts, sizeof parts, "%s/parts", dir);
    struct view *v = db_view(db);
    err e = db->env->ops->mkdir(db->env, parts);
    if (e == NULL) e = link_identity(db, dir);
    if (e == NULL) e = link_parts(db, v, dir);
    if (e == NULL && db->exemplars != NULL) e = exemplars_save(db->exemplars, db->env, dir, true);
    if (e == NULL) e = write_manifest(db, v, dir); /* last: with it the snapshot is complete */
    if (e == NULL) e = db->env->ops->dir_sync(db->env, db->snapshots_dir);
    if (e != NULL) err_free(remove_snapshot(db, dir));
    view_unref(v);
    return e;
}

/* 20261130163128-18ECDFAC203DB843: when it was taken, in UTC, and a number that no other has. */
#define NAME_DIGITS 14

static void make_name(int64_t ms, uint64_t random, char *out, size_t n)
{
    char month[32]; /* "2026-11" */
    int32_t partition = partition_of(ms);
    partition_name(partition, month);
    int64_t s = (ms - partition_start(partition)) / 1000;
    snprintf(out, n, "%.4s%.2s%02d%02d%02d%02d-%016llX", month, month + 5, (int)(s / 86400) + 1, (int)(s / 3600 % 24),
             (int)(s / 60 % 60), (int)(s % 60), (unsigned long long)random);
}

static int number_at(str name, size_t at, size_t digits)
{
    int n = 0;
    for (size_t i = at; i < at + digits; i++)
        n = n * 10 + (name.p[i] - '0');
    return n;
}

/* When it was taken, by its name; false for a name that someone chose. */
static bool time_of_name(str name, int64_t *ms)
{
    if (name.n <= NAME_DIGITS || name.p[NAME_DIGITS] != '-') return false;
    for (size_t i = 0; i < NAME_DIGITS; i++)
        if (name.p[i] < '0' || name.p[i] > '9') return false;
    int32_t partition = (number_at(name, 0, 4) - 1970) * 12 + number_at(name, 4, 2) - 1;
    int64_t s = (number_at(name, 6, 2) - 1) * 86400LL + number_at(name, 8, 2) * 3600LL + number_at(name, 10, 2) * 60LL +
                number_at(name, 12, 2);
    *ms = partition_start(partition) + s * 1000;
    return true;
}

err storage_snapshot(struct db *db, const char *name, char **out)
{
    char made[64], dir[4096];
    if (name == NULL) {
        uint64_t random;
        db->env->ops->random(db->env, &random, sizeof random);
        make_name(db_now(db), random, made, sizeof made);
        name = made;
    }
    if (!name_is_safe(str_of(name))) return err_new(ERR_INVALID, "not a snapshot name: letters, digits, '-', '_', '.'");
    TRY(storage_flush(db));
    snprintf(dir, sizeof dir, "%s/%s", db->snapshots_dir, name);
    TRY(err_wrap(take(db, dir), "snapshot %s", name));
    *out = mem_dup_str(str_of(name));
    return NULL;
}

struct each_snapshot {
    struct db *db;
    storage_snapshot_fn fn;
    void *arg;
};

static void note_manifest(void *arg, str name, bool is_dir)
{
    if (!is_dir && str_eq(name, STR("MANIFEST"))) *(bool *)arg = true;
}

/* Directories without a manifest are left from attempts that a crash cut short. */
static void pass_complete(void *arg, str name, bool is_dir)
{
    struct each_snapshot *each = arg;
    struct env *env = each->db->env;
    char dir[8192];
    bool complete = false;
    if (!is_dir) return;
    snprintf(dir, sizeof dir, "%s/%.*s", each->db->snapshots_dir, STR_ARG(name));
    err_free(env->ops->dir_list(env, dir, note_manifest, &complete));
    if (complete) each->fn(each->arg, name);
}

err storage_snapshot_list(struct db *db, storage_snapshot_fn fn, void *arg)
{
    return db->env->ops->dir_list(db->env, db->snapshots_dir, pass_complete, &(struct each_snapshot){db, fn, arg});
}

err storage_snapshot_delete(struct db *db, str name)
{
    char dir[4096];
    if (!name_is_safe(name)) return err_new(ERR_INVALID, "not a snapshot name: letters, digits, '-', '_', '.'");
    snprintf(dir, sizeof dir, "%s/%.*s", db->snapshots_dir, STR_ARG(name));
    bool exists = false;
    err e = db->env->ops->dir_list(db->env, dir, note_any, &exists);
    if (e != NULL || !exists) {
        err_free(e);
        return err_new(ERR_NOT_FOUND, "there is no snapshot %.*s", STR_ARG(name));
    }
    return remove_snapshot(db, dir);
}

struct doomed {
    struct arena arena;
    str *names; /* heap */
    size_t n, cap;
    int64_t before_ms;
};

static void gather_doomed(void *arg, str name)
{
    struct doomed *d = arg;
    int64_t taken;
    if (d->before_ms != INT64_MAX && (!time_of_name(name, &taken) || taken >= d->before_ms)) return;
    d->names = mem_grow(d->names, &d->cap, d->n + 1, sizeof *d->names);
    d->names[d->n++] = arena_str(&d->arena, name);
}

err storage_snapshots_remove(struct db *db, int64_t before_ms, size_t *removed)
{
    struct doomed d = {.before_ms = before_ms};
    err e = storage_snapshot_list(db, gather_doomed, &d);
    *removed = 0;
    for (size_t i = 0; i < d.n && e == NULL; i++) {
        e = storage_snapshot_delete(db, d.names[i]);
        *removed += e == NULL;
        if (err_code(e) != ERR_NOT_FOUND) continue; /* someone else was quicker */
        err_free(e);
        e = NULL;
    }
    arena_deinit(&d.arena);
    mem_free(d.names);
    return e;
}
