/*
 * parser_modifier.c: what may follow an operand: [range], [range:step], offset, @, anchored, smoothed.
 *
 * They bind tighter than all operators and may come in any order; each but the brackets changes the
 * node before it. See parser.c for memory and errors.
 */
#include <math.h>

#include "query/parser_internal.h"

/* The modifiers that `offset` and `@` behind e set, or NULL if e is no selector and no subquery. */
static struct modifiers *modifiers_of(struct expr *e)
{
    switch (e->kind) {
    case EXPR_SELECTOR:
        return &e->selector.mod;
    case EXPR_RANGE:
        return &e->range.selector->selector.mod;
    case EXPR_SUBQUERY:
        return &e->subquery.mod;
    default:
        return NULL;
    }
}

/* ---- brackets ----------------------------------------------------------------------------------- */

static err make_range(struct parser *p, uint32_t bracket, struct duration range, struct expr **operand)
{
    struct expr *selector = *operand;
    if (selector->kind != EXPR_SELECTOR) return parser_error(p, bracket, "ranges only allowed for vector selectors");
    const struct modifiers *mod = &selector->selector.mod;
    if (mod->has_offset && !mod->offset.expr)
        return parser_error(p, bracket, "no offset modifiers allowed before range");
    if (mod->at == AT_TIME) return parser_error(p, bracket, "no @ modifiers allowed before range");
    struct expr *e = parser_node(p, EXPR_RANGE, TYPE_MATRIX, selector->start);
    e->range.selector = selector;
    e->range.range = range;
    *operand = e;
    return parser_set_height(p, e, selector->height);
}

static err parse_subquery(struct parser *p, struct duration range, struct expr **operand)
{
    struct duration step = {0};
    TRY(parser_advance(p));
    bool has_step = p->token.kind != TOKEN_RIGHT_BRACKET;
    if (has_step) TRY(parse_positive_duration(p, "subquery selector", &step));
    TRY(parser_expect(p, TOKEN_RIGHT_BRACKET, "subquery selector", "\"]\""));
    struct expr *e = parser_node(p, EXPR_SUBQUERY, TYPE_MATRIX, (*operand)->start);
    e->subquery.inner = *operand;
    e->subquery.range = range;
    e->subquery.step = step;
    e->subquery.has_step = has_step;
    TRY(parser_set_height(p, e, (*operand)->height));
    *operand = e;
    return NULL;
}

static err parse_brackets(struct parser *p, struct expr **operand)
{
    uint32_t bracket = p->token.start;
    struct duration range;
    TRY(parser_advance(p));
    TRY(parse_positive_duration(p, "subquery or range selector", &range));
    if (p->token.kind == TOKEN_COLON) return parse_subquery(p, range, operand);
    TRY(parser_expect(p, TOKEN_RIGHT_BRACKET, "subquery or range", "\":\" or \"]\""));
    return make_range(p, bracket, range, operand);
}

/* ---- offset ------------------------------------------------------------------------------------- */

static err parse_offset(struct parser *p, struct expr *operand)
{
    struct modifiers *mod = modifiers_of(operand);
    struct duration offset;
    bool given;
    TRY(parser_advance(p));
    TRY(parse_offset_duration(p, &offset, &given));
    if (!mod)
        return parser_error(p, operand->start,
                            "offset modifier must be preceded by an instant vector selector or range vector selector "
                            "or a subquery");
    if (mod->has_offset) return parser_error(p, operand->start, "offset may not be set multiple times");
    mod->offset = offset;
    mod->has_offset = given;
    operand->end = p->last_end;
    return NULL;
}

/* ---- @ ------------------------------------------------------------------------------------------ */

/* Seconds to ms, rounded; what does not fit an int64 becomes its minimum, as on Prometheus's machines. */
static int64_t at_ms(double seconds)
{
    double ms = round(seconds * 1000);
    return fabs(ms) < 9223372036854775808.0 ? (int64_t)ms : INT64_MIN;
}

