/*
 * matcher.h: one condition on one label: name op "value". An absent label counts as an empty value.
 */
#ifndef VARVE_STORAGE_MATCHER_H
#define VARVE_STORAGE_MATCHER_H

#include "storage/labels.h"
#include "storage/regex.h"

enum match_op { MATCH_EQ, MATCH_NE, MATCH_RE, MATCH_NRE };

struct matcher {
    enum match_op op;
    str name, value;  /* borrowed from the caller's arena */
    struct regex *re; /* owned; NULL for MATCH_EQ and MATCH_NE */
};

/* Fills m; compiles the pattern for MATCH_RE and MATCH_NRE. */
err matcher_init(struct matcher *m, enum match_op op, str name, str value) __attribute__((warn_unused_result));
void matcher_deinit(struct matcher *m);

/* ERR_LIMIT if the regex ran into its match limit; *matched is set otherwise. */
err matcher_match(const struct matcher *m, str value, bool *matched) __attribute__((warn_unused_result));
bool matcher_matches_empty(const struct matcher *m);
/* All matchers against a label set. */
err matchers_match(const struct matcher *m, size_t n, const struct labels *ls, bool *matched)
    __attribute__((warn_unused_result));
const char *match_op_text(enum match_op op); /* "=", "!=", "=~", "!~" */
/* Appended as bytes that say the same only of the same conditions: per matcher one byte match_op, then name and value,
 * each a varint length and the bytes. */
void matchers_encode(const struct matcher *m, size_t n, struct buf *out);
void matcher_print(const struct matcher *m, struct buf *out);

#endif
