/*
 * op_join.c: vector op vector with one-to-one, many-to-one and one-to-many matching.
 *
 * The "one" side is collected into groups by match signature; rows of the "many" side (the left one
 * of one-to-one) stream by and meet their group. Each pair of rows yields one row; at each step at
 * most one row of a group may be present.
 *
 * Which errors there are is a matter of single steps, so groups keep bitmaps of steps:
 *   conflict   two rows of the one side are present: an error if the many side is not empty then
 *   matched    the group has met a row of the many side; a second one is an error in one-to-one
 * and with group_left/right each label set of a result has a bitmap: none may occur twice in a step.
 * fill() lets a row meet a constant where the other side is absent; groups of the one side that met
 * nobody come last.
 */
#include "query/binop.h"

#include "storage/base/alloc.h"

#define NO_ROW UINT32_MAX

struct join_group {
    uint32_t first;               /* of the chain of its rows */
    uint64_t *matched, *conflict; /* bitmaps over steps, made when needed */
    uint32_t rival;               /* a row that conflicts with an earlier one */
};

struct op_join {
    struct op op;
    struct op *one, *many;
    bool one_is_left;
    struct label_key key;
    struct held_rows rows;     /* of the one side */
    uint32_t *chain;           /* [row]: next row of its group */
    struct map numbers;        /* signature → group */
    struct join_group *groups; /* heap */
    size_t n_groups, groups_cap;
    struct map results;       /* labels of a result → bitmap (pointer) */
    uint64_t *many_present;   /* steps at which the many side has a sample */
    bool fill_one, fill_many; /* absent partners are replaced by ... */
    double one_value, many_value;
    /* where the stream of rows is */
    bool collected, many_ended;
    bool has_row;
    struct row row;           /* of the many side */
    struct join_group *group; /* it belongs to; NULL if there is none */
    uint32_t partner;         /* next row of the group to meet */
    bool met_fill;            /* the constant was met, too */
    size_t rest;              /* next row of the one side to check for not having met anybody */
    double *v;
    struct hist **h;
};

static void join_close(struct op *op)
{
    struct op_join *o = (struct op_join *)op;
    map_deinit(&o->numbers);
    map_deinit(&o->results);
    mem_free(o->groups);
}

/* ---- bitmaps -------------------------------------------------------------------------------------------- */

static uint64_t *bits_new(struct op_join *o)
{
    return arena_zalloc(o->op.x->arena, ((size_t)o->op.n / 64 + 1) * sizeof(uint64_t));
}
static bool bit(const uint64_t *bits, uint32_t i)
{
    return bits && (bits[i / 64] >> (i % 64) & 1);
}
static void bit_set(uint64_t *bits, uint32_t i)
{
    bits[i / 64] |= UINT64_C(1) << (i % 64);
}

/* ---- the one side ------------------------------------------------------------------------------------------ */

static struct join_group *group_of(struct op_join *o, const struct labels *ls)
{
    bool added;
    uint64_t number = *map_put(&o->numbers, label_key_hash(&o->key, ls), o->n_groups, &added);
    if (added) {
        if (o->n_groups == o->groups_cap)
            o->groups = mem_grow(o->groups, &o->groups_cap, o->n_groups + 1, sizeof *o->groups);
        o->groups[o->n_groups++] = (struct join_group){.first = NO_ROW, .rival = NO_ROW};
    }
    return &o->groups[number];
}

/* Notes the steps at which the row meets another one of its group. */
static void find_conflicts(struct op_join *o, struct join_group *g, uint32_t number)
{
    struct row row = held_as_row(&o->rows.v[number]);
    for (uint32_t k = g->first; k != NO_ROW; k = o->chain[k]) {
        struct row other = held_as_row(&o->rows.v[k]);
        for (uint32_t i = 0; i < o->op.n; i++) {
            if (!row_has(&row, i) || !row_has(&other, i)) continue;
            if (!g->conflict) g->conflict = bits_new(o);
            bit_set(g->conflict, i);
            g->rival = number;
        }
    }
}

