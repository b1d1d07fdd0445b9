/*
 * mono.h: waiting for a condition with a deadline that steps of the wall clock neither shorten nor stretch.
 *
 * A plain condition variable takes its deadlines by the wall clock: set back by an hour, it sleeps an hour too long.
 */
#ifndef VARVE_STORAGE_BASE_MONO_H
#define VARVE_STORAGE_BASE_MONO_H

#include <pthread.h>

#include "storage/base/types.h"

/* A condition variable whose deadlines follow CLOCK_MONOTONIC. Ends with pthread_cond_destroy. */
void mono_cond_init(pthread_cond_t *cond);

/* The moment this many seconds from now. Any thread. */
struct timespec mono_deadline(unsigned seconds);

/* As pthread_cond_timedwait, for a cond of mono_cond_init: false once the deadline has passed. `lock` is held. */
bool mono_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *deadline);

#endif
