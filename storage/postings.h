/*
 * postings.h: sets of series numbers inside one part or head; the only unit that includes CRoaring.
 */
#ifndef VARVE_STORAGE_POSTINGS_H
#define VARVE_STORAGE_POSTINGS_H

#include "storage/base/buf.h"

struct postings;

struct postings *postings_create(void);                      /* empty */
struct postings *postings_range(uint32_t from, uint32_t to); /* [from, to) */
/* From n numbers, increasing. */
struct postings *postings_of(const uint32_t *ids, size_t n);
void postings_destroy(struct postings *p); /* NULL allowed */
struct postings *postings_copy(const struct postings *p);

void postings_add(struct postings *p, uint32_t id);
void postings_add_many(struct postings *p, const uint32_t *ids, size_t n);
void postings_and(struct postings *p, const struct postings *other);
void postings_or(struct postings *p, const struct postings *other);
void postings_andnot(struct postings *p, const struct postings *other);
/* Union of many; consumes nothing. */
struct postings *postings_or_many(const struct postings **ps, size_t n);
bool postings_intersects(const struct postings *a, const struct postings *b);
bool postings_has(const struct postings *p, uint32_t id);
uint64_t postings_count(const struct postings *p);
bool postings_is_empty(const struct postings *p);
/* Writes up to n members in order to out (n = postings_count for all); returns how many. */
size_t postings_list(const struct postings *p, uint32_t *out, size_t n);

/* Bytes: small sets as delta varints, large ones in Roaring's portable format; a tag byte tells. */
void postings_encode(const struct postings *p, struct buf *out);
/* The same from a plain increasing list, without building a set. */
void postings_encode_list(const uint32_t *ids, size_t n, struct buf *out);
/* The same from n runs of numbers, run i being [runs[2i], runs[2i+1]], increasing, apart from each other. */
void postings_encode_runs(const uint32_t *runs, size_t n, struct buf *out);
/* ERR_CORRUPT on malformed bytes or a member >= limit. */
err postings_decode(str bytes, uint32_t limit, struct postings **out) __attribute__((warn_unused_result));
/* Adds the members of encoded bytes to a set; those outside [from, to] may be left out. On failure some may have been
 * added. */
err postings_decode_or(str bytes, uint32_t limit, uint32_t from, uint32_t to, struct postings *into)
    __attribute__((warn_unused_result));
/* Least and greatest member; false if there is none. */
bool postings_bounds(const struct postings *p, uint32_t *from, uint32_t *to);

#endif
