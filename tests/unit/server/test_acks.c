/* Unit acks: outcomes in order, failures, the race between a loop and the log's thread. */
#include "tests/unit/testing.h"

#include "server/acks.h"
#include "storage/base/rng.h"

#include <sched.h>

static void test_good(void **state)
{
    (void)state;
    struct acks a;
    err e;
    acks_init(&a);
    acks_begin(&a);
    assert_false(acks_poll(&a, 5, &e));
    assert_true(acks_settle(&a, 4, NULL)); /* wakes: something waits */
    assert_false(acks_poll(&a, 5, &e));
    assert_true(acks_settle(&a, 9, NULL));
    assert_true(acks_poll(&a, 5, &e));
    assert_null(e);
    assert_false(acks_settle(&a, 10, NULL)); /* nobody waits */
    acks_deinit(&a);
}

static void test_failed_ranges(void **state)
{
    (void)state;
    struct acks a;
    err e, disk = err_new(ERR_NO_SPACE, "disk full"), io = err_new(ERR_IO, "broken");
    acks_init(&a);
    for (int i = 0; i < 5; i++)
        acks_begin(&a);
    acks_settle(&a, 10, NULL);
    acks_settle(&a, 20, disk);
    acks_settle(&a, 30, disk);
    acks_settle(&a, 40, NULL);
    acks_settle(&a, 41, io);
    static const struct {
        uint64_t seq;
        enum err_code code;
    } cases[] = {{10, ERR_OK}, {11, ERR_NO_SPACE}, {30, ERR_NO_SPACE}, {31, ERR_OK}, {41, ERR_IO}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        assert_true(acks_poll(&a, cases[i].seq, &e));
        assert_int_equal(err_code(e), cases[i].code);
        err_free(e);
    }
    assert_int_equal(a.n_failures, 0); /* nobody is left who could ask */
    acks_deinit(&a);
    err_free(disk);
    err_free(io);
}

/* Failures of writes that are not this loop's leave nothing behind. */
static void test_idle_loop_keeps_nothing(void **state)
{
    (void)state;
    struct acks a;
    err io = err_new(ERR_IO, "broken");
    acks_init(&a);
    for (uint64_t i = 1; i < 1000; i++)
        assert_false(acks_settle(&a, i, i % 2 ? io : NULL));
    assert_int_equal(a.n_failures, 0);
    acks_begin(&a);
    acks_abandon(&a);
    acks_deinit(&a);
    err_free(io);
}

#define WRITES 20000

struct race {
    struct acks acks;
    _Atomic uint64_t appended; /* the highest number given out */
    _Atomic uint64_t wakes;
};

static bool fails(uint64_t seq)
{
    return seq % 7 == 3;
}

static void *settle_all(void *arg)
{
    struct race *r = arg;
    err io = err_new(ERR_IO, "broken");
    for (uint64_t next = 1; next <= WRITES; next++) {
        while (atomic_load(&r->appended) < next)
            sched_yield();
        if (acks_settle(&r->acks, next, fails(next) ? io : NULL)) atomic_fetch_add(&r->wakes, 1);
    }
    err_free(io);
    return NULL;
}

/* The loop polls once and then only after a wake-up, as the server does: no outcome may be missed. */
static void test_race(void **state)
{
    (void)state;
    struct race r = {0};
    pthread_t thread;
    acks_init(&r.acks);
    assert_int_equal(pthread_create(&thread, NULL, settle_all, &r), 0);
    for (uint64_t seq = 1; seq <= WRITES; seq++) {
        err e = NULL;
        uint64_t wakes = atomic_load(&r.wakes);
        acks_begin(&r.acks);
        atomic_store(&r.appended, seq);
        while (!acks_poll(&r.acks, seq, &e))
            while (atomic_load(&r.wakes) == wakes)
                sched_yield();
        assert_int_equal(err_code(e), fails(seq) ? ERR_IO : ERR_OK);
        err_free(e);
    }
    pthread_join(thread, NULL);
    acks_deinit(&r.acks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_good),
        cmocka_unit_test(test_failed_ranges),
        cmocka_unit_test(test_idle_loop_keeps_nothing),
        cmocka_unit_test(test_race),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
