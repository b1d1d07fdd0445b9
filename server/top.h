/*
 * top.h: which queries the server spends its time on: counts and durations by text and length of range.
 *
 * A table of fixed size: the queries run last are in it, with what they did in the last hour, two
 * minutes by two minutes. Noting a query costs one hash, one lock that is rarely contended and no
 * memory, so that short queries are noted too. Any thread.
 */
#ifndef VARVE_SERVER_TOP_H
#define VARVE_SERVER_TOP_H

#include "storage/base/arena.h"
#include "storage/base/types.h"

#define TOP_LIFETIME_MAX_MS (INT64_C(62) * 60 * 1000) /* how far back counts reach */

struct top;
struct top *top_create(void);
void top_destroy(struct top *t); /* NULL allowed */

/* One query of this text, over a range of range_ms, ended at now_ns (monotonic) after ns. t NULL: not noted. */
void top_note(struct top *t, str text, int64_t range_ms, uint64_t ns, uint64_t now_ns);

struct top_entry {
    str text; /* its beginning, if it is long */
    int64_t range_s;
    uint64_t count, ns; /* runs, and their time together */
};
enum top_order { TOP_BY_COUNT, TOP_BY_AVERAGE, TOP_BY_SUM };

/* What ran since now_ns - lifetime_ns: *n entries, memory of the arena. */
struct top_entry *top_take(struct top *t, uint64_t lifetime_ns, uint64_t now_ns, struct arena *a, size_t *n);
/* Largest first. */
void top_sort(struct top_entry *v, size_t n, enum top_order order);

#endif
