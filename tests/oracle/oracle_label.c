/*
 * oracle_label.c: label_replace and label_join, and quantiles and fractions of classic histograms (groups of series
 * that differ in `le` only). See oracle.h.
 */
#include "tests/oracle/oracle.h"

#include <math.h>
#include <stdlib.h>

#include "query/functions.h"
#include "storage/base/num.h"
#include "storage/regex.h"

/* ---- label_replace, label_join ----------------------------------------------------------------------------- */

static str string_arg(const struct expr *e, uint32_t i)
{
    return oracle_unwrap(e->call.args[i])->string;
}

static void set_label(struct oracle *o, struct oracle_row *row, str name, str value)
{
    row->labels = oracle_labels_set(o, &row->labels, name, value);
    if (str_eq(name, LABEL_NAME)) row->drop_name = false;
}

static void replace(struct oracle *o, const struct expr *e, const struct regex *re, struct oracle_row *row)
{
    bool matched;
    str value;
    err failed =
        regex_replace(re, labels_get(&row->labels, string_arg(e, 3)), string_arg(e, 2), o->arena, &matched, &value);
    if (failed != NULL) oracle_unsure(o, "regex");
    if (failed == NULL && matched) set_label(o, row, string_arg(e, 1), value);
    err_free(failed);
}

static void join(struct oracle *o, const struct expr *e, struct oracle_row *row)
{
    str separator = string_arg(e, 2), value = {"", 0};
    for (uint32_t i = 3; i < e->call.n_args; i++) {
        str part = labels_get(&row->labels, string_arg(e, i));
        value = arena_printf(o->arena, "%.*s%.*s%.*s", STR_ARG(value), i == 3 ? 0 : (int)separator.n, separator.p,
                             STR_ARG(part));
    }
    set_label(o, row, string_arg(e, 1), value);
}

/* Rows that become equal: an error where they share a step; where they do not, the language leaves it open. */
static void check_unique(struct oracle *o, struct oracle_grid g, const struct oracle_matrix *m)
{
    for (size_t a = 0; a < m->n; a++)
        for (size_t b = 0; b < a; b++) {
            if (!labels_eq(&m->rows[a].labels, &m->rows[b].labels)) continue;
            bool clash = false;
            for (size_t i = 0; i < g.n; i++)
                clash = clash || (m->rows[a].has[i] && m->rows[b].has[i]);
            if (clash)
                oracle_fail(o, "same label set twice after a label function");
            else
                oracle_unsure(o, "series that never meet become one");
        }
}

struct oracle_matrix oracle_relabel(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    struct oracle_matrix m = oracle_eval(o, g, e->call.args[0]);
    struct regex *re = NULL;
    bool replaces = str_eq(str_of(e->call.fn->name), STR("label_replace"));
    if (replaces) {
        err failed = regex_create(string_arg(e, 4), &re);
        if (failed != NULL) {
            err_free(failed);
            oracle_fail(o, "regex");
            return m;
        }
    }
    for (size_t k = 0; k < m.n; k++) {
        if (replaces)
            replace(o, e, re, &m.rows[k]);
        else
            join(o, e, &m.rows[k]);
    }
    regex_destroy(re);
    check_unique(o, g, &m);
    return m;
}

/* ---- classic histograms ------------------------------------------------------------------------------------ */

struct bucket {
    double bound, count; /* cumulative */
};

struct buckets {
    struct labels labels;
    struct bucket *b;
    size_t n;
};

static int by_bound(const void *pa, const void *pb)
{
    double a = ((const struct bucket *)pa)->bound, b = ((const struct bucket *)pb)->bound;
    return (a > b) - (a < b);
}

/* Sorted, equal bounds added up, counts that fall raised to the one before. False: no histogram, as the last bound is
 * not +Inf. */
static bool tidy(struct buckets *h, bool monotonic)
{
    qsort(h->b, h->n, sizeof *h->b, by_bound);
    if (h->n == 0 || h->b[h->n - 1].bound != INFINITY) return false;
    size_t n = 0;
    for (size_t i = 0; i < h->n; i++) {
        if (n > 0 && h->b[n - 1].bound == h->b[i].bound)
            h->b[n - 1].count += h->b[i].count;
        else
            h->b[n++] = h->b[i];
    }
    h->n = n;
    for (size_t i = 1; i < n && monotonic; i++) {
        double before = h->b[i - 1].count, now = h->b[i].count;
        bool tiny = fabs(before - now) <= 1e-12 * (fabs(before) + fabs(now));
        if (now < before || tiny) h->b[i].count = before;
    }
    return true;
}

