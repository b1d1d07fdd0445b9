/*
 * parser_expr.c: binary and unary expressions, operands, literals.
 *
 * Operators by climbing precedence: a chain of left-associative operators is a loop, only ^ and tighter
 * operators on the right recurse. A sign binds like *, so -2^2 is -(2^2) and -2*3 is (-2)*3, and it is
 * folded into a number that follows it directly. See parser.c for memory and errors.
 */
#include "query/literal.h"
#include "query/parser_internal.h"

#define POW_PRECEDENCE 6

/* ---- how vectors match ------------------------------------------------------------------------ */

static err parse_fill_value(struct parser *p, double *v)
{
    TRY(parser_advance(p)); /* the fill word, which the lexer saw before a parenthesis */
    TRY(parser_expect(p, TOKEN_LEFT_PAREN, "fill modifier", "\"(\""));
    bool negative = false;
    if (p->token.kind == TOKEN_OPERATOR && (p->token.op == OP_ADD || p->token.op == OP_SUB)) {
        negative = p->token.op == OP_SUB;
        TRY(parser_advance(p));
    }
    if (p->token.kind != TOKEN_NUMBER && p->token.kind != TOKEN_DURATION)
        return parser_unexpected(p, "fill modifier", "number");
    struct expr *number;
    TRY(parse_number(p, &number));
    *v = negative ? -number->number : number->number;
    return parser_expect(p, TOKEN_RIGHT_PAREN, "fill modifier", "\")\"");
}

static err parse_fill_left(struct parser *p, struct matching *m)
{
    m->fill_left = true;
    return parse_fill_value(p, &m->fill_left_value);
}

static err parse_fill_right(struct parser *p, struct matching *m)
{
    m->fill_right = true;
    return parse_fill_value(p, &m->fill_right_value);
}

/* fill (x), or fill_left and fill_right once each in any order. */
static err parse_fill(struct parser *p, struct matching *m)
{
    switch (p->token.kind) {
    case TOKEN_FILL:
        TRY(parse_fill_left(p, m));
        m->fill_right = m->fill_both = true;
        m->fill_right_value = m->fill_left_value;
        return NULL;
    case TOKEN_FILL_LEFT:
        TRY(parse_fill_left(p, m));
        return p->token.kind == TOKEN_FILL_RIGHT ? parse_fill_right(p, m) : NULL;
    case TOKEN_FILL_RIGHT:
        TRY(parse_fill_right(p, m));
        return p->token.kind == TOKEN_FILL_LEFT ? parse_fill_left(p, m) : NULL;
    default:
        return NULL;
    }
}

static err parse_group_modifier(struct parser *p, struct matching *m)
{
    if (p->token.kind != TOKEN_GROUP_LEFT && p->token.kind != TOKEN_GROUP_RIGHT) return NULL;
    m->card = p->token.kind == TOKEN_GROUP_LEFT ? CARD_MANY_TO_ONE : CARD_ONE_TO_MANY;
    TRY(parser_advance(p));
    return p->token.kind == TOKEN_LEFT_PAREN ? parse_grouping(p, &m->include, &m->n_include) : NULL;
}

/* [bool] [on|ignoring (...) [group_left|group_right [(...)]]] [fill...] */
static err parse_matching(struct parser *p, struct expr *e)
{
    struct matching *m = &e->binary.matching;
    if (p->token.kind == TOKEN_BOOL) {
        e->binary.return_bool = true;
        TRY(parser_advance(p));
    }
    if (p->token.kind == TOKEN_ON || p->token.kind == TOKEN_IGNORING) {
        m->given = true;
        m->on = p->token.kind == TOKEN_ON;
        TRY(parser_advance(p));
        TRY(parse_grouping(p, &m->labels, &m->n_labels));
        TRY(parse_group_modifier(p, m));
    }
    uint32_t start = p->token.start;
    TRY(parse_fill(p, m));
    if ((m->fill_left || m->fill_right) && !p->experimental)
        return parser_error(p, start, "fill modifiers are experimental and not enabled");
    return NULL;
}

/* ---- binary and unary --------------------------------------------------------------------------- */

/* Operator and right side of *lhs, which becomes the left side of a new node. */
static err parse_right_side(struct parser *p, struct expr **lhs)
{
    struct expr *left = *lhs, *e = parser_node(p, EXPR_BINARY, TYPE_VECTOR, left->start);
    enum binary_op op = (enum binary_op)p->token.op;
    int precedence = binary_op_precedence(op);
    e->binary.op = op;
    e->binary.lhs = left;
    TRY(parser_advance(p));
    TRY(parse_matching(p, e));
    TRY(parse_expression(p, op == OP_POW ? precedence : precedence + 1, &e->binary.rhs));
    struct expr *right = e->binary.rhs;
    e->end = right->end;
    if (left->type == TYPE_SCALAR && right->type == TYPE_SCALAR) e->type = TYPE_SCALAR;
    *lhs = e;
    return parser_set_height(p, e, left->height > right->height ? left->height : right->height);
}

