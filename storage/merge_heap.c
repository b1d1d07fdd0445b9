/* merge_heap.c: a binary heap of input numbers, ordered by what the inputs stand at. One thread. */
#include "storage/base/alloc.h"
#include "storage/merge_internal.h"

void merge_heap_init(struct merge_heap *h, size_t cap, merge_before_fn before, const void *arg)
{
    *h = (struct merge_heap){mem_alloc((cap + 1) * sizeof *h->v), 0, before, arg};
}

void merge_heap_deinit(struct merge_heap *h)
{
    mem_free(h->v);
    *h = (struct merge_heap){0};
}

void merge_heap_push(struct merge_heap *h, uint32_t input)
{
    size_t i = h->n++;
    while (i > 0 && h->before(h->arg, input, h->v[(i - 1) / 2])) {
        h->v[i] = h->v[(i - 1) / 2];
        i = (i - 1) / 2;
    }
    h->v[i] = input;
}

uint32_t merge_heap_pop(struct merge_heap *h)
{
    uint32_t top = h->v[0], last = h->v[--h->n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < h->n; i = child) {
        if (child + 1 < h->n && h->before(h->arg, h->v[child + 1], h->v[child])) child++;
        if (!h->before(h->arg, h->v[child], last)) break;
        h->v[i] = h->v[child];
    }
    h->v[i] = last;
    return top;
}
