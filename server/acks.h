/*
 * acks.h: which writes are on disk, as one loop needs to know it.
 *
 * Storage settles sequence numbers on its WAL thread: all up to a number, good or failed. Each loop
 * has its own record of that, so that a loop that lags loses nothing. A write is begun before it goes
 * to storage and ended by the poll that finds its outcome.
 */
#ifndef VARVE_SERVER_ACKS_H
#define VARVE_SERVER_ACKS_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/base/err.h"

struct acks_failure;

struct acks {
    _Atomic uint64_t settled; /* all numbers up to here have an outcome */
    _Atomic uint64_t waiting; /* writes begun and not ended; the settler wakes the loop only if there are any */
    pthread_mutex_t lock;     /* guards what follows */
    struct acks_failure *failures;
    size_t n_failures, cap_failures;
};

void acks_init(struct acks *a);
void acks_deinit(struct acks *a);

/* The loop, before it hands a write to storage: one more write may be waiting for its outcome. */
void acks_begin(struct acks *a);
/* The loop: that write got no number; nothing waits. */
void acks_abandon(struct acks *a);

/* WAL thread: numbers in (settled so far, seq] have their outcome; e NULL = durable. True: wake the loop. */
bool acks_settle(struct acks *a, uint64_t seq, const struct err *e);

/* The loop: true if seq has an outcome, which then is in *e (the caller's); that write has ended. */
bool acks_poll(struct acks *a, uint64_t seq, err *e);

#endif
