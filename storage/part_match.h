/*
 * part_match.h: which series of a part satisfy matchers, with what a selection wants to know of them.
 */
#ifndef VARVE_STORAGE_PART_MATCH_H
#define VARVE_STORAGE_PART_MATCH_H

#include "storage/part_answer.h"

struct part_match {
    struct hash128 identity; /* labels_id */
    int64_t t_min, t_max;    /* of its blocks; both ends are samples */
    uint64_t id;
};

/* What part_match_find found. Release with part_match_done. */
struct part_matches {
    const struct part_match *v;
    size_t n;
    struct part_answer answer;
};

/* Like part_find, with the answer from the cache if the same was asked before. text: matchers_encode of the same
 * matchers. *known false: there are too many to be remembered; use part_find. Any thread. */
err part_match_find(struct part *p, const struct matcher *m, size_t n, str text, int64_t t_min, int64_t t_max,
                    struct part_matches *out, bool *known) __attribute__((warn_unused_result));
void part_match_done(struct part_matches *m);

#endif
