/*
 * check.c: the meaning of a parsed query: types, argument counts, matchers, vector matching.
 *
 * The rules are Prometheus's. Left-leaning chains are checked in a loop from the innermost operator up;
 * other recursion is bounded by the parser's nesting limit. Changes nothing in the tree but the
 * cardinality of set operators. One tree, one thread.
 */
#include "query/check.h"

#include <stdlib.h>

#include "storage/base/assert.h"

static err expect_type(const struct parser *p, struct expr *e, enum value_type want, const char *context)
{
    TRY(check_expression(p, e));
    if (e->type == want) return NULL;
    return parser_error(p, e->start, "expected type %s in %s, got %s", value_type_name(want), context,
                        value_type_name(e->type));
}

/* ---- selectors ---------------------------------------------------------------------------------- */

/* Without a name outside the braces, some matcher must refuse the empty string, lest all series are selected. */
static err check_not_everything(const struct parser *p, const struct expr *e)
{
    const struct selector *s = &e->selector;
    for (uint32_t i = 0; i < s->n_matchers; i++)
        if (!matcher_matches_empty(&s->matchers[i])) return NULL;
    return parser_error(p, e->start, "vector selector must contain at least one non-empty matcher");
}

static err check_selector(const struct parser *p, const struct expr *e)
{
    const struct selector *s = &e->selector;
    if (s->name.n == 0) return check_not_everything(p, e);
    for (uint32_t i = 0; i + 1 < s->n_matchers; i++) /* the last is the name's own */
        if (str_eq(s->matchers[i].name, LABEL_NAME))
            return parser_error(p, e->start, "metric name must not be set twice: %.*s or %.*s",
                                STR_ARG(parser_quote(p, s->name)), STR_ARG(parser_quote(p, s->matchers[i].value)));
    return NULL;
}

/* ---- calls and aggregations --------------------------------------------------------------------- */

static err check_argument_count(const struct parser *p, const struct expr *e)
{
    const struct function *fn = e->call.fn;
    uint32_t n = e->call.n_args, least = fn->variadic ? fn->n_types - 1u : fn->n_types;
    uint32_t most = fn->variadic < 0 ? UINT32_MAX : least + (uint32_t)fn->variadic;
    if (n >= least && n <= most) return NULL;
    const char *bound = fn->variadic == 0 ? "" : n < least ? "at least " : "at most ";
    return parser_error(p, e->start, "expected %s%u argument(s) in call to \"%s\", got %u", bound,
                        n < least ? least : most, fn->name, n);
}

/* info's second argument picks labels of the info metrics, so it is a selector without a name, and may match all. */
static err check_info(const struct parser *p, const struct expr *e)
{
    const struct expr *labels = e->call.args[1];
    if (labels->kind != EXPR_SELECTOR) return parser_error(p, labels->start, "expected label selectors only");
    if (labels->selector.name.n == 0) return NULL;
    return parser_error(p, labels->start, "expected label selectors only, got vector selector instead");
}

/* default_rollup without a window has the one of an instant vector. */
static bool argument_fits(const struct function *fn, enum value_type want, enum value_type got)
{
    bool either = fn->class == FN_SPECIAL && fn->code == SPECIAL_DEFAULT_ROLLUP;
    return got == want || (either && got == TYPE_VECTOR);
}

static err check_call(const struct parser *p, const struct expr *e)
{
    const struct function *fn = e->call.fn;
    TRY(check_argument_count(p, e));
    bool info = fn->class == FN_SPECIAL && fn->code == SPECIAL_INFO && e->call.n_args > 1;
    if (info) TRY(check_info(p, e));
    for (uint32_t i = 0; i < e->call.n_args; i++) {
        struct expr *arg = e->call.args[i];
        enum value_type want = fn->types[i < fn->n_types ? i : fn->n_types - 1u];
        if (info && i == 1) continue;
        TRY(check_expression(p, arg));
        if (!argument_fits(fn, want, arg->type))
            return parser_error(p, arg->start, "expected type %s in call to function \"%s\", got %s",
                                value_type_name(want), fn->name, value_type_name(arg->type));
    }
    return NULL;
}

static err check_aggregate(const struct parser *p, const struct expr *e)
{
    TRY(expect_type(p, e->aggregate.inner, TYPE_VECTOR, "aggregation expression"));
    if (!e->aggregate.param) return NULL;
    enum value_type want = e->aggregate.op == AGG_COUNT_VALUES ? TYPE_STRING : TYPE_SCALAR;
    return expect_type(p, e->aggregate.param, want, "aggregation parameter");
}

/* ---- binary ------------------------------------------------------------------------------------- */

/* Where the operator stands. */
static uint32_t operator_start(const struct parser *p, const struct expr *e)
{
    uint32_t at = e->binary.lhs->end;
    while (at < p->text.n && strchr(" \t\r\n", p->text.p[at]))
        at++;
    return at;
}

static err check_bool(const struct parser *p, const struct expr *e)
{
    bool comparison = binary_op_is_comparison(e->binary.op);
    if (e->binary.return_bool && !comparison)
        return parser_error(p, operator_start(p, e), "bool modifier can only be used on comparison operators");
    bool scalars = e->binary.lhs->type == TYPE_SCALAR && e->binary.rhs->type == TYPE_SCALAR;
    if (comparison && !e->binary.return_bool && scalars)
        return parser_error(p, operator_start(p, e), "comparisons between scalars must use BOOL modifier");
    return NULL;
}

