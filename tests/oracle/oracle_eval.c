/*
 * oracle_eval.c: the walk over the tree: selectors, ranges, subqueries, and what all nodes share.
 *
 * Each node becomes a matrix: rows of values over the steps of a grid. A node that works step by step asks for the
 * vector of each step (oracle_at) and puts its results back (oracle_collect). See oracle.h for memory and errors.
 */
#include "tests/oracle/oracle.h"

#include <math.h>

#include "query/functions.h"

void oracle_fail(struct oracle *o, const char *why)
{
    if (o->failed) return;
    o->failed = true;
    o->why = why;
}

void oracle_unsure(struct oracle *o, const char *why)
{
    if (!o->failed && !o->ambiguous) o->why = why;
    o->ambiguous = true;
}

const struct expr *oracle_unwrap(const struct expr *e)
{
    while (e->kind == EXPR_PAREN)
        e = e->paren;
    return e;
}

/* ---- label sets -------------------------------------------------------------------------------------------- */

bool oracle_names_have(const str *names, size_t n, str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(names[i], name)) return true;
    return false;
}

static struct labels filter(struct oracle *o, const struct labels *ls, const str *names, size_t n, bool keep)
{
    struct labels out = {arena_alloc(o->arena, (ls->n + 1) * sizeof *out.v), 0};
    for (uint32_t i = 0; i < ls->n; i++)
        if (oracle_names_have(names, n, ls->v[i].name) == keep) out.v[out.n++] = ls->v[i];
    return out;
}

struct labels oracle_labels_keep(struct oracle *o, const struct labels *ls, const str *names, size_t n)
{
    return filter(o, ls, names, n, true);
}

struct labels oracle_labels_drop(struct oracle *o, const struct labels *ls, const str *names, size_t n)
{
    return filter(o, ls, names, n, false);
}

struct labels oracle_labels_drop_name(struct oracle *o, const struct labels *ls)
{
    return filter(o, ls, &LABEL_NAME, 1, false);
}

struct labels oracle_labels_set(struct oracle *o, const struct labels *ls, str name, str value)
{
    struct labels rest = filter(o, ls, &name, 1, false);
    if (value.n == 0) return rest;
    uint32_t at = 0;
    while (at < rest.n && str_cmp(rest.v[at].name, name) < 0)
        at++;
    for (uint32_t i = rest.n; i > at; i--)
        rest.v[i] = rest.v[i - 1];
    rest.v[at] = (struct label){name, value};
    rest.n++;
    return rest;
}

/* ---- matrices and vectors ---------------------------------------------------------------------------------- */

struct oracle_row *oracle_add_row(struct oracle *o, struct oracle_matrix *m, struct oracle_grid g, struct labels ls,
                                  bool drop_name)
{
    if (m->n == m->cap) {
        size_t cap = m->cap * 2 + 8;
        struct oracle_row *rows = arena_alloc(o->arena, cap * sizeof *rows);
        if (m->n > 0) memcpy(rows, m->rows, m->n * sizeof *rows);
        m->rows = rows;
        m->cap = cap;
    }
    struct oracle_row *row = &m->rows[m->n++];
    *row = (struct oracle_row){ls, drop_name, arena_zalloc(o->arena, g.n * sizeof *row->has),
                               arena_zalloc(o->arena, g.n * sizeof *row->v)};
    return row;
}

void oracle_push(struct oracle *o, struct oracle_vector *v, struct labels ls, bool drop_name, double value)
{
    if (v->n == v->cap) {
        size_t cap = v->cap * 2 + 8;
        struct oracle_sample *s = arena_alloc(o->arena, cap * sizeof *s);
        if (v->n > 0) memcpy(s, v->s, v->n * sizeof *s);
        v->s = s;
        v->cap = cap;
    }
    v->s[v->n++] = (struct oracle_sample){ls, drop_name, value};
}

struct oracle_vector oracle_at(struct oracle *o, const struct oracle_matrix *m, size_t step)
{
    struct oracle_vector v = {0};
    for (size_t i = 0; i < m->n; i++)
        if (m->rows[i].has[step]) oracle_push(o, &v, m->rows[i].labels, m->rows[i].drop_name, m->rows[i].v[step]);
    return v;
}

void oracle_collect(struct oracle *o, struct oracle_matrix *m, struct oracle_grid g, size_t step,
                    const struct oracle_vector *v)
{
    for (size_t i = 0; i < v->n; i++) {
        struct oracle_row *row = NULL;
        for (size_t k = 0; k < m->n && row == NULL; k++)
            if (labels_eq(&m->rows[k].labels, &v->s[i].labels)) row = &m->rows[k];
        if (row == NULL) row = oracle_add_row(o, m, g, v->s[i].labels, v->s[i].drop_name);
        if (row->drop_name != v->s[i].drop_name) oracle_unsure(o, "one series drops its name at some steps only");
        if (row->has[step] && o->finishing) oracle_fail(o, "same label set twice in the answer");
        if (row->has[step] && !o->finishing) oracle_unsure(o, "same label set twice on the way");
        row->has[step] = true;
        row->v[step] = v->s[i].v;
    }
}

