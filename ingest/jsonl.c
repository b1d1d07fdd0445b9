/*
 * jsonl.c: JSON lines to rows.
 *
 *   {"metric":{"__name__":"up","job":"x"},"values":[1,0.5,"NaN"],"timestamps":[1700000000000,...]}
 *   {"metric":{...},"histograms":[{...},...],"timestamps":[...]}
 *
 * values: numbers, or the strings NaN, Infinity, +Inf, -Inf, StaleNaN ... for what JSON numbers lack.
 * timestamps: whole milliseconds, as many as values. Members may come in any order; unknown ones are
 * skipped. histograms: see hist_json.h; a line has values or histograms.
 *
 * A line is first walked whole, counting, so that a bad one leaves nothing behind; then its two
 * arrays are read side by side straight into rows: no memory per line, however long. A null in
 * values is a slot without a sample: it is reported as refused, the rest of the line is stored.
 *
 * Rows point into the body: it stays until the last flush. One request, one thread.
 */
#include "ingest/jsonl.h"

#include "ingest/hist_json.h"
#include "ingest/json_read.h"
#include "ingest/text.h"
#include "storage/base/num.h"

struct line {
    str metric, values, histograms, timestamps; /* their JSON; p NULL: absent */
    size_t n_values, n_timestamps;
};

/* ---- the first walk ----------------------------------------------------------------------------- */

static bool read_value(struct json_in *in, double *v, bool *null)
{
    str text;
    *null = false;
    switch (json_in_peek(in)) {
    case '"':
        if (!json_in_string(in, &text)) return false;
        return text_value(text, v) || json_in_fail(in, "a value is no number");
    case 'n':
        *null = true;
        return json_in_value(in, &text);
    default:
        if (!json_in_number(in, &text)) return false;
        return num_parse_double(text, v) || json_in_fail(in, "a value is no number");
    }
}

static bool read_time(struct json_in *in, int64_t *t)
{
    str text;
    if (!json_in_number(in, &text)) return false;
    return num_parse_i64(text, t) || json_in_fail(in, "a timestamp is not a whole number of milliseconds");
}

/* The length of the array that comes next, whose elements are checked for form, not for content. */
static bool read_array(struct json_in *in, str *text, size_t *n)
{
    str element;
    bool first = true;
    json_in_peek(in);
    const char *from = in->p;
    for (*n = 0; json_in_element(in, &first); ++*n)
        if (!json_in_value(in, &element)) return false;
    *text = (str){from, (size_t)(in->p - from)};
    return in->problem == NULL;
}

static bool read_member(struct json_in *in, str key, struct line *l)
{
    str skipped;
    bool metric = str_eq(key, STR("metric")), values = str_eq(key, STR("values"));
    bool histograms = str_eq(key, STR("histograms")), timestamps = str_eq(key, STR("timestamps"));
    if ((metric && l->metric.p) || ((values || histograms) && (l->values.p || l->histograms.p)) ||
        (timestamps && l->timestamps.p))
        return json_in_fail(in, "a member comes twice");
    if (metric) {
        if (json_in_peek(in) != '{') return json_in_fail(in, "\"metric\" is no object");
        return json_in_value(in, &l->metric);
    }
    if (values) return read_array(in, &l->values, &l->n_values);
    if (histograms) return read_array(in, &l->histograms, &l->n_values);
    if (timestamps) return read_array(in, &l->timestamps, &l->n_timestamps);
    return json_in_value(in, &skipped);
}

/* Contents of the arrays: all values and times can be read. */
static const char *check_arrays(const struct line *l)
{
    struct json_in values = json_in_of(l->values), times = json_in_of(l->timestamps);
    bool first = true, null;
    double v;
    int64_t t;
    while (l->values.p && json_in_element(&values, &first))
        if (!read_value(&values, &v, &null)) return values.problem;
    first = true;
    while (json_in_element(&times, &first))
        if (!read_time(&times, &t)) return times.problem;
    return NULL;
}

