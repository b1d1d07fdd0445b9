/*
 * merge.h: several parts of one partition, neighbours in write order, become one.
 *
 * Equal timestamps of a series: the later part wins, value and kind. What deletes, retention and dedup
 * take away is gone from the result. Inputs are read through their own cursors and the frame cache;
 * a damaged frame ends the merge with an error and the output is removed. One thread a merge.
 */
#ifndef VARVE_STORAGE_MERGE_H
#define VARVE_STORAGE_MERGE_H

#include <stdatomic.h>

#include "storage/part.h"
#include "storage/time_range.h"

struct merge_options {
    int64_t t_keep_min; /* samples before it are dropped; INT64_MIN = keep all */
    int64_t dedup_ms;   /* keep the last sample of each interval (multiples of it, left-open, right-closed); 0 = off */
    /* Adds to *out the deleted ranges that hold for this series in input number `input`; NULL = no deletes. */
    err (*deletes)(void *arg, const struct labels *ls, size_t input, struct time_ranges *out);
    void *deletes_arg;
    const atomic_bool *cancel;                   /* looked at between series: ERR_CANCELED; may be NULL */
    void (*progress)(void *arg, uint64_t bytes); /* called as input is consumed (throttling); may be NULL */
    void *progress_arg;
};

/* parts: oldest writes first. *meta: in: id; out: all. meta->samples == 0: nothing is left and there is no file. */
err merge_parts(struct env *env, const struct hash_key *key, struct part *const *parts, size_t n, const char *path,
                struct part_meta *meta, const struct merge_options *o) __attribute__((warn_unused_result));

#endif
