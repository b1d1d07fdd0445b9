/*
 * fuzz_query.c: random valid queries over the data of fuzz_data.c: a grammar by types, depth going down.
 *
 * Strings are literals or live in the arena. See fuzz.h.
 */
#include <stdarg.h>
#include <stdio.h>

#include "tests/oracle/fuzz.h"

struct gen {
    struct rng *rng;
    struct arena *a;
};

static struct fuzz_node *vector(struct gen *g, int depth);
static struct fuzz_node *scalar(struct gen *g, int depth);
static struct fuzz_node *matrix(struct gen *g, int depth);

#define PICK(g, array) ((array)[rng_below((g)->rng, ARRAY_LEN(array))])

static bool chance(struct gen *g, double p)
{
    return rng_chance(g->rng, p);
}

static const char *text_of(struct gen *g, const char *format, ...) __attribute__((format(printf, 2, 3)));
static const char *text_of(struct gen *g, const char *format, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, format);
    vsnprintf(text, sizeof text, format, ap);
    va_end(ap);
    return arena_str(g->a, str_of(text)).p;
}

static struct fuzz_node *node(struct gen *g, enum value_type type, const char *text)
{
    struct fuzz_node *n = arena_zalloc(g->a, sizeof *n);
    n->type = type;
    n->text[0] = text;
    return n;
}

static struct fuzz_node *with(struct fuzz_node *n, struct fuzz_node *kid, const char *text)
{
    n->kid[n->n++] = kid;
    n->text[n->n] = text;
    return n;
}

/* ---- leaves ------------------------------------------------------------------------------------------------ */

static const char *duration(struct gen *g)
{
    static const char *const D[] = {"15s", "30s", "45s", "1m", "1m30s", "2m", "3m", "5m", "7s", "10m", "1001ms", "20m"};
    static const char *const COMPUTED[] = {"30s + 30s",       "2 * 45s",      "5m - 90s",
                                           "max_of(30s, 1m)", "15s + step()", "min_of(range(), 1m) + 7s",
                                           "(1m + 30) / 2",   "1m % 45s"};
    if (chance(g, 0.05)) return PICK(g, COMPUTED);
    return PICK(g, D);
}

static const char *modifiers(struct gen *g)
{
    static const char *const OFFSETS[] = {"1m", "-1m", "30s", "7s", "-10m", "5m", "0s", "(1m - 15s)", "-(step())"};
    const char *at = "", *offset = "";
    if (chance(g, 0.12)) {
        static const char *const EDGES[] = {" @ start()", " @ end()"};
        long long seconds = (long long)(FUZZ_T0 / 1000) + (long long)rng_below(g->rng, 3600);
        at = chance(g, 0.5) ? PICK(g, EDGES) : text_of(g, " @ %lld%s", seconds, chance(g, 0.3) ? ".5" : "");
    }
    if (chance(g, 0.2)) offset = text_of(g, " offset %s", PICK(g, OFFSETS));
    return chance(g, 0.5) ? text_of(g, "%s%s", at, offset) : text_of(g, "%s%s", offset, at);
}

static const char *selector(struct gen *g)
{
    static const char *const NAMES[] = {"requests_total", "errors_total", "temp",   "load", "latency_bucket", "odd",
                                        "limit",          "lone",         "nothing"};
    static const char *const MATCHERS[] = {
        "job=\"a\"", "job=\"b\"",  "job=~\"a|c\"", "instance!=\"1\"", "instance=~\"[01]\"", "job!~\"a.*\"",
        "zone=\"\"", "zone!=\"\"", "le=\"1\"",     "job=~\".+\"",     "instance=\"9\"",     "job!=\"\",job!=\"b\""};
    static const char *const NAMELESS[] = {"{__name__=~\"temp|load\"}", "{job=\"a\"}", "{__name__=~\".+_total\"}",
                                           "{job=\"b\",instance=\"0\"}", "{\"temp\"}"};
    const char *name = PICK(g, NAMES);
    if (chance(g, 0.1)) return PICK(g, NAMELESS);
    return chance(g, 0.4) ? text_of(g, "%s{%s}", name, PICK(g, MATCHERS)) : name;
}

static struct fuzz_node *number(struct gen *g)
{
    static const char *const N[] = {"0", "1", "2", "0.5", "-1", "10", "1e3", "0.9", "3", "NaN", "Inf", "-Inf", "7.25"};
    return node(g, TYPE_SCALAR, PICK(g, N));
}

static const char *labels(struct gen *g)
{
    static const char *const L[] = {"job",  "instance",  "job, instance", "zone",          "le",  "job, le", "",
                                    "team", "kind, job", "__name__",      "__name__, job", "nope"};
    return PICK(g, L);
}

