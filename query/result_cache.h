/*
 * result_cache.h: answers to range queries, kept so that the next refresh of a panel computes its newest steps only.
 *
 * A kept answer knows the version of the storage that it was read from (storage_version): which of its steps are still
 * right is asked at every use, so an answer is never stale, whatever was written late or deleted. The least recently
 * used go when the bytes are full. Any thread.
 */
#ifndef VARVE_QUERY_RESULT_CACHE_H
#define VARVE_QUERY_RESULT_CACHE_H

#include "query/exec.h"

struct result_cache;
struct result_cache *result_cache_create(const struct hash_key *key, size_t max_bytes, struct metrics *metrics);
void result_cache_destroy(struct result_cache *c); /* NULL allowed */
size_t result_cache_bytes(struct result_cache *c); /* NULL: 0 */
void result_cache_clear(struct result_cache *c);   /* NULL allowed */

/* An answer: rows sorted by labels, without histograms. */
struct kept_result {
    struct grid grid;
    uint64_t version;
    struct held_row *rows;
    size_t n_rows;
    struct kept_note *notes;
    size_t n_notes;
    uint32_t omitted[NOTE_KINDS]; /* notes that were counted only */
};

/* The answer to a question, which stays until it is given back; NULL if there is none. */
const struct kept_result *result_cache_get(struct result_cache *c, str question);
void result_cache_release(struct result_cache *c, const struct kept_result *r); /* r NULL allowed */
/* Keeps a copy in the place of what is known, unless it is too large. */
void result_cache_put(struct result_cache *c, str question, const struct kept_result *r);

#endif
