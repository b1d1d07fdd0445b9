/*
 * mono.c: condition variables by the monotonic clock.
 *
 * The clock belongs to the condition variable (an attribute at its birth), so a deadline and the wait
 * for it agree as long as both come from here.
 */
#include "storage/base/mono.h"

#include <errno.h>
#include <time.h>

void mono_cond_init(pthread_cond_t *cond)
{
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(cond, &attr);
    pthread_condattr_destroy(&attr);
}

struct timespec mono_deadline(unsigned seconds)
{
    struct timespec at;
    clock_gettime(CLOCK_MONOTONIC, &at);
    at.tv_sec += seconds;
    return at;
}

bool mono_cond_wait(pthread_cond_t *cond, pthread_mutex_t *lock, const struct timespec *deadline)
{
    return pthread_cond_timedwait(cond, lock, deadline) != ETIMEDOUT;
}
