/*
 * tombstone.h: one delete: the samples in [t_min, t_max] of the series that match, as far as they were
 * written up to `seq`. Immutable and shared by reference counts; any thread.
 */
#ifndef VARVE_STORAGE_TOMBSTONE_H
#define VARVE_STORAGE_TOMBSTONE_H

#include <stdatomic.h>

#include "storage/matcher.h"

struct tombstone {
    atomic_uint refs;
    uint64_t seq;
    int64_t t_min, t_max;
    struct matcher *m;
    uint32_t n;
    struct arena arena; /* owns matchers' strings and the array */
};

/* Copies the matchers (and compiles their patterns again). */
err tombstone_create(uint64_t seq, int64_t t_min, int64_t t_max, const struct matcher *m, size_t n,
                     struct tombstone **out) __attribute__((warn_unused_result));
struct tombstone *tombstone_ref(struct tombstone *t);
void tombstone_unref(struct tombstone *t); /* NULL allowed */

void tombstone_encode(const struct tombstone *t, struct buf *out);
err tombstone_decode(struct cursor *c, struct tombstone **out) __attribute__((warn_unused_result));
void tombstone_print(const struct tombstone *t, struct buf *out);

/* True if it holds for samples of a part written up to seq_max, in which deletes up to clean_seq were applied already.
 */
static inline bool tombstone_concerns(const struct tombstone *t, uint64_t seq_max, uint64_t clean_seq)
{
    return t->seq >= seq_max && t->seq > clean_seq;
}

#endif
