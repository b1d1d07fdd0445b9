/*
 * regex_parse.c: RE2 syntax to a tree.
 *
 *   alternation   = concatenation { "|" concatenation }
 *   concatenation = { item [ repetition ] }
 *   item          = character | escape | class | "." | "^" | "$" | group
 *   repetition    = ( "*" | "+" | "?" | "{" n [ "," [ m ] ] "}" ) [ "?" ]
 *
 * A recursive descent over bytes that are known to be valid UTF-8, REGEX_DEPTH_MAX deep at most. Nodes
 * of the lists being read lie on one stack (p->stack); a finished list is copied into the arena.
 * Decoded literal text goes, in order of appearance, to one buffer as long as the pattern (decoding
 * never lengthens), so neighbouring characters make one RE_LITERAL; a repetition splits its last
 * character off. All memory is the caller's arena's, but for the stack. Any thread.
 */
#include "storage/regex_parse.h"

#include <ctype.h>

#include "storage/base/alloc.h"
#include "storage/labels.h"
#include "storage/regex_class.h"

enum { FLAG_FOLD = 1, FLAG_MULTI_LINE = 2, FLAG_DOT_NL = 4, FLAG_UNGREEDY = 8 };

struct parser {
    const char *start, *at, *end;
    struct arena *arena;
    struct re_node **stack;
    size_t n, cap;
    char *text; /* where the next literal byte goes */
    unsigned flags;
    str *names;
    uint32_t n_groups;
    size_t cap_names;
};

/* ---- reading ------------------------------------------------------------------------------------ */

static err fail(const struct parser *p, const char *from, const char *reason)
{
    enum { FRAGMENT_MAX = 40 };
    size_t n = (size_t)(p->end - from);
    if (n > FRAGMENT_MAX) n = FRAGMENT_MAX;
    return err_new(ERR_INVALID, "error parsing regexp: %s: `%.*s` at position %zu", reason, (int)n, from,
                   (size_t)(from - p->start) + 1);
}

static bool looking_at(const struct parser *p, const char *text)
{
    size_t n = strlen(text);
    return (size_t)(p->end - p->at) >= n && memcmp(p->at, text, n) == 0;
}

static bool take(struct parser *p, char c)
{
    if (p->at == p->end || *p->at != c) return false;
    p->at++;
    return true;
}

/* The pattern is valid UTF-8 and not at its end. */
static uint32_t take_rune(struct parser *p)
{
    const uint8_t *s = (const uint8_t *)p->at;
    if (s[0] < 0x80) return p->at++, s[0];
    int more = s[0] >= 0xf0 ? 3 : s[0] >= 0xe0 ? 2 : 1;
    uint32_t rune = s[0] & (0x3fu >> more);
    for (int i = 1; i <= more; i++)
        rune = rune << 6 | (s[i] & 0x3f);
    p->at += more + 1;
    return rune;
}

/* ---- building ----------------------------------------------------------------------------------- */

static struct re_node *node(struct parser *p, enum re_op op)
{
    struct re_node *n = arena_zalloc(p->arena, sizeof *n);
    n->op = op;
    return n;
}

static void push(struct parser *p, struct re_node *n)
{
    p->stack = mem_grow(p->stack, &p->cap, p->n + 1, sizeof p->stack[0]);
    p->stack[p->n++] = n;
}

/* Takes what was pushed since `base` off the stack, as one node. */
static struct re_node *collapse(struct parser *p, enum re_op op, size_t base)
{
    size_t n = p->n - base;
    struct re_node *whole;
    if (n == 0) {
        whole = node(p, RE_EMPTY);
    } else if (n == 1) {
        whole = p->stack[base];
    } else {
        whole = node(p, op);
        whole->sub = arena_dup(p->arena, p->stack + base, n * sizeof p->stack[0]);
        whole->n_sub = (uint32_t)n;
    }
    p->n = base;
    return whole;
}

static void push_rune(struct parser *p, size_t base, uint32_t rune)
{
    if (rune >= 0xd800 && rune <= 0xdfff) { /* \x{d800}: legal to write, never in valid UTF-8 */
        push(p, node(p, RE_CLASS));
        return;
    }
    bool has_case = rune >= 0x80 || isalpha((int)rune);
    bool fold = (p->flags & FLAG_FOLD) && has_case;
    size_t n = utf8_put(p->text, rune);
    struct re_node *last = p->n > base ? p->stack[p->n - 1] : NULL;
    if (last && last->op == RE_LITERAL && last->fold == fold && last->text.p + last->text.n == p->text) {
        last->text.n += n;
    } else {
        struct re_node *literal = node(p, RE_LITERAL);
        literal->text = (str){p->text, n};
        literal->fold = fold;
        push(p, literal);
    }
    p->text += n;
}

