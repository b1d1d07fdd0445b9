/*
 * check.h: is a syntactically right tree meaningful? Types, argument counts, matchers, vector matching.
 */
#ifndef VARVE_QUERY_CHECK_H
#define VARVE_QUERY_CHECK_H

#include "query/parser_internal.h"

/* The first fault in the order Prometheus reports them: before the children of a node, then theirs, then its own.
 * Completes the tree: set operators become many-to-many. */
err check_expression(const struct parser *p, struct expr *e) __attribute__((warn_unused_result));

#endif
