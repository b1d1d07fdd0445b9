/*
 * format.c: a tree back to text, on one line or laid out over many.
 *
 * The one-line form is canonical: it parses to a tree that prints the same. It is what Prometheus
 * prints: matchers sorted, durations in their shortest exact form, empty groupings dropped. Laid out, a
 * node whose line would be longer than LINE_MAX puts its parts on lines of their own, indented. Chains
 * that lean left are printed in a loop, so recursion is bounded as the parser's is. Reads the tree,
 * writes to the caller's buf; scratch lives in an arena for the time of the call.
 */
#include <math.h>
#include <stdlib.h>

#include "query/functions.h"
#include "query/literal.h"
#include "query/parser.h"
#include "storage/base/num.h"

#define LINE_MAX 100
#define INDENT "  "

struct printer {
    struct arena scratch;
    struct buf *out;
};

static void print_expr(struct printer *p, const struct expr *e);

static void put(struct printer *p, const char *text)
{
    buf_str(p->out, str_of(text));
}

/* Will `bytes` more not fit under the buf's cap? Then it is failed at once: what is measured is not printed whole. */
static bool is_over(struct printer *p, size_t bytes)
{
    if (p->out->max && bytes > p->out->max) p->out->failed = true;
    return p->out->failed;
}

/* ---- parts -------------------------------------------------------------------------------------- */

static void print_names(struct printer *p, const str *names, uint32_t n)
{
    for (uint32_t i = 0; i < n && !p->out->failed; i++) {
        if (i > 0) put(p, ", ");
        literal_print_name(names[i], p->out);
    }
}

static void print_number(struct printer *p, const struct expr *e)
{
    if (e->is_duration) {
        literal_print_duration(llround(e->number * 1000), p->out);
        return;
    }
    char text[NUM_DOUBLE_MAX];
    buf_put(p->out, text, num_format_double(e->number, text));
}

static void print_duration(struct printer *p, const struct duration *d)
{
    if (d->expr)
        print_expr(p, d->expr);
    else
        literal_print_duration(d->ms, p->out);
}

static void print_at(struct printer *p, const struct modifiers *m)
{
    switch (m->at) {
    case AT_TIME:
        buf_printf(p->out, " @ %.3f", (double)m->at_ms / 1000);
        break;
    case AT_START:
        put(p, " @ start()");
        break;
    case AT_END:
        put(p, " @ end()");
        break;
    case AT_NONE:
        break;
    }
}

/* Behind `offset`, operators go on only after a parenthesis: may the expression stand there bare? */
static bool offset_stands_bare(const struct expr *e)
{
    if (e->kind == EXPR_BINARY) {
        while (e->kind == EXPR_BINARY)
            e = e->binary.lhs;
        return e->kind == EXPR_PAREN;
    }
    while (e->kind == EXPR_UNARY)
        e = e->unary.inner;
    return e->kind != EXPR_BINARY;
}

static void print_offset(struct printer *p, const struct modifiers *m)
{
    if (!m->has_offset || (m->offset.ms == 0 && !m->offset.expr)) return; /* less than 1 ms is none */
    bool bare = !m->offset.expr || offset_stands_bare(m->offset.expr);
    put(p, bare ? " offset " : " offset (");
    print_duration(p, &m->offset);
    if (!bare) put(p, ")");
}

/* Would an operator behind the printed offset be read as part of it? */
static bool offset_is_open(const struct modifiers *m)
{
    if (!m->has_offset || !m->offset.expr) return false;
    return m->offset.expr->kind == EXPR_PAREN || m->offset.expr->kind == EXPR_BINARY ||
           !offset_stands_bare(m->offset.expr);
}

static void print_extended(struct printer *p, const struct modifiers *m)
{
    if (m->anchored) put(p, " anchored");
    if (m->smoothed) put(p, " smoothed");
}

/* ---- selectors ---------------------------------------------------------------------------------- */

