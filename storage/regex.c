/*
 * regex.c: RE2 syntax, fully anchored, in bounded time: the unit's front.
 *
 * A pattern is parsed once (regex_parse). If its language is a union of literals and globs
 * (regex_shape), matching is a binary search and some memmem; else PCRE2 runs it (regex_engine), after
 * a look at the literal prefix. A pattern with groups gets an engine too, for regex_replace.
 *
 * Everything a struct regex points to lives in its arena or its engine. Immutable after creation.
 */
#include "storage/regex.h"

#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/buf.h"
#include "storage/regex_engine.h"
#include "storage/regex_parse.h"
#include "storage/regex_shape.h"

#define LITERALS_SHOWN 1000           /* regex_literals names no more */
#define GLOBS_MAX 64                  /* tried one after another; more is the engine's work */
#define REGEX_REPLACED_MAX (1u << 20) /* bytes of an expanded replacement */

struct regex {
    struct arena arena;
    str *literals; /* sorted, unique */
    size_t n_literals;
    struct re_globs globs; /* those with gaps */
    bool expanded;         /* literals and globs are the whole language */
    bool matches_empty;
    str prefix;
    uint32_t n_groups;
    str *names;
    struct regex_engine *engine; /* NULL if never needed */
};

/* ---- creation ----------------------------------------------------------------------------------- */

