/*
 * json_read.h: a strict, small JSON reader (RFC 8259) over bytes in memory; public, as the
 * command line reads the answers of servers with it.
 */
#ifndef VARVE_INGEST_JSON_READ_H
#define VARVE_INGEST_JSON_READ_H

#include "storage/base/arena.h"

#define JSON_READ_DEPTH 32

/* Where the reader stands. The first problem stays; nothing is read after it. */
struct json_in {
    const char *p, *end;
    const char *problem; /* NULL: none yet */
};

static inline struct json_in json_in_of(str s)
{
    const char *p = s.n ? s.p : ""; /* no arithmetic on a null pointer */
    return (struct json_in){p, p + s.n, NULL};
}

/* The next byte that is not white space, not taken; 0 at the end or after a problem. */
char json_in_peek(struct json_in *in);
/* Takes c if it comes next. */
bool json_in_take(struct json_in *in, char c);
/* Demands c. */
bool json_in_expect(struct json_in *in, char c, const char *problem);
/* A string without its quotes, escapes not yet undone; false if there is none. */
bool json_in_string(struct json_in *in, str *raw);
/* A number as text. */
bool json_in_number(struct json_in *in, str *text);
/* Any value; *text is what it takes up. */
bool json_in_value(struct json_in *in, str *text);
/* The problem, always false. */
bool json_in_fail(struct json_in *in, const char *problem);

/* The text of a string that json_in_string found good: itself, or a copy in the arena if it has escapes. */
str json_unescape(str raw, struct arena *a);

/* Walks an object's members: call with *first true before the first; false at its end or after a problem.
 * The value is next in the reader and must be read by the caller. */
bool json_in_member(struct json_in *in, bool *first, str *key);
/* The same for an array's elements; the opening bracket is taken by the first call. */
bool json_in_element(struct json_in *in, bool *first);

#endif
