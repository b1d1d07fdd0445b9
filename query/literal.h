/*
 * literal.h: numbers, durations and quoted strings as PromQL writes them, both ways.
 *
 * Shared by parser and printer, so that what one writes the other reads. Stateless: any thread.
 */
#ifndef VARVE_QUERY_LITERAL_H
#define VARVE_QUERY_LITERAL_H

#include "storage/base/arena.h"
#include "storage/base/buf.h"

/* A number token: decimal or hexadecimal, octal with a leading 0, `_` between digits, Inf, NaN. False if malformed or
 * out of a double's range. */
bool literal_number(str s, double *v);

/* 1h30m: units y w d h m s ms, each at most once, biggest first; also plain "0". Nanoseconds. False if malformed or out
 * of range; *reason (may be NULL) then says why. */
bool literal_duration(str s, int64_t *ns, const char **reason);
double literal_ns_to_seconds(int64_t ns);
/* Seconds as nanoseconds, rounded half away from zero; saturates. NaN gives 0. */
int64_t literal_seconds_to_ns(double seconds);
/* The shortest exact form: 1h30m, 90d, 0s; -5m if negative. */
void literal_print_duration(int64_t ms, struct buf *out);

/* The bytes of a string token, quotes included, which the lexer has validated. In a when there are escapes, else
 * borrowed from the token. */
str literal_unquote(str token, struct arena *a);
/* In double quotes, escaped as Go does: what is not printable or not UTF-8 becomes \n, \x00, \u00ad, ... */
void literal_print_string(str s, struct buf *out);
/* A label name, quoted only if it is not [a-zA-Z_][a-zA-Z0-9_]*. */
void literal_print_name(str name, struct buf *out);

/* The code point at s.p[at] and its length in *n; -1 and 1 if the bytes there are not UTF-8. at < s.n. */
int32_t literal_rune(str s, size_t at, size_t *n);

#endif
