/*
 * parser_duration.c: durations in brackets and behind `offset`: numbers, step(), range(), min_of(),
 * max_of(), arithmetic.
 *
 * A duration without step() and the like may be a literal in the tree (struct duration) or arithmetic
 * that the plan evaluates; signs and parentheses around a bare number are folded. In brackets the
 * whole grammar holds. Behind `offset` a bare number, call or signed value ends the duration, so that
 * `x offset 5m + 2` adds 2 to x; only what begins with "(" goes on, as Prometheus's grammar has it.
 * See parser.c for memory and errors.
 */
#include <math.h>

#include "query/literal.h"
#include "query/parser_internal.h"
#include "storage/base/assert.h"

#define SIGN_PRECEDENCE 6 /* a sign's operand is what ^ joins */
#define EXPECTED "number, duration, step(), or range()"
#define NS_PER_MS 1000000

/* context: what the duration is part of, for messages */
static err parse_arithmetic(struct parser *p, const char *context, int least_precedence, struct expr **out);

static bool is_sign(const struct token *t)
{
    return t->kind == TOKEN_OPERATOR && (t->op == OP_ADD || t->op == OP_SUB);
}

/* ---- operands ----------------------------------------------------------------------------------- */

static err check_bounds(const struct parser *p, const struct expr *number)
{
    if (fabs(number->number) <= 9223372036.854775808) return NULL; /* seconds in an int64 of nanoseconds */
    return parser_error(p, number->start, "duration out of range");
}

static err parse_bounded_number(struct parser *p, struct expr **out)
{
    TRY(parse_number(p, out));
    return check_bounds(p, *out);
}

/* step() or range() */
static err parse_step(struct parser *p, const char *context, struct expr **out)
{
    struct token name = p->token;
    TRY(parser_advance(p));
    TRY(parser_expect(p, TOKEN_LEFT_PAREN, context, EXPECTED));
    TRY(parser_expect(p, TOKEN_RIGHT_PAREN, context, EXPECTED));
    *out = parser_node(p, name.kind == TOKEN_STEP ? EXPR_STEP : EXPR_QRANGE, TYPE_SCALAR, name.start);
    return NULL;
}

/* min_of(a, b) or max_of(a, b) */
static err parse_min_max(struct parser *p, const char *context, struct expr **out)
{
    struct token name = p->token;
    struct expr **args = arena_alloc(p->arena, 2 * sizeof(struct expr *));
    TRY(parser_advance(p));
    TRY(parser_expect(p, TOKEN_LEFT_PAREN, context, EXPECTED));
    TRY(parse_arithmetic(p, context, 0, &args[0]));
    TRY(parser_expect(p, TOKEN_COMMA, context, EXPECTED));
    TRY(parse_arithmetic(p, context, 0, &args[1]));
    TRY(parser_expect(p, TOKEN_RIGHT_PAREN, context, EXPECTED));
    struct expr *e = parser_node(p, EXPR_CALL, TYPE_SCALAR, name.start);
    e->call.fn = function_find(name.kind == TOKEN_MIN_OF ? STR("min_of") : STR("max_of"));
    e->call.args = args;
    e->call.n_args = 2;
    *out = e;
    return parser_set_height(p, e, args[0]->height > args[1]->height ? args[0]->height : args[1]->height);
}

static err parse_parentheses(struct parser *p, const char *context, struct expr **out)
{
    uint32_t start = p->token.start;
    struct expr *inner;
    TRY(parser_advance(p));
    TRY(parse_arithmetic(p, context, 0, &inner));
    TRY(parser_expect(p, TOKEN_RIGHT_PAREN, context, EXPECTED));
    *out = inner;
    if (inner->kind == EXPR_NUMBER || inner->kind == EXPR_PAREN) return NULL;
    struct expr *e = parser_node(p, EXPR_PAREN, TYPE_SCALAR, start);
    e->paren = inner;
    *out = e;
    return parser_set_height(p, e, inner->height);
}

static err parse_operand(struct parser *p, const char *context, struct expr **out)
{
    switch (p->token.kind) {
    case TOKEN_NUMBER:
    case TOKEN_DURATION:
        return parse_bounded_number(p, out);
    case TOKEN_STEP:
    case TOKEN_RANGE:
        return parse_step(p, context, out);
    case TOKEN_MIN_OF:
    case TOKEN_MAX_OF:
        return parse_min_max(p, context, out);
    case TOKEN_LEFT_PAREN:
        return parse_parentheses(p, context, out);
    default:
        return parser_unexpected(p, context, EXPECTED);
    }
}

