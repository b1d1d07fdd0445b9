/*
 * exec.c: opens operators for plan nodes and keeps what they share.
 *
 * Dispatch is one switch over the kinds of nodes (open_node). A node marked `repeat` is opened on its
 * single step and wrapped, so that the consumer sees its own number of steps. All memory that outlives
 * a row is in the query's arena and counted against the budget; operators have a scratch arena each.
 * The thread that runs the query calls everything here.
 */
#include "query/exec.h"

#include "query/usage.h"
#include "storage/base/env.h"

void exec_init(struct exec *x, struct db *db, const struct hash_key *hash, struct plan *plan, struct arena *arena,
               struct budget *budget, struct notes *notes)
{
    *x = (struct exec){.db = db, .hash = hash, .plan = plan, .arena = arena, .budget = budget, .notes = notes};
    x->slice.n = 1;
}

void exec_close_ops(struct exec *x)
{
    for (struct op *op = x->ops; op; op = op->opened_before) {
        if (op->close) op->close(op);
        arena_deinit(&op->scratch);
    }
    x->ops = NULL;
}

void exec_deinit(struct exec *x)
{
    exec_slices_close(x);
    exec_close_ops(x);
    for (struct plan_select *s = x->plan->selects; s; s = s->next) {
        selection_destroy(s->selection);
        s->selection = NULL;
    }
}

err op_next_timed(struct op *op, struct row *row, bool *more)
{
    struct env *env = env_posix();
    uint64_t began = env->ops->mono_ns(env);
    err e = op->next(op, row, more);
    op->ns += env->ops->mono_ns(env) - began;
    return e;
}

void *op_new(struct exec *x, const struct plan_node *node, size_t size, err (*next)(struct op *, struct row *, bool *),
             void (*close)(struct op *))
{
    struct op *op = arena_zalloc(x->arena, size);
    op->next = next;
    op->close = close;
    op->x = x;
    op->node = node;
    op->n = node->grid.n;
    op->opened_before = x->ops;
    x->ops = op;
    return op;
}

/*
 * The selector's matchers, with each of the sets that the request is confined to. This is the one door to the storage,
 * so no form of query gets around them. Regular expressions stay the property of whoever parsed them.
 */
static void confine(const struct exec *x, struct plan_select *s)
{
    uint32_t n_extra = x->extra ? x->extra->n : 0;
    s->n_sets = n_extra ? n_extra : 1;
    s->sets = arena_alloc(x->arena, s->n_sets * sizeof *s->sets);
    for (uint32_t i = 0; i < s->n_sets; i++) {
        const struct match_set *extra = n_extra ? &x->extra->sets[i] : &(const struct match_set){0};
        struct matcher *m = arena_alloc(x->arena, (s->n_matchers + extra->n + 1) * sizeof *m);
        if (s->n_matchers) memcpy(m, s->matchers, s->n_matchers * sizeof *m);
        if (extra->n) memcpy(m + s->n_matchers, extra->m, extra->n * sizeof *m);
        s->sets[i] = (struct match_set){m, s->n_matchers + extra->n};
    }
}

err exec_selection(struct exec *x, struct plan_select *s, struct selection **out)
{
    if (!s->selection) {
        confine(x, s);
        TRY(budget_check(x->budget));
        struct select_options o = {.t_min = s->t_min, .t_max = s->t_max, .max_series = x->max_series};
        TRY(storage_select_any(x->db, s->sets, s->n_sets, &o, &s->selection));
        usage_note(x->usage, x->db, s);
    }
    *out = s->selection;
    return NULL;
}

err exec_columns(struct exec *x, size_t n_columns, uint32_t n_steps, double **out)
{
    size_t cells = n_columns * n_steps;
    TRY(budget_hold(x->budget, cells, cells * sizeof **out));
    *out = arena_alloc(x->arena, (cells + 1) * sizeof **out);
    return NULL;
}

err exec_hist_column(struct exec *x, uint32_t n_steps, struct hist ***out)
{
    TRY(budget_hold(x->budget, 0, n_steps * sizeof **out));
    *out = arena_zalloc(x->arena, (n_steps + 1) * sizeof **out);
    return NULL;
}

/* ---- constants and repeated steps ----------------------------------------------------------------- */

struct op_number {
    struct op op;
    bool done;
};

