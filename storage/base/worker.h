/*
 * worker.h: threads with a bounded queue.
 *
 * worker_submit never blocks: a full queue is the caller's to answer (503). worker_destroy finishes
 * what is queued, then joins. With 0 threads nothing runs by itself: worker_run_one does, in the
 * caller (the simulator's way). Any thread may submit.
 */
#ifndef VARVE_STORAGE_BASE_WORKER_H
#define VARVE_STORAGE_BASE_WORKER_H

#include "storage/base/types.h"

struct worker;
typedef void (*worker_fn)(void *arg);

/* At least one thread starts, or NULL (the system has none left); worker_threads tells how many. */
struct worker *worker_create(const char *name, unsigned threads, size_t queue_max);
void worker_destroy(struct worker *w);
bool worker_submit(struct worker *w, worker_fn fn, void *arg); /* false: the queue is full */
bool worker_run_one(struct worker *w);                         /* runs one queued task here; false if none */
size_t worker_queued(const struct worker *w);
unsigned worker_threads(const struct worker *w);

#endif
