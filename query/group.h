/*
 * group.h: the groups of an aggregation: rows by the labels of by() or without().
 */
#ifndef VARVE_QUERY_GROUP_H
#define VARVE_QUERY_GROUP_H

#include "query/exec.h"

/* Numbers groups 0, 1, ... in the order in which they are first seen. */
struct grouping {
    struct exec *x;
    struct label_key key;
    struct map numbers;
    struct labels *labels; /* of each group, query arena */
    size_t n, cap;
};

/* Of an aggregation node; extra: one more label for by() (count_values), n = 0 if none. */
void grouping_init(struct grouping *g, struct exec *x, const struct expr *aggregate, str extra);
void grouping_deinit(struct grouping *g);
/* The number of the row's group; *added tells if it is new. */
err grouping_find(struct grouping *g, struct row *row, size_t *number, bool *added) __attribute__((warn_unused_result));
/* The same for a label set. */
size_t grouping_of(struct grouping *g, const struct labels *ls, bool *added);

#endif
