/*
 * parse_json.c: the syntax tree as JSON, and the two calls of query.h that answer with a query's form.
 *
 * Objects, keys and their order are those of Prometheus's /api/v1/parse_query. A duration that is an
 * expression shows as 0, as it does there. Trees may be higher than the JSON writer's nesting limit, so
 * brackets are written here and only strings and numbers by json.c; chains that lean left are printed
 * in a loop. Any thread.
 */
#include "query/parse_json.h"

#include "query/functions.h"
#include "query/parser.h"
#include "query/query.h"
#include "storage/base/json.h"
#include "storage/base/num.h"

#define ANSWER_MAX (16u << 20) /* bytes of a query laid out: indentation grows with the square of its length */

struct printer {
    struct arena scratch;
    struct buf *out;
};

static void print_expr(struct printer *p, const struct expr *e);

/* ---- values ------------------------------------------------------------------------------------- */

static void put(struct printer *p, const char *text)
{
    buf_str(p->out, str_of(text));
}

static void put_string(struct printer *p, str s)
{
    struct json j;
    json_init(&j, p->out);
    json_str(&j, s);
}

static void put_bool(struct printer *p, bool v)
{
    put(p, v ? "true" : "false");
}

static void put_ms(struct printer *p, const char *key, int64_t ms)
{
    buf_printf(p->out, ",\"%s\":%lld", key, (long long)ms);
}

static void put_strings(struct printer *p, const str *v, uint32_t n)
{
    put(p, "[");
    for (uint32_t i = 0; i < n; i++) {
        if (i > 0) put(p, ",");
        put_string(p, v[i]);
    }
    put(p, "]");
}

/* As the API names types; messages use other words. */
static const char *type_word(enum value_type t)
{
    static const char *const words[] = {
        [TYPE_NONE] = "none",     [TYPE_SCALAR] = "scalar", [TYPE_STRING] = "string",
        [TYPE_VECTOR] = "vector", [TYPE_MATRIX] = "matrix",
    };
    return words[t];
}

/* ---- selectors ---------------------------------------------------------------------------------- */

static void print_matchers(struct printer *p, const struct selector *s)
{
    put(p, "\"matchers\":[");
    for (uint32_t i = 0; i < s->n_matchers; i++) {
        put(p, i > 0 ? ",{\"name\":" : "{\"name\":");
        put_string(p, s->matchers[i].name);
        buf_printf(p->out, ",\"type\":\"%s\",\"value\":", match_op_text(s->matchers[i].op));
        put_string(p, s->matchers[i].value);
        put(p, "}");
    }
    put(p, "]");
}

static void print_start_or_end(struct printer *p, const struct modifiers *m)
{
    buf_printf(p->out, ",\"startOrEnd\":%s", m->at == AT_START ? "\"start\"" : m->at == AT_END ? "\"end\"" : "null");
}

static void print_timestamp(struct printer *p, const struct modifiers *m)
{
    if (m->at == AT_TIME)
        put_ms(p, "timestamp", m->at_ms);
    else
        put(p, ",\"timestamp\":null");
}

/* range is NULL for an instant selector. `anchored`, `smoothed` and `fillValues` are there only where they are set:
 * trees of queries without them are the same as from servers that don't know them. */
static void print_selector(struct printer *p, const struct selector *s, const struct duration *range)
{
    put(p, s->mod.anchored ? "{\"anchored\":true," : "{");
    print_matchers(p, s);
    put(p, ",\"name\":");
    put_string(p, s->name);
    put_ms(p, "offset", s->mod.offset.ms);
    if (range) put_ms(p, "range", range->ms);
    if (s->mod.smoothed) put(p, ",\"smoothed\":true");
    print_start_or_end(p, &s->mod);
    print_timestamp(p, &s->mod);
    put(p, range ? ",\"type\":\"matrixSelector\"}" : ",\"type\":\"vectorSelector\"}");
}

static void print_subquery(struct printer *p, const struct expr *e)
{
    const struct modifiers *m = &e->subquery.mod;
    put(p, "{\"expr\":");
    print_expr(p, e->subquery.inner);
    put_ms(p, "offset", m->offset.ms);
    put_ms(p, "range", e->subquery.range.ms);
    print_start_or_end(p, m);
    put_ms(p, "step", e->subquery.step.ms);
    print_timestamp(p, m);
    put(p, ",\"type\":\"subquery\"}");
}

/* ---- operators ---------------------------------------------------------------------------------- */

static void print_fill(struct printer *p, bool given, double v)
{
    if (!given) {
        put(p, "null");
        return;
    }
    struct json j;
    json_init(&j, p->out);
    json_double(&j, v);
}

static void print_matching(struct printer *p, const struct expr *e)
{
    static const char *const cards[] = {
        [CARD_ONE_TO_ONE] = "one-to-one",
        [CARD_MANY_TO_ONE] = "many-to-one",
        [CARD_ONE_TO_MANY] = "one-to-many",
        [CARD_MANY_TO_MANY] = "many-to-many",
    };
    const struct matching *m = &e->binary.matching;
    if (e->binary.lhs->type != TYPE_VECTOR || e->binary.rhs->type != TYPE_VECTOR) {
        put(p, "null");
        return;
    }
    buf_printf(p->out, "{\"card\":\"%s\"", cards[m->card]);
    if (m->fill_left || m->fill_right) {
        put(p, ",\"fillValues\":{\"lhs\":");
        print_fill(p, m->fill_left, m->fill_left_value);
        put(p, ",\"rhs\":");
        print_fill(p, m->fill_right, m->fill_right_value);
        put(p, "}");
    }
    put(p, ",\"include\":");
    put_strings(p, m->include, m->n_include);
    put(p, ",\"labels\":");
    put_strings(p, m->labels, m->n_labels);
    put(p, ",\"on\":");
    put_bool(p, m->on);
    put(p, "}");
}

