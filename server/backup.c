/*
 * backup.c: makes a backup, and restores one.
 *
 *   source ─► .partial-NAME ─ files copied or linked, folders synced ─► BACKUP written, synced ─► renamed to NAME
 *
 * A backup counts from its rename on: whatever ends the process before leaves a folder that no command
 * takes for a backup and the next one removes. The lock file keeps a second backup out. Restoring works
 * the same way round: into <target>.restoring, renamed when all of it was found good.
 *
 * A link shares the bytes with the backup before, so damage to them would be in both: --verify reads
 * them, and copies anew what does not match its checksum. One thread.
 */
#include "server/backup.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "server/backup_file.h"
#include "storage/base/alloc.h"
#include "storage/storage.h"

#define PARTIAL ".partial-"
#define DEPTH_MAX 8

struct job {
    struct env *env;
    struct buf *notes;
    struct arena arena;
    const char *source;
    char into[BACKUP_PATH_MAX];   /* the folder that is being filled */
    char before[BACKUP_PATH_MAX]; /* the newest backup; "" if there is none */
    struct backup_list old;       /* its files */
    bool verify;
    struct backup_file *files; /* heap */
    size_t n_files, cap_files;
    backup_progress_fn progress;
    void *progress_arg;
    uint64_t total; /* bytes to look at, 0 = not known */
    struct backup_result *result;
};

static void job_deinit(struct job *j)
{
    mem_free(j->files);
    arena_deinit(&j->arena);
}

static void advance(struct job *j, uint64_t bytes)
{
    j->result->files++;
    j->result->bytes += bytes;
    if (j->progress != NULL) j->progress(j->progress_arg, j->result->bytes, j->total);
}

/* ---- the list of a backup ------------------------------------------------------------------------------------ */

static err read_list(struct job *j, const char *backup, struct backup_list *out)
{
    struct buf text = {0};
    char path[BACKUP_PATH_MAX];
    TRY(backup_path(path, backup, BACKUP_LIST_NAME));
    err e = backup_read(j->env, path, &text);
    if (e == NULL) e = err_wrap(backup_list_parse(buf_as_str(&text), &j->arena, out), "%s", path);
    buf_deinit(&text);
    return e;
}

static err write_list(struct job *j)
{
    struct env_file *f = NULL;
    struct buf text = {0};
    char path[BACKUP_PATH_MAX];
    err e;
    if (j->n_files > 1) qsort(j->files, j->n_files, sizeof *j->files, backup_file_compare);
    backup_list_print(&(struct backup_list){j->files, j->n_files}, &text);
    TRY_OUT(backup_path(path, j->into, BACKUP_LIST_NAME));
    TRY_OUT(j->env->ops->file_open(j->env, path, ENV_CREATE, &f));
    TRY_OUT(j->env->ops->file_append(f, text.data, text.n));
    TRY_OUT(j->env->ops->file_sync(f));
    e = j->env->ops->dir_sync(j->env, j->into);
out:
    j->env->ops->file_close(f);
    buf_deinit(&text);
    return e;
}

/* The newest complete backup in dir → path; "" if there is none. */
static err find_newest(struct job *j, const char *dir, char *path)
{
    struct backup_entry *entries;
    size_t n;
    char list[BACKUP_PATH_MAX];
    struct backup_file st;
    path[0] = '\0';
    TRY(backup_entries(j->env, dir, &j->arena, &entries, &n));
    for (size_t i = n; i > 0 && path[0] == '\0'; i--) { /* names are times: the last is the newest */
        if (!entries[i - 1].is_dir || entries[i - 1].name.p[0] == '.') continue;
        TRY(backup_path(path, dir, entries[i - 1].name.p));
        TRY(backup_path(list, path, BACKUP_LIST_NAME));
        err e = backup_stat(list, &st);
        if (e != NULL) path[0] = '\0';
        err_free(e);
    }
    return NULL;
}

/* ---- one file ------------------------------------------------------------------------------------------------ */

static bool same_source(const struct backup_file *a, const struct backup_file *b)
{
    return a->bytes == b->bytes && a->mtime_ns == b->mtime_ns && a->inode == b->inode && a->device == b->device;
}

/* Is the old backup's copy what its list says? A mismatch is noted. */
static err old_is_good(struct job *j, const char *path, const struct backup_file *old, bool *good)
{
    uint64_t sum, bytes;
    err e = backup_copy(j->env, path, NULL, &sum, &bytes);
    if (err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        e = NULL;
        *good = false;
    } else if (e == NULL) {
        *good = sum == old->sum && bytes == old->bytes;
    }
    if (e == NULL && !*good) buf_printf(j->notes, "%s: damaged in the backup before; copied anew\n", path);
    return e;
}

