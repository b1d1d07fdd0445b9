/*
 * regex_class.c: sets of characters in patterns: \d, [:alpha:], \p{Greek}.
 *
 * Perl and POSIX classes are ASCII, as in RE2, and become plain ranges here, complements included.
 * Unicode classes stay names: PCRE2 has the tables. Scripts are asked for as "sc:" so that they mean
 * the Script property, as in RE2, and not Script_Extensions, PCRE2's default. Arrays live in the
 * caller's arena. Any thread.
 */
#include "storage/regex_class.h"

void re_class_add(struct re_class *c, uint32_t low, uint32_t high)
{
    enum { SURROGATE_LOW = 0xd800, SURROGATE_HIGH = 0xdfff };
    if (low < SURROGATE_LOW && high > SURROGATE_HIGH) {
        re_class_add(c, low, SURROGATE_LOW - 1);
        re_class_add(c, SURROGATE_HIGH + 1, high);
        return;
    }
    if (low >= SURROGATE_LOW && low <= SURROGATE_HIGH) low = SURROGATE_HIGH + 1;
    if (high >= SURROGATE_LOW && high <= SURROGATE_HIGH) high = SURROGATE_LOW - 1;
    if (low > high) return;
    if (c->n_ranges == c->cap_ranges) {
        uint32_t cap = c->cap_ranges ? 2 * c->cap_ranges : 8;
        struct re_range *grown = arena_alloc(c->arena, cap * sizeof *grown);
        if (c->n_ranges) memcpy(grown, c->ranges, c->n_ranges * sizeof *grown);
        c->ranges = grown;
        c->cap_ranges = cap;
    }
    c->ranges[c->n_ranges++] = (struct re_range){low, high};
}

/* Ranges as pairs of characters, ascending: "09" is 0-9. With negated: all the others. */
static void add_pairs(struct re_class *c, const char *pairs, bool negated)
{
    uint32_t next = 0;
    for (const char *p = pairs; *p; p += 2) {
        uint32_t low = (uint8_t)p[0], high = (uint8_t)p[1];
        if (!negated)
            re_class_add(c, low, high);
        else if (low > next)
            re_class_add(c, next, low - 1);
        next = high + 1;
    }
    if (negated) re_class_add(c, next, RUNE_MAX);
}

bool re_class_add_perl(struct re_class *c, char letter)
{
    bool negated = letter >= 'A' && letter <= 'Z';
    switch (letter | 0x20) {
    case 'd':
        add_pairs(c, "09", negated);
        return true;
    case 's':
        add_pairs(c, "\t\n\f\r  ", negated); /* no vertical tab, as in RE2 */
        return true;
    case 'w':
        add_pairs(c, "09AZ__az", negated);
        return true;
    default:
        return false;
    }
}

bool re_class_add_posix(struct re_class *c, str name)
{
    static const struct {
        const char *name, *pairs;
    } table[] = {
        {"alnum", "09AZaz"}, {"alpha", "AZaz"}, {"blank", "\t\t  "},  {"digit", "09"},
        {"graph", "!~"},     {"lower", "az"},   {"print", " ~"},      {"punct", "!/:@[`{~"},
        {"space", "\t\r  "}, {"upper", "AZ"},   {"word", "09AZ__az"}, {"xdigit", "09AFaf"},
    };
    bool negated = name.n > 0 && name.p[0] == '^';
    if (negated) name = (str){name.p + 1, name.n - 1};
    if (str_eq(name, STR("ascii")) || str_eq(name, STR("cntrl"))) { /* ranges that begin with NUL */
        uint32_t high = name.p[0] == 'a' ? 0x7f : 0x1f;
        if (name.p[0] == 'c' && !negated) re_class_add(c, 0x7f, 0x7f);
        if (name.p[0] == 'c' && negated) re_class_add(c, 0x20, 0x7e);
        re_class_add(c, negated ? 0x80 : 0, negated ? RUNE_MAX : high);
        return true;
    }
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (!str_eq(name, str_of(table[i].name))) continue;
        add_pairs(c, table[i].pairs, negated);
        return true;
    }
    return false;
}

static bool is_category(str name)
{
    static const char table[] = " C Cc Cf Co Cs L Ll Lm Lo Lt Lu M Mc Me Mn N Nd Nl No P Pc Pd Pe Pf Pi Po Ps"
                                " S Sc Sk Sm So Z Zl Zp Zs ";
    char key[4];
    if (name.n == 0 || name.n > 2) return false;
    key[0] = ' ';
    memcpy(key + 1, name.p, name.n);
    key[1 + name.n] = ' ';
    return memmem(table, sizeof table - 1, key, name.n + 2) != NULL;
}

/* The form of script names: Greek, Old_Italic, Nko. */
static bool may_be_script(str name)
{
    if (name.n < 2 || name.n > 40 || name.p[0] < 'A' || name.p[0] > 'Z') return false;
    for (size_t i = 1; i < name.n; i++) {
        char c = name.p[i];
        bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
        if (!letter && c != '_') return false;
    }
    return true;
}

bool re_class_add_unicode(struct re_class *c, str name, bool negated)
{
    if (name.n > 0 && name.p[0] == '^') {
        negated = !negated;
        name = (str){name.p + 1, name.n - 1};
    }
    if (str_eq(name, STR("Any"))) {
        if (!negated) re_class_add(c, 0, RUNE_MAX);
        return true;
    }
    bool category = is_category(name);
    if (!category && !may_be_script(name)) return false;
    if (c->n_props == c->cap_props) {
        uint32_t cap = c->cap_props ? 2 * c->cap_props : 4;
        str *grown = arena_alloc(c->arena, cap * sizeof *grown);
        if (c->n_props) memcpy(grown, c->props, c->n_props * sizeof *grown);
        c->props = grown;
        c->cap_props = cap;
    }
    c->props[c->n_props++] =
        arena_printf(c->arena, "\\%c{%s%.*s}", negated ? 'P' : 'p', category ? "" : "sc:", STR_ARG(name));
    return true;
}
