/*
 * op_rank.c: topk, bottomk, limitk, limit_ratio: rows pass, but only at the steps where they are chosen.
 *
 * Rows stream by; each step of each group keeps the chosen samples only, topk and bottomk in a heap
 * with the worst on top. A row's labels are copied when it first gets into any heap. The heap's moves
 * are those of Prometheus's (binary heap, replace the root, sift down), so that among equal values the
 * same series win; NaN loses against every number.
 */
#include "query/group.h"

#include <math.h>
#include <stdlib.h>

struct entry {
    double v;
    struct hist *h;
    uint32_t row; /* of kept rows */
};

struct heap {
    struct entry *v; /* query arena */
    uint32_t n, cap;
};

struct op_rank {
    struct op op;
    struct op *vector;
    enum aggregate_op code;
    const double *param; /* k or ratio, one a step */
    struct grouping grouping;
    struct heap **heaps; /* [group][step] */
    size_t heaps_cap;
    struct held_rows kept; /* labels of chosen rows; columns are made at the end */
    uint64_t *order;       /* instant queries: kept rows in their order */
    size_t n_order, at;
    bool chosen;
};

static void rank_close(struct op *op)
{
    grouping_deinit(&((struct op_rank *)op)->grouping);
}

/* ---- heap ---------------------------------------------------------------------------------------------- */

/* a comes out of the heap before b. */
static bool before(const struct op_rank *o, const struct entry *a, const struct entry *b)
{
    if (isnan(a->v)) return true;
    return o->code == AGG_BOTTOMK ? a->v > b->v : a->v < b->v;
}

static void swap(struct entry *a, struct entry *b)
{
    struct entry t = *a;
    *a = *b;
    *b = t;
}

static void sift_up(const struct op_rank *o, struct entry *v, uint32_t at)
{
    while (at > 0 && before(o, &v[at], &v[(at - 1) / 2])) {
        swap(&v[at], &v[(at - 1) / 2]);
        at = (at - 1) / 2;
    }
}

static void sift_down(const struct op_rank *o, struct entry *v, uint32_t n)
{
    uint32_t at = 0;
    for (;;) {
        uint32_t child = 2 * at + 1;
        if (child >= n) return;
        if (child + 1 < n && before(o, &v[child + 1], &v[child])) child++;
        if (!before(o, &v[child], &v[at])) return;
        swap(&v[child], &v[at]);
        at = child;
    }
}

static err heap_append(struct op_rank *o, struct heap *h, struct entry e)
{
    if (h->n == h->cap) {
        uint32_t cap = h->cap ? h->cap * 2 : 4;
        TRY(budget_hold(o->op.x->budget, cap - h->cap, cap * sizeof e));
        struct entry *v = arena_alloc(o->op.x->arena, cap * sizeof *v);
        if (h->n) memcpy(v, h->v, h->n * sizeof *v);
        h->v = v;
        h->cap = cap;
    }
    h->v[h->n++] = e;
    return NULL;
}

/* ---- choosing ------------------------------------------------------------------------------------------- */

/* How many a step may choose; the parameter was checked. */
static uint64_t limit_at(const struct op_rank *o, uint32_t step)
{
    return o->param[step] < 1 ? 0 : (uint64_t)o->param[step];
}

static bool beats(const struct op_rank *o, double v, double worst)
{
    if (isnan(worst)) return !isnan(v);
    return o->code == AGG_BOTTOMK ? worst > v : worst < v;
}

static void put_length(struct buf *b, size_t n)
{
    if (n < 255) {
        buf_u8(b, (uint8_t)n);
        return;
    }
    buf_u32(b, (uint32_t)n << 8 | 255);
}

/* A place in [0, 1] that depends on the labels only, and is the same as in Prometheus: its hash of its layout of label
 * sets, strings with their lengths in one byte or, from 255 on, in four. */
static err ratio_place(struct row *row, double *place)
{
    struct buf b = {0};
    TRY(row_resolve(row));
    for (uint32_t i = 0; i < row->labels.n; i++) {
        const struct label *l = &row->labels.v[i];
        put_length(&b, l->name.n);
        buf_str(&b, l->name);
        put_length(&b, l->value.n);
        buf_str(&b, l->value);
    }
    *place = (double)hash_xxh64(b.data, b.n) / (double)UINT64_MAX;
    buf_deinit(&b);
    return NULL;
}

static bool ratio_takes(double ratio, double place)
{
    if (ratio > 1) ratio = 1;
    if (ratio < -1) ratio = -1;
    return ratio >= 0 ? place < ratio : place >= 1 + ratio;
}

