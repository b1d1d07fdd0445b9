/*
 * symbols.c: string interning for a registry (symbols.h).
 *
 * One table of fixed-size entries that never move, their bytes in one arena, and an index of slots
 * at most 5/8 full. The keyed hash is kept per symbol: it serves the index and, summed over pairs,
 * the identity of series.
 */
#include "storage/symbols.h"

#define FIRST_SLOTS 1024

void symbols_init(struct symbols *s, const struct hash_key *key)
{
    *s = (struct symbols){.key = key, .n_slots = FIRST_SLOTS};
    pages_init(&s->table, sizeof(struct symbol));
    s->slots = mem_zalloc(s->n_slots * sizeof *s->slots);
}

void symbols_deinit(struct symbols *s)
{
    pages_deinit(&s->table);
    arena_deinit(&s->strings);
    mem_free(s->slots);
    *s = (struct symbols){0};
}

/* The slot that holds the text, or the free one where it belongs. */
static size_t find_slot(const struct symbols *s, struct hash128 h, str text)
{
    size_t mask = s->n_slots - 1;
    for (size_t i = h.lo & mask;; i = (i + 1) & mask) {
        uint32_t number = s->slots[i];
        if (number == 0) return i;
        const struct symbol *at = symbols_at(s, number - 1);
        if (hash128_eq(at->hash, h) && at->n == text.n && memcmp(at->p, text.p, text.n) == 0) return i;
    }
}

static void grow(struct symbols *s)
{
    mem_free(s->slots);
    s->n_slots *= 2;
    s->slots = mem_zalloc(s->n_slots * sizeof *s->slots);
    for (uint32_t number = 0; number < s->n; number++) {
        size_t i = symbols_at(s, number)->hash.lo & (s->n_slots - 1);
        while (s->slots[i] != 0)
            i = (i + 1) & (s->n_slots - 1);
        s->slots[i] = number + 1;
    }
}

uint32_t symbols_intern(struct symbols *s, str text)
{
    struct hash128 h = hash128(s->key, text.p, text.n);
    size_t slot = find_slot(s, h, text);
    if (s->slots[slot] != 0) return s->slots[slot] - 1;

    struct symbol *at = pages_make(&s->table, s->n);
    *at = (struct symbol){.p = arena_str(&s->strings, text).p, .n = (uint32_t)text.n, .hash = h};
    s->slots[slot] = ++s->n;
    if ((size_t)s->n * 8 > s->n_slots * 5) grow(s);
    return s->n - 1;
}

uint32_t symbols_find(const struct symbols *s, str text)
{
    uint32_t number = s->slots[find_slot(s, hash128(s->key, text.p, text.n), text)];
    return number == 0 ? SYMBOL_NONE : number - 1;
}

size_t symbols_bytes(const struct symbols *s)
{
    return s->table.bytes + s->strings.bytes + s->n_slots * sizeof *s->slots;
}
