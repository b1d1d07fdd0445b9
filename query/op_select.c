/*
 * op_select.c: what comes from storage: instant vectors, and series of samples for range functions.
 *
 * Both walk the series of a selection (shared by equal selectors, plan.h) with a reader of their own.
 * An instant vector takes at each step the newest sample in (T - lookback, T]; a stale marker there
 * means the series has ended. In a range, stale markers are as if they were not there.
 * Labels are left to the reader until someone asks. One thread an operator.
 */
#include "query/source.h"

struct walk {
    struct reader *reader;
    size_t at, n;
};

static err walk_open(struct exec *x, const struct plan_node *node, struct walk *w)
{
    struct selection *s;
    TRY(exec_selection(x, node->window.select, &s));
    *w = (struct walk){.reader = reader_create(s), .n = selection_count(s)};
    return NULL;
}

/* The next series that has samples in the node's range, with its labels unresolved. */
static err walk_next(struct op *op, struct walk *w, struct samples *s, struct row *labels, bool *more)
{
    const struct plan_window *win = &op->node->window;
    while (w->at < w->n) {
        size_t i = w->at++;
        TRY(reader_samples(w->reader, i, win->select_min, win->select_max, s));
        TRY(budget_tick(op->x->budget, s->n));
        if (s->n == 0) continue;
        arena_reset(&op->scratch);
        op->x->series++;
        *labels = (struct row){.reader = w->reader, .series = i, .arena = &op->scratch};
        *more = true;
        return NULL;
    }
    *more = false;
    return NULL;
}

/* Decodes the histograms of s; floats get NULL. */
static err decode_hists(const struct samples *s, struct arena *a, struct hist ***out)
{
    struct hist **h = arena_zalloc(a, s->n * sizeof *h);
    for (size_t i = 0; i < s->n; i++) {
        if (s->hist[i].n == 0) continue;
        h[i] = arena_alloc(a, sizeof **h);
        TRY(hist_decode(s->hist[i], a, h[i]));
    }
    *out = h;
    return NULL;
}

/* ---- instant vectors ------------------------------------------------------------------------------- */

struct op_select {
    struct op op;
    struct walk walk;
    double *v;
    struct hist **h;
    bool timestamps; /* yield the samples' times instead of values: timestamp(selector) */
};

static void select_close(struct op *op)
{
    reader_destroy(((struct op_select *)op)->walk.reader);
}

/* The newest sample of each step into the columns. */
static void pick_newest(struct op_select *o, const struct samples *s, struct hist **hists)
{
    const struct plan_window *w = &o->op.node->window;
    const struct grid *g = &o->op.node->grid;
    double none = no_sample();
    size_t next = 0; /* first sample after the step */
    for (uint32_t i = 0; i < o->op.n; i++) {
        int64_t end = (w->has_at ? w->at : grid_time(g, i)) - w->offset;
        while (next < s->n && s->t[next] <= end)
            next++;
        bool in_reach = next > 0 && s->t[next - 1] > end - w->range && !is_stale_nan(s->v[next - 1]);
        o->v[i] = in_reach ? s->v[next - 1] : none;
        if (o->timestamps && in_reach) o->v[i] = (double)s->t[next - 1] / 1000;
        if (!hists || o->timestamps) continue;
        o->h[i] = in_reach ? hists[next - 1] : NULL;
        if (o->h[i]) o->v[i] = none;
    }
}

