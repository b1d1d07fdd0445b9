/*
 * plan.c: from the syntax tree to the plan.
 *
 * Pass 1 (build_*): nodes bottom-up, each with its `invariant` mark: no step can change its value.
 * Pass 2 (place): grids top-down; an invariant node under one that is not gets a single step and
 * `repeat`. There selectors learn their time ranges and find equal ones to share with.
 *
 * Times: a window of a step at T ends at (@ or T) - offset and is open to the left, so samples in
 * (end - range, end] count; ranges for storage are inclusive, hence the "+ 1".
 */
#include "query/plan.h"

#include "storage/base/limits.h"

struct builder {
    const struct plan_request *rq;
    struct arena *a;
    struct plan *plan;
    bool counts_only, whole_hists; /* what is around: histogram_count and the like; something that needs buckets */
};

static err build(struct builder *b, const struct expr *e, struct plan_node **out);

static struct plan_node *node_new(struct builder *b, enum plan_kind kind, const struct expr *e, uint32_t n_kids)
{
    struct plan_node *n = arena_zalloc(b->a, sizeof *n);
    n->kind = kind;
    n->type = e->type;
    n->expr = e;
    n->n_kids = n_kids;
    n->kids = arena_zalloc(b->a, (n_kids + 1) * sizeof *n->kids);
    b->plan->n_nodes++;
    return n;
}

static const struct expr *unparen(const struct expr *e)
{
    while (e->kind == EXPR_PAREN)
        e = e->paren;
    return e;
}

/* ---- pass 1: nodes ------------------------------------------------------------------------------ */

static err build_modifiers(struct builder *b, const struct modifiers *m, struct plan_window *w)
{
    if (m->has_offset) TRY(plan_duration(&m->offset, b->rq, &w->offset));
    w->has_at = m->at != AT_NONE;
    if (m->at == AT_TIME) w->at = m->at_ms;
    if (m->at == AT_START) w->at = b->rq->start_ms;
    if (m->at == AT_END) w->at = b->rq->end_ms;
    if (w->at > LIMIT_TIME_MAX || w->at < LIMIT_TIME_MIN) return err_new(ERR_INVALID, "timestamp out of bounds for @");
    w->anchored = m->anchored;
    w->smoothed = m->smoothed;
    w->find_hints = b->counts_only && !b->whole_hists;
    return NULL;
}

static err build_selector(struct builder *b, const struct expr *e, struct plan_node **out)
{
    struct plan_node *n = node_new(b, PLAN_SELECT, e, 0);
    TRY(build_modifiers(b, &e->selector.mod, &n->window));
    n->window.range = b->plan->lookback;
    n->invariant = n->window.has_at;
    *out = n;
    return NULL;
}

static err build_range(struct builder *b, const struct expr *e, struct plan_node **out)
{
    struct plan_node *n = node_new(b, PLAN_SAMPLES, e, 0);
    const struct selector *sel = &unparen(e->range.selector)->selector;
    TRY(build_modifiers(b, &sel->mod, &n->window));
    TRY(plan_duration(&e->range.range, b->rq, &n->window.range));
    if (n->window.range <= 0) return err_new(ERR_INVALID, "duration must be greater than 0");
    n->invariant = n->window.has_at;
    *out = n;
    return NULL;
}

static err build_subquery(struct builder *b, const struct expr *e, struct plan_node **out)
{
    struct plan_node *n = node_new(b, PLAN_SAMPLES, e, 1);
    struct plan_window *w = &n->window;
    TRY(build_modifiers(b, &e->subquery.mod, w));
    TRY(plan_duration(&e->subquery.range, b->rq, &w->range));
    w->inner_step = b->rq->default_subquery_step_ms;
    if (e->subquery.has_step && (e->subquery.step.expr || e->subquery.step.ms != 0))
        TRY(plan_duration(&e->subquery.step, b->rq, &w->inner_step));
    if (w->range <= 0 || w->inner_step <= 0) return err_new(ERR_INVALID, "duration must be greater than 0");
    bool whole = b->whole_hists;
    b->whole_hists = true;
    TRY(build(b, e->subquery.inner, &n->kids[0]));
    b->whole_hists = whole;
    w->inner = n->kids[0];
    n->invariant = w->has_at;
    *out = n;
    return NULL;
}

/* Functions whose value depends on the step even if their arguments do not. */
static bool reads_step_time(const struct function *fn)
{
    if (fn->class == FN_DATE) return true;
    if (fn->class == FN_ROLLUP) return fn->code == ROLLUP_PREDICT_LINEAR;
    return fn->class == FN_SPECIAL &&
           (fn->code == SPECIAL_TIME || fn->code == SPECIAL_TIMESTAMP || fn->code == SPECIAL_START_TIMESTAMP);
}

