/*
 * loop.h: one event loop in one thread, and the way into it from other threads.
 *
 * Everything that hangs off a loop (connections, timers, exchanges) belongs to its thread. Others
 * reach it with loop_post and loop_wake only. What runs inside is given as hooks; the loop itself
 * knows no sockets.
 */
#ifndef VARVE_SERVER_LOOP_H
#define VARVE_SERVER_LOOP_H

#include <pthread.h>
#include <stdatomic.h>
#include <uv.h>

#include "storage/base/err.h"

/* A piece of work for a loop, embedded in what it is about; in one queue at most at a time. */
struct task {
    struct task *next;
    void (*run)(struct task *t);
};

struct loop {
    uv_loop_t uv;
    uv_async_t wake;
    pthread_t thread;
    unsigned number;
    void (*woken)(void *arg); /* on the loop, after each wake-up and its tasks; set before loop_start */
    void *arg;
    pthread_mutex_t lock; /* guards the queue */
    struct task *first, *last;
    bool ended; /* guarded by lock: takes no more posts */
    bool started;
};

struct loop *loop_create(unsigned number);
/* Starts the thread. It runs until nothing keeps it alive any more (loop_release and all handles closed). */
err loop_start(struct loop *l) __attribute__((warn_unused_result));
void loop_join(struct loop *l);    /* waits for the thread; nothing to do if it was never started */
void loop_destroy(struct loop *l); /* after loop_join; NULL allowed */

/* Any thread: run t on the loop, then `woken`. False: the loop takes no more (after loop_release). */
bool loop_post(struct loop *l, struct task *t);
/* Any thread: call `woken` on the loop soon. */
void loop_wake(struct loop *l);
/* On the loop: no more posts are taken; lets the loop end once its other handles are closed. What was posted before
 * is still run. */
void loop_release(struct loop *l);

uint64_t loop_now_ms(const struct loop *l); /* monotonic, as of this turn; on the loop */

#endif
