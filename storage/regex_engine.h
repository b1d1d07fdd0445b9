/*
 * regex_engine.h: a parsed pattern run by PCRE2 under limits; private to the regex unit.
 */
#ifndef VARVE_STORAGE_REGEX_ENGINE_H
#define VARVE_STORAGE_REGEX_ENGINE_H

#include "storage/regex.h"
#include "storage/regex_parse.h"

struct regex_engine;

/* ERR_INVALID if PCRE2 refuses it: an unknown script, or too large once its repetitions are written out. */
err regex_engine_create(const struct re_tree *tree, struct regex_engine **out) __attribute__((warn_unused_result));
void regex_engine_destroy(struct regex_engine *g); /* NULL allowed */

/* Matches the whole subject. With groups: fills 2 offsets for each of n groups (0 is the match), SIZE_MAX if unset. */
enum regex_result regex_engine_match(struct regex_engine *g, str subject, size_t *groups, size_t n);

#endif
