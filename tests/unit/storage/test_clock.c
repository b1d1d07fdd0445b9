/*
 * test_clock.c: steps of the wall clock, and stopping: nothing is lost that a wrong clock or a stop could cost.
 * The simulated machine's wall clock is stepped alone; its monotonic clock goes on.
 */
#include "tests/unit/testing.h"

#include <pthread.h>

#include "storage/base/alloc.h"
#include "storage/base/mono.h"
#include "storage/storage.h"
#include "tests/sim/sim_env.h"

#define DAY_MS INT64_C(86400000)
#define YEAR_MS (365 * DAY_MS)
#define RETENTION_MS (30 * DAY_MS)

struct fixture {
    struct sim_env *sim;
    struct env *env;
    struct db *db;
};

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    f->sim = sim_env_create(1);
    f->env = sim_env_env(f->sim);
    struct storage_options o = {.env = f->env, .path = "data", .retention_ms = RETENTION_MS, .future_ms = 2 * DAY_MS};
    assert_ok(storage_open(&o, &f->db));
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    assert_ok(storage_close(f->db));
    sim_env_destroy(f->sim);
    mem_free(f);
    return 0;
}

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    (void)arg, (void)i;
    out->v = arena_alloc(a, sizeof *out->v);
    out->v[0] = (struct label){STR("__name__"), STR("m")};
    out->n = 1;
    return NULL;
}

/* One sample at this time, in a part of its own. True if it was accepted. */
static bool write_part(struct fixture *f, int64_t t)
{
    double v = 1;
    struct batch_series series = {.raw = "m", .raw_bytes = 1, .n = 1};
    series.alias = hash128(storage_hash_key(f->db), "m", 1);
    struct batch b = {.series = &series, .n_series = 1, .t = &t, .v = &v, .n_samples = 1, .resolve = resolve};
    struct append_result r = {0};
    assert_ok(storage_append(f->db, &b, &r));
    err_free(r.first);
    assert_ok(storage_flush(f->db));
    return r.accepted == 1;
}

static uint64_t parts(struct fixture *f)
{
    struct storage_stats stats;
    storage_stats(f->db, &stats);
    return stats.parts;
}

static int64_t now(struct fixture *f)
{
    return f->env->ops->now_ms(f->env);
}

/* A clock that runs twenty years ahead drops nothing and merges nothing away; what came is there when it is right. */
static void test_clock_far_ahead(void **state)
{
    struct fixture *f = *state;
    int64_t t = now(f);
    assert_true(write_part(f, t));
    assert_true(write_part(f, t + 1));
    sim_env_advance(f->sim, 20 * YEAR_MS);
    assert_ok(storage_tick(f->db));
    assert_ok(storage_merge(f->db, -1));
    assert_int_equal(parts(f), 1);
    assert_false(write_part(f, t + 2)); /* refused, as older than the retention: the sender keeps it */
    sim_env_advance(f->sim, -20 * YEAR_MS);
    assert_ok(storage_tick(f->db));
    struct storage_stats stats;
    storage_stats(f->db, &stats);
    assert_int_equal(stats.part_samples, 2);
}

/* Time that samples have followed is believed: what is beyond the retention goes. */
static void test_retention_follows_samples(void **state)
{
    struct fixture *f = *state;
    assert_true(write_part(f, now(f)));
    sim_env_advance(f->sim, RETENTION_MS + DAY_MS);
    assert_ok(storage_tick(f->db));
    assert_int_equal(parts(f), 1);
    assert_true(write_part(f, now(f)));
    sim_env_advance(f->sim, DAY_MS / 12);
    assert_ok(storage_tick(f->db));
    assert_int_equal(parts(f), 1);
}

/* A clock set back: retention, flushes and merges go on, samples of the (real) future are refused with a reason. */
static void test_clock_set_back(void **state)
{
    struct fixture *f = *state;
    int64_t t = now(f);
    assert_true(write_part(f, t));
    sim_env_advance(f->sim, -10 * YEAR_MS);
    assert_ok(storage_tick(f->db));
    assert_false(write_part(f, t + 1));
    assert_true(write_part(f, now(f)));
    sim_env_advance(f->sim, 10 * YEAR_MS);
    assert_ok(storage_tick(f->db)); /* its own first retention check may still be due by the old clock: no harm */
    assert_true(write_part(f, t + 2));
    assert_ok(storage_tick(f->db));
    struct storage_stats stats;
    storage_stats(f->db, &stats);
    assert_int_equal(stats.part_t_max, t + 2);
}

static void test_no_merge_after_stop(void **state)
{
    struct fixture *f = *state;
    for (int i = 0; i < 4; i++)
        assert_true(write_part(f, now(f) + i));
    storage_stop_merges(f->db);
    assert_err(storage_merge(f->db, -1), ERR_BUSY);
    assert_ok(storage_tick(f->db));
    assert_int_equal(parts(f), 4);
}

static void test_deadlines_are_monotonic(void **state)
{
    (void)state;
    pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
    pthread_cond_t cond;
    mono_cond_init(&cond);
    struct timespec until = mono_deadline(0), later = mono_deadline(3600);
    assert_in_range(later.tv_sec - until.tv_sec, 3600, 3601);
    pthread_mutex_lock(&lock);
    while (mono_cond_wait(&cond, &lock, &until)) /* by the wall clock it would have passed 50 years ago, too */
        ;
    pthread_mutex_unlock(&lock);
    struct timespec mono;
    clock_gettime(CLOCK_MONOTONIC, &mono);
    assert_in_range(mono.tv_sec - until.tv_sec, 0, 60);
    pthread_cond_destroy(&cond);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_clock_far_ahead, setup, teardown),
        cmocka_unit_test_setup_teardown(test_retention_follows_samples, setup, teardown),
        cmocka_unit_test_setup_teardown(test_clock_set_back, setup, teardown),
        cmocka_unit_test_setup_teardown(test_no_merge_after_stop, setup, teardown),
        cmocka_unit_test(test_deadlines_are_monotonic),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