/* Links the old backup's copy; *linked false if that can't be done (it is gone, or the file system can't). */
static err link_old(struct job *j, const struct backup_file *old, const char *to, bool *linked)
{
    char from[BACKUP_PATH_MAX];
    bool good = true;
    *linked = false;
    TRY(backup_path(from, j->before, old->path.p));
    if (j->verify) TRY(old_is_good(j, from, old, &good));
    if (!good) return NULL;
    err e = j->env->ops->link(j->env, from, to);
    *linked = e == NULL;
    err_free(e); /* a copy does it too */
    return NULL;
}

static err copy_file(struct job *j, const char *from, const char *to, struct backup_file *f)
{
    uint64_t sum, bytes;
    TRY(backup_copy(j->env, from, to, &f->sum, &f->bytes));
    TRY(backup_copy(j->env, to, NULL, &sum, &bytes));
    if (sum != f->sum || bytes != f->bytes) return err_corrupt("%s: what was written is not what can be read back", to);
    j->result->copied_files++;
    j->result->copied_bytes += f->bytes;
    return NULL;
}

/* Copied although the old backup has the same bytes (the source is another file): one of them is enough. */
static err share_copy(struct job *j, const struct backup_file *old, const char *to, const struct backup_file *f)
{
    char same[BACKUP_PATH_MAX];
    bool linked;
    int n = snprintf(same, sizeof same, "%s.same", to);
    if ((size_t)n >= sizeof same) return NULL;
    TRY(link_old(j, old, same, &linked));
    if (!linked) return NULL;
    j->result->copied_files--;
    j->result->copied_bytes -= f->bytes;
    return j->env->ops->rename(j->env, same, to);
}

static err take_file(struct job *j, str path)
{
    char from[BACKUP_PATH_MAX], to[BACKUP_PATH_MAX];
    struct backup_file f = {.path = path};
    bool linked = false;
    TRY(backup_path(from, j->source, path.p));
    TRY(backup_path(to, j->into, path.p));
    TRY(backup_stat(from, &f));
    const struct backup_file *old = backup_list_find(&j->old, path);
    if (old != NULL && same_source(old, &f)) {
        f.sum = old->sum;
        TRY(link_old(j, old, to, &linked));
    }
    if (!linked) TRY(copy_file(j, from, to, &f));
    if (!linked && old != NULL && !j->verify && old->sum == f.sum && old->bytes == f.bytes) {
        TRY(share_copy(j, old, to, &f));
    }
    j->files = mem_grow(j->files, &j->cap_files, j->n_files + 1, sizeof *j->files);
    j->files[j->n_files++] = f;
    advance(j, f.bytes);
    return NULL;
}

/* ---- a whole backup ------------------------------------------------------------------------------------------ */

/* Of a data directory that no server holds: its lock, snapshots (they are copies), files that were being written. */
static bool is_skipped(str path, bool is_dir)
{
    static const char tmp[] = ".tmp";
    size_t n = sizeof tmp - 1;
    if (is_dir) return str_eq(path, STR("snapshots"));
    return str_eq(path, STR("LOCK")) || str_eq(path, STR(BACKUP_LIST_NAME)) ||
           (path.n > n && memcmp(path.p + path.n - n, tmp, n) == 0);
}

/* Everything below source/path; path "" is the source itself. */
static err take_folder(struct job *j, str path, int depth)
{
    struct backup_entry *entries;
    size_t n;
    char from[BACKUP_PATH_MAX], to[BACKUP_PATH_MAX];
    if (depth == DEPTH_MAX) return err_new(ERR_INVALID, "%s: folders are nested too deeply", j->source);
    TRY(backup_path(from, j->source, path.p));
    TRY(backup_path(to, j->into, path.p));
    TRY(j->env->ops->mkdir(j->env, to));
    TRY(backup_entries(j->env, from, &j->arena, &entries, &n));
    for (size_t i = 0; i < n; i++) {
        str below = entries[i].name;
        if (path.n > 0) below = arena_printf(&j->arena, "%s/%s", path.p, below.p);
        if (is_skipped(below, entries[i].is_dir)) continue;
        TRY(entries[i].is_dir ? take_folder(j, below, depth + 1) : take_file(j, below));
    }
    return j->env->ops->dir_sync(j->env, to);
}

static err check_structure(struct job *j, const char *dir)
{
    uint64_t faults = 0;
    struct buf text = {0};
    err e = storage_verify(j->env, dir, &text, &faults);
    if (e == NULL && faults > 0) {
        buf_str(j->notes, buf_as_str(&text));
        e = err_corrupt("%s: %llu faults found", dir, (unsigned long long)faults);
    }
    buf_deinit(&text);
    return e;
}

