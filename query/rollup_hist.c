/*
 * rollup_hist.c: range functions over series that hold native histograms, alone or beside floats.
 *
 * Window by window: such series are few, and adding histograms costs far more than finding the window.
 * A series is split once into its floats and its histograms; a window is a range of each. What a
 * function makes of a mix is the function's own matter (Prometheus documentation, "functions"): some
 * refuse it with a warning, some ignore the histograms with an info, some take both.
 */
#include "query/rollup_hist.h"

#define HIST_WORK 64 /* a histogram costs about as much as so many floats */

#include <math.h>

struct mixed {
    enum rollup_code code;
    const struct rollup_in *in;
    const struct rollup_notes *notes;
    struct arena *keep; /* what lives as long as the row */
    struct arena *a;    /* scratch of one window */
    /* the series */
    const struct series *s;
    int64_t *ft, *ht;
    int64_t *fs, *hs; /* start timestamps; NULL: there are none */
    double *fv;
    struct hist **hh;
    uint32_t *floats_before; /* [k]: floats among the first k samples */
    /* the window */
    uint32_t step, lo, hi; /* of all samples */
    uint32_t f, nf, h, nh; /* first and number of floats and of histograms */
    /* its result */
    double v;
    struct hist *result;
};

static str metric_of(const struct mixed *m)
{
    str name = {0};
    err e = row_name(m->notes->labels, &name);
    err_free(e);
    return name;
}

static bool is_reset_hint(const struct hist *h, enum hist_reset hint)
{
    return h->reset_hint == hint;
}

static void note_kinds(struct mixed *m, const struct hist *h, bool counter)
{
    if (counter && is_reset_hint(h, HIST_RESET_GAUGE)) note_not_counter(m->notes->notes, m->notes->at, metric_of(m));
}

/* ---- rates ----------------------------------------------------------------------------------------------- */

static err refuse_schemas(struct mixed *m)
{
    note_mixed_schemas(m->notes->notes, m->notes->at, metric_of(m));
    return NULL;
}

static void note_reconciled(struct mixed *m, struct hist_outcome o, const char *operation)
{
    if (o.reconciled) note_bounds_reconciled(m->notes->notes, m->notes->at, operation);
}

/* Histogram k is that of another counter than the one before it, as start timestamps tell. */
static bool starts_anew(const struct mixed *m, uint32_t k)
{
    return m->hs && start_is_reset((struct started){m->hs[k - 1], m->ht[k - 1]}, (struct started){m->hs[k], m->ht[k]});
}

static void look_for_overlap(const struct mixed *m, uint32_t k)
{
    if (!m->hs) return;
    *m->in->overlaps |=
        start_overlaps((struct started){m->hs[k - 1], m->ht[k - 1]}, (struct started){m->hs[k], m->ht[k]});
}

/* What counts as the first histogram: nothing but its layout if a reset follows it at once. */
static const struct hist *first_of(struct mixed *m, struct hist **h, bool counter)
{
    if (!counter || !(starts_anew(m, m->h + 1) || hist_detect_reset(h[1], h[0], m->a))) return h[0];
    struct hist *empty = arena_zalloc(m->a, sizeof *empty);
    empty->schema = h[1]->schema;
    empty->custom = h[1]->custom;
    empty->n_custom = h[1]->n_custom;
    return empty;
}

/* last - first, plus what was lost in resets; *out stays NULL if there is no answer. */
static err increase_of(struct mixed *m, bool counter, struct hist **out)
{
    struct hist **h = m->hh + m->h;
    uint32_t n = m->nh;
    const struct hist *first = first_of(m, h, counter), *last = h[n - 1];
    note_kinds(m, h[0], counter);
    note_kinds(m, last, counter);
    if (hist_is_custom(last) != hist_is_custom(first)) return refuse_schemas(m);
    int32_t schema = last->schema < first->schema ? last->schema : first->schema;
    for (uint32_t i = 1; counter && i + 1 < n; i++) {
        note_kinds(m, h[i], counter);
        if (hist_is_custom(h[i]) != hist_is_custom(first)) return refuse_schemas(m);
        if (h[i]->schema < schema) schema = h[i]->schema;
    }
    struct hist *sum = hist_to_schema(last, schema, m->a);
    note_reconciled(m, hist_sub(sum, first, m->a), "subtraction");
    const struct hist *prev = first;
    for (uint32_t i = 1; counter && i < n; i++) {
        look_for_overlap(m, m->h + i);
        if (starts_anew(m, m->h + i) || hist_detect_reset(h[i], prev, m->a))
            note_reconciled(m, hist_add(sum, prev, m->a), "addition");
        prev = h[i];
    }
    if (!counter && (!is_reset_hint(h[0], HIST_RESET_GAUGE) || !is_reset_hint(last, HIST_RESET_GAUGE)))
        note_not_gauge(m->notes->notes, m->notes->at, metric_of(m));
    sum->reset_hint = HIST_RESET_GAUGE;
    hist_compact(sum, m->a);
    *out = sum;
    return NULL;
}

