/*
 * value.h: what operators pass around: time grids, rows, label keys.
 *
 * A row is one series on a grid: a column of doubles, where the bit pattern of the stale marker means
 * "no sample at this step", and now and then a second column of native histograms. Arithmetic never
 * yields that bit pattern (it is a signalling NaN), so it is safe as a mark.
 *
 * A row's columns and labels belong to the operator that yielded it and live until that operator is
 * asked for its next row; until then the consumer may overwrite the columns. Labels are resolved on
 * demand: an aggregation without labels never looks at them.
 */
#ifndef VARVE_QUERY_VALUE_H
#define VARVE_QUERY_VALUE_H

#include "query/histogram.h"
#include "storage/storage.h"

/* The points in time at which a node is evaluated; an instant query has one. */
struct grid {
    int64_t start, step; /* ms; step > 0 */
    uint32_t n;
};

static inline int64_t grid_time(const struct grid *g, uint32_t i)
{
    return g->start + (int64_t)i * g->step;
}
static inline int64_t grid_end(const struct grid *g)
{
    return g->start + (int64_t)(g->n ? g->n - 1 : 0) * g->step;
}

struct row {
    double *v;
    struct hist **h; /* NULL: no histogram in this row; v[i] is "no sample" where h[i] is set */
    bool drop_name;  /* metric name (and type and unit) go when the result is printed */
    bool resolved;   /* labels is filled */
    struct labels labels;
    struct reader *reader; /* where labels come from when not resolved: */
    size_t series;
    struct arena *arena;
};

/* "No sample". */
static inline double no_sample(void)
{
    return f64_from_bits(STALE_NAN_BITS);
}
static inline bool row_has_hist(const struct row *r, uint32_t i)
{
    return r->h && r->h[i];
}
static inline bool row_has(const struct row *r, uint32_t i)
{
    return !is_stale_nan(r->v[i]) || row_has_hist(r, i);
}
/* True if any of n steps has a sample. */
bool row_any(const struct row *r, uint32_t n);
void column_clear(double *v, uint32_t n); /* n times "no sample" */

/* Fills r->labels. */
err row_resolve(struct row *r) __attribute__((warn_unused_result));
/* The metric name; empty if there is none. Resolves labels. */
err row_name(struct row *r, str *name) __attribute__((warn_unused_result));

/* A choice of labels by name: those listed (by, on) or all but those (without, ignoring). */
struct label_key {
    const struct hash_key *hash; /* borrowed */
    const str *names;            /* sorted */
    uint32_t n;
    bool except; /* all but names */
};
/* Sorts names (in place). */
void label_key_init(struct label_key *k, const struct hash_key *hash, str *names, uint32_t n, bool except);
bool label_key_has(const struct label_key *k, str name);
struct hash128 label_key_hash(const struct label_key *k, const struct labels *ls);
/* The chosen labels, array in the arena, strings shared. */
struct labels label_key_pick(const struct label_key *k, const struct labels *ls, struct arena *a);

/* __name__, __type__, __unit__: what describes the metric rather than its origin. */
bool label_is_metadata(str name);
/* ls without them; the same array if there is nothing to drop. */
struct labels labels_drop_metadata(const struct labels *ls, struct arena *a);
/* ls with name set to value (an empty value removes it); sorted, array in the arena, strings shared. */
struct labels labels_set(const struct labels *ls, str name, str value, struct arena *a);
/* Array and strings copied into the arena: for rows that are kept. */
struct labels labels_keep(const struct labels *ls, struct arena *a);

#endif
