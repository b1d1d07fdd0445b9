/*
 * env_posix.c: the real machine behind env.h: Linux files, clocks and randomness.
 *
 * A file is a descriptor, the path it was opened by (for messages) and the append position. Appends
 * go through pwrite at that position, so a write that failed halfway leaves the position where it
 * was: the next append overwrites the torn bytes, and truncating to the old size removes them.
 * Nothing is buffered here: what file_append took is in the kernel's page cache when it returns.
 *
 * The lock file holds one line, `pid N`, a note for people; the lock itself is flock(2), which the
 * kernel releases however the process ends and which also holds between two opens in one process.
 * The file is never removed: unlinking it would let two processes lock two different inodes.
 *
 * Stateless but for the open files: any thread may call anything, one writer a file (env.h).
 */
#include "storage/base/env.h"

#include "storage/base/access.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

#define FILE_MODE 0640
#define DIR_MODE 0750

struct env_file {
    int fd;
    uint64_t position; /* where the next append goes */
    char *path;
};

/* ---- files -------------------------------------------------------------------------------------------------- */

static int open_flags(enum env_open how)
{
    switch (how) {
    case ENV_READ:
        return O_RDONLY;
    case ENV_CREATE:
        return O_RDWR | O_CREAT | O_TRUNC;
    case ENV_APPEND:
        return O_RDWR;
    }
    check(!"unknown way to open a file");
}

static int open_retry(const char *path, int flags)
{
    int fd;
    do
        fd = open(path, flags | O_CLOEXEC, FILE_MODE);
    while (fd < 0 && errno == EINTR);
    return fd;
}

static struct env_file *file_new(int fd, uint64_t position, const char *path)
{
    struct env_file *f = mem_alloc(sizeof *f);
    *f = (struct env_file){.fd = fd, .position = position, .path = mem_dup_str(str_of(path))};
    return f;
}

static err posix_file_open(struct env *env, const char *path, enum env_open how, struct env_file **out)
{
    (void)env;
    int fd = open_retry(path, open_flags(how));
    if (fd < 0) return access_error(errno, "open", path);

    struct stat st = {0};
    if (how == ENV_APPEND && fstat(fd, &st) != 0) {
        err e = err_errno(errno, "stat %s", path);
        close(fd);
        return e;
    }
    *out = file_new(fd, (uint64_t)st.st_size, path);
    return NULL;
}

static err posix_file_read(struct env_file *f, void *p, size_t n, uint64_t offset)
{
    if (offset > (uint64_t)INT64_MAX - n) return err_corrupt("%s: read beyond any file's end", f->path);
    size_t done = 0;
    while (done < n) {
        ssize_t got = pread(f->fd, (char *)p + done, n - done, (off_t)(offset + done));
        if (got < 0 && errno == EINTR) continue;
        if (got < 0) return err_errno(errno, "read %s at %llu", f->path, (unsigned long long)offset);
        if (got == 0)
            return err_corrupt("%s: short read at %llu: %zu of %zu bytes", f->path, (unsigned long long)offset, done,
                               n);
        done += (size_t)got;
    }
    return NULL;
}

static err posix_file_append(struct env_file *f, const void *p, size_t n)
{
    size_t done = 0;
    while (done < n) {
        ssize_t put = pwrite(f->fd, (const char *)p + done, n - done, (off_t)(f->position + done));
        if (put < 0 && errno == EINTR) continue;
        if (put < 0) return err_errno(errno, "write %s", f->path);
        done += (size_t)put;
    }
    f->position += n;
    return NULL;
}

static err posix_file_sync(struct env_file *f)
{
    while (fdatasync(f->fd) != 0) {
        if (errno != EINTR) return err_errno(errno, "sync %s", f->path);
    }
    return NULL;
}

static err posix_file_size(struct env_file *f, uint64_t *size)
{
    struct stat st;
    if (fstat(f->fd, &st) != 0) return err_errno(errno, "stat %s", f->path);
    *size = (uint64_t)st.st_size;
    return NULL;
}

static err posix_file_truncate(struct env_file *f, uint64_t size)
{
    while (ftruncate(f->fd, (off_t)size) != 0) {
        if (errno != EINTR) return err_errno(errno, "truncate %s", f->path);
    }
    f->position = size;
    return NULL;
}

