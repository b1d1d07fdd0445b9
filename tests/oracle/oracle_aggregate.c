/*
 * oracle_aggregate.c: aggregations, step by step: the groups of a step are found by comparing label sets, the members
 * of each gathered in a list, and the list reduced. See oracle.h.
 */
#include "tests/oracle/oracle.h"

#include <math.h>
#include <stdlib.h>

#include "storage/base/num.h"

struct group {
    struct labels labels;
    bool drop_name;
    struct oracle_vector members;
};

struct groups {
    struct group *g;
    size_t n;
};

static struct labels group_labels(struct oracle *o, const struct expr *e, const struct labels *ls)
{
    if (!e->aggregate.without) return oracle_labels_keep(o, ls, e->aggregate.grouping, e->aggregate.n_grouping);
    struct labels rest = oracle_labels_drop(o, ls, e->aggregate.grouping, e->aggregate.n_grouping);
    return oracle_labels_drop_name(o, &rest);
}

static struct groups group_step(struct oracle *o, const struct expr *e, const struct oracle_vector *v)
{
    struct groups gs = {arena_zalloc(o->arena, (v->n + 1) * sizeof *gs.g), 0};
    for (size_t i = 0; i < v->n; i++) {
        struct labels ls = group_labels(o, e, &v->s[i].labels);
        size_t k = 0;
        while (k < gs.n && !labels_eq(&gs.g[k].labels, &ls))
            k++;
        if (k == gs.n) gs.g[gs.n++].labels = ls;
        if (v->s[i].drop_name) gs.g[k].drop_name = true;
        oracle_push(o, &gs.g[k].members, v->s[i].labels, v->s[i].drop_name, v->s[i].v);
    }
    return gs;
}

static double extreme(const double *v, size_t n, bool max)
{
    double best = v[0];
    for (size_t i = 1; i < n; i++)
        if (isnan(best) || (max ? v[i] > best : v[i] < best)) best = v[i];
    return best;
}

static double total(const double *v, size_t n)
{
    struct oracle_sum s = {v[0], 0};
    for (size_t i = 1; i < n; i++)
        oracle_sum_add(&s, v[i]);
    return s.sum + s.c;
}

static double reduce(struct oracle *o, enum aggregate_op op, const double *v, size_t n, double param)
{
    switch (op) {
    case AGG_SUM:
        return total(v, n);
    case AGG_AVG:
        return oracle_mean(v, n);
    case AGG_MIN:
        return extreme(v, n, false);
    case AGG_MAX:
        return extreme(v, n, true);
    case AGG_COUNT:
        return (double)n;
    case AGG_GROUP:
        return 1;
    case AGG_STDDEV:
        return sqrt(oracle_variance(o, v, n));
    case AGG_STDVAR:
        return oracle_variance(o, v, n);
    case AGG_QUANTILE:
        return oracle_quantile(o, param, v, n);
    default:
        break;
    }
    oracle_unsure(o, "the oracle does not know this aggregation");
    return 0;
}

static struct oracle_vector reduce_step(struct oracle *o, const struct expr *e, const struct groups *gs, double param)
{
    struct oracle_vector out = {0};
    for (size_t k = 0; k < gs->n; k++) {
        const struct group *g = &gs->g[k];
        double *v = arena_alloc(o->arena, g->members.n * sizeof *v);
        for (size_t i = 0; i < g->members.n; i++)
            v[i] = g->members.s[i].v;
        oracle_push(o, &out, g->labels, g->drop_name, reduce(o, e->aggregate.op, v, g->members.n, param));
    }
    return out;
}

/* ---- those that pick members ------------------------------------------------------------------------------- */

/* True if a ranks before b; NaN ranks last either way. */
static bool before(double a, double b, bool top)
{
    if (isnan(a)) return false;
    if (isnan(b)) return true;
    return top ? a > b : a < b;
}

static void pick_ranked(struct oracle *o, struct oracle_vector *out, const struct group *g, double k, bool top)
{
    for (size_t i = 0; i < g->members.n; i++) {
        size_t better = 0, equal = 0;
        double v = g->members.s[i].v;
        for (size_t j = 0; j < g->members.n; j++) {
            if (j == i) continue;
            if (before(g->members.s[j].v, v, top))
                better++;
            else if (!before(v, g->members.s[j].v, top))
                equal++;
        }
        if ((double)better >= k) continue;
        if ((double)(better + equal) >= k) oracle_unsure(o, "a tie at the edge of topk or bottomk");
        oracle_push(o, out, g->members.s[i].labels, g->members.s[i].drop_name, v);
    }
}