/* Extended ranges know only some functions. */
static err check_extended(const struct function *fn, const struct plan_window *w)
{
    bool rates =
        fn->class == FN_ROLLUP && (fn->code == ROLLUP_RATE || fn->code == ROLLUP_INCREASE || fn->code == ROLLUP_DELTA);
    bool counts = fn->class == FN_ROLLUP && (fn->code == ROLLUP_CHANGES || fn->code == ROLLUP_RESETS);
    if (w->anchored && !rates && !counts)
        return err_new(ERR_EXECUTION,
                       "anchored modifier can only be used with: changes, delta, increase, rate, resets - not with %s",
                       fn->name);
    if (w->smoothed && !rates)
        return err_new(ERR_EXECUTION, "smoothed modifier can only be used with: delta, increase, rate - not with %s",
                       fn->name);
    return NULL;
}

/* The range vector comes first among a rollup's kids, the scalars after it in their order. */
static err order_rollup(struct plan_node *n)
{
    for (uint32_t i = 0; i < n->n_kids; i++) {
        if (n->kids[i]->kind != PLAN_SAMPLES) continue;
        struct plan_node *samples = n->kids[i];
        for (; i > 0; i--)
            n->kids[i] = n->kids[i - 1];
        n->kids[0] = samples;
        n->may_repeat = false;
        return check_extended(n->fn, &samples->window);
    }
    return err_new(ERR_INTERNAL, "function %s has no range vector", n->fn->name);
}

/* Notes what a function wants of the histograms below it. */
static void note_wants(struct builder *b, const struct function *fn)
{
    b->counts_only =
        b->counts_only || (fn->class == FN_MAP && (fn->code == MAP_HISTOGRAM_COUNT || fn->code == MAP_HISTOGRAM_SUM ||
                                                   fn->code == MAP_HISTOGRAM_AVG));
    b->whole_hists =
        b->whole_hists ||
        (fn->class == FN_SPECIAL && (fn->code == SPECIAL_HISTOGRAM_QUANTILE || fn->code == SPECIAL_HISTOGRAM_FRACTION));
}

/*
 * default_rollup(x[d]) is x with a lookback of d: the newest sample of the window, unless it says that the series has
 * ended. Without a window it is x itself, and over a subquery, which has no stale markers, last_over_time.
 */
static err build_default_rollup(struct builder *b, const struct expr *e, struct plan_node **out)
{
    const struct expr *arg = unparen(e->call.args[0]);
    if (arg->type == TYPE_VECTOR) return build(b, arg, out);
    if (arg->kind == EXPR_RANGE) {
        int64_t range;
        TRY(plan_duration(&arg->range.range, b->rq, &range));
        if (range <= 0) return err_new(ERR_INVALID, "duration must be greater than 0");
        TRY(build_selector(b, unparen(arg->range.selector), out));
        struct plan_window *w = &(*out)->window;
        w->range = range;
        return check_extended(e->call.fn, w);
    }
    struct plan_node *n = node_new(b, PLAN_ROLLUP, e, 1);
    n->fn = function_find(STR("last_over_time"));
    TRY(build(b, arg, &n->kids[0]));
    n->invariant = n->kids[0]->invariant;
    *out = n;
    return NULL;
}

static err build_call(struct builder *b, const struct expr *e, struct plan_node **out)
{
    const struct function *fn = e->call.fn;
    if (fn->class == FN_SPECIAL && fn->code == SPECIAL_DEFAULT_ROLLUP) return build_default_rollup(b, e, out);
    bool rollup = fn->class == FN_ROLLUP || (fn->class == FN_SPECIAL && fn->code == SPECIAL_ABSENT_OVER_TIME);
    struct plan_node *n = node_new(b, rollup ? PLAN_ROLLUP : PLAN_CALL, e, e->call.n_args);
    n->fn = fn;
    n->invariant = !reads_step_time(fn);
    bool counts_only = b->counts_only, whole_hists = b->whole_hists;
    note_wants(b, fn);
    for (uint32_t i = 0; i < n->n_kids; i++) {
        TRY(build(b, unparen(e->call.args[i]), &n->kids[i]));
        n->invariant = n->invariant && n->kids[i]->invariant;
        n->may_repeat = n->may_repeat || n->kids[i]->may_repeat;
    }
    b->counts_only = counts_only;
    b->whole_hists = whole_hists;
    *out = n;
    if (rollup) return order_rollup(n);
    bool relabels = fn->class == FN_SPECIAL &&
                    (fn->code == SPECIAL_LABEL_REPLACE || fn->code == SPECIAL_LABEL_JOIN || fn->code == SPECIAL_INFO);
    n->may_repeat = n->may_repeat || relabels;
    return NULL;
}