static err collect_one(struct op_join *o)
{
    TRY(held_collect(o->one, &o->rows));
    o->chain = arena_alloc(o->op.x->arena, (o->rows.n + 1) * sizeof *o->chain);
    for (uint32_t i = 0; i < o->rows.n; i++) {
        struct join_group *g = group_of(o, &o->rows.v[i].labels);
        find_conflicts(o, g, i);
        o->chain[i] = g->first;
        g->first = i;
    }
    return NULL;
}

static err conflict_error(struct op_join *o, const struct join_group *g, uint32_t step)
{
    const struct held_row *a = &o->rows.v[g->rival], *b = a;
    for (uint32_t k = o->chain[g->rival]; k != NO_ROW; k = o->chain[k]) {
        struct row row = held_as_row(&o->rows.v[k]);
        if (row_has(&row, step)) b = &o->rows.v[k];
    }
    struct buf text = {0};
    struct labels group = label_key_pick(&o->key, &a->labels, o->op.x->arena);
    buf_printf(&text, "found duplicate series for the match group ");
    labels_print(&group, &text);
    buf_printf(&text, " on the %s hand-side of the operation: [", o->one_is_left ? "left" : "right");
    labels_print(&a->labels, &text);
    buf_printf(&text, ", ");
    labels_print(&b->labels, &text);
    buf_printf(&text, "];many-to-many matching not allowed: matching labels must be unique on one side");
    err e = err_new(ERR_EXECUTION, "%.*s", STR_ARG(buf_as_str(&text)));
    buf_deinit(&text);
    return e;
}

/* ---- pairs --------------------------------------------------------------------------------------------------- */

/* Labels of a result: the many side's, cut to what was matched in one-to-one, with the included ones of the other. */
static struct labels result_labels(struct op_join *o, const struct labels *many, const struct labels *one)
{
    const struct matching *m = &o->op.node->expr->binary.matching;
    struct arena *a = &o->op.scratch;
    struct labels ls = *many;
    if (binop_renames(o->op.node->expr->binary.op)) ls = labels_drop_metadata(&ls, a);
    if (m->card == CARD_ONE_TO_ONE) {
        struct label_key cut = {.names = m->labels, .n = m->n_labels, .except = !m->on};
        ls = label_key_pick(&cut, &ls, a);
    }
    for (uint32_t i = 0; i < m->n_include; i++)
        ls = labels_set(&ls, m->include[i], labels_get(one, m->include[i]), a);
    return ls;
}

static uint64_t *result_bits(struct op_join *o, const struct labels *ls)
{
    struct label_key all = {.hash = o->op.x->hash, .except = true};
    uint64_t *slot = map_put(&o->results, label_key_hash(&all, ls), 0, NULL);
    if (*slot == 0) *slot = (uint64_t)(uintptr_t)bits_new(o);
    return (uint64_t *)(uintptr_t)*slot;
}

/* At the end it is known at which steps the many side had anything to match. */
static err check_conflicts(struct op_join *o)
{
    bool fills = o->fill_one || o->fill_many;
    for (size_t k = 0; k < o->n_groups; k++) {
        const struct join_group *g = &o->groups[k];
        for (uint32_t i = 0; g->conflict && i < o->op.n; i++)
            if (bit(g->conflict, i) && (fills || bit(o->many_present, i))) return conflict_error(o, g, i);
    }
    return NULL;
}

/* Rows of the one side that are in each other's way are the better explanation, if there are any. */
static err ambiguous(struct op_join *o, const char *what)
{
    TRY(check_conflicts(o));
    return err_new(ERR_EXECUTION, "multiple matches for labels: %s", what);
}