static int compare_names(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* A label can't both identify the match and be taken over from the "one" side. */
static err check_included(const struct parser *p, const struct expr *e)
{
    const struct matching *m = &e->binary.matching;
    if (!m->on || m->n_include == 0) return NULL;
    str *include = arena_dup(p->arena, m->include, m->n_include * sizeof(str)); /* sorted: lists may be long */
    qsort(include, m->n_include, sizeof(str), compare_names);
    for (uint32_t i = 0; i < m->n_labels; i++)
        if (bsearch(&m->labels[i], include, m->n_include, sizeof(str), compare_names))
            return parser_error(p, operator_start(p, e), "label %.*s must not occur in ON and GROUP clause at once",
                                STR_ARG(parser_quote(p, m->labels[i])));
    return NULL;
}

static err check_operand(const struct parser *p, const struct expr *operand)
{
    if (operand->type == TYPE_SCALAR || operand->type == TYPE_VECTOR) return NULL;
    return parser_error(p, operand->start, "binary expression must contain only scalar and instant vector types");
}

static err check_scalar_matching(const struct parser *p, struct expr *e)
{
    struct matching *m = &e->binary.matching;
    if (m->n_labels) return parser_error(p, e->start, "vector matching only allowed between instant vectors");
    if (m->fill_left || m->fill_right)
        return parser_error(p, e->start, "filling in missing series only allowed between instant vectors");
    if (binary_op_is_set(e->binary.op))
        return parser_error(p, e->start, "set operator \"%s\" not allowed in binary scalar expression",
                            binary_op_text(e->binary.op));
    *m = (struct matching){.card = CARD_ONE_TO_ONE}; /* on () next to a scalar says nothing */
    return NULL;
}

static err check_set_matching(const struct parser *p, struct expr *e)
{
    struct matching *m = &e->binary.matching;
    if (m->card != CARD_ONE_TO_ONE)
        return parser_error(p, e->start, "no grouping allowed for \"%s\" operation", binary_op_text(e->binary.op));
    if (m->fill_left || m->fill_right)
        return parser_error(p, e->start, "filling in missing series not allowed for set operators");
    m->card = CARD_MANY_TO_MANY;
    return NULL;
}

/* One operator whose sides are checked. */
static err check_operator(const struct parser *p, struct expr *e)
{
    TRY(check_bool(p, e));
    TRY(check_included(p, e));
    TRY(check_operand(p, e->binary.lhs));
    TRY(check_operand(p, e->binary.rhs));
    if (e->binary.lhs->type != TYPE_VECTOR || e->binary.rhs->type != TYPE_VECTOR) return check_scalar_matching(p, e);
    return binary_op_is_set(e->binary.op) ? check_set_matching(p, e) : NULL;
}

/* A chain that leans left: leftmost operand, then each operator with its right side, upwards. */
static err check_chain(const struct parser *p, struct expr *top)
{
    uint32_t n;
    struct expr **chain = expr_chain(top, p->arena, &n);
    TRY(check_expression(p, chain[0]->binary.lhs));
    for (uint32_t i = 0; i < n; i++) {
        TRY(check_expression(p, chain[i]->binary.rhs));
        TRY(check_operator(p, chain[i]));
    }
    return NULL;
}

/* ---- all kinds ---------------------------------------------------------------------------------- */

static err check_unary(const struct parser *p, const struct expr *e)
{
    struct expr *inner = e->unary.inner;
    TRY(check_expression(p, inner));
    if (inner->type == TYPE_SCALAR || inner->type == TYPE_VECTOR) return NULL;
    return parser_error(p, e->start,
                        "unary expression only allowed on expressions of type scalar or instant vector, got \"%s\"",
                        value_type_name(inner->type));
}

static err check_subquery(const struct parser *p, const struct expr *e)
{
    struct expr *inner = e->subquery.inner;
    TRY(check_expression(p, inner));
    if (inner->type == TYPE_VECTOR) return NULL;
    return parser_error(p, e->start, "subquery is only allowed on instant vector, got %s instead",
                        value_type_name(inner->type));
}

err check_expression(const struct parser *p, struct expr *e)
{
    switch (e->kind) {
    case EXPR_SELECTOR:
        return check_selector(p, e);
    case EXPR_RANGE:
        return check_selector(p, e->range.selector);
    case EXPR_SUBQUERY:
        return check_subquery(p, e);
    case EXPR_CALL:
        return check_call(p, e);
    case EXPR_AGGREGATE:
        return check_aggregate(p, e);
    case EXPR_BINARY:
        return check_chain(p, e);
    case EXPR_UNARY:
        return check_unary(p, e);
    case EXPR_PAREN:
        return check_expression(p, e->paren);
    case EXPR_NUMBER:
    case EXPR_STRING:
        return NULL;
    case EXPR_STEP:
    case EXPR_QRANGE:
        break;
    }
    check(!"only durations hold step() and range() nodes");
    return NULL;
}
