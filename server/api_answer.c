/*
 * api_answer.c: reads the JSON of the Prometheus HTTP API with the strict reader of the ingest room.
 *
 * Unknown members are skipped, known ones must have their shape. Arrays grow on the heap while they
 * are read and are copied to the arena when complete, so the arena holds each once. Stateless.
 */
#include "server/api_answer.h"

#include <stdlib.h>

#include "ingest/json_read.h"
#include "storage/base/alloc.h"
#include "storage/base/num.h"

/* A growing array of `size`-byte elements that ends up in an arena. */
struct list {
    char *data;
    size_t n, cap, size;
};

static void *list_add(struct list *l)
{
    l->data = mem_grow(l->data, &l->cap, l->n + 1, l->size);
    void *at = l->data + l->n++ * l->size;
    memset(at, 0, l->size);
    return at;
}

static void *list_take(struct list *l, struct arena *a, size_t *n)
{
    void *copy = l->n > 0 ? arena_dup(a, l->data, l->n * l->size) : NULL;
    *n = l->n;
    mem_free(l->data);
    *l = (struct list){.size = l->size};
    return copy;
}

static err finish(struct json_in *in)
{
    if (in->problem == NULL && json_in_peek(in) != 0) json_in_fail(in, "something follows the answer");
    return in->problem != NULL ? err_new(ERR_INVALID, "the answer is not what was asked for: %s", in->problem) : NULL;
}

static bool read_text(struct json_in *in, struct arena *a, str *out)
{
    str raw;
    if (!json_in_string(in, &raw)) return false;
    *out = json_unescape(raw, a);
    return true;
}

/* ---- the envelope -------------------------------------------------------------------------------------------- */

static bool read_strings(struct json_in *in, struct arena *a, str **out, size_t *n)
{
    struct list l = {.size = sizeof(str)};
    bool first = true;
    while (json_in_element(in, &first)) {
        str text = {0};
        if (!read_text(in, a, &text)) break;
        *(str *)list_add(&l) = text;
    }
    *out = list_take(&l, a, n);
    return in->problem == NULL;
}

/* The array, or null, which some servers send for an empty one. */
static bool read_strings_or_null(struct json_in *in, struct arena *a, str **out, size_t *n)
{
    str text;
    if (json_in_peek(in) != 'n') return read_strings(in, a, out, n);
    return json_in_value(in, &text);
}

static bool read_count(struct json_in *in, uint64_t *out)
{
    str text;
    int64_t v;
    if (!json_in_number(in, &text)) return false;
    if (!num_parse_i64(text, &v) || v < 0) return json_in_fail(in, "a count is expected");
    *out = (uint64_t)v;
    return true;
}

static bool read_envelope_member(struct json_in *in, str key, struct arena *a, struct api_answer *out)
{
    str text;
    if (str_eq(key, STR("status"))) {
        if (!read_text(in, a, &text)) return false;
        out->success = str_eq(text, STR("success")) || str_eq(text, STR("ok"));
        return true;
    }
    if (str_eq(key, STR("error"))) return read_text(in, a, &out->error);
    if (str_eq(key, STR("errorType"))) return read_text(in, a, &out->error_type);
    if (str_eq(key, STR("data"))) return json_in_value(in, &out->data);
    if (str_eq(key, STR("warnings"))) return read_strings_or_null(in, a, &out->warnings, &out->n_warnings);
    if (str_eq(key, STR("infos"))) return read_strings_or_null(in, a, &out->infos, &out->n_infos);
    if (str_eq(key, STR("accepted"))) return read_count(in, &out->accepted);
    if (str_eq(key, STR("rejected"))) return read_count(in, &out->rejected);
    return json_in_value(in, &text);
}

err api_answer_parse(str body, struct arena *a, struct api_answer *out)
{
    struct json_in in = json_in_of(body);
    bool first = true;
    str key;
    *out = (struct api_answer){0};
    while (json_in_member(&in, &first, &key))
        if (!read_envelope_member(&in, key, a, out)) break;
    return finish(&in);
}

err api_member(str object, str key, struct arena *a, str *out)
{
    struct json_in in = json_in_of(object);
    bool first = true;
    str raw, text;
    *out = (str){0};
    while (json_in_member(&in, &first, &raw)) {
        if (!json_in_value(&in, &text)) break;
        if (str_eq(json_unescape(raw, a), key)) *out = text;
    }
    return finish(&in);
}

err api_string_parse(str raw, struct arena *a, str *out)
{
    struct json_in in = json_in_of(raw);
    *out = (str){0};
    read_text(&in, a, out);
    return finish(&in);
}

err api_strings_parse(str data, struct arena *a, str **out, size_t *n)
{
    struct json_in in = json_in_of(data);
    *n = 0;
    read_strings_or_null(&in, a, out, n);
    return finish(&in);
}

/* ---- series -------------------------------------------------------------------------------------------------- */

static int compare_labels(const void *a, const void *b)
{
    const struct label *x = a, *y = b;
    return str_cmp(x->name, y->name);
}

static bool read_labels(struct json_in *in, struct arena *a, struct api_series *s)
{
    struct list l = {.size = sizeof(struct label)};
    bool first = true;
    str key;
    while (json_in_member(in, &first, &key)) {
        struct label label = {.name = json_unescape(key, a)};
        if (!read_text(in, a, &label.value)) break;
        *(struct label *)list_add(&l) = label;
    }
    s->labels = list_take(&l, a, &s->n_labels);
    if (s->n_labels > 1) qsort(s->labels, s->n_labels, sizeof *s->labels, compare_labels);
    return in->problem == NULL;
}

