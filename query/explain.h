/*
 * explain.h: the plan of a query with what each operator did, as JSON.
 */
#ifndef VARVE_QUERY_EXPLAIN_H
#define VARVE_QUERY_EXPLAIN_H

#include "query/exec.h"

/* Appends one object: the root node with its children. Call before exec_deinit. */
void explain_put(const struct exec *x, struct buf *out);

#endif
