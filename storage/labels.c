/*
 * labels.c: label sets as values: canonical form, order, identity, text.
 *
 * Pure functions over borrowed memory; nothing here allocates but labels_copy, which takes an arena.
 * Any thread.
 *
 * Canonical: names sorted by their bytes, unique, not empty; values not empty; all valid UTF-8;
 * counts and lengths within limits.h. Everything that stores or compares series relies on it.
 */
#include "storage/labels.h"

#include <stdlib.h>

#include "storage/base/limits.h"

/* ---- UTF-8 -------------------------------------------------------------------------------------- */

static bool is_continuation(uint8_t c)
{
    return (c & 0xc0) == 0x80;
}

/* Length of the well-formed multi-byte sequence at p, 0 if it is none. Table 3-7 of the Unicode Standard. */
static size_t sequence_length(const uint8_t *p, size_t left)
{
    uint8_t c = p[0];
    if (c >= 0xc2 && c <= 0xdf) return left >= 2 && is_continuation(p[1]) ? 2 : 0;
    if (c >= 0xe0 && c <= 0xef) {
        if (left < 3 || !is_continuation(p[1]) || !is_continuation(p[2])) return 0;
        if (c == 0xe0 && p[1] < 0xa0) return 0; /* overlong */
        if (c == 0xed && p[1] > 0x9f) return 0; /* surrogate */
        return 3;
    }
    if (c >= 0xf0 && c <= 0xf4) {
        if (left < 4 || !is_continuation(p[1]) || !is_continuation(p[2]) || !is_continuation(p[3])) return 0;
        if (c == 0xf0 && p[1] < 0x90) return 0; /* overlong */
        if (c == 0xf4 && p[1] > 0x8f) return 0; /* over U+10FFFF */
        return 4;
    }
    return 0;
}

bool utf8_valid(str s)
{
    const uint8_t *p = (const uint8_t *)s.p;
    size_t i = 0;
    while (i < s.n) {
        uint64_t word;
        while (s.n - i >= 8) { /* most names and values are ASCII: eight bytes a step */
            memcpy(&word, p + i, 8);
            if (word & UINT64_C(0x8080808080808080)) break;
            i += 8;
        }
        if (i == s.n) break;
        if (p[i] < 0x80) {
            i++;
            continue;
        }
        size_t n = sequence_length(p + i, s.n - i);
        if (n == 0) return false;
        i += n;
    }
    return true;
}

size_t utf8_put(char *out, uint32_t rune)
{
    static const uint8_t lead[] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (rune < 0x80) {
        out[0] = (char)rune;
        return 1;
    }
    size_t n = rune < 0x800 ? 2 : rune < 0x10000 ? 3 : 4;
    for (size_t i = n; --i > 0; rune >>= 6)
        out[i] = (char)(0x80 | (rune & 0x3f));
    out[0] = (char)(lead[n] | rune);
    return n;
}

/* ---- canonical form ----------------------------------------------------------------------------- */

static int compare_names(const void *a, const void *b)
{
    return str_cmp(((const struct label *)a)->name, ((const struct label *)b)->name);
}

/* Senders mostly sort already, so the common case is one pass of n - 1 comparisons. */
static void sort_by_name(struct labels *ls)
{
    bool sorted = true;
    for (uint32_t i = 1; i < ls->n && sorted; i++)
        sorted = str_cmp(ls->v[i - 1].name, ls->v[i].name) <= 0;
    if (!sorted) qsort(ls->v, ls->n, sizeof ls->v[0], compare_names);
}

/* The head of a name or value for messages: hostile lengths must not make endless errors. */
static str shown(str s)
{
    enum { SHOWN_MAX = 128 };
    if (s.n > SHOWN_MAX) s.n = SHOWN_MAX;
    return s;
}

static err check_label(const struct label *l)
{
    if (l->name.n == 0) return err_new(ERR_INVALID, "empty label name (value \"%.*s\")", STR_ARG(shown(l->value)));
    if (l->name.n > LIMIT_LABEL_NAME)
        return err_new(ERR_INVALID, "label name \"%.*s...\" is %zu bytes long, the limit is %d",
                       STR_ARG(shown(l->name)), l->name.n, LIMIT_LABEL_NAME);
    if (l->value.n > LIMIT_LABEL_VALUE)
        return err_new(ERR_INVALID, "value of label \"%.*s\" is %zu bytes long, the limit is %d",
                       STR_ARG(shown(l->name)), l->value.n, LIMIT_LABEL_VALUE);
    if (!utf8_valid(l->name)) return err_new(ERR_INVALID, "a label name is not valid UTF-8");
    if (!utf8_valid(l->value))
        return err_new(ERR_INVALID, "value of label \"%.*s\" is not valid UTF-8", STR_ARG(shown(l->name)));
    return NULL;
}

static void drop_empty_values(struct labels *ls)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < ls->n; i++)
        if (ls->v[i].value.n > 0) ls->v[kept++] = ls->v[i];
    ls->n = kept;
}

err labels_canonicalize(struct labels *ls)
{
    drop_empty_values(ls);
    if (ls->n > LIMIT_LABELS)
        return err_new(ERR_INVALID, "series has %u labels, the limit is %d", (unsigned)ls->n, LIMIT_LABELS);
    size_t bytes = 0;
    for (uint32_t i = 0; i < ls->n; i++) {
        TRY(check_label(&ls->v[i]));
        bytes += ls->v[i].name.n + ls->v[i].value.n;
    }
    if (bytes > LIMIT_SERIES_BYTES)
        return err_new(ERR_INVALID, "labels of the series take %zu bytes, the limit is %d", bytes, LIMIT_SERIES_BYTES);
    sort_by_name(ls);
    for (uint32_t i = 1; i < ls->n; i++)
        if (str_eq(ls->v[i - 1].name, ls->v[i].name))
            return err_new(ERR_INVALID, "duplicate label name \"%.*s\"", STR_ARG(shown(ls->v[i].name)));
    return NULL;
}