double oracle_scalar_at(const struct oracle_matrix *m, size_t step)
{
    return m->n == 1 && m->rows[0].has[step] ? m->rows[0].v[step] : NAN;
}

/* ---- durations ---------------------------------------------------------------------------------------------- */

static double seconds_of(const struct oracle *o, const struct expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        return e->number;
    case EXPR_STEP:
        return (double)o->step / 1000;
    case EXPR_QRANGE:
        return (double)(o->end - o->start) / 1000;
    case EXPR_PAREN:
        return seconds_of(o, e->paren);
    case EXPR_UNARY:
        return -seconds_of(o, e->unary.inner);
    case EXPR_CALL: {
        double a = seconds_of(o, e->call.args[0]), b = seconds_of(o, e->call.args[1]);
        return e->call.fn->name[1] == 'i' ? fmin(a, b) : fmax(a, b);
    }
    default:
        break;
    }
    double a = seconds_of(o, e->binary.lhs), b = seconds_of(o, e->binary.rhs);
    switch (e->binary.op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MOD:
        return fmod(a, b);
    default:
        return pow(a, b);
    }
}

int64_t oracle_duration(const struct oracle *o, const struct duration *d)
{
    return d->expr == NULL ? d->ms : llround(seconds_of(o, d->expr) * 1000);
}

/* ---- selectors --------------------------------------------------------------------------------------------- */

int64_t oracle_pin(const struct oracle *o, const struct modifiers *m, int64_t ts)
{
    switch (m->at) {
    case AT_NONE:
        break;
    case AT_TIME:
        ts = m->at_ms;
        break;
    case AT_START:
        ts = o->start;
        break;
    case AT_END:
        ts = o->end;
        break;
    }
    return ts - oracle_duration(o, &m->offset);
}

static bool matches(struct oracle *o, const struct selector *s, const struct labels *ls)
{
    bool matched = false;
    err e = matchers_match(s->matchers, s->n_matchers, ls, &matched);
    if (e != NULL) oracle_fail(o, "matcher");
    err_free(e);
    return matched;
}

/* The newest sample in (ts - lookback, ts], unless it is a stale marker. */
static bool latest(const struct oracle *o, const struct oracle_series *s, int64_t ts, size_t *at)
{
    bool found = false;
    for (size_t i = 0; i < s->n; i++)
        if (s->t[i] <= ts && s->t[i] > ts - o->lookback_ms) {
            *at = i;
            found = true;
        }
    return found && !is_stale_nan(s->v[*at]);
}

/* want_time: the samples' timestamps in seconds instead of their values, which is what timestamp() asks for. */
static struct oracle_matrix select_instant(struct oracle *o, struct oracle_grid g, const struct selector *s,
                                           bool want_time)
{
    struct oracle_matrix m = {0};
    for (size_t k = 0; k < o->data->n; k++) {
        const struct oracle_series *series = &o->data->series[k];
        if (!matches(o, s, &series->labels)) continue;
        struct oracle_row *row = oracle_add_row(o, &m, g, series->labels, want_time);
        bool any = false;
        for (size_t i = 0; i < g.n; i++) {
            size_t at;
            if (!latest(o, series, oracle_pin(o, &s->mod, g.start + (int64_t)i * g.step), &at)) continue;
            row->has[i] = any = true;
            row->v[i] = want_time ? (double)series->t[at] / 1000 : series->v[at];
        }
        if (!any) m.n--;
    }
    return m;
}

struct oracle_matrix oracle_timestamps(struct oracle *o, struct oracle_grid g, const struct expr *selector);
struct oracle_matrix oracle_timestamps(struct oracle *o, struct oracle_grid g, const struct expr *selector)
{
    return select_instant(o, g, &selector->selector, true);
}

static struct oracle_range new_range(struct oracle *o, size_t cap, int64_t range, const struct modifiers *mod)
{
    return (struct oracle_range){arena_zalloc(o->arena, (cap + 1) * sizeof(struct oracle_series)),
                                 arena_zalloc(o->arena, (cap + 1) * sizeof(bool)), 0, range, mod};
}

static struct oracle_range select_range(struct oracle *o, const struct expr *e)
{
    const struct selector *s = &e->range.selector->selector;
    struct oracle_range r = new_range(o, o->data->n, oracle_duration(o, &e->range.range), &s->mod);
    for (size_t k = 0; k < o->data->n; k++) {
        const struct oracle_series *series = &o->data->series[k];
        if (!matches(o, s, &series->labels)) continue;
        struct oracle_series *to = &r.rows[r.n++];
        *to = (struct oracle_series){series->labels, arena_alloc(o->arena, series->n * sizeof *to->t),
                                     arena_alloc(o->arena, series->n * sizeof *to->v), 0};
        for (size_t i = 0; i < series->n; i++) {
            if (is_stale_nan(series->v[i])) continue;
            to->t[to->n] = series->t[i];
            to->v[to->n++] = series->v[i];
        }
    }
    return r;
}

