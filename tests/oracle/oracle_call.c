/*
 * oracle_call.c: functions: over ranges, value by value, dates, and those with rules of their own. By name, from the
 * documentation. See oracle.h.
 */
#include "tests/oracle/oracle.h"

#include <math.h>
#include <time.h>

#include "query/functions.h"

#define PI 3.14159265358979323846

/* ---- over ranges ------------------------------------------------------------------------------------------- */

static bool keeps_name(str f)
{
    return str_eq(f, STR("last_over_time")) || str_eq(f, STR("first_over_time"));
}

/* The samples of a row in the window of one step. */
static struct oracle_window cut(struct oracle *o, const struct oracle_range *r, size_t k, int64_t now)
{
    const struct oracle_series *row = &r->rows[k];
    int64_t end = oracle_pin(o, r->mod, now), start = end - r->range;
    size_t from = 0, n = 0;
    while (from < row->n && row->t[from] <= start)
        from++;
    while (from + n < row->n && row->t[from + n] <= end)
        n++;
    return (struct oracle_window){row->t + from, row->v + from, n, start, end, now, 0, 0};
}

static struct oracle_matrix over_range(struct oracle *o, struct oracle_grid g, const struct expr *e, str f)
{
    struct oracle_range r = {0};
    struct oracle_matrix scalars[2] = {{0}}, out = {0};
    size_t n_scalars = 0;
    for (uint32_t i = 0; i < e->call.n_args; i++) {
        if (e->call.args[i]->type == TYPE_MATRIX)
            r = oracle_eval_range(o, g, e->call.args[i]);
        else
            scalars[n_scalars++] = oracle_eval(o, g, e->call.args[i]);
    }
    for (size_t k = 0; k < r.n; k++) {
        struct oracle_row *row = oracle_add_row(o, &out, g, r.rows[k].labels, keeps_name(f) ? r.drop_name[k] : true);
        bool any = false;
        for (size_t i = 0; i < g.n; i++) {
            struct oracle_window w = cut(o, &r, k, g.start + (int64_t)i * g.step);
            if (n_scalars > 0) w.a = oracle_scalar_at(&scalars[0], i);
            if (n_scalars > 1) w.b = oracle_scalar_at(&scalars[1], i);
            if (w.n > 0) row->has[i] = oracle_rollup(o, f, &w, &row->v[i]);
            any = any || row->has[i];
        }
        if (!any) out.n--;
    }
    return out;
}

/* ---- value by value ---------------------------------------------------------------------------------------- */

static double sign(double v)
{
    if (v > 0) return 1;
    return v < 0 ? -1 : v;
}

/* NaN wins, but over the infinity that nothing can exceed. */
static double greater(double a, double b)
{
    if (a == INFINITY || b == INFINITY) return INFINITY;
    return isnan(a) || isnan(b) ? NAN : fmax(a, b);
}

static double lesser(double a, double b)
{
    if (a == -INFINITY || b == -INFINITY) return -INFINITY;
    return isnan(a) || isnan(b) ? NAN : fmin(a, b);
}

/* Where a rounding function jumps, the last bit of its argument decides. */
static bool jumps_near(double x)
{
    return fabs(x - nearbyint(x)) <= 1e-9 * fmax(1, fabs(x));
}

struct simple {
    const char *name;
    double (*fn)(double);
};

static const struct simple SIMPLE[] = {
    {"abs", fabs},    {"acos", acos},   {"acosh", acosh}, {"asin", asin}, {"asinh", asinh}, {"atan", atan},
    {"atanh", atanh}, {"ceil", ceil},   {"cos", cos},     {"cosh", cosh}, {"exp", exp},     {"floor", floor},
    {"ln", log},      {"log10", log10}, {"log2", log2},   {"sgn", sign},  {"sin", sin},     {"sinh", sinh},
    {"sqrt", sqrt},   {"tan", tan},     {"tanh", tanh},
};

/* False: the sample goes. */
static bool map_value(struct oracle *o, str f, double v, double a, double b, double *out)
{
    bool jumps = (str_eq(f, STR("round")) && jumps_near(v / a + 0.5)) ||
                 ((str_eq(f, STR("floor")) || str_eq(f, STR("ceil"))) && jumps_near(v));
    if (o->counted && jumps) oracle_unsure(o, "rounded right where it jumps");
    for (size_t i = 0; i < ARRAY_LEN(SIMPLE); i++)
        if (str_eq(f, str_of(SIMPLE[i].name))) {
            *out = SIMPLE[i].fn(v);
            return true;
        }
    if (str_eq(f, STR("deg")))
        *out = v * 180 / PI;
    else if (str_eq(f, STR("rad")))
        *out = v * PI / 180;
    else if (str_eq(f, STR("clamp"))) {
        if (b < a) return false;
        *out = greater(a, lesser(b, v));
    } else if (str_eq(f, STR("clamp_max")))
        *out = lesser(a, v);
    else if (str_eq(f, STR("clamp_min")))
        *out = greater(a, v);
    else if (str_eq(f, STR("round")))
        *out = floor(v * (1 / a) + 0.5) / (1 / a);
    else
        oracle_unsure(o, "the oracle does not know this function");
    return true;
}

