/*
 * params.c: URL and form decoding.
 *
 * Works on bytes; nothing here knows UTF-8 except the U__ form, whose escapes are code points. The
 * input is a client's: every broken escape is an error, and the number of fields is bounded so that
 * a body of separators can't be blown up into gigabytes of field records.
 */
#include "server/params.h"

static int hex(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

err params_unescape(str s, bool plus, struct arena *a, str *out)
{
    *out = (str){"", 0};
    if (s.n == 0) return NULL;
    bool plain = memchr(s.p, '%', s.n) == NULL && (!plus || memchr(s.p, '+', s.n) == NULL);
    *out = arena_str(a, s);
    if (plain) return NULL;
    char *to = (char *)out->p; /* the copy is ours, and decoding only shortens it */
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        char c = s.p[i];
        if (c != '%' && c != '+') {
            to[n++] = c;
        } else if (c == '+') {
            to[n++] = plus ? ' ' : '+';
        } else {
            int high = i + 2 < s.n ? hex(s.p[i + 1]) : -1;
            int low = i + 2 < s.n ? hex(s.p[i + 2]) : -1;
            if (high < 0 || low < 0)
                return err_new(ERR_INVALID, "invalid URL escape \"%.*s\"", (int)(s.n - i < 3 ? s.n - i : 3), s.p + i);
            to[n++] = (char)(high << 4 | low);
            i += 2;
        }
    }
    out->n = n;
    return NULL;
}

static struct label *params_add(struct params *p, struct arena *a)
{
    if (p->n == p->cap) {
        uint32_t cap = p->cap == 0 ? 8 : 2 * p->cap;
        struct label *v = arena_alloc(a, cap * sizeof *v);
        if (p->n > 0) memcpy(v, p->v, p->n * sizeof *v);
        p->v = v;
        p->cap = cap;
    }
    return &p->v[p->n++];
}

/* Up to the first `c` of *s; *s goes on behind it. */
static str cut(str *s, char c)
{
    const char *at = memchr(s->p, c, s->n);
    str head = {s->p, at == NULL ? s->n : (size_t)(at - s->p)};
    size_t taken = head.n + (at != NULL);
    *s = (str){s->p + taken, s->n - taken};
    return head;
}

err params_parse(struct params *p, str form, struct arena *a)
{
    while (form.n > 0) {
        str value = cut(&form, '&');
        if (value.n == 0) continue;
        str name = cut(&value, '=');
        if (p->n == PARAMS_MAX) return err_new(ERR_TOO_LARGE, "more than %d form fields", PARAMS_MAX);
        struct label *field = params_add(p, a);
        *field = (struct label){0};
        TRY(params_unescape(name, true, a, &field->name));
        TRY(params_unescape(value, true, a, &field->value));
    }
    return NULL;
}

str params_get(const struct params *p, str name)
{
    for (uint32_t i = 0; i < p->n; i++)
        if (p->v[i].value.n > 0 && str_eq(p->v[i].name, name)) return p->v[i].value;
    return (str){"", 0};
}

str *params_all(const struct params *p, str name, str alias, struct arena *a, uint32_t *n)
{
    str *out = arena_alloc(a, (p->n + 1) * sizeof *out);
    *n = 0;
    for (uint32_t i = 0; i < p->n; i++) {
        const struct label *field = &p->v[i];
        bool named = str_eq(field->name, name) || str_eq(field->name, alias);
        if (named && field->value.n > 0) out[(*n)++] = field->value;
    }
    return out;
}

/* http://host/path → /path: proxies send the absolute form. */
static str strip_origin(str target)
{
    str http = STR("http://"), https = STR("https://");
    size_t skip = str_starts_with(target, http) ? http.n : str_starts_with(target, https) ? https.n : 0;
    if (skip == 0) return target;
    const char *slash = memchr(target.p + skip, '/', target.n - skip);
    if (slash == NULL) return STR("/");
    return (str){slash, target.n - (size_t)(slash - target.p)};
}

str params_path(str target, struct arena *a, str *query)
{
    str rest = strip_origin(target);
    str path = cut(&rest, '?');
    *query = cut(&rest, '#');
    path = cut(&path, '#');
    char *to = arena_alloc(a, path.n + 1);
    size_t n = 0;
    for (size_t i = 0; i < path.n; i++)
        if (path.p[i] != '/' || n == 0 || to[n - 1] != '/') to[n++] = path.p[i];
    if (n > 1 && to[n - 1] == '/') n--;
    return (str){to, n};
}

/* UTF-8 of a code point into out[4]; 0 if it is none. */
static size_t encode_rune(uint32_t rune, char *out)
{
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    if (rune < 0x800) {
        out[0] = (char)(0xc0 | rune >> 6);
        out[1] = (char)(0x80 | (rune & 0x3f));
        return 2;
    }
    if (rune >= 0xd800 && rune < 0xe000) return 0;
    if (rune < 0x10000) {
        out[0] = (char)(0xe0 | rune >> 12);
        out[1] = (char)(0x80 | (rune >> 6 & 0x3f));
        out[2] = (char)(0x80 | (rune & 0x3f));
        return 3;
    }
    if (rune > 0x10ffff) return 0;
    out[0] = (char)(0xf0 | rune >> 18);
    out[1] = (char)(0x80 | (rune >> 12 & 0x3f));
    out[2] = (char)(0x80 | (rune >> 6 & 0x3f));
    out[3] = (char)(0x80 | (rune & 0x3f));
    return 4;
}

/* An escape that begins behind its '_': "_" or hex digits and "_". Returns the bytes used, 0 if it is malformed. */
static size_t decode_escape(str s, char *out, size_t *n)
{
    if (s.n > 0 && s.p[0] == '_') {
        out[(*n)++] = '_';
        return 1;
    }
    uint32_t rune = 0;
    for (size_t i = 0; i < s.n && i <= 6; i++) {
        if (s.p[i] == '_' && i > 0) {
            size_t bytes = encode_rune(rune, out + *n);
            *n += bytes;
            return bytes > 0 ? i + 1 : 0;
        }
        int digit = hex(s.p[i]);
        if (digit < 0) return 0;
        rune = rune << 4 | (uint32_t)digit;
    }
    return 0;
}

str params_label_name(str s, struct arena *a)
{
    str prefix = STR("U__");
    if (!str_starts_with(s, prefix)) return s;
    char *to = arena_alloc(a, s.n + 4);
    size_t n = 0, i = prefix.n;
    while (i < s.n) {
        char c = s.p[i++];
        if (c != '_') {
            to[n++] = c;
            continue;
        }
        size_t taken = decode_escape((str){s.p + i, s.n - i}, to, &n);
        if (taken == 0) return s;
        i += taken;
    }
    return (str){to, n};
}
