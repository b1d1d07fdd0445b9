/*
 * oracle_binary.c: operators between scalars and vectors, and the matching of two vectors, step by step.
 *
 * Each element of one side is compared with each of the other; nothing is hashed. See oracle.h.
 */
#include "tests/oracle/oracle.h"

#include <math.h>

/* The value of `a op b`; a comparison says with *keep whether it holds and gives a. */
static double apply(enum binary_op op, double a, double b, bool *keep)
{
    *keep = true;
    switch (op) {
    case OP_ADD:
        return a + b;
    case OP_SUB:
        return a - b;
    case OP_MUL:
        return a * b;
    case OP_DIV:
        return a / b;
    case OP_MOD:
        return fmod(a, b);
    case OP_POW:
        return pow(a, b);
    case OP_ATAN2:
        return atan2(a, b);
    case OP_EQ:
        *keep = a == b;
        break;
    case OP_NE:
        *keep = a != b;
        break;
    case OP_LT:
        *keep = a < b;
        break;
    case OP_GT:
        *keep = a > b;
        break;
    case OP_LE:
        *keep = a <= b;
        break;
    case OP_GE:
        *keep = a >= b;
        break;
    default:
        *keep = false;
        break; /* </ and >/ drop floats */
    }
    return a;
}

static bool is_comparison(enum binary_op op)
{
    return op >= OP_EQ && op <= OP_GE;
}

/* ---- with scalars ------------------------------------------------------------------------------------------ */

static struct oracle_matrix two_scalars(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    struct oracle_matrix a = oracle_eval(o, g, e->binary.lhs), b = oracle_eval(o, g, e->binary.rhs), out = {0};
    struct oracle_row *row = oracle_add_row(o, &out, g, (struct labels){0}, false);
    for (size_t i = 0; i < g.n; i++) {
        bool keep;
        double v = apply(e->binary.op, oracle_scalar_at(&a, i), oracle_scalar_at(&b, i), &keep);
        row->has[i] = true;
        row->v[i] = is_comparison(e->binary.op) ? keep : v;
    }
    return out;
}

static struct oracle_matrix vector_scalar(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    bool swap = e->binary.lhs->type == TYPE_SCALAR;
    enum binary_op op = e->binary.op;
    struct oracle_matrix m = oracle_eval(o, g, swap ? e->binary.rhs : e->binary.lhs);
    struct oracle_matrix scalar = oracle_eval(o, g, swap ? e->binary.lhs : e->binary.rhs);
    for (size_t k = 0; k < m.n; k++) {
        struct oracle_row *row = &m.rows[k];
        if (!is_comparison(op) || e->binary.return_bool) row->drop_name = true;
        for (size_t i = 0; i < g.n; i++) {
            if (!row->has[i]) continue;
            double s = oracle_scalar_at(&scalar, i), v = row->v[i];
            bool keep;
            double result = swap ? apply(op, s, v, &keep) : apply(op, v, s, &keep);
            if (e->binary.return_bool)
                row->v[i] = keep;
            else if (is_comparison(op))
                row->has[i] = keep;
            else {
                row->v[i] = result;
                row->has[i] = keep;
            }
        }
    }
    return m;
}

/* ---- two vectors ------------------------------------------------------------------------------------------- */

static struct labels signature(struct oracle *o, const struct matching *m, const struct labels *ls)
{
    if (m->on) return oracle_labels_keep(o, ls, m->labels, m->n_labels);
    struct labels rest = oracle_labels_drop(o, ls, m->labels, m->n_labels);
    return oracle_labels_drop_name(o, &rest);
}

static struct labels *signatures(struct oracle *o, const struct matching *m, const struct oracle_vector *v)
{
    struct labels *s = arena_alloc(o->arena, (v->n + 1) * sizeof *s);
    for (size_t i = 0; i < v->n; i++)
        s[i] = signature(o, m, &v->s[i].labels);
    return s;
}

static bool among(const struct labels *set, size_t n, const struct labels *one)
{
    for (size_t i = 0; i < n; i++)
        if (labels_eq(&set[i], one)) return true;
    return false;
}

static struct oracle_vector set_step(struct oracle *o, const struct expr *e, const struct oracle_vector *a,
                                     const struct oracle_vector *b)
{
    struct oracle_vector out = {0};
    struct labels *sa = signatures(o, &e->binary.matching, a), *sb = signatures(o, &e->binary.matching, b);
    for (size_t i = 0; i < a->n; i++) {
        bool in_b = among(sb, b->n, &sa[i]);
        if (e->binary.op == OP_OR || in_b == (e->binary.op == OP_AND))
            oracle_push(o, &out, a->s[i].labels, a->s[i].drop_name, a->s[i].v);
    }
    for (size_t i = 0; i < b->n && e->binary.op == OP_OR; i++)
        if (!among(sa, a->n, &sb[i])) oracle_push(o, &out, b->s[i].labels, b->s[i].drop_name, b->s[i].v);
    return out;
}