/* A plus is dropped, a minus folded into a number. */
static err apply_sign(struct parser *p, struct token sign, struct expr *inner, struct expr **out)
{
    *out = inner;
    if (sign.op == OP_ADD) return NULL;
    if (inner->kind == EXPR_NUMBER) {
        inner->number = -inner->number;
        inner->start = sign.start;
        return NULL;
    }
    struct expr *e = parser_node(p, EXPR_UNARY, TYPE_SCALAR, sign.start);
    e->end = inner->end;
    e->unary.negate = true;
    e->unary.inner = inner;
    *out = e;
    return parser_set_height(p, e, inner->height);
}

/* ---- operators ---------------------------------------------------------------------------------- */

static err parse_signed(struct parser *p, const char *context, struct expr **out)
{
    if (!is_sign(&p->token)) return parse_operand(p, context, out);
    struct token sign = p->token;
    struct expr *inner;
    TRY(parser_advance(p));
    TRY(parse_arithmetic(p, context, SIGN_PRECEDENCE, &inner));
    return apply_sign(p, sign, inner, out);
}

static err parse_right_side(struct parser *p, const char *context, struct expr **lhs)
{
    struct token t = p->token;
    struct expr *left = *lhs, *right, *e = parser_node(p, EXPR_BINARY, TYPE_SCALAR, left->start);
    int precedence = binary_op_precedence((enum binary_op)t.op);
    TRY(parser_advance(p));
    TRY(parse_arithmetic(p, context, t.op == OP_POW ? precedence : precedence + 1, &right));
    bool zero = right->kind == EXPR_NUMBER && right->number == 0;
    if (zero && t.op == OP_DIV) return parser_error(p, t.start, "division by zero");
    if (zero && t.op == OP_MOD) return parser_error(p, t.start, "modulo by zero");
    e->binary.op = (enum binary_op)t.op;
    e->binary.lhs = left;
    e->binary.rhs = right;
    e->end = right->end;
    *lhs = e;
    return parser_set_height(p, e, left->height > right->height ? left->height : right->height);
}

static bool is_arithmetic(const struct token *t)
{
    return t->kind == TOKEN_OPERATOR && t->op <= OP_POW; /* not atan2, no comparisons, no sets */
}

/* The operators behind *lhs. */
static err parse_operators(struct parser *p, const char *context, int least_precedence, struct expr **lhs)
{
    while (is_arithmetic(&p->token) && binary_op_precedence((enum binary_op)p->token.op) >= least_precedence)
        TRY(parse_right_side(p, context, lhs));
    return NULL;
}

static err parse_arithmetic(struct parser *p, const char *context, int least_precedence, struct expr **out)
{
    *out = NULL;
    TRY(parser_enter(p));
    TRY(parse_signed(p, context, out));
    check(*out);
    TRY(parse_operators(p, context, least_precedence, out));
    p->depth--;
    return NULL;
}

/* ---- entries ------------------------------------------------------------------------------------ */

static int64_t number_ms(const struct expr *number)
{
    return literal_seconds_to_ns(number->number) / NS_PER_MS;
}

err parse_positive_duration(struct parser *p, const char *context, struct duration *out)
{
    struct expr *e;
    *out = (struct duration){0};
    TRY(parse_arithmetic(p, context, 0, &e));
    if (e->kind != EXPR_NUMBER) {
        out->expr = e;
        return NULL;
    }
    if (!(e->number > 0)) return parser_error(p, e->start, "duration must be greater than 0");
    out->ms = number_ms(e);
    return NULL;
}

/* What stands behind `offset`: an operand, with a sign or not, in which no operator goes on, but for what begins with a
 * parenthesis or two signs. */
static err parse_offset_expression(struct parser *p, struct expr **out)
{
    static const char context[] = "offset";
    *out = NULL;
    if (!is_sign(&p->token)) {
        bool open = p->token.kind == TOKEN_LEFT_PAREN;
        TRY(parse_operand(p, context, out));
        check(*out);
        return open ? parse_operators(p, context, 0, out) : NULL;
    }
    struct token sign = p->token;
    struct expr *inner = NULL;
    TRY(parser_advance(p));
    bool open = is_sign(&p->token);
    if (open)
        TRY(parse_arithmetic(p, context, SIGN_PRECEDENCE, &inner));
    else
        TRY(parse_operand(p, context, &inner));
    check(inner);
    TRY(apply_sign(p, sign, inner, out));
    return open ? parse_operators(p, context, 0, out) : NULL;
}

err parse_offset_duration(struct parser *p, struct duration *out, bool *given)
{
    struct expr *e;
    *out = (struct duration){0};
    TRY(parse_offset_expression(p, &e));
    *given = true;
    if (e->kind != EXPR_NUMBER) {
        out->expr = e;
        return NULL;
    }
    if (isnan(e->number)) return parser_error(p, e->start, "duration out of range");
    *given = literal_seconds_to_ns(e->number) != 0;
    out->ms = number_ms(e);
    return NULL;
}