static int compare_texts(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static str matcher_text(struct printer *p, const struct matcher *m)
{
    struct buf b = {0};
    literal_print_name(m->name, &b);
    buf_str(&b, str_of(match_op_text(m->op)));
    literal_print_string(m->value, &b);
    str text = arena_str(&p->scratch, buf_as_str(&b));
    buf_deinit(&b);
    return text;
}

static bool is_own_name(const struct selector *s, const struct matcher *m)
{
    return m->op == MATCH_EQ && s->name.n > 0 && str_eq(m->name, LABEL_NAME) && str_eq(m->value, s->name);
}

/* Name and matchers, no modifiers. */
static void print_series(struct printer *p, const struct selector *s)
{
    size_t least = 0; /* bytes that the matchers need, the name's own left out */
    for (uint32_t i = 0; i < s->n_matchers; i++)
        if (!is_own_name(s, &s->matchers[i])) least += s->matchers[i].name.n + s->matchers[i].value.n;
    if (is_over(p, least)) return;
    buf_str(p->out, s->name);
    str *texts = arena_alloc(&p->scratch, (s->n_matchers + 1) * sizeof(str));
    size_t n = 0;
    for (uint32_t i = 0; i < s->n_matchers; i++)
        if (!is_own_name(s, &s->matchers[i])) texts[n++] = matcher_text(p, &s->matchers[i]);
    if (n == 0) return;
    qsort(texts, n, sizeof(str), compare_texts);
    for (size_t i = 0; i < n; i++) {
        put(p, i == 0 ? "{" : ",");
        buf_str(p->out, texts[i]);
    }
    put(p, "}");
}

static void print_selector(struct printer *p, const struct selector *s)
{
    bool open = offset_is_open(&s->mod);
    print_series(p, s);
    if (open) print_offset(p, &s->mod);
    print_at(p, &s->mod);
    print_extended(p, &s->mod);
    if (!open) print_offset(p, &s->mod);
}

static void print_range(struct printer *p, const struct expr *e)
{
    const struct selector *s = &e->range.selector->selector;
    print_series(p, s);
    put(p, "[");
    print_duration(p, &e->range.range);
    put(p, "]");
    print_extended(p, &s->mod);
    print_at(p, &s->mod);
    print_offset(p, &s->mod);
}

static void print_subquery_suffix(struct printer *p, const struct expr *e)
{
    put(p, "[");
    print_duration(p, &e->subquery.range);
    put(p, ":");
    if (e->subquery.has_step) print_duration(p, &e->subquery.step);
    put(p, "]");
    print_at(p, &e->subquery.mod);
    print_offset(p, &e->subquery.mod);
}

/* ---- operators ---------------------------------------------------------------------------------- */

static void print_fill(struct printer *p, const char *word, double v)
{
    char text[NUM_DOUBLE_MAX];
    size_t n = num_format_double_short(v, text);
    buf_printf(p->out, " %s (%.*s)", word, (int)n, text);
}

static void print_matching(struct printer *p, const struct matching *m)
{
    bool grouped = m->card == CARD_MANY_TO_ONE || m->card == CARD_ONE_TO_MANY;
    if (m->n_labels || m->on || grouped) {
        put(p, m->on ? " on (" : " ignoring (");
        print_names(p, m->labels, m->n_labels);
        put(p, ")");
    }
    if (grouped) {
        put(p, m->card == CARD_MANY_TO_ONE ? " group_left (" : " group_right (");
        print_names(p, m->include, m->n_include);
        put(p, ")");
    }
    if (m->fill_both) {
        print_fill(p, "fill", m->fill_left_value);
        return;
    }
    if (m->fill_left) print_fill(p, "fill_left", m->fill_left_value);
    if (m->fill_right) print_fill(p, "fill_right", m->fill_right_value);
}

/* The operator with its modifiers. */
static void print_operator(struct printer *p, const struct expr *e)
{
    put(p, binary_op_text(e->binary.op));
    if (e->binary.return_bool) put(p, " bool");
    print_matching(p, &e->binary.matching);
}

static void print_chain(struct printer *p, const struct expr *top)
{
    uint32_t n;
    struct expr **chain = expr_chain(top, &p->scratch, &n);
    const struct expr *first = chain[0]->binary.lhs;
    if (chain[0]->binary.op == OP_POW && first->kind == EXPR_NUMBER && isinf(first->number))
        put(p, "Inf"); /* with its sign, it would read back as the sign of the power */
    else
        print_expr(p, first);
    for (uint32_t i = 0; i < n && !p->out->failed; i++) {
        put(p, " ");
        print_operator(p, chain[i]);
        put(p, " ");
        print_expr(p, chain[i]->binary.rhs);
    }
}

/* "sum by (a) " */
static void print_aggregate_head(struct printer *p, const struct expr *e)
{
    put(p, aggregate_op_text(e->aggregate.op));
    if (!e->aggregate.without && e->aggregate.n_grouping == 0) return;
    put(p, e->aggregate.without ? " without (" : " by (");
    print_names(p, e->aggregate.grouping, e->aggregate.n_grouping);
    put(p, ") ");
}

static void print_aggregate(struct printer *p, const struct expr *e)
{
    print_aggregate_head(p, e);
    put(p, "(");
    if (e->aggregate.param) {
        print_expr(p, e->aggregate.param);
        put(p, ", ");
    }
    print_expr(p, e->aggregate.inner);
    put(p, ")");
}

static void print_call(struct printer *p, const struct expr *e)
{
    put(p, e->call.fn->name);
    put(p, "(");
    for (uint32_t i = 0; i < e->call.n_args && !p->out->failed; i++) {
        if (i > 0) put(p, ", ");
        print_expr(p, e->call.args[i]);
    }
    put(p, ")");
}

static void print_expr(struct printer *p, const struct expr *e)
{
    if (p->out->failed) return; /* the measure of pretty_is_long is full */
    switch (e->kind) {
    case EXPR_NUMBER:
        print_number(p, e);
        break;
    case EXPR_STRING:
        if (!is_over(p, e->string.n)) literal_print_string(e->string, p->out);
        break;
    case EXPR_SELECTOR:
        print_selector(p, &e->selector);
        break;
    case EXPR_RANGE:
        print_range(p, e);
        break;
    case EXPR_SUBQUERY:
        print_expr(p, e->subquery.inner);
        print_subquery_suffix(p, e);
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
        put(p, e->unary.negate ? "-" : "+");
        print_expr(p, e->unary.inner);
        break;
    case EXPR_PAREN:
        put(p, "(");
        print_expr(p, e->paren);
        put(p, ")");
        break;
    case EXPR_STEP:
        put(p, "step()");
        break;
    case EXPR_QRANGE:
        put(p, "range()");
        break;
    }
}

void promql_print(const struct expr *e, struct buf *out)
{
    struct printer p = {.out = out};
    print_expr(&p, e);
    arena_deinit(&p.scratch);
}

/* ---- laid out ----------------------------------------------------------------------------------- */

static void pretty_expr(struct printer *p, const struct expr *e, unsigned level);

static void indent(struct printer *p, unsigned level)
{
    for (unsigned i = 0; i < level && !p->out->failed; i++)
        put(p, INDENT);
}

/* Bytes of the one-line form, or any number above LINE_MAX. */
static size_t line_length(const struct expr *e)
{
    struct buf line = {.max = LINE_MAX + 1};
    promql_print(e, &line);
    size_t n = line.failed ? LINE_MAX + 1 : line.n;
    buf_deinit(&line);
    return n;
}

static size_t operator_length(const struct expr *e)
{
    struct buf line = {.max = LINE_MAX + 1};
    struct printer p = {.out = &line};
    print_operator(&p, e);
    size_t n = line.failed ? LINE_MAX + 1 : line.n;
    buf_deinit(&line);
    return n;
}

/* How many of the chain's n operators, from the innermost, fit one line. */
static uint32_t chain_in_line(struct expr **chain, uint32_t n)
{
    size_t length = line_length(chain[0]->binary.lhs);
    for (uint32_t i = 0; i < n; i++) {
        length += operator_length(chain[i]) + 2 + line_length(chain[i]->binary.rhs);
        if (length > LINE_MAX) return i;
    }
    return n;
}

/* Left side, operator and right side on lines of their own, the left side's parts deeper still. */
static void pretty_chain(struct printer *p, const struct expr *top, unsigned level)
{
    uint32_t n;
    struct expr **chain = expr_chain(top, &p->scratch, &n);
    uint32_t flat = chain_in_line(chain, n);
    unsigned deepest = level + (n - flat);
    if (flat > 0) {
        indent(p, deepest);
        print_expr(p, chain[flat - 1]);
    } else {
        pretty_expr(p, chain[0]->binary.lhs, deepest);
    }
    for (uint32_t i = flat; i < n && !p->out->failed; i++) {
        unsigned own = level + (n - 1 - i);
        put(p, "\n");
        indent(p, own);
        print_operator(p, chain[i]);
        put(p, "\n");
        pretty_expr(p, chain[i]->binary.rhs, own + 1);
    }
}

static void close_lines(struct printer *p, unsigned level)
{
    put(p, "\n");
    indent(p, level);
    put(p, ")");
}

static void pretty_call(struct printer *p, const struct expr *e, unsigned level)
{
    put(p, e->call.fn->name);
    put(p, "(\n");
    for (uint32_t i = 0; i < e->call.n_args; i++) {
        if (i > 0) put(p, ",\n");
        pretty_expr(p, e->call.args[i], level + 1);
    }
    close_lines(p, level);
}

static void pretty_aggregate(struct printer *p, const struct expr *e, unsigned level)
{
    print_aggregate_head(p, e);
    put(p, "(\n");
    if (e->aggregate.param) {
        pretty_expr(p, e->aggregate.param, level + 1);
        put(p, ",\n");
    }
    pretty_expr(p, e->aggregate.inner, level + 1);
    close_lines(p, level);
}

/* A sign takes the indentation in front of what it is put to. */
static void pretty_unary(struct printer *p, const struct expr *e, unsigned level)
{
    struct buf inner = {.max = p->out->max};
    struct printer q = {.out = &inner};
    pretty_expr(&q, e->unary.inner, level);
    arena_deinit(&q.scratch);
    str text = buf_as_str(&inner);
    while (text.n > 0 && *text.p == ' ')
        text = (str){text.p + 1, text.n - 1};
    indent(p, level);
    put(p, e->unary.negate ? "-" : "+");
    buf_str(p->out, text);
    if (inner.failed) p->out->failed = true;
    buf_deinit(&inner);
}

static void pretty_expr(struct printer *p, const struct expr *e, unsigned level)
{
    if (p->out->failed) return;
    if (e->kind == EXPR_UNARY) {
        pretty_unary(p, e, level);
        return;
    }
    bool is_long = line_length(e) > LINE_MAX;
    if (e->kind == EXPR_SUBQUERY) { /* never indented when it fits: Prometheus's rule */
        if (is_long) {
            pretty_expr(p, e->subquery.inner, level);
            print_subquery_suffix(p, e);
        } else {
            print_expr(p, e);
        }
        return;
    }
    if (is_long && e->kind == EXPR_BINARY) {
        pretty_chain(p, e, level);
        return;
    }
    indent(p, level);
    if (is_long && e->kind == EXPR_CALL) {
        pretty_call(p, e, level);
    } else if (is_long && e->kind == EXPR_AGGREGATE) {
        pretty_aggregate(p, e, level);
    } else if (is_long && e->kind == EXPR_PAREN) {
        put(p, "(\n");
        pretty_expr(p, e->paren, level + 1);
        close_lines(p, level);
    } else {
        print_expr(p, e);
    }
}

void promql_pretty(const struct expr *e, struct buf *out)
{
    struct printer p = {.out = out};
    pretty_expr(&p, e, 0);
    arena_deinit(&p.scratch);
}
