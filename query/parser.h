/*
 * parser.h: text → checked syntax tree.
 *
 * promql_parse runs lexer, parser and checks (types, argument counts, matchers, groupings) and gives a
 * tree that the planner may trust. Errors are ERR_INVALID; the message begins with line:column and
 * says how to mend it ("1:5: parse error: ..."). Nesting is bounded (PROMQL_DEPTH_MAX), text too
 * (PROMQL_TEXT_MAX): hostile input costs linear time and memory. One arena, one thread.
 */
#ifndef VARVE_QUERY_PARSER_H
#define VARVE_QUERY_PARSER_H

#include "query/ast.h"

#define PROMQL_DEPTH_MAX 250
#define PROMQL_HEIGHT_MAX 12000 /* of the tree: what a chain of left-associative operators may reach */
#define PROMQL_REGEXES_MAX 2000 /* compiled in one query: each costs some 0.1 ms and kilobytes outside the arena */
#define PROMQL_TEXT_MAX (1u << 20)

/* experimental: allow functions and operators that need --query.experimental. */
err promql_parse(str text, bool experimental, struct arena *a, struct expr **out) __attribute__((warn_unused_result));
/* A single selector without range, offset or @, as match[] takes it. At least one matcher must not match the empty
 * string. */
err promql_parse_selector(str text, struct arena *a, struct matcher **m, uint32_t *n)
    __attribute__((warn_unused_result));
/* The same without that last condition: a filter that is added to others. */
err promql_parse_filter(str text, struct arena *a, struct matcher **m, uint32_t *n) __attribute__((warn_unused_result));
/* A duration of any form the API takes: "5m", "1h30m", "15", "0.5" (seconds). */
err promql_parse_duration(str text, int64_t *ms) __attribute__((warn_unused_result));
/* Canonical text of an expression on one line (Prometheus's format of expressions in errors and explain). */
void promql_print(const struct expr *e, struct buf *out);
/* Multi-line form of /api/v1/format_query. */
void promql_pretty(const struct expr *e, struct buf *out);

#endif
