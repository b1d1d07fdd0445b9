/* scratch.c: a small pool of decoding scratch; see scratch.h. A slot is emptied and filled by exchange, so a scratch is
 * in one slot or with one borrower, never both. */
#include "storage/scratch.h"

#include "storage/base/alloc.h"

#define DISK_KEPT_MAX ((size_t)256 << 10) /* a buffer that grew beyond is not kept */

void scratch_pool_init(struct scratch_pool *pool)
{
    for (size_t i = 0; i < SCRATCH_POOL_MAX; i++)
        atomic_init(&pool->idle[i], NULL);
}

static void destroy(struct scratch *s)
{
    if (s == NULL) return;
    zctx_destroy(s->z);
    column_scratch_destroy(s->columns);
    buf_deinit(&s->disk);
    mem_free(s);
}

void scratch_pool_deinit(struct scratch_pool *pool)
{
    for (size_t i = 0; i < SCRATCH_POOL_MAX; i++)
        destroy(atomic_exchange(&pool->idle[i], NULL));
}

struct scratch *scratch_take(struct scratch_pool *pool)
{
    for (size_t i = 0; i < SCRATCH_POOL_MAX; i++) {
        if (atomic_load_explicit(&pool->idle[i], memory_order_relaxed) == NULL) continue;
        struct scratch *s = atomic_exchange_explicit(&pool->idle[i], NULL, memory_order_acquire);
        if (s != NULL) return s;
    }
    struct scratch *s = mem_zalloc(sizeof *s);
    s->z = zctx_create();
    s->columns = column_scratch_create();
    return s;
}

void scratch_give(struct scratch_pool *pool, struct scratch *s)
{
    if (s->disk.cap > DISK_KEPT_MAX) buf_deinit(&s->disk);
    for (size_t i = 0; i < SCRATCH_POOL_MAX; i++) {
        struct scratch *empty = NULL;
        if (atomic_compare_exchange_strong_explicit(&pool->idle[i], &empty, s, memory_order_release,
                                                    memory_order_relaxed))
            return;
    }
    destroy(s);
}
