/*
 * result.h: from an operator's rows to the JSON of the Prometheus API.
 */
#ifndef VARVE_QUERY_RESULT_H
#define VARVE_QUERY_RESULT_H

#include "query/source.h"
#include "storage/base/json.h"
#include "storage/base/limits.h"

/* Each appends {"resultType":...,"result":... without the closing brace: members may follow. limit: series at most, 0 =
 * all; *truncated tells if some are missing. */

/* An instant query's vector, in the order of the rows. */
err result_vector(struct op *op, uint64_t limit, struct buf *out, bool *truncated) __attribute__((warn_unused_result));
/* A range query's vector or scalar in two steps: all rows as they are to be printed, sorted by labels; ... */
err result_rows(struct op *op, struct held_rows *rows) __attribute__((warn_unused_result));
/* ... and the printing, on the grid of the rows. */
err result_matrix(struct exec *x, const struct held_rows *rows, const struct grid *g, uint64_t limit, struct buf *out,
                  bool *truncated) __attribute__((warn_unused_result));
/* An instant query's range vector: the samples themselves. */
err result_samples(struct source *s, uint64_t limit, struct buf *out, bool *truncated)
    __attribute__((warn_unused_result));
void result_scalar(int64_t ms, double v, struct buf *out);
void result_string(int64_t ms, str s, struct buf *out);

/* A label set as one object, of any answer. */
void result_labels(struct json *j, const struct labels *ls);

/* The same for many series in a row, which share most of their labels: those whose strings are where the series before
 * had them are copied from its text. */
struct label_printer {
    uint32_t n; /* pairs of the series before */
    struct printed_label {
        struct label pair;
        size_t from, to; /* its text in the buffer: "name":"value" */
    } v[LIMIT_LABELS];
};
void label_printer_init(struct label_printer *p);
/* The strings of ls must stay where they are until the next call; j is the same in all calls. */
void label_printer_put(struct label_printer *p, struct json *j, const struct labels *ls);

#endif
