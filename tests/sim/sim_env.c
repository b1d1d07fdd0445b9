/*
 * sim_env.c: the simulated machine's table of calls, its faults and its clock.
 *
 * Every call goes through `enter`, which counts it, lets the clock tick, and decides whether it fails
 * (crashed, a failure on demand) or the machine crashes at it. A crashing call still reaches the disk's
 * list of pending changes about half of the time, so that its own fate is open too; and of changing
 * calls that fail with an I/O error a quarter took effect: an error says nothing about the disk.
 *
 * A handle remembers the process it belongs to (`process`, counted up by restart and kill): calls
 * on a dead process's handle are the test's or the engine's mistake and stop the run. Closing one is
 * fine at any time: that is how an abandoned engine frees its memory.
 */
#include "tests/sim/sim_env.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <errno.h>
#include <stdio.h>

#define START_MS INT64_C(1718000000000) /* 2024-06-10: seeds begin in the middle of a month */
#define CRASH_TEXT "simulated crash"

struct sim_env {
    struct env env; /* first: the engine's pointer is ours */
    struct rng rng, fate_rng;
    struct sim_disk *disk;
    unsigned process, handles;
    struct env_file *lock; /* one data directory at a time is all a process locks; NULL if none */
    int64_t now_ms;
    uint64_t mono_ns;
    uint64_t changes;
    bool crashed, trace, lies;
    uint64_t crash_in; /* changing calls until the crash; 0 = none planned */
    unsigned fail_calls;
    uint64_t fail_in, fail_times, failures; /* matching calls until the first failure */
    int fail_errnum;
    uint64_t capacity;
};

struct env_file {
    struct sim_env *sim;
    struct sim_node *node;
    unsigned process;
    bool writable;
    uint64_t position;
    char *path;
};

/* STOP: nothing happens, the error is returned. GO_BUT_FAIL: it happens, and the error is returned all the same. */
enum verdict { GO, GO_BUT_FAIL, STOP };

static struct sim_env *sim_of(struct env *env)
{
    return (struct sim_env *)env;
}

static err crash_error(const char *what, const char *path)
{
    return err_new(ERR_IO, CRASH_TEXT ": %s %s", what, path);
}

static bool call_fails(struct sim_env *s, unsigned call)
{
    if (!(s->fail_calls & call) || s->fail_times == 0) return false;
    if (s->fail_in > 1) {
        s->fail_in--;
        return false;
    }
    if (s->fail_times != SIM_FOREVER) s->fail_times--;
    s->failures++;
    return true;
}

/* True if the machine dies at this changing call. */
static bool crash_is_due(struct sim_env *s)
{
    if (s->crash_in == 0 || --s->crash_in > 0) return false;
    s->crashed = true;
    return true;
}

/* What becomes of one call; *e is set when it is not GO. */
static enum verdict enter(struct sim_env *s, unsigned call, const char *what, const char *path, err *e)
{
    *e = NULL;
    s->mono_ns += 1000 + rng_below(&s->rng, 100000);
    if (s->crashed) {
        *e = crash_error(what, path);
        return STOP;
    }
    bool change = call & SIM_CHANGES;
    if (change) s->changes++;
    if (change && s->trace) fprintf(stderr, "sim %llu %s %s\n", (unsigned long long)s->changes, what, path);
    if (change && crash_is_due(s)) {
        if (s->trace) fprintf(stderr, "sim crash at %s %s\n", what, path);
        *e = crash_error(what, path);
        return rng_chance(&s->fate_rng, 0.5) ? GO_BUT_FAIL : STOP;
    }
    if (call_fails(s, call)) {
        if (s->trace) fprintf(stderr, "sim fail %s %s\n", what, path);
        *e = err_errno(s->fail_errnum, "%s %s", what, path);
        return change && s->fail_errnum != ENOSPC && rng_chance(&s->fate_rng, 0.25) ? GO_BUT_FAIL : STOP;
    }
    return GO;
}

/* The end of a call that reached the disk: errnum is the disk's answer, e the crash that came with it. */
static err leave(err e, int errnum, const char *what, const char *path)
{
    if (e != NULL || errnum == 0) return e;
    return err_errno(errnum, "%s %s", what, path);
}

static void check_handle(const struct env_file *f)
{
    check(f->sim->crashed || f->process == f->sim->process); /* used after its process died */
}