static void posix_file_drop_cache(struct env_file *f, uint64_t offset, uint64_t n)
{
    /* Advice only: a failure changes nothing that anyone relies on. */
    (void)posix_fadvise(f->fd, (off_t)offset, (off_t)n, POSIX_FADV_DONTNEED);
}

static void posix_file_will_read(struct env_file *f, uint64_t offset, uint64_t n)
{
    (void)posix_fadvise(f->fd, (off_t)offset, (off_t)n, POSIX_FADV_WILLNEED); /* likewise */
}

static void posix_file_close(struct env_file *f)
{
    if (f == NULL) return;
    close(f->fd);
    mem_free(f->path);
    mem_free(f);
}

/* ---- directories -------------------------------------------------------------------------------------------- */

static err posix_rename(struct env *env, const char *from, const char *to)
{
    (void)env;
    if (rename(from, to) != 0) return err_errno(errno, "rename %s to %s", from, to);
    return NULL;
}

static err posix_link(struct env *env, const char *from, const char *to)
{
    (void)env;
    if (link(from, to) != 0) return err_errno(errno, "link %s to %s", from, to);
    return NULL;
}

static err posix_unlink(struct env *env, const char *path)
{
    (void)env;
    if (unlink(path) != 0 && errno != ENOENT) return access_error(errno, "remove", path);
    return NULL;
}

static err posix_rmdir(struct env *env, const char *path)
{
    (void)env;
    if (rmdir(path) != 0) return access_error(errno, "remove directory", path);
    return NULL;
}

static err posix_dir_sync(struct env *env, const char *path)
{
    (void)env;
    int fd = open_retry(path, O_RDONLY | O_DIRECTORY);
    if (fd < 0) return access_error(errno, "open directory", path);
    err e = NULL;
    while (fsync(fd) != 0) {
        if (errno == EINTR) continue;
        e = err_errno(errno, "sync directory %s", path);
        break;
    }
    close(fd);
    return e;
}

/* Syncs the directory that holds `path` (a path of our own making, without a trailing slash). */
static err sync_parent(struct env *env, char *path)
{
    char *slash = strrchr(path, '/');
    if (slash == NULL) return posix_dir_sync(env, ".");
    if (slash == path) return posix_dir_sync(env, "/");
    *slash = '\0';
    err e = posix_dir_sync(env, path);
    *slash = '/';
    return e;
}

static bool is_directory(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}

/* Makes one directory and its name durable: a caller of mkdir can't know which parents were new. */
static err make_one(struct env *env, char *path)
{
    if (is_directory(path)) return NULL;
    if (mkdir(path, DIR_MODE) == 0) return sync_parent(env, path);
    int why = errno;
    if (why == EEXIST && is_directory(path)) return NULL; /* someone else was quicker */
    return access_error(why == EEXIST ? ENOTDIR : why, "make directory", path);
}

static err posix_mkdir(struct env *env, const char *path)
{
    char *copy = mem_dup_str(str_of(path));
    size_t n = strlen(copy);
    while (n > 1 && copy[n - 1] == '/')
        copy[--n] = '\0';

    err e = NULL;
    for (size_t i = 1; i < n && e == NULL; i++) {
        if (copy[i] != '/' || copy[i - 1] == '/') continue;
        copy[i] = '\0';
        e = make_one(env, copy);
        copy[i] = '/';
    }
    if (e == NULL) e = make_one(env, copy);
    mem_free(copy);
    return e;
}

static bool entry_is_dir(DIR *dir, const struct dirent *entry)
{
    if (entry->d_type != DT_UNKNOWN) return entry->d_type == DT_DIR;
    struct stat st;
    return fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode);
}

static err posix_dir_list(struct env *env, const char *path, env_dir_fn fn, void *arg)
{
    (void)env;
    DIR *dir = opendir(path);
    if (dir == NULL) return access_error(errno, "open directory", path);
    struct dirent *entry;
    for (errno = 0; (entry = readdir(dir)) != NULL; errno = 0) {
        str name = str_of(entry->d_name);
        if (str_eq(name, STR(".")) || str_eq(name, STR(".."))) continue;
        fn(arg, name, entry_is_dir(dir, entry));
    }
    err e = errno ? err_errno(errno, "list directory %s", path) : NULL;
    closedir(dir);
    return e;
}