static void make_name(struct env *env, char *out, size_t n)
{
    int64_t now = env->ops->now_ms(env);
    time_t seconds = (time_t)(now / 1000);
    struct tm tm;
    char text[24];
    gmtime_r(&seconds, &tm);
    strftime(text, sizeof text, "%Y%m%dT%H%M%S", &tm);
    snprintf(out, n, "%s.%03dZ", text, (int)(now % 1000));
}

/* Backups in a data directory would be copied with it, and its lock is another's. */
static err check_folder(struct job *j, const char *dir)
{
    struct backup_entry *entries;
    size_t n;
    TRY(backup_entries(j->env, dir, &j->arena, &entries, &n));
    for (size_t i = 0; i < n; i++)
        if (str_eq(entries[i].name, STR("MANIFEST")) || str_eq(entries[i].name, STR("IDENTITY")))
            return err_new(ERR_INVALID, "%s is a data directory: backups need a folder of their own", dir);
    return NULL;
}

/* Removes what backups that were cut short have left. */
static err tidy(struct job *j, const char *dir)
{
    struct backup_entry *entries;
    size_t n;
    char path[BACKUP_PATH_MAX];
    TRY(backup_entries(j->env, dir, &j->arena, &entries, &n));
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].is_dir || !str_starts_with(entries[i].name, STR(PARTIAL))) continue;
        TRY(backup_path(path, dir, entries[i].name.p));
        TRY(backup_remove(j->env, path));
    }
    return NULL;
}

/* The newest backup and its list; one that can't be read is noted and not used. */
static err open_newest(struct job *j, const char *dir)
{
    TRY(find_newest(j, dir, j->before));
    if (j->before[0] == '\0') return NULL;
    err e = read_list(j, j->before, &j->old);
    if (e == NULL) return NULL;
    buf_printf(j->notes, "%s; everything is copied\n", err_message(e));
    err_free(e);
    j->old = (struct backup_list){0};
    return NULL;
}

static err make_locked(struct job *j, const struct backup_options *o)
{
    char name[sizeof j->result->name + sizeof PARTIAL], path[BACKUP_PATH_MAX];
    TRY(open_newest(j, o->dir));
    make_name(j->env, j->result->name, sizeof j->result->name);
    snprintf(name, sizeof name, "%s%s", PARTIAL, j->result->name);
    TRY(backup_path(j->into, o->dir, name));
    TRY(backup_path(path, o->dir, j->result->name));
    TRY(take_folder(j, STR(""), 0));
    TRY(write_list(j));
    if (j->verify) TRY(check_structure(j, j->into));
    TRY(j->env->ops->rename(j->env, j->into, path));
    return j->env->ops->dir_sync(j->env, o->dir);
}

err backup_make(struct env *env, const struct backup_options *o, struct backup_result *out)
{
    struct job j = {.env = env, .notes = o->notes, .source = o->source, .verify = o->verify, .result = out};
    struct env_file *lock = NULL;
    char path[BACKUP_PATH_MAX];
    err e;
    *out = (struct backup_result){0};
    j.progress = o->progress;
    j.progress_arg = o->progress_arg;
    TRY_OUT(env->ops->mkdir(env, o->dir));
    TRY_OUT(check_folder(&j, o->dir));
    TRY_OUT(backup_path(path, o->dir, "LOCK"));
    TRY_OUT(err_wrap(env->ops->lock(env, path, &lock), "another backup runs"));
    TRY_OUT(tidy(&j, o->dir));
    e = make_locked(&j, o);
    if (e != NULL && j.into[0] != '\0') err_free(backup_remove(env, j.into));
out:
    if (lock != NULL) env->ops->unlock(lock);
    job_deinit(&j);
    return e;
}

/* ---- restoring ----------------------------------------------------------------------------------------------- */

static void note_fault(struct job *j, const char *path, const char *what)
{
    buf_printf(j->notes, "%s: %s\n", path, what);
}

/* Folders of a relative path, made in the target. */
static err make_folders(struct job *j, const char *path)
{
    char to[BACKUP_PATH_MAX];
    const char *end = strrchr(path, '/');
    if (end == NULL) return NULL;
    str folder = arena_str(&j->arena, (str){path, (size_t)(end - path)});
    TRY(backup_path(to, j->into, folder.p));
    return j->env->ops->mkdir(j->env, to);
}

