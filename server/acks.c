/*
 * acks.c: a watermark and the failed ranges below it.
 *
 * The loop that appends and the thread that settles race: a number may settle before the append call
 * has even returned it. So a write is counted before it goes to storage, and a settler that sees no
 * write counted knows that none of the numbers it settles is this loop's. When polling, the loop
 * reads the watermark after it has its number; the settler writes the watermark first and then looks
 * whether to wake (both sequentially consistent): one of the two always sees the other. Failed ranges
 * are rare, joined when they touch, and forgotten when no write of the loop is under way.
 */
#include "server/acks.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

struct acks_failure {
    uint64_t first, last; /* inclusive */
    enum err_code code;
    char *message; /* owned */
};

void acks_init(struct acks *a)
{
    *a = (struct acks){0};
    pthread_mutex_init(&a->lock, NULL);
}

static void forget_all(struct acks *a)
{
    for (size_t i = 0; i < a->n_failures; i++)
        mem_free(a->failures[i].message);
    a->n_failures = 0;
}

void acks_deinit(struct acks *a)
{
    forget_all(a);
    mem_free(a->failures);
    pthread_mutex_destroy(&a->lock);
}

static void record_failure(struct acks *a, uint64_t first, uint64_t last, const struct err *e)
{
    struct acks_failure *newest = a->n_failures > 0 ? &a->failures[a->n_failures - 1] : NULL;
    if (newest != NULL && newest->last + 1 == first) { /* one long outage is one range */
        newest->last = last;
        return;
    }
    a->failures = mem_grow(a->failures, &a->cap_failures, a->n_failures + 1, sizeof *a->failures);
    char *message = mem_dup_str(str_of(err_message(e)));
    a->failures[a->n_failures++] = (struct acks_failure){first, last, err_code(e), message};
}

void acks_begin(struct acks *a)
{
    atomic_fetch_add(&a->waiting, 1);
}

static void end(struct acks *a)
{
    uint64_t before = atomic_fetch_sub(&a->waiting, 1);
    check(before > 0);
    if (before > 1) return;
    pthread_mutex_lock(&a->lock);
    forget_all(a); /* only this loop begins writes: none is left that could ask */
    pthread_mutex_unlock(&a->lock);
}

void acks_abandon(struct acks *a)
{
    end(a);
}

bool acks_settle(struct acks *a, uint64_t seq, const struct err *e)
{
    uint64_t before = atomic_load(&a->settled);
    if (seq <= before) return false;
    if (e != NULL && atomic_load(&a->waiting) > 0) {
        pthread_mutex_lock(&a->lock);
        record_failure(a, before + 1, seq, e);
        pthread_mutex_unlock(&a->lock);
    }
    atomic_store(&a->settled, seq);
    return atomic_load(&a->waiting) > 0;
}

bool acks_poll(struct acks *a, uint64_t seq, err *e)
{
    *e = NULL;
    if (atomic_load(&a->settled) < seq) return false;
    pthread_mutex_lock(&a->lock);
    for (size_t i = 0; i < a->n_failures && *e == NULL; i++) {
        const struct acks_failure *f = &a->failures[i];
        if (f->first <= seq && seq <= f->last) *e = err_new(f->code, "the write is not on disk: %s", f->message);
    }
    pthread_mutex_unlock(&a->lock);
    end(a);
    return true;
}
