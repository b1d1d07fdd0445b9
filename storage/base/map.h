/*
 * map.h: open-addressing hash tables for cold and warm paths.
 *
 * `map` goes from a 128-bit hash to a 64-bit value: callers hash their keys (identity is the hash).
 * `strmap` goes from a byte string, which it copies, to a pointer-sized value; it compares bytes.
 * Linear probing at most 7/8 full, no tombstones (removal shifts back). Not thread-safe.
 */
#ifndef VARVE_STORAGE_BASE_MAP_H
#define VARVE_STORAGE_BASE_MAP_H

#include "storage/base/hash.h"

struct map_slot {
    struct hash128 key;
    uint64_t value;
    bool used;
};
struct map {
    struct map_slot *slots;
    size_t n, cap; /* entries; slots (power of two or 0) */
};

void map_deinit(struct map *m);
uint64_t *map_get(const struct map *m, struct hash128 key); /* NULL if absent; valid until the next put */
/* The value of key, made with `initial` when absent (*added tells; NULL allowed). Valid until the next put. */
uint64_t *map_put(struct map *m, struct hash128 key, uint64_t initial, bool *added);
bool map_remove(struct map *m, struct hash128 key);
void map_clear(struct map *m);

struct strmap;
struct strmap *strmap_create(const struct hash_key *key); /* key borrowed; NULL = unkeyed (trusted input only) */
void strmap_destroy(struct strmap *m);                    /* values are the caller's */
void **strmap_get(const struct strmap *m, str key);
void **strmap_put(struct strmap *m, str key, void *initial, bool *added);
bool strmap_remove(struct strmap *m, str key);
size_t strmap_count(const struct strmap *m);
/* Iteration: start with *at = 0; false at the end. Order is arbitrary; no changes meanwhile. */
bool strmap_next(const struct strmap *m, size_t *at, str *key, void **value);

#endif
