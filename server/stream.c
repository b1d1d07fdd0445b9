/*
 * stream.c: the hand-over between a producer and the loop.
 *
 *   worker: filling ──full──► ready ──► loop: sending
 *
 * `ready` is guarded by the lock; `filling` is the worker's alone. The task is queued at most once
 * (`posted`), because it is one intrusive node. After stream_end the worker touches nothing: the loop
 * may free the stream at once. How long a stalled client is waited for is the connection's timeout,
 * which ends in stream_drop.
 */
#include "server/stream.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define STREAM_CHUNK ((size_t)64 << 10)

struct stream {
    struct loop *loop;
    struct task *task;
    struct buf filling; /* worker's */
    bool started;       /* worker's */
    pthread_mutex_t lock;
    pthread_cond_t taken;
    struct buf ready; /* guarded by lock, as all below */
    bool posted, ended, complete, dropped;
};

struct stream *stream_create(struct loop *loop, struct task *task)
{
    struct stream *s = mem_zalloc(sizeof *s);
    s->loop = loop;
    s->task = task;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->taken, NULL);
    return s;
}

void stream_destroy(struct stream *s)
{
    if (s == NULL) return;
    buf_deinit(&s->filling);
    buf_deinit(&s->ready);
    pthread_cond_destroy(&s->taken);
    pthread_mutex_destroy(&s->lock);
    mem_free(s);
}

static void post_locked(struct stream *s)
{
    if (s->posted) return;
    s->posted = true;
    loop_post(s->loop, s->task);
}

/* Hands `filling` over once the loop has taken what was there before. False: nobody reads. */
static bool hand_over(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    while (s->ready.n > 0 && !s->dropped)
        pthread_cond_wait(&s->taken, &s->lock);
    bool go_on = !s->dropped;
    if (go_on && s->filling.n > 0) {
        struct buf empty = s->ready;
        s->ready = s->filling;
        s->filling = empty;
        post_locked(s);
    }
    pthread_mutex_unlock(&s->lock);
    buf_clear(&s->filling);
    s->started = true;
    return go_on;
}

bool stream_write(struct stream *s, str bytes)
{
    buf_str(&s->filling, bytes);
    return s->filling.n < STREAM_CHUNK || hand_over(s);
}

void stream_end(struct stream *s, bool complete)
{
    if (s->filling.n > 0) hand_over(s);
    pthread_mutex_lock(&s->lock);
    s->ended = true;
    s->complete = complete;
    post_locked(s);
    pthread_mutex_unlock(&s->lock);
}

bool stream_started(const struct stream *s)
{
    return s->started;
}

enum stream_state stream_take(struct stream *s, struct buf *out)
{
    check(out->n == 0);
    pthread_mutex_lock(&s->lock);
    enum stream_state state = STREAM_WAIT;
    if (s->ready.n > 0 && !s->dropped) {
        struct buf full = s->ready;
        s->ready = *out;
        *out = full;
        state = STREAM_DATA;
    } else if (s->ended && !s->posted) { /* a queued task must not outlive the end */
        state = s->complete && !s->dropped ? STREAM_DONE : STREAM_ABORTED;
    }
    pthread_cond_signal(&s->taken);
    pthread_mutex_unlock(&s->lock);
    return state;
}

bool stream_task_ran(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    bool posted = s->posted;
    s->posted = false;
    pthread_mutex_unlock(&s->lock);
    return posted;
}

void stream_drop(struct stream *s)
{
    pthread_mutex_lock(&s->lock);
    s->dropped = true;
    s->ready.n = 0;
    pthread_cond_signal(&s->taken);
    pthread_mutex_unlock(&s->lock);
}
