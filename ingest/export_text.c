/*
 * export_text.c: samples out as the Prometheus text format, and as the answer of its query API.
 *
 *   name{label="value",...} value milliseconds                                     a sample
 *   {"status":"success","data":{"resultType":"matrix","result":[{"metric":{...},"values":[[s,"v"],...]},...]}}
 *
 * Neither holds more than a batch of samples in memory. Native histograms are left out: the text format has none, and
 * a matrix would need them gathered apart from the floats. The JSON lines of export.c have them.
 */
#include "ingest/export_internal.h"
#include "storage/base/json.h"
#include "storage/base/num.h"

/* ---- text -------------------------------------------------------------------------------------------------------- */

/* A name of the classic alphabet needs no quotes. */
static bool is_classic(str name, bool colon)
{
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
        if (!letter && !(i > 0 && c >= '0' && c <= '9')) return false;
    }
    return name.n > 0;
}

static void put_quoted(str s, struct buf *out)
{
    buf_u8(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '\n')
            buf_str(out, STR("\\n"));
        else if (s.p[i] == '"' || s.p[i] == '\\')
            buf_printf(out, "\\%c", s.p[i]);
        else
            buf_u8(out, (uint8_t)s.p[i]);
    }
    buf_u8(out, '"');
}

/* name{...}, or {"a name",...} for one that needs quotes. */
static void put_series(const struct labels *ls, struct buf *out)
{
    str name = labels_get(ls, LABEL_NAME);
    bool bare = is_classic(name, true), first = true;
    if (bare) buf_str(out, name);
    if (bare && ls->n == 1) return;
    buf_u8(out, '{');
    if (!bare && name.n > 0) {
        put_quoted(name, out);
        first = false;
    }
    for (uint32_t i = 0; i < ls->n; i++) {
        if (str_eq(ls->v[i].name, LABEL_NAME)) continue;
        if (!first) buf_u8(out, ',');
        first = false;
        if (is_classic(ls->v[i].name, false))
            buf_str(out, ls->v[i].name);
        else
            put_quoted(ls->v[i].name, out);
        buf_u8(out, '=');
        put_quoted(ls->v[i].value, out);
    }
    buf_u8(out, '}');
}

static void put_value(double v, struct buf *out)
{
    char *to = (char *)buf_reserve(out, NUM_DOUBLE_MAX);
    if (to) out->n += num_format_double(v, to);
}

static err text_samples(struct exporting *x)
{
    if (!x->in_series) {
        buf_clear(&x->line);
        put_series(&x->labels, &x->line);
    }
    for (size_t i = 0; i < x->n; i++) {
        buf_str(&x->out, buf_as_str(&x->line));
        buf_u8(&x->out, ' ');
        put_value(x->v[i], &x->out);
        buf_printf(&x->out, " %lld\n", (long long)x->t[i]);
    }
    return buf_status(&x->line, "a series");
}

const struct export_form export_form_text = {.samples = text_samples};

/* ---- the query API's answer -------------------------------------------------------------------------------------- */

static void promapi_begin(struct exporting *x)
{
    buf_str(&x->out, STR("{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":["));
}

static err promapi_samples(struct exporting *x)
{
    if (!x->in_series) {
        struct json j;
        buf_str(&x->out, x->any ? STR(",{\"metric\":") : STR("{\"metric\":"));
        json_init(&j, &x->out);
        export_put_labels(&x->labels, &j);
        buf_str(&x->out, STR(",\"values\":["));
    }
    for (size_t i = 0; i < x->n; i++) {
        struct json j;
        if (i > 0 || x->in_series) buf_u8(&x->out, ',');
        json_init(&j, &x->out);
        json_array(&j);
        json_ms(&j, x->t[i]);
        json_sample_value(&j, x->v[i]);
        json_array_end(&j);
    }
    return NULL;
}

static void promapi_end_series(struct exporting *x)
{
    buf_str(&x->out, STR("]}"));
}

static void promapi_end(struct exporting *x)
{
    buf_str(&x->out, STR("]}}\n"));
}

const struct export_form export_form_promapi = {
    .begin = promapi_begin, .samples = promapi_samples, .end_series = promapi_end_series, .end = promapi_end};
