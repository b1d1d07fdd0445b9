/*
 * alloc.h: the one gateway to the heap (jemalloc; the libc's under a sanitizer).
 *
 * mem_alloc and friends never return NULL: requests whose size comes from outside are checked
 * against a limit or budget before they get here, so running dry means the machine is out of memory
 * and the process stops with a message. Any thread.
 */
#ifndef VARVE_STORAGE_BASE_ALLOC_H
#define VARVE_STORAGE_BASE_ALLOC_H

#include "storage/base/types.h"

void *mem_alloc(size_t bytes) __attribute__((malloc, alloc_size(1), returns_nonnull));
void *mem_zalloc(size_t bytes) __attribute__((malloc, alloc_size(1), returns_nonnull)); /* zeroed */
void *mem_realloc(void *p, size_t bytes) __attribute__((alloc_size(2), returns_nonnull));
void *mem_dup(const void *p, size_t bytes) __attribute__((returns_nonnull));
char *mem_dup_str(str s) __attribute__((returns_nonnull)); /* NUL-terminated copy */
void mem_free(void *p);                                    /* NULL allowed */

/* NULL when the heap is dry: for what must go on all the same (making the error that says so). */
void *mem_try_alloc(size_t bytes) __attribute__((malloc, alloc_size(1)));

/* A growing array: makes room for `need` elements of `size` bytes, doubling *capacity (elements). */
void *mem_grow(void *p, size_t *capacity, size_t need, size_t size) __attribute__((returns_nonnull));

/*
 * Whole pages straight from the system, for blocks that are filled from front to back: `bytes` is a multiple of
 * MEM_MAP_ALIGN, the address too, and the system is asked to back them with huge pages (fewer faults, fewer TLB
 * misses). Zeroed. Not part of mem_in_use.
 */
#define MEM_MAP_ALIGN ((size_t)2 << 20)
void *mem_map(size_t bytes) __attribute__((returns_nonnull));
void mem_unmap(void *p, size_t bytes);

/* Bytes given out and not yet freed, as the allocator counts them; 0 when it can't tell. */
size_t mem_in_use(void);

/* What the allocator holds for that: pages in use, pages mapped in memory, pages kept for later. Zeros when it can't
 * tell. As of the last mem_in_use. */
struct mem_pages {
    size_t active, resident, retained;
};
struct mem_pages mem_pages(void);

/* Gives unused pages back to the system now (after a flush, a big query). */
void mem_release(void);

#endif
