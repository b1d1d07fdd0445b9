/*
 * expfmt.c: the Prometheus text exposition format 0.0.4 and OpenMetrics: lines to rows.
 *
 *   line   = series value [ timestamp ] [ "#" "{" labels "}" value [ timestamp ] ]    (the latter: an exemplar)
 *          | "#" ( "HELP" | "TYPE" | "UNIT" ) name text  |  "# EOF"  |  "#" anything
 *
 * Each line stands for itself: a bad one is counted and named with its number, the others are stored.
 * The text of a series, as written, is what its alias is the hash of; labels are made only for a series
 * not seen before. A bad exemplar leaves its sample alone.
 *
 * Timestamps are milliseconds, in OpenMetrics seconds with an optional fraction. Writers mix the two
 * up, so a number with a fraction is seconds everywhere, and one of 1e11 or more (the year 5138 in
 * seconds, 1973 in milliseconds) is milliseconds everywhere.
 *
 * HELP, TYPE and UNIT lines of one metric in a row make one entry of metadata. Rows point into the
 * body: it stays until the last flush. One request, one thread.
 */
#include "ingest/expfmt.h"

#include <math.h>

#include "ingest/expfmt_series.h"
#include "ingest/text.h"
#include "storage/base/limits.h"
#include "storage/base/num.h"

#define MILLISECONDS_FROM 100000000000.0

struct document {
    struct admit *a;
    int64_t now;
    bool open_metrics;
    uint32_t line;
    struct metric_metadata family; /* being gathered; metric.n = 0: none */
};

/* ---- timestamps --------------------------------------------------------------------------------- */

static bool in_time_range(double ms)
{
    return ms >= (double)LIMIT_TIME_MIN && ms <= (double)LIMIT_TIME_MAX;
}

static bool parse_time(str token, bool open_metrics, int64_t *ms)
{
    int64_t whole;
    double number;
    if (num_parse_i64(token, &whole)) {
        bool seconds = open_metrics && fabs((double)whole) < MILLISECONDS_FROM;
        if (!in_time_range((double)whole)) return false;
        *ms = seconds ? whole * 1000 : whole;
        return true;
    }
    if (!num_parse_double(token, &number)) return false;
    if (fabs(number) < MILLISECONDS_FROM) number *= 1000;
    if (!in_time_range(number)) return false; /* NaN fails as well */
    *ms = llround(number);
    return true;
}

/* ---- metadata ----------------------------------------------------------------------------------- */

static void finish_family(struct document *d)
{
    const struct metric_metadata *m = &d->family;
    if (m->metric.n > 0 && utf8_valid(m->metric) && utf8_valid(m->help) && utf8_valid(m->unit))
        storage_metadata_put(d->a->db, m);
    d->family = (struct metric_metadata){0};
}

