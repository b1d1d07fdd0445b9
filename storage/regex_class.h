/*
 * regex_class.h: sets of characters in patterns: \d, [:alpha:], \p{Greek}; private to the regex unit.
 */
#ifndef VARVE_STORAGE_REGEX_CLASS_H
#define VARVE_STORAGE_REGEX_CLASS_H

#include "storage/regex_parse.h"

#define RUNE_MAX 0x10ffffu

/* A class being built; arrays grow in the arena. */
struct re_class {
    struct arena *arena;
    struct re_range *ranges;
    str *props;
    uint32_t n_ranges, cap_ranges, n_props, cap_props;
};

/* Adds low..high; surrogates, which no UTF-8 text has, are left out. */
void re_class_add(struct re_class *c, uint32_t low, uint32_t high);
/* \d \s \w and their capitals. False if the letter names none. */
bool re_class_add_perl(struct re_class *c, char letter);
/* "alpha" or "^alpha" of [:alpha:]. False if there is no such class. */
bool re_class_add_posix(struct re_class *c, str name);
/* A general category, Any, or a script of \p{..}. False if it can't be one (scripts are checked by PCRE2). */
bool re_class_add_unicode(struct re_class *c, str name, bool negated);

#endif
