/*
 * regex_shape.h: what a pattern's tree says without running it; private to the regex unit.
 *
 * A glob is a sequence of literal parts with gaps between them: `a.*b.+` has the parts a, b and ""
 * and gaps of at least 0 and 1 characters. One part alone is a literal.
 */
#ifndef VARVE_STORAGE_REGEX_SHAPE_H
#define VARVE_STORAGE_REGEX_SHAPE_H

#include "storage/regex_parse.h"

struct re_glob {
    str *parts;
    uint8_t *gaps; /* gaps[i]: least bytes between part i and i + 1: 0 or 1 */
    uint32_t n;    /* parts */
};

struct re_globs {
    struct re_glob *v;
    uint32_t n;
};

/* Replaces anchors at the edges of the whole pattern, which is anchored anyway, by nothing. */
void regex_strip_anchors(struct re_node *root);

/* True if the language is a union of globs, then in *out (in order of appearance, with repetitions). */
bool regex_globs(const struct re_node *root, struct arena *a, struct re_globs *out);

/* A text that every match starts with; may be empty. */
str regex_tree_prefix(const struct re_node *root, struct arena *a);

bool glob_match(const struct re_glob *g, str subject);

#endif
