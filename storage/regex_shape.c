/*
 * regex_shape.c: what a pattern's tree says without running it.
 *
 * Most patterns that dashboards send are a set of literals (web-1|web-2) or literals with `.*` around
 * them. Those are expanded into globs, which are matched with memcmp and memmem in linear time, and a
 * set of literals can be looked up in an index. Expansion multiplies (`[ab]c(d|e)` gives four), so it
 * has a budget of strings and bytes; over it the pattern is left to the regex engine.
 *
 * In valid UTF-8 a part can only be found at a character's start, and at least one character is at
 * least one byte and the other way round, so gaps are counted in bytes. Gaps over one character would
 * break that; they end the expansion.
 *
 * Results live in the caller's arena. Recursion is bounded by REGEX_DEPTH_MAX. Any thread.
 */
#include "storage/regex_shape.h"

#include "storage/labels.h"

#define PRODUCT_MAX 1000u    /* globs that a concatenation may multiply to */
#define UNION_MAX 100000u    /* globs in all: alternatives written out by a machine */
#define BYTES_MAX (8u << 20) /* of expanded texts and arrays */
#define REPEAT_EXPAND_MAX 10 /* (ab){3} is written out, a{1000} is not */
#define CLASS_EXPAND_MAX 64u /* characters of a class to be written out */
#define PREFIX_MAX 256u      /* bytes worth knowing */

/* ---- anchors ------------------------------------------------------------------------------------ */

static void strip(struct re_node *n, bool at_start, bool at_end)
{
    switch (n->op) {
    case RE_TEXT_START:
        if (at_start) n->op = RE_EMPTY;
        return;
    case RE_TEXT_END:
        if (at_end) n->op = RE_EMPTY;
        return;
    case RE_GROUP:
    case RE_ALT:
        for (uint32_t i = 0; i < n->n_sub; i++)
            strip(n->sub[i], at_start, at_end);
        return;
    case RE_CONCAT:
        strip(n->sub[0], at_start, at_end && n->n_sub == 1);
        strip(n->sub[n->n_sub - 1], at_start && n->n_sub == 1, at_end);
        return;
    default:
        return;
    }
}

void regex_strip_anchors(struct re_node *root)
{
    strip(root, true, true);
}

/* ---- expansion into globs ----------------------------------------------------------------------- */

struct expansion {
    struct arena *arena;
    size_t bytes; /* spent */
};

static bool spend(struct expansion *x, size_t bytes)
{
    x->bytes += bytes;
    return x->bytes <= BYTES_MAX;
}

static bool globs_new(struct expansion *x, size_t n, struct re_globs *out)
{
    if (n > UNION_MAX || !spend(x, n * sizeof out->v[0])) return false;
    out->v = arena_alloc(x->arena, n * sizeof out->v[0]);
    out->n = (uint32_t)n;
    return true;
}

static bool glob_new(struct expansion *x, uint32_t parts, struct re_glob *g)
{
    if (!spend(x, parts * (sizeof(str) + 1))) return false;
    *g = (struct re_glob){arena_alloc(x->arena, parts * sizeof(str)), arena_alloc(x->arena, parts), parts};
    return true;
}

static bool from_text(struct expansion *x, str text, struct re_globs *out)
{
    if (!globs_new(x, 1, out) || !glob_new(x, 1, &out->v[0])) return false;
    out->v[0].parts[0] = text;
    return true;
}

static bool from_gap(struct expansion *x, uint8_t least, struct re_globs *out)
{
    if (!globs_new(x, 1, out) || !glob_new(x, 2, &out->v[0])) return false;
    out->v[0].parts[0] = out->v[0].parts[1] = STR("");
    out->v[0].gaps[0] = least;
    return true;
}

static bool from_class(struct expansion *x, const struct re_node *n, struct re_globs *out)
{
    size_t count = 0;
    if (n->fold || n->negated || n->n_props > 0) return false;
    for (uint32_t i = 0; i < n->n_ranges; i++)
        count += n->ranges[i].high - n->ranges[i].low + 1;
    if (count == 0 || count > CLASS_EXPAND_MAX || !globs_new(x, count, out)) return false;
    char *text = arena_alloc(x->arena, 4 * count);
    struct re_glob *g = out->v;
    for (uint32_t i = 0; i < n->n_ranges; i++) {
        for (uint32_t r = n->ranges[i].low; r <= n->ranges[i].high; r++, g++) {
            if (!glob_new(x, 1, g)) return false;
            g->parts[0] = (str){text, utf8_put(text, r)};
            text += g->parts[0].n;
        }
    }
    return true;
}

