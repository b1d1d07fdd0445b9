/*
 * test_part_tsan.c: threads with cursors of their own read one part through one small cache, while the part's
 * indexes load for the first time; under ThreadSanitizer.
 */
#include "tests/unit/storage/part_model.h"

#include <pthread.h>

struct reader_thread {
    pthread_t thread;
    const struct model *m;
    struct part *p;
    const struct hash_key *key;
};

static void *read_whole(void *arg)
{
    struct reader_thread *me = arg;
    model_compare(me->m, me->p, me->key);
    part_unref(me->p);
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (int round = 0; round < 5; round++) {
        struct model_room room;
        struct model m;
        struct part *p;
        struct reader_thread t[4];
        struct part_meta meta = {.id = 9, .partition = MODEL_MONTH};
        room_open(&room, 50000);
        model_random(&m, &r, 200, 100, true, MODEL_T0, MODEL_T1);
        model_write(&m, room.env, room.path, &meta);
        assert_ok(part_open(room.env, room.path, &room.key, room.cache, &p));
        for (size_t i = 0; i < ARRAY_LEN(t); i++) {
            t[i] = (struct reader_thread){.m = &m, .p = part_ref(p), .key = &room.key};
            assert_int_equal(pthread_create(&t[i].thread, NULL, read_whole, &t[i]), 0);
        }
        part_unref(p);
        for (size_t i = 0; i < ARRAY_LEN(t); i++)
            pthread_join(t[i].thread, NULL);
        model_free(&m);
        room_close(&room);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
