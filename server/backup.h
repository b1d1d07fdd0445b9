/*
 * backup.h: copies of a data directory that share unchanged files, and the way back.
 *
 *   DIR/LOCK                        one backup at a time
 *   DIR/20261130T164300.123Z/       a backup: a data directory (varve verify reads it) and BACKUP, its list of files
 *   DIR/.partial-20261130T.../      one that is being made, or was cut short; the next backup removes it
 *
 * A file that the newest backup has already, by the source's inode, size and mtime or by its checksum, is hard-linked
 * from it. Nothing here knows what the files mean.
 */
#ifndef VARVE_SERVER_BACKUP_H
#define VARVE_SERVER_BACKUP_H

#include "storage/base/buf.h"
#include "storage/base/env.h"

typedef void (*backup_progress_fn)(void *arg, uint64_t bytes, uint64_t total); /* of files looked at so far */

struct backup_options {
    const char *source; /* a data directory that nobody changes meanwhile: a snapshot, or one whose lock is held */
    const char *dir;    /* where the backups are; made if absent */
    bool verify;        /* read files that are linked too, and check the whole as varve verify does */
    struct buf *notes;  /* lines about what is wrong or unusual are appended here */
    backup_progress_fn progress; /* may be NULL */
    void *progress_arg;
};

struct backup_result {
    char name[32]; /* of the backup, in dir */
    uint64_t files, bytes;
    uint64_t copied_files, copied_bytes; /* the rest is linked */
};

/* Makes one backup. It is complete and on disk when this returns without an error; else dir is as before. */
err backup_make(struct env *env, const struct backup_options *o, struct backup_result *out)
    __attribute__((warn_unused_result));

/*
 * Copies the backup, or the newest of a directory of backups, to `to`, which must be absent or empty. Each file is held
 * against its checksum, the whole is checked as varve verify does; faults go to notes, a line each, and make it
 * ERR_CORRUPT. `to` appears only when everything was found good.
 */
err backup_restore(struct env *env, const char *from, const char *to, struct buf *notes, backup_progress_fn progress,
                   void *progress_arg, struct backup_result *out) __attribute__((warn_unused_result));

#endif