static bool join_text(struct expansion *x, str a, str b, str *out)
{
    *out = a.n == 0 ? b : a;
    if (a.n == 0 || b.n == 0) return true;
    if (!spend(x, a.n + b.n)) return false;
    char *p = arena_alloc(x->arena, a.n + b.n);
    memcpy(p, a.p, a.n);
    memcpy(p + a.n, b.p, b.n);
    *out = (str){p, a.n + b.n};
    return true;
}

/* a followed by b: the last part of a and the first of b become one. */
static bool join(struct expansion *x, const struct re_glob *a, const struct re_glob *b, struct re_glob *out)
{
    str middle;
    if (!join_text(x, a->parts[a->n - 1], b->parts[0], &middle)) return false;
    if (middle.n == 0 && a->n > 1 && b->n > 1) { /* .*.+ : two gaps in a row are one */
        uint8_t least = a->gaps[a->n - 2] + b->gaps[0];
        if (least > 1 || !glob_new(x, a->n + b->n - 2, out)) return false;
        memcpy(out->parts, a->parts, (a->n - 1) * sizeof(str));
        memcpy(out->parts + a->n - 1, b->parts + 1, (b->n - 1) * sizeof(str));
        memcpy(out->gaps, a->gaps, a->n - 1);
        memcpy(out->gaps + a->n - 1, b->gaps + 1, b->n - 2);
        out->gaps[a->n - 2] = least;
        return true;
    }
    if (!glob_new(x, a->n + b->n - 1, out)) return false;
    memcpy(out->parts, a->parts, (a->n - 1) * sizeof(str));
    out->parts[a->n - 1] = middle;
    memcpy(out->parts + a->n, b->parts + 1, (b->n - 1) * sizeof(str));
    memcpy(out->gaps, a->gaps, a->n - 1);
    memcpy(out->gaps + a->n - 1, b->gaps, b->n - 1);
    return true;
}

static bool product(struct expansion *x, const struct re_globs *a, const struct re_globs *b, struct re_globs *out)
{
    size_t n = (size_t)a->n * b->n;
    if (n > PRODUCT_MAX && a->n > 1 && b->n > 1) return false;
    struct re_globs r;
    if (!globs_new(x, n, &r)) return false;
    for (uint32_t i = 0; i < a->n; i++)
        for (uint32_t j = 0; j < b->n; j++)
            if (!join(x, &a->v[i], &b->v[j], &r.v[i * b->n + j])) return false;
    *out = r;
    return true;
}

static bool expand(struct expansion *x, const struct re_node *n, struct re_globs *out);

static bool expand_concat(struct expansion *x, const struct re_node *n, struct re_globs *out)
{
    if (!expand(x, n->sub[0], out)) return false;
    for (uint32_t i = 1; i < n->n_sub; i++) {
        struct re_globs next;
        if (!expand(x, n->sub[i], &next) || !product(x, out, &next, out)) return false;
    }
    return true;
}

static bool expand_alternatives(struct expansion *x, const struct re_node *n, struct re_globs *out)
{
    size_t total = 0;
    struct re_globs *each = arena_alloc(x->arena, n->n_sub * sizeof each[0]);
    for (uint32_t i = 0; i < n->n_sub; i++) {
        if (!expand(x, n->sub[i], &each[i])) return false;
        total += each[i].n;
    }
    if (!globs_new(x, total, out)) return false;
    struct re_glob *to = out->v;
    for (uint32_t i = 0; i < n->n_sub; to += each[i].n, i++)
        memcpy(to, each[i].v, each[i].n * sizeof to[0]);
    return true;
}

/* `.*` and `.+` are gaps, (ab){1,3} is ab, abab, ababab; other repetitions have no end. */
static bool expand_repeat(struct expansion *x, const struct re_node *n, struct re_globs *out)
{
    const struct re_node *what = n->sub[0];
    if (n->max < 0) return what->op == RE_ANY && n->min <= 1 && from_gap(x, (uint8_t)n->min, out);
    if (n->max > REPEAT_EXPAND_MAX) return false;
    struct re_globs one, power, all = {0};
    if (!expand(x, what, &one) || !from_text(x, STR(""), &power)) return false;
    for (int32_t times = 0; times <= n->max; times++) {
        if (times > 0 && !product(x, &power, &one, &power)) return false;
        if (times < n->min) continue;
        struct re_globs both;
        if (!globs_new(x, (size_t)all.n + power.n, &both)) return false;
        if (all.n) memcpy(both.v, all.v, all.n * sizeof both.v[0]);
        memcpy(both.v + all.n, power.v, power.n * sizeof both.v[0]);
        all = both;
    }
    *out = all;
    return true;
}

