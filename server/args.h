/*
 * args.h: typed arguments out of a request's fields, with errors that name the argument.
 */
#ifndef VARVE_SERVER_ARGS_H
#define VARVE_SERVER_ARGS_H

#include "query/query.h"
#include "server/exchange.h"

/* Each leaves *out alone when the argument is absent or empty. */
err args_time(const struct exchange *x, const char *name, int64_t *ms) __attribute__((warn_unused_result));
err args_duration(const struct exchange *x, const char *name, int64_t *ms) __attribute__((warn_unused_result));
err args_count(const struct exchange *x, const char *name, uint64_t *n) __attribute__((warn_unused_result));
str args_text(const struct exchange *x, const char *name); /* n = 0 if absent */

/* start and end, by default the whole time axis; an end before the start is an error. */
err args_range(const struct exchange *x, int64_t *start_ms, int64_t *end_ms) __attribute__((warn_unused_result));
/* The request's extra_label and extra_filters[], which confine whatever it reads: an empty set of sets when there are
 * none. Filters of the query string, where a proxy puts them, can't be widened by a form's. Deinit *out also after an
 * error. */
err args_extra(struct exchange *x, struct match_sets *out) __attribute__((warn_unused_result));
/* For what reads data and can't be confined: refuses a request that is to be. */
err args_no_extra(const struct exchange *x) __attribute__((warn_unused_result));
/* All match[] (also written match), parsed, and confined by extra_label and extra_filters[]. Deinit *out also after an
 * error. */
err args_match(struct exchange *x, bool needed, struct match_sets *out) __attribute__((warn_unused_result));

#endif