static err posix_free_space(struct env *env, const char *path, uint64_t *bytes, uint64_t *total)
{
    (void)env;
    struct statvfs fs;
    while (statvfs(path, &fs) != 0) {
        if (errno != EINTR) return err_errno(errno, "free space of %s", path);
    }
    *bytes = (uint64_t)fs.f_bavail * fs.f_frsize;
    *total = (uint64_t)fs.f_blocks * fs.f_frsize;
    return NULL;
}

/* ---- the lock ----------------------------------------------------------------------------------------------- */

/* The pid noted in a lock file; 0 if there is none to be read. */
static long read_owner(int fd)
{
    char note[64];
    ssize_t n = pread(fd, note, sizeof note - 1, 0);
    if (n <= 0) return 0;
    note[n] = '\0';
    long pid = 0;
    return sscanf(note, "pid %ld", &pid) == 1 ? pid : 0;
}

static err write_owner(int fd, const char *path)
{
    char note[64];
    int n = snprintf(note, sizeof note, "pid %ld\n", (long)getpid());
    errno = ENOSPC; /* what a short write means */
    if (ftruncate(fd, 0) != 0 || pwrite(fd, note, (size_t)n, 0) != n) return err_errno(errno, "write lock %s", path);
    return NULL;
}

static err locked_error(int fd, const char *path)
{
    long pid = read_owner(fd);
    if (pid > 0) return err_new(ERR_LOCKED, "%s is locked: process %ld uses this data directory", path, pid);
    return err_new(ERR_LOCKED, "%s is locked: another process uses this data directory", path);
}

static err take_lock(int fd, const char *path)
{
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        if (errno == EINTR) continue;
        if (errno == EWOULDBLOCK) return locked_error(fd, path);
        return err_errno(errno, "lock %s", path);
    }
    /* The note helps people only: on a full disk the lock still holds, and reads must go on. */
    err e = write_owner(fd, path);
    if (err_code(e) != ERR_NO_SPACE) return e;
    err_free(e);
    return NULL;
}

static err posix_lock(struct env *env, const char *path, struct env_file **out)
{
    (void)env;
    int fd = open_retry(path, O_RDWR | O_CREAT);
    if (fd < 0) return access_error(errno, "open", path);
    err e = take_lock(fd, path);
    if (e != NULL) {
        close(fd);
        return e;
    }
    *out = file_new(fd, 0, path);
    return NULL;
}

/* ---- clock and chance --------------------------------------------------------------------------------------- */

static int64_t posix_now_ms(struct env *env)
{
    (void)env;
    struct timespec ts;
    clock_gettime(CLOCK_REALTIME, &ts);
    return (int64_t)ts.tv_sec * 1000 + ts.tv_nsec / 1000000;
}

static uint64_t posix_mono_ns(struct env *env)
{
    (void)env;
    struct timespec ts;
    clock_gettime(CLOCK_MONOTONIC, &ts);
    return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

static void posix_random(struct env *env, void *p, size_t n)
{
    (void)env;
    size_t done = 0;
    while (done < n) {
        ssize_t got = getrandom((char *)p + done, n - done, 0);
        check(got > 0 || errno == EINTR); /* getrandom(2) fails otherwise on bad arguments only */
        if (got > 0) done += (size_t)got;
    }
}

static void posix_step_back(struct env *env, int niceness)
{
    (void)env;
    (void)setpriority(PRIO_PROCESS, (id_t)gettid(), niceness); /* Linux: of the thread. A wish: it works without */
}

static const struct env_ops posix_ops = {
    .file_open = posix_file_open,
    .file_read = posix_file_read,
    .file_append = posix_file_append,
    .file_sync = posix_file_sync,
    .file_size = posix_file_size,
    .file_truncate = posix_file_truncate,
    .file_drop_cache = posix_file_drop_cache,
    .file_will_read = posix_file_will_read,
    .file_close = posix_file_close,
    .rename = posix_rename,
    .link = posix_link,
    .unlink = posix_unlink,
    .mkdir = posix_mkdir,
    .rmdir = posix_rmdir,
    .dir_sync = posix_dir_sync,
    .dir_list = posix_dir_list,
    .free_space = posix_free_space,
    .lock = posix_lock,
    .unlock = posix_file_close,
    .now_ms = posix_now_ms,
    .mono_ns = posix_mono_ns,
    .random = posix_random,
    .step_back = posix_step_back,
};

struct env *env_posix(void)
{
    static struct env env = {.ops = &posix_ops, .threads = true};
    return &env;
}