/* ---- files -------------------------------------------------------------------------------------------------- */

static struct env_file *handle_new(struct sim_env *s, struct sim_node *node, bool writable, const char *path)
{
    struct env_file *f = mem_alloc(sizeof *f);
    *f = (struct env_file){
        .sim = s,
        .node = sim_node_ref(node),
        .process = s->process,
        .writable = writable,
        .path = mem_dup_str(str_of(path)),
    };
    s->handles++;
    return f;
}

static err sim_file_open(struct env *env, const char *path, enum env_open how, struct env_file **out)
{
    struct sim_env *s = sim_of(env);
    err e;
    enum verdict verdict = enter(s, how == ENV_CREATE ? SIM_CREATE : SIM_OPEN, "open", path, &e);
    if (verdict == STOP) return e;

    int why = 0;
    struct sim_node *node = NULL;
    if (how == ENV_CREATE)
        why = sim_disk_create_file(s->disk, path, &node);
    else if ((node = sim_disk_find(s->disk, path)) == NULL)
        why = ENOENT;
    else if (sim_node_is_dir(node))
        why = EISDIR;
    e = leave(e, why, "open", path);
    if (e != NULL) return e;
    *out = handle_new(s, node, how != ENV_READ, path);
    if (how == ENV_APPEND) (*out)->position = sim_node_view(node).n;
    return NULL;
}

static err sim_file_read(struct env_file *f, void *p, size_t n, uint64_t offset)
{
    err e;
    check_handle(f);
    if (enter(f->sim, SIM_READ, "read", f->path, &e) == STOP) return e;
    str view = sim_node_view(f->node);
    size_t got = offset < view.n ? view.n - offset : 0;
    if (got < n)
        return err_corrupt("%s: short read at %llu: %zu of %zu bytes", f->path, (unsigned long long)offset, got, n);
    if (n > 0) memcpy(p, view.p + offset, n);
    return NULL;
}

static uint64_t free_bytes(const struct sim_env *s)
{
    uint64_t used = s->capacity == UINT64_MAX ? 0 : sim_disk_used(s->disk);
    return used < s->capacity ? s->capacity - used : 0;
}

/* A write that fails may have written any part of its bytes; the position stays where it was. */
static void write_some(struct env_file *f, const void *p, size_t n)
{
    sim_node_write(f->node, f->position, p, rng_below(&f->sim->fate_rng, n + 1));
}

static err sim_file_append(struct env_file *f, const void *p, size_t n)
{
    struct sim_env *s = f->sim;
    err e;
    check_handle(f);
    check(f->writable);
    enum verdict verdict = enter(s, SIM_APPEND, "append", f->path, &e);
    if (verdict == STOP && s->crashed) return e;
    if (verdict == STOP) {
        write_some(f, p, n);
        return e;
    }
    uint64_t room = free_bytes(s);
    if (room < n) {
        s->failures++;
        write_some(f, p, room);
        return leave(e, ENOSPC, "append", f->path);
    }
    sim_node_write(f->node, f->position, p, n);
    if (e == NULL) f->position += n;
    return e;
}

static err sim_file_sync(struct env_file *f)
{
    err e;
    check_handle(f);
    enum verdict verdict = enter(f->sim, SIM_SYNC, "sync", f->path, &e);
    if (verdict == STOP && !f->sim->crashed) sim_node_sync_failed(f->sim->disk, f->node);
    if (verdict != STOP && !f->sim->lies) sim_node_sync(f->node);
    return e;
}

static err sim_file_size(struct env_file *f, uint64_t *size)
{
    err e;
    check_handle(f);
    if (enter(f->sim, SIM_LIST, "size", f->path, &e) == STOP) return e;
    *size = sim_node_view(f->node).n;
    return NULL;
}

static err sim_file_truncate(struct env_file *f, uint64_t size)
{
    err e;
    check_handle(f);
    check(f->writable);
    if (enter(f->sim, SIM_TRUNCATE, "truncate", f->path, &e) == STOP) return e;
    sim_node_truncate(f->node, size);
    if (e == NULL) f->position = size;
    return e;
}

static void sim_file_drop_cache(struct env_file *f, uint64_t offset, uint64_t n)
{
    (void)f, (void)offset, (void)n;
}

