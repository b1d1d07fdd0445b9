/*
 * block_pool.h: large blocks of memory that heads take and give back.
 *
 * Heads come and go under load every second or so, each with a hundred megabytes; blocks that went
 * through the system each time would be paged in anew each time, which costs more than filling them.
 * What nobody has taken for a while goes back to the system (block_pool_trim). Any thread.
 */
#ifndef VARVE_STORAGE_BLOCK_POOL_H
#define VARVE_STORAGE_BLOCK_POOL_H

#include <pthread.h>

#include "storage/base/alloc.h"

#define POOL_BLOCK MEM_MAP_ALIGN /* bytes of one block */

struct pool_block {
    struct pool_block *next;
};

struct block_pool {
    pthread_mutex_t lock;
    struct pool_block *free;
    uint64_t taken; /* ever; tells an idle pool from a busy one */
    uint64_t taken_at_trim;
};

void block_pool_init(struct block_pool *p);
void block_pool_deinit(struct block_pool *p); /* all blocks must be back */
void *block_pool_take(struct block_pool *p);  /* contents undefined */
void block_pool_give(struct block_pool *p, void *block);
/* Frees all blocks if none was taken since the last call. */
void block_pool_trim(struct block_pool *p);

#endif
