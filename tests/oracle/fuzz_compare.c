/*
 * fuzz_compare.c: one query through the engine and through the oracle, and the comparison of the answers.
 *
 * The engine answers in JSON, which is read back into series of points. Label sets, timestamps, presence of points and
 * error or no error must agree exactly. Values agree if they differ by 1e-9 of their size at most: the order in which
 * numbers are added up is not part of the language, and it decides the last bits; NaN equals NaN. See fuzz.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "query/parser.h"
#include "storage/base/num.h"
#include "tests/oracle/fuzz.h"

#define TOLERANCE 1e-9
#define POINTS_MAX 4096 /* of a series in an answer */
#define ANSWER_SERIES_MAX 512

struct points {
    str labels; /* as text, sorted by name */
    int64_t *t;
    double *v;
    size_t n;
};

struct answer {
    bool failed;
    str why, type;
    struct points *series;
    size_t n;
};

/* ---- the engine's JSON back into points --------------------------------------------------------------------- */

struct scan {
    const char *p, *end;
    struct arena *a;
    bool bad;
};

static bool take(struct scan *s, const char *literal)
{
    size_t n = strlen(literal);
    if ((size_t)(s->end - s->p) < n || memcmp(s->p, literal, n) != 0) return false;
    s->p += n;
    return true;
}

static void need(struct scan *s, const char *literal)
{
    if (!take(s, literal)) s->bad = true;
}

static str until(struct scan *s, char stop)
{
    const char *from = s->p;
    while (s->p < s->end && *s->p != stop)
        s->p++;
    str found = {from, (size_t)(s->p - from)};
    if (s->p < s->end)
        s->p++;
    else
        s->bad = true;
    return found;
}

static void scan_point(struct scan *s, struct points *out, size_t cap)
{
    need(s, "[");
    double seconds = 0, value = 0;
    if (!num_parse_double(until(s, ','), &seconds)) s->bad = true;
    need(s, "\"");
    if (!num_parse_double(until(s, '"'), &value)) s->bad = true;
    need(s, "]");
    if (out->n >= cap) s->bad = true;
    if (s->bad) return;
    out->t[out->n] = llround(seconds * 1000);
    out->v[out->n++] = value;
}

static struct points new_points(struct arena *a, str labels, size_t cap)
{
    return (struct points){labels, arena_alloc(a, cap * sizeof(int64_t)), arena_alloc(a, cap * sizeof(double)), 0};
}

static void scan_series(struct scan *s, struct points *out)
{
    need(s, "{\"metric\":{");
    size_t cap = (size_t)(s->end - s->p) / 6 + 1;
    cap = cap < POINTS_MAX ? cap : POINTS_MAX;
    *out = new_points(s->a, until(s, '}'), cap);
    need(s, ",");
    if (take(s, "\"value\":")) {
        scan_point(s, out, cap);
    } else {
        need(s, "\"values\":[");
        do
            scan_point(s, out, cap);
        while (!s->bad && take(s, ","));
        need(s, "]");
    }
    need(s, "}");
}

static struct answer scan_answer(struct arena *a, str json)
{
    struct scan s = {json.p, json.p + json.n, a, false};
    struct answer out = {.series = arena_alloc(a, ANSWER_SERIES_MAX * sizeof *out.series)};
    need(&s, "{\"resultType\":\"");
    out.type = until(&s, '"');
    need(&s, ",\"result\":");
    if (str_eq(out.type, STR("scalar"))) {
        out.series[out.n] = new_points(a, STR(""), 1);
        scan_point(&s, &out.series[out.n++], 1);
    } else {
        need(&s, "[");
        while (!s.bad && out.n < ANSWER_SERIES_MAX && !take(&s, "]")) {
            scan_series(&s, &out.series[out.n++]);
            take(&s, ",");
        }
    }
    need(&s, "}");
    if (s.bad || s.p != s.end) out = (struct answer){.failed = true, .why = STR("the JSON has another shape")};
    return out;
}

static struct answer ask_engine(struct fuzz_world *w, str text, struct fuzz_times times, struct arena *a)
{
    struct query_request rq = {.text = text,
                               .start_ms = times.start,
                               .end_ms = times.start + (int64_t)(times.n - 1) * times.step,
                               .step_ms = times.step};
    struct buf json = {0};
    struct query_notes notes = {0};
    struct answer out = {0};
    err e = query_run(w->engine, &rq, &json, &notes);
    if (e != NULL) {
        out.failed = true;
        out.why = arena_str(a, str_of(err_message(e)));
    } else {
        out = scan_answer(a, arena_str(a, buf_as_str(&json)));
    }
    err_free(e);
    query_notes_deinit(&notes);
    buf_deinit(&json);
    return out;
}