/* Marks the steps at which a pair meets, if none was marked for its group or label set before. */
static err mark_matches(struct op_join *o, struct join_group *g, const struct labels *ls, const uint64_t *meets)
{
    bool single = o->op.node->expr->binary.matching.card == CARD_ONE_TO_ONE;
    if (g && !g->matched) g->matched = bits_new(o);
    uint64_t *results = single ? NULL : result_bits(o, ls);
    for (size_t w = 0; w <= o->op.n / 64; w++) {
        if (single && g && (g->matched[w] & meets[w]))
            return ambiguous(o, "many-to-one matching must be explicit (group_left/group_right)");
        if (!single && (results[w] & meets[w])) return ambiguous(o, "grouping labels must ensure unique matches");
        if (g) g->matched[w] |= meets[w];
        if (results) results[w] |= meets[w];
    }
    return NULL;
}

/* One pair of rows, at the steps in `meets`, as a result row. */
static err yield_pair(struct op_join *o, const struct row *many, const struct row *one, struct join_group *g,
                      const uint64_t *meets, struct row *out)
{
    const struct expr *e = o->op.node->expr;
    struct labels ls = result_labels(o, &many->labels, &one->labels);
    TRY(mark_matches(o, g, &ls, meets));
    struct binop b = {.op = e->binary.op,
                      .as_bool = e->binary.return_bool,
                      .at = e->start,
                      .notes = o->op.x->notes,
                      .arena = &o->op.scratch};
    struct operand x = {many->v, many->h, o->many_value}, y = {one->v, one->h, o->one_value};
    bool hists = many->h || one->h;
    if (hists && !o->h) o->h = arena_alloc(o->op.x->arena, (o->op.n + 1) * sizeof *o->h);
    binop_columns(&b, o->one_is_left ? &y : &x, o->one_is_left ? &x : &y, o->op.n, o->v, hists ? o->h : NULL);
    for (uint32_t i = 0; i < o->op.n; i++) { /* a constant side is present everywhere */
        if (bit(meets, i)) continue;
        o->v[i] = no_sample();
        if (hists) o->h[i] = NULL;
    }
    *out = (struct row){.v = o->v,
                        .h = hists ? o->h : NULL,
                        .drop_name = e->binary.return_bool || many->drop_name,
                        .resolved = true,
                        .labels = ls};
    return NULL;
}

/* Where both rows are present. */
static const uint64_t *meeting_steps(struct op_join *o, const struct row *a, const struct row *b, bool *any)
{
    uint64_t *meets = arena_zalloc(&o->op.scratch, ((size_t)o->op.n / 64 + 1) * sizeof *meets);
    *any = false;
    for (uint32_t i = 0; i < o->op.n; i++) {
        if (!row_has(a, i) || !row_has(b, i)) continue;
        bit_set(meets, i);
        *any = true;
    }
    return meets;
}

/* Where the row is present and no row of its group is. */
static const uint64_t *lonely_steps(struct op_join *o, const struct row *row, bool *any)
{
    uint64_t *lonely = arena_zalloc(&o->op.scratch, ((size_t)o->op.n / 64 + 1) * sizeof *lonely);
    *any = false;
    for (uint32_t i = 0; i < o->op.n; i++) {
        bool alone = row_has(row, i);
        for (uint32_t k = o->group ? o->group->first : NO_ROW; alone && k != NO_ROW; k = o->chain[k]) {
            struct row other = held_as_row(&o->rows.v[k]);
            alone = !row_has(&other, i);
        }
        if (!alone) continue;
        bit_set(lonely, i);
        *any = true;
    }
    return lonely;
}

/* ---- the stream ------------------------------------------------------------------------------------------------- */

/* The next row of the many side, with its group. */
static err next_many(struct op_join *o, bool *more)
{
    TRY(op_next(o->many, &o->row, more));
    o->has_row = *more;
    if (!*more) return NULL;
    TRY(row_resolve(&o->row));
    for (uint32_t i = 0; i < o->op.n; i++)
        if (row_has(&o->row, i)) bit_set(o->many_present, i);
    uint64_t *number = map_get(&o->numbers, label_key_hash(&o->key, &o->row.labels));
    o->group = number ? &o->groups[*number] : NULL;
    o->partner = o->group ? o->group->first : NO_ROW;
    o->met_fill = !o->fill_one;
    return NULL;
}

