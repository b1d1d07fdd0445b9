/*
 * part.h: reads one part file.
 *
 * part_open reads and verifies the footer only; the sparse indexes of symbols, series, postings and
 * frames load at first use (checksummed) and stay; everything else goes through the frame cache.
 * A part is immutable and shared: part_ref/part_unref, any thread. A part_cursor is one thread's
 * view: it keeps pins and scratch, and what it hands out lives until the next call that says so.
 * Damage is ERR_CORRUPT naming part and offset; it is also counted on the part (part_damaged).
 */
#ifndef VARVE_STORAGE_PART_H
#define VARVE_STORAGE_PART_H

#include "storage/base/env.h"
#include "storage/column_hist.h"
#include "storage/fcache.h"
#include "storage/labels.h"
#include "storage/matcher.h"
#include "storage/part_write.h"
#include "storage/postings.h"

struct part;
struct part_cursor;

enum block_kind { BLOCK_FLOAT, BLOCK_HIST };

/* Float aggregates over a block, in sample order; NaN samples make them unavailable (has_aggregates false). */
struct block_aggregates {
    double first, last, min, max;
    double sum;    /* Neumaier-compensated */
    double resets; /* sum over i of v[i-1] where v[i] < v[i-1]: increase = last - first + resets */
};

struct part_block {
    enum block_kind kind;
    uint32_t n; /* samples */
    int64_t t_min, t_max;
    bool has_aggregates; /* float blocks only */
    struct block_aggregates agg;
    /* where the bytes are: private to part.c */
    uint32_t time_frame, time_offset, time_bytes;
    uint32_t value_frame, value_offset, value_bytes;
    bool constant;        /* value is agg.first throughout, no value bytes */
    uint32_t start_bytes; /* start column, right behind the value column; 0: no sample has a start timestamp. Such a
                             block is not constant and has no aggregates */
};

struct part_series {
    uint32_t n_pairs;
    const uint32_t *pairs; /* 2 * n_pairs symbol numbers, sorted by name */
    uint32_t n_blocks;
    const struct part_block *blocks; /* by t_min; blocks of different kinds may overlap, of one kind never */
};

/* key: for series identities. cache and env are borrowed and outlive the part. */
err part_open(struct env *env, const char *path, const struct hash_key *key, struct fcache *cache, struct part **out)
    __attribute__((warn_unused_result));
/* The kernel may fetch the file's last bytes, where its indexes are, before anyone asks. */
void part_will_read(struct part *p, uint64_t bytes);
struct part *part_ref(struct part *p);
void part_unref(struct part *p); /* the last one closes the file; NULL allowed */
/* After the manifest dropped it: the file is unlinked when the last reference goes. */
void part_delete_on_unref(struct part *p);
const struct part_meta *part_meta(const struct part *p);
const char *part_path(const struct part *p);
bool part_damaged(const struct part *p);
size_t part_resident_bytes(const struct part *p); /* indexes kept in memory */

struct part_cursor *part_cursor_create(struct part *p); /* takes a reference */
void part_cursor_destroy(struct part_cursor *c);        /* NULL allowed */

/* Numbers of the series that satisfy all matchers and were alive on a day that touches [t_min, t_max]. */
err part_find(struct part_cursor *c, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max,
              struct postings **out) __attribute__((warn_unused_result));
/* Pairs and blocks of one series; valid until the next part_series on this cursor. */
err part_series(struct part_cursor *c, uint32_t id, struct part_series *out) __attribute__((warn_unused_result));
/* Its labels alone: 2 * *n_pairs symbols; valid until the cursor moves to another. */
err part_series_pairs(struct part_cursor *c, uint32_t id, const uint32_t **pairs, uint32_t *n_pairs)
    __attribute__((warn_unused_result));
/* A symbol's bytes; valid as long as the cursor. */
err part_symbol(struct part_cursor *c, uint32_t symbol, str *out) __attribute__((warn_unused_result));
/* The identity of a series (labels_id), from its symbol numbers. */
err part_series_id(struct part_cursor *c, const struct part_series *s, struct hash128 *out)
    __attribute__((warn_unused_result));
/* Decodes all samples of a float block: t and v need room for b->n + COLUMN_VALUE_PAD. */
err part_read_floats(struct part_cursor *c, const struct part_block *b, int64_t *t, double *v)
    __attribute__((warn_unused_result));
err part_read_hists(struct part_cursor *c, const struct part_block *b, int64_t *t, str *blobs, struct arena *a)
    __attribute__((warn_unused_result));
/* The start timestamps of a block with start_bytes > 0; room for b->n. 0 = none. */
err part_read_starts(struct part_cursor *c, const struct part_block *b, int64_t *start)
    __attribute__((warn_unused_result));
/* For merges: the block's times, decoded; valid until a few others were asked for. */
err part_read_times(struct part_cursor *c, const struct part_block *b, const int64_t **t)
    __attribute__((warn_unused_result));
/* For merges: the block's value column, and start column if it has one, as they are; n = 0 if constant. Valid until a
 * few other blocks were read. */
err part_read_encoded(struct part_cursor *c, const struct part_block *b, str *values)
    __attribute__((warn_unused_result));

/* Called with each distinct string, in byte order; bytes valid during the call. Return false to stop early. */
typedef bool (*part_string_fn)(void *arg, str s);
/* Names of labels of the series in `filter` (NULL: of all). */
err part_label_names(struct part_cursor *c, const struct postings *filter, part_string_fn fn, void *arg)
    __attribute__((warn_unused_result));
/* Values of one label among the series in `filter` (NULL: all). */
err part_label_values(struct part_cursor *c, str name, const struct postings *filter, part_string_fn fn, void *arg)
    __attribute__((warn_unused_result));

/* For merges: how many symbols there are, and a symbol's bytes without keeping them in memory: valid until the next
 * call of this function, which is quick for the next symbol. */
uint32_t part_symbol_count(const struct part *p);
err part_symbol_walk(struct part_cursor *c, uint32_t symbol, str *out) __attribute__((warn_unused_result));

/* Walks the whole file, checks every checksum, decodes every frame, block and index entry, compares counts and
 * ranges with the footer. Calls report with place and text for each fault; goes on after damage. */
typedef void (*part_fault_fn)(void *arg, uint64_t offset, const char *what);
err part_verify(struct env *env, const char *path, part_fault_fn report, void *arg, uint64_t *faults)
    __attribute__((warn_unused_result));
/* Prints footer, sections, and with detail > 0 series and blocks, as text. */
err part_inspect(struct env *env, const char *path, int detail, struct buf *out) __attribute__((warn_unused_result));

#endif
