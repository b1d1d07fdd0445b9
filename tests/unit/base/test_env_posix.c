/*
 * test_env_posix.c: the real machine's env: what env.h promises about files, names, the lock and clocks.
 * Each test works in a fresh folder under $TMPDIR or /tmp, which it removes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/base/access.h"
#include "storage/base/alloc.h"
#include "storage/base/env.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

struct room {
    struct env *env;
    char dir[256];
    char path[2][512]; /* two slots for in_dir */
};

static int setup(void **state)
{
    struct room *r = mem_zalloc(sizeof *r);
    const char *tmp = getenv("TMPDIR");
    snprintf(r->dir, sizeof r->dir, "%s/varve-env-XXXXXX", tmp ? tmp : "/tmp");
    if (mkdtemp(r->dir) == NULL) return -1;
    r->env = env_posix();
    *state = r;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static int teardown(void **state)
{
    struct room *r = *state;
    nftw(r->dir, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(r);
    return 0;
}

static const char *in_dir(struct room *r, int slot, const char *name)
{
    snprintf(r->path[slot], sizeof r->path[slot], "%s/%s", r->dir, name);
    return r->path[slot];
}

static void assert_ok(err e)
{
    if (e != NULL) fail_msg("%s", err_message(e));
}

/* Ends the error, which must have this code and mention this text. */
static void assert_err(err e, enum err_code code, const char *text)
{
    assert_non_null(e);
    assert_string_equal(err_code_name(err_code(e)), err_code_name(code));
    if (strstr(err_message(e), text) == NULL) fail_msg("'%s' lacks '%s'", err_message(e), text);
    err_free(e);
}

static void write_file(struct room *r, const char *path, const char *text)
{
    struct env_file *f;
    assert_ok(r->env->ops->file_open(r->env, path, ENV_CREATE, &f));
    assert_ok(r->env->ops->file_append(f, text, strlen(text)));
    assert_ok(r->env->ops->file_sync(f));
    r->env->ops->file_close(f);
}

static void assert_file(struct room *r, const char *path, const char *text)
{
    struct env_file *f;
    char got[256] = {0};
    uint64_t size;
    assert_ok(r->env->ops->file_open(r->env, path, ENV_READ, &f));
    assert_ok(r->env->ops->file_size(f, &size));
    assert_int_equal(size, strlen(text));
    assert_ok(r->env->ops->file_read(f, got, size, 0));
    assert_string_equal(got, text);
    r->env->ops->file_close(f);
}

static void test_append_and_read(void **state)
{
    struct room *r = *state;
    const struct env_ops *ops = r->env->ops;
    const char *path = in_dir(r, 0, "file");
    struct env_file *f;
    char got[8] = {0};

    write_file(r, path, "one");
    assert_ok(ops->file_open(r->env, path, ENV_APPEND, &f));
    assert_ok(ops->file_append(f, "two", 3));
    assert_ok(ops->file_read(f, got, 4, 2));
    assert_string_equal(got, "etwo");
    assert_err(ops->file_read(f, got, 4, 3), ERR_CORRUPT, "short read at 3: 3 of 4");
    assert_err(ops->file_read(f, got, 1, UINT64_MAX), ERR_CORRUPT, "file: ");
    assert_ok(ops->file_read(f, got, 0, 6));
    assert_ok(ops->file_append(f, "", 0));
    ops->file_will_read(f, 0, 6);
    ops->file_drop_cache(f, 0, 6);
    assert_ok(ops->file_sync(f));
    ops->file_close(f);
    assert_file(r, path, "onetwo");

    write_file(r, path, "new"); /* ENV_CREATE truncates */
    assert_file(r, path, "new");
    ops->file_close(NULL);
}

static void test_truncate_moves_the_position(void **state)
{
    struct room *r = *state;
    const char *path = in_dir(r, 0, "file");
    struct env_file *f;
    write_file(r, path, "abcdef");
    assert_ok(r->env->ops->file_open(r->env, path, ENV_APPEND, &f));
    assert_ok(r->env->ops->file_truncate(f, 2));
    assert_ok(r->env->ops->file_append(f, "XY", 2));
    r->env->ops->file_close(f);
    assert_file(r, path, "abXY");
}

static void test_failed_writes_are_errors(void **state)
{
    struct room *r = *state;
    const struct env_ops *ops = r->env->ops;
    struct env_file *f;
    const char *path = in_dir(r, 0, "file");
    assert_err(ops->file_open(r->env, path, ENV_READ, &f), ERR_NOT_FOUND, path);
    assert_err(ops->file_open(r->env, path, ENV_APPEND, &f), ERR_NOT_FOUND, path);
    write_file(r, path, "x");
    assert_ok(ops->file_open(r->env, path, ENV_READ, &f));
    assert_err(ops->file_append(f, "y", 1), ERR_IO, path);
    ops->file_close(f);
    assert_ok(ops->file_open(r->env, "/dev/full", ENV_APPEND, &f));
    assert_err(ops->file_append(f, "y", 1), ERR_NO_SPACE, "/dev/full");
    ops->file_close(f);
}

static void test_names(void **state)
{
    struct room *r = *state;
    const struct env_ops *ops = r->env->ops;
    const char *a = in_dir(r, 0, "a"), *b = in_dir(r, 1, "b");
    struct env_file *f;
    write_file(r, a, "first");
    write_file(r, b, "second");
    assert_err(ops->link(r->env, a, b), ERR_IO, "exists");
    assert_ok(ops->rename(r->env, a, b));
    assert_file(r, b, "first");
    assert_err(ops->file_open(r->env, a, ENV_READ, &f), ERR_NOT_FOUND, a);
    assert_ok(ops->link(r->env, b, a));
    assert_file(r, a, "first");
    assert_ok(ops->unlink(r->env, b));
    assert_ok(ops->unlink(r->env, b));
    assert_file(r, a, "first");
    assert_ok(ops->dir_sync(r->env, r->dir));
    assert_err(ops->dir_sync(r->env, b), ERR_NOT_FOUND, b);
    assert_err(ops->rename(r->env, b, a), ERR_NOT_FOUND, b);
}

/* What another user may not do: the message names the path that denies it, its owner, the process's ids, a remedy. */
static void try_as_nobody(struct room *r, const char *file, const char *dir)
{
    const struct env_ops *ops = r->env->ops;
    struct env_file *f;
    char owner[64], remedy[512];
    if (setgid(4711) != 0 || setuid(4710) != 0) _exit(9);
    snprintf(owner, sizeof owner, "(mode 0600), this process runs as uid 4710, gid 4711");
    snprintf(remedy, sizeof remedy, "chown -R 4710:4711 %s)", file);
    err e = ops->file_open(r->env, file, ENV_APPEND, &f);
    if (e == NULL || strstr(err_message(e), owner) == NULL || strstr(err_message(e), remedy) == NULL) _exit(1);
    e = ops->mkdir(r->env, dir);
    snprintf(remedy, sizeof remedy, "%s belongs to uid 0, gid 0 (mode 0755)", r->dir);
    if (e == NULL || strstr(err_message(e), "make directory") == NULL || strstr(err_message(e), remedy) == NULL)
        _exit(2);
    if (chdir(r->dir) != 0) _exit(8);
    e = ops->mkdir(r->env, "relative");
    if (e == NULL || strstr(err_message(e), remedy) == NULL) _exit(3);
    _exit(0);
}

static void test_denied_access_is_explained(void **state)
{
    struct room *r = *state;
    int status = -1;
    if (geteuid() != 0) skip(); /* only root can become another user */
    const char *file = in_dir(r, 0, "mine"), *dir = in_dir(r, 1, "sub/deep");
    write_file(r, file, "x");
    assert_int_equal(chmod(file, 0600), 0);
    assert_int_equal(chmod(r->dir, 0755), 0);
    pid_t child = fork();
    if (child == 0) try_as_nobody(r, file, dir);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    err e = access_error(EROFS, "open", "/x/LOCK");
    assert_err(e, ERR_IO, "open /x/LOCK: Read-only file system: it is mounted read-only; mount it writable");
    e = access_error(ENOENT, "open", "/x");
    assert_err(e, ERR_NOT_FOUND, "open /x: No such file");
}

static void count_entry(void *arg, str name, bool is_dir)
{
    int *seen = arg;
    if (str_eq(name, STR("sub")))
        seen[0] += is_dir ? 1 : 100;
    else if (str_eq(name, STR("file")))
        seen[1] += is_dir ? 100 : 1;
    else
        seen[2]++;
}

static void test_directories(void **state)
{
    struct room *r = *state;
    const struct env_ops *ops = r->env->ops;
    int seen[3] = {0};
    assert_ok(ops->mkdir(r->env, in_dir(r, 0, "sub//deep/deeper/")));
    assert_ok(ops->mkdir(r->env, r->path[0]));
    write_file(r, in_dir(r, 1, "file"), "x");
    assert_err(ops->mkdir(r->env, r->path[1]), ERR_IO, r->path[1]);
    assert_err(ops->mkdir(r->env, in_dir(r, 1, "file/below")), ERR_IO, "/file");
    assert_ok(ops->dir_list(r->env, r->dir, count_entry, seen));
    assert_int_equal(seen[0], 1);
    assert_int_equal(seen[1], 1);
    assert_int_equal(seen[2], 0);
    assert_err(ops->rmdir(r->env, in_dir(r, 0, "sub")), ERR_IO, "not empty");
    assert_ok(ops->rmdir(r->env, in_dir(r, 0, "sub/deep/deeper")));
    assert_err(ops->dir_list(r->env, r->path[0], count_entry, seen), ERR_NOT_FOUND, r->path[0]);
}

static void test_relative_mkdir(void **state)
{
    struct room *r = *state;
    char before[512];
    assert_non_null(getcwd(before, sizeof before));
    assert_int_equal(chdir(r->dir), 0);
    assert_ok(r->env->ops->mkdir(r->env, "x/y"));
    assert_ok(r->env->ops->dir_sync(r->env, "x/y"));
    assert_int_equal(chdir(before), 0);
}

static void test_lock_in_one_process(void **state)
{
    struct room *r = *state;
    const char *path = in_dir(r, 0, "lock");
    struct env_file *first, *second;
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)getpid());
    assert_ok(r->env->ops->lock(r->env, path, &first));
    assert_err(r->env->ops->lock(r->env, path, &second), ERR_LOCKED, pid);
    assert_err(r->env->ops->lock(r->env, path, &second), ERR_LOCKED, path);
    r->env->ops->unlock(first);
    assert_ok(r->env->ops->lock(r->env, path, &second));
    r->env->ops->unlock(second);
}

