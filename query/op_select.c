/*
 * op_select.c: what comes from storage: instant vectors, and series of samples for range functions.
 *
 * Both walk the series of a selection (shared by equal selectors, plan.h) with a reader of their own.
 * An instant vector takes at each step the newest sample in (T - lookback, T]; a stale marker there
 * means the series has ended. In a range, stale markers are as if they were not there.
 * Labels are left to the reader until someone asks. One thread an operator.
 */
#include "query/runs.h"
#include "query/source.h"
#include "query/tally.h"

struct walk {
    struct reader *reader;
    size_t at, n;
};

static err walk_open(struct exec *x, const struct plan_node *node, struct walk *w)
{
    struct selection *s;
    TRY(exec_selection(x, node->window.select, &s));
    uint64_t n = selection_count(s);
    *w = (struct walk){.reader = reader_create(s), .at = n * x->slice.i / x->slice.n};
    w->n = n * (x->slice.i + 1) / x->slice.n;
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
        if (__builtin_expect(op->x->timed, 0)) reader_stats(w->reader, &op->samples, &op->bytes);
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

/* Hints that were not sent, found by comparing neighbours: what Prometheus does where only counts and sums matter. */
static void find_hints(struct hist **h, size_t n, struct arena *a)
{
    const struct hist *previous = NULL;
    for (size_t i = 0; i < n; i++) {
        if (!h[i]) continue;
        const struct hist *now = h[i];
        if (previous && now->reset_hint == HIST_RESET_UNKNOWN) {
            struct hist *hinted = arena_dup(a, now, sizeof *now);
            hinted->reset_hint = hist_detect_reset(now, previous, a) ? HIST_RESET_YES : HIST_RESET_NO;
            h[i] = hinted;
        }
        previous = now;
    }
}

/* Decodes the histograms of s; floats get NULL. */
static err decode_hists(const struct plan_node *node, const struct samples *s, struct arena *a, struct hist ***out)
{
    struct hist **h = arena_zalloc(a, s->n * sizeof(struct hist *));
    for (size_t i = 0; i < s->n; i++) {
        if (s->hist[i].n == 0) continue;
        h[i] = arena_alloc(a, sizeof(struct hist));
        TRY(hist_decode(s->hist[i], a, h[i]));
    }
    if (node->window.find_hints) find_hints(h, s->n, a);
    *out = h;
    return NULL;
}

/* ---- instant vectors ------------------------------------------------------------------------------- */

struct op_select {
    struct op op;
    struct walk walk;
    double *v;
    struct hist **h;
    enum select_yield yield;
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
        if (o->yield == SELECT_TIMES && in_reach) o->v[i] = (double)s->t[next - 1] / 1000;
        if (o->yield == SELECT_STARTS && in_reach) o->v[i] = s->start ? (double)s->start[next - 1] / 1000 : 0;
        if (!hists || o->yield != SELECT_VALUES) continue;
        o->h[i] = in_reach ? hists[next - 1] : NULL;
        if (o->h[i]) o->v[i] = none;
    }
}

/* The neighbours of a step within lookback: before (from 1, 0 = none) and at or after it (n = none). */
struct neighbours {
    size_t before, after;
    bool mixed; /* floats and histograms among all samples within lookback */
};

static struct neighbours neighbours_of(const struct samples *s, struct hist **hists, size_t next, int64_t at,
                                       int64_t lookback)
{
    struct neighbours n = {0, s->n, false};
    size_t floats = 0, others = 0;
    for (size_t k = next; k > 0 && s->t[k - 1] > at - lookback; k--) {
        if (is_stale_nan(s->v[k - 1])) continue;
        if (!n.before) n.before = k;
        *(hists && hists[k - 1] ? &others : &floats) += 1;
    }
    for (size_t k = next; k < s->n && s->t[k] <= at + lookback; k++) {
        if (is_stale_nan(s->v[k])) continue;
        if (n.after == s->n) n.after = k;
        *(hists && hists[k] ? &others : &floats) += 1;
    }
    n.mixed = floats > 0 && others > 0;
    return n;
}

/* The value on the line between two samples; a histogram that is a counter starts anew at a reset. */
static err between(struct op_select *o, const struct samples *s, struct hist **hists, const struct neighbours *n,
                   int64_t at, uint32_t i, struct row *row)
{
    size_t x = n->before - 1, y = n->after;
    double fraction = (double)(at - s->t[x]) / (double)(s->t[y] - s->t[x]);
    if (!hists || !hists[x]) {
        o->v[i] = s->v[x] + (s->v[y] - s->v[x]) * (double)(at - s->t[x]) / (double)(s->t[y] - s->t[x]);
        return NULL;
    }
    bool counter = hists[x]->reset_hint != HIST_RESET_GAUGE && hists[y]->reset_hint != HIST_RESET_GAUGE;
    o->h[i] = hist_between(hists[x], hists[y], fraction, counter, &o->op.scratch);
    if (o->h[i]) return NULL;
    str name;
    TRY(row_name(row, &name));
    note_mixed_schemas(o->op.x->notes, o->op.node->expr->start, name);
    return NULL;
}