/* The next pair of the current row. */
static err next_pair(struct op_join *o, struct row *out, bool *found)
{
    *found = false;
    while (o->partner != NO_ROW && !*found) {
        struct row one = held_as_row(&o->rows.v[o->partner]);
        o->partner = o->chain[o->partner];
        const uint64_t *meets = meeting_steps(o, &o->row, &one, found);
        if (*found) return yield_pair(o, &o->row, &one, o->group, meets, out);
    }
    if (o->met_fill) return NULL;
    o->met_fill = true;
    const uint64_t *meets = lonely_steps(o, &o->row, found);
    if (!*found) return NULL;
    struct row one = {.labels = label_key_pick(&o->key, &o->row.labels, &o->op.scratch)};
    /* several rows may meet the constant, so it is one-to-one's group that must be unique */
    struct join_group *g = o->group ? o->group : group_of(o, &o->row.labels);
    return yield_pair(o, &o->row, &one, g, meets, out);
}

/* Rows of the one side at the steps where their group met nobody. */
static err next_rest(struct op_join *o, struct row *out, bool *found)
{
    *found = false;
    while (o->fill_many && o->rest < o->rows.n && !*found) {
        struct row one = held_as_row(&o->rows.v[o->rest++]);
        struct join_group *g = group_of(o, &one.labels);
        uint64_t *alone = arena_zalloc(&o->op.scratch, ((size_t)o->op.n / 64 + 1) * sizeof *alone);
        for (uint32_t i = 0; i < o->op.n; i++) {
            if (!row_has(&one, i) || bit(g->matched, i)) continue;
            bit_set(alone, i);
            *found = true;
        }
        if (!*found) continue;
        struct row many = {.labels = label_key_pick(&o->key, &one.labels, &o->op.scratch)};
        return yield_pair(o, &many, &one, g, alone, out);
    }
    return NULL;
}

static err join_next(struct op *op, struct row *out, bool *more)
{
    struct op_join *o = (struct op_join *)op;
    if (!o->collected) TRY(collect_one(o));
    o->collected = true;
    bool found = false;
    while (!o->many_ended) {
        arena_reset(&op->scratch);
        if (o->has_row) TRY(next_pair(o, out, &found));
        if (found) {
            *more = true;
            return NULL;
        }
        TRY(next_many(o, more));
        o->many_ended = !*more;
        if (o->many_ended) TRY(check_conflicts(o));
    }
    arena_reset(&op->scratch);
    return next_rest(o, out, more);
}

err op_join_open(struct exec *x, const struct plan_node *node, struct op **out)
{
    struct op_join *o = op_new(x, node, sizeof *o, join_next, join_close);
    *out = &o->op;
    const struct matching *m = &node->expr->binary.matching;
    str *names = arena_alloc(x->arena, (m->n_labels + 1) * sizeof *names);
    uint32_t n = m->n_labels;
    for (uint32_t i = 0; i < n; i++)
        names[i] = m->labels[i];
    if (!m->on) names[n++] = LABEL_NAME;
    label_key_init(&o->key, x->hash, names, n, !m->on);
    o->one_is_left = m->card == CARD_ONE_TO_MANY;
    /* Prometheus takes "right" for the one side, also under group_right, where it is the left */
    o->fill_one = m->fill_right;
    o->fill_many = m->fill_left;
    o->one_value = m->fill_right_value;
    o->many_value = m->fill_left_value;
    o->many_present = bits_new(o);
    TRY(exec_columns(x, 1, o->op.n, &o->v));
    TRY(exec_open(x, node->kids[o->one_is_left ? 0 : 1], &o->one));
    return exec_open(x, node->kids[o->one_is_left ? 1 : 0], &o->many);
}