/* smoothed: the value at T on the line between its neighbours within lookback; the last value where none follows. */
static err pick_smoothed(struct op_select *o, const struct samples *s)
{
    const struct plan_window *w = &o->op.node->window;
    const struct grid *g = &o->op.node->grid;
    if (s->hist) return err_new(ERR_EXECUTION, "smoothed and anchored modifiers do not work with native histograms");
    size_t next = 0; /* first sample at or after the step */
    for (uint32_t i = 0; i < o->op.n; i++) {
        int64_t at = (w->has_at ? w->at : grid_time(g, i)) - w->offset;
        while (next < s->n && s->t[next] < at)
            next++;
        size_t after = next, before = next; /* `before` counts from 1 */
        while (after < s->n && is_stale_nan(s->v[after]))
            after++;
        while (before > 0 && is_stale_nan(s->v[before - 1]))
            before--;
        bool has_after = after < s->n && s->t[after] <= at + w->range;
        bool has_before = before > 0 && s->t[before - 1] > at - w->range;
        o->v[i] = no_sample();
        if (has_after && s->t[after] == at) {
            o->v[i] = s->v[after];
        } else if (has_before && has_after) {
            double y = s->v[before - 1], rise = s->v[after] - y;
            o->v[i] = y + rise * (double)(at - s->t[before - 1]) / (double)(s->t[after] - s->t[before - 1]);
        } else if (has_before) {
            o->v[i] = s->v[before - 1];
        }
    }
    return NULL;
}

static err select_next(struct op *op, struct row *row, bool *more)
{
    struct op_select *o = (struct op_select *)op;
    struct samples s;
    TRY(walk_next(op, &o->walk, &s, row, more));
    if (!*more) return NULL;
    row->v = o->v;
    if (op->node->window.smoothed) return pick_smoothed(o, &s);
    struct hist **hists = NULL;
    if (s.hist) {
        TRY(decode_hists(&s, &op->scratch, &hists));
        if (!o->h) o->h = arena_alloc(op->x->arena, (op->n + 1) * sizeof *o->h);
        row->h = o->timestamps ? NULL : o->h;
    }
    pick_newest(o, &s, hists);
    return NULL;
}

err op_select_open(struct exec *x, const struct plan_node *node, bool timestamps, struct op **out)
{
    struct op_select *o = op_new(x, node, sizeof *o, select_next, select_close);
    *out = &o->op;
    o->timestamps = timestamps;
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    return walk_open(x, node, &o->walk);
}

/* ---- series of samples ------------------------------------------------------------------------------ */

struct select_source {
    struct op op;
    struct source source;
    struct walk walk;
};

static void source_close(struct op *op)
{
    reader_destroy(((struct select_source *)op)->walk.reader);
}

static size_t count_stale(const double *v, size_t n)
{
    size_t stale = 0;
    for (size_t i = 0; i < n; i++)
        stale += is_stale_nan(v[i]);
    return stale;
}

/* Copies without the stale markers. */
static void drop_stale(struct series *s, struct arena *a)
{
    int64_t *t = arena_alloc(a, s->n * sizeof *t);
    double *v = arena_alloc(a, s->n * sizeof *v);
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (is_stale_nan(s->v[i])) continue;
        t[n] = s->t[i];
        v[n] = s->v[i];
        if (s->h) s->h[n] = s->h[i];
        n++;
    }
    s->t = t;
    s->v = v;
    s->n = n;
}

static err select_source_next(struct source *source, struct series *out, bool *more)
{
    struct select_source *o = (struct select_source *)source->op;
    struct samples s;
    do {
        TRY(walk_next(&o->op, &o->walk, &s, &out->labels, more));
        if (!*more) return NULL;
        out->t = s.t;
        out->v = s.v;
        out->n = s.n;
        out->h = NULL;
        if (s.hist) TRY(decode_hists(&s, &o->op.scratch, &out->h));
        if (count_stale(s.v, s.n)) drop_stale(out, &o->op.scratch);
    } while (out->n == 0);
    return NULL;
}

err source_select_open(struct exec *x, const struct plan_node *samples, struct source **out)
{
    struct select_source *o = op_new(x, samples, sizeof *o, NULL, source_close);
    o->source = (struct source){select_source_next, &o->op};
    *out = &o->source;
    return walk_open(x, samples, &o->walk);
}

err source_open(struct exec *x, const struct plan_node *samples, struct source **out)
{
    return samples->window.inner ? source_subquery_open(x, samples, out) : source_select_open(x, samples, out);
}