/* smoothed: the value at T on the line between its neighbours within lookback; the last value where none follows. */
static err pick_smoothed(struct op_select *o, const struct samples *s, struct hist **hists, struct row *row)
{
    const struct plan_window *w = &o->op.node->window;
    size_t next = 0; /* first sample at or after the step */
    for (uint32_t i = 0; i < o->op.n; i++) {
        int64_t at = (w->has_at ? w->at : grid_time(&o->op.node->grid, i)) - w->offset;
        while (next < s->n && s->t[next] < at)
            next++;
        o->v[i] = no_sample();
        if (hists) o->h[i] = NULL;
        struct neighbours n = neighbours_of(s, hists, next, at, w->range);
        bool exact = n.after < s->n && s->t[n.after] == at;
        if (n.mixed) {
            str name;
            TRY(row_name(row, &name));
            note_mixed_range(o->op.x->notes, o->op.node->expr->start, name);
        } else if (!exact && n.before && n.after < s->n) {
            TRY(between(o, s, hists, &n, at, i, row));
        } else if (exact || n.before) {
            size_t k = exact ? n.after : n.before - 1;
            if (hists && hists[k])
                o->h[i] = hists[k];
            else
                o->v[i] = s->v[k];
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
    struct hist **hists = NULL;
    if (s.hist) {
        TRY(decode_hists(op->node, &s, &op->scratch, &hists));
        if (!o->h) o->h = arena_zalloc(op->x->arena, (op->n + 1) * sizeof *o->h);
        row->h = o->h;
    }
    if (op->node->window.smoothed)
        TRY(pick_smoothed(o, &s, hists, row));
    else
        pick_newest(o, &s, hists);
    if (__builtin_expect(op->node->counted, 0)) tally_row(op->x, op->node, o->v, row->h, op->n);
    return NULL;
}

err op_select_open(struct exec *x, const struct plan_node *node, enum select_yield yield, struct op **out)
{
    struct op_select *o = op_new(x, node, sizeof *o, select_next, select_close);
    *out = &o->op;
    o->yield = yield;
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    return walk_open(x, node, &o->walk);
}

/* ---- series of samples ------------------------------------------------------------------------------ */

struct select_source {
    struct op op;
    struct source source;
    struct walk walk;
    bool digests; /* one long window: try to sum it up without its samples */
    struct runs runs;
};

static void source_close(struct op *op)
{
    struct select_source *o = (struct select_source *)op;
    reader_destroy(o->walk.reader);
    runs_deinit(&o->runs);
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
    int64_t *start = s->start ? arena_alloc(a, s->n * sizeof *start) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (is_stale_nan(s->v[i])) continue;
        t[n] = s->t[i];
        v[n] = s->v[i];
        if (s->h) s->h[n] = s->h[i];
        if (start) start[n] = s->start[i];
        n++;
    }
    s->t = t;
    s->v = v;
    s->start = start;
    s->n = n;
}

/* The next series as a digest; *found false if there is none, or if its samples are needed. */
static err next_digest(struct select_source *o, struct series *out, bool *found)
{
    const struct plan_window *w = &o->op.node->window;
    struct walk *walk = &o->walk;
    for (; walk->at < walk->n; walk->at++) {
        TRY(runs_digest(&o->runs, walk->reader, walk->at, w->select_min, w->select_max, found));
        if (!*found) return NULL;
        TRY(budget_tick(o->op.x->budget, 0));
        if (__builtin_expect(o->op.x->timed, 0)) reader_stats(walk->reader, &o->op.samples, &o->op.bytes);
        if (o->runs.digest.n == 0) continue;
        arena_reset(&o->op.scratch);
        o->op.x->series++;
        *out = (struct series){.digest = &o->runs.digest};
        out->labels = (struct row){.reader = walk->reader, .series = walk->at++, .arena = &o->op.scratch};
        return NULL;
    }
    *found = false;
    return NULL;
}

static err select_source_next(struct source *source, struct series *out, bool *more)
{
    struct select_source *o = (struct select_source *)source->op;
    struct samples s;
    do {
        *more = false;
        if (o->digests) TRY(next_digest(o, out, more));
        if (*more) return NULL;
        TRY(walk_next(&o->op, &o->walk, &s, &out->labels, more));
        if (!*more) return NULL;
        out->digest = NULL;
        out->t = s.t;
        out->v = s.v;
        out->n = s.n;
        out->start = s.start;
        out->h = NULL;
        if (s.hist) TRY(decode_hists(o->op.node, &s, &o->op.scratch, &out->h));
        if (count_stale(s.v, s.n)) drop_stale(out, &o->op.scratch);
    } while (out->n == 0);
    return NULL;
}

err source_select_open(struct exec *x, const struct plan_node *samples, bool digests, struct source **out)
{
    struct select_source *o = op_new(x, samples, sizeof *o, NULL, source_close);
    const struct plan_window *w = &samples->window;
    o->digests = digests && samples->grid.n == 1 && w->range >= RUNS_RANGE_MIN_MS && !w->anchored && !w->smoothed;
    o->runs.budget = x->budget;
    o->source = (struct source){select_source_next, &o->op};
    *out = &o->source;
    return walk_open(x, samples, &o->walk);
}

err source_next(struct source *s, struct series *out, bool *more)
{
    struct op *op = s->op;
    struct env *env = env_posix();
    uint64_t began = op->x->timed ? env->ops->mono_ns(env) : 0;
    TRY(s->next(s, out, more));
    if (op->x->timed) op->ns += env->ops->mono_ns(env) - began;
    op->rows += *more;
    if (*more && op->node->counted) tally_series(op->x, op->node, out);
    return NULL;
}

err source_open(struct exec *x, const struct plan_node *samples, bool digests, struct source **out)
{
    return samples->window.inner ? source_subquery_open(x, samples, out) : source_select_open(x, samples, digests, out);
}
