/*
 * budget.c: limits of one query, checked while it runs.
 *
 * The clock here is the monotonic one of the machine, read through the seam of env.h, so that a query
 * under the simulator ends as one on a real machine does. Counters are relaxed atomics: helpers of a
 * query add to them, and an overshoot by one series a helper does not matter.
 */
#include "query/budget.h"

#include "storage/base/env.h"

/*
 * The clock is read every so many series, and at each long one: few long series (those of a fine subquery) may take
 * seconds each. Often enough for a deadline in ms, too rarely to be seen in a profile.
 */
#define TICKS_PER_CHECK 16
#define SAMPLES_PER_CHECK 2048

void budget_init(struct budget *b, int64_t timeout_ms, uint64_t max_samples, size_t max_bytes,
                 const atomic_bool *canceled)
{
    *b = (struct budget){
        .timeout_ms = timeout_ms, .canceled = canceled, .max_samples = max_samples, .max_bytes = max_bytes};
    if (timeout_ms > 0)
        b->deadline_ns = (int64_t)env_posix()->ops->mono_ns(env_posix()) + timeout_ms * INT64_C(1000000);
}

err budget_check(struct budget *b)
{
    if (b->canceled && atomic_load_explicit(b->canceled, memory_order_relaxed))
        return err_new(ERR_CANCELED, "query was canceled");
    if (b->deadline_ns && (int64_t)env_posix()->ops->mono_ns(env_posix()) > b->deadline_ns)
        return err_new(ERR_TIMEOUT, "query timed out after %.3g s (--query.timeout, or the timeout parameter)",
                       (double)b->timeout_ms / 1000);
    return NULL;
}

static err check_samples(const struct budget *b, uint64_t samples)
{
    if (b->max_samples == 0 || samples <= b->max_samples) return NULL;
    return err_new(ERR_LIMIT,
                   "query processing would load too many samples into memory: over %llu "
                   "(--query.max-samples); ask for fewer series, a shorter range or a larger step",
                   (unsigned long long)b->max_samples);
}

err budget_tick(struct budget *b, uint64_t samples)
{
    atomic_fetch_add_explicit(&b->read, samples, memory_order_relaxed);
    TRY(check_samples(b, atomic_load_explicit(&b->held, memory_order_relaxed) + samples));
    bool due = atomic_fetch_add_explicit(&b->ticks, 1, memory_order_relaxed) % TICKS_PER_CHECK == 0;
    if (!due && samples < SAMPLES_PER_CHECK) return NULL;
    return budget_check(b);
}

/* Queries that hold less than a step never touch what all of them share. */
#define TOTAL_STEP ((size_t)1 << 20)

static void tell_total(struct budget *b, size_t bytes)
{
    size_t told = atomic_load_explicit(&b->told, memory_order_relaxed);
    if (bytes < told + TOTAL_STEP) return;
    if (atomic_compare_exchange_strong_explicit(&b->told, &told, bytes, memory_order_relaxed, memory_order_relaxed))
        atomic_fetch_add_explicit(b->total, bytes - told, memory_order_relaxed);
}

void budget_end(struct budget *b)
{
    if (b->total) atomic_fetch_sub_explicit(b->total, atomic_load(&b->told), memory_order_relaxed);
    b->total = NULL;
}

err budget_hold(struct budget *b, uint64_t samples, size_t bytes)
{
    uint64_t held = atomic_fetch_add_explicit(&b->held, samples, memory_order_relaxed) + samples;
    size_t total = atomic_fetch_add_explicit(&b->bytes, bytes, memory_order_relaxed) + bytes;
    if (b->total) tell_total(b, total);
    if (held > atomic_load_explicit(&b->peak, memory_order_relaxed))
        atomic_store_explicit(&b->peak, held, memory_order_relaxed);
    TRY(check_samples(b, held));
    if (b->max_bytes == 0 || total <= b->max_bytes) return NULL;
    return err_new(ERR_LIMIT,
                   "query needs more than %zu MiB of memory (--query.max-memory); ask for fewer series, a "
                   "shorter range or a larger step",
                   b->max_bytes >> 20);
}

void budget_release(struct budget *b, uint64_t samples, size_t bytes)
{
    atomic_fetch_sub_explicit(&b->held, samples, memory_order_relaxed);
    atomic_fetch_sub_explicit(&b->bytes, bytes, memory_order_relaxed);
}
