/*
 * backup_file.c: single files and folders of a backup.
 *
 * Files go through storage's env, so a full disk or a failing read is an ordinary error. Copying reads
 * each byte once: what is hashed is what is written. Stateless; memory of a copy is one piece.
 */
#include "server/backup_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

#include "storage/base/alloc.h"
#include "storage/base/hash.h"

#define PIECE ((size_t)1 << 20)
#define READ_MAX ((uint64_t)256 << 20)
#define DEPTH_MAX 16

err backup_path(char *out, const char *dir, const char *name)
{
    int n = snprintf(out, BACKUP_PATH_MAX, "%s/%s", dir, name);
    if (n < 0 || n >= BACKUP_PATH_MAX) return err_new(ERR_INVALID, "a path is too long: %s/%s", dir, name);
    return NULL;
}

err backup_stat(const char *path, struct backup_file *f)
{
    struct stat st;
    if (stat(path, &st) != 0) return err_errno(errno, "stat %s", path);
    f->bytes = (uint64_t)st.st_size;
    f->mtime_ns = (int64_t)st.st_mtim.tv_sec * 1000000000 + st.st_mtim.tv_nsec;
    f->inode = st.st_ino;
    f->device = st.st_dev;
    return NULL;
}

/* ---- copying ------------------------------------------------------------------------------------------------- */

struct copy {
    struct env *env;
    struct env_file *from, *to; /* to: NULL = read only */
    uint64_t at, size;
    uint8_t *piece;
    err failure;
};

/* checksum_next_fn: reads a piece and writes it. */
static bool copy_next(void *arg, const void **p, size_t *n)
{
    struct copy *c = arg;
    size_t now = c->size - c->at < PIECE ? (size_t)(c->size - c->at) : PIECE;
    if (now == 0) return false;
    c->failure = c->env->ops->file_read(c->from, c->piece, now, c->at);
    if (c->failure == NULL && c->to != NULL) c->failure = c->env->ops->file_append(c->to, c->piece, now);
    if (c->failure != NULL) return false;
    c->env->ops->file_drop_cache(c->from, c->at, now);
    c->at += now;
    *p = c->piece;
    *n = now;
    return true;
}

err backup_copy(struct env *env, const char *from, const char *to, uint64_t *sum, uint64_t *bytes)
{
    struct copy c = {.env = env, .piece = mem_alloc(PIECE)};
    err e;
    TRY_OUT(env->ops->file_open(env, from, ENV_READ, &c.from));
    TRY_OUT(env->ops->file_size(c.from, &c.size));
    if (to != NULL) TRY_OUT(env->ops->file_open(env, to, ENV_CREATE, &c.to));
    *sum = checksum64_stream(copy_next, &c);
    *bytes = c.size;
    TRY_OUT(c.failure);
    if (c.to != NULL) e = env->ops->file_sync(c.to);
    if (c.to != NULL) env->ops->file_drop_cache(c.to, 0, c.size); /* reading it back asks the disk */
out:
    env->ops->file_close(c.from);
    env->ops->file_close(c.to);
    mem_free(c.piece);
    return e;
}

err backup_read(struct env *env, const char *path, struct buf *out)
{
    struct env_file *f = NULL;
    uint64_t size;
    err e;
    buf_clear(out);
    TRY(env->ops->file_open(env, path, ENV_READ, &f));
    TRY_OUT(env->ops->file_size(f, &size));
    if (size > READ_MAX) {
        e = err_corrupt("%s: absurdly large", path);
        goto out;
    }
    TRY_OUT(env->ops->file_read(f, buf_reserve(out, (size_t)size), (size_t)size, 0));
    out->n = (size_t)size;
out:
    env->ops->file_close(f);
    return e;
}

/* ---- folders ------------------------------------------------------------------------------------------------- */

struct listing {
    struct arena *arena;
    struct backup_entry *v; /* heap while it grows */
    size_t n, cap;
};

static void note_entry(void *arg, str name, bool is_dir)
{
    struct listing *l = arg;
    l->v = mem_grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (struct backup_entry){arena_str(l->arena, name), is_dir};
}

static int compare_entries(const void *a, const void *b)
{
    const struct backup_entry *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

err backup_entries(struct env *env, const char *dir, struct arena *a, struct backup_entry **out, size_t *n)
{
    struct listing l = {.arena = a};
    *out = NULL;
    *n = 0;
    err e = env->ops->dir_list(env, dir, note_entry, &l);
    if (e == NULL && l.n > 0) {
        qsort(l.v, l.n, sizeof *l.v, compare_entries);
        *out = arena_dup(a, l.v, l.n * sizeof *l.v);
        *n = l.n;
    }
    mem_free(l.v);
    return e;
}

static err remove_below(struct env *env, const char *dir, struct arena *a, int depth)
{
    struct backup_entry *entries;
    size_t n;
    char path[BACKUP_PATH_MAX];
    if (depth == DEPTH_MAX) return err_new(ERR_IO, "%s: folders are nested too deeply", dir);
    TRY(backup_entries(env, dir, a, &entries, &n));
    for (size_t i = 0; i < n; i++) {
        TRY(backup_path(path, dir, entries[i].name.p));
        TRY(entries[i].is_dir ? remove_below(env, path, a, depth + 1) : env->ops->unlink(env, path));
    }
    return env->ops->rmdir(env, dir);
}

err backup_remove(struct env *env, const char *dir)
{
    struct arena a = {0};
    err e = remove_below(env, dir, &a, 0);
    arena_deinit(&a);
    if (err_code(e) != ERR_NOT_FOUND) return e;
    err_free(e);
    return NULL;
}
