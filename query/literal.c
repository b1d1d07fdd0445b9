/*
 * literal.c: numbers, durations and quoted strings of PromQL.
 *
 * The forms are those of Prometheus, which takes them from Go: integers with a leading 0 are octal if
 * they can be (010 is 8, but 08 is 8 too), underscores stand between digits only, strings have Go's
 * escapes. Results go to the caller's arena or buf. Stateless: any thread.
 */
#include "query/literal.h"

#include "storage/base/num.h"
#include "storage/labels.h"

#include <math.h>

#define NS_PER_MS INT64_C(1000000)
#define NS_PER_S INT64_C(1000000000)

/* ---- numbers ------------------------------------------------------------------------------------ */

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

static int hex_value(char c)
{
    if (is_digit(c)) return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* Copies s without underscores to `out`; false if one does not stand between digits or is too long for `size`. */
static bool strip_underscores(str s, bool hex, char *out, size_t size, size_t *n)
{
    bool digit = hex; /* a prefix counts as a digit */
    *n = 0;
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '_') {
            bool more = i + 1 < s.n && (hex ? hex_value(s.p[i + 1]) >= 0 : is_digit(s.p[i + 1]));
            if (!digit || !more) return false;
            digit = false;
            continue;
        }
        digit = hex ? hex_value(s.p[i]) >= 0 : is_digit(s.p[i]);
        if (*n == size) return false;
        out[(*n)++] = s.p[i];
    }
    return true;
}

/* Digits of the base that fit an int64. */
static bool parse_int(str s, unsigned base, double *v)
{
    if (s.n == 0) return false;
    uint64_t sum = 0;
    for (size_t i = 0; i < s.n; i++) {
        int d = hex_value(s.p[i]);
        if (d < 0 || (unsigned)d >= base || sum > ((uint64_t)INT64_MAX - (unsigned)d) / base) return false;
        sum = sum * base + (unsigned)d;
    }
    *v = (double)(int64_t)sum;
    return true;
}

bool literal_number(str s, double *v)
{
    char plain[512];
    bool hex = s.n > 2 && s.p[0] == '0' && (s.p[1] == 'x' || s.p[1] == 'X');
    str digits = hex ? (str){s.p + 2, s.n - 2} : s;
    size_t n;
    if (!strip_underscores(digits, hex, plain, sizeof plain, &n)) return false;
    digits = (str){plain, n};
    if (hex) return parse_int(digits, 16, v);
    if (n > 1 && plain[0] == '0' && parse_int(digits, 8, v)) return true;
    if (!num_parse_double(digits, v)) return false;
    return !isinf(*v) || !is_digit(plain[0] == '.' ? '0' : plain[0]); /* 1e999 is out of range, Inf is Inf */
}

/* ---- durations ---------------------------------------------------------------------------------- */

static const struct unit {
    char name[3];
    bool exact; /* printed only when nothing remains below it: 90d, not 12w6d */
    int64_t ms;
} UNITS[] = {
    {"y", true, INT64_C(365) * 86400000},
    {"w", true, INT64_C(7) * 86400000},
    {"d", false, 86400000},
    {"h", false, 3600000},
    {"m", false, 60000},
    {"s", false, 1000},
    {"ms", false, 1},
};

static size_t find_unit(str name)
{
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++)
        if (str_eq(name, str_of(UNITS[i].name))) return i;
    return ARRAY_LEN(UNITS);
}

