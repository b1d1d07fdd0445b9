/*
 * parser_selector.c: series selectors, and lists of label names. See parser.c for memory and errors.
 */
#include "query/literal.h"
#include "query/parser_internal.h"

#define LABELS_FIRST 4 /* room before an array must grow */

/* ---- matchers ----------------------------------------------------------------------------------- */

struct matcher_list {
    struct matcher *v;
    uint32_t n, capacity;
};

static struct matcher *list_add(struct parser *p, struct matcher_list *list)
{
    if (list->n == list->capacity) {
        list->capacity = list->capacity ? 2 * list->capacity : LABELS_FIRST;
        struct matcher *bigger = arena_alloc(p->arena, list->capacity * sizeof *bigger);
        if (list->n) memcpy(bigger, list->v, list->n * sizeof *bigger);
        list->v = bigger;
    }
    return &list->v[list->n++];
}

/* The op of a token between braces, or false. */
static bool match_op_of(const struct token *t, enum match_op *op)
{
    switch (t->kind) {
    case TOKEN_EQUAL:
        *op = MATCH_EQ;
        return true;
    case TOKEN_EQUAL_REGEX:
        *op = MATCH_RE;
        return true;
    case TOKEN_NOT_REGEX:
        *op = MATCH_NRE;
        return true;
    case TOKEN_OPERATOR:
        *op = MATCH_NE; /* the only operator the lexer gives in braces */
        return true;
    default:
        return false;
    }
}

static err add_matcher(struct parser *p, struct matcher_list *list, uint32_t at, enum match_op op, str name, str value)
{
    struct matcher m;
    err e = matcher_init(&m, op, name, value);
    if (e) {
        err located = parser_error(p, at, "%s", err_message(e));
        err_free(e);
        return located;
    }
    *list_add(p, list) = m;
    if (!m.re) return NULL;
    struct parser_regex *link = arena_alloc(p->arena, sizeof *link);
    *link = (struct parser_regex){.next = p->regexes, .re = m.re};
    p->regexes = link;
    if (++p->n_regexes <= PROMQL_REGEXES_MAX) return NULL;
    return parser_error(p, at, "query has too many regular expressions, more than %d", PROMQL_REGEXES_MAX);
}

/* name op "value"; or a quoted metric name alone. */
static err parse_matcher(struct parser *p, struct matcher_list *list)
{
    struct token first = p->token;
    if (first.kind != TOKEN_STRING && first.kind != TOKEN_IDENTIFIER)
        return parser_unexpected(p, "label matching", "identifier or \"}\"");
    str name = token_text(&first, p->text);
    if (first.kind == TOKEN_STRING) name = literal_unquote(name, p->arena);
    TRY(parser_advance(p));
    enum match_op op;
    if (!match_op_of(&p->token, &op)) {
        if (first.kind == TOKEN_STRING) return add_matcher(p, list, first.start, MATCH_EQ, LABEL_NAME, name);
        return parser_unexpected(p, "label matching", "label matching operator");
    }
    TRY(parser_advance(p));
    if (p->token.kind != TOKEN_STRING) return parser_unexpected(p, "label matching", "string");
    str value = literal_unquote(token_text(&p->token, p->text), p->arena);
    TRY(parser_advance(p));
    return add_matcher(p, list, first.start, op, name, value);
}

static err parse_braces(struct parser *p, struct matcher_list *list)
{
    TRY(parser_advance(p));
    while (p->token.kind != TOKEN_RIGHT_BRACE) {
        TRY(parse_matcher(p, list));
        if (p->token.kind == TOKEN_COMMA)
            TRY(parser_advance(p));
        else if (p->token.kind != TOKEN_RIGHT_BRACE)
            return parser_unexpected(p, "label matching", "\",\" or \"}\"");
    }
    return parser_advance(p);
}

err parse_selector(struct parser *p, struct token name, struct expr **out)
{
    bool named = name.kind != TOKEN_EOF;
    uint32_t start = named ? name.start : p->token.start;
    struct matcher_list list = {0};
    if (p->token.kind == TOKEN_LEFT_BRACE) TRY(parse_braces(p, &list));
    struct expr *e = parser_node(p, EXPR_SELECTOR, TYPE_VECTOR, start);
    if (named) {
        e->selector.name = token_text(&name, p->text);
        TRY(add_matcher(p, &list, start, MATCH_EQ, LABEL_NAME, e->selector.name));
    }
    e->selector.matchers = list.v;
    e->selector.n_matchers = list.n;
    *out = e;
    return NULL;
}

/* ---- label names -------------------------------------------------------------------------------- */

static err parse_label(struct parser *p, str *name)
{
    struct token t = p->token;
    if (t.kind != TOKEN_STRING && !token_is_label_name(&t)) return parser_unexpected(p, "grouping opts", "label");
    *name = token_text(&t, p->text);
    if (t.kind == TOKEN_STRING) *name = literal_unquote(*name, p->arena);
    if (name->n == 0 || !utf8_valid(*name))
        return parser_error(p, t.start, "invalid label name for grouping: %.*s", STR_ARG(parser_quote(p, *name)));
    return parser_advance(p);
}

err parse_grouping(struct parser *p, str **labels, uint32_t *n)
{
    uint32_t capacity = 0;
    *n = 0;
    TRY(parser_expect(p, TOKEN_LEFT_PAREN, "grouping opts", "\"(\""));
    while (p->token.kind != TOKEN_RIGHT_PAREN) {
        if (*n == capacity) {
            capacity = capacity ? 2 * capacity : LABELS_FIRST;
            str *bigger = arena_alloc(p->arena, capacity * sizeof *bigger);
            if (*n) memcpy(bigger, *labels, *n * sizeof *bigger);
            *labels = bigger;
        }
        TRY(parse_label(p, &(*labels)[(*n)++]));
        if (p->token.kind == TOKEN_COMMA)
            TRY(parser_advance(p));
        else if (p->token.kind != TOKEN_RIGHT_PAREN)
            return parser_unexpected(p, "grouping opts", "\",\" or \")\"");
    }
    return parser_advance(p);
}