/* ---- the oracle's answer as points -------------------------------------------------------------------------- */

static str labels_text(struct arena *a, const struct labels *ls)
{
    str text = STR("");
    for (uint32_t i = 0; i < ls->n; i++)
        text = arena_printf(a, "%.*s%s\"%.*s\":\"%.*s\"", STR_ARG(text), i > 0 ? "," : "", STR_ARG(ls->v[i].name),
                            STR_ARG(ls->v[i].value));
    return text;
}

static struct answer from_matrix(struct arena *a, const struct oracle_answer *from, str type)
{
    struct answer out = {.type = type, .series = arena_alloc(a, (from->matrix.n + 1) * sizeof *out.series)};
    for (size_t k = 0; k < from->matrix.n; k++) {
        const struct oracle_row *row = &from->matrix.rows[k];
        struct points p = new_points(a, labels_text(a, &row->labels), from->grid.n);
        for (size_t i = 0; i < from->grid.n; i++) {
            if (!row->has[i]) continue;
            p.t[p.n] = from->grid.start + (int64_t)i * from->grid.step;
            p.v[p.n++] = row->v[i];
        }
        if (p.n > 0) out.series[out.n++] = p;
    }
    return out;
}

static struct answer from_points(struct oracle *o, const struct oracle_answer *from)
{
    const struct oracle_range *r = &from->points;
    struct answer out = {.type = STR("matrix"), .series = arena_alloc(o->arena, (r->n + 1) * sizeof *out.series)};
    int64_t end = oracle_pin(o, r->mod, from->grid.start);
    for (size_t k = 0; k < r->n; k++) {
        struct labels ls = r->rows[k].labels;
        if (r->drop_name[k]) ls = oracle_labels_drop_name(o, &ls);
        str text = labels_text(o->arena, &ls);
        struct points p = new_points(o->arena, text, r->rows[k].n);
        for (size_t i = 0; i < out.n; i++)
            if (str_eq(out.series[i].labels, text)) oracle_unsure(o, "series of a subquery that lose their names");
        for (size_t i = 0; i < r->rows[k].n; i++) {
            if (r->rows[k].t[i] <= end - r->range || r->rows[k].t[i] > end) continue;
            p.t[p.n] = r->rows[k].t[i];
            p.v[p.n++] = r->rows[k].v[i];
        }
        if (p.n > 0) out.series[out.n++] = p;
    }
    return out;
}

static struct answer ask_oracle(struct fuzz_world *w, str text, struct fuzz_times times, struct arena *a, bool *open)
{
    struct oracle o = {.data = &w->data, .arena = a, .lookback_ms = 5 * 60 * 1000, .subquery_step_ms = 60 * 1000};
    struct expr *e = NULL;
    struct answer out = {0};
    *open = false;
    err failed = promql_parse(text, true, a, &e);
    if (failed != NULL) {
        /* The generator makes valid queries only: an answer that no engine's error equals. */
        out = (struct answer){.why = arena_printf(a, "does not parse: %s", err_message(failed))};
        err_free(failed);
        return out;
    }
    struct oracle_answer from = oracle_run(&o, e, (struct oracle_grid){times.start, times.step, times.n});
    if (from.type == TYPE_MATRIX)
        out = from_points(&o, &from);
    else if (times.step != 0)
        out = from_matrix(a, &from, STR("matrix"));
    else
        out = from_matrix(a, &from, from.type == TYPE_SCALAR ? STR("scalar") : STR("vector"));
    out.failed = o.failed;
    if (o.failed) out.why = str_of(o.why);
    *open = o.ambiguous;
    expr_deinit(e);
    return out;
}

/* ---- comparison --------------------------------------------------------------------------------------------- */

static bool same_value(double a, double b)
{
    if (isnan(a) || isnan(b)) return isnan(a) && isnan(b);
    if (isinf(a) || isinf(b)) return a == b;
    return fabs(a - b) <= TOLERANCE * fmax(fabs(a), fabs(b));
}

static bool same_points(const struct points *a, const struct points *b)
{
    if (a->n != b->n || !str_eq(a->labels, b->labels)) return false;
    for (size_t i = 0; i < a->n; i++)
        if (a->t[i] != b->t[i] || !same_value(a->v[i], b->v[i])) return false;
    return true;
}