static err build_aggregate(struct builder *b, const struct expr *e, struct plan_node **out)
{
    struct plan_node *n = node_new(b, PLAN_AGGREGATE, e, e->aggregate.param ? 2 : 1);
    TRY(build(b, unparen(e->aggregate.inner), &n->kids[0]));
    n->invariant = n->kids[0]->invariant;
    if (e->aggregate.param) {
        TRY(build(b, unparen(e->aggregate.param), &n->kids[1]));
        n->invariant = n->invariant && n->kids[1]->invariant;
    }
    enum aggregate_op op = e->aggregate.op;
    bool passes = op == AGG_TOPK || op == AGG_BOTTOMK || op == AGG_LIMITK || op == AGG_LIMIT_RATIO;
    n->may_repeat = passes && n->kids[0]->may_repeat;
    *out = n;
    return NULL;
}

static err build_binary(struct builder *b, const struct expr *e, struct plan_node **out)
{
    struct plan_node *n = node_new(b, PLAN_BINARY, e, 2);
    TRY(build(b, e->binary.lhs, &n->kids[0]));
    TRY(build(b, e->binary.rhs, &n->kids[1]));
    n->invariant = n->kids[0]->invariant && n->kids[1]->invariant;
    bool vectors = n->kids[0]->type == TYPE_VECTOR && n->kids[1]->type == TYPE_VECTOR;
    n->may_repeat = vectors || n->kids[0]->may_repeat || n->kids[1]->may_repeat;
    *out = n;
    return NULL;
}

static err build_unary(struct builder *b, const struct expr *e, struct plan_node **out)
{
    if (!e->unary.negate) return build(b, e->unary.inner, out);
    struct plan_node *n = node_new(b, PLAN_NEGATE, e, 1);
    TRY(build(b, e->unary.inner, &n->kids[0]));
    n->invariant = n->kids[0]->invariant;
    n->may_repeat = n->kids[0]->may_repeat;
    *out = n;
    return NULL;
}

static err build_literal(struct builder *b, const struct expr *e, struct plan_node **out)
{
    struct plan_node *n = node_new(b, e->kind == EXPR_STRING ? PLAN_STRING : PLAN_NUMBER, e, 0);
    n->invariant = true;
    if (e->kind == EXPR_STRING) n->string = e->string;
    if (e->kind == EXPR_NUMBER) n->number = e->number;
    if (e->kind == EXPR_STEP) n->number = (double)b->rq->step_ms / 1000;
    if (e->kind == EXPR_QRANGE) n->number = (double)(b->rq->end_ms - b->rq->start_ms) / 1000;
    *out = n;
    return NULL;
}

/* Recursion is as deep as the tree is high, which the parser bounds; query.c runs high trees on a stack to match. */
static err build(struct builder *b, const struct expr *e, struct plan_node **out)
{
    switch (e->kind) {
    case EXPR_SELECTOR:
        return build_selector(b, e, out);
    case EXPR_RANGE:
        return build_range(b, e, out);
    case EXPR_SUBQUERY:
        return build_subquery(b, e, out);
    case EXPR_CALL:
        return build_call(b, e, out);
    case EXPR_AGGREGATE:
        return build_aggregate(b, e, out);
    case EXPR_BINARY:
        return build_binary(b, e, out);
    case EXPR_UNARY:
        return build_unary(b, e, out);
    case EXPR_PAREN:
        return build(b, e->paren, out);
    default:
        return build_literal(b, e, out);
    }
}

/* ---- pass 2: grids and time ranges --------------------------------------------------------------- */

static err place(struct builder *b, struct plan_node *n, struct grid grid);

/* First and last end of the windows of a node's steps. */
static void window_ends(const struct plan_node *n, int64_t *first, int64_t *last)
{
    const struct plan_window *w = &n->window;
    *first = (w->has_at ? w->at : n->grid.start) - w->offset;
    *last = (w->has_at ? w->at : grid_end(&n->grid)) - w->offset;
}

static bool same_matchers(const struct plan_select *s, const struct selector *sel)
{
    if (s->n_matchers != sel->n_matchers) return false;
    for (uint32_t i = 0; i < s->n_matchers; i++) {
        const struct matcher *x = &s->matchers[i], *y = &sel->matchers[i];
        if (x->op != y->op || !str_eq(x->name, y->name) || !str_eq(x->value, y->value)) return false;
    }
    return true;
}

