/*
 * regex_parse.h: RE2 syntax to a tree; private to the regex unit.
 *
 * Accepts what Go's regexp/syntax accepts in Perl mode and refuses what it refuses, so a pattern means
 * the same here as in Prometheus, whatever engine runs it afterwards.
 * Source of the grammar: RE2's syntax page (github.com/google/re2/wiki/Syntax), facts only.
 */
#ifndef VARVE_STORAGE_REGEX_PARSE_H
#define VARVE_STORAGE_REGEX_PARSE_H

#include "storage/base/arena.h"
#include "storage/base/err.h"

#define REGEX_PATTERN_MAX (256u << 10) /* bytes of a pattern */
#define REGEX_DEPTH_MAX 200            /* nesting of groups: bounds the recursion of all walks */
#define REGEX_REPEAT_MAX 1000          /* as RE2: {n,m}, nested ones multiplied */

enum re_op {
    RE_EMPTY,
    RE_LITERAL,     /* text, one or more characters */
    RE_CLASS,       /* one character of ranges and props, or not of them when negated */
    RE_ANY,         /* any character */
    RE_ANY_IN_LINE, /* any but \n: `.` under (?-s) */
    RE_CONCAT,
    RE_ALT,
    RE_REPEAT, /* sub[0], min to max times; max < 0: no bound */
    RE_GROUP,  /* sub[0], captured as number `group` */
    RE_TEXT_START,
    RE_TEXT_END,
    RE_LINE_START,
    RE_LINE_END,
    RE_WORD_EDGE,
    RE_NOT_WORD_EDGE,
};

struct re_range {
    uint32_t low, high; /* code points, inclusive */
};

struct re_node {
    enum re_op op;
    bool fold;    /* RE_LITERAL, RE_CLASS: under (?i) */
    bool lazy;    /* RE_REPEAT */
    bool negated; /* RE_CLASS */
    union {
        str text;
        struct {
            struct re_node **sub;
            uint32_t n_sub;
            uint32_t group;
            int32_t min, max;
        };
        struct {
            struct re_range *ranges;
            str *props; /* Unicode classes in PCRE2's notation: \p{Lu}, \P{sc:Greek} */
            uint32_t n_ranges, n_props;
        };
    };
};

struct re_tree {
    struct re_node *root;
    uint32_t n_groups; /* captures, the whole match not counted */
    str *names;        /* names[i]: of group i + 1; n = 0 if it has none */
};

/* Nodes and names live in the arena. ERR_INVALID with reason, fragment and position. */
err regex_parse(str pattern, struct arena *a, struct re_tree *out) __attribute__((warn_unused_result));

#endif