/* The last sample of the window at or before `start`, or its first. */
static uint32_t anchor_of(const int64_t *t, uint32_t from, uint32_t to, int64_t start)
{
    uint32_t at = from;
    while (at + 1 < to && t[at + 1] <= start)
        at++;
    return at;
}

static struct hist *value_between(struct mixed *m, uint32_t k, int64_t at, bool counter)
{
    double fraction = (double)(at - m->ht[k]) / (double)(m->ht[k + 1] - m->ht[k]);
    return hist_between(m->hh[k], m->hh[k + 1], fraction, counter, m->a);
}

/*
 * Anchored and smoothed: from the value at the window's start (the last sample before it, or what lies between its
 * neighbours) to the value at its end, plus what resets between the samples took away. A reset between the neighbours
 * of the start is already in the value there.
 */
static err extended_hist_rate(struct mixed *m)
{
    int64_t end = m->in->end + (int64_t)m->step * m->in->end_step, start = end - m->in->range;
    bool counter = m->code != ROLLUP_DELTA, smoothed = m->in->smoothed;
    uint32_t lo = m->h, hi = m->h + m->nh, last = hi - 1;
    uint32_t first = anchor_of(m->ht, lo, last > lo ? last : hi, start);
    if (smoothed)
        for (last = lo; last < hi - 1 && m->ht[last] < end;)
            last++;
    if (m->ht[last] <= start || m->ht[first] > end) return NULL;
    bool left_between = smoothed && m->ht[first] < start, right_between = smoothed && last > lo && m->ht[last] > end;
    struct hist *left = left_between ? value_between(m, first, start, counter) : m->hh[first];
    struct hist *right = right_between ? value_between(m, last - 1, end, counter) : hist_copy(m->a, m->hh[last]);
    if (!left || !right || hist_sub(right, left, m->a).incompatible) return refuse_schemas(m);
    for (uint32_t k = first; k <= last; k++)
        note_kinds(m, m->hh[k], counter);
    for (uint32_t k = first + left_between; counter && k < last; k++) {
        if (!hist_detect_reset(m->hh[k + 1], m->hh[k], m->a)) continue;
        if (hist_add(right, m->hh[k], m->a).incompatible) return refuse_schemas(m);
    }
    if (!counter && (!is_reset_hint(m->hh[first], HIST_RESET_GAUGE) || !is_reset_hint(m->hh[last], HIST_RESET_GAUGE)))
        note_not_gauge(m->notes->notes, m->notes->at, metric_of(m));
    right->reset_hint = HIST_RESET_GAUGE;
    hist_compact(right, m->a);
    if (m->code == ROLLUP_RATE) hist_div(right, (double)m->in->range / 1000);
    m->result = right;
    return NULL;
}

/* The counter began within the window: nothing is to be guessed in front, and the first sample counts as a whole. */
static err hist_rate_begun(struct mixed *m, const struct rate_span *span, struct hist *sum)
{
    const struct hist *first = m->hh[m->h];
    if (!sum) {
        sum = hist_copy(m->a, first);
    } else {
        struct hist_outcome o = hist_add(sum, first, m->a);
        if (o.incompatible) return refuse_schemas(m);
        note_reconciled(m, o, "addition");
    }
    hist_mul(sum, rate_factor_begun(span, m->hs[m->h], m->code == ROLLUP_RATE));
    m->result = sum;
    return NULL;
}

static err hist_rate(struct mixed *m)
{
    bool counter = m->code != ROLLUP_DELTA;
    struct hist *sum = NULL;
    if (m->in->anchored || m->in->smoothed) return extended_hist_rate(m);
    int64_t end = m->in->end + (int64_t)m->step * m->in->end_step;
    struct rate_span span = {m->ht[m->h], m->ht[m->h + m->nh - 1], m->nh, end - m->in->range, end};
    bool begun = counter && m->hs && start_is_within((struct started){m->hs[m->h], span.first}, span.start);
    if (m->nh < 2 && !begun) return NULL;
    if (m->nh > 1) {
        TRY(increase_of(m, counter, &sum));
        if (!sum) return NULL;
    }
    if (begun) return hist_rate_begun(m, &span, sum);
    hist_mul(sum, rate_factor(&span, m->hh[m->h]->count, sum->count, counter, m->code == ROLLUP_RATE));
    m->result = sum;
    return NULL;
}

/* Sample k of the series, of whatever kind, is of another counter than the one before it. */
static bool sample_starts_anew(const struct mixed *m, uint32_t k)
{
    const int64_t *start = m->s->start, *t = m->s->t;
    return start && start_is_reset((struct started){start[k - 1], t[k - 1]}, (struct started){start[k], t[k]});
}

