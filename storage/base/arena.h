/*
 * arena.h: memory with one lifetime, freed whole (a request, a query, a job).
 *
 * Allocation bumps a pointer inside blocks that double up to 1 MiB; objects are 16-byte aligned and
 * never freed singly. Under ASan freed space is poisoned. Not thread-safe: one arena, one thread at
 * a time.
 */
#ifndef VARVE_STORAGE_BASE_ARENA_H
#define VARVE_STORAGE_BASE_ARENA_H

#include "storage/base/types.h"

struct arena_block;

struct arena {
    struct arena_block *block; /* the current, newest block */
    char *at, *end;            /* free space in it */
    size_t bytes;              /* taken from the heap by this arena, all blocks */
};

/* A point to return to. */
struct arena_mark {
    struct arena_block *block;
    char *at;
};

void arena_init(struct arena *a);   /* takes nothing from the heap yet; {0} is as good */
void arena_deinit(struct arena *a); /* frees all; the arena can be used again */
void arena_reset(struct arena *a);  /* empties it, keeps the largest block for reuse */

void *arena_alloc(struct arena *a, size_t bytes) __attribute__((returns_nonnull));
void *arena_zalloc(struct arena *a, size_t bytes) __attribute__((returns_nonnull));
void *arena_dup(struct arena *a, const void *p, size_t bytes) __attribute__((returns_nonnull));
str arena_str(struct arena *a, str s); /* copy, with a NUL behind it */
str arena_printf(struct arena *a, const char *format, ...) __attribute__((format(printf, 2, 3)));

struct arena_mark arena_mark(const struct arena *a);
void arena_rewind(struct arena *a, struct arena_mark mark); /* frees all that came after the mark */

#endif