static void sim_file_will_read(struct env_file *f, uint64_t offset, uint64_t n)
{
    (void)f, (void)offset, (void)n;
}

static void sim_file_close(struct env_file *f)
{
    if (f == NULL) return;
    struct sim_env *s = f->sim;
    s->handles--;
    sim_node_unref(s->disk, f->node);
    mem_free(f->path);
    mem_free(f);
}

/* ---- names -------------------------------------------------------------------------------------------------- */

static err sim_rename(struct env *env, const char *from, const char *to)
{
    err e;
    if (enter(sim_of(env), SIM_RENAME, "rename", to, &e) == STOP) return e;
    return leave(e, sim_disk_rename(sim_of(env)->disk, from, to), "rename", from);
}

static err sim_link(struct env *env, const char *from, const char *to)
{
    err e;
    if (enter(sim_of(env), SIM_LINK, "link", to, &e) == STOP) return e;
    return leave(e, sim_disk_link(sim_of(env)->disk, from, to), "link", from);
}

static err sim_unlink(struct env *env, const char *path)
{
    err e;
    if (enter(sim_of(env), SIM_UNLINK, "remove", path, &e) == STOP) return e;
    return leave(e, sim_disk_unlink(sim_of(env)->disk, path), "remove", path);
}

static err sim_mkdir(struct env *env, const char *path)
{
    err e;
    if (enter(sim_of(env), SIM_MKDIR, "make directory", path, &e) == STOP) return e;
    return leave(e, sim_disk_mkdir(sim_of(env)->disk, path), "make directory", path);
}

static err sim_rmdir(struct env *env, const char *path)
{
    err e;
    if (enter(sim_of(env), SIM_RMDIR, "remove directory", path, &e) == STOP) return e;
    return leave(e, sim_disk_rmdir(sim_of(env)->disk, path), "remove directory", path);
}

static err sim_dir_sync(struct env *env, const char *path)
{
    err e;
    if (enter(sim_of(env), SIM_DIR_SYNC, "sync directory", path, &e) == STOP) return e;
    return leave(e, sim_disk_sync_dir(sim_of(env)->disk, path), "sync directory", path);
}

static err sim_dir_list(struct env *env, const char *path, env_dir_fn fn, void *arg)
{
    err e;
    if (enter(sim_of(env), SIM_LIST, "list", path, &e) == STOP) return e;
    return leave(e, sim_disk_list(sim_of(env)->disk, path, fn, arg), "list", path);
}

static err sim_free_space(struct env *env, const char *path, uint64_t *bytes, uint64_t *total)
{
    struct sim_env *s = sim_of(env);
    err e;
    if (enter(s, SIM_LIST, "free space of", path, &e) == STOP) return e;
    if (sim_disk_find(s->disk, path) == NULL) return err_errno(ENOENT, "free space of %s", path);
    *total = s->capacity == UINT64_MAX ? UINT64_C(1) << 40 : s->capacity;
    *bytes = s->capacity == UINT64_MAX ? *total : free_bytes(s);
    return NULL;
}

static err sim_lock(struct env *env, const char *path, struct env_file **out)
{
    struct sim_env *s = sim_of(env);
    err e;
    struct sim_node *node = sim_disk_find(s->disk, path);
    if (enter(s, node ? SIM_OPEN : SIM_CREATE, "lock", path, &e) == STOP) return e;
    if (s->lock != NULL && s->lock->node == node) return err_new(ERR_LOCKED, "%s is locked: process 1 uses it", path);
    int why = node ? 0 : sim_disk_create_file(s->disk, path, &node);
    e = leave(e, why, "lock", path);
    if (e != NULL) return e;
    *out = handle_new(s, node, true, path);
    if (s->lock == NULL) s->lock = *out;
    return NULL;
}

static void sim_unlock(struct env_file *f)
{
    if (f != NULL && f->sim->lock == f) f->sim->lock = NULL;
    sim_file_close(f);
}

/* ---- clock and chance --------------------------------------------------------------------------------------- */

static int64_t sim_now_ms(struct env *env)
{
    return sim_of(env)->now_ms + (int64_t)(sim_of(env)->mono_ns / 1000000);
}

static uint64_t sim_mono_ns(struct env *env)
{
    return sim_of(env)->mono_ns;
}