struct join {
    struct oracle *o;
    const struct expr *e;
    struct oracle_vector out;
    struct labels *done, *done_signature; /* results so far, also those that a comparison dropped */
    size_t n_done;
};

static struct labels result_labels(struct oracle *o, const struct expr *e, const struct labels *many,
                                   const struct labels *one)
{
    const struct matching *m = &e->binary.matching;
    struct labels ls = *many;
    if (!is_comparison(e->binary.op)) ls = oracle_labels_drop_name(o, &ls);
    if (m->card == CARD_ONE_TO_ONE)
        ls = m->on ? oracle_labels_keep(o, &ls, m->labels, m->n_labels)
                   : oracle_labels_drop(o, &ls, m->labels, m->n_labels);
    for (uint32_t i = 0; i < m->n_include; i++)
        ls = oracle_labels_set(o, &ls, m->include[i], labels_get(one, m->include[i]));
    return ls;
}

/* many and one: the sides of a many-to-one matching, whichever way it was written. */
static void join_pair(struct join *j, const struct oracle_sample *many, const struct oracle_sample *one,
                      const struct labels *sig)
{
    const struct expr *e = j->e;
    bool swapped = e->binary.matching.card == CARD_ONE_TO_MANY, keep;
    double l = swapped ? one->v : many->v, r = swapped ? many->v : one->v;
    double v = apply(e->binary.op, l, r, &keep);
    struct labels ls = result_labels(j->o, e, &many->labels, &one->labels);
    for (size_t i = 0; i < j->n_done; i++) {
        if (!labels_eq(&j->done_signature[i], sig)) continue;
        if (e->binary.matching.card == CARD_ONE_TO_ONE) oracle_fail(j->o, "many-to-one matching must be explicit");
        if (labels_eq(&j->done[i], &ls)) oracle_fail(j->o, "grouping labels must ensure unique matches");
    }
    j->done[j->n_done] = ls;
    j->done_signature[j->n_done++] = *sig;
    if (e->binary.return_bool) v = keep;
    if (keep || e->binary.return_bool) oracle_push(j->o, &j->out, ls, many->drop_name || e->binary.return_bool, v);
}

static struct oracle_vector join_step(struct oracle *o, const struct expr *e, const struct oracle_vector *lhs,
                                      const struct oracle_vector *rhs)
{
    const struct matching *m = &e->binary.matching;
    bool swapped = m->card == CARD_ONE_TO_MANY;
    const struct oracle_vector *many = swapped ? rhs : lhs, *one = swapped ? lhs : rhs;
    struct labels *sm = signatures(o, m, many), *so = signatures(o, m, one);
    struct join j = {o,
                     e,
                     {0},
                     arena_alloc(o->arena, (many->n + one->n + 1) * sizeof(struct labels)),
                     arena_alloc(o->arena, (many->n + one->n + 1) * sizeof(struct labels)),
                     0};
    /* As the reference's scripts have it: fill_left fills the many side, fill_right the one side, also when group_right
     * makes them the other way round than they were written. */
    bool fill_one = m->fill_right, fill_many = m->fill_left;
    double one_value = m->fill_right_value, many_value = m->fill_left_value;
    bool short_cut = (many->n == 0 && one->n == 0) || ((many->n == 0 || one->n == 0) && !fill_one && !fill_many);
    if (short_cut) return j.out;
    for (size_t i = 0; i < one->n; i++)
        if (among(so, i, &so[i])) oracle_fail(o, "many-to-many matching not allowed");
    for (size_t i = 0; i < many->n; i++) {
        bool found = false;
        for (size_t k = 0; k < one->n; k++) {
            if (!labels_eq(&sm[i], &so[k])) continue;
            join_pair(&j, &many->s[i], &one->s[k], &sm[i]);
            found = true;
        }
        struct oracle_sample filled = {sm[i], false, one_value};
        if (!found && fill_one) join_pair(&j, &many->s[i], &filled, &sm[i]);
        if (o->failed) return j.out;
    }
    for (size_t k = 0; k < one->n && fill_many; k++) {
        struct oracle_sample filled = {so[k], false, many_value};
        if (!among(sm, many->n, &so[k])) join_pair(&j, &filled, &one->s[k], &so[k]);
    }
    return j.out;
}

struct oracle_matrix oracle_binary(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    enum value_type l = e->binary.lhs->type, r = e->binary.rhs->type;
    if (l == TYPE_SCALAR && r == TYPE_SCALAR) return two_scalars(o, g, e);
    if (l == TYPE_SCALAR || r == TYPE_SCALAR) return vector_scalar(o, g, e);
    struct oracle_matrix a = oracle_eval(o, g, e->binary.lhs), b = oracle_eval(o, g, e->binary.rhs), out = {0};
    bool set = e->binary.op >= OP_AND;
    for (size_t i = 0; i < g.n && !o->failed; i++) {
        struct oracle_vector va = oracle_at(o, &a, i), vb = oracle_at(o, &b, i);
        struct oracle_vector v = set ? set_step(o, e, &va, &vb) : join_step(o, e, &va, &vb);
        oracle_collect(o, &out, g, i, &v);
    }
    return out;
}