/* {"count":"..","sum":"..","buckets":[...]} */
static bool read_histogram(struct json_in *in, struct arena *a, struct api_sample *s)
{
    bool first = true;
    str key, text;
    s->histogram = true;
    while (json_in_member(in, &first, &key)) {
        bool good = str_eq(key, STR("count")) ? read_text(in, a, &s->v)
                    : str_eq(key, STR("sum")) ? read_text(in, a, &s->sum)
                                              : json_in_value(in, &text);
        if (!good) break;
    }
    return in->problem == NULL;
}

/* [seconds, "value"] or [seconds, {histogram}] */
static bool read_sample(struct json_in *in, struct arena *a, struct api_sample *s)
{
    if (!json_in_expect(in, '[', "a sample is expected") || !json_in_number(in, &s->t) ||
        !json_in_expect(in, ',', "a sample has a time and a value"))
        return false;
    bool good = json_in_peek(in) == '{' ? read_histogram(in, a, s) : read_text(in, a, &s->v);
    return good && json_in_expect(in, ']', "a sample has a time and a value");
}

static bool read_samples(struct json_in *in, struct arena *a, struct list *l)
{
    bool first = true;
    while (json_in_element(in, &first))
        if (!read_sample(in, a, list_add(l))) break;
    return in->problem == NULL;
}

static bool read_one(struct json_in *in, struct arena *a, struct list *l)
{
    return read_sample(in, a, list_add(l));
}

/* {"metric":{..},"value":[..]}, or "values", "histogram", "histograms" */
static bool read_one_series(struct json_in *in, struct arena *a, struct api_series *s)
{
    struct list l = {.size = sizeof(struct api_sample)};
    bool first = true;
    str key, text;
    while (json_in_member(in, &first, &key)) {
        bool one = str_eq(key, STR("value")) || str_eq(key, STR("histogram"));
        bool many = str_eq(key, STR("values")) || str_eq(key, STR("histograms"));
        bool good = str_eq(key, STR("metric")) ? read_labels(in, a, s)
                    : one                      ? read_one(in, a, &l)
                    : many                     ? read_samples(in, a, &l)
                                               : json_in_value(in, &text);
        if (!good) break;
    }
    s->samples = list_take(&l, a, &s->n_samples);
    return in->problem == NULL;
}

typedef bool (*series_reader)(struct json_in *in, struct arena *a, struct api_series *s);

static bool read_all(struct json_in *in, struct arena *a, series_reader read, struct api_result *out)
{
    struct list l = {.size = sizeof(struct api_series)};
    bool first = true;
    while (json_in_element(in, &first))
        if (!read(in, a, list_add(&l))) break;
    out->series = list_take(&l, a, &out->n);
    return in->problem == NULL;
}

err api_series_parse(str data, struct arena *a, struct api_result *out)
{
    struct json_in in = json_in_of(data);
    *out = (struct api_result){.kind = API_VECTOR};
    read_all(&in, a, read_labels, out);
    return finish(&in);
}

static bool read_single(struct json_in *in, struct arena *a, struct api_result *out)
{
    out->series = arena_zalloc(a, sizeof *out->series);
    out->series->samples = arena_zalloc(a, sizeof *out->series->samples);
    out->series->n_samples = out->n = 1;
    return read_sample(in, a, out->series->samples);
}

static err parse_kind(str raw, struct arena *a, enum api_kind *out)
{
    static const char *const names[] = {"scalar", "string", "vector", "matrix"};
    str name;
    TRY(api_string_parse(raw, a, &name));
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!str_eq(name, str_of(names[i]))) continue;
        *out = (enum api_kind)i;
        return NULL;
    }
    return err_new(ERR_INVALID, "the answer is not what was asked for: a result of an unknown type");
}

err api_result_parse(str data, struct arena *a, struct api_result *out)
{
    str kind, result;
    *out = (struct api_result){0};
    TRY(api_member(data, STR("resultType"), a, &kind));
    TRY(api_member(data, STR("result"), a, &result));
    TRY(parse_kind(kind, a, &out->kind));
    struct json_in in = json_in_of(result);
    if (out->kind == API_SCALAR || out->kind == API_STRING)
        read_single(&in, a, out);
    else
        read_all(&in, a, read_one_series, out);
    return finish(&in);
}

/* ---- errors -------------------------------------------------------------------------------------------------- */

/* Decimal digits at s.p[*at], at most 9 of them; moves *at behind them. */
static bool take_number(str s, size_t *at, uint32_t *out)
{
    size_t from = *at;
    *out = 0;
    while (*at < s.n && *at - from < 9 && s.p[*at] >= '0' && s.p[*at] <= '9')
        *out = *out * 10 + (uint32_t)(s.p[(*at)++] - '0');
    return *at > from && *out > 0;
}

bool api_error_place(str error, uint32_t *line, uint32_t *column)
{
    for (size_t i = 0; i < error.n; i++) {
        size_t at = i;
        bool starts = i == 0 || error.p[i - 1] == ' ';
        if (!starts || !take_number(error, &at, line)) continue;
        if (at >= error.n || error.p[at++] != ':' || !take_number(error, &at, column)) continue;
        if (at < error.n && error.p[at] == ':') return true;
    }
    return false;
}
