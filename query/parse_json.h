/*
 * parse_json.h: the syntax tree as the JSON of /api/v1/parse_query.
 */
#ifndef VARVE_QUERY_PARSE_JSON_H
#define VARVE_QUERY_PARSE_JSON_H

#include "query/ast.h"

/* Appends the tree as one JSON value. Keys of objects are sorted. */
void parse_json_print(const struct expr *e, struct buf *out);

#endif
