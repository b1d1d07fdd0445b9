/*
 * op_info.c: info(v[, selector]): series of v get the data labels of info metrics.
 *
 * An info series (by default of target_info) belongs to a series of v if both have the same instance
 * and job. Of several info series of one metric and one target, the one with the newest sample counts
 * at each step. Labels that v has stay as they are. A series may come out with different labels at
 * different steps; each label set is a row.
 */
#include "query/exec.h"

struct info_series {
    struct hash128 target; /* of instance and job */
    str metric;
    struct labels labels;
    const double *times; /* of its sample at each step, in seconds */
};

/* One label set that a base row comes out with. */
struct variant {
    struct labels labels;
    double *v;
    struct hist **h;
};

struct op_info {
    struct op op;
    struct op *vector, *infos;
    const struct matcher *data; /* the selector's matchers on other labels than the name */
    uint32_t n_data;
    const struct matcher *names;
    uint32_t n_names;
    struct matcher *own; /* the one made here; NULL if none */
    struct label_key target;
    struct info_series *series; /* query arena */
    size_t n_series;
    struct map first; /* target → first of its series, counted from 1 */
    size_t *next;     /* chain of a target's series, counted from 1 */
    bool collected;
    struct row row;           /* of the vector */
    struct variant *variants; /* of that row; scratch */
    size_t n_variants, at;
};

static void info_close(struct op *op)
{
    struct op_info *o = (struct op_info *)op;
    map_deinit(&o->first);
    if (o->own) matcher_deinit(o->own);
}

static err collect_infos(struct op_info *o)
{
    struct held_rows rows = {0};
    TRY(held_collect(o->infos, &rows));
    struct arena *a = o->op.x->arena;
    o->series = arena_alloc(a, (rows.n + 1) * sizeof *o->series);
    o->next = arena_zalloc(a, (rows.n + 1) * sizeof *o->next);
    o->n_series = rows.n;
    for (size_t i = 0; i < rows.n; i++) {
        struct labels *ls = &rows.v[i].labels;
        if (rows.v[i].h) return err_new(ERR_EXECUTION, "this should be an info metric, with float samples");
        o->series[i] =
            (struct info_series){label_key_hash(&o->target, ls), labels_get(ls, LABEL_NAME), *ls, rows.v[i].v};
        uint64_t *head = map_put(&o->first, o->series[i].target, 0, NULL);
        o->next[i] = *head;
        *head = i + 1;
    }
    return NULL;
}

/* Info series are left alone. */
static err is_info_itself(struct op_info *o, const struct labels *ls, bool *yes)
{
    str name = labels_get(ls, LABEL_NAME);
    *yes = name.n > 0;
    for (uint32_t i = 0; i < o->n_names && *yes; i++)
        TRY(matcher_match(&o->names[i], name, yes));
    return NULL;
}

/* ---- one step of one row ---------------------------------------------------------------------------------------- */

static bool is_wanted(const struct op_info *o, str label)
{
    if (str_eq(label, LABEL_NAME)) return false;
    for (uint32_t i = 0; i < o->n_data; i++)
        if (str_eq(o->data[i].name, label)) return true;
    return o->n_data == 0;
}

static err add_labels(struct op_info *o, const struct info_series *s, struct labels *added)
{
    const struct labels *base = &o->row.labels;
    for (uint32_t i = 0; i < s->labels.n; i++) {
        const struct label *l = &s->labels.v[i];
        if (!is_wanted(o, l->name)) continue;
        str before = labels_get(added, l->name);
        if (before.n && !str_eq(before, l->value))
            return err_new(ERR_EXECUTION, "conflicting label: %.*s", STR_ARG(l->name));
        if (labels_get(base, l->name).n == 0) *added = labels_set(added, l->name, l->value, &o->op.scratch);
    }
    return NULL;
}