/* ---- access and order --------------------------------------------------------------------------- */

str labels_get(const struct labels *ls, str name)
{
    for (uint32_t i = 0; i < ls->n; i++)
        if (str_eq(ls->v[i].name, name)) return ls->v[i].value;
    return (str){0};
}

/* The same bytes in the same place, as neighbours often have them, need no look. */
static int compare_strs(str a, str b)
{
    return a.p == b.p && a.n == b.n ? 0 : str_cmp(a, b);
}

int labels_cmp(const struct labels *a, const struct labels *b)
{
    uint32_t n = a->n < b->n ? a->n : b->n;
    for (uint32_t i = 0; i < n; i++) {
        int c = compare_strs(a->v[i].name, b->v[i].name);
        if (c == 0) c = compare_strs(a->v[i].value, b->v[i].value);
        if (c != 0) return c;
    }
    return (a->n > b->n) - (a->n < b->n);
}

bool labels_eq(const struct labels *a, const struct labels *b)
{
    if (a->n != b->n) return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!str_eq(a->v[i].name, b->v[i].name) || !str_eq(a->v[i].value, b->v[i].value)) return false;
    return true;
}

int labels_cmp_storage(const struct labels *a, const struct labels *b)
{
    static const str first[] = {{"__name__", 8}, {"job", 3}, {"instance", 8}};
    for (size_t i = 0; i < ARRAY_LEN(first); i++) {
        int c = str_cmp(labels_get(a, first[i]), labels_get(b, first[i]));
        if (c != 0) return c;
    }
    return labels_cmp(a, b);
}

struct labels labels_copy(struct arena *a, const struct labels *ls)
{
    size_t bytes = 0;
    for (uint32_t i = 0; i < ls->n; i++)
        bytes += ls->v[i].name.n + ls->v[i].value.n;
    struct labels copy = {arena_alloc(a, ls->n * sizeof(struct label) + bytes + 1), ls->n};
    char *at = (char *)(copy.v + ls->n);
    for (uint32_t i = 0; i < ls->n; i++) {
        const struct label *l = &ls->v[i];
        if (l->name.n) memcpy(at, l->name.p, l->name.n);
        copy.v[i].name = (str){at, l->name.n};
        at += l->name.n;
        if (l->value.n) memcpy(at, l->value.p, l->value.n);
        copy.v[i].value = (str){at, l->value.n};
        at += l->value.n;
    }
    return copy;
}

struct hash128 labels_id(const struct hash_key *key, const struct labels *ls)
{
    struct hash128 sum = {0, 0};
    for (uint32_t i = 0; i < ls->n; i++) {
        struct hash128 name = hash128(key, ls->v[i].name.p, ls->v[i].name.n);
        struct hash128 value = hash128(key, ls->v[i].value.p, ls->v[i].value.n);
        sum = hash128_add(sum, hash128_pair(name, value));
    }
    return sum;
}

/* ---- text --------------------------------------------------------------------------------------- */

static bool is_name_start(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool name_is_legacy(str name, bool colon)
{
    if (name.n == 0) return false;
    for (size_t i = 0; i < name.n; i++) {
        char c = name.p[i];
        bool digit = c >= '0' && c <= '9';
        if (is_name_start(c) || (colon && c == ':') || (digit && i > 0)) continue;
        return false;
    }
    return true;
}

bool label_name_is_legacy(str name)
{
    return name_is_legacy(name, false);
}

bool metric_name_is_legacy(str name)
{
    return name_is_legacy(name, true);
}

void label_print_quoted(str s, struct buf *out)
{
    buf_u8(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        uint8_t c = (uint8_t)s.p[i];
        if (c == '"' || c == '\\')
            buf_u8(out, '\\'), buf_u8(out, c);
        else if (c == '\n')
            buf_str(out, STR("\\n"));
        else if (c == '\t')
            buf_str(out, STR("\\t"));
        else if (c == '\r')
            buf_str(out, STR("\\r"));
        else if (c < 0x20 || c == 0x7f)
            buf_printf(out, "\\x%02x", c);
        else
            buf_u8(out, c);
    }
    buf_u8(out, '"');
}

void label_print_name(str name, struct buf *out)
{
    if (label_name_is_legacy(name))
        buf_str(out, name);
    else
        label_print_quoted(name, out);
}

void labels_print(const struct labels *ls, struct buf *out)
{
    str metric = labels_get(ls, LABEL_NAME);
    bool bare = metric_name_is_legacy(metric); /* may stand before the braces */
    if (bare) buf_str(out, metric);
    if (bare && ls->n == 1) return;
    bool comma = false;
    buf_u8(out, '{');
    if (metric.n > 0 && !bare) {
        label_print_quoted(metric, out);
        comma = true;
    }
    for (uint32_t i = 0; i < ls->n; i++) {
        if (str_eq(ls->v[i].name, LABEL_NAME)) continue;
        if (comma) buf_str(out, STR(", "));
        comma = true;
        label_print_name(ls->v[i].name, out);
        buf_u8(out, '=');
        label_print_quoted(ls->v[i].value, out);
    }
    buf_u8(out, '}');
}
