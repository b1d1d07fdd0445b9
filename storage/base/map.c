/*
 * map.c: two open-addressing hash tables.
 *
 * Invariants: the slot count is a power of two (or 0); at most 7/8 of the slots are used; every entry
 * can be reached from its home slot without crossing a free one. Removal keeps the last by shifting
 * later entries of the run back, so there are no tombstones and a table never needs a clean-up.
 * A map owns its slots, a strmap also its keys' bytes; values are the caller's. Not thread-safe.
 */
#include "storage/base/map.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define MAP_MIN 16

/* ---- map: 128-bit hash → 64-bit value */

static size_t map_home(const struct map *m, struct hash128 key)
{
    return (size_t)(key.lo ^ (key.hi >> 7)) & (m->cap - 1);
}

/* The slot of key, or the free slot where it would go. The table is never full, so this ends. */
static struct map_slot *map_find(const struct map *m, struct hash128 key)
{
    size_t at = map_home(m, key);
    while (m->slots[at].used && !hash128_eq(m->slots[at].key, key))
        at = (at + 1) & (m->cap - 1);
    return &m->slots[at];
}

static void map_resize(struct map *m, size_t cap)
{
    struct map old = *m;
    m->cap = cap;
    m->slots = mem_zalloc(cap * sizeof *m->slots);
    for (size_t i = 0; i < old.cap; i++)
        if (old.slots[i].used) *map_find(m, old.slots[i].key) = old.slots[i];
    mem_free(old.slots);
}

void map_deinit(struct map *m)
{
    mem_free(m->slots);
    *m = (struct map){0};
}

uint64_t *map_get(const struct map *m, struct hash128 key)
{
    if (m->n == 0) return NULL;
    struct map_slot *slot = map_find(m, key);
    return slot->used ? &slot->value : NULL;
}

uint64_t *map_put(struct map *m, struct hash128 key, uint64_t initial, bool *added)
{
    if (m->n + 1 > m->cap / 8 * 7) map_resize(m, m->cap ? m->cap * 2 : MAP_MIN);
    struct map_slot *slot = map_find(m, key);
    if (added) *added = !slot->used;
    if (!slot->used) {
        *slot = (struct map_slot){key, initial, true};
        m->n++;
    }
    return &slot->value;
}

/* May the entry whose home is `home` move from slot `from` back to slot `hole`? Only if its way from
 * home leads over the hole (cyclic distances). */
static bool can_shift(size_t home, size_t hole, size_t from, size_t cap)
{
    return ((from - home) & (cap - 1)) >= ((from - hole) & (cap - 1));
}

bool map_remove(struct map *m, struct hash128 key)
{
    if (m->n == 0) return false;
    struct map_slot *slot = map_find(m, key);
    if (!slot->used) return false;
    size_t hole = (size_t)(slot - m->slots);
    for (size_t at = (hole + 1) & (m->cap - 1); m->slots[at].used; at = (at + 1) & (m->cap - 1)) {
        if (!can_shift(map_home(m, m->slots[at].key), hole, at, m->cap)) continue;
        m->slots[hole] = m->slots[at];
        hole = at;
    }
    m->slots[hole] = (struct map_slot){0};
    m->n--;
    return true;
}

void map_clear(struct map *m)
{
    if (m->cap) memset(m->slots, 0, m->cap * sizeof *m->slots);
    m->n = 0;
}

/* ---- strmap: byte string → pointer */

struct strmap_slot {
    uint64_t hash;
    char *key; /* owned; NULL = free slot */
    size_t n;
    void *value;
};

struct strmap {
    const struct hash_key *key; /* borrowed, NULL = unkeyed */
    struct strmap_slot *slots;
    size_t n, cap;
};

struct strmap *strmap_create(const struct hash_key *key)
{
    struct strmap *m = mem_zalloc(sizeof *m);
    m->key = key;
    return m;
}

void strmap_destroy(struct strmap *m)
{
    if (!m) return;
    for (size_t i = 0; i < m->cap; i++)
        mem_free(m->slots[i].key);
    mem_free(m->slots);
    mem_free(m);
}

static uint64_t strmap_hash(const struct strmap *m, str key)
{
    return m->key ? hash64(m->key, key.p, key.n) : checksum64(key.p, key.n);
}

static struct strmap_slot *strmap_find(const struct strmap *m, str key, uint64_t hash)
{
    size_t at = (size_t)hash & (m->cap - 1);
    for (; m->slots[at].key; at = (at + 1) & (m->cap - 1)) {
        struct strmap_slot *slot = &m->slots[at];
        if (slot->hash == hash && str_eq((str){slot->key, slot->n}, key)) break;
    }
    return &m->slots[at];
}

static void strmap_resize(struct strmap *m, size_t cap)
{
    struct strmap_slot *old = m->slots;
    size_t old_cap = m->cap;
    m->cap = cap;
    m->slots = mem_zalloc(cap * sizeof *m->slots);
    for (size_t i = 0; i < old_cap; i++)
        if (old[i].key) *strmap_find(m, (str){old[i].key, old[i].n}, old[i].hash) = old[i];
    mem_free(old);
}

void **strmap_get(const struct strmap *m, str key)
{
    if (m->n == 0) return NULL;
    struct strmap_slot *slot = strmap_find(m, key, strmap_hash(m, key));
    return slot->key ? &slot->value : NULL;
}

void **strmap_put(struct strmap *m, str key, void *initial, bool *added)
{
    if (m->n + 1 > m->cap / 8 * 7) strmap_resize(m, m->cap ? m->cap * 2 : MAP_MIN);
    uint64_t hash = strmap_hash(m, key);
    struct strmap_slot *slot = strmap_find(m, key, hash);
    if (added) *added = !slot->key;
    if (!slot->key) {
        *slot = (struct strmap_slot){hash, mem_dup_str(key), key.n, initial};
        m->n++;
    }
    return &slot->value;
}

bool strmap_remove(struct strmap *m, str key)
{
    if (m->n == 0) return false;
    struct strmap_slot *slot = strmap_find(m, key, strmap_hash(m, key));
    if (!slot->key) return false;
    mem_free(slot->key);
    size_t hole = (size_t)(slot - m->slots);
    for (size_t at = (hole + 1) & (m->cap - 1); m->slots[at].key; at = (at + 1) & (m->cap - 1)) {
        if (!can_shift((size_t)m->slots[at].hash & (m->cap - 1), hole, at, m->cap)) continue;
        m->slots[hole] = m->slots[at];
        hole = at;
    }
    m->slots[hole] = (struct strmap_slot){0};
    m->n--;
    return true;
}

size_t strmap_count(const struct strmap *m)
{
    return m->n;
}

bool strmap_next(const struct strmap *m, size_t *at, str *key, void **value)
{
    check(*at <= m->cap);
    while (*at < m->cap) {
        const struct strmap_slot *slot = &m->slots[(*at)++];
        if (!slot->key) continue;
        *key = (str){slot->key, slot->n};
        *value = slot->value;
        return true;
    }
    return false;
}