static void push_class(struct parser *p, const struct re_class *c, bool negated)
{
    struct re_node *n = node(p, RE_CLASS);
    n->ranges = c->ranges;
    n->n_ranges = c->n_ranges;
    n->props = c->props;
    n->n_props = c->n_props;
    n->negated = negated;
    n->fold = p->flags & FLAG_FOLD;
    push(p, n);
}

/* ---- escapes ------------------------------------------------------------------------------------ */

static int hex_digit(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return -1;
}

/* After \x: two digits or {digits}. */
static bool parse_hex(struct parser *p, uint32_t *rune)
{
    uint32_t v = 0;
    if (take(p, '{')) {
        size_t digits = 0;
        for (; p->at < p->end && hex_digit(*p->at) >= 0; digits++) {
            v = v * 16 + (uint32_t)hex_digit(*p->at++);
            if (v > RUNE_MAX) return false;
        }
        *rune = v;
        return digits > 0 && take(p, '}');
    }
    for (int i = 0; i < 2; i++) {
        if (p->at == p->end || hex_digit(*p->at) < 0) return false;
        v = v * 16 + (uint32_t)hex_digit(*p->at++);
    }
    *rune = v;
    return true;
}

static uint32_t parse_octal(struct parser *p, uint32_t v, int more)
{
    for (; more > 0 && p->at < p->end && *p->at >= '0' && *p->at <= '7'; more--)
        v = v * 8 + (uint32_t)(*p->at++ - '0');
    return v;
}

/* An escape that stands for one character, at the backslash. Also inside classes. */
static err parse_escape(struct parser *p, uint32_t *rune)
{
    static const char letters[] = "afnrtv", values[] = "\a\f\n\r\t\v";
    const char *from = p->at++;
    if (p->at == p->end) return fail(p, from, "trailing backslash at end of expression");
    char c = *p->at++;
    const char *letter = c ? strchr(letters, c) : NULL;
    if (letter) {
        *rune = (uint8_t)values[letter - letters];
    } else if (c == 'x') {
        if (!parse_hex(p, rune)) return fail(p, from, "invalid escape sequence");
    } else if (c == '0') {
        *rune = parse_octal(p, 0, 2);
    } else if (c >= '1' && c <= '7' && p->at < p->end && *p->at >= '0' && *p->at <= '7') {
        *rune = parse_octal(p, (uint32_t)(c - '0'), 2);
    } else if ((uint8_t)c < 0x80 && !isalnum((uint8_t)c)) {
        *rune = (uint8_t)c;
    } else {
        return fail(p, from, "invalid escape sequence"); /* back-references, \C, \G, \K, \R, \X, \Z, ... */
    }
    return NULL;
}

/* \pN, \p{Greek}, \P{^Lu} into c, at the backslash. */
static err parse_unicode_class(struct parser *p, struct re_class *c)
{
    const char *from = p->at;
    bool negated = from[1] == 'P';
    p->at += 2;
    if (p->at == p->end) return fail(p, from, "invalid character class range");
    str name = {p->at, 1};
    if (take(p, '{')) {
        const char *close = memchr(p->at, '}', (size_t)(p->end - p->at));
        if (close == NULL) return fail(p, from, "invalid character class range");
        name = (str){p->at, (size_t)(close - p->at)};
        p->at = close + 1;
    } else {
        p->at++;
    }
    if (!re_class_add_unicode(c, name, negated)) return fail(p, from, "invalid character class range");
    return NULL;
}

/* If a class escape (\d, \pL) is next, reads it into c. */
static err parse_class_escape(struct parser *p, struct re_class *c, bool *found)
{
    *found = false;
    if (p->end - p->at < 2 || p->at[0] != '\\') return NULL;
    if (p->at[1] == 'p' || p->at[1] == 'P') {
        *found = true;
        return parse_unicode_class(p, c);
    }
    *found = re_class_add_perl(c, p->at[1]);
    if (*found) p->at += 2;
    return NULL;
}

/* ---- classes ------------------------------------------------------------------------------------ */

