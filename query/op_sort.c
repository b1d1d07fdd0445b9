/*
 * op_sort.c: sort, sort_desc, sort_by_label, sort_by_label_desc.
 *
 * Only an instant query has an order of its own; over a range, where results are ordered by labels,
 * rows pass through and a warning says so. NaN comes last in either direction; histograms are left
 * out of sort and sort_desc. Labels compare in natural order: runs of digits as numbers.
 */
#include "query/exec.h"

#include <math.h>
#include <stdlib.h>

struct op_sort {
    struct op op;
    struct op *vector;
    enum special_code code;
    str *labels;
    uint32_t n_labels;
    struct held_rows rows;
    struct sort_row *order;
    size_t at;
    bool collected;
};

struct sort_row {
    const struct op_sort *o;
    const struct held_row *row;
    size_t number;
};

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static size_t digits(str s, size_t at)
{
    size_t n = at;
    while (n < s.n && is_digit(s.p[n]))
        n++;
    return n - at;
}

/* Numbers without their leading zeros: longer is greater. */
static int compare_numbers(str a, str b)
{
    while (a.n > 1 && a.p[0] == '0')
        a.p++, a.n--;
    while (b.n > 1 && b.p[0] == '0')
        b.p++, b.n--;
    if (a.n != b.n) return a.n < b.n ? -1 : 1;
    return str_cmp(a, b);
}

static int natural_cmp(str a, str b)
{
    size_t i = 0, k = 0;
    while (i < a.n && k < b.n) {
        size_t da = digits(a, i), db = digits(b, k);
        if (da && db) {
            int order = compare_numbers((str){a.p + i, da}, (str){b.p + k, db});
            if (order) return order;
            i += da;
            k += db;
            continue;
        }
        unsigned char x = (unsigned char)a.p[i++], y = (unsigned char)b.p[k++];
        if (x != y) return x < y ? -1 : 1;
    }
    if (i < a.n || k < b.n) return i < a.n ? 1 : -1;
    return str_cmp(a, b);
}

static int compare_values(const struct held_row *a, const struct held_row *b, bool descending)
{
    double x = a->v[0], y = b->v[0];
    if (isnan(x) || isnan(y)) return isnan(x) - isnan(y);
    return descending ? (x < y) - (x > y) : (x > y) - (x < y);
}

static int compare_labels(const struct op_sort *o, const struct held_row *a, const struct held_row *b)
{
    for (uint32_t i = 0; i < o->n_labels; i++) {
        int order = natural_cmp(labels_get(&a->labels, o->labels[i]), labels_get(&b->labels, o->labels[i]));
        if (order) return order;
    }
    return labels_cmp(&a->labels, &b->labels);
}

static int compare_rows(const void *pa, const void *pb)
{
    const struct sort_row *a = pa, *b = pb;
    const struct op_sort *o = a->o;
    int order;
    if (o->code == SPECIAL_SORT || o->code == SPECIAL_SORT_DESC)
        order = compare_values(a->row, b->row, o->code == SPECIAL_SORT_DESC);
    else
        order =
            o->code == SPECIAL_SORT_BY_LABEL ? compare_labels(o, a->row, b->row) : -compare_labels(o, a->row, b->row);
    return order ? order : (a->number > b->number) - (a->number < b->number);
}

static err collect(struct op_sort *o)
{
    TRY(held_collect(o->vector, &o->rows));
    o->order = arena_alloc(o->op.x->arena, (o->rows.n + 1) * sizeof *o->order);
    bool values = o->code == SPECIAL_SORT || o->code == SPECIAL_SORT_DESC;
    size_t n = 0;
    for (size_t i = 0; i < o->rows.n; i++)
        if (!values || !is_stale_nan(o->rows.v[i].v[0])) o->order[n++] = (struct sort_row){o, &o->rows.v[i], i};
    o->rows.n = n;
    qsort(o->order, n, sizeof *o->order, compare_rows);
    return NULL;
}

static err sorted_next(struct op *op, struct row *row, bool *more)
{
    struct op_sort *o = (struct op_sort *)op;
    if (!o->collected) TRY(collect(o));
    o->collected = true;
    *more = o->at < o->rows.n;
    if (*more) *row = held_as_row(o->order[o->at++].row);
    return NULL;
}

static err pass_next(struct op *op, struct row *row, bool *more)
{
    struct op_sort *o = (struct op_sort *)op;
    TRY(op_next(o->vector, row, more));
    bool values = o->code == SPECIAL_SORT || o->code == SPECIAL_SORT_DESC;
    if (*more && values) row->h = NULL;
    return NULL;
}

err op_sort_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    bool instant = node->grid.n == 1 && x->plan->step == 0;
    struct op_sort *o = op_new(x, node, sizeof *o, instant ? sorted_next : pass_next, NULL);
    *out = &o->op;
    o->code = (enum special_code)node->fn->code;
    o->n_labels = node->n_kids - 1;
    o->labels = arena_alloc(x->arena, (o->n_labels + 1) * sizeof *o->labels);
    for (uint32_t i = 0; i < o->n_labels; i++)
        o->labels[i] = node->kids[i + 1]->string;
    if (!instant)
        notes_add(x->notes, NOTE_WARNING, node->expr->start,
                  "sort is ineffective for range queries since results are always ordered by labels");
    return exec_open(x, node->kids[0], &o->vector);
}
