/* Unit worker: every task runs once, a full queue refuses, the end waits for what is queued. */
#include "tests/unit/testing.h"

#include "storage/base/worker.h"

#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdatomic.h>

static atomic_int ran;

static void count(void *arg)
{
    atomic_fetch_add(&ran, *(int *)arg);
}

static int one = 1;

static void test_every_task_runs_once(void **state)
{
    (void)state;
    for (unsigned threads = 0; threads <= 4; threads += 2) {
        ran = 0;
        struct worker *w = worker_create("test", threads, 1000);
        assert_non_null(w);
        assert_int_equal(worker_threads(w), threads);
        for (int i = 0; i < 1000; i++)
            assert_true(worker_submit(w, count, &one));
        worker_destroy(w);
        assert_int_equal(ran, 1000);
    }
    worker_destroy(NULL);
}

static sem_t started, go;

static void block(void *arg)
{
    (void)arg;
    sem_post(&started);
    sem_wait(&go);
}

static void test_full_queue_refuses(void **state)
{
    (void)state;
    ran = 0;
    sem_init(&started, 0, 0);
    sem_init(&go, 0, 0);
    struct worker *w = worker_create("a name longer than the kernel allows", 1, 2);
    assert_true(worker_submit(w, block, NULL));
    sem_wait(&started); /* it is running now, no longer queued */
    assert_true(worker_submit(w, count, &one));
    assert_true(worker_submit(w, count, &one));
    assert_false(worker_submit(w, count, &one));
    assert_int_equal(worker_queued(w), 2);
    sem_post(&go);
    worker_destroy(w);
    assert_int_equal(ran, 2);
    sem_destroy(&started);
    sem_destroy(&go);
}

static char order[8];

static void note(void *arg)
{
    order[strlen(order)] = *(char *)arg;
}

static void test_without_threads_the_caller_runs(void **state)
{
    (void)state;
    struct worker *w = worker_create("none", 0, 3);
    static char names[] = "abc";
    assert_false(worker_run_one(w));
    for (int i = 0; i < 3; i++)
        assert_true(worker_submit(w, note, &names[i]));
    assert_false(worker_submit(w, note, &names[0]));
    assert_true(worker_run_one(w));
    assert_string_equal(order, "a");
    assert_true(worker_submit(w, note, &names[0]));
    worker_destroy(w);
    assert_string_equal(order, "abca");
}

static void submit_again(void *arg)
{
    worker_submit(arg, count, &one);
}

static void test_tasks_may_submit(void **state)
{
    (void)state;
    ran = 0;
    struct worker *w = worker_create("again", 2, 100);
    for (int i = 0; i < 50; i++)
        assert_true(worker_submit(w, submit_again, w));
    worker_destroy(w);
    assert_int_equal(ran, 50);
}

static void look_at_mask(void *arg)
{
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    atomic_store((atomic_int *)arg, sigismember(&mask, SIGTERM));
}

static void test_threads_take_no_signals(void **state)
{
    (void)state;
    atomic_int blocked = -1;
    struct worker *w = worker_create("mask", 1, 1);
    assert_true(worker_submit(w, look_at_mask, &blocked));
    worker_destroy(w);
    assert_int_equal(blocked, 1);
    sigset_t mask;
    pthread_sigmask(SIG_BLOCK, NULL, &mask);
    assert_false(sigismember(&mask, SIGTERM));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_every_task_runs_once),
        cmocka_unit_test(test_full_queue_refuses),
        cmocka_unit_test(test_without_threads_the_caller_runs),
        cmocka_unit_test(test_tasks_may_submit),
        cmocka_unit_test(test_threads_take_no_signals),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