/* [:alpha:] inside a class; what only looks like it is ordinary characters. */
static err parse_posix(struct parser *p, struct re_class *c, bool *found)
{
    *found = false;
    if (!looking_at(p, "[:")) return NULL;
    const char *from = p->at;
    const char *close = memmem(from + 2, (size_t)(p->end - from - 2), ":]", 2);
    if (close == NULL) return NULL;
    *found = true;
    if (!re_class_add_posix(c, (str){from + 2, (size_t)(close - from - 2)}))
        return fail(p, from, "invalid character class range");
    p->at = close + 2;
    return NULL;
}

static err parse_class_rune(struct parser *p, const char *open, uint32_t *rune)
{
    if (p->at == p->end) return fail(p, open, "missing closing ]");
    if (*p->at == '\\') return parse_escape(p, rune);
    *rune = take_rune(p);
    return NULL;
}

static err parse_class_range(struct parser *p, const char *open, struct re_class *c)
{
    const char *from = p->at;
    uint32_t low = 0, high;
    TRY(parse_class_rune(p, open, &low));
    high = low;
    if (p->end - p->at >= 2 && p->at[0] == '-' && p->at[1] != ']') {
        p->at++;
        TRY(parse_class_rune(p, open, &high));
        if (high < low) return fail(p, from, "invalid character class range");
    }
    re_class_add(c, low, high);
    return NULL;
}

/* At the opening bracket. A ] that comes first is an ordinary character. */
static err parse_class(struct parser *p)
{
    const char *open = p->at++;
    struct re_class c = {.arena = p->arena};
    bool negated = take(p, '^');
    for (bool first = true; first || p->at == p->end || *p->at != ']'; first = false) {
        bool found;
        if (p->at == p->end) return fail(p, open, "missing closing ]");
        TRY(parse_posix(p, &c, &found));
        if (!found) TRY(parse_class_escape(p, &c, &found));
        if (!found) TRY(parse_class_range(p, open, &c));
    }
    p->at++;
    push_class(p, &c, negated);
    return NULL;
}

/* ---- repetition --------------------------------------------------------------------------------- */

/* How often something inside n may be repeated in all, counted as RE2 does; saturates over the maximum. */
static int repeat_product(const struct re_node *n)
{
    int most = 1;
    if (n->op != RE_CONCAT && n->op != RE_ALT && n->op != RE_GROUP && n->op != RE_REPEAT) return 1;
    for (uint32_t i = 0; i < n->n_sub; i++) {
        int inner = repeat_product(n->sub[i]);
        if (inner > most) most = inner;
    }
    if (n->op != RE_REPEAT) return most;
    int own = n->max >= 0 ? n->max : n->min;
    if (own > 1) most *= own;
    return most > REGEX_REPEAT_MAX ? REGEX_REPEAT_MAX + 1 : most;
}

static bool parse_count(const char **at, const char *end, int32_t *count)
{
    const char *s = *at;
    if (s == end || !isdigit((uint8_t)*s)) return false;
    if (s + 1 < end && s[0] == '0' && isdigit((uint8_t)s[1])) return false;
    for (*count = 0; s < end && isdigit((uint8_t)*s); s++)
        if (*count <= REGEX_REPEAT_MAX) *count = *count * 10 + (*s - '0');
    *at = s;
    return true;
}

/* {n}, {n,}, {n,m}; anything else after a brace is ordinary text. Moves p->at only on success. */
static bool parse_braces(struct parser *p, int32_t *min, int32_t *max)
{
    const char *s = p->at + 1;
    if (!parse_count(&s, p->end, min)) return false;
    *max = *min;
    if (s < p->end && *s == ',') {
        s++;
        if (s < p->end && *s == '}')
            *max = -1;
        else if (!parse_count(&s, p->end, max))
            return false;
    }
    if (s == p->end || *s != '}') return false;
    p->at = s + 1;
    return true;
}

/* The item that a repetition applies to: the last one; of a literal only its last character. */
static struct re_node *pop_item(struct parser *p)
{
    struct re_node *last = p->stack[p->n - 1];
    if (last->op == RE_LITERAL) {
        size_t tail = 1;
        while (((uint8_t)last->text.p[last->text.n - tail] & 0xc0) == 0x80)
            tail++;
        if (tail < last->text.n) {
            struct re_node *split = node(p, RE_LITERAL);
            last->text.n -= tail;
            split->text = (str){last->text.p + last->text.n, tail};
            split->fold = last->fold;
            return split;
        }
    }
    p->n--;
    return last;
}