static err number_next(struct op *op, struct row *row, bool *more)
{
    struct op_number *o = (struct op_number *)op;
    *more = !o->done;
    if (o->done) return NULL;
    o->done = true;
    double *v;
    TRY(exec_columns(op->x, 1, op->n, &v));
    for (uint32_t i = 0; i < op->n; i++)
        v[i] = op->node->number;
    *row = (struct row){.v = v, .resolved = true};
    return NULL;
}

struct op_repeat {
    struct op op;
    struct op *inner;
    double *v;
    struct hist **h;
};

static err repeat_next(struct op *op, struct row *row, bool *more)
{
    struct op_repeat *o = (struct op_repeat *)op;
    TRY(op_next(o->inner, row, more));
    if (!*more) return NULL;
    for (uint32_t i = 0; i < op->n; i++)
        o->v[i] = row->v[0];
    row->v = o->v;
    if (!row->h) return NULL;
    if (!o->h) o->h = arena_zalloc(&op->scratch, (op->n + 1) * sizeof(struct hist *));
    for (uint32_t i = 0; i < op->n; i++)
        o->h[i] = row->h[0];
    row->h = o->h;
    return NULL;
}

static err open_repeat(struct exec *x, const struct plan_node *node, struct op *inner, struct op **out)
{
    struct op_repeat *o = op_new(x, node, sizeof *o, repeat_next, NULL);
    o->op.n = node->repeat;
    o->inner = inner;
    o->v = arena_alloc(&o->op.scratch, (node->repeat + 1) * sizeof *o->v);
    *out = &o->op;
    return NULL;
}

/* ---- dispatch --------------------------------------------------------------------------------------- */

static err open_aggregate(struct exec *x, const struct plan_node *node, struct op **out)
{
    switch (node->expr->aggregate.op) {
    case AGG_TOPK:
    case AGG_BOTTOMK:
    case AGG_LIMITK:
    case AGG_LIMIT_RATIO:
        return op_rank_open(x, node, out);
    case AGG_QUANTILE:
        return op_quantile_open(x, node, out);
    case AGG_COUNT_VALUES:
        return op_count_values_open(x, node, out);
    default:
        return op_aggregate_open(x, node, out);
    }
}

static err open_binary(struct exec *x, const struct plan_node *node, struct op **out)
{
    if (node->kids[0]->type != TYPE_VECTOR || node->kids[1]->type != TYPE_VECTOR)
        return op_scalar_binary_open(x, node, out);
    return node->expr->binary.op >= OP_AND ? op_set_open(x, node, out) : op_join_open(x, node, out);
}

static err open_call(struct exec *x, const struct plan_node *node, struct op **out)
{
    if (node->fn->class != FN_SPECIAL) return op_map_open(x, node, out);
    switch (node->fn->code) {
    case SPECIAL_LABEL_JOIN:
    case SPECIAL_LABEL_REPLACE:
        return op_label_open(x, node, out);
    case SPECIAL_SORT:
    case SPECIAL_SORT_DESC:
    case SPECIAL_SORT_BY_LABEL:
    case SPECIAL_SORT_BY_LABEL_DESC:
        return op_sort_open(x, node, out);
    case SPECIAL_HISTOGRAM_FRACTION:
    case SPECIAL_HISTOGRAM_QUANTILE:
    case SPECIAL_HISTOGRAM_QUANTILES:
        return op_buckets_open(x, node, out);
    case SPECIAL_INFO:
        return op_info_open(x, node, out);
    default:
        return op_special_open(x, node, out);
    }
}

static err open_node(struct exec *x, const struct plan_node *node, struct op **out)
{
    switch (node->kind) {
    case PLAN_NUMBER:
        *out = op_new(x, node, sizeof(struct op_number), number_next, NULL);
        return NULL;
    case PLAN_SELECT:
        return op_select_open(x, node, SELECT_VALUES, out);
    case PLAN_ROLLUP:
        if (node->fn->class == FN_SPECIAL) return op_absent_over_open(x, node, out);
        return op_rollup_open(x, node, out);
    case PLAN_AGGREGATE:
        return open_aggregate(x, node, out);
    case PLAN_BINARY:
        return open_binary(x, node, out);
    case PLAN_NEGATE:
        return op_map_open(x, node, out);
    case PLAN_CALL:
        return open_call(x, node, out);
    case PLAN_STRING:
    case PLAN_SAMPLES:
        break;
    }
    return err_new(ERR_INTERNAL, "this expression has no rows of its own");
}

