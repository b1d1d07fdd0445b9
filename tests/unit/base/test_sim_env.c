/*
 * test_sim_env.c: the simulated machine keeps the promises of env.h, and breaks everything else.
 * What may happen is shown over many seeds: each allowed outcome must occur, no other may.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "tests/sim/sim_env.h"

#include <errno.h>
#include <stdio.h>

#define SEEDS 200

struct machine {
    struct sim_env *sim;
    struct env *env;
    const struct env_ops *ops;
};

static struct machine power_on(uint64_t seed)
{
    struct sim_env *s = sim_env_create(seed);
    return (struct machine){s, sim_env_env(s), sim_env_env(s)->ops};
}

static void assert_ok(err e)
{
    if (e != NULL) fail_msg("%s", err_message(e));
}

static void assert_err(err e, enum err_code code, const char *text)
{
    assert_non_null(e);
    assert_string_equal(err_code_name(err_code(e)), err_code_name(code));
    if (strstr(err_message(e), text) == NULL) fail_msg("'%s' lacks '%s'", err_message(e), text);
    err_free(e);
}

static struct env_file *open_file(struct machine *m, const char *path, enum env_open how)
{
    struct env_file *f = NULL;
    assert_ok(m->ops->file_open(m->env, path, how, &f));
    return f;
}

/* A file with this text, content and name durable. */
static void put_file(struct machine *m, const char *path, const char *text)
{
    struct env_file *f = open_file(m, path, ENV_CREATE);
    assert_ok(m->ops->file_append(f, text, strlen(text)));
    assert_ok(m->ops->file_sync(f));
    assert_ok(m->ops->dir_sync(m->env, "/"));
    m->ops->file_close(f);
}

static str content(struct machine *m, const char *path)
{
    struct sim_node *n = sim_disk_find(sim_env_disk(m->sim), path);
    return n ? sim_node_view(n) : STR("(none)");
}

static bool has(struct machine *m, const char *path, const char *text)
{
    return str_eq(content(m, path), str_of(text));
}

static void test_promises_of_env(void **state)
{
    (void)state;
    struct machine m = power_on(1);
    struct env_file *f;
    char got[8] = {0};
    put_file(&m, "a", "one");
    f = open_file(&m, "a", ENV_APPEND);
    assert_ok(m.ops->file_append(f, "two", 3));
    assert_ok(m.ops->file_read(f, got, 4, 2));
    assert_string_equal(got, "etwo");
    assert_err(m.ops->file_read(f, got, 4, 3), ERR_CORRUPT, "short read at 3: 3 of 4");
    assert_ok(m.ops->file_truncate(f, 1));
    assert_ok(m.ops->file_append(f, "X", 1));
    m.ops->file_close(f);
    assert_true(has(&m, "/a", "oX"));
    assert_err(m.ops->file_open(m.env, "none", ENV_READ, &f), ERR_NOT_FOUND, "none");
    assert_err(m.ops->link(m.env, "a", "a"), ERR_IO, "exists");
    assert_ok(m.ops->mkdir(m.env, "/d/e/"));
    assert_err(m.ops->rmdir(m.env, "d"), ERR_IO, "empty");
    assert_ok(m.ops->rename(m.env, "a", "d/e/b"));
    assert_true(has(&m, "d//e/./b", "oX"));
    assert_ok(m.ops->rename(m.env, "d/e", "d/f"));
    assert_ok(m.ops->unlink(m.env, "d/f/b"));
    assert_ok(m.ops->unlink(m.env, "d/f/b"));
    assert_ok(m.ops->rmdir(m.env, "d/f"));
    assert_false(m.env->threads);
    assert_int_equal(sim_env_open_handles(m.sim), 0);
    sim_env_destroy(m.sim);
}