/* ---- scalars ----------------------------------------------------------------------------------------------- */

static struct fuzz_node *scalar(struct gen *g, int depth)
{
    static const char *const OPS[] = {" + ", " - ",     " * ",       " / ",      " % ",
                                      " ^ ", " atan2 ", " == bool ", " < bool ", " >= bool "};
    static const char *const FIXED[] = {"time()", "time()", "pi()", "start()", "end()", "step()", "range()"};
    struct fuzz_node *n;
    if (depth <= 0 || chance(g, 0.5)) return number(g);
    switch (rng_below(g->rng, 6)) {
    case 0:
        return node(g, TYPE_SCALAR, PICK(g, FIXED));
    case 3:
        n = node(g, TYPE_SCALAR, chance(g, 0.5) ? "min_of(" : "max_of(");
        return with(with(n, scalar(g, depth - 1), ", "), scalar(g, depth - 1), ")");
    case 1:
        return with(node(g, TYPE_SCALAR, "scalar("), vector(g, depth - 1), ")");
    case 2:
        return with(node(g, TYPE_SCALAR, "-("), scalar(g, depth - 1), ")");
    default:
        break;
    }
    const char *op = PICK(g, OPS);
    return with(with(node(g, TYPE_SCALAR, "("), scalar(g, depth - 1), op), scalar(g, depth - 1), ")");
}

/* ---- range vectors ----------------------------------------------------------------------------------------- */

static struct fuzz_node *matrix(struct gen *g, int depth)
{
    if (depth <= 0 || chance(g, 0.7))
        return node(g, TYPE_MATRIX, text_of(g, "%s[%s]%s", selector(g), duration(g), modifiers(g)));
    const char *step = chance(g, 0.3) ? "" : duration(g);
    const char *end = text_of(g, ")[%s:%s]%s", duration(g), step, modifiers(g));
    return with(node(g, TYPE_MATRIX, "("), vector(g, depth - 1), end);
}

static struct fuzz_node *over_range(struct gen *g, int depth)
{
    static const char *const F[] = {"rate",
                                    "rate",
                                    "increase",
                                    "delta",
                                    "irate",
                                    "idelta",
                                    "deriv",
                                    "changes",
                                    "resets",
                                    "avg_over_time",
                                    "sum_over_time",
                                    "count_over_time",
                                    "min_over_time",
                                    "max_over_time",
                                    "last_over_time",
                                    "first_over_time",
                                    "present_over_time",
                                    "stddev_over_time",
                                    "stdvar_over_time",
                                    "mad_over_time",
                                    "ts_of_max_over_time",
                                    "ts_of_min_over_time",
                                    "ts_of_first_over_time",
                                    "ts_of_last_over_time",
                                    "absent_over_time"};
    static const char *const FACTORS[] = {", 0.5, 0.25)", ", 0.1, 0.9)", ", 0.75, 0.5)"};
    struct fuzz_node *n = node(g, TYPE_VECTOR, "");
    switch (rng_below(g->rng, 12)) {
    case 0:
        n->text[0] = "quantile_over_time(";
        return with(with(n, scalar(g, depth - 1), ", "), matrix(g, depth - 1), ")");
    case 1:
        n->text[0] = "predict_linear(";
        return with(with(n, matrix(g, depth - 1), ", "), scalar(g, depth - 1), ")");
    case 2:
        n->text[0] = "double_exponential_smoothing(";
        return with(n, matrix(g, depth - 1), PICK(g, FACTORS));
    default:
        n->text[0] = text_of(g, "%s(", PICK(g, F));
        return with(n, matrix(g, depth - 1), ")");
    }
}

/* ---- functions of vectors ---------------------------------------------------------------------------------- */

static struct fuzz_node *mapped(struct gen *g, int depth)
{
    static const char *const F[] = {"abs",         "ceil",         "floor",       "exp",           "ln",     "log2",
                                    "log10",       "sqrt",         "sgn",         "sin",           "cos",    "tan",
                                    "asin",        "acos",         "atan",        "sinh",          "cosh",   "tanh",
                                    "asinh",       "acosh",        "atanh",       "deg",           "rad",    "round",
                                    "sort",        "sort_desc",    "timestamp",   "absent",        "minute", "hour",
                                    "day_of_week", "day_of_month", "day_of_year", "days_in_month", "month",  "year"};
    struct fuzz_node *n = node(g, TYPE_VECTOR, "");
    switch (rng_below(g->rng, 9)) {
    case 0:
        n->text[0] = "clamp(";
        return with(with(with(n, vector(g, depth - 1), ", "), scalar(g, depth - 1), ", "), scalar(g, depth - 1), ")");
    case 1:
        n->text[0] = "clamp_min(";
        break;
    case 2:
        n->text[0] = "clamp_max(";
        break;
    case 3:
        n->text[0] = "round(";
        break;
    case 4:
        n->text[0] = "vector(";
        return with(n, scalar(g, depth - 1), ")");
    default:
        n->text[0] = text_of(g, "%s(", PICK(g, F));
        return with(n, vector(g, depth - 1), ")");
    }
    return with(with(n, vector(g, depth - 1), ", "), scalar(g, depth - 1), ")");
}