static err parse_at_time(struct parser *p, struct modifiers *mod)
{
    bool negative = false;
    uint32_t start = p->token.start;
    if (p->token.kind == TOKEN_OPERATOR && (p->token.op == OP_ADD || p->token.op == OP_SUB)) {
        negative = p->token.op == OP_SUB;
        TRY(parser_advance(p));
    }
    if (p->token.kind != TOKEN_NUMBER && p->token.kind != TOKEN_DURATION) return parser_unexpected(p, "@", "timestamp");
    struct expr *number;
    TRY(parse_number(p, &number));
    double seconds = negative ? -number->number : number->number;
    if (!(fabs(seconds) < 9223372036854775808.0)) /* also NaN */
        return parser_error(p, start, "timestamp out of bounds for @ modifier: %f", seconds);
    mod->at = AT_TIME;
    mod->at_ms = at_ms(seconds);
    return NULL;
}

static err parse_at_preprocessor(struct parser *p, struct modifiers *mod)
{
    mod->at = p->token.kind == TOKEN_START ? AT_START : AT_END;
    TRY(parser_advance(p));
    TRY(parser_expect(p, TOKEN_LEFT_PAREN, "@", "timestamp"));
    return parser_expect(p, TOKEN_RIGHT_PAREN, "@", "timestamp");
}

static err parse_at(struct parser *p, struct expr *operand)
{
    struct modifiers *mod = modifiers_of(operand), parsed = {0};
    TRY(parser_advance(p));
    if (p->token.kind == TOKEN_START || p->token.kind == TOKEN_END)
        TRY(parse_at_preprocessor(p, &parsed));
    else
        TRY(parse_at_time(p, &parsed));
    if (!mod)
        return parser_error(p, operand->start,
                            "@ modifier must be preceded by an instant vector selector or range vector selector or a "
                            "subquery");
    if (mod->at != AT_NONE) return parser_error(p, operand->start, "@ <timestamp> may not be set multiple times");
    mod->at = parsed.at;
    mod->at_ms = parsed.at_ms;
    operand->end = p->last_end;
    return NULL;
}

/* ---- anchored and smoothed ---------------------------------------------------------------------- */

static err parse_extended(struct parser *p, struct expr *operand)
{
    bool anchored = p->token.kind == TOKEN_ANCHORED;
    const char *name = anchored ? "anchored" : "smoothed";
    struct modifiers *mod = modifiers_of(operand);
    TRY(parser_advance(p));
    if (!p->experimental) return parser_error(p, operand->start, "%s modifier is experimental and not enabled", name);
    if (operand->kind == EXPR_SUBQUERY)
        return parser_error(p, operand->start, "%s modifier is not supported for subqueries", name);
    if (!mod)
        return parser_error(p, operand->start, "%s modifier can only follow a selector, such as x[5m] %s", name, name);
    *(anchored ? &mod->anchored : &mod->smoothed) = true;
    if (mod->anchored && mod->smoothed)
        return parser_error(p, operand->start, "anchored and smoothed modifiers cannot be used together");
    return NULL;
}

err parse_postfix(struct parser *p, struct expr **operand)
{
    unsigned brackets = 0;
    for (;;) {
        switch (p->token.kind) {
        case TOKEN_LEFT_BRACKET:
            brackets++; /* each is a level of nesting, though no recursion */
            if (p->depth + brackets > PROMQL_DEPTH_MAX)
                return parser_error(p, p->token.start, "query is nested too deeply, more than %d levels",
                                    PROMQL_DEPTH_MAX);
            TRY(parse_brackets(p, operand));
            break;
        case TOKEN_OFFSET:
            TRY(parse_offset(p, *operand));
            break;
        case TOKEN_AT:
            TRY(parse_at(p, *operand));
            break;
        case TOKEN_ANCHORED:
        case TOKEN_SMOOTHED:
            TRY(parse_extended(p, *operand));
            break;
        default:
            return NULL;
        }
    }
}