static void test_lock(void **state)
{
    (void)state;
    struct machine m = power_on(1);
    struct env_file *first, *second;
    assert_ok(m.ops->lock(m.env, "lock", &first));
    assert_err(m.ops->lock(m.env, "lock", &second), ERR_LOCKED, "lock");
    sim_env_kill_process(m.sim);
    assert_ok(m.ops->lock(m.env, "lock", &second));
    m.ops->unlock(first); /* the dead process's handle does not free the new lock */
    assert_err(m.ops->lock(m.env, "lock", &first), ERR_LOCKED, "lock");
    m.ops->unlock(second);
    assert_ok(m.ops->lock(m.env, "lock", &first));
    m.ops->unlock(first);
    sim_env_destroy(m.sim);
}

static void test_synced_survives(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct machine m = power_on(seed);
        put_file(&m, "a", "old");
        struct env_file *f = open_file(&m, "a", ENV_APPEND);
        assert_ok(m.ops->file_append(f, "safe", 4));
        assert_ok(m.ops->file_sync(f));
        assert_ok(m.ops->rename(m.env, "a", "b"));
        assert_ok(m.ops->dir_sync(m.env, "/"));
        sim_env_crash_now(m.sim);
        m.ops->file_close(f);
        sim_env_restart(m.sim, (enum sim_crash_style)(seed % SIM_CRASH_STYLES));
        assert_true(has(&m, "b", "oldsafe"));
        assert_true(has(&m, "a", "(none)"));
        sim_env_destroy(m.sim);
    }
}

/* Content that was not synced is kept, lost or torn; the durable bytes before it are whole. */
static void test_unsynced_write(void **state)
{
    (void)state;
    enum { BYTES = 3000 };
    int kept = 0, lost = 0, torn = 0, garbage = 0;
    char big[BYTES];
    memset(big, 'x', sizeof big);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct machine m = power_on(seed);
        put_file(&m, "a", "old");
        struct env_file *f = open_file(&m, "a", ENV_APPEND);
        assert_ok(m.ops->file_append(f, big, sizeof big));
        m.ops->file_close(f);
        sim_env_restart(m.sim, SIM_CRASH_MIXED);
        str got = content(&m, "a");
        assert_true(str_starts_with(got, STR("old")));
        bool all_x = true;
        for (size_t i = 3; i < got.n; i++)
            all_x = all_x && got.p[i] == 'x';
        assert_true(got.n <= 3 + BYTES);
        if (!all_x)
            garbage++;
        else if (got.n == 3 + BYTES)
            kept++;
        else if (got.n == 3)
            lost++;
        else
            torn += got.n % SIM_SECTOR == 0;
        sim_env_destroy(m.sim);
    }
    assert_true(kept > 20 && lost > 20 && torn > 10 && garbage > 5);
}

static void test_unsynced_names(void **state)
{
    (void)state;
    int before = 0, after = 0, vanished = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct machine m = power_on(seed);
        put_file(&m, "current", "1");
        put_file(&m, "tmp", "2");
        assert_ok(m.ops->rename(m.env, "tmp", "current"));
        struct env_file *f = open_file(&m, "fresh", ENV_CREATE);
        assert_ok(m.ops->file_append(f, "x", 1));
        assert_ok(m.ops->file_sync(f));
        m.ops->file_close(f);
        sim_env_restart(m.sim, SIM_CRASH_MIXED);
        bool is_old = has(&m, "current", "1") && has(&m, "tmp", "2");
        bool is_new = has(&m, "current", "2") && has(&m, "tmp", "(none)");
        assert_true(is_old || is_new);
        before += is_old, after += is_new;
        vanished += has(&m, "fresh", "(none)");
        assert_true(has(&m, "fresh", "x") || has(&m, "fresh", "(none)"));
        sim_env_destroy(m.sim);
    }
    assert_true(before > 50 && after > 50 && vanished > 50);
}

static void test_styles(void **state)
{
    (void)state;
    for (int style = SIM_CRASH_LOSE; style <= SIM_CRASH_KEEP; style++) {
        struct machine m = power_on(7);
        put_file(&m, "a", "old");
        struct env_file *f = open_file(&m, "a", ENV_APPEND);
        assert_ok(m.ops->file_append(f, "new", 3));
        m.ops->file_close(f);
        assert_ok(m.ops->rename(m.env, "a", "b"));
        sim_env_restart(m.sim, (enum sim_crash_style)style);
        assert_true(style == SIM_CRASH_LOSE ? has(&m, "a", "old") : has(&m, "b", "oldnew"));
        sim_env_destroy(m.sim);
    }
}

