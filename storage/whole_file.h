/*
 * whole_file.h: small files that are read whole and replaced whole: the manifest, the identity, the exemplars.
 */
#ifndef VARVE_STORAGE_WHOLE_FILE_H
#define VARVE_STORAGE_WHOLE_FILE_H

#include "storage/base/buf.h"
#include "storage/base/env.h"

/* Appends all of the file to out. ERR_NOT_FOUND if there is none, ERR_CORRUPT if it has more than `max` bytes. */
err whole_file_read(struct env *env, const char *path, size_t max, struct buf *out) __attribute__((warn_unused_result));
/* Writes dir/name so that a reader finds the old file or the new one, whole; durable on return. The one before stays
 * as dir/previous, if that is not NULL. */
err whole_file_replace(struct env *env, const char *dir, const char *name, const char *previous, const struct buf *b)
    __attribute__((warn_unused_result));

#endif
