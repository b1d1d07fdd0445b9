/*
 * regex.h: RE2 syntax, fully anchored, in bounded time; the only unit that includes PCRE2.
 *
 * What RE2 does not have (look-around, back-references, possessive quantifiers, recursion, \C ...) is
 * refused as Prometheus refuses it, before PCRE2 sees the pattern. Bounded: patterns that are a finite
 * set of literals, a literal prefix or `.*`/`.+` around a literal never reach PCRE2; the others run
 * under a match limit, and a subject that exceeds it is an error of the query, never a hang.
 * A compiled regex is immutable and may be used by several threads at once.
 */
#ifndef VARVE_STORAGE_REGEX_H
#define VARVE_STORAGE_REGEX_H

#include "storage/base/arena.h"
#include "storage/base/err.h"

struct regex;

/* Dot matches newline (Prometheus compiles with (?s)). ERR_INVALID with position and reason. */
err regex_create(str pattern, struct regex **out) __attribute__((warn_unused_result));
void regex_destroy(struct regex *re);

enum regex_result { REGEX_NO, REGEX_YES, REGEX_LIMIT };
enum regex_result regex_match(const struct regex *re, str subject);

/* If the language is a small finite set (a, b|c, ab(c|d)), its strings, sorted; at most 1,000. n = 0 if not. */
const str *regex_literals(const struct regex *re, size_t *n);
/* A literal that every match starts with; may be empty. */
str regex_prefix(const struct regex *re);
bool regex_matches_empty(const struct regex *re);

/* For label_replace: matches the whole subject; if it does, expands $1, ${1}, ${name}, $$ of replacement into an
 * arena string (Go regexp.Expand rules: an unknown group is empty). *matched tells. ERR_LIMIT on the match limit. */
err regex_replace(const struct regex *re, str subject, str replacement, struct arena *a, bool *matched, str *out)
    __attribute__((warn_unused_result));

#endif
