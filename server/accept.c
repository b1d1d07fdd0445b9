/*
 * accept.c: Accept headers of scrapers.
 *
 *   Accept   range *( "," range )        range   type *( ";" name "=" value )
 *
 * Known are delimited protobuf and text; a text of version 1.0.0 or a protobuf may ask for UTF-8 names
 * by escaping=allow-utf-8. OpenMetrics is not spoken, and who asks for it names text too.
 */
#include "server/accept.h"

#include <strings.h>

#include "server/answer.h"
#include "storage/base/num.h"

struct range {
    str type, proto, encoding, version, escaping;
    double q;
};

static str trim(str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* What stands before the mark, trimmed; *s goes behind it. */
static str take_until(str *s, char mark)
{
    const char *at = s->n > 0 ? memchr(s->p, mark, s->n) : NULL;
    str piece = {s->p, at != NULL ? (size_t)(at - s->p) : s->n};
    size_t used = piece.n + (at != NULL);
    *s = (str){s->p + used, s->n - used};
    return trim(piece);
}

static bool same(str s, const char *text)
{
    return s.n == strlen(text) && strncasecmp(s.p, text, s.n) == 0;
}

static struct range parse_range(str text)
{
    struct range r = {.q = 1};
    r.type = take_until(&text, ';');
    while (text.n > 0) {
        str value = take_until(&text, ';');
        str name = take_until(&value, '=');
        if (same(name, "q") && !num_parse_double(value, &r.q)) r.q = 0;
        if (same(name, "proto")) r.proto = value;
        if (same(name, "encoding")) r.encoding = value;
        if (same(name, "version")) r.version = value;
        if (same(name, "escaping")) r.escaping = value;
    }
    return r;
}

static bool is_known(const struct range *r, struct accept *a)
{
    bool utf8 = same(r->escaping, "allow-utf-8");
    *a = (struct accept){.protobuf = same(r->type, "application/vnd.google.protobuf"), .utf8 = utf8};
    if (a->protobuf) return same(r->proto, "io.prometheus.client.MetricFamily") && same(r->encoding, "delimited");
    if (!same(r->type, "text/plain")) return false;
    if (same(r->version, "1.0.0")) return true;
    a->utf8 = false;
    return r->version.n == 0 || same(r->version, "0.0.4");
}

struct accept accept_exposition(str header)
{
    struct accept best = {0};
    double best_q = 0;
    while (header.n > 0) {
        struct accept a;
        struct range r = parse_range(take_until(&header, ','));
        if (!is_known(&r, &a) || !(r.q > best_q)) continue;
        best = a;
        best_q = r.q;
    }
    return best;
}

const char *accept_content_type(struct accept a)
{
#define PROTOBUF "application/vnd.google.protobuf; proto=io.prometheus.client.MetricFamily; encoding=delimited; "
    if (a.protobuf) return a.utf8 ? PROTOBUF "escaping=allow-utf-8" : PROTOBUF "escaping=underscores";
#undef PROTOBUF
    return a.utf8 ? "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8" : ANSWER_METRICS;
}
