/*
 * backup_file.h: single files and folders of a backup: copied with their checksum, listed, removed.
 */
#ifndef VARVE_SERVER_BACKUP_FILE_H
#define VARVE_SERVER_BACKUP_FILE_H

#include "server/backup.h"
#include "server/backup_list.h"

#define BACKUP_PATH_MAX 4096

/* dir/name in out[BACKUP_PATH_MAX]. ERR_INVALID: too long. */
err backup_path(char *out, const char *dir, const char *name) __attribute__((warn_unused_result));

/* What the file system says about a file: bytes, mtime, inode, device. */
err backup_stat(const char *path, struct backup_file *f) __attribute__((warn_unused_result));

/* Copies from → to (synced), or only reads if `to` is NULL; *sum and *bytes of what was read. */
err backup_copy(struct env *env, const char *from, const char *to, uint64_t *sum, uint64_t *bytes)
    __attribute__((warn_unused_result));

/* Reads a small file whole. ERR_NOT_FOUND. */
err backup_read(struct env *env, const char *path, struct buf *out) __attribute__((warn_unused_result));

/* The names in a folder, sorted; in the arena, NUL-terminated. */
struct backup_entry {
    str name;
    bool is_dir;
};
err backup_entries(struct env *env, const char *dir, struct arena *a, struct backup_entry **out, size_t *n)
    __attribute__((warn_unused_result));

/* Removes a folder with all in it; one that is not there is fine. */
err backup_remove(struct env *env, const char *dir) __attribute__((warn_unused_result));

#endif