static bool same_answer(const struct answer *a, const struct answer *b)
{
    if (a->failed || b->failed) return a->failed == b->failed;
    if (a->n != b->n || !str_eq(a->type, b->type)) return false;
    for (size_t i = 0; i < a->n; i++) {
        size_t k = 0;
        while (k < b->n && !same_points(&a->series[i], &b->series[k]))
            k++;
        if (k == b->n) return false;
    }
    return true;
}

static void describe(const char *who, const struct answer *a, struct buf *out)
{
    buf_printf(out, "%s: %.*s", who, STR_ARG(a->type));
    if (a->why.n > 0) buf_printf(out, " %s%.*s", a->failed ? "error: " : "", STR_ARG(a->why));
    buf_str(out, STR("\n"));
    for (size_t i = 0; i < a->n && !a->failed; i++) {
        buf_printf(out, "    {%.*s}", STR_ARG(a->series[i].labels));
        for (size_t k = 0; k < a->series[i].n; k++)
            buf_printf(out, " %.17g@%lld", a->series[i].v[k], (long long)a->series[i].t[k]);
        buf_str(out, STR("\n"));
    }
}

static enum fuzz_verdict judge(const struct answer *expected, const struct answer *got)
{
    if (!same_answer(expected, got)) return FUZZ_DIFFERENT;
    if (expected->failed) return FUZZ_FAILED;
    return expected->n == 0 ? FUZZ_EMPTY : FUZZ_SAME;
}

enum fuzz_verdict fuzz_compare(struct fuzz_world *w, str text, struct fuzz_times times, struct buf *report)
{
    struct arena a = {0};
    bool open;
    struct answer expected = ask_oracle(w, text, times, &a, &open);
    struct answer got = ask_engine(w, text, times, &a);
    enum fuzz_verdict verdict = open ? FUZZ_OPEN : judge(&expected, &got);
    if (verdict == FUZZ_DIFFERENT && report != NULL) {
        describe("oracle", &expected, report);
        describe("engine", &got, report);
    }
    arena_deinit(&a);
    return verdict;
}

/* ---- shrinking ---------------------------------------------------------------------------------------------- */

static bool still_different(struct fuzz_world *w, const struct fuzz_node *root, struct fuzz_times times)
{
    struct arena a = {0};
    bool different = fuzz_compare(w, fuzz_text(root, &a), times, NULL) == FUZZ_DIFFERENT;
    arena_deinit(&a);
    return different;
}

/* Tries `by` in the place of `at`. */
static bool replace(struct fuzz_world *w, const struct fuzz_node *root, struct fuzz_node *at,
                    const struct fuzz_node *by, struct fuzz_times times)
{
    struct fuzz_node before = *at;
    *at = *by;
    if (still_different(w, root, times)) return true;
    *at = before;
    return false;
}

/* Puts a descendant of the same type in a node's place. */
static bool lift(struct fuzz_world *w, const struct fuzz_node *root, struct fuzz_node *at, const struct fuzz_node *from,
                 struct fuzz_times times)
{
    for (int i = 0; i < from->n; i++) {
        if (from->kid[i]->type == at->type && replace(w, root, at, from->kid[i], times)) return true;
        if (lift(w, root, at, from->kid[i], times)) return true;
    }
    return false;
}

static bool simplify(struct fuzz_world *w, const struct fuzz_node *root, struct fuzz_node *at, struct fuzz_times times)
{
    static const struct fuzz_node VECTOR = {TYPE_VECTOR, 0, {"temp"}, {0}}, SCALAR = {TYPE_SCALAR, 0, {"1"}, {0}},
                                  MATRIX = {TYPE_MATRIX, 0, {"temp[5m]"}, {0}};
    const struct fuzz_node *leaf = at->type == TYPE_VECTOR ? &VECTOR : at->type == TYPE_SCALAR ? &SCALAR : &MATRIX;
    if (lift(w, root, at, at, times)) return true;
    if (strlen(at->text[0]) + (size_t)at->n > strlen(leaf->text[0]) && replace(w, root, at, leaf, times)) return true;
    for (int i = 0; i < at->n; i++)
        if (simplify(w, root, at->kid[i], times)) return true;
    return false;
}

void fuzz_shrink(struct fuzz_world *w, struct fuzz_node *n, struct fuzz_times times)
{
    int rounds = 0;
    while (rounds++ < 100 && simplify(w, n, n, times))
        ;
}
