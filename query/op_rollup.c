/*
 * op_rollup.c: a range function over each series of a source, all steps of a series at once.
 *
 * For each series: the window of every step as two indexes (taken over from the series before if that
 * had the same timestamps, as series of one scrape target do), then the function's kernel (rollup.c).
 * Series with histograms go window by window (rollup_hist.c). A single long window may come as a
 * digest, for which storage decoded next to nothing (runs.c).
 */
#include "query/rollup_hist.h"

#include "storage/base/alloc.h"

#define LONG_SERIES 1024 /* samples: functions may have ended early, see rollup_must_end */

struct op_rollup {
    struct op op;
    struct source *source;
    enum rollup_code code;
    rollup_fn fn, started_fn; /* started_fn: for series with start timestamps */
    bool overlaps;            /* of the series at hand: see rollup_in */
    struct rollup_in in;      /* what is the same for all series */
    uint32_t *lo, *hi;
    int64_t *t; /* timestamps that lo and hi were made for; heap */
    size_t t_n, t_cap;
    struct rate_time *times; /* of the same; NULL if the function is no rate */
    double *v;
    struct hist **h; /* made when the first histogram comes */
    struct rollup_scratch scratch;
    bool counter_checked; /* all series have the name that was checked */
    bool params_checked;
};

static void rollup_close(struct op *op)
{
    struct op_rollup *o = (struct op_rollup *)op;
    rollup_scratch_deinit(&o->scratch);
    mem_free(o->t);
}

static const struct plan_window *window_of(const struct op_rollup *o)
{
    return &plan_samples_of(o->op.node)->window;
}

/* Series of one target share their timestamps, so the windows found last are often the windows wanted. */
static void find_windows(struct op_rollup *o, const struct series *s)
{
    if (s->n == o->t_n && s->n > 0 && memcmp(s->t, o->t, s->n * sizeof *s->t) == 0) return;
    const struct plan_window *w = window_of(o);
    int64_t lookback = o->op.x->plan->lookback;
    int64_t left = w->range + (w->anchored || w->smoothed ? lookback : 0);
    rollup_windows(s->t, s->n, o->in.end, o->in.end_step, left, w->smoothed ? lookback : 0, o->op.n, o->lo, o->hi);
    if (s->n > o->t_cap) o->t = mem_grow(o->t, &o->t_cap, s->n, sizeof *o->t);
    memcpy(o->t, s->t, s->n * sizeof *s->t);
    o->t_n = s->n;
    if (!o->times) return;
    o->in.t = s->t;
    rollup_rate_times(&o->in, o->code == ROLLUP_RATE, o->times);
}

static bool looks_like_counter(str name)
{
    static const char *const ENDS[] = {"_total", "_sum", "_count", "_bucket"};
    for (size_t i = 0; i < ARRAY_LEN(ENDS); i++) {
        str end = str_of(ENDS[i]);
        if (name.n >= end.n && memcmp(name.p + name.n - end.n, end.p, end.n) == 0) return true;
    }
    return name.n == 0;
}

/* rate() and increase() of what does not look like a counter deserve a note. */
static err check_counter(struct op_rollup *o, struct row *row)
{
    if (o->counter_checked) return NULL;
    const struct plan_select *select = window_of(o)->select;
    str name = select ? select->name : (str){0};
    o->counter_checked = name.n > 0;
    if (name.n == 0) TRY(row_name(row, &name));
    bool any = false;
    for (uint32_t i = 0; i < o->op.n && !any; i++)
        any = !is_stale_nan(o->v[i]);
    if (!any)
        o->counter_checked = false;
    else if (!looks_like_counter(name))
        notes_add(o->op.x->notes, NOTE_INFO, plan_samples_of(o->op.node)->expr->start,
                  "metric might not be a counter, name does not end in _total/_sum/_count/_bucket: \"%.*s\"",
                  STR_ARG(name));
    return NULL;
}

static err roll_mixed(struct op_rollup *o, struct series *s)
{
    if (!o->h) o->h = arena_zalloc(o->op.x->arena, (o->op.n + 1) * sizeof *o->h);
    struct rollup_notes notes = {
        .notes = o->op.x->notes, .at = plan_samples_of(o->op.node)->expr->start, .labels = &s->labels};
    arena_reset(&o->op.scratch);
    return rollup_mixed(o->code, &o->in, s, &notes, &o->op.scratch, o->v, o->h);
}