/* Takes "<digits><unit>" off *s and adds it to *ns. `first` is the smallest index of a unit that may still come. */
static const char *take_part(str *s, size_t *first, int64_t *ns)
{
    static const char malformed[] = "not a valid duration string", range[] = "duration out of range";
    size_t n = 0;
    int64_t v = 0;
    for (; n < s->n && is_digit(s->p[n]); n++)
        if (__builtin_mul_overflow(v, 10, &v) || __builtin_add_overflow(v, s->p[n] - '0', &v)) return malformed;
    size_t unit_start = n;
    while (n < s->n && !is_digit(s->p[n]))
        n++;
    size_t unit = find_unit((str){s->p + unit_start, n - unit_start});
    if (unit_start == 0 || n == unit_start) return malformed;
    if (unit == ARRAY_LEN(UNITS)) return "unknown unit in duration";
    if (unit < *first) return malformed;
    if (__builtin_mul_overflow(v, UNITS[unit].ms * NS_PER_MS, &v) || __builtin_add_overflow(*ns, v, ns)) return range;
    *first = unit + 1;
    *s = (str){s->p + n, s->n - n};
    return NULL;
}

bool literal_duration(str s, int64_t *ns, const char **reason)
{
    *ns = 0;
    if (str_eq(s, STR("0"))) return true;
    const char *why = s.n == 0 ? "empty duration string" : NULL;
    size_t first = 0;
    while (!why && s.n > 0)
        why = take_part(&s, &first, ns);
    if (reason) *reason = why;
    return !why;
}

double literal_ns_to_seconds(int64_t ns)
{
    int64_t whole = ns / NS_PER_S, rest = ns % NS_PER_S;
    return (double)whole + (double)rest / (double)NS_PER_S;
}

int64_t literal_seconds_to_ns(double seconds)
{
    double ns = round(seconds * (double)NS_PER_S);
    if (isnan(ns)) return 0;
    if (ns >= 9223372036854775808.0) return INT64_MAX;
    if (ns < -9223372036854775808.0) return INT64_MIN;
    return (int64_t)ns;
}

void literal_print_duration(int64_t ms, struct buf *out)
{
    if (ms == 0) {
        buf_str(out, STR("0s"));
        return;
    }
    uint64_t left = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
    if (ms < 0) buf_u8(out, '-');
    for (size_t i = 0; i < ARRAY_LEN(UNITS); i++) {
        uint64_t unit = (uint64_t)UNITS[i].ms, v = left / unit;
        if (v == 0 || (UNITS[i].exact && left % unit != 0)) continue;
        buf_printf(out, "%llu%s", (unsigned long long)v, UNITS[i].name);
        left -= v * unit;
    }
}

/* ---- strings ------------------------------------------------------------------------------------ */

int32_t literal_rune(str s, size_t at, size_t *n)
{
    const uint8_t *p = (const uint8_t *)s.p + at;
    size_t left = s.n - at;
    *n = 1;
    if (p[0] < 0x80) return p[0];
    size_t length = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2;
    if (p[0] < 0xc2 || p[0] > 0xf4 || left < length) return -1;
    int32_t rune = p[0] & (0xff >> (length + 1));
    for (size_t i = 1; i < length; i++) {
        if ((p[i] & 0xc0) != 0x80) return -1;
        rune = rune << 6 | (p[i] & 0x3f);
    }
    static const int32_t least[] = {0, 0, 0x80, 0x800, 0x10000};
    if (rune < least[length] || rune > 0x10ffff || (rune >= 0xd800 && rune < 0xe000)) return -1;
    *n = length;
    return rune;
}

static size_t put_rune(char *out, uint32_t rune)
{
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    size_t n = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = n - 1; i > 0; i--, rune >>= 6)
        out[i] = (char)(0x80 | (rune & 0x3f));
    out[0] = (char)(lead[n] | rune);
    return n;
}

static uint32_t take_digits(const char *p, size_t n, unsigned base)
{
    uint32_t v = 0;
    for (size_t i = 0; i < n; i++)
        v = v * base + (uint32_t)hex_value(p[i]);
    return v;
}