/* True if no other series of the metric and target has a newer sample at the step. */
static err is_newest(struct op_info *o, size_t number, size_t first, uint32_t step, bool *yes)
{
    const struct info_series *s = &o->series[number];
    *yes = !is_stale_nan(s->times[step]);
    for (size_t k = first; k && *yes; k = o->next[k - 1]) {
        const struct info_series *other = &o->series[k - 1];
        if (other == s || !str_eq(other->metric, s->metric) || is_stale_nan(other->times[step])) continue;
        if (other->times[step] == s->times[step]) {
            struct buf text = {0};
            labels_print(&s->labels, &text);
            buf_printf(&text, ", ");
            labels_print(&other->labels, &text);
            err e = err_new(ERR_EXECUTION, "found duplicate series for info metric: %.*s", STR_ARG(buf_as_str(&text)));
            buf_deinit(&text);
            return e;
        }
        if (other->times[step] > s->times[step]) *yes = false;
    }
    return NULL;
}

static bool data_may_be_absent(const struct op_info *o)
{
    bool may = true;
    for (uint32_t i = 0; i < o->n_data && may; i++)
        may = matcher_matches_empty(&o->data[i]);
    return may;
}

/* The labels of the row at a step; *keep false if it is dropped there. */
static err labels_at(struct op_info *o, size_t first, uint32_t step, struct labels *out, bool *keep)
{
    struct labels added = {0};
    bool any = false, newest;
    for (size_t k = first; k; k = o->next[k - 1]) {
        TRY(is_newest(o, k - 1, first, step, &newest));
        if (!newest) continue;
        any = true;
        TRY(add_labels(o, &o->series[k - 1], &added));
    }
    *keep = any || data_may_be_absent(o);
    *out = o->row.labels;
    for (uint32_t i = 0; i < added.n; i++)
        *out = labels_set(out, added.v[i].name, added.v[i].value, &o->op.scratch);
    return NULL;
}

static struct variant *variant_of(struct op_info *o, const struct labels *ls)
{
    for (size_t i = 0; i < o->n_variants; i++)
        if (labels_eq(&o->variants[i].labels, ls)) return &o->variants[i];
    struct arena *a = &o->op.scratch;
    struct variant *v = arena_alloc(a, (o->n_variants + 1) * sizeof *v);
    if (o->n_variants) memcpy(v, o->variants, o->n_variants * sizeof *v);
    o->variants = v;
    v = &o->variants[o->n_variants++];
    *v = (struct variant){.labels = *ls, .v = arena_alloc(a, (o->op.n + 1) * sizeof(double))};
    column_clear(v->v, o->op.n);
    if (o->row.h) v->h = arena_zalloc(a, (o->op.n + 1) * sizeof(struct hist *));
    return v;
}

static err enrich(struct op_info *o)
{
    bool alone;
    TRY(is_info_itself(o, &o->row.labels, &alone));
    uint64_t *head = alone ? NULL : map_get(&o->first, label_key_hash(&o->target, &o->row.labels));
    for (uint32_t i = 0; i < o->op.n; i++) {
        if (!row_has(&o->row, i)) continue;
        struct labels ls = o->row.labels;
        bool keep = true;
        if (!alone) TRY(labels_at(o, head ? *head : 0, i, &ls, &keep));
        if (!keep) continue;
        struct variant *v = variant_of(o, &ls);
        v->v[i] = o->row.v[i];
        if (o->row.h) v->h[i] = o->row.h[i];
    }
    return NULL;
}