static bool expand(struct expansion *x, const struct re_node *n, struct re_globs *out)
{
    switch (n->op) {
    case RE_EMPTY:
        return from_text(x, STR(""), out);
    case RE_LITERAL:
        return !n->fold && from_text(x, n->text, out);
    case RE_CLASS:
        return from_class(x, n, out);
    case RE_GROUP:
        return expand(x, n->sub[0], out);
    case RE_CONCAT:
        return expand_concat(x, n, out);
    case RE_ALT:
        return expand_alternatives(x, n, out);
    case RE_REPEAT:
        return expand_repeat(x, n, out);
    default:
        return false;
    }
}

bool regex_globs(const struct re_node *root, struct arena *a, struct re_globs *out)
{
    struct expansion x = {.arena = a};
    *out = (struct re_globs){0};
    return expand(&x, root, out);
}

/* ---- prefix ------------------------------------------------------------------------------------- */

struct prefix {
    char *text;
    size_t n;
};

static void prefix_add(struct prefix *p, str s)
{
    size_t n = s.n < PREFIX_MAX - p->n ? s.n : PREFIX_MAX - p->n;
    if (n) memcpy(p->text + p->n, s.p, n);
    p->n += n;
}

static bool prefix_of(const struct re_node *n, struct arena *a, struct prefix *p);

/* What all alternatives have in common after the p->n bytes that come before them. */
static void prefix_of_alternatives(const struct re_node *n, struct arena *a, struct prefix *p)
{
    struct arena_mark mark = arena_mark(a);
    struct prefix common = {arena_alloc(a, PREFIX_MAX), p->n}, next = {arena_alloc(a, PREFIX_MAX), 0};
    prefix_of(n->sub[0], a, &common);
    for (uint32_t i = 1; i < n->n_sub && common.n > p->n; i++) {
        size_t same = next.n = p->n;
        prefix_of(n->sub[i], a, &next);
        while (same < common.n && same < next.n && common.text[same] == next.text[same])
            same++;
        common.n = same;
    }
    prefix_add(p, (str){common.text + p->n, common.n - p->n});
    arena_rewind(a, mark);
}

/* Adds what each match of n starts with. True if n matches nothing but that, so that more may follow. */
static bool prefix_of(const struct re_node *n, struct arena *a, struct prefix *p)
{
    if (p->n == PREFIX_MAX) return false;
    switch (n->op) {
    case RE_EMPTY:
    case RE_TEXT_START: /* zero width; where they fail there is no match at all */
    case RE_TEXT_END:
    case RE_LINE_START:
    case RE_LINE_END:
    case RE_WORD_EDGE:
    case RE_NOT_WORD_EDGE:
        return true;
    case RE_LITERAL:
        if (!n->fold) prefix_add(p, n->text);
        return !n->fold;
    case RE_GROUP:
        return prefix_of(n->sub[0], a, p);
    case RE_CONCAT:
        for (uint32_t i = 0; i < n->n_sub; i++)
            if (!prefix_of(n->sub[i], a, p)) return false;
        return true;
    case RE_REPEAT:
        return n->min > 0 && prefix_of(n->sub[0], a, p) && n->min == 1 && n->max == 1;
    case RE_ALT:
        prefix_of_alternatives(n, a, p);
        return false;
    default:
        return false;
    }
}

str regex_tree_prefix(const struct re_node *root, struct arena *a)
{
    struct prefix p = {.text = arena_alloc(a, PREFIX_MAX)};
    prefix_of(root, a, &p);
    while (!utf8_valid((str){p.text, p.n})) /* alternatives may part inside a character */
        p.n--;
    return (str){p.text, p.n};
}

/* ---- matching ----------------------------------------------------------------------------------- */

bool glob_match(const struct re_glob *g, str subject)
{
    str first = g->parts[0], last = g->parts[g->n - 1];
    if (g->n == 1) return str_eq(first, subject);
    if (!str_starts_with(subject, first)) return false;
    size_t at = first.n;
    for (uint32_t i = 1; i + 1 < g->n; i++) { /* the leftmost place is as good as any: gaps are open-ended */
        at += g->gaps[i - 1];
        if (at > subject.n || subject.n - at < g->parts[i].n) return false;
        const char *found = memmem(subject.p + at, subject.n - at, g->parts[i].p, g->parts[i].n);
        if (found == NULL) return false;
        at = (size_t)(found - subject.p) + g->parts[i].n;
    }
    at += g->gaps[g->n - 2];
    if (subject.n < at || subject.n - at < last.n) return false;
    return last.n == 0 || memcmp(subject.p + subject.n - last.n, last.p, last.n) == 0;
}
