/*
 * pages.h: a table of fixed-size elements that grows without ever moving them.
 *
 * Elements live in pages made on demand; the directory is fixed, so one writer may add while readers
 * use elements that were published to them (through a lock or an atomic count). The writer is
 * single; page pointers are atomics with release/acquire order.
 */
#ifndef VARVE_STORAGE_PAGES_H
#define VARVE_STORAGE_PAGES_H

#include <stdatomic.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define PAGES_SHIFT 10u
#define PAGE_ELEMENTS (1u << PAGES_SHIFT)
#ifdef VARVE_SLOW_CHECKS
#define PAGES_MAX (1u << 12) /* 4 M elements: the simulator makes thousands of these, and sanitizers map them whole */
#else
#define PAGES_MAX (1u << 17) /* 134 M elements */
#endif

struct pages {
    _Atomic(char *) *dir; /* PAGES_MAX pointers, reserved lazily by the system */
    size_t element;       /* bytes */
    size_t bytes;         /* allocated so far; the writer's */
};

void pages_init(struct pages *p, size_t element_bytes);
void pages_deinit(struct pages *p);

/* Element i, or NULL if its page was never made. Any thread. */
static inline void *pages_at(const struct pages *p, uint32_t i)
{
    char *page = atomic_load_explicit(&p->dir[i >> PAGES_SHIFT], memory_order_acquire);
    return page ? page + (size_t)(i & (PAGE_ELEMENTS - 1)) * p->element : NULL;
}

/* Element i, its page made (zeroed) if absent. The writer only. */
void *pages_make(struct pages *p, uint32_t i);

#endif