static err note_overlap(struct op_rollup *o, struct row *row)
{
    str name;
    TRY(row_name(row, &name));
    notes_add(o->op.x->notes, NOTE_WARNING, plan_samples_of(o->op.node)->expr->start,
              "sample has start time that overlaps with previous sample timestamp for metric \"%.*s\"", STR_ARG(name));
    return NULL;
}

/* Quantiles outside [0, 1] are allowed but worth a note where they are applied. */
static void check_quantiles(struct op_rollup *o)
{
    const double *q = o->in.param[0];
    for (uint32_t i = 0; i < o->op.n && !o->params_checked; i++) {
        if (is_stale_nan(o->v[i]) || (q[i] >= 0 && q[i] <= 1)) continue;
        note_bad_quantile(o->op.x->notes, plan_samples_of(o->op.node)->expr->start, q[i]);
        o->params_checked = true;
    }
}

static err check_factors(struct op_rollup *o)
{
    const double *p0 = o->in.param[0], *p1 = o->in.param[1];
    for (uint32_t i = 0; i < o->op.n && !o->params_checked; i++) {
        if (p0[i] <= 0 || p0[i] >= 1)
            return err_new(ERR_EXECUTION, "invalid smoothing factor. Expected: 0 < sf < 1, got: %f", p0[i]);
        if (p1[i] <= 0 || p1[i] >= 1)
            return err_new(ERR_EXECUTION, "invalid trend factor. Expected: 0 < tf < 1, got: %f", p1[i]);
    }
    o->params_checked = true;
    return NULL;
}

/* All steps of a series. */
static err roll(struct op_rollup *o, struct series *s)
{
    if (s->digest) { /* then there is one step */
        o->v[0] = digest_value(s->digest, o->code, o->in.end - o->in.range, o->in.end);
        return NULL;
    }
    find_windows(o, s);
    o->in.t = s->t;
    o->in.v = s->v;
    o->in.n = s->n;
    o->in.start = s->start;
    o->overlaps = false;
    if (s->h) return roll_mixed(o, s);
    (s->start ? o->started_fn : o->fn)(&o->in, o->v);
    if (s->n >= LONG_SERIES) TRY(budget_check(o->op.x->budget));
    return o->overlaps ? note_overlap(o, &s->labels) : NULL;
}

static err rollup_next(struct op *op, struct row *row, bool *more)
{
    struct op_rollup *o = (struct op_rollup *)op;
    struct series s;
    TRY(source_next(o->source, &s, more));
    if (!*more) return NULL;
    TRY(roll(o, &s));
    if (o->code == ROLLUP_RATE || o->code == ROLLUP_INCREASE) TRY(check_counter(o, &s.labels));
    if (o->code == ROLLUP_QUANTILE) check_quantiles(o);
    if (o->code == ROLLUP_DOUBLE_EXPONENTIAL) TRY(check_factors(o));
    *row = s.labels;
    row->v = o->v;
    row->h = s.h ? o->h : NULL;
    row->drop_name = row->drop_name || !rollup_keeps_name(o->code);
    return NULL;
}

err op_rollup_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_rollup *o = op_new(x, node, sizeof *o, rollup_next, rollup_close);
    *out = &o->op;
    const struct plan_window *w = window_of(o);
    o->code = (enum rollup_code)node->fn->code;
    o->fn = rollup_function(o->code);
    o->started_fn = rollup_started_function(o->code, w->anchored || w->smoothed);
    o->lo = arena_alloc(x->arena, (o->op.n + 1) * sizeof *o->lo);
    o->hi = arena_alloc(x->arena, (o->op.n + 1) * sizeof *o->hi);
    o->in = (struct rollup_in){.lo = o->lo,
                               .hi = o->hi,
                               .n_steps = o->op.n,
                               .end = (w->has_at ? w->at : node->grid.start) - w->offset,
                               .end_step = w->has_at ? 0 : node->grid.step,
                               .range = w->range,
                               .grid = node->grid,
                               .anchored = w->anchored,
                               .smoothed = w->smoothed,
                               .overlaps = &o->overlaps,
                               .scratch = &o->scratch,
                               .budget = x->budget};
    bool rates = o->code == ROLLUP_RATE || o->code == ROLLUP_INCREASE || o->code == ROLLUP_DELTA;
    if (rates && !w->anchored && !w->smoothed)
        o->in.times = o->times = arena_alloc(x->arena, (o->op.n + 1) * sizeof *o->times);
    for (uint32_t i = 1; i < node->n_kids && i <= 2; i++) {
        double *column;
        TRY(exec_column(x, node->kids[i], &column));
        o->in.param[i - 1] = column;
    }
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    return source_open(x, plan_samples_of(node), digest_serves(o->code), &o->source);
}
