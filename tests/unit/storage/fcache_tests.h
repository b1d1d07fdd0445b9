/*
 * fcache_tests.h: a load function with known contents and threads that read through a small cache; shared by
 * test_fcache.c (ASan) and test_fcache_tsan.c (TSan).
 */
#ifndef VARVE_TESTS_FCACHE_TESTS_H
#define VARVE_TESTS_FCACHE_TESTS_H

#include "tests/unit/testing.h"

#include <pthread.h>
#include <stdatomic.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/fcache.h"

struct loader {
    uint64_t part;
    atomic_int loads;
    bool fail;
};

/* Frame contents follow from part and offset. */
static inline err load_known(void *arg, uint64_t offset, uint8_t **data, size_t *n)
{
    struct loader *l = arg;
    atomic_fetch_add(&l->loads, 1);
    if (l->fail) return err_new(ERR_IO, "no disk");
    *n = 100 + offset % 3000;
    *data = mem_alloc(*n);
    memset(*data, (int)((l->part * 31 + offset) & 0xff), *n);
    return NULL;
}

static inline void check_known(const struct fcache_entry *e, uint64_t part, uint64_t offset)
{
    assert_int_equal(e->n, 100 + offset % 3000);
    assert_int_equal(e->data[0], (part * 31 + offset) & 0xff);
    assert_int_equal(e->data[e->n - 1], (part * 31 + offset) & 0xff);
}

#define READERS 4
#define PINS 6

struct reader_thread {
    pthread_t thread;
    struct fcache *c;
    uint64_t seed;
};

/* Keeps a few pins, each checked when it is dropped; forgets a part now and then. */
static inline void *read_frames(void *arg)
{
    struct reader_thread *me = arg;
    struct rng r;
    struct loader l[2] = {{.part = 1}, {.part = 2}};
    const struct fcache_entry *pins[PINS] = {0};
    uint64_t part[PINS], offset[PINS];
    rng_seed(&r, me->seed);
    for (int i = 0; i < 20000; i++) {
        size_t at = rng_below(&r, PINS), which = rng_below(&r, 2);
        if (pins[at] != NULL) {
            check_known(pins[at], part[at], offset[at]);
            fcache_unpin(me->c, pins[at]);
        }
        part[at] = l[which].part;
        offset[at] = rng_below(&r, 300) * 17;
        assert_ok(fcache_get(me->c, part[at], offset[at], load_known, &l[which], &pins[at]));
        if (rng_chance(&r, 0.001)) fcache_forget(me->c, 1 + rng_below(&r, 2));
        if (rng_chance(&r, 0.001)) fcache_bytes(me->c);
    }
    for (size_t at = 0; at < PINS; at++)
        if (pins[at] != NULL) fcache_unpin(me->c, pins[at]);
    return NULL;
}

static inline void test_threads(void **state)
{
    (void)state;
    struct reader_thread t[READERS];
    uint64_t seed = test_seed();
    struct fcache *c = fcache_create(100000, NULL);
    for (size_t i = 0; i < READERS; i++) {
        t[i] = (struct reader_thread){.c = c, .seed = seed + i};
        assert_int_equal(pthread_create(&t[i].thread, NULL, read_frames, &t[i]), 0);
    }
    for (size_t i = 0; i < READERS; i++)
        pthread_join(t[i].thread, NULL);
    fcache_forget(c, 1);
    fcache_forget(c, 2);
    assert_int_equal(fcache_bytes(c), 0);
    fcache_destroy(c);
}

#endif
