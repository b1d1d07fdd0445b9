/*
 * merge_internal.h: what the files of merging share: a heap, the symbols of all inputs together, and the
 * samples of one series. Private to storage/merge*.c.
 */
#ifndef VARVE_STORAGE_MERGE_INTERNAL_H
#define VARVE_STORAGE_MERGE_INTERNAL_H

#include "storage/merge.h"

/* ---- merge_heap.c: which input is next ---------------------------------------------------------------------- */

/* True if input a comes before input b; never true both ways round. */
typedef bool (*merge_before_fn)(const void *arg, uint32_t a, uint32_t b);

struct merge_heap {
    uint32_t *v; /* inputs; the first is next */
    size_t n;
    merge_before_fn before;
    const void *arg;
};

void merge_heap_init(struct merge_heap *h, size_t cap, merge_before_fn before, const void *arg);
void merge_heap_deinit(struct merge_heap *h);
void merge_heap_push(struct merge_heap *h, uint32_t input); /* at most cap at a time */
uint32_t merge_heap_pop(struct merge_heap *h);

/* ---- merge_symbols.c ---------------------------------------------------------------------------------------- */

struct merge_symbols {
    struct arena arena; /* the bytes of all strings */
    str *v;             /* sorted, unique */
    uint32_t n;
    uint32_t **map; /* of each input: its symbol numbers → numbers in v */
    size_t n_maps;
};

err merge_symbols_load(struct merge_symbols *s, struct part *const *parts, size_t n)
    __attribute__((warn_unused_result));
void merge_symbols_deinit(struct merge_symbols *s);

/* ---- merge_samples.c ---------------------------------------------------------------------------------------- */

struct merge_samples;

/* inputs: cursors, oldest writes first; all borrowed. */
struct merge_samples *merge_samples_create(struct part_cursor *const *inputs, size_t n, struct part_writer *w,
                                           const struct merge_options *o);
void merge_samples_destroy(struct merge_samples *m); /* NULL allowed */
/* Before a series: forgets the last one. */
void merge_samples_begin(struct merge_samples *m);
/* Input has the series, with these blocks; deletes hold for its samples. All valid until merge_samples_write returns.
 */
void merge_samples_add(struct merge_samples *m, size_t input, const struct part_series *s,
                       const struct time_ranges *deletes);
/* Writes what is left of the series, in order of time, to the writer's current series. */
err merge_samples_write(struct merge_samples *m) __attribute__((warn_unused_result));

#endif
