/*
 * active.c: a list of records under one lock (active.h).
 *
 * Numbers begin at a random place so that one of an earlier run of the server hits nothing. A query is
 * ended by the flag that the client's going away sets too; the record remembers which it was.
 */
#include "server/active.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/env.h"

struct active {
    pthread_mutex_t lock;
    struct active_query *first, *last; /* guarded by lock, as all below */
    size_t n;
    uint64_t next_id;
};

struct active *active_create(void)
{
    struct active *a = mem_zalloc(sizeof *a);
    pthread_mutex_init(&a->lock, NULL);
    env_posix()->ops->random(env_posix(), &a->next_id, sizeof a->next_id);
    return a;
}

void active_destroy(struct active *a)
{
    if (a == NULL) return;
    check(a->n == 0);
    pthread_mutex_destroy(&a->lock);
    mem_free(a);
}

void active_enter(struct active *a, struct active_query *q, uint64_t now_ns)
{
    pthread_mutex_lock(&a->lock);
    q->id = a->next_id++;
    q->begun_ns = now_ns;
    q->ended = false;
    q->next = NULL;
    q->prev = a->last;
    if (a->last != NULL)
        a->last->next = q;
    else
        a->first = q;
    a->last = q;
    a->n++;
    pthread_mutex_unlock(&a->lock);
}

void active_leave(struct active *a, struct active_query *q)
{
    pthread_mutex_lock(&a->lock);
    if (q->prev != NULL)
        q->prev->next = q->next;
    else
        a->first = q->next;
    if (q->next != NULL)
        q->next->prev = q->prev;
    else
        a->last = q->prev;
    a->n--;
    pthread_mutex_unlock(&a->lock);
}

size_t active_count(struct active *a)
{
    pthread_mutex_lock(&a->lock);
    size_t n = a->n;
    pthread_mutex_unlock(&a->lock);
    return n;
}

bool active_cancel(struct active *a, uint64_t id)
{
    pthread_mutex_lock(&a->lock);
    struct active_query *q = a->first;
    while (q != NULL && q->id != id)
        q = q->next;
    if (q != NULL) {
        q->ended = true;
        atomic_store_explicit(q->canceled, true, memory_order_relaxed);
    }
    pthread_mutex_unlock(&a->lock);
    return q != NULL;
}

void active_each(struct active *a, active_fn fn, void *arg)
{
    pthread_mutex_lock(&a->lock);
    for (const struct active_query *q = a->first; q != NULL; q = q->next)
        fn(arg, q);
    pthread_mutex_unlock(&a->lock);
}
