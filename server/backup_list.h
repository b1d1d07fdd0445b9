/*
 * backup_list.h: the file BACKUP in a backup: which files it consists of, with checksums.
 *
 *   varve backup 1
 *   file <xxh3-64, 16 hex digits> <bytes> <mtime, ns> <inode> <device> <path>     sorted by path
 *   end <xxh3-64 of all lines before>
 *
 * mtime, inode and device are those of the file that was copied: a source that has not changed is known by them
 * without being read again. `xxhsum -H3` computes the same checksums.
 */
#ifndef VARVE_SERVER_BACKUP_LIST_H
#define VARVE_SERVER_BACKUP_LIST_H

#include "storage/base/arena.h"
#include "storage/base/buf.h"

#define BACKUP_LIST_NAME "BACKUP"

struct backup_file {
    str path; /* relative, '/' between folders, NUL-terminated */
    uint64_t sum, bytes;
    int64_t mtime_ns;
    uint64_t inode, device;
};

struct backup_list {
    struct backup_file *v; /* sorted by path, strictly */
    size_t n;
};

void backup_list_print(const struct backup_list *list, struct buf *out);
/* ERR_CORRUPT: it is cut off or damaged, or a path in it leads out of the backup. Memory is the arena's. */
err backup_list_parse(str text, struct arena *a, struct backup_list *out) __attribute__((warn_unused_result));
/* NULL if there is none. */
const struct backup_file *backup_list_find(const struct backup_list *list, str path);
int backup_file_compare(const void *a, const void *b); /* by path, for qsort */

#endif