/* The inner expression at the multiples of the subquery's step in (first window's start, last window's end]. */
static struct oracle_range subquery(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    const struct modifiers *mod = &e->subquery.mod;
    int64_t range = oracle_duration(o, &e->subquery.range);
    int64_t step = e->subquery.has_step ? oracle_duration(o, &e->subquery.step) : o->subquery_step_ms;
    int64_t from = oracle_pin(o, mod, g.start) - range;
    int64_t to = oracle_pin(o, mod, g.start + (int64_t)(g.n - 1) * g.step);
    int64_t first = from / step * step;
    while (first <= from)
        first += step;
    struct oracle_grid inner = {first, step, first > to ? 0 : (size_t)((to - first) / step) + 1};
    struct oracle_range r = new_range(o, 0, range, mod);
    if (inner.n == 0) return r;
    struct oracle_matrix m = oracle_eval(o, inner, e->subquery.inner);
    r = new_range(o, m.n, range, mod);
    for (size_t k = 0; k < m.n; k++) {
        struct oracle_series *row = &r.rows[r.n];
        r.drop_name[r.n++] = m.rows[k].drop_name;
        *row = (struct oracle_series){m.rows[k].labels, arena_alloc(o->arena, inner.n * sizeof *row->t),
                                      arena_alloc(o->arena, inner.n * sizeof *row->v), 0};
        for (size_t i = 0; i < inner.n; i++) {
            if (!m.rows[k].has[i]) continue;
            row->t[row->n] = inner.start + (int64_t)i * inner.step;
            row->v[row->n++] = m.rows[k].v[i];
        }
    }
    return r;
}

struct oracle_range oracle_eval_range(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    e = oracle_unwrap(e);
    return e->kind == EXPR_SUBQUERY ? subquery(o, g, e) : select_range(o, e);
}

/* ---- the walk ---------------------------------------------------------------------------------------------- */

static struct oracle_matrix number(struct oracle *o, struct oracle_grid g, double v)
{
    struct oracle_matrix m = {0};
    struct oracle_row *row = oracle_add_row(o, &m, g, (struct labels){0}, false);
    for (size_t i = 0; i < g.n; i++) {
        row->has[i] = true;
        row->v[i] = v;
    }
    return m;
}

static struct oracle_matrix unary(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    struct oracle_matrix m = oracle_eval(o, g, e->unary.inner);
    if (!e->unary.negate) return m;
    for (size_t k = 0; k < m.n; k++) {
        m.rows[k].drop_name = true;
        for (size_t i = 0; i < g.n; i++)
            m.rows[k].v[i] = -m.rows[k].v[i];
    }
    return m;
}

struct oracle_matrix oracle_eval(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    switch (e->kind) {
    case EXPR_NUMBER:
        return number(o, g, e->number);
    case EXPR_SELECTOR:
        return select_instant(o, g, &e->selector, false);
    case EXPR_PAREN:
        return oracle_eval(o, g, e->paren);
    case EXPR_UNARY:
        return unary(o, g, e);
    case EXPR_CALL:
        return oracle_call(o, g, e);
    case EXPR_AGGREGATE:
        return oracle_aggregate(o, g, e);
    case EXPR_BINARY:
        return oracle_binary(o, g, e);
    default:
        break;
    }
    oracle_unsure(o, "the oracle does not know this node");
    return (struct oracle_matrix){0};
}

/* Names go at last: series that become equal are joined, and contradict each other if they share a step. */
static struct oracle_matrix drop_names(struct oracle *o, struct oracle_grid g, const struct oracle_matrix *m)
{
    struct oracle_matrix out = {0};
    for (size_t i = 0; i < g.n; i++) {
        struct oracle_vector v = oracle_at(o, m, i);
        for (size_t k = 0; k < v.n; k++) {
            if (v.s[k].drop_name) v.s[k].labels = oracle_labels_drop_name(o, &v.s[k].labels);
            v.s[k].drop_name = false;
        }
        oracle_collect(o, &out, g, i, &v);
    }
    return out;
}

struct oracle_answer oracle_run(struct oracle *o, const struct expr *e, struct oracle_grid grid)
{
    struct oracle_answer a = {.type = e->type, .grid = grid};
    o->start = grid.start;
    o->end = grid.start + (int64_t)(grid.n - 1) * grid.step;
    o->step = grid.step;
    if (e->type == TYPE_MATRIX) {
        a.points = oracle_eval_range(o, grid, e);
        return a;
    }
    struct oracle_matrix m = oracle_eval(o, grid, e);
    o->finishing = true;
    a.matrix = drop_names(o, grid, &m);
    return a;
}