/* Decodes the escape whose letter is at p (behind the backslash) to out; *used counts the bytes read from p on. */
static size_t take_escape(const char *p, char *out, size_t *used)
{
    static const char letters[] = "abfnrtv", values[] = "\a\b\f\n\r\t\v";
    const char *letter = *p ? strchr(letters, *p) : NULL;
    *used = 1;
    if (letter) {
        *out = values[letter - letters];
        return 1;
    }
    switch (*p) {
    case 'x':
        *used = 3;
        *out = (char)take_digits(p + 1, 2, 16);
        return 1;
    case 'u':
        *used = 5;
        return put_rune(out, take_digits(p + 1, 4, 16));
    case 'U':
        *used = 9;
        return put_rune(out, take_digits(p + 1, 8, 16));
    default:
        break;
    }
    if (*p >= '0' && *p <= '7') {
        *used = 3;
        *out = (char)take_digits(p, 3, 8);
        return 1;
    }
    *out = *p; /* a backslash or the quote */
    return 1;
}

str literal_unquote(str token, struct arena *a)
{
    str raw = {token.p + 1, token.n - 2};
    if (token.p[0] == '`' || raw.n == 0 || !memchr(raw.p, '\\', raw.n)) return raw;
    char *out = arena_alloc(a, raw.n); /* no escape is shorter than what it stands for */
    size_t n = 0;
    for (size_t i = 0; i < raw.n;) {
        if (raw.p[i] != '\\') {
            out[n++] = raw.p[i++];
            continue;
        }
        size_t used;
        n += take_escape(raw.p + i + 1, out + n, &used);
        i += 1 + used;
    }
    return (str){out, n};
}

/* Controls, format characters, spaces other than ' ', private use, noncharacters: never printed raw. */
static bool is_printable(int32_t r)
{
    static const struct {
        int32_t from, to;
    } hidden[] = {
        {0x00, 0x1f},       {0x7f, 0xa0},        {0xad, 0xad},       {0x600, 0x605},     {0x61c, 0x61c},
        {0x6dd, 0x6dd},     {0x70f, 0x70f},      {0x890, 0x891},     {0x8e2, 0x8e2},     {0x1680, 0x1680},
        {0x180e, 0x180e},   {0x2000, 0x200f},    {0x2028, 0x202f},   {0x205f, 0x206f},   {0x3000, 0x3000},
        {0xe000, 0xf8ff},   {0xfdd0, 0xfdef},    {0xfeff, 0xfeff},   {0xfff0, 0xfffb},   {0xfffd, 0xffff},
        {0x110bd, 0x110bd}, {0x110cd, 0x110cd},  {0x13430, 0x1343f}, {0x1bca0, 0x1bca3}, {0x1d173, 0x1d17a},
        {0xe0000, 0xe00ff}, {0xe01f0, 0x10ffff},
    };
    if (r >= ' ' && r < 0x7f) return true;
    if ((r & 0xfffe) == 0xfffe) return false;
    for (size_t i = 0; i < ARRAY_LEN(hidden); i++)
        if (r >= hidden[i].from && r <= hidden[i].to) return false;
    return true;
}

static void print_escaped(int32_t rune, struct buf *out)
{
    static const char letters[] = "abtnvfr"; /* 7 to 13 */
    if (rune >= 7 && rune <= 13)
        buf_printf(out, "\\%c", letters[rune - 7]);
    else if (rune < ' ' || rune == 0x7f)
        buf_printf(out, "\\x%02x", (unsigned)rune);
    else if (rune < 0x10000)
        buf_printf(out, "\\u%04x", (unsigned)rune);
    else
        buf_printf(out, "\\U%08x", (unsigned)rune);
}

void literal_print_string(str s, struct buf *out)
{
    buf_u8(out, '"');
    for (size_t i = 0, n; i < s.n; i += n) {
        int32_t rune = literal_rune(s, i, &n);
        if (rune < 0)
            buf_printf(out, "\\x%02x", (uint8_t)s.p[i]);
        else if (rune == '"' || rune == '\\')
            buf_printf(out, "\\%c", (char)rune);
        else if (is_printable(rune))
            buf_put(out, s.p + i, n);
        else
            print_escaped(rune, out);
    }
    buf_u8(out, '"');
}

void literal_print_name(str name, struct buf *out)
{
    if (label_name_is_legacy(name))
        buf_str(out, name);
    else
        literal_print_string(name, out);
}