/* A link shares the content: durable through one name is durable through the other. */
static void test_links(void **state)
{
    (void)state;
    struct machine m = power_on(3);
    put_file(&m, "a", "text");
    assert_ok(m.ops->mkdir(m.env, "snap"));
    assert_ok(m.ops->link(m.env, "a", "snap/a"));
    assert_ok(m.ops->dir_sync(m.env, "snap"));
    assert_ok(m.ops->unlink(m.env, "a"));
    assert_ok(m.ops->dir_sync(m.env, "."));
    sim_env_restart(m.sim, SIM_CRASH_LOSE);
    assert_true(has(&m, "snap/a", "text"));
    assert_true(has(&m, "a", "(none)"));
    sim_env_destroy(m.sim);
}

static void test_crash_at_the_nth_change(void **state)
{
    (void)state;
    int was_synced = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct machine m = power_on(seed);
        put_file(&m, "a", "");
        struct env_file *f = open_file(&m, "a", ENV_APPEND);
        sim_env_crash_after(m.sim, 2);
        assert_ok(m.ops->file_append(f, "x", 1));
        err e = m.ops->file_sync(f);
        assert_true(sim_env_is_crash(e));
        err_free(e);
        assert_true(sim_env_crashed(m.sim));
        assert_err(m.ops->file_append(f, "y", 1), ERR_IO, "simulated crash");
        assert_err(m.ops->unlink(m.env, "a"), ERR_IO, "simulated crash");
        assert_err(m.ops->dir_sync(m.env, "/"), ERR_IO, "simulated crash");
        m.ops->file_close(f);
        sim_env_restart(m.sim, SIM_CRASH_LOSE);
        was_synced += has(&m, "a", "x");
        assert_true(has(&m, "a", "x") || has(&m, "a", ""));
        sim_env_destroy(m.sim);
    }
    assert_true(was_synced > 50 && was_synced < SEEDS - 50);
}

static void test_failing_calls(void **state)
{
    (void)state;
    struct machine m = power_on(5);
    put_file(&m, "a", "1");
    struct env_file *f = open_file(&m, "a", ENV_APPEND);
    sim_env_fail(m.sim, SIM_APPEND, 2, 2, EIO);
    assert_ok(m.ops->file_append(f, "2", 1));
    assert_err(m.ops->file_append(f, "??", 2), ERR_IO, "append a");
    assert_err(m.ops->file_append(f, "??", 2), ERR_IO, "append a");
    assert_ok(m.ops->file_append(f, "345", 3)); /* over what the failed ones left */
    assert_true(has(&m, "a", "12345"));
    sim_env_fail(m.sim, SIM_RENAME | SIM_READ, 1, SIM_FOREVER, ENOSPC);
    char c;
    for (int i = 0; i < 5; i++) {
        assert_err(m.ops->rename(m.env, "a", "b"), ERR_NO_SPACE, "rename b");
        assert_err(m.ops->file_read(f, &c, 1, 0), ERR_NO_SPACE, "read a");
    }
    assert_int_equal(sim_env_failures(m.sim), 12);
    sim_env_fail_never(m.sim);
    assert_ok(m.ops->rename(m.env, "a", "b"));
    m.ops->file_close(f);
    sim_env_destroy(m.sim);
}