static err parse_repetition(struct parser *p, size_t base, bool *repeated)
{
    const char *from = p->at;
    int32_t min = 0, max = -1;
    switch (*p->at) {
    case '+':
        min = 1;
        p->at++;
        break;
    case '?':
        max = 1;
        p->at++;
        break;
    case '*':
        p->at++;
        break;
    default:
        if (!parse_braces(p, &min, &max)) {
            push_rune(p, base, take_rune(p));
            *repeated = false;
            return NULL;
        }
    }
    if (min > REGEX_REPEAT_MAX || max > REGEX_REPEAT_MAX || (max >= 0 && max < min))
        return fail(p, from, "invalid repeat count");
    if (p->n == base) return fail(p, from, "missing argument to repetition operator");
    if (*repeated) return fail(p, from, "invalid nested repetition operator");
    struct re_node *n = node(p, RE_REPEAT);
    n->lazy = take(p, '?') != !!(p->flags & FLAG_UNGREEDY);
    n->min = min;
    n->max = max;
    n->sub = arena_alloc(p->arena, sizeof n->sub[0]);
    n->sub[0] = pop_item(p);
    n->n_sub = 1;
    if (*from == '{' && repeat_product(n) > REGEX_REPEAT_MAX) return fail(p, from, "invalid repeat count");
    push(p, n);
    *repeated = true;
    return NULL;
}

/* ---- groups ------------------------------------------------------------------------------------- */

static err parse_alternation(struct parser *p, int depth, struct re_node **out);

/* (?flags) or (?flags: after its "(?"; *group tells that a group follows. */
static err parse_flags(struct parser *p, const char *open, bool *group)
{
    static const char letters[] = "imsU";
    static const unsigned bits[] = {FLAG_FOLD, FLAG_MULTI_LINE, FLAG_DOT_NL, FLAG_UNGREEDY};
    bool off = false, any = false;
    unsigned flags = p->flags;
    while (p->at < p->end) {
        char c = *p->at++;
        const char *letter = c ? strchr(letters, c) : NULL;
        if (letter) {
            unsigned bit = bits[letter - letters];
            flags = off ? flags & ~bit : flags | bit;
            any = true;
        } else if (c == '-' && !off) {
            off = true;
            any = false;
        } else if ((c == ':' || c == ')') && !(off && !any) && (c == ':' || any)) {
            p->flags = flags;
            *group = c == ':';
            return NULL;
        } else {
            break;
        }
    }
    return fail(p, open, "invalid or unsupported Perl syntax");
}

static bool is_word(str s)
{
    for (size_t i = 0; i < s.n; i++)
        if (!isalnum((uint8_t)s.p[i]) && s.p[i] != '_') return false;
    return s.n > 0;
}

static err parse_group_name(struct parser *p, const char *open, str *name)
{
    const char *close = memchr(p->at, '>', (size_t)(p->end - p->at));
    *name = (str){p->at, close ? (size_t)(close - p->at) : 0};
    if (!is_word(*name)) return fail(p, open, "invalid named capture");
    for (uint32_t i = 0; i < p->n_groups; i++)
        if (str_eq(p->names[i], *name)) return fail(p, open, "duplicate capture group name");
    p->at = close + 1;
    return NULL;
}

static err parse_group(struct parser *p, int depth)
{
    const char *open = p->at++;
    unsigned outer = p->flags;
    bool capture = true, group = true;
    str name = {0};
    if (depth >= REGEX_DEPTH_MAX) return fail(p, open, "expression nests too deeply");
    if (looking_at(p, "?P<") || (looking_at(p, "?<") && !looking_at(p, "?<=") && !looking_at(p, "?<!"))) {
        p->at += looking_at(p, "?P<") ? 3 : 2;
        TRY(parse_group_name(p, open, &name));
    } else if (take(p, '?')) {
        capture = false;
        TRY(parse_flags(p, open, &group));
        if (!group) return NULL; /* (?i): holds to the end of the group around it */
    }
    uint32_t number = 0;
    if (capture) {
        p->names = mem_grow(p->names, &p->cap_names, p->n_groups + 1u, sizeof p->names[0]);
        p->names[p->n_groups] = name;
        number = ++p->n_groups;
    }
    struct re_node *inside;
    TRY(parse_alternation(p, depth + 1, &inside));
    if (!take(p, ')')) return fail(p, open, "missing closing )");
    p->flags = outer;
    if (inside->op == RE_LITERAL || capture) { /* a literal must not grow into its neighbours: (?:ab)* */
        struct re_node *n = node(p, capture ? RE_GROUP : RE_CONCAT);
        n->sub = arena_alloc(p->arena, sizeof n->sub[0]);
        n->sub[0] = inside;
        n->n_sub = 1;
        n->group = number;
        inside = n;
    }
    push(p, inside);
    return NULL;
}

