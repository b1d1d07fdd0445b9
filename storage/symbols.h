/*
 * symbols.h: the strings of a registry, each kept once and known by a number.
 *
 * Numbers count up from 0 and never change or go away while the table lives. Interning is the
 * writer's (under its lock); reading a symbol whose number one holds needs no lock.
 */
#ifndef VARVE_STORAGE_SYMBOLS_H
#define VARVE_STORAGE_SYMBOLS_H

#include "storage/base/arena.h"
#include "storage/base/hash.h"
#include "storage/pages.h"

struct symbol {
    const char *p;
    uint32_t n;
    uint32_t wal_gen; /* the last log segment that defines it; the appender's */
    struct hash128 hash;
};

struct symbols {
    const struct hash_key *key; /* borrowed */
    struct pages table;         /* struct symbol */
    struct arena strings;
    uint32_t *slots; /* open addressing: symbol number + 1, 0 = free */
    size_t n_slots;  /* a power of two */
    uint32_t n;
};

#define SYMBOL_NONE UINT32_MAX

void symbols_init(struct symbols *s, const struct hash_key *key);
void symbols_deinit(struct symbols *s);

uint32_t symbols_intern(struct symbols *s, str text);     /* writer only; copies */
uint32_t symbols_find(const struct symbols *s, str text); /* SYMBOL_NONE if absent; not while interning runs */

static inline struct symbol *symbols_at(const struct symbols *s, uint32_t number)
{
    return pages_at(&s->table, number);
}
static inline str symbols_str(const struct symbols *s, uint32_t number)
{
    const struct symbol *at = symbols_at(s, number);
    return (str){at->p, at->n};
}
size_t symbols_bytes(const struct symbols *s); /* heap held */

#endif