/* Ranges that overlap or lie near each other are worth one selection; others (offset 30d) are not. */
static bool is_near(const struct plan_select *s, int64_t t_min, int64_t t_max)
{
    int64_t span = s->t_max - s->t_min > t_max - t_min ? s->t_max - s->t_min : t_max - t_min;
    return t_min <= s->t_max + span && s->t_min <= t_max + span;
}

static struct plan_select *share_select(struct builder *b, const struct selector *sel, int64_t t_min, int64_t t_max)
{
    struct plan_select *s = b->plan->selects;
    while (s && !(same_matchers(s, sel) && is_near(s, t_min, t_max)))
        s = s->next;
    if (!s) {
        s = arena_zalloc(b->a, sizeof *s);
        *s = (struct plan_select){.matchers = sel->matchers,
                                  .n_matchers = sel->n_matchers,
                                  .t_min = t_min,
                                  .t_max = t_max,
                                  .next = b->plan->selects};
        b->plan->selects = s;
        for (uint32_t i = 0; i < sel->n_matchers; i++)
            if (sel->matchers[i].op == MATCH_EQ && str_eq(sel->matchers[i].name, LABEL_NAME))
                s->name = sel->matchers[i].value;
    }
    if (t_min < s->t_min) s->t_min = t_min;
    if (t_max > s->t_max) s->t_max = t_max;
    return s;
}

static void place_select(struct builder *b, struct plan_node *n)
{
    struct plan_window *w = &n->window;
    int64_t first, last, lookback = b->plan->lookback;
    window_ends(n, &first, &last);
    bool instant = n->kind == PLAN_SELECT;
    w->select_min = first - w->range + 1;
    w->select_max = last;
    /* extended ranges look for a neighbour outside on one or both sides */
    if ((w->anchored || w->smoothed) && !instant) w->select_min -= lookback;
    if (w->smoothed) w->select_max += lookback;
    if (w->find_hints) w->select_min -= lookback; /* a sample to compare the first one with */
    const struct selector *sel = &(instant ? n->expr : unparen(n->expr->range.selector))->selector;
    w->select = share_select(b, sel, w->select_min, w->select_max);
}

/* Steps of a subquery are multiples of its step: the first one after the window's start. */
static err place_subquery(struct builder *b, struct plan_node *n)
{
    const struct plan_window *w = &n->window;
    int64_t first, last;
    window_ends(n, &first, &last);
    int64_t from = first - w->range;
    int64_t start = w->inner_step * (from / w->inner_step);
    if (start <= from) start += w->inner_step;
    uint64_t steps = start > last ? 0 : (uint64_t)(last - start) / (uint64_t)w->inner_step + 1;
    if (steps > b->rq->max_steps)
        return err_new(ERR_LIMIT,
                       "a subquery would be evaluated at %llu steps, the limit is %llu (--query.max-samples); use a "
                       "larger step or a shorter range",
                       (unsigned long long)steps, (unsigned long long)b->rq->max_steps);
    return place(b, n->kids[0], (struct grid){start, w->inner_step, (uint32_t)steps});
}

static err place(struct builder *b, struct plan_node *n, struct grid grid)
{
    n->grid = grid;
    bool literal = n->kind == PLAN_NUMBER || n->kind == PLAN_STRING;
    if (n->invariant && !literal && n->kind != PLAN_SAMPLES && grid.n > 1) {
        n->repeat = grid.n;
        n->grid.n = 1;
    }
    if (n->kind == PLAN_SAMPLES && n->window.inner) return place_subquery(b, n);
    if (n->kind == PLAN_SELECT || n->kind == PLAN_SAMPLES) {
        place_select(b, n);
        return NULL;
    }
    for (uint32_t i = 0; i < n->n_kids; i++)
        TRY(place(b, n->kids[i], n->grid));
    return NULL;
}

err plan_build(const struct expr *e, const struct plan_request *rq, struct arena *a, struct plan **out)
{
    struct plan *p = arena_zalloc(a, sizeof *p);
    *p = (struct plan){.start = rq->start_ms, .end = rq->end_ms, .step = rq->step_ms, .lookback = rq->lookback_ms};
    p->grid = (struct grid){rq->start_ms, rq->step_ms > 0 ? rq->step_ms : 1, 1};
    if (rq->step_ms > 0) p->grid.n = (uint32_t)((rq->end_ms - rq->start_ms) / rq->step_ms + 1);
    struct builder b = {.rq = rq, .a = a, .plan = p};
    TRY(build(&b, e, &p->root));
    TRY(place(&b, p->root, p->grid));
    *out = p;
    return NULL;
}