static int compare_literals(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static void sort_literals(struct regex *re)
{
    size_t kept = 0;
    qsort(re->literals, re->n_literals, sizeof re->literals[0], compare_literals);
    for (size_t i = 0; i < re->n_literals; i++)
        if (kept == 0 || !str_eq(re->literals[kept - 1], re->literals[i])) re->literals[kept++] = re->literals[i];
    re->n_literals = kept;
}

static struct re_glob copy_glob(struct arena *a, const struct re_glob *g)
{
    struct re_glob copy = {arena_alloc(a, g->n * sizeof(str)), arena_dup(a, g->gaps, g->n), g->n};
    for (uint32_t i = 0; i < g->n; i++)
        copy.parts[i] = arena_str(a, g->parts[i]);
    return copy;
}

/* Sorts the expansion into literals and globs with gaps, copied; false if there are too many of the latter. */
static bool keep_globs(struct regex *re, const struct re_globs *all)
{
    size_t literals = 0;
    for (uint32_t i = 0; i < all->n; i++)
        literals += all->v[i].n == 1;
    if (all->n - literals > GLOBS_MAX) return false;
    re->literals = arena_alloc(&re->arena, literals * sizeof re->literals[0]);
    re->globs.v = arena_alloc(&re->arena, (all->n - literals) * sizeof re->globs.v[0]);
    for (uint32_t i = 0; i < all->n; i++) {
        const struct re_glob *g = &all->v[i];
        if (g->n == 1)
            re->literals[re->n_literals++] = arena_str(&re->arena, g->parts[0]);
        else
            re->globs.v[re->globs.n++] = copy_glob(&re->arena, g);
    }
    sort_literals(re);
    return true;
}

static void keep_names(struct regex *re, const struct re_tree *tree)
{
    re->n_groups = tree->n_groups;
    re->names = arena_alloc(&re->arena, tree->n_groups * sizeof re->names[0]);
    for (uint32_t i = 0; i < tree->n_groups; i++)
        re->names[i] = arena_str(&re->arena, tree->names[i]);
}

static err build(struct regex *re, str pattern, struct arena *scratch)
{
    struct re_tree tree;
    struct re_globs globs;
    TRY(regex_parse(pattern, scratch, &tree));
    regex_strip_anchors(tree.root);
    re->expanded = regex_globs(tree.root, scratch, &globs) && keep_globs(re, &globs);
    re->prefix = arena_str(&re->arena, regex_tree_prefix(tree.root, scratch));
    keep_names(re, &tree);
    if (!re->expanded) TRY(regex_engine_create(&tree, &re->engine));
    if (re->expanded && re->n_groups > 0) /* for regex_replace only, which answers for its absence */
        err_free(regex_engine_create(&tree, &re->engine));
    re->matches_empty = regex_match(re, STR("")) == REGEX_YES;
    return NULL;
}

err regex_create(str pattern, struct regex **out)
{
    struct regex *re = mem_zalloc(sizeof *re);
    struct arena scratch = {0};
    err e = build(re, pattern, &scratch);
    arena_deinit(&scratch);
    if (e) {
        regex_destroy(re);
        return e;
    }
    *out = re;
    return NULL;
}

void regex_destroy(struct regex *re)
{
    if (re == NULL) return;
    regex_engine_destroy(re->engine);
    arena_deinit(&re->arena);
    mem_free(re);
}

/* ---- matching ----------------------------------------------------------------------------------- */

static bool literal_found(const struct regex *re, str s)
{
    size_t low = 0, high = re->n_literals;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int c = str_cmp(re->literals[middle], s);
        if (c == 0) return true;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return false;
}

enum regex_result regex_match(const struct regex *re, str subject)
{
    if (!re->expanded) {
        if (!str_starts_with(subject, re->prefix)) return REGEX_NO;
        return regex_engine_match(re->engine, subject, NULL, 0);
    }
    if (literal_found(re, subject)) return REGEX_YES;
    for (uint32_t i = 0; i < re->globs.n; i++)
        if (glob_match(&re->globs.v[i], subject)) return REGEX_YES;
    return REGEX_NO;
}

const str *regex_literals(const struct regex *re, size_t *n)
{
    *n = re->expanded && re->globs.n == 0 && re->n_literals <= LITERALS_SHOWN ? re->n_literals : 0;
    return re->literals;
}

str regex_prefix(const struct regex *re)
{
    return re->prefix;
}

bool regex_matches_empty(const struct regex *re)
{
    return re->matches_empty;
}

/* ---- replacement -------------------------------------------------------------------------------- */

/* Go's rule: digits without leading zero are a number, everything else is a name. Group 0 is the match. */
static bool find_group(const struct regex *re, str name, size_t *group)
{
    size_t number = 0;
    bool digits = name.n == 1 || name.p[0] != '0';
    for (size_t i = 0; i < name.n && digits; i++) {
        digits = name.p[i] >= '0' && name.p[i] <= '9' && number < 100000000;
        number = number * 10 + (size_t)(name.p[i] - '0');
    }
    if (digits) {
        *group = number;
        return number <= re->n_groups;
    }
    for (uint32_t i = 0; i < re->n_groups; i++) {
        if (!str_eq(re->names[i], name)) continue;
        *group = i + 1;
        return true;
    }
    return false;
}

static bool is_name_byte(char c)
{
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

/* Reads name or {name} at *at, just behind a dollar. False, and *at unmoved, if there is none. */
static bool take_group_name(const char **at, const char *end, str *name)
{
    const char *s = *at;
    bool brace = s < end && *s == '{';
    s += brace;
    const char *from = s;
    while (s < end && is_name_byte(*s))
        s++;
    *name = (str){from, (size_t)(s - from)};
    if (name->n == 0 || (brace && (s == end || *s != '}'))) return false;
    *at = s + brace;
    return true;
}

static void expand_template(const struct regex *re, str subject, const size_t *groups, str template, struct buf *out)
{
    const char *at = template.n ? template.p : "", *end = at + template.n;
    while (at < end) {
        const char *dollar = memchr(at, '$', (size_t)(end - at));
        buf_put(out, at, (size_t)((dollar ? dollar : end) - at));
        if (dollar == NULL) return;
        at = dollar + 1;
        str name;
        size_t group;
        if (at < end && *at == '$') {
            buf_u8(out, '$');
            at++;
        } else if (!take_group_name(&at, end, &name)) {
            buf_u8(out, '$'); /* not a reference: the dollar stands for itself */
        } else if (find_group(re, name, &group) && groups[2 * group] != SIZE_MAX) {
            buf_put(out, subject.p + groups[2 * group], groups[2 * group + 1] - groups[2 * group]);
        }
    }
}

err regex_replace(const struct regex *re, str subject, str replacement, struct arena *a, bool *matched, str *out)
{
    size_t n = re->n_groups + 1;
    size_t *groups = arena_alloc(a, 2 * n * sizeof groups[0]);
    groups[0] = 0;
    groups[1] = subject.n;
    *matched = false;
    enum regex_result r = regex_match(re, subject);
    if (r == REGEX_YES && re->n_groups > 0) {
        if (re->engine == NULL)
            return err_new(ERR_LIMIT, "regular expression with groups is too large for a replacement");
        r = regex_engine_match(re->engine, subject, groups, n);
    }
    if (r == REGEX_LIMIT) return err_new(ERR_LIMIT, "regular expression needs too many steps");
    if (r == REGEX_NO) return NULL;
    struct buf text = {.max = REGEX_REPLACED_MAX};
    expand_template(re, subject, groups, replacement, &text);
    err e = buf_status(&text, "replacement");
    if (!e) *out = arena_str(a, buf_as_str(&text));
    buf_deinit(&text);
    *matched = e == NULL;
    return e;
}