static err info_next(struct op *op, struct row *row, bool *more)
{
    struct op_info *o = (struct op_info *)op;
    if (!o->collected) TRY(collect_infos(o));
    o->collected = true;
    while (o->at == o->n_variants) {
        TRY(op_next(o->vector, &o->row, more));
        if (!*more) return NULL;
        TRY(row_resolve(&o->row));
        arena_reset(&op->scratch);
        o->n_variants = o->at = 0;
        o->variants = NULL;
        TRY(enrich(o));
    }
    const struct variant *v = &o->variants[o->at++];
    *row = (struct row){.v = v->v, .h = v->h, .drop_name = o->row.drop_name, .resolved = true, .labels = v->labels};
    *more = true;
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------------------
 */

static bool is_positive(const struct matcher *m)
{
    return m->op == MATCH_EQ || m->op == MATCH_RE;
}

/* Sorts the selector's matchers into those on the name and the others. Without any name it is target_info; with names
 * that only exclude, any metric that is called an info. */
static err split_matchers(struct op_info *o, const struct plan_node *selector, struct matcher *all, uint32_t *n)
{
    uint32_t n_given = selector ? selector->expr->selector.n_matchers : 0;
    const struct matcher *given = selector ? selector->expr->selector.matchers : NULL;
    *n = 0;
    bool positive = false;
    for (uint32_t i = 0; i < n_given; i++) {
        if (!str_eq(given[i].name, LABEL_NAME)) continue;
        positive = positive || is_positive(&given[i]);
        all[(*n)++] = given[i];
    }
    if (!positive) {
        bool any = *n > 0;
        o->own = &all[(*n)++];
        TRY(matcher_init(o->own, any ? MATCH_RE : MATCH_EQ, LABEL_NAME, any ? STR(".+_info") : STR("target_info")));
    }
    o->names = all;
    o->n_names = *n;
    o->data = all + *n;
    for (uint32_t i = 0; i < n_given; i++)
        if (!str_eq(given[i].name, LABEL_NAME)) all[(*n)++] = given[i];
    o->n_data = *n - o->n_names;
    return NULL;
}

/* The time that the first selector below looks at, as an @ and an offset seen from this node. */
static bool find_reference(const struct plan_node *n, struct plan_window *ref)
{
    if (n->kind == PLAN_SELECT || n->kind == PLAN_SAMPLES) {
        if (n->window.has_at) {
            ref->has_at = true;
            ref->at = n->window.at;
            ref->offset = 0;
        }
        ref->offset += n->window.offset;
        if (!n->window.inner) return true;
    }
    for (uint32_t i = 0; i < n->n_kids; i++)
        if (find_reference(n->kids[i], ref)) return true;
    return false;
}

/* A selector of our own: the info series at the times that the enriched series are looked at. */
static struct plan_node *info_selector(struct exec *x, const struct plan_node *node, const struct matcher *m,
                                       uint32_t n)
{
    struct plan_window w = {.range = x->plan->lookback};
    find_reference(node->kids[0], &w);
    w.select_min = (w.has_at ? w.at : node->grid.start) - w.offset - w.range + 1;
    w.select_max = (w.has_at ? w.at : grid_end(&node->grid)) - w.offset;
    struct plan_select *s = arena_zalloc(x->arena, sizeof *s);
    *s = (struct plan_select){
        .matchers = m, .n_matchers = n, .t_min = w.select_min, .t_max = w.select_max, .next = x->plan->selects};
    x->plan->selects = s;
    struct plan_node *sel = arena_zalloc(x->arena, sizeof *sel);
    sel->kind = PLAN_SELECT;
    sel->type = TYPE_VECTOR;
    sel->expr = node->expr;
    sel->grid = node->grid;
    w.select = s;
    sel->window = w;
    return sel;
}

err op_info_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_info *o = op_new(x, node, sizeof *o, info_next, info_close);
    *out = &o->op;
    const struct plan_node *selector = node->n_kids > 1 ? node->kids[1] : NULL;
    uint32_t n = (selector ? selector->expr->selector.n_matchers : 0) + 1;
    struct matcher *all = arena_zalloc(x->arena, n * sizeof *all);
    TRY(split_matchers(o, selector, all, &n));
    str *ids = arena_alloc(x->arena, 2 * sizeof *ids);
    ids[0] = STR("instance");
    ids[1] = STR("job");
    label_key_init(&o->target, x->hash, ids, 2, false);
    TRY(op_select_open(x, info_selector(x, node, all, n), SELECT_TIMES, &o->infos));
    return exec_open(x, node->kids[0], &o->vector);
}