static struct fuzz_node *relabelled(struct gen *g, int depth)
{
    static const char *const R[] = {
        ", \"job\", \"$1$1\", \"job\", \"(.*)\")",      ", \"copy\", \"${1}-x\", \"instance\", \"([0-9]+)\")",
        ", \"zone\", \"\", \"zone\", \"east\")",        ", \"__name__\", \"made_$1\", \"__name__\", \"(.+)\")",
        ", \"job\", \"same\", \"job\", \"a|b\")",       ", \"instance\", \"\", \"\", \"\")",
        ", \"w\", \"$name\", \"job\", \"(?P<name>a)\")"};
    static const char *const J[] = {", \"both\", \"-\", \"job\", \"instance\")", ", \"job\", \"\", \"nope\")",
                                    ", \"__name__\", \"_\", \"job\", \"__name__\")", ", \"only\", \",\")",
                                    ", \"instance\", \"\", \"job\")"};
    if (chance(g, 0.6)) return with(node(g, TYPE_VECTOR, "label_replace("), vector(g, depth - 1), PICK(g, R));
    return with(node(g, TYPE_VECTOR, "label_join("), vector(g, depth - 1), PICK(g, J));
}

static struct fuzz_node *classic(struct gen *g, int depth)
{
    static const char *const V[] = {"latency_bucket)", "rate(latency_bucket[5m]))", "sum by (le) (latency_bucket))",
                                    "sum by (job, le) (rate(latency_bucket[2m])))", "{job=\"a\"})"};
    if (chance(g, 0.7)) {
        struct fuzz_node *n = with(node(g, TYPE_VECTOR, "histogram_quantile("), scalar(g, depth - 1), ", ");
        if (chance(g, 0.2)) return with(n, vector(g, depth - 1), ")");
        n->text[1] = text_of(g, ", %s", PICK(g, V));
        return n;
    }
    static const char *const EDGES[] = {"0, 1", "0.25, 3", "0.1, Inf", "1, 1", "2, 1", "0, NaN", "0.7, 0.8"};
    return node(g, TYPE_VECTOR, text_of(g, "histogram_fraction(%s, %s", PICK(g, EDGES), PICK(g, V)));
}

/* ---- operators --------------------------------------------------------------------------------------------- */

static const char *grouping(struct gen *g)
{
    if (chance(g, 0.3)) return "";
    return text_of(g, "%s (%s) ", chance(g, 0.7) ? "by" : "without", labels(g));
}

static struct fuzz_node *aggregated(struct gen *g, int depth)
{
    static const char *const PLAIN[] = {"sum", "avg", "min", "max", "count", "group", "stddev", "stdvar"};
    static const char *const PICKED[] = {"topk", "bottomk", "limitk", "limit_ratio"};
    static const char *const K[] = {"1", "2", "3", "5", "0", "-1", "100", "1.7"};
    switch (rng_below(g->rng, 6)) {
    case 0: {
        const char *op = PICK(g, PICKED);
        struct fuzz_node *n = node(g, TYPE_VECTOR, text_of(g, "%s %s(", op, grouping(g)));
        struct fuzz_node *k = chance(g, 0.85) ? node(g, TYPE_SCALAR, PICK(g, K)) : scalar(g, depth - 1);
        return with(with(n, k, ", "), vector(g, depth - 1), ")");
    }
    case 1: {
        struct fuzz_node *n = node(g, TYPE_VECTOR, text_of(g, "quantile %s(", grouping(g)));
        return with(with(n, scalar(g, depth - 1), ", "), vector(g, depth - 1), ")");
    }
    case 2: /* of stored values only: the text of a computed one depends on its last bit */
        if (chance(g, 0.5)) {
            const char *label = chance(g, 0.8) ? "value" : "job", *group = grouping(g);
            return node(g, TYPE_VECTOR, text_of(g, "count_values %s(\"%s\", %s)", group, label, selector(g)));
        }
        break;
    default:
        break;
    }
    return with(node(g, TYPE_VECTOR, text_of(g, "%s %s(", PICK(g, PLAIN), grouping(g))), vector(g, depth - 1), ")");
}

