/*
 * op_set.c: and, or, unless.
 *
 * What counts is at which steps a match signature is present: one bitmap of steps a signature. For
 * `and` and `unless` the right side is folded into bitmaps and the left one streams by; for `or` the
 * left side streams by first and leaves its bitmaps for the right one. No row is held.
 */
#include "query/exec.h"

struct op_set {
    struct op op;
    struct op *left, *right;
    struct label_key key;
    struct map present; /* signature → bitmap over steps (pointer into the query's arena) */
    bool right_folded, left_ended;
};

static void set_close(struct op *op)
{
    map_deinit(&((struct op_set *)op)->present);
}

/* The bitmap of the row's signature; NULL if it has none and none is to be made. */
static err bitmap_of(struct op_set *o, struct row *row, bool make, uint64_t **bits)
{
    TRY(row_resolve(row));
    struct hash128 h = label_key_hash(&o->key, &row->labels);
    uint64_t *slot = make ? map_put(&o->present, h, 0, NULL) : map_get(&o->present, h);
    if (slot && *slot == 0) {
        size_t bytes = ((size_t)o->op.n / 64 + 1) * sizeof(uint64_t);
        TRY(budget_hold(o->op.x->budget, 0, bytes));
        *slot = (uint64_t)(uintptr_t)arena_zalloc(o->op.x->arena, bytes);
    }
    *bits = slot ? (uint64_t *)(uintptr_t)*slot : NULL;
    return NULL;
}

static err fold_row(struct op_set *o, struct row *row)
{
    uint64_t *bits;
    if (!row_any(row, o->op.n)) return NULL;
    TRY(bitmap_of(o, row, true, &bits));
    for (uint32_t i = 0; i < o->op.n; i++)
        if (row_has(row, i)) bits[i / 64] |= UINT64_C(1) << (i % 64);
    return NULL;
}

static err fold_right(struct op_set *o)
{
    struct row row;
    bool more;
    for (;;) {
        TRY(op_next(o->right, &row, &more));
        if (!more) return NULL;
        TRY(fold_row(o, &row));
    }
}

/* Takes away the steps at which the signature is (or is not) present on the other side. */
static err filter(struct op_set *o, struct row *row, bool keep_present)
{
    uint64_t *bits;
    TRY(bitmap_of(o, row, false, &bits));
    if (!bits && !keep_present) return NULL;
    for (uint32_t i = 0; i < o->op.n; i++) {
        bool present = bits && (bits[i / 64] >> (i % 64) & 1);
        if (present == keep_present) continue;
        row->v[i] = no_sample();
        if (row->h) row->h[i] = NULL;
    }
    return NULL;
}

static err and_unless_next(struct op *op, struct row *row, bool *more)
{
    struct op_set *o = (struct op_set *)op;
    if (!o->right_folded) TRY(fold_right(o));
    o->right_folded = true;
    TRY(op_next(o->left, row, more));
    return *more ? filter(o, row, op->node->expr->binary.op == OP_AND) : NULL;
}

static err or_next(struct op *op, struct row *row, bool *more)
{
    struct op_set *o = (struct op_set *)op;
    if (!o->left_ended) {
        TRY(op_next(o->left, row, more));
        if (*more) return fold_row(o, row);
        o->left_ended = true;
    }
    TRY(op_next(o->right, row, more));
    return *more ? filter(o, row, false) : NULL;
}

err op_set_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    bool is_or = node->expr->binary.op == OP_OR;
    struct op_set *o = op_new(x, node, sizeof *o, is_or ? or_next : and_unless_next, set_close);
    *out = &o->op;
    const struct matching *m = &node->expr->binary.matching;
    str *names = arena_alloc(x->arena, (m->n_labels + 1) * sizeof *names);
    uint32_t n = m->n_labels;
    for (uint32_t i = 0; i < n; i++)
        names[i] = m->labels[i];
    if (!m->on) names[n++] = LABEL_NAME;
    label_key_init(&o->key, x->hash, names, n, !m->on);
    TRY(exec_open(x, node->kids[0], &o->left));
    return exec_open(x, node->kids[1], &o->right);
}
