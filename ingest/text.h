/*
 * text.h: small pieces that the text protocols share; private to the ingest room.
 */
#ifndef VARVE_INGEST_TEXT_H
#define VARVE_INGEST_TEXT_H

#include "storage/base/types.h"

static inline bool text_is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline const char *text_skip_blanks(const char *p, const char *end)
{
    while (p < end && text_is_blank(*p))
        p++;
    return p;
}

/* The next run of bytes without blanks; empty at the end. Moves *p behind it. */
str text_token(const char **p, const char *end);

/* Takes lines off the front of *rest, without their \n or \r\n; false at its end. The last needs no newline. */
bool text_line(str *rest, str *line);

/* A number, or "StaleNaN" for Prometheus's stale marker, whose bits no other text carries. */
bool text_value(str s, double *v);

/* The value of a header or argument with blanks around it taken off. */
str text_trim(str s);

/* s cut for messages, at most 60 bytes. */
str text_shown(str s);

#endif
