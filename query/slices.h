/*
 * slices.h: one operator tree over many series, run in slices on several threads.
 *
 * A slice is a stretch of the series of the tree's only selection, with an exec, an arena and operators
 * of its own; plan, budget and notes are shared. How a tree is cut depends on the query, the number of
 * series and the configured threads, never on which thread was idle, so an answer is the same bit for
 * bit whenever it is asked.
 */
#ifndef VARVE_QUERY_SLICES_H
#define VARVE_QUERY_SLICES_H

#include "query/exec.h"

/* In how many slices to run the tree below a node: 1 if it is not a chain of per-series operators over one selection,
 * or too little work. Opens the selection. */
err slices_worth(struct exec *x, const struct plan_node *node, unsigned *n) __attribute__((warn_unused_result));

/* Opens the tree n times and calls fn once with each operator, on the caller's thread and on helpers that are idle;
 * returns when all calls have. What they allocate in their op's exec lives until x is closed. The error of the first
 * slice that failed. */
err slices_run(struct exec *x, const struct plan_node *node, unsigned n,
               err (*fn)(void *arg, unsigned i, struct op *op), void *arg) __attribute__((warn_unused_result));

#endif
