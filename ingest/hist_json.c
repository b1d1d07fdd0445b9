/*
 * hist_json.c: native histograms as JSON.
 *
 * What is printed reads back bit for bit, but for NaN payloads other than the stale
 * marker's. Memory is the caller's arena; any thread.
 */
#include "ingest/hist_json.h"

#include <math.h>

#include "ingest/json_read.h"
#include "ingest/text.h"
#include "storage/base/limits.h"
#include "storage/base/num.h"

static const char *const reset_names[] = {"unknown", "yes", "no", "gauge"};

/* ---- writing ------------------------------------------------------------------------------------ */

void hist_json_double(double v, struct json *j)
{
    if (is_stale_nan(v))
        json_cstr(j, "StaleNaN");
    else if (isnan(v))
        json_cstr(j, "NaN");
    else if (isinf(v))
        json_cstr(j, v > 0 ? "Infinity" : "-Infinity");
    else
        json_double(j, v);
}

static void print_doubles(const double *v, uint32_t n, struct json *j)
{
    json_array(j);
    for (uint32_t i = 0; i < n; i++)
        hist_json_double(v[i], j);
    json_array_end(j);
}

static void print_side(const char *key, const struct hist_span *spans, uint32_t n_spans, const double *counts,
                       uint32_t n, struct json *j)
{
    if (n_spans == 0 && n == 0) return;
    json_key(j, key);
    json_object(j);
    json_key(j, "spans");
    json_array(j);
    for (uint32_t i = 0; i < n_spans; i++) {
        json_array(j);
        json_i64(j, spans[i].offset);
        json_i64(j, spans[i].length);
        json_array_end(j);
    }
    json_array_end(j);
    json_key(j, "counts");
    print_doubles(counts, n, j);
    json_object_end(j);
}

void hist_json_print(const struct hist *h, struct json *j)
{
    json_object(j);
    json_key(j, "schema");
    json_i64(j, h->schema);
    json_key(j, "float");
    json_bool(j, h->is_float);
    json_key(j, "reset");
    json_cstr(j, reset_names[h->reset_hint <= HIST_RESET_GAUGE ? h->reset_hint : HIST_RESET_UNKNOWN]);
    json_key(j, "count");
    hist_json_double(h->count, j);
    json_key(j, "sum");
    hist_json_double(h->sum, j);
    json_key(j, "zero_threshold");
    hist_json_double(h->zero_threshold, j);
    json_key(j, "zero_count");
    hist_json_double(h->zero_count, j);
    print_side("positive", h->positive_spans, h->n_positive_spans, h->positive, h->n_positive, j);
    print_side("negative", h->negative_spans, h->n_negative_spans, h->negative, h->n_negative, j);
    if (h->n_custom > 0) {
        json_key(j, "custom");
        print_doubles(h->custom, h->n_custom, j);
    }
    json_object_end(j);
}

/* ---- reading ------------------------------------------------------------------------------------ */

static bool read_double(struct json_in *in, double *v)
{
    str text;
    bool quoted = json_in_peek(in) == '"';
    if (!(quoted ? json_in_string(in, &text) : json_in_number(in, &text))) return false;
    return text_value(text, v) || json_in_fail(in, "histogram: a value is no number");
}

static bool read_integer(struct json_in *in, int64_t low, int64_t high, int64_t *v)
{
    str text;
    if (!json_in_number(in, &text)) return false;
    if (num_parse_i64(text, v) && *v >= low && *v <= high) return true;
    return json_in_fail(in, "histogram: a whole number is expected or it is out of range");
}

/* Room for element n of an array that grows in the arena: it doubles when n is a power of two from 16 on. */
static void *more(struct arena *a, void *v, uint32_t n, size_t size)
{
    enum { FIRST = 16 };
    if (n == 0) return arena_alloc(a, FIRST * size);
    if (n < FIRST || (n & (n - 1)) != 0) return v;
    void *grown = arena_alloc(a, 2u * n * size);
    memcpy(grown, v, n * size);
    return grown;
}