static void print_chain(struct printer *p, const struct expr *top)
{
    uint32_t n;
    struct expr **chain = expr_chain(top, &p->scratch, &n);
    for (uint32_t i = n; i-- > 0;) {
        put(p, "{\"bool\":");
        put_bool(p, chain[i]->binary.return_bool);
        put(p, ",\"lhs\":");
    }
    print_expr(p, chain[0]->binary.lhs);
    for (uint32_t i = 0; i < n; i++) {
        put(p, ",\"matching\":");
        print_matching(p, chain[i]);
        buf_printf(p->out, ",\"op\":\"%s\",\"rhs\":", binary_op_text(chain[i]->binary.op));
        print_expr(p, chain[i]->binary.rhs);
        put(p, ",\"type\":\"binaryExpr\"}");
    }
}

static void print_aggregate(struct printer *p, const struct expr *e)
{
    put(p, "{\"expr\":");
    print_expr(p, e->aggregate.inner);
    put(p, ",\"grouping\":");
    put_strings(p, e->aggregate.grouping, e->aggregate.n_grouping);
    buf_printf(p->out, ",\"op\":\"%s\",\"param\":", aggregate_op_text(e->aggregate.op));
    if (e->aggregate.param)
        print_expr(p, e->aggregate.param);
    else
        put(p, "null");
    put(p, ",\"type\":\"aggregation\",\"without\":");
    put_bool(p, e->aggregate.without);
    put(p, "}");
}

static void print_call(struct printer *p, const struct expr *e)
{
    const struct function *fn = e->call.fn;
    put(p, "{\"args\":[");
    for (uint32_t i = 0; i < e->call.n_args; i++) {
        if (i > 0) put(p, ",");
        print_expr(p, e->call.args[i]);
    }
    put(p, "],\"func\":{\"argTypes\":[");
    for (uint32_t i = 0; i < fn->n_types; i++)
        buf_printf(p->out, "%s\"%s\"", i > 0 ? "," : "", type_word(fn->types[i]));
    buf_printf(p->out, "],\"name\":\"%s\",\"returnType\":\"%s\",\"variadic\":%d},\"type\":\"call\"}", fn->name,
               type_word(fn->result), fn->variadic);
}

static void print_number(struct printer *p, double v)
{
    char text[NUM_DOUBLE_MAX];
    size_t n = num_format_double(v, text);
    buf_printf(p->out, "{\"type\":\"numberLiteral\",\"val\":\"%.*s\"}", (int)n, text);
}

static void print_expr(struct printer *p, const struct expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        print_number(p, e->number);
        break;
    case EXPR_STRING:
        put(p, "{\"type\":\"stringLiteral\",\"val\":");
        put_string(p, e->string);
        put(p, "}");
        break;
    case EXPR_SELECTOR:
        print_selector(p, &e->selector, NULL);
        break;
    case EXPR_RANGE:
        print_selector(p, &e->range.selector->selector, &e->range.range);
        break;
    case EXPR_SUBQUERY:
        print_subquery(p, e);
        break;
    case EXPR_CALL:
        print_call(p, e);
        break;
    case EXPR_AGGREGATE:
        print_aggregate(p, e);
        break;
    case EXPR_BINARY:
        print_chain(p, e);
        break;
    case EXPR_UNARY:
        put(p, "{\"expr\":");
        print_expr(p, e->unary.inner);
        buf_printf(p->out, ",\"op\":\"%c\",\"type\":\"unaryExpr\"}", e->unary.negate ? '-' : '+');
        break;
    case EXPR_PAREN:
        put(p, "{\"expr\":");
        print_expr(p, e->paren);
        put(p, ",\"type\":\"parenExpr\"}");
        break;
    case EXPR_STEP:
    case EXPR_QRANGE:
        break; /* inside durations only */
    }
}

void parse_json_print(const struct expr *e, struct buf *out)
{
    struct printer p = {.out = out};
    print_expr(&p, e);
    arena_deinit(&p.scratch);
}

/* ---- query.h ------------------------------------------------------------------------------------ */

err query_format(str text, bool experimental, struct buf *out)
{
    struct arena arena = {0};
    struct expr *tree;
    struct buf pretty = {.max = ANSWER_MAX};
    err e = promql_parse(text, experimental, &arena, &tree);
    if (e) goto out;
    promql_pretty(tree, &pretty);
    expr_deinit(tree);
    TRY_OUT(buf_status(&pretty, "formatted query"));
    struct json j;
    json_init(&j, out);
    json_str(&j, buf_as_str(&pretty));
out:
    buf_deinit(&pretty);
    arena_deinit(&arena);
    return e;
}

err query_parse_tree(str text, bool experimental, struct buf *out)
{
    struct arena arena = {0};
    struct expr *tree;
    err e = promql_parse(text, experimental, &arena, &tree);
    if (!e) {
        parse_json_print(tree, out);
        expr_deinit(tree);
    }
    arena_deinit(&arena);
    return e;
}
