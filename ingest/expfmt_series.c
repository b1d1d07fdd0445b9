/*
 * expfmt_series.c: a series as text.
 *
 *   series = name [ "{" items "}" ]  |  "{" items "}"
 *   items  = [ item { "," item } [ "," ] ]
 *   item   = label "=" quoted  |  quoted        (the latter is the metric's name, once)
 *   name   = [a-zA-Z_:][a-zA-Z0-9_:]*
 *   label  = [a-zA-Z_][a-zA-Z0-9_]*  |  quoted
 *
 * Blanks may stand around every token. In quotes, \\ \" and \n are escapes; a backslash before anything
 * else is itself. The same walk checks a line's syntax for the hot path (no arena, nothing is copied)
 * and makes the labels when storage asks for them. Stateless; any thread.
 */
#include "ingest/expfmt_series.h"

#include "ingest/text.h"

/* ---- quoted text -------------------------------------------------------------------------------- */

str unescaped_text(str s, struct arena *a)
{
    if (s.n == 0 || memchr(s.p, '\\', s.n) == NULL) return s;
    char *to = arena_alloc(a, s.n), *start = to;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i], next = i + 1 < s.n ? s.p[i + 1] : 0;
        if (c == '\\' && (next == '\\' || next == '"' || next == 'n')) {
            c = next == 'n' ? '\n' : next;
            i++;
        }
        *to++ = c;
    }
    return (str){start, (size_t)(to - start)};
}

const char *quoted_text(const char *p, const char *end, struct arena *a, str *out)
{
    const char *from = ++p;
    while (p < end && *p != '"')
        p += *p == '\\' && p + 1 < end ? 2 : 1;
    if (p >= end) return NULL;
    *out = (str){from, (size_t)(p - from)};
    if (a) *out = unescaped_text(*out, a);
    return p + 1;
}

/* ---- names -------------------------------------------------------------------------------------- */

static const char *plain_name(const char *p, const char *end, bool colon, str *out)
{
    const char *from = p;
    for (; p < end; p++) {
        char c = *p;
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || (colon && c == ':');
        if (!letter && !(c >= '0' && c <= '9' && p > from)) break;
    }
    *out = (str){from, (size_t)(p - from)};
    return p > from ? p : NULL;
}

static const char *failed(struct series_text *s, const char *problem)
{
    s->problem = problem;
    return NULL;
}

static bool add(struct series_text *s, str name, str value)
{
    enum { PAIRS_MAX = 1024 }; /* more than storage takes, and a bound on memory */
    if (s->arena == NULL) return true;
    if (s->n == PAIRS_MAX) return false;
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 16;
        struct label *grown = arena_alloc(s->arena, s->cap * sizeof grown[0]);
        if (s->n) memcpy(grown, s->v, s->n * sizeof grown[0]);
        s->v = grown;
    }
    s->v[s->n++] = (struct label){name, value};
    return true;
}

/* ---- items -------------------------------------------------------------------------------------- */

/* One item; *named tells whether the metric has its name already. */
static const char *parse_item(struct series_text *s, const char *p, const char *end, bool *named)
{
    str name, value;
    bool quoted = *p == '"';
    p = quoted ? quoted_text(p, end, s->arena, &name) : plain_name(p, end, false, &name);
    if (p == NULL) return failed(s, quoted ? "a quote is not closed" : "a label name is expected");
    p = text_skip_blanks(p, end);
    if (p == end) return failed(s, "the braces are not closed");
    if (*p != '=') {
        if (!quoted || *named) return failed(s, "= is expected after a label name");
        *named = true;
        return add(s, LABEL_NAME, name) ? p : failed(s, "too many labels");
    }
    p = text_skip_blanks(p + 1, end);
    if (p == end || *p != '"') return failed(s, "a label value in quotes is expected");
    p = quoted_text(p, end, s->arena, &value);
    if (p == NULL) return failed(s, "a quote is not closed");
    return add(s, name, value) ? text_skip_blanks(p, end) : failed(s, "too many labels");
}

/* At the opening brace. */
static const char *parse_items(struct series_text *s, const char *p, const char *end, bool named)
{
    p = text_skip_blanks(p + 1, end);
    while (p < end && *p != '}') {
        p = parse_item(s, p, end, &named);
        if (p == NULL) return NULL;
        if (p == end) break;
        if (*p == ',')
            p = text_skip_blanks(p + 1, end);
        else if (*p != '}')
            return failed(s, "a comma or a closing brace is expected after a label");
    }
    if (p == end) return failed(s, "the braces are not closed");
    return named ? p + 1 : failed(s, "a metric name is missing");
}

const char *series_text_parse(struct series_text *s, const char *p, const char *end)
{
    str name;
    if (p < end && *p == '{') return parse_items(s, p, end, false);
    p = plain_name(p, end, true, &name);
    if (p == NULL) return failed(s, "a metric name is expected");
    if (!add(s, LABEL_NAME, name)) return failed(s, "too many labels");
    const char *brace = text_skip_blanks(p, end);
    if (brace < end && *brace == '{') return parse_items(s, brace, end, true);
    return p;
}

const char *label_text_parse(struct series_text *s, const char *p, const char *end)
{
    return p < end && *p == '{' ? parse_items(s, p, end, true) : failed(s, "labels in braces are expected");
}