static bool read_doubles(struct json_in *in, struct arena *a, double **v, uint32_t *n)
{
    bool first = true;
    for (*n = 0; json_in_element(in, &first); ++*n) {
        if (*n == LIMIT_HIST_BLOB) return json_in_fail(in, "histogram: too many buckets");
        *v = more(a, *v, *n, sizeof **v);
        if (!read_double(in, &(*v)[*n])) return false;
    }
    return in->problem == NULL;
}

static bool read_span(struct json_in *in, struct hist_span *span)
{
    int64_t offset, length;
    if (!json_in_expect(in, '[', "histogram: a span is [offset, length]") ||
        !read_integer(in, INT32_MIN, INT32_MAX, &offset) ||
        !json_in_expect(in, ',', "histogram: a span is [offset, length]") || !read_integer(in, 0, UINT32_MAX, &length))
        return false;
    *span = (struct hist_span){(int32_t)offset, (uint32_t)length};
    return json_in_expect(in, ']', "histogram: a span is [offset, length]");
}

static bool read_spans(struct json_in *in, struct arena *a, struct hist_span **v, uint32_t *n)
{
    bool first = true;
    for (*n = 0; json_in_element(in, &first); ++*n) {
        if (*n == LIMIT_HIST_BLOB) return json_in_fail(in, "histogram: too many spans");
        *v = more(a, *v, *n, sizeof **v);
        if (!read_span(in, &(*v)[*n])) return false;
    }
    return in->problem == NULL;
}

static bool read_side(struct json_in *in, struct arena *a, struct hist_span **spans, uint32_t *n_spans, double **counts,
                      uint32_t *n)
{
    bool first = true, good = true;
    str key, skipped;
    while (good && json_in_member(in, &first, &key)) {
        if (str_eq(key, STR("spans")))
            good = read_spans(in, a, spans, n_spans);
        else if (str_eq(key, STR("counts")))
            good = read_doubles(in, a, counts, n);
        else
            good = json_in_value(in, &skipped);
    }
    return in->problem == NULL;
}

static bool read_reset(struct json_in *in, uint8_t *hint)
{
    str text;
    if (!json_in_string(in, &text)) return false;
    for (size_t i = 0; i < ARRAY_LEN(reset_names); i++)
        if (str_eq(text, str_of(reset_names[i]))) return *hint = (uint8_t)i, true;
    return json_in_fail(in, "histogram: unknown reset hint");
}

static bool read_member(struct json_in *in, struct arena *a, str key, struct hist *h)
{
    str skipped;
    int64_t schema;
    if (str_eq(key, STR("schema"))) {
        if (!read_integer(in, -100, 100, &schema)) return false;
        h->schema = (int32_t)schema;
        return true;
    }
    if (str_eq(key, STR("float"))) {
        if (!json_in_value(in, &skipped)) return false;
        h->is_float = str_eq(skipped, STR("true"));
        return true;
    }
    if (str_eq(key, STR("reset"))) return read_reset(in, &h->reset_hint);
    if (str_eq(key, STR("count"))) return read_double(in, &h->count);
    if (str_eq(key, STR("sum"))) return read_double(in, &h->sum);
    if (str_eq(key, STR("zero_threshold"))) return read_double(in, &h->zero_threshold);
    if (str_eq(key, STR("zero_count"))) return read_double(in, &h->zero_count);
    if (str_eq(key, STR("positive")))
        return read_side(in, a, &h->positive_spans, &h->n_positive_spans, &h->positive, &h->n_positive);
    if (str_eq(key, STR("negative")))
        return read_side(in, a, &h->negative_spans, &h->n_negative_spans, &h->negative, &h->n_negative);
    if (str_eq(key, STR("custom"))) return read_doubles(in, a, &h->custom, &h->n_custom);
    return json_in_value(in, &skipped);
}

err hist_json_parse(str text, struct arena *a, struct hist *h)
{
    struct json_in in = json_in_of(text);
    bool first = true;
    str key;
    *h = (struct hist){0};
    while (json_in_member(&in, &first, &key))
        if (!read_member(&in, a, key, h)) break;
    if (in.problem) return err_new(ERR_INVALID, "%s", in.problem);
    return hist_validate(h);
}