/* A label may not be in on() and in group_left() both. */
static bool share_label(const char *clause, const char *group)
{
    static const char *const L[] = {"zone", "team", "__name__"};
    for (size_t i = 0; i < ARRAY_LEN(L); i++)
        if (strstr(clause, L[i]) != NULL && strstr(group, L[i]) != NULL) return true;
    return false;
}

static const char *matching(struct gen *g, bool set)
{
    static const char *const GROUPS[] = {" group_left ()",        " group_right ()",    " group_left (zone)",
                                         " group_right (zone)",   " group_left (team)", " group_right (team)",
                                         " group_left (__name__)"};
    static const char *const FILLS[] = {" fill(0)", " fill_left(1)", " fill_right(2)", " fill_left(1) fill_right(3)"};
    const char *clause = "", *group = "", *fill = "";
    if (chance(g, 0.7)) clause = text_of(g, "%s (%s)", chance(g, 0.6) ? "on" : "ignoring", labels(g));
    if (!set && clause[0] != 0 && chance(g, 0.5)) group = PICK(g, GROUPS);
    if (strncmp(clause, "on", 2) == 0 && share_label(clause, group)) group = "";
    if (!set && chance(g, 0.1)) fill = PICK(g, FILLS);
    return text_of(g, "%s%s%s ", clause, group, fill);
}

static struct fuzz_node *binary(struct gen *g, int depth)
{
    static const char *const ARITHMETIC[] = {"+", "-", "*", "/", "%", "^", "atan2"};
    static const char *const COMPARE[] = {"==", "!=", "<", ">", "<=", ">="};
    static const char *const SET[] = {"and", "or", "unless"};
    int kind = (int)rng_below(g->rng, 3);
    const char *op = kind == 0 ? PICK(g, ARITHMETIC) : kind == 1 ? PICK(g, COMPARE) : PICK(g, SET);
    if (kind == 1 && chance(g, 0.3)) op = text_of(g, "%s bool", op);
    bool left_scalar = kind != 2 && chance(g, 0.2), right_scalar = kind != 2 && !left_scalar && chance(g, 0.3);
    const char *between =
        left_scalar || right_scalar ? text_of(g, ") %s (", op) : text_of(g, ") %s %s(", op, matching(g, kind == 2));
    struct fuzz_node *l = left_scalar ? scalar(g, depth - 1) : vector(g, depth - 1);
    struct fuzz_node *r = right_scalar ? scalar(g, depth - 1) : vector(g, depth - 1);
    /* Both sides of one shape match more often than two at random. */
    if (!left_scalar && !right_scalar && chance(g, 0.3)) r = chance(g, 0.5) ? l : node(g, TYPE_VECTOR, selector(g));
    return with(with(node(g, TYPE_VECTOR, "(("), l, between), r, "))");
}

static struct fuzz_node *vector(struct gen *g, int depth)
{
    if (depth <= 0 || chance(g, 0.12)) return node(g, TYPE_VECTOR, text_of(g, "%s%s", selector(g), modifiers(g)));
    switch (rng_below(g->rng, 13)) {
    case 0:
    case 1:
    case 2:
        return over_range(g, depth);
    case 3:
    case 4:
        return mapped(g, depth);
    case 5:
    case 6:
    case 7:
        return aggregated(g, depth);
    case 8:
        return chance(g, 0.5) ? relabelled(g, depth) : classic(g, depth);
    case 9:
        return with(node(g, TYPE_VECTOR, chance(g, 0.5) ? "-(" : "("), vector(g, depth - 1), ")");
    default:
        return binary(g, depth);
    }
}

struct fuzz_node *fuzz_query(struct rng *rng, struct arena *a)
{
    struct gen g = {rng, a};
    int depth = (int)rng_below(rng, 5);
    if (chance(&g, 0.04)) return scalar(&g, depth + 1);
    if (chance(&g, 0.04)) return matrix(&g, depth);
    return vector(&g, depth);
}

static void append(const struct fuzz_node *n, struct buf *out)
{
    buf_str(out, str_of(n->text[0]));
    for (int i = 0; i < n->n; i++) {
        append(n->kid[i], out);
        buf_str(out, str_of(n->text[i + 1]));
    }
}

str fuzz_text(const struct fuzz_node *n, struct arena *a)
{
    struct buf out = {0};
    append(n, &out);
    str text = arena_str(a, buf_as_str(&out));
    buf_deinit(&out);
    return text;
}
