/*
 * series.h: the registry of live series: label bytes as received → alias → series handle → labels.
 *
 * A series has a handle (a number that counts up) and its canonical labels as symbol pairs. It is
 * known by aliases: keyed hashes of label bytes as some sender writes them; one of them is always its
 * identity (labels_id). Each alias remembers which alias came next last time: a sender that repeats
 * its order is answered by one compare instead of a table probe.
 *
 * Threads: one writer at a time (the appender, under the database's append lock) finds and adds;
 * readers (selections) look things up under `lock`, which the writer takes for writing only while it
 * adds. Entries never move or go away: a registry that holds too many dead series is replaced whole
 * when the head turns over (db_flush.c) and lives on until the last head or selection lets go of it.
 */
#ifndef VARVE_STORAGE_SERIES_H
#define VARVE_STORAGE_SERIES_H

#include <pthread.h>

#include "storage/labels.h"
#include "storage/matcher.h"
#include "storage/symbols.h"

#define SERIES_NONE UINT32_MAX
#define ALIAS_NONE UINT32_MAX

struct series {
    uint32_t pairs_at; /* first entry in the registry's pairs */
    uint16_t n_pairs;
    uint16_t unused;
    uint32_t wal_gen; /* the last log segment that defines it; the appender's */
};

struct registry;

struct registry *registry_create(const struct hash_key *key);
struct registry *registry_ref(struct registry *r);
void registry_unref(struct registry *r); /* NULL allowed */

/* ---- the writer */

/* The alias number of a hash, or ALIAS_NONE. `previous` is the alias found just before (ALIAS_NONE at the start);
 * what is found is remembered as its successor. */
uint32_t registry_find(struct registry *r, struct hash128 alias, uint32_t previous);
uint32_t registry_alias_series(const struct registry *r, uint32_t alias);
/* Adds an alias for canonical labels, and the series if it is new. Takes the lock. Returns the alias number. */
uint32_t registry_add(struct registry *r, struct hash128 alias, const struct labels *ls);
/* The same by symbol pairs known to this registry (replay of the log). */
uint32_t registry_add_pairs(struct registry *r, const uint32_t *pairs, uint32_t n_pairs);
/* Interns under the lock (replay of the log). */
uint32_t registry_symbol(struct registry *r, str text);

/* ---- anyone who holds a reference */

uint32_t registry_count(const struct registry *r); /* series */
uint32_t registry_symbols(const struct registry *r);
struct series *registry_at(const struct registry *r, uint32_t handle);
const uint32_t *registry_pairs(const struct registry *r, const struct series *s); /* 2 * n_pairs symbol numbers */
struct symbol *registry_symbol_at(const struct registry *r, uint32_t symbol);
/* The number of a string, SYMBOL_NONE if no series has it. Takes the lock. */
uint32_t registry_find_symbol(struct registry *r, str text);
/* Labels with strings in the registry; the array in the arena. */
struct labels registry_labels(const struct registry *r, uint32_t handle, struct arena *a);
struct hash128 registry_id(const struct registry *r, uint32_t handle);
size_t registry_bytes(const struct registry *r);

/* Handles of the series that satisfy all matchers, increasing; *out is heap memory, the caller's. Takes the lock. */
err registry_select(struct registry *r, const struct matcher *m, size_t n, uint32_t **out, size_t *n_out)
    __attribute__((warn_unused_result));
/* Calls fn with each (value symbol, handles of its series) of a label. Under the lock: fn must be quick. False stops.
 */
typedef bool (*registry_value_fn)(void *arg, uint32_t value, const uint32_t *handles, uint32_t n);
void registry_each_value(struct registry *r, str name, registry_value_fn fn, void *arg);
/* The same over all labels: for each name, its values until fn returns false. */
typedef bool (*registry_name_fn)(void *arg, uint32_t name, const uint32_t *handles, uint32_t n);
void registry_each_name(struct registry *r, registry_name_fn fn, void *arg);
/*
 * All (name, value) pairs with the handles of their series, name by name, in turns: a turn holds the lock and ends when
 * its calls have cost `work`; each costs one and what fn returns. {0} begins; true: there is more.
 */
struct registry_walk {
    uint32_t name;
    size_t value;
};
typedef size_t (*registry_pair_fn)(void *arg, uint32_t name, uint32_t value, const uint32_t *handles, uint32_t n);
bool registry_walk(struct registry *r, struct registry_walk *w, size_t work, registry_pair_fn fn, void *arg);

/*
 * The first n series in storage order (labels_cmp_storage) and all symbols in byte order, kept and extended from one
 * flush to the next. Borrowed until the next call. One caller at a time (the flusher).
 */
struct registry_order {
    const uint32_t *series; /* handles */
    uint32_t n_series;
    const uint32_t *symbols; /* numbers */
    uint32_t n_symbols;
};
struct registry_order registry_sorted(struct registry *r);

#endif