/* ---- the rest ----------------------------------------------------------------------------------- */

/* \Q...\E: everything between is text; without \E up to the end. */
static void parse_quoted(struct parser *p, size_t base)
{
    p->at += 2;
    while (p->at < p->end && !looking_at(p, "\\E"))
        push_rune(p, base, take_rune(p));
    if (p->at < p->end) p->at += 2;
}

static err parse_backslash(struct parser *p, size_t base)
{
    static const char letters[] = "AzbB";
    static const enum re_op ops[] = {RE_TEXT_START, RE_TEXT_END, RE_WORD_EDGE, RE_NOT_WORD_EDGE};
    if (looking_at(p, "\\Q")) {
        parse_quoted(p, base);
        return NULL;
    }
    const char *letter = p->end - p->at >= 2 && p->at[1] ? strchr(letters, p->at[1]) : NULL;
    if (letter) {
        p->at += 2;
        push(p, node(p, ops[letter - letters]));
        return NULL;
    }
    struct re_class c = {.arena = p->arena};
    bool found;
    TRY(parse_class_escape(p, &c, &found));
    if (found) {
        push_class(p, &c, false);
        return NULL;
    }
    uint32_t rune;
    TRY(parse_escape(p, &rune));
    push_rune(p, base, rune);
    return NULL;
}

static err parse_item(struct parser *p, size_t base, int depth, bool *repeated)
{
    bool many_lines = p->flags & FLAG_MULTI_LINE;
    char c = *p->at;
    if (strchr("*+?{", c) && c) return parse_repetition(p, base, repeated);
    *repeated = false;
    switch (c) {
    case '(':
        return parse_group(p, depth);
    case '[':
        return parse_class(p);
    case '\\':
        return parse_backslash(p, base);
    case '.':
        p->at++;
        push(p, node(p, p->flags & FLAG_DOT_NL ? RE_ANY : RE_ANY_IN_LINE));
        return NULL;
    case '^':
        p->at++;
        push(p, node(p, many_lines ? RE_LINE_START : RE_TEXT_START));
        return NULL;
    case '$':
        p->at++;
        push(p, node(p, many_lines ? RE_LINE_END : RE_TEXT_END));
        return NULL;
    default:
        push_rune(p, base, take_rune(p));
        return NULL;
    }
}

static err parse_concatenation(struct parser *p, int depth)
{
    size_t base = p->n;
    bool repeated = false;
    while (p->at < p->end && *p->at != '|' && *p->at != ')')
        TRY(parse_item(p, base, depth, &repeated));
    push(p, collapse(p, RE_CONCAT, base));
    return NULL;
}

static err parse_alternation(struct parser *p, int depth, struct re_node **out)
{
    size_t base = p->n;
    do {
        TRY(parse_concatenation(p, depth));
    } while (take(p, '|'));
    *out = collapse(p, RE_ALT, base);
    return NULL;
}

err regex_parse(str pattern, struct arena *a, struct re_tree *out)
{
    if (pattern.n == 0) pattern = STR(""); /* no arithmetic on a null pointer */
    struct parser p = {.start = pattern.p, .at = pattern.p, .end = pattern.p + pattern.n, .arena = a};
    err e = NULL;
    *out = (struct re_tree){0};
    if (pattern.n > REGEX_PATTERN_MAX)
        return err_new(ERR_INVALID, "error parsing regexp: the pattern is %zu bytes long, the limit is %u", pattern.n,
                       REGEX_PATTERN_MAX);
    if (!utf8_valid(pattern)) return err_new(ERR_INVALID, "error parsing regexp: invalid UTF-8");
    p.flags = FLAG_DOT_NL;
    p.text = arena_alloc(a, pattern.n + 4);
    TRY_OUT(parse_alternation(&p, 0, &out->root));
    if (p.at < p.end) TRY_OUT(fail(&p, p.at, "unexpected )"));
    out->n_groups = p.n_groups;
    if (p.n_groups) out->names = arena_dup(a, p.names, p.n_groups * sizeof p.names[0]);
out:
    mem_free(p.names);
    mem_free(p.stack);
    return e;
}
