/* block_pool.c: see block_pool.h. A free list under a lock; a block's first bytes link it while it is free. */
#include "storage/block_pool.h"

void block_pool_init(struct block_pool *p)
{
    *p = (struct block_pool){0};
    pthread_mutex_init(&p->lock, NULL);
}

static void free_all(struct pool_block *b)
{
    while (b != NULL) {
        struct pool_block *next = b->next;
        mem_unmap(b, POOL_BLOCK);
        b = next;
    }
}

void block_pool_deinit(struct block_pool *p)
{
    free_all(p->free);
    pthread_mutex_destroy(&p->lock);
}

void *block_pool_take(struct block_pool *p)
{
    pthread_mutex_lock(&p->lock);
    struct pool_block *b = p->free;
    if (b != NULL) p->free = b->next;
    p->taken++;
    pthread_mutex_unlock(&p->lock);
    return b != NULL ? b : mem_map(POOL_BLOCK);
}

void block_pool_give(struct block_pool *p, void *block)
{
    struct pool_block *b = block;
    pthread_mutex_lock(&p->lock);
    b->next = p->free;
    p->free = b;
    pthread_mutex_unlock(&p->lock);
}

void block_pool_trim(struct block_pool *p)
{
    struct pool_block *idle = NULL;
    pthread_mutex_lock(&p->lock);
    if (p->taken == p->taken_at_trim) {
        idle = p->free;
        p->free = NULL;
    }
    p->taken_at_trim = p->taken;
    pthread_mutex_unlock(&p->lock);
    free_all(idle);
}