err exec_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    TRY(open_node(x, node, out));
    return node->repeat ? open_repeat(x, node, *out, out) : NULL;
}

err exec_column(struct exec *x, const struct plan_node *node, double **out)
{
    struct op *op;
    TRY(exec_open(x, node, &op));
    TRY(exec_columns(x, 1, op->n, out));
    struct row row;
    bool more;
    TRY(op_next(op, &row, &more));
    if (!more) return err_new(ERR_INTERNAL, "a scalar expression gave no value");
    memcpy(*out, row.v, op->n * sizeof **out);
    return NULL;
}

/* ---- rows that are kept --------------------------------------------------------------------------- */

err error_same_labelset(void)
{
    return err_new(ERR_EXECUTION, "vector cannot contain metrics with the same labelset");
}

static struct held_row *held_push(struct exec *x, struct held_rows *rows)
{
    if (rows->n == rows->cap) {
        size_t cap = rows->cap ? rows->cap * 2 : 16;
        struct held_row *v = arena_alloc(x->arena, cap * sizeof *v);
        if (rows->n) memcpy(v, rows->v, rows->n * sizeof *v);
        rows->v = v;
        rows->cap = cap;
    }
    struct held_row *h = &rows->v[rows->n++];
    *h = (struct held_row){0};
    return h;
}

static err hold_hists(struct exec *x, struct held_row *held, const struct row *row, uint32_t n_steps)
{
    TRY(exec_hist_column(x, n_steps, &held->h));
    size_t before = x->arena->bytes;
    for (uint32_t i = 0; i < n_steps; i++) {
        if (!row->h[i]) continue;
        /* a repeated or looked-back histogram is one object: keep it one */
        bool same = i > 0 && row->h[i] == row->h[i - 1];
        held->h[i] = same ? held->h[i - 1] : hist_copy(x->arena, row->h[i]);
    }
    return budget_hold(x->budget, 0, x->arena->bytes - before);
}

err held_add(struct exec *x, struct held_rows *rows, struct row *row, uint32_t n_steps)
{
    TRY(row_resolve(row));
    struct held_row *h = held_push(x, rows);
    h->labels = labels_keep(&row->labels, x->arena);
    h->drop_name = row->drop_name;
    TRY(exec_columns(x, 1, n_steps, &h->v));
    memcpy(h->v, row->v, n_steps * sizeof *h->v);
    return row->h ? hold_hists(x, h, row, n_steps) : NULL;
}

err held_collect(struct op *op, struct held_rows *rows)
{
    struct row row;
    bool more;
    for (;;) {
        TRY(op_next(op, &row, &more));
        if (!more) return NULL;
        if (row_any(&row, op->n)) TRY(held_add(op->x, rows, &row, op->n));
    }
}

/* Moves the samples of `from` into `to`. */
static err merge_row(struct exec *x, struct held_row *to, const struct held_row *from, uint32_t n_steps)
{
    if (from->h && !to->h) TRY(exec_hist_column(x, n_steps, &to->h));
    struct row a = held_as_row(to), b = held_as_row(from);
    for (uint32_t i = 0; i < n_steps; i++) {
        if (!row_has(&b, i)) continue;
        if (row_has(&a, i)) return error_same_labelset();
        to->v[i] = from->v[i];
        if (to->h && from->h && row_has_hist(&b, i)) to->h[i] = from->h[i];
    }
    return NULL;
}

err held_merge(struct exec *x, struct held_rows *rows, uint32_t n_steps)
{
    struct map seen = {0};
    struct label_key all = {.hash = x->hash, .except = true};
    err e = NULL;
    size_t kept = 0;
    for (size_t i = 0; i < rows->n; i++) {
        bool added;
        uint64_t *at = map_put(&seen, label_key_hash(&all, &rows->v[i].labels), kept, &added);
        if (added)
            rows->v[kept++] = rows->v[i];
        else
            TRY_OUT(merge_row(x, &rows->v[*at], &rows->v[i], n_steps));
    }
    rows->n = kept;
out:
    map_deinit(&seen);
    return e;
}
