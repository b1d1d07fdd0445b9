/*
 * whole_file.c: see whole_file.h. A new file is written beside the old one, synced, and renamed over it; then the
 * directory is synced. Stateless; two writers of one name must take turns.
 */
#include "storage/whole_file.h"

#include <stdio.h>

err whole_file_read(struct env *env, const char *path, size_t max, struct buf *out)
{
    struct env_file *f = NULL;
    uint64_t size;
    TRY(env->ops->file_open(env, path, ENV_READ, &f));
    err e = NULL;
    TRY_OUT(env->ops->file_size(f, &size));
    if (size > max) TRY_OUT(err_corrupt("%s: %llu bytes is too large", path, (unsigned long long)size));
    uint8_t *p = buf_reserve(out, size + 1);
    TRY_OUT(env->ops->file_read(f, p, size, 0));
    out->n = size;
out:
    env->ops->file_close(f);
    return e;
}

err whole_file_replace(struct env *env, const char *dir, const char *name, const char *previous, const struct buf *b)
{
    char path[4096], temporary[4096 + 8], before[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(temporary, sizeof temporary, "%s.tmp", path);
    struct env_file *f = NULL;
    TRY(env->ops->file_open(env, temporary, ENV_CREATE, &f));
    err e = env->ops->file_append(f, b->data, b->n);
    if (e == NULL) e = env->ops->file_sync(f);
    env->ops->file_close(f);
    TRY(e);
    if (previous != NULL) { /* best effort: it only helps when the file is damaged later */
        snprintf(before, sizeof before, "%s/%s", dir, previous);
        err_free(env->ops->unlink(env, before));
        err_free(env->ops->link(env, path, before));
    }
    TRY(env->ops->rename(env, temporary, path));
    return env->ops->dir_sync(env, dir);
}
