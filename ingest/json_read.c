/*
 * json_read.c: a strict, small JSON reader over bytes in memory.
 *
 * A pull reader: the caller asks for what it expects, in order, and looks at `problem` at the end.
 * Strings and numbers come as slices of the input; nothing is copied but strings with escapes, into
 * the caller's arena. Nesting is bounded by JSON_READ_DEPTH, since skipping a value recurses.
 * Surrogates must come in pairs: text that is not Unicode is refused at the door. Any thread.
 */
#include "ingest/json_read.h"

#include "storage/labels.h"

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool json_in_fail(struct json_in *in, const char *problem)
{
    if (in->problem == NULL) in->problem = problem;
    return false;
}

char json_in_peek(struct json_in *in)
{
    if (in->problem) return 0;
    while (in->p < in->end && (*in->p == ' ' || *in->p == '\t' || *in->p == '\n' || *in->p == '\r'))
        in->p++;
    return in->p < in->end ? *in->p : 0;
}

bool json_in_take(struct json_in *in, char c)
{
    if (json_in_peek(in) != c || in->p == in->end) return false;
    in->p++;
    return true;
}

bool json_in_expect(struct json_in *in, char c, const char *problem)
{
    return json_in_take(in, c) || json_in_fail(in, problem);
}

/* ---- strings ------------------------------------------------------------------------------------ */

/* Four hex digits at p; -1 if they are not. */
static int32_t hex4(const char *p, const char *end)
{
    int32_t v = 0;
    if (end - p < 4) return -1;
    for (int i = 0; i < 4; i++) {
        char c = p[i];
        int digit = is_digit(c)              ? c - '0'
                    : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                    : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                             : -1;
        if (digit < 0) return -1;
        v = v * 16 + digit;
    }
    return v;
}

/* An escape at the backslash: its length and code point; 0 if it is none. */
static size_t escape(const char *p, const char *end, uint32_t *rune)
{
    static const char letters[] = "\"\\/bfnrt", values[] = "\"\\/\b\f\n\r\t";
    if (end - p < 2) return 0;
    const char *letter = p[1] ? strchr(letters, p[1]) : NULL;
    if (letter) {
        *rune = (uint8_t)values[letter - letters];
        return 2;
    }
    int32_t high = p[1] == 'u' ? hex4(p + 2, end) : -1;
    if (high < 0 || (high >= 0xdc00 && high <= 0xdfff)) return 0;
    *rune = (uint32_t)high;
    if (high < 0xd800 || high > 0xdbff) return 6;
    int32_t low = end - p >= 12 && p[6] == '\\' && p[7] == 'u' ? hex4(p + 8, end) : -1;
    if (low < 0xdc00 || low > 0xdfff) return 0;
    *rune = 0x10000 + ((uint32_t)(high - 0xd800) << 10) + (uint32_t)(low - 0xdc00);
    return 12;
}

bool json_in_string(struct json_in *in, str *raw)
{
    if (!json_in_expect(in, '"', "a string is expected")) return false;
    const char *from = in->p, *p = from;
    uint32_t rune;
    while (p < in->end && *p != '"') {
        size_t n = *p == '\\' ? escape(p, in->end, &rune) : 1;
        if (n == 0) return json_in_fail(in, "bad escape in a string");
        if ((uint8_t)*p < 0x20) return json_in_fail(in, "control character in a string");
        p += n;
    }
    if (p >= in->end) return json_in_fail(in, "a string is not closed");
    *raw = (str){from, (size_t)(p - from)};
    in->p = p + 1;
    return true;
}

str json_unescape(str raw, struct arena *a)
{
    if (raw.n == 0 || memchr(raw.p, '\\', raw.n) == NULL) return raw;
    char *start = arena_alloc(a, raw.n), *to = start; /* an escape is never shorter than what it stands for */
    const char *p = raw.p, *end = p + raw.n;
    while (p < end) {
        uint32_t rune;
        if (*p != '\\') {
            *to++ = *p++;
            continue;
        }
        p += escape(p, end, &rune);
        to += utf8_put(to, rune);
    }
    return (str){start, (size_t)(to - start)};
}

/* ---- other values ------------------------------------------------------------------------------- */

static const char *digits(const char *p, const char *end)
{
    while (p < end && is_digit(*p))
        p++;
    return p;
}

bool json_in_number(struct json_in *in, str *text)
{
    json_in_peek(in);
    const char *from = in->p, *p = from, *end = in->end, *after;
    if (p < end && *p == '-') p++;
    after = digits(p, end);
    if (after == p || (*p == '0' && after > p + 1)) return json_in_fail(in, "bad number");
    p = after;
    if (p < end && *p == '.') {
        after = digits(++p, end);
        if (after == p) return json_in_fail(in, "bad number");
        p = after;
    }
    if (p < end && (*p == 'e' || *p == 'E')) {
        p++;
        if (p < end && (*p == '+' || *p == '-')) p++;
        after = digits(p, end);
        if (after == p) return json_in_fail(in, "bad number");
        p = after;
    }
    *text = (str){from, (size_t)(p - from)};
    in->p = p;
    return true;
}

bool json_in_member(struct json_in *in, bool *first, str *key)
{
    if (*first) {
        *first = false;
        if (!json_in_expect(in, '{', "an object is expected")) return false;
        if (json_in_take(in, '}')) return false;
    } else {
        if (json_in_take(in, '}')) return false;
        if (!json_in_expect(in, ',', "a comma is expected between members")) return false;
    }
    return json_in_string(in, key) && json_in_expect(in, ':', "a colon is expected after a key");
}

bool json_in_element(struct json_in *in, bool *first)
{
    if (*first) {
        *first = false;
        if (!json_in_expect(in, '[', "an array is expected")) return false;
        return !json_in_take(in, ']') && in->problem == NULL;
    }
    if (json_in_take(in, ']')) return false;
    return json_in_expect(in, ',', "a comma is expected between elements");
}

static bool skip(struct json_in *in, int depth)
{
    bool first = true;
    str s;
    char c = json_in_peek(in);
    if (depth == JSON_READ_DEPTH) return json_in_fail(in, "nested too deeply");
    switch (c) {
    case '"':
        return json_in_string(in, &s);
    case '{':
        while (json_in_member(in, &first, &s))
            if (!skip(in, depth + 1)) return false;
        return in->problem == NULL;
    case '[':
        while (json_in_element(in, &first))
            if (!skip(in, depth + 1)) return false;
        return in->problem == NULL;
    case 't':
    case 'f':
    case 'n': {
        str word = c == 't' ? STR("true") : c == 'f' ? STR("false") : STR("null");
        if (!str_starts_with((str){in->p, (size_t)(in->end - in->p)}, word)) return json_in_fail(in, "bad word");
        in->p += word.n;
        return true;
    }
    default:
        return json_in_number(in, &s);
    }
}

bool json_in_value(struct json_in *in, str *text)
{
    json_in_peek(in);
    const char *from = in->p;
    if (!skip(in, 0)) return false;
    *text = (str){from, (size_t)(in->p - from)};
    return true;
}
