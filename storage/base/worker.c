/*
 * worker.c: threads fed from one bounded ring.
 *
 * The ring, its counts and `stopping` are guarded by `lock`; tasks run without it. The threads block
 * all signals, so that the process's signals reach the thread that waits for them. The worker owns
 * its ring and threads; tasks own their arguments.
 */
#include "storage/base/worker.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>

#define WORKER_STACK (1u << 20) /* reserved address space; only touched pages count */

struct task {
    worker_fn fn;
    void *arg;
};

struct worker {
    pthread_mutex_t lock;
    pthread_cond_t wake;
    struct task *ring; /* guarded by lock, as the next three */
    size_t first, queued;
    bool stopping;
    size_t ring_size;
    char name[16]; /* as the kernel shows it */
    unsigned threads;
    pthread_t *ids;
};

/* Takes the oldest task; the lock is held. */
static bool take_locked(struct worker *w, struct task *out)
{
    if (w->queued == 0) return false;
    *out = w->ring[w->first];
    w->first = (w->first + 1) % w->ring_size;
    w->queued--;
    return true;
}

static void *thread_main(void *arg)
{
    struct worker *w = arg;
    struct task task;
    pthread_setname_np(pthread_self(), w->name);
    pthread_mutex_lock(&w->lock);
    for (;;) {
        while (!take_locked(w, &task)) {
            if (w->stopping) goto out; /* only once the queue is empty */
            pthread_cond_wait(&w->wake, &w->lock);
        }
        pthread_mutex_unlock(&w->lock);
        task.fn(task.arg);
        pthread_mutex_lock(&w->lock);
    }
out:
    pthread_mutex_unlock(&w->lock);
    return NULL;
}

static void start_threads(struct worker *w, unsigned wanted)
{
    sigset_t all, before;
    pthread_attr_t attr;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    pthread_attr_init(&attr);
    pthread_attr_setstacksize(&attr, WORKER_STACK);
    w->ids = mem_alloc(wanted * sizeof *w->ids);
    while (w->threads < wanted && pthread_create(&w->ids[w->threads], &attr, thread_main, w) == 0)
        w->threads++;
    pthread_attr_destroy(&attr);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
}

struct worker *worker_create(const char *name, unsigned threads, size_t queue_max)
{
    check(queue_max > 0);
    struct worker *w = mem_zalloc(sizeof *w);
    pthread_mutex_init(&w->lock, NULL);
    pthread_cond_init(&w->wake, NULL);
    w->ring = mem_alloc(queue_max * sizeof *w->ring);
    w->ring_size = queue_max;
    snprintf(w->name, sizeof w->name, "%s", name);
    if (threads) start_threads(w, threads);
    if (threads && w->threads == 0) {
        worker_destroy(w);
        return NULL;
    }
    return w;
}

void worker_destroy(struct worker *w)
{
    if (!w) return;
    pthread_mutex_lock(&w->lock);
    w->stopping = true;
    pthread_cond_broadcast(&w->wake);
    pthread_mutex_unlock(&w->lock);
    for (unsigned i = 0; i < w->threads; i++)
        pthread_join(w->ids[i], NULL);
    while (worker_run_one(w)) /* without threads the queue is finished here */
        ;
    pthread_cond_destroy(&w->wake);
    pthread_mutex_destroy(&w->lock);
    mem_free(w->ids);
    mem_free(w->ring);
    mem_free(w);
}

bool worker_submit(struct worker *w, worker_fn fn, void *arg)
{
    pthread_mutex_lock(&w->lock);
    bool room = w->queued < w->ring_size;
    if (room) {
        w->ring[(w->first + w->queued) % w->ring_size] = (struct task){fn, arg};
        w->queued++;
        pthread_cond_signal(&w->wake);
    }
    pthread_mutex_unlock(&w->lock);
    return room;
}

bool worker_run_one(struct worker *w)
{
    struct task task;
    pthread_mutex_lock(&w->lock);
    bool found = take_locked(w, &task);
    pthread_mutex_unlock(&w->lock);
    if (found) task.fn(task.arg);
    return found;
}

size_t worker_queued(const struct worker *w)
{
    struct worker *locked = (struct worker *)w; /* the lock is not part of the value */
    pthread_mutex_lock(&locked->lock);
    size_t n = locked->queued;
    pthread_mutex_unlock(&locked->lock);
    return n;
}

unsigned worker_threads(const struct worker *w)
{
    return w->threads;
}
