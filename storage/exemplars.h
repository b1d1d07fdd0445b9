/*
 * exemplars.h: the ring of the newest exemplars of all series, in memory.
 *
 * Bounded by number and by bytes: a new exemplar pushes the oldest ones out. Within a series, exemplars come in order
 * (exemplar_before): one that repeats the newest is passed over, one that belongs before it is refused. Neither deletes
 * nor the retention touch the ring, as in Prometheus: exemplars leave it by their number.
 *
 * Any thread; one lock inside, held for one exemplar's adding, for copying what a query has matched, and for writing
 * the ring down.
 */
#ifndef VARVE_STORAGE_EXEMPLARS_H
#define VARVE_STORAGE_EXEMPLARS_H

#include "storage/base/env.h"
#include "storage/exemplar.h"
#include "storage/matcher.h"

struct exemplars;

/* key: of the series' identities, borrowed. max: exemplars at most, 1 or more. */
struct exemplars *exemplars_create(const struct hash_key *key, uint32_t max);
void exemplars_destroy(struct exemplars *e); /* NULL allowed */

enum exemplar_fate { EXEMPLAR_STORED, EXEMPLAR_REPEATED, EXEMPLAR_OUT_OF_ORDER, EXEMPLAR_TOO_LONG };

/* Copies what it stores. series: canonical, as the exemplar's labels are. seq: the write number of the log record that
 * a stored one gets into; it never falls. */
enum exemplar_fate exemplars_add(struct exemplars *e, const struct labels *series, const struct exemplar *x,
                                 uint64_t seq);

/* ---- reading */

struct exemplar_selector { /* all matchers must match */
    const struct matcher *m;
    size_t n;
};
struct exemplar_series {
    struct labels labels;
    struct exemplar *v; /* by time */
    size_t n;
};
/* The series that some selector matches and that have exemplars in [t_min, t_max], with these, by labels. All of it
 * lives in the arena. ERR_LIMIT if a regular expression gave up. */
err exemplars_select(struct exemplars *e, const struct exemplar_selector *s, size_t n, int64_t t_min, int64_t t_max,
                     struct arena *a, struct exemplar_series **out, size_t *n_out) __attribute__((warn_unused_result));

struct exemplars_stats {
    uint64_t exemplars, series, bytes; /* bytes: of memory */
};
void exemplars_stats(struct exemplars *e, struct exemplars_stats *out);

/* ---- the file
 *
 * dir/EXEMPLARS, replaced whole; what it does not hold is in the log, in records of higher write numbers:
 *
 *   0  "VRVEXM01"   8 u32 version
 *   then varint: write number, n series { n pairs { length, name, length, value } }, n exemplars, the oldest first
 *              { number of the series, exemplar as in exemplar.h }
 *   last 8 bytes: XXH3-64 of all before
 */

#define EXEMPLARS_FILE "EXEMPLARS"

/* Writes the ring to dir, if there ever was an exemplar; durable on return. always: a copy for another directory (a
 * snapshot); else nothing is done if the last file says the same already. One caller at a time. */
err exemplars_save(struct exemplars *e, struct env *env, const char *dir, bool always)
    __attribute__((warn_unused_result));
/* Adds what dir's file holds. No file is fine. ERR_CORRUPT: nothing was added. */
err exemplars_load(struct exemplars *e, struct env *env, const char *dir) __attribute__((warn_unused_result));
/* The write number up to which the ring holds what came, so that a replay of the log begins after it; 0 = none. */
uint64_t exemplars_seq(struct exemplars *e);
/* Offline: prints what a file holds, all exemplars if detail > 0. ERR_CORRUPT if it is damaged. */
err exemplars_inspect(struct env *env, const char *path, int detail, struct buf *out)
    __attribute__((warn_unused_result));

#endif