/* Whether step i takes the row; it then goes to heap position *at, the end if that is the heap's n. */
static bool takes(const struct op_rank *o, const struct heap *h, const struct row *row, uint32_t i, double place,
                  uint32_t *at)
{
    *at = h->n;
    if (o->code == AGG_LIMIT_RATIO) return o->param[i] != 0 && ratio_takes(o->param[i], place);
    uint64_t k = limit_at(o, i);
    if (h->n < k) return true;
    if (o->code == AGG_LIMITK || k == 0 || !beats(o, row->v[i], h->v[0].v)) return false;
    *at = 0;
    return true;
}

/* The number of the row among those kept; its labels are copied the first time. */
static err keep_row(struct op_rank *o, struct row *row, uint32_t *number)
{
    if (*number != UINT32_MAX) return NULL;
    *number = (uint32_t)o->kept.n;
    struct row labels = *row;
    labels.h = NULL;
    return held_add(o->op.x, &o->kept, &labels, 0);
}

static err choose_row(struct op_rank *o, struct heap *heaps, struct row *row)
{
    static const char *const NAMES[] = {[AGG_TOPK] = "topk", [AGG_BOTTOMK] = "bottomk"};
    bool ranks = o->code == AGG_TOPK || o->code == AGG_BOTTOMK;
    uint32_t number = UINT32_MAX, at;
    double place = 0;
    if (o->code == AGG_LIMIT_RATIO) TRY(ratio_place(row, &place));
    for (uint32_t i = 0; i < o->op.n; i++) {
        if (!row_has(row, i)) continue;
        bool hist = row_has_hist(row, i);
        if (hist && ranks) {
            note_ignored_in_aggregation(o->op.x->notes, o->op.node->expr->start, NAMES[o->code]);
            continue;
        }
        if (!takes(o, &heaps[i], row, i, place, &at)) continue;
        TRY(keep_row(o, row, &number));
        struct entry e = {row->v[i], hist ? hist_copy(o->op.x->arena, row->h[i]) : NULL, number};
        if (at == heaps[i].n) {
            TRY(heap_append(o, &heaps[i], e));
            if (ranks) sift_up(o, heaps[i].v, at);
        } else {
            heaps[i].v[0] = e;
            sift_down(o, heaps[i].v, heaps[i].n);
        }
    }
    return NULL;
}

static err add_heaps(struct op_rank *o)
{
    struct exec *x = o->op.x;
    size_t n = o->grouping.n;
    if (n > o->heaps_cap) {
        size_t cap = o->heaps_cap ? o->heaps_cap * 2 : 16;
        struct heap **v = arena_alloc(x->arena, cap * sizeof(struct heap *));
        if (o->heaps_cap) memcpy(v, o->heaps, o->heaps_cap * sizeof(struct heap *));
        o->heaps = v;
        o->heaps_cap = cap;
    }
    TRY(budget_hold(x->budget, 0, o->op.n * sizeof(struct heap)));
    o->heaps[n - 1] = arena_zalloc(x->arena, (o->op.n + 1) * sizeof(struct heap));
    return NULL;
}

static err choose_all(struct op_rank *o)
{
    struct row row;
    bool more, added;
    size_t group;
    for (;;) {
        TRY(op_next(o->vector, &row, &more));
        if (!more) return NULL;
        if (!row_any(&row, o->op.n)) continue;
        TRY(grouping_find(&o->grouping, &row, &group, &added));
        if (added) TRY(add_heaps(o));
        TRY(choose_row(o, o->heaps[group], &row));
    }
}

static err drain(struct op *op)
{
    struct row row;
    bool more = true;
    while (more)
        TRY(op_next(op, &row, &more));
    return NULL;
}

/* ---- yielding --------------------------------------------------------------------------------------------- */

/* Best first; few are sorted in place, in the manner that keeps equal ones as Prometheus does. */
static void sort_best_first(const struct op_rank *o, struct heap *h)
{
    for (uint32_t i = 1; i < h->n; i++)
        for (uint32_t j = i; j > 0 && before(o, &h->v[j - 1], &h->v[j]) && !(isnan(h->v[j].v) && isnan(h->v[j - 1].v));
             j--)
            swap(&h->v[j], &h->v[j - 1]);
}

static int compare_ascending(const void *a, const void *b)
{
    double x = ((const struct entry *)a)->v, y = ((const struct entry *)b)->v;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x > y) - (x < y);
}