static void last_two_floats(struct mixed *m)
{
    uint32_t lo = m->hi - 2, hi = m->hi;
    struct rollup_in in = *m->in;
    in.t = m->s->t;
    in.v = m->s->v;
    in.lo = &lo;
    in.hi = &hi;
    in.n_steps = 1;
    in.times = NULL;
    (in.start ? rollup_started_function(m->code, false) : rollup_function(m->code))(&in, &m->v);
}

/* irate, idelta: the last two samples, whatever they are. */
static err instant_rate(struct mixed *m)
{
    if (m->hi - m->lo < 2) return NULL;
    struct hist *x = m->s->h[m->hi - 2], *y = m->s->h[m->hi - 1];
    bool rate = m->code == ROLLUP_IRATE;
    if (!x != !y) {
        note_mixed_range(m->notes->notes, m->notes->at, metric_of(m));
        return NULL;
    }
    if (!x) {
        last_two_floats(m);
        return NULL;
    }
    bool gauges = is_reset_hint(x, HIST_RESET_GAUGE) && is_reset_hint(y, HIST_RESET_GAUGE);
    bool any_gauge = is_reset_hint(x, HIST_RESET_GAUGE) || is_reset_hint(y, HIST_RESET_GAUGE);
    if (rate && any_gauge) note_not_counter(m->notes->notes, m->notes->at, metric_of(m));
    if (!rate && !gauges) note_not_gauge(m->notes->notes, m->notes->at, metric_of(m));
    struct hist *result = hist_copy(m->a, y);
    if (!rate || !(sample_starts_anew(m, m->hi - 1) || hist_detect_reset(y, x, m->a))) {
        struct hist_outcome o = hist_sub(result, x, m->a);
        if (o.incompatible) return refuse_schemas(m);
        note_reconciled(m, o, "subtraction");
    }
    result->reset_hint = HIST_RESET_GAUGE;
    hist_compact(result, m->a);
    if (rate) hist_div(result, (double)(m->s->t[m->hi - 1] - m->s->t[m->hi - 2]) / 1000);
    m->result = result;
    return NULL;
}

/* ---- sums --------------------------------------------------------------------------------------------------- */

static err sum_window(struct mixed *m)
{
    struct hist_sum sum = {.mean = m->code == ROLLUP_AVG};
    for (uint32_t i = 0; i < m->nh; i++)
        hist_sum_add(&sum, m->hh[m->h + i], m->a);
    if (sum.reset && sum.no_reset) note_reset_collision(m->notes->notes, m->notes->at, "aggregation");
    if (sum.reconciled) note_bounds_reconciled(m->notes->notes, m->notes->at, "aggregation");
    if (sum.incompatible) return refuse_schemas(m);
    m->result = hist_sum_take(&sum, m->a);
    return NULL;
}

/* ---- the rest ------------------------------------------------------------------------------------------------- */

/* The float function over the window's floats. */
static void floats_only(struct mixed *m)
{
    struct rollup_in in = *m->in;
    uint32_t lo = m->f, hi = m->f + m->nf;
    in.t = m->ft;
    in.v = m->fv;
    in.start = m->fs;
    in.n = hi;
    in.lo = &lo;
    in.hi = &hi;
    in.n_steps = 1;
    in.end += (int64_t)m->step * in.end_step;
    in.grid.start = grid_time(&in.grid, m->step);
    for (size_t i = 0; i < ARRAY_LEN(in.param); i++)
        if (in.param[i]) in.param[i] += m->step;
    bool extended = in.anchored || in.smoothed;
    (in.start ? rollup_started_function(m->code, extended) : rollup_function(m->code))(&in, &m->v);
}

static bool differs(const struct mixed *m, uint32_t k)
{
    struct hist *x = m->s->h[k - 1], *y = m->s->h[k];
    if (!x != !y) return true;
    if (m->code == ROLLUP_RESETS && sample_starts_anew(m, k)) return true;
    if (x) return m->code == ROLLUP_RESETS ? hist_detect_reset(y, x, m->a) : !hist_equal(y, x);
    double a = m->s->v[k - 1], b = m->s->v[k];
    return m->code == ROLLUP_RESETS ? b < a : b != a && !(isnan(a) && isnan(b));
}

static void transitions(struct mixed *m)
{
    uint32_t lo = m->lo;
    if (m->in->anchored) {
        int64_t start = m->in->end + (int64_t)m->step * m->in->end_step - m->in->range;
        if (m->s->t[m->hi - 1] <= start) return;
        lo = anchor_of(m->s->t, lo, m->hi - 1 > lo ? m->hi - 1 : m->hi, start);
    }
    m->v = 0;
    for (uint32_t k = lo + 1; k < m->hi; k++)
        m->v += differs(m, k);
}

