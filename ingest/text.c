/*
 * text.c: small pieces that the text protocols share. Pure functions on borrowed bytes; any thread.
 */
#include "ingest/text.h"

#include "storage/base/num.h"

str text_token(const char **p, const char *end)
{
    const char *from = *p, *at = from;
    while (at < end && !text_is_blank(*at))
        at++;
    *p = at;
    return (str){from, (size_t)(at - from)};
}

bool text_line(str *rest, str *line)
{
    if (rest->n == 0) return false;
    const char *newline = memchr(rest->p, '\n', rest->n);
    size_t n = newline ? (size_t)(newline - rest->p) : rest->n;
    size_t taken = newline ? n + 1 : n;
    *line = (str){rest->p, n};
    if (n > 0 && line->p[n - 1] == '\r') line->n--;
    *rest = (str){rest->p + taken, rest->n - taken};
    return true;
}

bool text_value(str s, double *v)
{
    if (num_parse_double(s, v)) return true;
    *v = f64_from_bits(STALE_NAN_BITS);
    return str_eq(s, STR("StaleNaN"));
}

str text_trim(str s)
{
    while (s.n > 0 && text_is_blank(s.p[0]))
        s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && text_is_blank(s.p[s.n - 1]))
        s.n--;
    return s;
}

str text_shown(str s)
{
    enum { SHOWN_MAX = 60 };
    return (str){s.p, s.n < SHOWN_MAX ? s.n : SHOWN_MAX};
}