static err parse_unary(struct parser *p, struct expr **out);

err parse_expression(struct parser *p, int least_precedence, struct expr **out)
{
    TRY(parser_enter(p));
    TRY(parse_unary(p, out));
    while (p->token.kind == TOKEN_OPERATOR && binary_op_precedence((enum binary_op)p->token.op) >= least_precedence)
        TRY(parse_right_side(p, out));
    p->depth--;
    return NULL;
}

/* The sign in front of `inner`. */
static err apply_sign(struct parser *p, bool negate, uint32_t start, struct expr *inner, struct expr **out)
{
    if (inner->kind == EXPR_NUMBER) {
        if (negate) inner->number = -inner->number;
        inner->start = start;
        *out = inner;
        return NULL;
    }
    struct expr *e = parser_node(p, EXPR_UNARY, inner->type, start);
    e->end = inner->end;
    e->unary.negate = negate;
    e->unary.inner = inner;
    *out = e;
    return parser_set_height(p, e, inner->height);
}

/* ---- operands ----------------------------------------------------------------------------------- */

err parse_number(struct parser *p, struct expr **out)
{
    struct token t = p->token;
    str text = token_text(&t, p->text);
    TRY(parser_advance(p));
    struct expr *e = parser_node(p, EXPR_NUMBER, TYPE_SCALAR, t.start);
    *out = e;
    if (t.kind == TOKEN_NUMBER) {
        if (literal_number(text, &e->number)) return NULL;
        return parser_error(p, t.start, "error parsing number: %.*s is not a number", STR_ARG(parser_quote(p, text)));
    }
    int64_t ns;
    const char *reason;
    if (!literal_duration(text, &ns, &reason))
        return parser_error(p, t.start, "%s: %.*s", reason, STR_ARG(parser_quote(p, text)));
    e->number = literal_ns_to_seconds(ns);
    e->is_duration = true;
    return NULL;
}

static err parse_string(struct parser *p, struct expr **out)
{
    struct token t = p->token;
    TRY(parser_advance(p));
    *out = parser_node(p, EXPR_STRING, TYPE_STRING, t.start);
    (*out)->string = literal_unquote(token_text(&t, p->text), p->arena);
    return NULL;
}

static err parse_paren(struct parser *p, struct expr **out)
{
    uint32_t start = p->token.start;
    struct expr *inner;
    TRY(parser_advance(p));
    TRY(parse_expression(p, 0, &inner));
    TRY(parser_expect(p, TOKEN_RIGHT_PAREN, NULL, NULL));
    struct expr *e = parser_node(p, EXPR_PAREN, inner->type, start);
    e->paren = inner;
    *out = e;
    return parser_set_height(p, e, inner->height);
}

/* A word: a call, an aggregation or a metric. */
static err parse_word(struct parser *p, struct expr **out)
{
    struct token name = p->token;
    TRY(parser_advance(p));
    enum token_kind next = p->token.kind;
    if (name.kind == TOKEN_AGGREGATOR && (next == TOKEN_LEFT_PAREN || next == TOKEN_BY || next == TOKEN_WITHOUT))
        return parse_aggregate(p, name, out);
    if (next == TOKEN_LEFT_PAREN && token_is_function_name(&name)) return parse_call(p, name, out);
    return parse_selector(p, name, out);
}

static err parse_operand(struct parser *p, struct expr **out)
{
    switch (p->token.kind) {
    case TOKEN_NUMBER:
    case TOKEN_DURATION:
        return parse_number(p, out);
    case TOKEN_STRING:
        return parse_string(p, out);
    case TOKEN_LEFT_PAREN:
        return parse_paren(p, out);
    case TOKEN_LEFT_BRACE:
        return parse_selector(p, (struct token){.kind = TOKEN_EOF}, out);
    default:
        return token_is_metric_name(&p->token) ? parse_word(p, out) : parser_unexpected(p, NULL, NULL);
    }
}

static err parse_unary(struct parser *p, struct expr **out)
{
    if (p->token.kind == TOKEN_OPERATOR && (p->token.op == OP_ADD || p->token.op == OP_SUB)) {
        bool negate = p->token.op == OP_SUB;
        uint32_t start = p->token.start;
        struct expr *inner;
        TRY(parser_advance(p));
        TRY(parse_expression(p, POW_PRECEDENCE, &inner));
        return apply_sign(p, negate, start, inner, out);
    }
    TRY(parse_operand(p, out));
    return parse_postfix(p, out);
}
