/*
 * expfmt_series.h: a series as text, up{job="x"} or {"a.b","l.x"="v"}; private to the ingest room.
 */
#ifndef VARVE_INGEST_EXPFMT_SERIES_H
#define VARVE_INGEST_EXPFMT_SERIES_H

#include "storage/labels.h"

/* What a parse hands out: nothing when only the end is asked for (arena NULL), else labels in the arena. */
struct series_text {
    struct arena *arena; /* NULL: only check the syntax */
    struct label *v;
    uint32_t n, cap;
    const char *problem; /* set on failure */
};

/* Parses the series at p; returns the byte after it, NULL on failure. */
const char *series_text_parse(struct series_text *s, const char *p, const char *end);

/* The same for labels alone, in braces and without a metric's name, as an exemplar has them. */
const char *label_text_parse(struct series_text *s, const char *p, const char *end);

/* A string in quotes at p (which is the opening one): returns the byte after the closing quote, NULL if there is
 * none. With an arena, *out is the text without its escapes \\ \" \n. */
const char *quoted_text(const char *p, const char *end, struct arena *a, str *out);

/* Undoes the escapes \\ \" and \n; a copy in the arena if there are any. */
str unescaped_text(str s, struct arena *a);

#endif
