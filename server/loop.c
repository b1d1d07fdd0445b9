/*
 * loop.c: a thread, a libuv loop, a queue of tasks.
 *
 * Posting takes a lock for a few instructions and wakes the loop only if the queue was empty: many
 * answers finished at once cost one wake-up. Tasks run in the order posted, on the loop's thread,
 * without the lock. Memory of tasks is their owner's; a task may be posted again from its own run.
 */
#include "server/loop.h"

#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

static void run_tasks(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    struct task *t = l->first;
    l->first = l->last = NULL;
    pthread_mutex_unlock(&l->lock);
    while (t != NULL) {
        struct task *next = t->next; /* run may post t anew */
        t->run(t);
        t = next;
    }
}

static void on_wake(uv_async_t *handle)
{
    struct loop *l = handle->data;
    run_tasks(l);
    if (l->woken != NULL) l->woken(l->arg);
}

struct loop *loop_create(unsigned number)
{
    struct loop *l = mem_zalloc(sizeof *l);
    l->number = number;
    pthread_mutex_init(&l->lock, NULL);
    check(uv_loop_init(&l->uv) == 0);
    check(uv_async_init(&l->uv, &l->wake, on_wake) == 0);
    l->wake.data = l;
    return l;
}

static void *loop_main(void *arg)
{
    struct loop *l = arg;
    uv_run(&l->uv, UV_RUN_DEFAULT);
    run_tasks(l); /* posted between the last wake-up and loop_release */
    return NULL;
}

err loop_start(struct loop *l)
{
    int rc = pthread_create(&l->thread, NULL, loop_main, l);
    if (rc != 0) return err_errno(rc, "can't start an event loop");
    char name[16];
    snprintf(name, sizeof name, "loop-%u", l->number);
    pthread_setname_np(l->thread, name);
    l->started = true;
    return NULL;
}

void loop_join(struct loop *l)
{
    if (l->started) pthread_join(l->thread, NULL);
    l->started = false;
}

static void close_handle(uv_handle_t *handle, void *arg)
{
    (void)arg;
    if (!uv_is_closing(handle)) uv_close(handle, NULL);
}

void loop_destroy(struct loop *l)
{
    if (l == NULL) return;
    check(!l->started);
    uv_walk(&l->uv, close_handle, NULL); /* a loop that never ran still has its handles */
    uv_run(&l->uv, UV_RUN_DEFAULT);
    check(uv_loop_close(&l->uv) == 0);
    pthread_mutex_destroy(&l->lock);
    mem_free(l);
}

bool loop_post(struct loop *l, struct task *t)
{
    t->next = NULL;
    pthread_mutex_lock(&l->lock);
    bool taken = !l->ended, empty = l->first == NULL;
    if (taken) {
        *(empty ? &l->first : &l->last->next) = t;
        l->last = t;
        if (empty) uv_async_send(&l->wake); /* with the lock held: loop_release can't come in between */
    }
    pthread_mutex_unlock(&l->lock);
    return taken;
}

void loop_wake(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    if (!l->ended) uv_async_send(&l->wake);
    pthread_mutex_unlock(&l->lock);
}

void loop_release(struct loop *l)
{
    pthread_mutex_lock(&l->lock);
    l->ended = true;
    pthread_mutex_unlock(&l->lock);
    uv_close((uv_handle_t *)&l->wake, NULL);
}

uint64_t loop_now_ms(const struct loop *l)
{
    return uv_now(&l->uv);
}