/* What is wrong with the line; NULL if nothing. */
static const char *read_line(str text, struct line *l)
{
    struct json_in in = json_in_of(text);
    bool first = true;
    str key;
    *l = (struct line){0};
    while (json_in_member(&in, &first, &key))
        if (!read_member(&in, key, l)) return in.problem;
    if (in.problem == NULL && (json_in_peek(&in) != 0 || in.p < in.end)) return "text after the object";
    if (in.problem) return in.problem;
    if (l->metric.p == NULL) return "\"metric\" is missing";
    if (l->values.p == NULL && l->histograms.p == NULL) return "\"values\" is missing";
    if (l->timestamps.p == NULL) return "\"timestamps\" is missing";
    if (l->n_values != l->n_timestamps) return "\"values\" and \"timestamps\" differ in length";
    return check_arrays(l);
}

/* ---- the second walk ---------------------------------------------------------------------------- */

/* The next histogram into the rows, or a refusal. */
static void push_histogram(struct admit *a, struct json_in *in, int64_t t, uint32_t number)
{
    struct arena_mark mark = arena_mark(a->arena);
    struct buf blob = {0};
    struct hist h = {0};
    str text;
    err e = json_in_value(in, &text) ? hist_json_parse(text, a->arena, &h) : err_new(ERR_INVALID, "%s", in->problem);
    if (e == NULL) {
        hist_encode(&h, &blob);
        rows_hist(a->rows, t, h.sum, buf_as_str(&blob));
    }
    buf_deinit(&blob);
    arena_rewind(a->arena, mark);
    if (e) admit_reject(a, REJECT_HISTOGRAM, 1, number, "%s", err_message(e));
    err_free(e);
}

/* False when storage refuses to go on. */
static bool push_line(struct admit *a, const struct line *l, uint32_t number)
{
    struct json_in values = json_in_of(l->values.p ? l->values : l->histograms);
    struct json_in times = json_in_of(l->timestamps);
    bool first_value = true, first_time = true;
    if (l->n_values == 0) return true;
    if (!admit_room(a, 1)) return false;
    rows_series(a->rows, admit_alias(a, l->metric.p, l->metric.n), l->metric, number);
    while (json_in_element(&values, &first_value) && json_in_element(&times, &first_time)) {
        double v;
        int64_t t;
        bool null = false;
        if (!read_time(&times, &t) || !admit_room_within(a)) return a->failure == NULL;
        if (l->histograms.p)
            push_histogram(a, &values, t, number);
        else if (!read_value(&values, &v, &null))
            return true;
        else if (null)
            admit_reject(a, REJECT_MALFORMED, 1, number, "null is not a value (timestamp %lld)", (long long)t);
        else
            rows_sample(a->rows, t, v);
    }
    if (a->rows->series[a->rows->n_series - 1].n == 0) a->rows->n_series--;
    return true;
}

void jsonl_decode(struct admit *a, str body)
{
    str text;
    for (uint32_t number = 1; text_line(&body, &text); number++) {
        struct line l;
        text = text_trim(text);
        if (text.n == 0) continue;
        const char *problem = read_line(text, &l);
        if (problem) {
            str shown = text_shown(text);
            if (!utf8_valid(text)) problem = "invalid UTF-8";
            admit_reject(a, REJECT_MALFORMED, 1, number, "%s: `%.*s`", problem, STR_ARG(shown));
        } else if (!push_line(a, &l, number)) {
            break;
        }
    }
}

err jsonl_labels(str raw, struct arena *a, struct labels *out)
{
    enum { PAIRS_MAX = 1024 };
    struct json_in in = json_in_of(raw);
    bool first = true;
    struct label *v = arena_alloc(a, PAIRS_MAX * sizeof v[0]);
    uint32_t n = 0;
    str key, value;
    while (json_in_member(&in, &first, &key)) {
        if (!json_in_string(&in, &value)) break;
        if (n == PAIRS_MAX) return err_new(ERR_INVALID, "series has more than %d labels", PAIRS_MAX);
        v[n++] = (struct label){json_unescape(key, a), json_unescape(value, a)};
    }
    if (in.problem) return err_new(ERR_INVALID, "\"metric\": %s", in.problem);
    *out = (struct labels){v, n};
    return NULL;
}
