/*
 * tally.h: how many samples a query loaded, step by step, as Prometheus counts them (stats=).
 *
 * A selector loads at each step the sample it takes, a range function all samples of its window, those of a subquery
 * included; what a subquery under a function loads itself is not counted. What does not depend on the step counts at
 * each. A histogram weighs as many samples as its memory would hold (16 bytes each).
 *
 * Nothing of this happens unless a query asks: the plan then has no tally, and its nodes are not marked.
 */
#ifndef VARVE_QUERY_TALLY_H
#define VARVE_QUERY_TALLY_H

#include "query/source.h"

/* struct plan_node.counted */
enum tally_kind {
    TALLY_NONE,
    TALLY_EACH, /* at the step at hand */
    TALLY_ALL,  /* at every step of the query */
};

/* Gives the plan a tally and marks the nodes that count. Memory is the arena's. Before anything runs. */
void tally_start(struct plan *plan, struct arena *a);
/* Counts a row of a selector: v and h (NULL allowed) of n steps. Any thread of the query. */
void tally_row(const struct exec *x, const struct plan_node *node, const double *v, struct hist **h, uint32_t n);
/* Counts the windows over a series of a PLAN_SAMPLES node. Any thread of the query. */
void tally_series(const struct exec *x, const struct plan_node *samples, const struct series *s);
/* Samples at step i, and at all steps. When everything has run. */
uint64_t tally_at(const struct plan *plan, uint32_t i);
uint64_t tally_total(const struct plan *plan);

#endif