static void sim_random(struct env *env, void *p, size_t n)
{
    uint8_t *to = p;
    for (size_t i = 0; i < n; i++)
        to[i] = (uint8_t)(rng_next(&sim_of(env)->rng) >> 32);
}

static const struct env_ops sim_ops = {
    .file_open = sim_file_open,
    .file_read = sim_file_read,
    .file_append = sim_file_append,
    .file_sync = sim_file_sync,
    .file_size = sim_file_size,
    .file_truncate = sim_file_truncate,
    .file_drop_cache = sim_file_drop_cache,
    .file_will_read = sim_file_will_read,
    .file_close = sim_file_close,
    .rename = sim_rename,
    .link = sim_link,
    .unlink = sim_unlink,
    .mkdir = sim_mkdir,
    .rmdir = sim_rmdir,
    .dir_sync = sim_dir_sync,
    .dir_list = sim_dir_list,
    .free_space = sim_free_space,
    .lock = sim_lock,
    .unlock = sim_unlock,
    .now_ms = sim_now_ms,
    .mono_ns = sim_mono_ns,
    .random = sim_random,
};

/* ---- the test's side ---------------------------------------------------------------------------------------- */

struct sim_env *sim_env_create(uint64_t seed)
{
    struct sim_env *s = mem_zalloc(sizeof *s);
    s->env = (struct env){.ops = &sim_ops, .threads = false};
    rng_seed(&s->rng, seed);
    rng_seed(&s->fate_rng, seed ^ UINT64_C(0x5851f42d4c957f2d));
    s->disk = sim_disk_create(&s->fate_rng);
    s->now_ms = START_MS;
    s->capacity = UINT64_MAX;
    return s;
}

void sim_env_destroy(struct sim_env *s)
{
    if (s == NULL) return;
    sim_disk_destroy(s->disk);
    mem_free(s);
}

struct env *sim_env_env(struct sim_env *s)
{
    return &s->env;
}

struct sim_disk *sim_env_disk(struct sim_env *s)
{
    return s->disk;
}

void sim_env_crash_after(struct sim_env *s, uint64_t changes)
{
    s->crash_in = changes;
}

void sim_env_crash_now(struct sim_env *s)
{
    s->crash_in = 0;
    s->crashed = true;
}

void sim_env_crash_never(struct sim_env *s)
{
    s->crash_in = 0;
}

bool sim_env_crashed(const struct sim_env *s)
{
    return s->crashed;
}

bool sim_env_is_crash(const struct err *e)
{
    return strstr(err_message(e), CRASH_TEXT) != NULL;
}

void sim_env_kill_process(struct sim_env *s)
{
    s->process++;
    s->lock = NULL;
}

void sim_env_restart(struct sim_env *s, enum sim_crash_style style)
{
    sim_env_kill_process(s);
    sim_disk_crash(s->disk, style);
    s->crashed = false;
    s->crash_in = 0;
}

unsigned sim_env_open_handles(const struct sim_env *s)
{
    return s->handles;
}

void sim_env_fail(struct sim_env *s, unsigned calls, uint64_t nth, uint64_t times, int errnum)
{
    s->fail_calls = calls;
    s->fail_in = nth;
    s->fail_times = times;
    s->fail_errnum = errnum;
}

void sim_env_fail_never(struct sim_env *s)
{
    s->fail_times = 0;
}

uint64_t sim_env_failures(const struct sim_env *s)
{
    return s->failures;
}

void sim_env_capacity(struct sim_env *s, uint64_t bytes)
{
    s->capacity = bytes;
}

void sim_env_lie(struct sim_env *s, bool on)
{
    s->lies = on;
}

void sim_env_advance(struct sim_env *s, int64_t ms)
{
    s->now_ms += ms;
}

uint64_t sim_env_changes(const struct sim_env *s)
{
    return s->changes;
}

void sim_env_trace(struct sim_env *s, bool on)
{
    s->trace = on;
}

int sim_env_flip(struct sim_env *s, const char *path, uint64_t offset, uint8_t mask)
{
    struct sim_node *n = sim_disk_find(s->disk, path);
    if (n == NULL || sim_node_is_dir(n)) return ENOENT;
    if (offset >= sim_node_view(n).n) return EINVAL;
    sim_node_flip(n, offset, mask);
    return 0;
}
