/*
 * exemplar.h: an exemplar as a value: one observation behind a sample, with labels that say which (a trace id).
 */
#ifndef VARVE_STORAGE_EXEMPLAR_H
#define VARVE_STORAGE_EXEMPLAR_H

#include "storage/labels.h"

/* Names and values of an exemplar's labels together, in characters (OpenMetrics). */
#define EXEMPLAR_RUNES_MAX 128

struct exemplar {
    struct labels labels; /* canonical once stored; borrowed; may be none */
    double v;
    int64_t t;  /* ms since the epoch */
    bool has_t; /* false: it was sent without a time, t is that of its sample */
};

/* True if the labels are within EXEMPLAR_RUNES_MAX. */
bool exemplar_fits(const struct exemplar *x);
/* The same labels, value, and time if either brought one of its own. */
bool exemplar_eq(const struct exemplar *a, const struct exemplar *b);
/* Prometheus's order: by time, then value, then hash of the labels. Both must fit. */
bool exemplar_before(const struct exemplar *a, const struct exemplar *b);

/*
 * As bytes, in the log and in the file of exemplars:
 *   u8 1 if it has a time of its own, else 0   zigzag t   8 bytes value   varint n labels { length, name, length, value
 * }
 */
void exemplar_encode(const struct exemplar *x, struct buf *out);
/* Strings are the cursor's bytes, the array is the arena's. A malformed one sets c->failed. */
void exemplar_decode(struct cursor *c, struct arena *a, struct exemplar *out);
#define EXEMPLAR_BYTES_MIN 11

#endif
