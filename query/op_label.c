/*
 * op_label.c: label_replace and label_join: rows pass with other labels.
 *
 * Several rows may come out with the same labels; that is allowed as long as no two have a sample at
 * the same step, which a bitmap of steps per label set finds out.
 */
#include "query/exec.h"

struct op_label {
    struct op op;
    struct op *vector;
    str target;      /* label that is set */
    str replacement; /* of label_replace; separator of label_join */
    str *sources;
    uint32_t n_sources;
    struct regex *re; /* owned; NULL: label_join */
    struct map seen;  /* labels → bitmap of steps */
};

static void label_close(struct op *op)
{
    struct op_label *o = (struct op_label *)op;
    regex_destroy(o->re);
    map_deinit(&o->seen);
}

static err check_repeats(struct op_label *o, const struct row *row)
{
    struct label_key all = {.hash = o->op.x->hash, .except = true};
    uint64_t *slot = map_put(&o->seen, label_key_hash(&all, &row->labels), 0, NULL);
    size_t bytes = ((size_t)o->op.n / 64 + 1) * sizeof(uint64_t);
    if (*slot == 0) {
        TRY(budget_hold(o->op.x->budget, 0, bytes));
        *slot = (uint64_t)(uintptr_t)arena_zalloc(o->op.x->arena, bytes);
    }
    uint64_t *bits = (uint64_t *)(uintptr_t)*slot;
    for (uint32_t i = 0; i < o->op.n; i++) {
        if (!row_has(row, i)) continue;
        if (bits[i / 64] >> (i % 64) & 1) return error_same_labelset();
        bits[i / 64] |= UINT64_C(1) << (i % 64);
    }
    return NULL;
}

static err replace(struct op_label *o, const struct labels *ls, bool *matched, str *value)
{
    return regex_replace(o->re, labels_get(ls, o->sources[0]), o->replacement, &o->op.scratch, matched, value);
}

static str join(struct op_label *o, const struct labels *ls)
{
    size_t n = 0;
    for (uint32_t i = 0; i < o->n_sources; i++)
        n += labels_get(ls, o->sources[i]).n + o->replacement.n;
    char *p = arena_alloc(&o->op.scratch, n + 1), *at = p;
    for (uint32_t i = 0; i < o->n_sources; i++) {
        str v = labels_get(ls, o->sources[i]);
        if (i > 0 && o->replacement.n) at = mempcpy(at, o->replacement.p, o->replacement.n);
        if (v.n) at = mempcpy(at, v.p, v.n);
    }
    return (str){p, (size_t)(at - p)};
}

static err label_next(struct op *op, struct row *row, bool *more)
{
    struct op_label *o = (struct op_label *)op;
    TRY(op_next(o->vector, row, more));
    if (!*more) return NULL;
    TRY(row_resolve(row));
    arena_reset(&op->scratch);
    bool matched = true;
    str value = {0};
    if (o->re)
        TRY(replace(o, &row->labels, &matched, &value));
    else
        value = join(o, &row->labels);
    if (matched) {
        row->labels = labels_set(&row->labels, o->target, value, &op->scratch);
        if (str_eq(o->target, LABEL_NAME)) row->drop_name = false;
    }
    return check_repeats(o, row);
}

static err check_name(str name, const char *what, const char *function)
{
    if (name.n > 0 && utf8_valid(name)) return NULL;
    return err_new(ERR_EXECUTION, "invalid %s label name in %s(): %.*s", what, function, STR_ARG(name));
}

/* The text of a query is fine even if a string in it is no regex: an error of execution, as in Prometheus. */
static err create_regex(str pattern, struct regex **re)
{
    err cause = regex_create(pattern, re);
    if (!cause) return NULL;
    err e = err_new(ERR_EXECUTION, "invalid regular expression in label_replace(): %s", err_message(cause));
    err_free(cause);
    return e;
}

err op_label_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_label *o = op_new(x, node, sizeof *o, label_next, label_close);
    *out = &o->op;
    bool replaces = node->fn->code == SPECIAL_LABEL_REPLACE;
    o->target = node->kids[1]->string;
    o->replacement = node->kids[2]->string;
    o->n_sources = replaces ? 1 : node->n_kids - 3;
    o->sources = arena_alloc(x->arena, (o->n_sources + 1) * sizeof *o->sources);
    for (uint32_t i = 0; i < o->n_sources; i++)
        o->sources[i] = node->kids[3 + i]->string;
    if (replaces) {
        TRY(create_regex(node->kids[4]->string, &o->re));
    }
    for (uint32_t i = 0; !replaces && i < o->n_sources; i++)
        TRY(check_name(o->sources[i], "source", node->fn->name));
    TRY(check_name(o->target, "destination", node->fn->name));
    return exec_open(x, node->kids[0], &o->vector);
}
