/*
 * arena.c: memory with one lifetime.
 *
 * A chain of blocks, newest first; only the newest has free space. What is left at the end of an
 * older block is lost until the arena is emptied (untouched pages cost nothing).
 *
 *   block:  [ prev | size | bytes ............................ ]
 *                           used        ^ at            ^ end      (at, end: newest block only)
 *
 * Invariants: at and end are NULL while there is no block; at is a multiple of 16. Under ASan, [at,
 * end) is poisoned, so a read behind an object or after a rewind is caught at once. The arena owns
 * its blocks; one thread at a time.
 */
#include "storage/base/arena.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#if defined(__SANITIZE_ADDRESS__)
#define ARENA_POISON 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define ARENA_POISON 1
#endif
#endif

#ifdef ARENA_POISON
#include <sanitizer/asan_interface.h>
#else
#define __asan_poison_memory_region(p, n) ((void)(p), (void)(n))
#define __asan_unpoison_memory_region(p, n) ((void)(p), (void)(n))
#endif

#define ARENA_ALIGN 16
#define ARENA_BLOCK_MIN 4096
#define ARENA_BLOCK_MAX (1u << 20)

struct arena_block {
    struct arena_block *prev;
    size_t size; /* the whole block, this header included */
};

static_assert(sizeof(struct arena_block) % ARENA_ALIGN == 0, "objects start aligned");

static char *block_start(struct arena_block *b)
{
    return (char *)b + sizeof *b;
}

static char *block_end(struct arena_block *b)
{
    return (char *)b + b->size;
}

static void block_free(struct arena *a, struct arena_block *b)
{
    a->bytes -= b->size;
    __asan_unpoison_memory_region(block_start(b), b->size - sizeof *b);
    mem_free(b);
}

/* Makes b the current block, free from `at` on. */
static void set_current(struct arena *a, struct arena_block *b, char *at)
{
    a->block = b;
    a->at = at;
    a->end = b ? block_end(b) : NULL;
    if (b) __asan_poison_memory_region(at, (size_t)(a->end - at));
}

static void block_push(struct arena *a, size_t bytes)
{
    size_t size = a->block ? a->block->size * 2 : ARENA_BLOCK_MIN;
    if (size > ARENA_BLOCK_MAX) size = ARENA_BLOCK_MAX;
    if (size < bytes + sizeof(struct arena_block)) size = bytes + sizeof(struct arena_block);
    struct arena_block *b = mem_alloc(size);
    b->prev = a->block;
    b->size = size;
    a->bytes += size;
    set_current(a, b, block_start(b));
}

void arena_init(struct arena *a)
{
    *a = (struct arena){0};
}

void arena_deinit(struct arena *a)
{
    while (a->block) {
        struct arena_block *prev = a->block->prev;
        block_free(a, a->block);
        a->block = prev;
    }
    check(a->bytes == 0);
    arena_init(a);
}

void arena_reset(struct arena *a)
{
    struct arena_block *largest = a->block;
    for (struct arena_block *b = a->block; b; b = b->prev)
        if (b->size > largest->size) largest = b;
    for (struct arena_block *b = a->block, *prev; b; b = prev) {
        prev = b->prev;
        if (b != largest) block_free(a, b);
    }
    if (largest) largest->prev = NULL;
    set_current(a, largest, largest ? block_start(largest) : NULL);
}

void *arena_alloc(struct arena *a, size_t bytes)
{
    check(bytes <= SIZE_MAX / 4);
    size_t rounded = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);
    if (rounded == 0) rounded = ARENA_ALIGN; /* distinct objects have distinct addresses */
    if (__builtin_expect((size_t)(a->end - a->at) < rounded, 0)) block_push(a, rounded);
    char *p = a->at;
    a->at += rounded;
    __asan_unpoison_memory_region(p, bytes);
    return p;
}

void *arena_zalloc(struct arena *a, size_t bytes)
{
    return memset(arena_alloc(a, bytes), 0, bytes);
}

void *arena_dup(struct arena *a, const void *p, size_t bytes)
{
    void *q = arena_alloc(a, bytes);
    if (bytes) memcpy(q, p, bytes);
    return q;
}

str arena_str(struct arena *a, str s)
{
    char *z = arena_alloc(a, s.n + 1);
    if (s.n) memcpy(z, s.p, s.n);
    z[s.n] = '\0';
    return (str){z, s.n};
}

str arena_printf(struct arena *a, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    check(n >= 0);
    char *z = arena_alloc(a, (size_t)n + 1);
    va_start(args, format);
    vsnprintf(z, (size_t)n + 1, format, args);
    va_end(args);
    return (str){z, (size_t)n};
}

struct arena_mark arena_mark(const struct arena *a)
{
    return (struct arena_mark){a->block, a->at};
}

void arena_rewind(struct arena *a, struct arena_mark mark)
{
    if (!mark.block) { /* the arena was empty then: keep a block for the next round */
        arena_reset(a);
        return;
    }
    while (a->block != mark.block) {
        struct arena_block *prev = a->block->prev;
        block_free(a, a->block);
        a->block = prev;
        check(prev != NULL); /* the mark is of this arena and not older than its last reset */
    }
    set_current(a, mark.block, mark.at);
}
