/*
 * read_series.h: the series of one query of a remote read, in Prometheus's order, and their samples piece by piece.
 * One thread.
 */
#ifndef VARVE_QUERY_READ_SERIES_H
#define VARVE_QUERY_READ_SERIES_H

#include "query/budget.h"
#include "query/read_request.h"

struct read_series {
    struct budget *budget;
    const struct read_query *query;
    struct selection *selection;
    struct reader *reader;
    struct arena arena; /* labels */
    struct arena runs;  /* of the series at hand */
    struct read_entry {
        struct labels labels;
        size_t i; /* in the selection */
    } * v;
    size_t n;
    size_t held; /* bytes told to the budget */
};

/* Deinit also after an error. The query and the budget are borrowed. */
err read_series_open(struct db *db, const struct read_query *q, struct budget *b, struct read_series *s)
    __attribute__((warn_unused_result));
void read_series_deinit(struct read_series *s);

/* Calls fn for the samples of series k, in time order, as often as it takes; s is valid during the call. */
typedef err (*read_samples_fn)(void *arg, const struct samples *s);
err read_series_samples(struct read_series *s, size_t k, read_samples_fn fn, void *arg)
    __attribute__((warn_unused_result));

/* Appends {1: Label{1: name, 2: value}}: how both answers' series begin. */
void read_series_put_labels(const struct labels *ls, struct buf *out);

#endif
