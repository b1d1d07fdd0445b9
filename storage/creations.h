/*
 * creations.h: how many series came up in the last hour, by metric name.
 *
 * A series counts when it is registered, unless an earlier registry knew it already: registries are
 * replaced when too many of their series are dead, and the living register again. Earlier ones are
 * remembered as filters of identities, 2 to 4 bytes a series; about one new series in a hundred is
 * taken for an old one. Nothing is kept over a restart: with data from before, what registers in the
 * first minutes is taken for old.
 *
 * One writer at a time (under the database's append lock) and any number of readers.
 */
#ifndef VARVE_STORAGE_CREATIONS_H
#define VARVE_STORAGE_CREATIONS_H

#include "storage/base/hash.h"

struct creations;

struct creations *creations_create(const struct hash_key *key); /* key: borrowed */
void creations_destroy(struct creations *c);                    /* NULL allowed */

/* ---- the writer */

/* Counting begins at this time (ms since the epoch); series before it are remembered only. */
void creations_begin(struct creations *c, int64_t since_ms);
/* A series was registered at now_ms. */
void creations_add(struct creations *c, struct hash128 id, str metric, int64_t now_ms);
/* The registry was replaced by an empty one. */
void creations_turn_over(struct creations *c);

/* ---- anyone */

/* Series of this metric created in the hour before now_ms (in steps of five minutes). */
uint64_t creations_of(struct creations *c, str metric, int64_t now_ms);
/* The same for each metric that has some; "" stands for those beyond the 20,000 that are told apart. Under a lock. */
typedef void (*creations_fn)(void *arg, str metric, uint64_t n);
void creations_each(struct creations *c, int64_t now_ms, creations_fn fn, void *arg);
int64_t creations_since(struct creations *c); /* what creations_begin was told */

#endif