/* Copies one file; a fault of it is noted and counted, so that all faults are found. */
static err bring_back(struct job *j, const struct backup_file *f, uint64_t *faults)
{
    char from[BACKUP_PATH_MAX], to[BACKUP_PATH_MAX];
    uint64_t sum, bytes;
    TRY(backup_path(from, j->source, f->path.p));
    TRY(backup_path(to, j->into, f->path.p));
    TRY(make_folders(j, f->path.p));
    err e = backup_copy(j->env, from, to, &sum, &bytes);
    bool missing = err_code(e) == ERR_NOT_FOUND;
    if (missing) {
        err_free(e);
        e = NULL;
        note_fault(j, from, "is missing");
    }
    TRY(e);
    bool good = !missing && bytes == f->bytes && sum == f->sum;
    if (!missing && !good)
        note_fault(j, from, bytes == f->bytes ? "damaged: its checksum differs" : "damaged: its size differs");
    *faults += !good;
    advance(j, f->bytes);
    return NULL;
}

static err sync_folders(struct job *j, const char *dir, int depth)
{
    struct backup_entry *entries;
    size_t n;
    char path[BACKUP_PATH_MAX];
    if (depth == DEPTH_MAX) return NULL;
    TRY(backup_entries(j->env, dir, &j->arena, &entries, &n));
    for (size_t i = 0; i < n; i++) {
        if (!entries[i].is_dir) continue;
        TRY(backup_path(path, dir, entries[i].name.p));
        TRY(sync_folders(j, path, depth + 1));
    }
    return j->env->ops->dir_sync(j->env, dir);
}

static err bring_all_back(struct job *j)
{
    uint64_t faults = 0;
    struct backup_list list;
    TRY(read_list(j, j->source, &list));
    for (size_t i = 0; i < list.n; i++)
        j->total += list.v[i].bytes;
    TRY(j->env->ops->mkdir(j->env, j->into));
    for (size_t i = 0; i < list.n; i++)
        TRY(bring_back(j, &list.v[i], &faults));
    if (faults > 0) return err_corrupt("%s: %llu damaged files", j->source, (unsigned long long)faults);
    TRY(sync_folders(j, j->into, 0));
    return check_structure(j, j->into);
}

/* ERR_INVALID unless `to` is absent or an empty folder. */
static err check_empty(struct job *j, const char *to)
{
    struct backup_entry *entries;
    size_t n;
    err e = backup_entries(j->env, to, &j->arena, &entries, &n);
    if (err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        return NULL;
    }
    TRY(e);
    return n == 0 ? NULL
                  : err_new(ERR_INVALID, "%s is not empty: restoring needs a folder that is absent or empty", to);
}

/* The backup itself, or the newest in a folder of backups. */
static err find_source(struct job *j, const char *from, char *found)
{
    char list[BACKUP_PATH_MAX];
    struct backup_file st;
    TRY(backup_path(list, from, BACKUP_LIST_NAME));
    err e = backup_stat(list, &st);
    if (e == NULL) {
        snprintf(found, BACKUP_PATH_MAX, "%s", from);
        return NULL;
    }
    err_free(e);
    TRY(find_newest(j, from, found));
    return found[0] != '\0' ? NULL : err_new(ERR_NOT_FOUND, "%s is no backup and holds none", from);
}

static str without_slashes(const char *path)
{
    str s = str_of(path);
    while (s.n > 1 && s.p[s.n - 1] == '/')
        s.n--;
    return s;
}

static err sync_parent(struct job *j, str path)
{
    const char *slash = memrchr(path.p, '/', path.n);
    str parent = slash == NULL ? STR(".") : slash == path.p ? STR("/") : (str){path.p, (size_t)(slash - path.p)};
    return j->env->ops->dir_sync(j->env, arena_str(&j->arena, parent).p);
}

err backup_restore(struct env *env, const char *from, const char *to, struct buf *notes, backup_progress_fn progress,
                   void *progress_arg, struct backup_result *out)
{
    struct job j = {.env = env, .notes = notes, .progress = progress, .progress_arg = progress_arg, .result = out};
    char source[BACKUP_PATH_MAX];
    err e;
    *out = (struct backup_result){0};
    str target = arena_str(&j.arena, without_slashes(to));
    TRY_OUT(check_empty(&j, target.p));
    TRY_OUT(find_source(&j, from, source));
    j.source = source;
    if (snprintf(j.into, sizeof j.into, "%s.restoring", target.p) >= (int)sizeof j.into) {
        e = err_new(ERR_INVALID, "the path is too long: %s", target.p);
        goto out;
    }
    TRY_OUT(backup_remove(env, j.into)); /* of a restore that was cut short */
    e = bring_all_back(&j);
    if (e == NULL) e = env->ops->rename(env, j.into, target.p);
    if (e == NULL) e = sync_parent(&j, target);
    if (e != NULL) err_free(backup_remove(env, j.into));
    const char *base = strrchr(source, '/');
    snprintf(out->name, sizeof out->name, "%.31s", base != NULL ? base + 1 : source);
    out->copied_files = out->files;
    out->copied_bytes = out->bytes;
out:
    job_deinit(&j);
    return e;
}