static struct oracle_matrix map(struct oracle *o, struct oracle_grid g, const struct expr *e, str f)
{
    struct oracle_matrix m = oracle_eval(o, g, e->call.args[0]), a = {0}, b = {0};
    if (e->call.n_args > 1) a = oracle_eval(o, g, e->call.args[1]);
    if (e->call.n_args > 2) b = oracle_eval(o, g, e->call.args[2]);
    for (size_t k = 0; k < m.n; k++) {
        struct oracle_row *row = &m.rows[k];
        row->drop_name = true;
        for (size_t i = 0; i < g.n; i++) {
            double p = e->call.n_args > 1 ? oracle_scalar_at(&a, i) : 1;
            double q = e->call.n_args > 2 ? oracle_scalar_at(&b, i) : 0;
            if (row->has[i]) row->has[i] = map_value(o, f, row->v[i], p, q, &row->v[i]);
        }
    }
    return m;
}

/* ---- dates ------------------------------------------------------------------------------------------------- */

static double date_value(struct oracle *o, str f, double seconds)
{
    if (!(fabs(seconds) < 1e10)) {
        oracle_unsure(o, "date of an absurd number");
        return 0;
    }
    static const int DAYS[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    time_t t = (time_t)seconds;
    struct tm tm;
    gmtime_r(&t, &tm);
    int year = tm.tm_year + 1900;
    bool leap = (year % 4 == 0 && year % 100 != 0) || year % 400 == 0;
    if (str_eq(f, STR("minute"))) return tm.tm_min;
    if (str_eq(f, STR("hour"))) return tm.tm_hour;
    if (str_eq(f, STR("day_of_week"))) return tm.tm_wday;
    if (str_eq(f, STR("day_of_month"))) return tm.tm_mday;
    if (str_eq(f, STR("day_of_year"))) return tm.tm_yday + 1;
    if (str_eq(f, STR("days_in_month"))) return DAYS[tm.tm_mon] + (tm.tm_mon == 1 && leap);
    if (str_eq(f, STR("month"))) return tm.tm_mon + 1;
    return year;
}

static struct oracle_matrix date(struct oracle *o, struct oracle_grid g, const struct expr *e, str f)
{
    struct oracle_matrix m = {0};
    if (e->call.n_args > 0) {
        m = oracle_eval(o, g, e->call.args[0]);
    } else {
        struct oracle_row *row = oracle_add_row(o, &m, g, (struct labels){0}, false);
        for (size_t i = 0; i < g.n; i++) {
            row->has[i] = true;
            row->v[i] = (double)(g.start + (int64_t)i * g.step) / 1000;
        }
    }
    for (size_t k = 0; k < m.n; k++) {
        m.rows[k].drop_name = true;
        for (size_t i = 0; i < g.n; i++)
            if (m.rows[k].has[i]) m.rows[k].v[i] = date_value(o, f, m.rows[k].v[i]);
    }
    return m;
}

/* ---- with rules of their own ------------------------------------------------------------------------------- */

/* What absent() can tell of the series that is not there: labels with one equality matcher and no other. */
static struct labels absent_labels(struct oracle *o, const struct expr *e)
{
    struct labels ls = {0};
    e = oracle_unwrap(e);
    if (e->kind == EXPR_RANGE) e = e->range.selector;
    if (e->kind != EXPR_SELECTOR) return ls;
    const struct selector *s = &e->selector;
    for (uint32_t i = 0; i < s->n_matchers; i++) {
        if (str_eq(s->matchers[i].name, LABEL_NAME) || s->matchers[i].op != MATCH_EQ) continue;
        size_t same = 0;
        for (uint32_t k = 0; k < s->n_matchers; k++)
            same += str_eq(s->matchers[k].name, s->matchers[i].name);
        if (same == 1) ls = oracle_labels_set(o, &ls, s->matchers[i].name, s->matchers[i].value);
    }
    return ls;
}

static struct oracle_matrix absent(struct oracle *o, struct oracle_grid g, const struct expr *e, bool over_time)
{
    const struct expr *arg = e->call.args[0];
    struct oracle_matrix m = over_time ? over_range(o, g, e, STR("present_over_time")) : oracle_eval(o, g, arg);
    struct oracle_matrix out = {0};
    struct oracle_row *row = oracle_add_row(o, &out, g, absent_labels(o, arg), false);
    for (size_t i = 0; i < g.n; i++) {
        row->has[i] = oracle_at(o, &m, i).n == 0;
        row->v[i] = 1;
    }
    return out;
}

static struct oracle_matrix to_scalar(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    struct oracle_matrix m = oracle_eval(o, g, e->call.args[0]), out = {0};
    struct oracle_row *row = oracle_add_row(o, &out, g, (struct labels){0}, false);
    for (size_t i = 0; i < g.n; i++) {
        struct oracle_vector v = oracle_at(o, &m, i);
        row->has[i] = true;
        row->v[i] = v.n == 1 ? v.s[0].v : NAN;
    }
    return out;
}

static struct oracle_matrix clock_of(struct oracle *o, struct oracle_grid g, bool pi)
{
    struct oracle_matrix out = {0};
    struct oracle_row *row = oracle_add_row(o, &out, g, (struct labels){0}, false);
    for (size_t i = 0; i < g.n; i++) {
        row->has[i] = true;
        row->v[i] = pi ? PI : (double)(g.start + (int64_t)i * g.step) / 1000;
    }
    return out;
}

struct oracle_matrix oracle_timestamps(struct oracle *o, struct oracle_grid g, const struct expr *selector);

static struct oracle_matrix timestamps(struct oracle *o, struct oracle_grid g, const struct expr *arg)
{
    arg = oracle_unwrap(arg);
    if (arg->kind == EXPR_SELECTOR) return oracle_timestamps(o, g, arg);
    struct oracle_matrix m = oracle_eval(o, g, arg);
    for (size_t k = 0; k < m.n; k++) {
        m.rows[k].drop_name = true;
        for (size_t i = 0; i < g.n; i++)
            m.rows[k].v[i] = (double)(g.start + (int64_t)i * g.step) / 1000;
    }
    return m;
}

/* start(), end(), step() and range(): of the query, in seconds. */
static struct oracle_matrix query_number(struct oracle *o, struct oracle_grid g, str f)
{
    struct oracle_matrix out = clock_of(o, g, false);
    int64_t ms = o->step;
    if (str_eq(f, STR("start"))) ms = o->start;
    if (str_eq(f, STR("end"))) ms = o->end;
    if (str_eq(f, STR("range"))) ms = o->end - o->start;
    if (g.step != o->step || g.start != o->start) oracle_unsure(o, "start(), end(), ... in a subquery");
    for (size_t i = 0; i < g.n; i++)
        out.rows[0].v[i] = (double)ms / 1000;
    return out;
}

static struct oracle_matrix min_max_of(struct oracle *o, struct oracle_grid g, const struct expr *e, bool max)
{
    struct oracle_matrix a = oracle_eval(o, g, e->call.args[0]), b = oracle_eval(o, g, e->call.args[1]);
    for (size_t i = 0; i < g.n; i++) {
        double x = oracle_scalar_at(&a, i), y = oracle_scalar_at(&b, i);
        a.rows[0].v[i] = max ? greater(x, y) : lesser(x, y);
    }
    return a;
}

static struct oracle_matrix special(struct oracle *o, struct oracle_grid g, const struct expr *e, str f)
{
    if (str_eq(f, STR("absent"))) return absent(o, g, e, false);
    if (str_eq(f, STR("absent_over_time"))) return absent(o, g, e, true);
    if (str_eq(f, STR("scalar"))) return to_scalar(o, g, e);
    if (str_eq(f, STR("vector"))) return oracle_eval(o, g, e->call.args[0]);
    if (str_eq(f, STR("time"))) return clock_of(o, g, false);
    if (str_eq(f, STR("pi"))) return clock_of(o, g, true);
    if (str_eq(f, STR("timestamp"))) return timestamps(o, g, e->call.args[0]);
    if (str_starts_with(f, STR("sort"))) return oracle_eval(o, g, e->call.args[0]);
    if (str_starts_with(f, STR("label_"))) return oracle_relabel(o, g, e);
    if (str_starts_with(f, STR("histogram_"))) return oracle_classic(o, g, e);
    if (str_eq(f, STR("min_of"))) return min_max_of(o, g, e, false);
    if (str_eq(f, STR("max_of"))) return min_max_of(o, g, e, true);
    if (e->call.n_args == 0) return query_number(o, g, f);
    oracle_unsure(o, "the oracle does not know this function");
    return (struct oracle_matrix){0};
}

struct oracle_matrix oracle_call(struct oracle *o, struct oracle_grid g, const struct expr *e)
{
    str f = str_of(e->call.fn->name);
    switch (e->call.fn->class) {
    case FN_ROLLUP:
        return over_range(o, g, e, f);
    case FN_MAP:
        return map(o, g, e, f);
    case FN_DATE:
        return date(o, g, e, f);
    case FN_SPECIAL:
        break;
    }
    return special(o, g, e, f);
}