static void pick_all(struct oracle *o, struct oracle_vector *out, const struct group *g)
{
    for (size_t i = 0; i < g->members.n; i++)
        oracle_push(o, out, g->members.s[i].labels, g->members.s[i].drop_name, g->members.s[i].v);
}

static struct oracle_vector pick_step(struct oracle *o, const struct expr *e, const struct groups *gs, double param)
{
    struct oracle_vector out = {0};
    double k = trunc(param);
    enum aggregate_op op = e->aggregate.op;
    for (size_t i = 0; i < gs->n; i++) {
        const struct group *g = &gs->g[i];
        if (op == AGG_TOPK || op == AGG_BOTTOMK) {
            pick_ranked(o, &out, g, k, op == AGG_TOPK);
        } else if (op == AGG_LIMITK) {
            if (k >= 1 && (double)g->members.n > k) oracle_unsure(o, "limitk may take any");
            if (k >= 1) pick_all(o, &out, g);
        } else {
            if (param != 0 && fabs(param) < 1) oracle_unsure(o, "limit_ratio may take any");
            if (param != 0) pick_all(o, &out, g);
        }
    }
    return out;
}

/* count_values: the value's text becomes a label, members with the same text are counted. The label counts among
 * those of by(); without() can take it away again. */
static struct oracle_vector count_step(struct oracle *o, const struct expr *e, const struct oracle_vector *v)
{
    struct oracle_vector out = {0};
    str label = oracle_unwrap(e->aggregate.param)->string;
    for (size_t i = 0; i < v->n; i++) {
        char text[NUM_DOUBLE_MAX];
        str value = arena_str(o->arena, (str){text, num_format_double(v->s[i].v, text)});
        if (v->s[i].drop_name && oracle_names_have(e->aggregate.grouping, e->aggregate.n_grouping, LABEL_NAME))
            oracle_unsure(o, "count_values by a name that is to be dropped");
        struct labels with = oracle_labels_set(o, &v->s[i].labels, label, value);
        struct labels ls = group_labels(o, e, &with);
        if (!e->aggregate.without) ls = oracle_labels_set(o, &ls, label, value);
        size_t k = 0;
        while (k < out.n && !labels_eq(&out.s[k].labels, &ls))
            k++;
        if (k == out.n) oracle_push(o, &out, ls, v->s[i].drop_name, 0);
        out.s[k].v++;
        if (v->s[i].drop_name) out.s[k].drop_name = true;
    }
    return out;
}

/* ---- all --------------------------------------------------------------------------------------------------- */

static bool picks(enum aggregate_op op)
{
    return op == AGG_TOPK || op == AGG_BOTTOMK || op == AGG_LIMITK || op == AGG_LIMIT_RATIO;
}

/* A count below 1 at every step picks nothing, whatever else it is; else it must be a number, and an int64. A ratio
 * must be a number. The query fails else, whatever the vector holds. */
static void check_parameter(struct oracle *o, struct oracle_grid g, enum aggregate_op op,
                            const struct oracle_matrix *param)
{
    bool nothing = op != AGG_LIMIT_RATIO;
    for (size_t i = 0; i < g.n; i++)
        nothing = nothing && oracle_scalar_at(param, i) < 1;
    for (size_t i = 0; i < g.n && !nothing && picks(op); i++) {
        double p = oracle_scalar_at(param, i);
        if (isnan(p)) oracle_fail(o, "parameter is NaN");
        if (op != AGG_LIMIT_RATIO && fabs(p) >= 0x1p63) oracle_fail(o, "parameter is no int64");
    }
}

struct oracle_matrix oracle_aggregate(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    enum aggregate_op op = e->aggregate.op;
    struct oracle_matrix in = oracle_eval(o, g, e->aggregate.inner), param = {0}, out = {0};
    bool has_number = e->aggregate.param != NULL && op != AGG_COUNT_VALUES;
    if (has_number) {
        param = oracle_eval(o, g, e->aggregate.param);
        check_parameter(o, g, op, &param);
    }
    for (size_t i = 0; i < g.n && !o->failed; i++) {
        struct oracle_vector v = oracle_at(o, &in, i), result;
        struct groups gs = group_step(o, e, &v);
        double p = has_number ? oracle_scalar_at(&param, i) : 0;
        if (op == AGG_COUNT_VALUES)
            result = count_step(o, e, &v);
        else
            result = picks(op) ? pick_step(o, e, &gs, p) : reduce_step(o, e, &gs, p);
        oracle_collect(o, &out, g, i, &result);
    }
    return out;
}
