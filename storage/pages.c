/* pages.c: see pages.h. The directory is one zeroed allocation that the system backs page by page as it is touched. */
#include "storage/pages.h"

void pages_init(struct pages *p, size_t element_bytes)
{
    *p = (struct pages){.element = element_bytes};
    p->dir = mem_zalloc(PAGES_MAX * sizeof *p->dir);
}

void pages_deinit(struct pages *p)
{
    if (p->dir == NULL) return;
    for (uint32_t i = 0; i < PAGES_MAX; i++) {
        char *page = atomic_load_explicit(&p->dir[i], memory_order_relaxed);
        if (page == NULL) break;
        mem_free(page);
    }
    mem_free(p->dir);
    *p = (struct pages){0};
}

void *pages_make(struct pages *p, uint32_t i)
{
    check((i >> PAGES_SHIFT) < PAGES_MAX);
    void *at = pages_at(p, i);
    if (at != NULL) return at;
    /* Pages are made in order, so that deinit may stop at the first hole. */
    for (uint32_t page = i >> PAGES_SHIFT;; page--) {
        if (atomic_load_explicit(&p->dir[page], memory_order_relaxed) != NULL) break;
        atomic_store_explicit(&p->dir[page], mem_zalloc(PAGE_ELEMENTS * p->element), memory_order_release);
        p->bytes += PAGE_ELEMENTS * p->element;
        if (page == 0) break;
    }
    return pages_at(p, i);
}