/* After a failed sync the bytes may be gone for good, though a later sync succeeds and reads may show them. */
static void test_failed_sync_loses(void **state)
{
    (void)state;
    int lost = 0, shown_yet_lost = 0;
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        struct machine m = power_on(seed);
        put_file(&m, "a", "old");
        struct env_file *f = open_file(&m, "a", ENV_APPEND);
        assert_ok(m.ops->file_append(f, "mid", 3));
        sim_env_fail(m.sim, SIM_SYNC, 1, 1, EIO);
        assert_err(m.ops->file_sync(f), ERR_IO, "sync a");
        bool shown = has(&m, "a", "oldmid");
        assert_int_equal(content(&m, "a").n, 6);
        assert_ok(m.ops->file_append(f, "new", 3));
        assert_ok(m.ops->file_sync(f));
        m.ops->file_close(f);
        sim_env_restart(m.sim, SIM_CRASH_LOSE);
        str got = content(&m, "a");
        assert_int_equal(got.n, 9);
        assert_memory_equal(got.p, "old", 3);
        assert_memory_equal(got.p + 6, "new", 3);
        bool gone = memcmp(got.p + 3, "mid", 3) != 0;
        lost += gone;
        shown_yet_lost += gone && shown;
        sim_env_destroy(m.sim);
    }
    assert_true(lost > 30 && lost < SEEDS - 30 && shown_yet_lost > 10);
}

static void test_full_disk(void **state)
{
    (void)state;
    struct machine m = power_on(5);
    uint64_t bytes, total;
    put_file(&m, "a", "12345");
    sim_env_capacity(m.sim, 8);
    struct env_file *f = open_file(&m, "a", ENV_APPEND);
    assert_err(m.ops->file_append(f, "6789", 4), ERR_NO_SPACE, "append a");
    assert_ok(m.ops->file_truncate(f, 5));
    assert_ok(m.ops->free_space(m.env, "/", &bytes, &total));
    assert_int_equal(bytes, 3);
    assert_int_equal(total, 8);
    assert_ok(m.ops->file_append(f, "678", 3));
    m.ops->file_close(f);
    assert_ok(m.ops->unlink(m.env, "a"));
    sim_env_restart(m.sim, SIM_CRASH_KEEP);
    assert_ok(m.ops->free_space(m.env, "/", &bytes, &total));
    assert_int_equal(bytes, 8);
    sim_env_destroy(m.sim);
}

static void test_same_seed_same_machine(void **state)
{
    (void)state;
    uint64_t draws[2];
    for (int i = 0; i < 2; i++) {
        struct machine m = power_on(99);
        m.ops->random(m.env, &draws[i], sizeof draws[i]);
        draws[i] ^= m.ops->mono_ns(m.env) ^ (uint64_t)m.ops->now_ms(m.env);
        sim_env_destroy(m.sim);
    }
    assert_int_equal(draws[0], draws[1]);
    struct machine m = power_on(100);
    int64_t t = m.ops->now_ms(m.env);
    sim_env_advance(m.sim, 5000);
    assert_int_equal(m.ops->now_ms(m.env), t + 5000);
    sim_env_destroy(m.sim);
}

static void test_flip(void **state)
{
    (void)state;
    struct machine m = power_on(5);
    put_file(&m, "a", "1");
    assert_int_equal(sim_env_flip(m.sim, "a", 0, 3), 0);
    assert_int_equal(sim_env_flip(m.sim, "a", 1, 3), EINVAL);
    assert_int_equal(sim_env_flip(m.sim, "b", 0, 3), ENOENT);
    assert_true(has(&m, "a", "2"));
    sim_env_restart(m.sim, SIM_CRASH_LOSE);
    assert_true(has(&m, "a", "2"));
    sim_env_destroy(m.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_promises_of_env),
        cmocka_unit_test(test_lock),
        cmocka_unit_test(test_synced_survives),
        cmocka_unit_test(test_unsynced_write),
        cmocka_unit_test(test_unsynced_names),
        cmocka_unit_test(test_styles),
        cmocka_unit_test(test_links),
        cmocka_unit_test(test_crash_at_the_nth_change),
        cmocka_unit_test(test_failing_calls),
        cmocka_unit_test(test_failed_sync_loses),
        cmocka_unit_test(test_full_disk),
        cmocka_unit_test(test_same_seed_same_machine),
        cmocka_unit_test(test_flip),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
