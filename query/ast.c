/*
 * ast.c: names of types and operators, and the release of a tree.
 *
 * Nodes live in the query's arena; what they own outside of it are the compiled regexes of matchers,
 * and expr_deinit frees those. Left-leaning chains are walked in a loop, so its recursion is bounded as
 * the parser's is. Stateless: any thread, one tree in one thread at a time.
 */
#include "query/ast.h"

#include "storage/base/assert.h"

static const struct {
    const char *text;
    int precedence;
} BINARY_OPS[] = {
    [OP_ADD] = {"+", 4}, [OP_SUB] = {"-", 4},         [OP_MUL] = {"*", 5},         [OP_DIV] = {"/", 5},
    [OP_MOD] = {"%", 5}, [OP_POW] = {"^", 6},         [OP_ATAN2] = {"atan2", 5},   [OP_EQ] = {"==", 3},
    [OP_NE] = {"!=", 3}, [OP_LT] = {"<", 3},          [OP_GT] = {">", 3},          [OP_LE] = {"<=", 3},
    [OP_GE] = {">=", 3}, [OP_TRIM_UPPER] = {"</", 3}, [OP_TRIM_LOWER] = {">/", 3}, [OP_AND] = {"and", 2},
    [OP_OR] = {"or", 1}, [OP_UNLESS] = {"unless", 2},
};

static const char *const AGGREGATE_OPS[] = {
    [AGG_SUM] = "sum",           [AGG_AVG] = "avg",
    [AGG_MIN] = "min",           [AGG_MAX] = "max",
    [AGG_COUNT] = "count",       [AGG_GROUP] = "group",
    [AGG_STDDEV] = "stddev",     [AGG_STDVAR] = "stdvar",
    [AGG_TOPK] = "topk",         [AGG_BOTTOMK] = "bottomk",
    [AGG_QUANTILE] = "quantile", [AGG_COUNT_VALUES] = "count_values",
    [AGG_LIMITK] = "limitk",     [AGG_LIMIT_RATIO] = "limit_ratio",
};

const char *value_type_name(enum value_type t)
{
    static const char *const names[] = {
        [TYPE_NONE] = "none",           [TYPE_SCALAR] = "scalar",
        [TYPE_STRING] = "string",       [TYPE_VECTOR] = "instant vector",
        [TYPE_MATRIX] = "range vector",
    };
    return names[t];
}

const char *binary_op_text(enum binary_op op)
{
    check((size_t)op < ARRAY_LEN(BINARY_OPS));
    return BINARY_OPS[op].text;
}

int binary_op_precedence(enum binary_op op)
{
    check((size_t)op < ARRAY_LEN(BINARY_OPS));
    return BINARY_OPS[op].precedence;
}

bool binary_op_is_comparison(enum binary_op op)
{
    return op >= OP_EQ && op <= OP_GE;
}

bool binary_op_is_set(enum binary_op op)
{
    return op >= OP_AND;
}

const char *aggregate_op_text(enum aggregate_op op)
{
    check((size_t)op < ARRAY_LEN(AGGREGATE_OPS));
    return AGGREGATE_OPS[op];
}

bool aggregate_op_has_param(enum aggregate_op op)
{
    return op >= AGG_TOPK;
}

struct expr **expr_chain(const struct expr *top, struct arena *a, uint32_t *n)
{
    union { /* top is const only for callers who only read */
        const struct expr *given;
        struct expr *own;
    } first = {.given = top};
    struct expr *e = first.own;
    for (*n = 0; e->kind == EXPR_BINARY; e = e->binary.lhs)
        (*n)++;
    check(*n > 0);
    struct expr **chain = arena_alloc(a, *n * sizeof(struct expr *));
    e = first.own;
    for (uint32_t i = *n; i-- > 0; e = e->binary.lhs)
        chain[i] = e;
    return chain;
}

void expr_walk(struct expr *e, void (*fn)(void *arg, struct expr *e), void *arg)
{
    while (e) {
        struct expr *next = NULL; /* the child to go on with; the others are done by recursion */
        fn(arg, e);
        switch (e->kind) {
        case EXPR_RANGE:
            next = e->range.selector;
            break;
        case EXPR_SUBQUERY:
            next = e->subquery.inner;
            break;
        case EXPR_CALL:
            for (uint32_t i = 0; i < e->call.n_args; i++)
                expr_walk(e->call.args[i], fn, arg);
            break;
        case EXPR_AGGREGATE:
            expr_walk(e->aggregate.param, fn, arg);
            next = e->aggregate.inner;
            break;
        case EXPR_BINARY:
            expr_walk(e->binary.rhs, fn, arg);
            next = e->binary.lhs;
            break;
        case EXPR_UNARY:
            next = e->unary.inner;
            break;
        case EXPR_PAREN:
            next = e->paren;
            break;
        case EXPR_SELECTOR:
        case EXPR_NUMBER:
        case EXPR_STRING:
        case EXPR_STEP:
        case EXPR_QRANGE:
            break;
        }
        e = next;
    }
}

static void deinit_node(void *arg, struct expr *e)
{
    (void)arg;
    if (e->kind != EXPR_SELECTOR) return;
    for (uint32_t i = 0; i < e->selector.n_matchers; i++)
        matcher_deinit(&e->selector.matchers[i]);
}

void expr_deinit(struct expr *e)
{
    expr_walk(e, deinit_node, NULL);
}
