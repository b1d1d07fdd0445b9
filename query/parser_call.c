/*
 * parser_call.c: function calls and aggregations. See parser.c for memory and errors.
 */
#include "query/parser_internal.h"

#define ARGS_FIRST 4 /* room for arguments before the array must grow */

struct arguments {
    struct expr **v;
    uint32_t n, capacity, tallest;
};

static void arguments_add(struct parser *p, struct arguments *args, struct expr *e)
{
    if (args->n == args->capacity) {
        args->capacity = args->capacity ? 2 * args->capacity : ARGS_FIRST;
        struct expr **bigger = arena_alloc(p->arena, args->capacity * sizeof(struct expr *));
        if (args->n) memcpy(bigger, args->v, args->n * sizeof(struct expr *));
        args->v = bigger;
    }
    args->v[args->n++] = e;
    if (e->height > args->tallest) args->tallest = e->height;
}

static err parse_arguments(struct parser *p, struct arguments *args)
{
    *args = (struct arguments){0};
    TRY(parser_advance(p)); /* the parenthesis */
    while (p->token.kind != TOKEN_RIGHT_PAREN) {
        struct expr *e;
        TRY(parse_expression(p, 0, &e));
        arguments_add(p, args, e);
        if (p->token.kind != TOKEN_COMMA) break;
        uint32_t comma = p->token.start;
        TRY(parser_advance(p));
        if (p->token.kind == TOKEN_RIGHT_PAREN)
            return parser_error(p, comma, "trailing commas not allowed in function call args");
    }
    return parser_expect(p, TOKEN_RIGHT_PAREN, NULL, NULL);
}

err parse_call(struct parser *p, struct token name, struct expr **out)
{
    str text = token_text(&name, p->text);
    struct arguments args;
    TRY(parse_arguments(p, &args));
    const struct function *fn = function_find(text);
    if (!fn) return parser_error(p, name.start, "unknown function with name %.*s", STR_ARG(parser_quote(p, text)));
    if (fn->experimental && !p->experimental)
        return parser_error(p, name.start, "function \"%s\" is experimental and not enabled", fn->name);
    struct expr *e = parser_node(p, EXPR_CALL, fn->result, name.start);
    e->call.fn = fn;
    e->call.args = args.v;
    e->call.n_args = args.n;
    *out = e;
    return parser_set_height(p, e, args.tallest);
}

static err parse_by(struct parser *p, struct expr *e)
{
    if (e->aggregate.grouped || (p->token.kind != TOKEN_BY && p->token.kind != TOKEN_WITHOUT)) return NULL;
    e->aggregate.grouped = true;
    e->aggregate.without = p->token.kind == TOKEN_WITHOUT;
    TRY(parser_advance(p));
    return parse_grouping(p, &e->aggregate.grouping, &e->aggregate.n_grouping);
}

static err set_arguments(struct parser *p, struct expr *e, const struct arguments *args)
{
    enum aggregate_op op = e->aggregate.op;
    const char *name = aggregate_op_text(op);
    if (args->n == 0) return parser_error(p, e->start, "no arguments for aggregate expression provided");
    if ((op == AGG_LIMITK || op == AGG_LIMIT_RATIO) && !p->experimental)
        return parser_error(p, e->start, "%s() is experimental and not enabled", name);
    uint32_t wanted = aggregate_op_has_param(op) ? 2 : 1;
    if (args->n != wanted)
        return parser_error(p, e->start,
                            "wrong number of arguments for aggregate expression provided, expected %u, got %u", wanted,
                            args->n);
    if (wanted == 2) e->aggregate.param = args->v[0];
    e->aggregate.inner = args->v[wanted - 1];
    return NULL;
}

err parse_aggregate(struct parser *p, struct token name, struct expr **out)
{
    struct expr *e = parser_node(p, EXPR_AGGREGATE, TYPE_VECTOR, name.start);
    struct arguments args;
    e->aggregate.op = (enum aggregate_op)name.op;
    TRY(parse_by(p, e));
    if (p->token.kind != TOKEN_LEFT_PAREN) return parser_unexpected(p, "aggregation", NULL);
    TRY(parse_arguments(p, &args));
    TRY(parse_by(p, e));
    e->end = p->last_end;
    TRY(set_arguments(p, e, &args));
    *out = e;
    return parser_set_height(p, e, args.tallest);
}