static str known_type(str type)
{
    static const char *const names[] = {"counter", "gauge", "histogram", "gaugehistogram",
                                        "summary", "info",  "stateset"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        if (str_eq(type, str_of(names[i]))) return str_of(names[i]);
    return STR("unknown");
}

/* A comment, behind its "#". What isn't metadata is ignored. */
static void comment(struct document *d, const char *p, const char *end)
{
    p = text_skip_blanks(p, end);
    str keyword = text_token(&p, end);
    bool help = str_eq(keyword, STR("HELP")), type = str_eq(keyword, STR("TYPE"));
    if (!help && !type && !str_eq(keyword, STR("UNIT"))) return;
    p = text_skip_blanks(p, end);
    str name = {0};
    if (p < end && *p == '"')
        p = quoted_text(p, end, d->a->arena, &name);
    else
        name = text_token(&p, end);
    if (p == NULL || name.n == 0) return;
    str rest = {text_skip_blanks(p, end), 0};
    rest.n = (size_t)(end - rest.p);
    if (!str_eq(name, d->family.metric)) finish_family(d);
    d->family.metric = name;
    if (d->family.type.n == 0) d->family.type = STR("unknown");
    if (help)
        d->family.help = unescaped_text(rest, d->a->arena);
    else if (type)
        d->family.type = known_type(text_trim(rest));
    else
        d->family.unit = text_trim(rest);
}

/* ---- samples ------------------------------------------------------------------------------------ */

static void bad_line(struct document *d, str line, const char *problem)
{
    if (!utf8_valid(line)) problem = "invalid UTF-8";
    str shown = text_shown(line);
    admit_reject(d->a, REJECT_MALFORMED, 1, d->line, "%s: `%.*s`", problem, STR_ARG(shown));
}

/* What follows the series: value and timestamp. Returns what is wrong, NULL if nothing. *at: an exemplar, behind its #,
 * or NULL. */
static const char *parse_rest(struct document *d, const char **at, const char *end, int64_t *t, double *v)
{
    const char *p = text_skip_blanks(*at, end);
    str value = text_token(&p, end);
    *at = NULL;
    if (value.n == 0) return "a value is missing";
    if (!text_value(value, v)) return "the value is not a number";
    p = text_skip_blanks(p, end);
    *t = d->now;
    if (p < end && *p != '#') {
        if (!parse_time(text_token(&p, end), d->open_metrics, t)) return "the timestamp is no time";
        p = text_skip_blanks(p, end);
    }
    if (p == end) return NULL;
    if (*p != '#') return "unexpected text after the timestamp";
    *at = p + 1;
    return NULL;
}

/* Behind the #. t is the sample's, for an exemplar without a time of its own; times are seconds here, always. */
static const char *parse_exemplar(const char *p, const char *end, int64_t t, struct arena *a, struct exemplar *x)
{
    struct series_text labels = {.arena = a};
    p = label_text_parse(&labels, text_skip_blanks(p, end), end);
    if (p == NULL) return labels.problem;
    *x = (struct exemplar){.labels = {labels.v, labels.n}, .t = t};
    p = text_skip_blanks(p, end);
    if (!text_value(text_token(&p, end), &x->v)) return "its value is not a number";
    p = text_skip_blanks(p, end);
    if (p == end) return NULL;
    x->has_t = true;
    if (!parse_time(text_token(&p, end), true, &x->t)) return "its timestamp is no time";
    return text_skip_blanks(p, end) == end ? NULL : "there is text after its timestamp";
}

/* The labels go from the request's arena to the batch's, where they take no more than they need. */
static void exemplar(struct document *d, str raw, const char *p, const char *end, int64_t t)
{
    struct exemplar x;
    struct arena_mark mark = arena_mark(d->a->arena);
    const char *problem = parse_exemplar(p, end, t, d->a->arena, &x);
    if (problem == NULL && admit_exemplar_room(d->a)) {
        x.labels = labels_copy(&d->a->rows->arena, &x.labels);
        rows_exemplar(d->a->rows, admit_alias(d->a, raw.p, raw.n), raw, &x);
    }
    arena_rewind(d->a->arena, mark);
    if (problem != NULL) admit_reject(d->a, REJECT_MALFORMED, 0, d->line, "exemplar: %s", problem);
}

/* False when storage refuses to go on. */
static bool sample_line(struct document *d, const char *p, const char *end)
{
    struct series_text series = {0};
    str line = {p, (size_t)(end - p)};
    int64_t t = 0;
    double v = 0;
    if (line.n > LIMIT_LINE) {
        bad_line(d, line, "the line is too long");
        return true;
    }
    const char *after = series_text_parse(&series, p, end);
    const char *rest = after, *problem = after ? parse_rest(d, &rest, end, &t, &v) : series.problem;
    if (problem) {
        bad_line(d, line, problem);
        return true;
    }
    if (!admit_room(d->a, 1)) return false;
    str raw = {p, (size_t)(after - p)};
    rows_series(d->a->rows, admit_alias(d->a, raw.p, raw.n), raw, d->line);
    rows_sample(d->a->rows, t, v);
    if (rest != NULL) exemplar(d, raw, rest, end, t);
    return d->a->failure == NULL;
}

/* The last line that is not empty. */
static bool ends_with_eof(str body)
{
    while (body.n > 0 && strchr(" \t\r\n", body.p[body.n - 1]) && body.p[body.n - 1])
        body.n--;
    return body.n >= 5 && memcmp(body.p + body.n - 5, "# EOF", 5) == 0 && (body.n == 5 || body.p[body.n - 6] == '\n');
}

void expfmt_decode(struct admit *a, str body, const struct expfmt_options *o)
{
    struct document d = {.a = a, .now = o->now, .open_metrics = o->open_metrics || ends_with_eof(body)};
    str line;
    while (text_line(&body, &line)) {
        d.line++;
        const char *end = line.p + line.n, *p = text_skip_blanks(line.p, end);
        if (p == end) continue;
        if (*p == '#')
            comment(&d, p + 1, end);
        else if (!sample_line(&d, p, end))
            break;
    }
    finish_family(&d);
}

err expfmt_labels(str raw, struct arena *a, struct labels *out)
{
    struct series_text s = {.arena = a};
    const char *after = series_text_parse(&s, raw.p, raw.p + raw.n);
    if (after != raw.p + raw.n)
        return err_new(ERR_INVALID, "%s", s.problem ? s.problem : "unexpected text after the series");
    *out = (struct labels){s.v, s.n};
    return NULL;
}
