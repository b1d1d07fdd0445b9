/*
 * notes.h: the warnings and infos that go beside a query's answer.
 *
 * Texts follow Prometheus in meaning; each names the place in the query. A text is kept once; at most
 * NOTES_SHOWN of a kind are shown, the others counted. Threads of one query may share it.
 */
#ifndef VARVE_QUERY_NOTES_H
#define VARVE_QUERY_NOTES_H

#include "query/query.h"

#define NOTES_SHOWN 10

enum note_kind { NOTE_WARNING, NOTE_INFO, NOTE_KINDS };

struct notes;

/* The text of the query is borrowed: positions are found in it. */
struct notes *notes_create(str query);
void notes_destroy(struct notes *n); /* NULL allowed */
/* at: byte offset in the query of what the note is about. */
void notes_add(struct notes *n, enum note_kind kind, uint32_t at, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* A warning about the answer as a whole, without prefix and place. */
void notes_plain(struct notes *n, const char *text);
/* A note of an answer that is kept: its text as it is shown, and the steps that it may be about. */
struct kept_note {
    enum note_kind kind;
    str text;
    int64_t from_ms, until_ms;
};
/* All that are shown, at most NOTE_KINDS * NOTES_SHOWN, their texts borrowed until something is added or taken;
 * steps are left alone. omitted: how many of each kind are counted only. Returns how many are shown. */
size_t notes_list(struct notes *n, struct kept_note *out, uint32_t omitted[NOTE_KINDS]);
/* Adds one, unless the same is shown; counts more. */
void notes_show(struct notes *n, const struct kept_note *note);
void notes_omit(struct notes *n, enum note_kind kind, uint32_t more);
/* Moves all into *out (added to what is there). */
void notes_take(struct notes *n, struct query_notes *out);

/* The notes that several operators make. metric: the metric name, may be empty. */
void note_mixed_range(struct notes *n, uint32_t at, str metric);      /* floats and histograms in one window */
void note_ignored_in_range(struct notes *n, uint32_t at, str metric); /* histograms ignored beside floats */
void note_mixed_schemas(struct notes *n, uint32_t at, str metric);    /* exponential and custom buckets */
void note_not_counter(struct notes *n, uint32_t at, str metric);      /* a gauge histogram where a counter is due */
void note_not_gauge(struct notes *n, uint32_t at, str metric);        /* and the other way round */
void note_reset_collision(struct notes *n, uint32_t at, const char *operation);
void note_bounds_reconciled(struct notes *n, uint32_t at, const char *operation);
void note_bad_quantile(struct notes *n, uint32_t at, double q);
void note_ignored_in_aggregation(struct notes *n, uint32_t at, const char *aggregation);

#endif
