/*
 * url.c: takes the address of a server apart, and puts form values together.
 *
 * The text comes from a flag or the environment, so it is checked as any other input: no control
 * characters or spaces (they would end up in a request's head), a port in range, brackets that close.
 * Stateless; memory is the caller's arena.
 */
#include "server/url.h"

#include <ctype.h>

#include "server/params.h"
#include "storage/base/buf.h"
#include "storage/base/num.h"

#define URL_MAX 2048

static bool has_bad_byte(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if ((unsigned char)s.p[i] <= ' ' || s.p[i] == 0x7f) return true;
    return false;
}

static str behind(str s, size_t n)
{
    return (str){s.p + n, s.n - n};
}

static str up_to(str s, const char *stops)
{
    size_t n = 0;
    while (n < s.n && strchr(stops, s.p[n]) == NULL)
        n++;
    return (str){s.p, n};
}

/* Takes "http://" off the front; no scheme means http. */
static err take_scheme(str *rest)
{
    str scheme = up_to(*rest, ":/?#@[");
    bool has_scheme = str_starts_with(behind(*rest, scheme.n), STR("://"));
    if (!has_scheme) return NULL;
    if (str_eq(scheme, STR("https")))
        return err_new(ERR_UNSUPPORTED, "https is not supported by this client yet: use http://, or a proxy or tunnel "
                                        "on this machine that speaks TLS");
    if (!str_eq(scheme, STR("http"))) return err_new(ERR_INVALID, "the address must begin with http://");
    *rest = behind(*rest, scheme.n + 3);
    return NULL;
}

/* "user:password@" off the front of the authority. */
static err take_userinfo(str *authority, struct arena *a, struct url *out)
{
    const char *at = memrchr(authority->p, '@', authority->n);
    if (at == NULL) return NULL;
    str raw = {authority->p, (size_t)(at - authority->p)}, plain;
    TRY(params_unescape(raw, false, a, &plain));
    out->userinfo = arena_str(a, plain).p;
    *authority = behind(*authority, raw.n + 1);
    return NULL;
}

static err take_host(str *authority, struct arena *a, struct url *out)
{
    bool v6 = authority->n > 0 && authority->p[0] == '[';
    str host = v6 ? up_to(behind(*authority, 1), "]") : up_to(*authority, ":");
    if (v6 && host.n + 1 >= authority->n) return err_new(ERR_INVALID, "a bracket is not closed in the address");
    if (host.n == 0) return err_new(ERR_INVALID, "the address has no host");
    out->host = arena_str(a, host).p;
    *authority = behind(*authority, host.n + (v6 ? 2 : 0));
    return NULL;
}

static err take_port(str rest, struct arena *a, struct url *out)
{
    int64_t port;
    out->port = "80";
    if (rest.n == 0) return NULL;
    str digits = behind(rest, 1);
    if (rest.p[0] != ':' || !num_parse_i64(digits, &port) || !isdigit((unsigned char)digits.p[0]) || port < 1 ||
        port > 65535)
        return err_new(ERR_INVALID, "\"%.*s\" is not a port: a number from 1 to 65535 is", STR_ARG(rest));
    out->port = arena_str(a, digits).p;
    return NULL;
}

static err take_all(str text, struct arena *a, struct url *out)
{
    if (text.n == 0) return err_new(ERR_INVALID, "the address is empty");
    if (text.n > URL_MAX) return err_new(ERR_INVALID, "the address is longer than %d bytes", URL_MAX);
    if (has_bad_byte(text)) return err_new(ERR_INVALID, "the address has a space or control character in it");
    TRY(take_scheme(&text));
    str authority = up_to(text, "/?#"), path = behind(text, authority.n);
    if (memchr(path.p, '?', path.n) != NULL || memchr(path.p, '#', path.n) != NULL)
        return err_new(ERR_INVALID, "the address must not have a query or fragment");
    while (path.n > 0 && path.p[path.n - 1] == '/')
        path.n--;
    out->prefix = arena_str(a, path).p;
    TRY(take_userinfo(&authority, a, out));
    TRY(take_host(&authority, a, out));
    TRY(take_port(authority, a, out));
    bool v6 = strchr(out->host, ':') != NULL;
    out->shown =
        arena_printf(a, "http://%s%s%s:%s%s", v6 ? "[" : "", out->host, v6 ? "]" : "", out->port, out->prefix).p;
    return NULL;
}

err url_parse(str text, struct arena *a, struct url *out)
{
    *out = (struct url){0};
    return take_all(text, a, out);
}

void url_escape(struct buf *out, str s)
{
    static const char hex[] = "0123456789ABCDEF";
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        bool plain = (c < 0x80 && isalnum(c)) || c == '-' || c == '_' || c == '.' || c == '~';
        if (!plain) {
            buf_u8(out, '%');
            buf_u8(out, (uint8_t)hex[c >> 4]);
            c = (unsigned char)hex[c & 15];
        }
        buf_u8(out, c);
    }
}
