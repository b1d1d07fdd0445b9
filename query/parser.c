/*
 * parser.c: the entries of the parser, and what its parts share: tokens, errors, nodes, limits.
 *
 * A hand-written parser of one token's look-ahead that accepts what Prometheus's LALR grammar accepts,
 * also where that grammar's conflicts decide. The text is parsed whole, then checked (check.c). Memory:
 * nodes in the caller's arena; compiled regexes are listed until success hands them to the tree, so
 * that a failure frees them. Recursion is bounded by PROMQL_DEPTH_MAX. One parser, one thread.
 */
#include "query/parser.h"

#include <stdarg.h>
#include <stdio.h>

#include "query/check.h"
#include "query/literal.h"
#include "query/parser_internal.h"
#include "storage/base/assert.h"

/* ---- errors ------------------------------------------------------------------------------------- */

static err error_at(str text, uint32_t at, str message)
{
    unsigned line = 1, column = 1;
    for (uint32_t i = 0; i < at && i < text.n; i++) {
        column++;
        if (text.p[i] == '\n') line++, column = 1;
    }
    return err_new(ERR_INVALID, "%u:%u: parse error: %.*s", line, column, STR_ARG(message));
}

err parser_error(const struct parser *p, uint32_t at, const char *format, ...)
{
    char message[1024]; /* what is quoted in a message is cut by parser_quote */
    va_list args;
    va_start(args, format);
    vsnprintf(message, sizeof message, format, args);
    va_end(args);
    return error_at(p->text, at, str_of(message));
}

str parser_quote(const struct parser *p, str v)
{
    struct buf b = {0};
    literal_print_string(v.n > 200 ? (str){v.p, 200} : v, &b);
    str quoted = arena_str(p->arena, buf_as_str(&b));
    buf_deinit(&b);
    return quoted;
}

err parser_unexpected(const struct parser *p, const char *context, const char *expected)
{
    struct buf b = {0};
    token_describe(&p->token, p->text, &b);
    str token = arena_str(p->arena, buf_as_str(&b));
    buf_deinit(&b);
    if (token.n > 200) token.n = 200;
    return parser_error(p, p->token.start, "unexpected %.*s%s%s%s%s", STR_ARG(token), context ? " in " : "",
                        context ? context : "", expected ? ", expected " : "", expected ? expected : "");
}

static err lexer_error(const struct parser *p)
{
    const struct lexer *l = &p->lexer;
    if (l->error_text.n == 0) return parser_error(p, l->error_at, "%s", l->error);
    return parser_error(p, l->error_at, "%s: %.*s", l->error, STR_ARG(parser_quote(p, l->error_text)));
}

/* ---- tokens ------------------------------------------------------------------------------------- */

err parser_advance(struct parser *p)
{
    p->last_end = p->token.end;
    if (lexer_next(&p->lexer, &p->token)) return NULL;
    return lexer_error(p);
}

err parser_expect(struct parser *p, enum token_kind kind, const char *context, const char *expected)
{
    if (p->token.kind != kind) return parser_unexpected(p, context, expected);
    return parser_advance(p);
}

/* ---- nodes -------------------------------------------------------------------------------------- */

err parser_enter(struct parser *p)
{
    if (p->depth >= PROMQL_DEPTH_MAX)
        return parser_error(p, p->token.start, "query is nested too deeply, more than %d levels", PROMQL_DEPTH_MAX);
    p->depth++;
    return NULL;
}

struct expr *parser_node(struct parser *p, enum expr_kind kind, enum value_type type, uint32_t start)
{
    struct expr *e = arena_zalloc(p->arena, sizeof *e);
    e->kind = kind;
    e->type = type;
    e->start = start;
    e->end = p->last_end;
    e->height = 1;
    return e;
}

err parser_set_height(const struct parser *p, struct expr *e, uint32_t tallest_child)
{
    e->height = tallest_child + 1;
    if (e->height <= PROMQL_HEIGHT_MAX) return NULL;
    return parser_error(p, e->start, "query is too long, more than %d operators in a row", PROMQL_HEIGHT_MAX);
}

/* ---- entries ------------------------------------------------------------------------------------ */

static err parser_init(struct parser *p, str text, bool experimental, struct arena *a)
{
    *p = (struct parser){.text = text, .experimental = experimental, .arena = a};
    if (text.n > PROMQL_TEXT_MAX)
        return err_new(ERR_INVALID, "query of %zu bytes is too long, the limit is %u", text.n, PROMQL_TEXT_MAX);
    lexer_init(&p->lexer, text);
    return parser_advance(p);
}

static void free_regexes(struct parser *p)
{
    for (struct parser_regex *r = p->regexes; r; r = r->next)
        regex_destroy(r->re);
}

static err parse_whole(struct parser *p, struct expr **out)
{
    if (p->token.kind == TOKEN_EOF) return parser_error(p, 0, "no expression found in input");
    TRY(parse_expression(p, 0, out));
    if (p->token.kind != TOKEN_EOF) return parser_unexpected(p, NULL, NULL);
    check(p->depth == 0);
    return check_expression(p, *out);
}

err promql_parse(str text, bool experimental, struct arena *a, struct expr **out)
{
    struct parser p;
    *out = NULL;
    err e = parser_init(&p, text, experimental, a);
    if (!e) e = parse_whole(&p, out);
    if (!e) return NULL;
    free_regexes(&p);
    *out = NULL;
    return e;
}

static err parse_only_selector(struct parser *p, struct expr **out)
{
    struct token name = {.kind = TOKEN_EOF};
    if (token_is_metric_name(&p->token)) {
        name = p->token;
        TRY(parser_advance(p));
    } else if (p->token.kind != TOKEN_LEFT_BRACE) {
        return parser_unexpected(p, NULL, NULL);
    }
    TRY(parse_selector(p, name, out));
    if (p->token.kind != TOKEN_EOF) return parser_unexpected(p, NULL, NULL);
    return NULL;
}

static err parse_matchers(str text, bool filter, struct arena *a, struct matcher **m, uint32_t *n)
{
    struct parser p;
    struct expr *selector = NULL;
    *m = NULL;
    *n = 0;
    err e = parser_init(&p, text, false, a);
    if (!e) e = parse_only_selector(&p, &selector);
    if (!e && !filter) e = check_expression(&p, selector);
    if (e) {
        free_regexes(&p);
        return e;
    }
    check(selector);
    *m = selector->selector.matchers;
    *n = selector->selector.n_matchers;
    return NULL;
}

err promql_parse_selector(str text, struct arena *a, struct matcher **m, uint32_t *n)
{
    return parse_matchers(text, false, a, m, n);
}

err promql_parse_filter(str text, struct arena *a, struct matcher **m, uint32_t *n)
{
    return parse_matchers(text, true, a, m, n);
}