static double quantile(struct buckets *h, double q)
{
    if (isnan(q)) return NAN;
    if (q < 0) return -INFINITY;
    if (q > 1) return INFINITY;
    if (!tidy(h, true) || h->n < 2 || h->b[h->n - 1].count == 0 || isnan(h->b[h->n - 1].count)) return NAN;
    double rank = q * h->b[h->n - 1].count;
    size_t at = 0;
    while (at < h->n - 1 && !(h->b[at].count >= rank))
        at++;
    if (at == h->n - 1) return h->b[h->n - 2].bound;
    if (at == 0 && h->b[0].bound <= 0) return h->b[0].bound;
    double low = at == 0 ? 0 : h->b[at - 1].bound, below = at == 0 ? 0 : h->b[at - 1].count;
    return low + (h->b[at].bound - low) * ((rank - below) / (h->b[at].count - below));
}

/* Observations up to x, by linear interpolation inside the bucket. */
static double rank_of(const struct buckets *h, double x)
{
    double below = 0;
    for (size_t i = 0; i < h->n; i++) {
        double low = i > 0 ? h->b[i - 1].bound : h->b[0].bound <= 0 ? -INFINITY : 0, high = h->b[i].bound;
        if (low >= x) return below;
        if (high > x) return isinf(low) ? NAN : below + (h->b[i].count - below) * ((x - low) / (high - low));
        below = h->b[i].count;
    }
    return below;
}

static double fraction(struct buckets *h, double lower, double upper)
{
    if (!tidy(h, false) || isnan(lower) || isnan(upper)) return NAN;
    double count = h->b[h->n - 1].count;
    if (count == 0 || isnan(count)) return NAN;
    if (lower >= upper) return 0;
    return (fmin(rank_of(h, upper), count) - fmin(rank_of(h, lower), count)) / count;
}

/* The histograms of a step; samples without a number in le are no buckets. */
static struct buckets *gather(struct oracle *o, const struct oracle_vector *v, size_t *n)
{
    struct buckets *hs = arena_zalloc(o->arena, (v->n + 1) * sizeof *hs);
    *n = 0;
    for (size_t i = 0; i < v->n; i++) {
        double bound;
        if (!num_parse_double(labels_get(&v->s[i].labels, STR("le")), &bound)) continue;
        struct labels ls = oracle_labels_set(o, &v->s[i].labels, STR("le"), STR(""));
        size_t k = 0;
        while (k < *n && !labels_eq(&hs[k].labels, &ls))
            k++;
        if (k == *n) hs[(*n)++] = (struct buckets){ls, arena_alloc(o->arena, v->n * sizeof *hs->b), 0};
        hs[k].b[hs[k].n++] = (struct bucket){bound, v->s[i].v};
    }
    return hs;
}

struct oracle_matrix oracle_classic(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    bool fractions = str_eq(str_of(e->call.fn->name), STR("histogram_fraction"));
    struct oracle_matrix out = {0}, a, b = {0}, in;
    if (!fractions && !str_eq(str_of(e->call.fn->name), STR("histogram_quantile"))) {
        oracle_unsure(o, "the oracle does not know this histogram function");
        return out;
    }
    a = oracle_eval(o, g, e->call.args[0]);
    if (fractions) b = oracle_eval(o, g, e->call.args[1]);
    in = oracle_eval(o, g, e->call.args[e->call.n_args - 1]);
    for (size_t i = 0; i < g.n; i++) {
        struct oracle_vector v = oracle_at(o, &in, i), result = {0};
        size_t n;
        struct buckets *hs = gather(o, &v, &n);
        for (size_t k = 0; k < n; k++) {
            double x = fractions ? fraction(&hs[k], oracle_scalar_at(&a, i), oracle_scalar_at(&b, i))
                                 : quantile(&hs[k], oracle_scalar_at(&a, i));
            oracle_push(o, &result, hs[k].labels, true, x);
        }
        oracle_collect(o, &out, g, i, &result);
    }
    return out;
}
