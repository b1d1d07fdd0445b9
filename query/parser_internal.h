/*
 * parser_internal.h: what the parser's files share. Included by parser*.c and check.c
 * only.
 *
 * The parser looks one token ahead: p->token is the next one, not yet taken. Functions named parse_x
 * begin at the first token of x and end behind its last.
 */
#ifndef VARVE_QUERY_PARSER_INTERNAL_H
#define VARVE_QUERY_PARSER_INTERNAL_H

#include "query/functions.h"
#include "query/lexer.h"
#include "query/parser.h"

/* A compiled regex that must be freed if the query turns out wrong. */
struct parser_regex {
    struct parser_regex *next;
    struct regex *re;
};

struct parser {
    str text;
    bool experimental;
    struct arena *arena;
    struct lexer lexer;
    struct token token;
    uint32_t last_end; /* end of the token taken last */
    unsigned depth;    /* of nesting here */
    struct parser_regex *regexes;
    uint32_t n_regexes;
};

/* parser.c */
err parser_advance(struct parser *p) __attribute__((warn_unused_result));
/* Takes a token of the kind or fails with parser_unexpected. */
err parser_expect(struct parser *p, enum token_kind kind, const char *context, const char *expected)
    __attribute__((warn_unused_result));
/* "line:column: parse error: ..." for the byte at `at`. */
err parser_error(const struct parser *p, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 3, 4), warn_unused_result, returns_nonnull, cold));
/* "unexpected <token> in <context>, expected <expected>"; both may be NULL. */
err parser_unexpected(const struct parser *p, const char *context, const char *expected)
    __attribute__((warn_unused_result, returns_nonnull, cold));
/* Counts a level of nesting; leave with p->depth--. */
err parser_enter(struct parser *p) __attribute__((warn_unused_result));
/* A node that begins at `start` and ends behind the token taken last. */
struct expr *parser_node(struct parser *p, enum expr_kind kind, enum value_type type, uint32_t start);
/* Sets e's height from its tallest child; fails beyond PROMQL_HEIGHT_MAX. */
err parser_set_height(const struct parser *p, struct expr *e, uint32_t tallest_child)
    __attribute__((warn_unused_result));
/* v as text in quotes, for messages. */
str parser_quote(const struct parser *p, str v);

/* parser_expr.c */
err parse_expression(struct parser *p, int least_precedence, struct expr **out) __attribute__((warn_unused_result));
/* A number or duration token. */
err parse_number(struct parser *p, struct expr **out) __attribute__((warn_unused_result));

/* parser_call.c */
err parse_call(struct parser *p, struct token name, struct expr **out) __attribute__((warn_unused_result));
err parse_aggregate(struct parser *p, struct token name, struct expr **out) __attribute__((warn_unused_result));

/* parser_selector.c */
/* A selector whose name was taken already (kind TOKEN_EOF: it has none). */
err parse_selector(struct parser *p, struct token name, struct expr **out) __attribute__((warn_unused_result));
/* "(" label, ... ")" */
err parse_grouping(struct parser *p, str **labels, uint32_t *n) __attribute__((warn_unused_result));

/* parser_modifier.c: what follows an operand */
err parse_postfix(struct parser *p, struct expr **operand) __attribute__((warn_unused_result));

/* parser_duration.c */
/* In brackets; a literal must be positive. */
err parse_positive_duration(struct parser *p, const char *context, struct duration *out)
    __attribute__((warn_unused_result));
/* Behind `offset`; *given is false for a literal zero. */
err parse_offset_duration(struct parser *p, struct duration *out, bool *given) __attribute__((warn_unused_result));

#endif