static int compare_descending(const void *a, const void *b)
{
    double x = ((const struct entry *)a)->v, y = ((const struct entry *)b)->v;
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return (x < y) - (x > y);
}

static void sort_chosen(const struct op_rank *o, struct heap *h)
{
    enum { SORT_IN_PLACE_MAX = 12 };
    if (o->code == AGG_LIMITK || o->code == AGG_LIMIT_RATIO) return;
    if (h->n <= SORT_IN_PLACE_MAX)
        sort_best_first(o, h);
    else
        qsort(h->v, h->n, sizeof *h->v, o->code == AGG_TOPK ? compare_descending : compare_ascending);
}

static err place_entry(struct op_rank *o, const struct entry *e, uint32_t step)
{
    struct held_row *r = &o->kept.v[e->row];
    r->v[step] = e->v;
    if (!e->h) return NULL;
    if (!r->h) TRY(exec_hist_column(o->op.x, o->op.n, &r->h));
    r->h[step] = e->h;
    r->v[step] = no_sample();
    return NULL;
}

/* From heaps to rows. */
static err make_rows(struct op_rank *o)
{
    struct exec *x = o->op.x;
    o->order = arena_alloc(x->arena, (o->kept.n + 1) * sizeof *o->order);
    bool *listed = arena_zalloc(x->arena, o->kept.n + 1);
    for (size_t g = 0; g < o->grouping.n; g++)
        for (uint32_t i = 0; i < o->op.n; i++) {
            struct heap *h = &o->heaps[g][i];
            if (o->op.n == 1) sort_chosen(o, h);
            for (uint32_t k = 0; k < h->n; k++) {
                struct held_row *r = &o->kept.v[h->v[k].row];
                if (!listed[h->v[k].row]) {
                    listed[h->v[k].row] = true;
                    o->order[o->n_order++] = h->v[k].row;
                    TRY(exec_columns(x, 1, o->op.n, &r->v));
                    column_clear(r->v, o->op.n);
                }
                TRY(place_entry(o, &h->v[k], i));
            }
        }
    return NULL;
}

static err rank_next(struct op *op, struct row *row, bool *more)
{
    struct op_rank *o = (struct op_rank *)op;
    if (!o->chosen) {
        o->chosen = true;
        if (o->param)
            TRY(choose_all(o));
        else
            TRY(drain(o->vector)); /* what is wrong with the vector is wrong also when nothing is taken from it */
        TRY(make_rows(o));
    }
    *more = o->at < o->n_order;
    if (*more) *row = held_as_row(&o->kept.v[o->order[o->at++]]);
    return NULL;
}

/* ---- opening ------------------------------------------------------------------------------------------------- */

static void note_ratio(struct op_rank *o, double ratio, double cap)
{
    notes_add(o->op.x->notes, NOTE_WARNING, o->op.node->kids[1]->expr->start,
              "ratio value should be between -1 and 1, got %g, capping to %g", ratio, cap);
}

/* *nothing: no step can choose anything. */
static err check_param(struct op_rank *o, const double *param, bool *nothing)
{
    bool ratio = o->code == AGG_LIMIT_RATIO, any_nan = false;
    double least = INFINITY, most = -INFINITY;
    for (uint32_t i = 0; i < o->op.n; i++) {
        any_nan = any_nan || isnan(param[i]);
        least = fmin(least, param[i]);
        most = fmax(most, param[i]);
    }
    *nothing = ratio ? least == 0 && most == 0 && !any_nan : most < 1 && !any_nan;
    if (*nothing) return NULL;
    if (any_nan) return err_new(ERR_EXECUTION, ratio ? "Ratio value is NaN" : "Parameter value is NaN");
    if (ratio) {
        if (most > 1) note_ratio(o, most, 1);
        if (least < -1) note_ratio(o, least, -1);
        return NULL;
    }
    if (least <= (double)INT64_MIN) return err_new(ERR_EXECUTION, "Scalar value %g underflows int64", least);
    if (most >= (double)INT64_MAX) return err_new(ERR_EXECUTION, "Scalar value %g overflows int64", most);
    return NULL;
}

err op_rank_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_rank *o = op_new(x, node, sizeof *o, rank_next, rank_close);
    *out = &o->op;
    o->code = node->expr->aggregate.op;
    grouping_init(&o->grouping, x, node->expr, (str){0});
    double *param;
    bool nothing;
    TRY(exec_column(x, node->kids[1], &param));
    TRY(check_param(o, param, &nothing));
    if (!nothing) o->param = param;
    return exec_open(x, node->kids[0], &o->vector);
}