/* first_over_time, last_over_time */
static void pick(struct mixed *m, uint32_t k)
{
    if (m->s->h[k])
        m->result = hist_copy(m->a, m->s->h[k]);
    else
        m->v = m->s->v[k];
}

/* Functions of floats alone: histograms beside them are ignored, which is said. */
static void ignore_hists(struct mixed *m)
{
    if (m->nf > 0 && m->nh > 0) note_ignored_in_range(m->notes->notes, m->notes->at, metric_of(m));
    if (m->nf > 0) floats_only(m);
}

static err refuse_mix(struct mixed *m, err (*of_hists)(struct mixed *))
{
    if (m->nf > 0 && m->nh > 0) {
        note_mixed_range(m->notes->notes, m->notes->at, metric_of(m));
        return NULL;
    }
    if (m->nh > 0) return of_hists(m);
    floats_only(m);
    return NULL;
}

static err roll_window(struct mixed *m)
{
    switch (m->code) {
    case ROLLUP_RATE:
    case ROLLUP_INCREASE:
    case ROLLUP_DELTA:
        return refuse_mix(m, hist_rate);
    case ROLLUP_SUM:
    case ROLLUP_AVG:
        return refuse_mix(m, sum_window);
    case ROLLUP_IRATE:
    case ROLLUP_IDELTA:
        return instant_rate(m);
    case ROLLUP_CHANGES:
    case ROLLUP_RESETS:
        transitions(m);
        return NULL;
    case ROLLUP_COUNT:
        m->v = m->hi - m->lo;
        return NULL;
    case ROLLUP_PRESENT:
        m->v = 1;
        return NULL;
    case ROLLUP_FIRST:
        pick(m, m->lo);
        return NULL;
    case ROLLUP_LAST:
        pick(m, m->hi - 1);
        return NULL;
    case ROLLUP_TS_OF_FIRST:
        m->v = (double)m->s->t[m->lo] / 1000;
        return NULL;
    case ROLLUP_TS_OF_LAST:
        m->v = (double)m->s->t[m->hi - 1] / 1000;
        return NULL;
    default:
        ignore_hists(m);
        return NULL;
    }
}

static void split(struct mixed *m)
{
    size_t n = m->s->n;
    m->ft = arena_alloc(m->keep, (n + 1) * sizeof *m->ft);
    m->ht = arena_alloc(m->keep, (n + 1) * sizeof *m->ht);
    m->fv = arena_alloc(m->keep, (n + 1) * sizeof *m->fv);
    m->hh = arena_alloc(m->keep, (n + 1) * sizeof *m->hh);
    m->floats_before = arena_alloc(m->keep, (n + 1) * sizeof *m->floats_before);
    const int64_t *start = m->s->start;
    if (start) {
        m->fs = arena_alloc(m->keep, (n + 1) * sizeof *m->fs);
        m->hs = arena_alloc(m->keep, (n + 1) * sizeof *m->hs);
    }
    uint32_t floats = 0;
    for (size_t k = 0; k < n; k++) {
        m->floats_before[k] = floats;
        if (m->s->h[k]) {
            m->hh[k - floats] = m->s->h[k];
            m->ht[k - floats] = m->s->t[k];
            if (start) m->hs[k - floats] = start[k];
        } else {
            if (start) m->fs[floats] = start[k];
            m->fv[floats] = m->s->v[k];
            m->ft[floats++] = m->s->t[k];
        }
    }
    m->floats_before[n] = floats;
}

err rollup_mixed(enum rollup_code code, const struct rollup_in *in, const struct series *s,
                 const struct rollup_notes *notes, struct arena *a, double *out, struct hist **hists)
{
    struct arena scratch = {0};
    struct mixed m = {.code = code, .in = in, .notes = notes, .keep = a, .a = &scratch, .s = s};
    err e = NULL;
    uint64_t work = 0;
    split(&m);
    for (uint32_t i = 0; i < in->n_steps; i++) {
        if (rollup_must_end(in, &work, HIST_WORK * (in->hi[i] - in->lo[i]))) TRY_OUT(budget_check(in->budget));
        m.step = i;
        m.lo = in->lo[i];
        m.hi = in->hi[i];
        m.f = m.floats_before[m.lo];
        m.nf = m.floats_before[m.hi] - m.f;
        m.h = m.lo - m.f;
        m.nh = m.hi - m.lo - m.nf;
        m.v = no_sample();
        m.result = NULL;
        if (m.hi > m.lo) TRY_OUT(roll_window(&m));
        out[i] = m.v;
        hists[i] = m.result ? hist_copy(a, m.result) : NULL;
        arena_reset(&scratch);
    }
out:
    arena_deinit(&scratch);
    return e;
}
