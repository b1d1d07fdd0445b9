/*
 * params.h: what a request asks for: path segments and form fields, decoded.
 *
 * Fields come from the form body and the query string of the same request. The body's stand first,
 * so a single value from the body wins and repeated ones (match[]) add up. A field that is present
 * but empty counts as absent. Memory is the arena's. Not thread-safe.
 */
#ifndef VARVE_SERVER_PARAMS_H
#define VARVE_SERVER_PARAMS_H

#include "storage/labels.h"

#define PARAMS_MAX 16384 /* fields of one request */

struct params {
    struct label *v; /* in order: body, then query string */
    uint32_t n, cap;
};

/* Adds the fields of an application/x-www-form-urlencoded text. ERR_INVALID for a broken escape. */
err params_parse(struct params *p, str form, struct arena *a) __attribute__((warn_unused_result));
str params_get(const struct params *p, str name); /* first that is not empty; n = 0 if none */
/* All values that are not empty under either name, in order; *n of them, in the arena. */
str *params_all(const struct params *p, str name, str alias, struct arena *a, uint32_t *n);

/* %XX decoded, and '+' as a space when `plus`. ERR_INVALID for a broken escape. */
err params_unescape(str s, bool plus, struct arena *a, str *out) __attribute__((warn_unused_result));
/* The path of a request target: without query, scheme and host; runs of '/' become one, a last one goes. */
str params_path(str target, struct arena *a, str *query);
/* Prometheus's escaping of UTF-8 names: U__status_2e_code is status.code. Anything else stays as it is. */
str params_label_name(str s, struct arena *a);

#endif
