/*
 * merge_symbols.c: the symbols of all inputs as one sorted list, and how each input's numbers map into it.
 *
 * With the maps, series of different inputs are compared by integers: numbers in the merged list have the
 * order of the strings. Inputs are walked with cursors of their own that keep one symbol frame each.
 * Memory: the distinct strings, and 4 bytes a symbol of each input.
 */
#include "storage/base/alloc.h"
#include "storage/merge_internal.h"

struct walker {
    struct part_cursor *c;
    uint32_t at, n;
    size_t cap; /* of its map, which grows with what was read: the number in a footer is only a claim */
    str now;
};

static bool walker_before(const void *arg, uint32_t a, uint32_t b)
{
    const struct walker *walkers = arg;
    int c = str_cmp(walkers[a].now, walkers[b].now);
    return c != 0 ? c < 0 : a < b;
}

/* Moves a walker to its next symbol and back into the heap; at the end it stays out. */
static err step(struct walker *walkers, uint32_t input, struct merge_heap *heap)
{
    struct walker *w = &walkers[input];
    if (w->at == w->n) return NULL;
    TRY(part_symbol_walk(w->c, w->at++, &w->now));
    merge_heap_push(heap, input);
    return NULL;
}

static err merge_all(struct merge_symbols *s, struct walker *walkers, struct merge_heap *heap)
{
    size_t cap = 0;
    while (heap->n > 0) {
        uint32_t input = merge_heap_pop(heap);
        struct walker *w = &walkers[input];
        if (s->n == 0 || !str_eq(s->v[s->n - 1], w->now)) {
            s->v = mem_grow(s->v, &cap, s->n + (size_t)1, sizeof *s->v);
            s->v[s->n++] = arena_str(&s->arena, w->now);
        }
        s->map[input] = mem_grow(s->map[input], &w->cap, w->at, sizeof *s->map[input]);
        s->map[input][w->at - 1] = s->n - 1;
        TRY(step(walkers, input, heap));
    }
    return NULL;
}

err merge_symbols_load(struct merge_symbols *s, struct part *const *parts, size_t n)
{
    struct walker *walkers = mem_zalloc(n * sizeof *walkers);
    struct merge_heap heap;
    err e = NULL;
    *s = (struct merge_symbols){.map = mem_zalloc(n * sizeof *s->map), .n_maps = n};
    merge_heap_init(&heap, n, walker_before, walkers);
    for (uint32_t i = 0; i < n; i++) {
        walkers[i] = (struct walker){.c = part_cursor_create(parts[i]), .n = part_symbol_count(parts[i])};
        TRY_OUT(step(walkers, i, &heap));
    }
    e = merge_all(s, walkers, &heap);
out:
    for (size_t i = 0; i < n; i++)
        part_cursor_destroy(walkers[i].c);
    merge_heap_deinit(&heap);
    mem_free(walkers);
    return e;
}

void merge_symbols_deinit(struct merge_symbols *s)
{
    for (size_t i = 0; i < s->n_maps; i++)
        mem_free(s->map[i]);
    mem_free(s->map);
    mem_free(s->v);
    arena_deinit(&s->arena);
    *s = (struct merge_symbols){0};
}
