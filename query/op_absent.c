/*
 * op_absent.c: absent() and absent_over_time(): one row that is 1 where no series has a sample.
 *
 * Its labels come from the selector's equality matchers: those on a label that is matched only once.
 * Series are folded as they stream by; nothing is kept but a column.
 */
#include "query/source.h"

struct op_absent {
    struct op op;
    struct op *vector;     /* absent */
    struct source *source; /* absent_over_time */
    bool done;
    double *v;
};

static const struct selector *selector_of(const struct expr *e)
{
    while (e->kind == EXPR_PAREN)
        e = e->paren;
    if (e->kind == EXPR_RANGE) return selector_of(e->range.selector);
    return e->kind == EXPR_SELECTOR ? &e->selector : NULL;
}

static struct labels absent_labels(const struct expr *e, struct arena *a)
{
    struct labels ls = {0};
    const struct selector *s = selector_of(e);
    for (uint32_t i = 0; s && i < s->n_matchers; i++) {
        const struct matcher *m = &s->matchers[i];
        if (str_eq(m->name, LABEL_NAME)) continue;
        bool first = true;
        for (uint32_t k = 0; k < i; k++)
            first = first && !(str_eq(s->matchers[k].name, m->name) && s->matchers[k].op == MATCH_EQ);
        bool sets = m->op == MATCH_EQ && first;
        ls = labels_set(&ls, m->name, sets ? m->value : (str){0}, a);
    }
    return ls;
}

static void mark(double *v, uint32_t i)
{
    v[i] = no_sample();
}

static err fold_vector(struct op_absent *o)
{
    struct row row;
    bool more;
    for (;;) {
        TRY(op_next(o->vector, &row, &more));
        if (!more) return NULL;
        for (uint32_t i = 0; i < o->op.n; i++)
            if (row_has(&row, i)) mark(o->v, i);
    }
}

static err fold_source(struct op_absent *o)
{
    const struct plan_window *w = &plan_samples_of(o->op.node)->window;
    const struct grid *g = &o->op.node->grid;
    struct series s;
    bool more;
    for (;;) {
        TRY(source_next(o->source, &s, &more));
        if (!more) return NULL;
        size_t next = 0; /* first sample after the step's window */
        for (uint32_t i = 0; i < o->op.n; i++) {
            int64_t end = (w->has_at ? w->at : grid_time(g, i)) - w->offset;
            while (next < s.n && s.t[next] <= end)
                next++;
            if (next > 0 && s.t[next - 1] > end - w->range) mark(o->v, i);
        }
    }
}

static err absent_next(struct op *op, struct row *row, bool *more)
{
    struct op_absent *o = (struct op_absent *)op;
    *more = !o->done;
    if (o->done) return NULL;
    o->done = true;
    TRY(exec_columns(op->x, 1, op->n, &o->v));
    for (uint32_t i = 0; i < op->n; i++)
        o->v[i] = 1;
    if (o->source)
        TRY(fold_source(o));
    else
        TRY(fold_vector(o));
    *row = (struct row){.v = o->v, .resolved = true, .labels = absent_labels(op->node->kids[0]->expr, op->x->arena)};
    return NULL;
}

err op_absent_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_absent *o = op_new(x, node, sizeof *o, absent_next, NULL);
    *out = &o->op;
    return exec_open(x, node->kids[0], &o->vector);
}

err op_absent_over_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_absent *o = op_new(x, node, sizeof *o, absent_next, NULL);
    *out = &o->op;
    return source_open(x, plan_samples_of(node), false, &o->source);
}