/* A child takes the lock and is killed: meanwhile it is held, afterwards it is free. */
static void test_lock_of_another_process(void **state)
{
    struct room *r = *state;
    const char *path = in_dir(r, 0, "lock");
    struct env_file *lock;
    char byte = 0;
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        err e = r->env->ops->lock(r->env, path, &lock);
        if (write(ready[1], e ? "n" : "y", 1) != 1) _exit(1);
        for (;;)
            pause();
    }
    char pid[32];
    snprintf(pid, sizeof pid, "process %ld", (long)child);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(byte, 'y');
    assert_err(r->env->ops->lock(r->env, path, &lock), ERR_LOCKED, pid);
    kill(child, SIGKILL);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_ok(r->env->ops->lock(r->env, path, &lock));
    r->env->ops->unlock(lock);
    close(ready[0]);
    close(ready[1]);
}

static void test_clock_space_and_chance(void **state)
{
    struct room *r = *state;
    const struct env_ops *ops = r->env->ops;
    uint64_t free_bytes = 0, total = 0;
    assert_ok(ops->free_space(r->env, r->dir, &free_bytes, &total));
    assert_true(total > 0 && free_bytes <= total);
    assert_err(ops->free_space(r->env, in_dir(r, 0, "none"), &free_bytes, &total), ERR_NOT_FOUND, "none");
    assert_true(ops->now_ms(r->env) > INT64_C(1700000000000));
    uint64_t t = ops->mono_ns(r->env);
    assert_true(ops->mono_ns(r->env) >= t);
    uint8_t a[512] = {0}, b[512] = {0};
    ops->random(r->env, a, sizeof a);
    ops->random(r->env, b, sizeof b);
    assert_memory_not_equal(a, b, sizeof a);
    assert_true(r->env->threads);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_append_and_read, setup, teardown),
        cmocka_unit_test_setup_teardown(test_truncate_moves_the_position, setup, teardown),
        cmocka_unit_test_setup_teardown(test_failed_writes_are_errors, setup, teardown),
        cmocka_unit_test_setup_teardown(test_denied_access_is_explained, setup, teardown),
        cmocka_unit_test_setup_teardown(test_names, setup, teardown),
        cmocka_unit_test_setup_teardown(test_directories, setup, teardown),
        cmocka_unit_test_setup_teardown(test_relative_mkdir, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lock_in_one_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_lock_of_another_process, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clock_space_and_chance, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
