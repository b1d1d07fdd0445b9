/*
 * json.c: streaming JSON writer.
 *
 * Query results of millions of samples go through here, so strings are copied in runs of bytes that
 * need no escape and numbers are formatted in place. depth counts open objects and arrays; comma[]
 * remembers for each whether a value came before. Errors are the buf's sticky one. The writer owns
 * nothing; one thread.
 */
#include "storage/base/json.h"

#include "storage/base/assert.h"
#include "storage/base/num.h"

#include <math.h>

/* The separator that the place asks for, before any value. */
static void before_value(struct json *j)
{
    if (j->after_key) {
        j->after_key = false;
        return;
    }
    if (j->comma[j->depth]) buf_u8(j->out, ',');
    j->comma[j->depth] = true;
}

static void open_scope(struct json *j, uint8_t bracket)
{
    before_value(j);
    buf_u8(j->out, bracket);
    check(j->depth + 1 < JSON_DEPTH_MAX);
    j->comma[++j->depth] = false;
}

static void close_scope(struct json *j, uint8_t bracket)
{
    check(j->depth > 0);
    check(!j->after_key);
    j->depth--;
    buf_u8(j->out, bracket);
}

void json_object(struct json *j)
{
    open_scope(j, '{');
}

void json_object_end(struct json *j)
{
    close_scope(j, '}');
}

void json_array(struct json *j)
{
    open_scope(j, '[');
}

void json_array_end(struct json *j)
{
    close_scope(j, ']');
}

/* ---- strings */

/* Bytes of the well-formed UTF-8 sequence at s[i], 0 if it is malformed (overlong, surrogate, beyond
 * U+10FFFF, cut off). Source: Unicode 15, table 3-7. */
static size_t utf8_length(str s, size_t i)
{
    const uint8_t *p = (const uint8_t *)s.p + i;
    size_t left = s.n - i;
    uint8_t low = 0x80, high = 0xbf;
    size_t n;
    if (p[0] >= 0xc2 && p[0] <= 0xdf) {
        n = 2;
    } else if (p[0] >= 0xe0 && p[0] <= 0xef) {
        n = 3;
        if (p[0] == 0xe0) low = 0xa0;
        if (p[0] == 0xed) high = 0x9f;
    } else if (p[0] >= 0xf0 && p[0] <= 0xf4) {
        n = 4;
        if (p[0] == 0xf0) low = 0x90;
        if (p[0] == 0xf4) high = 0x8f;
    } else {
        return 0;
    }
    if (left < n || p[1] < low || p[1] > high) return 0;
    for (size_t k = 2; k < n; k++)
        if (p[k] < 0x80 || p[k] > 0xbf) return 0;
    return n;
}

