/*
 * env.h: the seam between the engine and the machine: files, clock and randomness.
 *
 * Two implementations: env_posix (here) and the simulator's (tests/sim), whose disk loses, tears and
 * delays writes and fails the N-th call. Storage reaches the machine through this table only; `make
 * arch` bans the calls themselves elsewhere in storage/.
 *
 * Durability contract: bytes written are safe after file_sync returned OK; a created, renamed or
 * linked name is safe after dir_sync of its directory. A failed file_sync promises nothing about
 * what was written since the last good one, ever (the kernel may have dropped it).
 *
 * Paths are NUL-terminated. Files are safe to read from several threads at once; one writer a file.
 */
#ifndef VARVE_STORAGE_BASE_ENV_H
#define VARVE_STORAGE_BASE_ENV_H

#include "storage/base/err.h"

struct env;
struct env_file; /* opaque, made by the implementation */

enum env_open {
    ENV_READ,   /* must exist; pread only */
    ENV_CREATE, /* new or truncated; append, sync, pread */
    ENV_APPEND, /* must exist; opened for append at its end */
};

typedef void (*env_dir_fn)(void *arg, str name, bool is_dir);

struct env_ops {
    err (*file_open)(struct env *env, const char *path, enum env_open how, struct env_file **out);
    /* Reads exactly n bytes at offset; fewer available is ERR_CORRUPT ("short read"). */
    err (*file_read)(struct env_file *f, void *p, size_t n, uint64_t offset);
    err (*file_append)(struct env_file *f, const void *p, size_t n); /* all or error; position moves by n */
    err (*file_sync)(struct env_file *f);                            /* fdatasync */
    err (*file_size)(struct env_file *f, uint64_t *size);
    err (*file_truncate)(struct env_file *f, uint64_t size);
    /* Tells the kernel that [offset, offset+n) won't be read soon (merge inputs). May do nothing. */
    void (*file_drop_cache)(struct env_file *f, uint64_t offset, uint64_t n);
    /* Tells it that [offset, offset+n) will be, so that it may fetch that meanwhile. May do nothing. */
    void (*file_will_read)(struct env_file *f, uint64_t offset, uint64_t n);
    void (*file_close)(struct env_file *f); /* NULL allowed; no error: sync first if it matters */

    err (*rename)(struct env *env, const char *from, const char *to); /* replaces `to` atomically */
    err (*link)(struct env *env, const char *from, const char *to);   /* hard link */
    err (*unlink)(struct env *env, const char *path);                 /* a missing file is not an error */
    err (*mkdir)(struct env *env, const char *path);                  /* with parents; existing is fine */
    err (*rmdir)(struct env *env, const char *path);
    err (*dir_sync)(struct env *env, const char *path);
    err (*dir_list)(struct env *env, const char *path, env_dir_fn fn, void *arg);
    err (*free_space)(struct env *env, const char *path, uint64_t *bytes, uint64_t *total);
    /* Takes the directory's lock file for this process; ERR_LOCKED if another has it. Held until env_unlock. */
    err (*lock)(struct env *env, const char *path, struct env_file **out);
    void (*unlock)(struct env_file *f);

    int64_t (*now_ms)(struct env *env);   /* wall clock, ms since the epoch */
    uint64_t (*mono_ns)(struct env *env); /* monotonic */
    void (*random)(struct env *env, void *p, size_t n);
    /* The calling thread does background work from now on: `niceness` 1 .. 19 steps behind the others. May be NULL. */
    void (*step_back)(struct env *env, int niceness);
};

struct env {
    const struct env_ops *ops;
    bool threads; /* false: the engine must start none (simulator); background work runs in storage_tick */
};

/* The real machine. One static instance, never freed. */
struct env *env_posix(void);

#endif
