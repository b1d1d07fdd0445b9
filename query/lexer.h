/*
 * lexer.h: PromQL text → tokens.
 *
 * A token is a kind and the range of its bytes; its text stays in the query, which the caller keeps
 * alive and unchanged. One lexer, one thread; it allocates nothing.
 */
#ifndef VARVE_QUERY_LEXER_H
#define VARVE_QUERY_LEXER_H

#include "query/ast.h"

enum token_kind {
    TOKEN_EOF,
    TOKEN_IDENTIFIER,
    TOKEN_METRIC, /* an identifier with a colon in it */
    TOKEN_NUMBER,
    TOKEN_DURATION,
    TOKEN_STRING,     /* quotes included; escapes are validated */
    TOKEN_OPERATOR,   /* op is a binary_op; inside braces != is one too */
    TOKEN_AGGREGATOR, /* op is an aggregate_op */
    TOKEN_LEFT_PAREN,
    TOKEN_RIGHT_PAREN,
    TOKEN_LEFT_BRACE,
    TOKEN_RIGHT_BRACE,
    TOKEN_LEFT_BRACKET,
    TOKEN_RIGHT_BRACKET,
    TOKEN_COMMA,
    TOKEN_COLON,
    TOKEN_EQUAL,
    TOKEN_EQUAL_REGEX,
    TOKEN_NOT_REGEX,
    TOKEN_AT,
    /* keywords */
    TOKEN_ANCHORED,
    TOKEN_BOOL,
    TOKEN_BY,
    TOKEN_FILL, /* the three fill words are keywords only before a parenthesis */
    TOKEN_FILL_LEFT,
    TOKEN_FILL_RIGHT,
    TOKEN_GROUP_LEFT,
    TOKEN_GROUP_RIGHT,
    TOKEN_IGNORING,
    TOKEN_OFFSET,
    TOKEN_ON,
    TOKEN_SMOOTHED,
    TOKEN_WITHOUT,
    /* functions that also stand in durations or after @ */
    TOKEN_END,
    TOKEN_MAX_OF,
    TOKEN_MIN_OF,
    TOKEN_RANGE,
    TOKEN_START,
    TOKEN_STEP,
};

struct token {
    enum token_kind kind;
    int op;
    uint32_t start, end; /* bytes in the query */
};

struct lexer {
    str text;
    uint32_t at;
    int parens;            /* open ( */
    bool in_braces;        /* between { and }: words are names, never keywords */
    bool in_brackets;      /* between [ and ] */
    bool at_duration;      /* in brackets, no number came yet: only duration arithmetic is taken */
    bool seen_bracket_num; /* a number came in some bracket: only then a colon may follow at_duration */
    bool seen_colon;       /* in these brackets */
    /* the failure: set when lexer_next gives false */
    uint32_t error_at;
    const char *error; /* a printf-free reason */
    str error_text;    /* shown quoted behind the reason; n = 0 if none */
};

void lexer_init(struct lexer *l, str text);
/* The next token, comments and space skipped; TOKEN_EOF at the end, also when called again. False if the text is
 * malformed: l->error says why. */
bool lexer_next(struct lexer *l, struct token *t) __attribute__((warn_unused_result));

/* "identifier \"foo\"", "end of input", "<op:+>": a token in an error message. */
void token_describe(const struct token *t, str text, struct buf *out);

static inline str token_text(const struct token *t, str text)
{
    return (str){text.p + t->start, t->end - t->start};
}
/* May name a metric where an expression begins; many keywords may. */
bool token_is_metric_name(const struct token *t);
/* May name a label in by (...), on (...) and the like. */
bool token_is_label_name(const struct token *t);
/* May be called: word followed by a parenthesis. */
bool token_is_function_name(const struct token *t);

#endif