static void put_control(struct buf *out, uint8_t c)
{
    static const char hex[] = "0123456789abcdef";
    static const char letters[32] = {['\b'] = 'b', ['\f'] = 'f', ['\n'] = 'n', ['\r'] = 'r', ['\t'] = 't'};
    if (letters[c]) {
        buf_put(out, (char[]){'\\', letters[c]}, 2);
        return;
    }
    buf_put(out, (char[]){'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]}, 6);
}

/* Writes the escape of what starts at s[i], returns how many bytes of s it stands for. */
static size_t put_special(struct buf *out, str s, size_t i)
{
    uint8_t c = (uint8_t)s.p[i];
    if (c < 0x20) {
        put_control(out, c);
        return 1;
    }
    if (c == '"' || c == '\\') {
        buf_put(out, (char[]){'\\', (char)c}, 2);
        return 1;
    }
    size_t n = utf8_length(s, i);
    if (n == 0) {
        buf_str(out, STR("\\ufffd"));
        return 1;
    }
    if (n == 3 && memcmp(s.p + i, "\xe2\x80\xa8", 3) == 0)
        buf_str(out, STR("\\u2028")); /* line separators: not allowed raw in JavaScript strings */
    else if (n == 3 && memcmp(s.p + i, "\xe2\x80\xa9", 3) == 0)
        buf_str(out, STR("\\u2029"));
    else
        buf_put(out, s.p + i, n);
    return n;
}

static bool is_plain(uint8_t c)
{
    return c >= 0x20 && c < 0x80 && c != '"' && c != '\\';
}

/* The high bit of each byte of x that is c, and perhaps of bytes above one that is. */
static uint64_t bytes_equal(uint64_t x, uint8_t c)
{
    uint64_t d = x ^ c * UINT64_C(0x0101010101010101);
    return (d - UINT64_C(0x0101010101010101)) & ~d & UINT64_C(0x8080808080808080);
}

/* True if the eight bytes need no escape. */
static bool eight_plain(const char *p)
{
    uint64_t x;
    memcpy(&x, p, 8);
    uint64_t low = (x - UINT64_C(0x2020202020202020)) & ~x; /* below a space */
    return ((x | low) & UINT64_C(0x8080808080808080)) == 0 && !bytes_equal(x, '"') && !bytes_equal(x, '\\');
}

/* How many bytes from i on need no escape. */
static size_t plain_run(str s, size_t i)
{
    size_t run = i;
    while (run + 8 <= s.n && eight_plain(s.p + run))
        run += 8;
    while (run < s.n && is_plain((uint8_t)s.p[run]))
        run++;
    return run - i;
}

static void put_string(struct buf *out, str s)
{
    size_t run = plain_run(s, 0);
    uint8_t *p = buf_reserve(out, run + 2);
    if (p == NULL) return;
    p[0] = '"';
    memcpy(p + 1, s.p != NULL ? s.p : "", run);
    p[run + 1] = '"';
    out->n += run + 1 + (run == s.n);
    if (run == s.n) return; /* the usual case: nothing is escaped */
    for (size_t i = run; i < s.n;) {
        i += put_special(out, s, i);
        run = plain_run(s, i);
        buf_put(out, s.p + i, run);
        i += run;
    }
    buf_u8(out, '"');
}

void json_key_str(struct json *j, str key)
{
    check(!j->after_key);
    before_value(j);
    put_string(j->out, key);
    buf_u8(j->out, ':');
    j->after_key = true;
}

void json_key(struct json *j, const char *key)
{
    json_key_str(j, str_of(key));
}

void json_str(struct json *j, str s)
{
    before_value(j);
    put_string(j->out, s);
}

void json_cstr(struct json *j, const char *s)
{
    json_str(j, str_of(s));
}

/* ---- numbers and words */

void json_i64(struct json *j, int64_t v)
{
    before_value(j);
    char *to = (char *)buf_reserve(j->out, 20);
    if (to) j->out->n += num_format_i64(v, to);
}

void json_u64(struct json *j, uint64_t v)
{
    before_value(j);
    char *to = (char *)buf_reserve(j->out, 20);
    if (to) j->out->n += num_format_u64(v, to);
}

void json_sample_value(struct json *j, double v)
{
    before_value(j);
    char *to = (char *)buf_reserve(j->out, NUM_DOUBLE_MAX + 2);
    if (!to) return;
    to[0] = '"';
    /* The API's JSON turns to exponents where JavaScript does; label values and texts do not. */
    bool exponent = v != 0 && isfinite(v) && (fabs(v) < 1e-6 || fabs(v) >= 1e21);
    size_t n = exponent ? num_format_double_short(v, to + 1) : num_format_double(v, to + 1);
    to[n + 1] = '"';
    j->out->n += n + 2;
}

void json_double(struct json *j, double v)
{
    if (!isfinite(v)) {
        json_sample_value(j, v);
        return;
    }
    before_value(j);
    char *to = (char *)buf_reserve(j->out, NUM_DOUBLE_MAX);
    if (to) j->out->n += num_format_double_short(v, to);
}

void json_ms(struct json *j, int64_t ms)
{
    before_value(j);
    char *to = (char *)buf_reserve(j->out, 24);
    if (to) j->out->n += num_format_ms(ms, to);
}

void json_bool(struct json *j, bool v)
{
    json_raw(j, v ? STR("true") : STR("false"));
}

void json_null(struct json *j)
{
    json_raw(j, STR("null"));
}

void json_raw(struct json *j, str s)
{
    before_value(j);
    buf_str(j->out, s);
}
