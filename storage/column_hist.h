/*
 * column_hist.h: native histogram samples: the value, its canonical bytes, and columns of them.
 *
 * Field meanings follow the Prometheus native histogram specification: schema -4..8 exponential,
 * -53 custom bounds; spans are (offset, length) runs of populated buckets. Counts are absolute doubles
 * here; integer histograms (is_float false) hold whole numbers and come back as such.
 */
#ifndef VARVE_STORAGE_COLUMN_HIST_H
#define VARVE_STORAGE_COLUMN_HIST_H

#include "storage/base/arena.h"
#include "storage/base/buf.h"

struct hist_span {
    int32_t offset;  /* gap to the previous span's end (first: start index) */
    uint32_t length; /* consecutive buckets */
};

enum hist_reset { HIST_RESET_UNKNOWN, HIST_RESET_YES, HIST_RESET_NO, HIST_RESET_GAUGE };

#define HIST_SCHEMA_CUSTOM (-53)

struct hist {
    int32_t schema;
    uint8_t reset_hint;                            /* enum hist_reset */
    bool is_float;                                 /* sent as a float histogram */
    double zero_threshold, zero_count, count, sum; /* sum == stale NaN bits: a stale marker */
    uint32_t n_positive_spans, n_negative_spans, n_positive, n_negative, n_custom;
    struct hist_span *positive_spans, *negative_spans;
    double *positive, *negative; /* absolute bucket counts */
    double *custom;              /* upper bounds, HIST_SCHEMA_CUSTOM only */
};

/* ERR_INVALID if spans and counts disagree, the schema is unknown, bounds don't increase, or it exceeds
 * LIMIT_HIST_BLOB. */
err hist_validate(const struct hist *h) __attribute__((warn_unused_result));
/* Appends the canonical bytes of one valid histogram. */
void hist_encode(const struct hist *h, struct buf *out);
/* Arrays of *h live in the arena. ERR_CORRUPT on malformed bytes (which may come from disk). */
err hist_decode(str blob, struct arena *a, struct hist *h) __attribute__((warn_unused_result));

/* A column of n canonical blobs (1 <= n <= LIMIT_BLOCK_SAMPLES) and back; blobs' bytes live in the arena. */
void column_hist_encode(const str *blobs, size_t n, struct buf *out);
err column_hist_decode(const void *p, size_t bytes, size_t n, struct arena *a, str *blobs)
    __attribute__((warn_unused_result));

#endif
