/*
 * notes.c: collects annotations while a query runs.
 *
 * Equal texts are one note whatever their place, so a query over a million series makes one note per
 * metric, not per series. Memory is bounded: after NOTES_SEEN_MAX different texts nothing new is
 * taken. A mutex guards all; notes are rare, and the callers in loops remember what they said.
 */
#include "query/notes.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/base/map.h"
#include "storage/base/num.h"

#define NOTES_SEEN_MAX 10000
#define NOTE_TEXT_MAX 1024

struct note_list {
    char *shown[NOTES_SHOWN]; /* heap strings */
    uint32_t n, omitted;
};

struct notes {
    str query;
    pthread_mutex_t lock;
    struct strmap *seen; /* guarded by lock, as what follows */
    struct note_list lists[NOTE_KINDS];
};

struct notes *notes_create(str query)
{
    struct notes *n = mem_zalloc(sizeof *n);
    n->query = query;
    pthread_mutex_init(&n->lock, NULL);
    n->seen = strmap_create(NULL);
    return n;
}

void notes_destroy(struct notes *n)
{
    if (!n) return;
    for (size_t kind = 0; kind < ARRAY_LEN(n->lists); kind++)
        for (uint32_t i = 0; i < n->lists[kind].n; i++)
            mem_free(n->lists[kind].shown[i]);
    strmap_destroy(n->seen);
    pthread_mutex_destroy(&n->lock);
    mem_free(n);
}

/* Line and column, both from 1, of a byte offset. */
static void place_of(str query, uint32_t at, unsigned *line, unsigned *column)
{
    *line = 1;
    *column = 1;
    for (uint32_t i = 0; i < at && i < query.n; i++) {
        (*column)++;
        if (query.p[i] != '\n') continue;
        (*line)++;
        *column = 1;
    }
}

static void show(struct note_list *list, str text)
{
    if (list->n < NOTES_SHOWN)
        list->shown[list->n++] = mem_dup_str(text);
    else
        list->omitted++;
}

static void add_text(struct notes *n, enum note_kind kind, uint32_t at, str text)
{
    if (strmap_count(n->seen) >= NOTES_SEEN_MAX) return;
    bool added;
    strmap_put(n->seen, text, NULL, &added);
    if (!added) return;
    unsigned line, column;
    place_of(n->query, at, &line, &column);
    char whole[NOTE_TEXT_MAX + 32];
    snprintf(whole, sizeof whole, "%.*s (%u:%u)", STR_ARG(text), line, column);
    show(&n->lists[kind], str_of(whole));
}

void notes_add(struct notes *n, enum note_kind kind, uint32_t at, const char *format, ...)
{
    char text[NOTE_TEXT_MAX];
    size_t head = (size_t)snprintf(text, sizeof text, "PromQL %s: ", kind == NOTE_WARNING ? "warning" : "info");
    va_list args;
    va_start(args, format);
    vsnprintf(text + head, sizeof text - head, format, args);
    va_end(args);
    pthread_mutex_lock(&n->lock);
    add_text(n, kind, at, str_of(text));
    pthread_mutex_unlock(&n->lock);
}

void notes_plain(struct notes *n, const char *text)
{
    pthread_mutex_lock(&n->lock);
    show(&n->lists[NOTE_WARNING], str_of(text));
    pthread_mutex_unlock(&n->lock);
}

static void move_list(struct note_list *from, const char *kind, char ***texts, uint32_t *count)
{
    if (from->n == 0) return;
    *texts = mem_realloc(*texts, (*count + from->n + 1) * sizeof **texts);
    for (uint32_t i = 0; i < from->n; i++)
        (*texts)[(*count)++] = from->shown[i];
    if (from->omitted) {
        char text[64];
        snprintf(text, sizeof text, "%u more %s annotations omitted", from->omitted, kind);
        (*texts)[(*count)++] = mem_dup_str(str_of(text));
    }
    from->n = 0;
    from->omitted = 0;
}

size_t notes_list(struct notes *n, struct kept_note *out, uint32_t omitted[NOTE_KINDS])
{
    size_t count = 0;
    pthread_mutex_lock(&n->lock);
    for (size_t kind = 0; kind < NOTE_KINDS; kind++) {
        const struct note_list *list = &n->lists[kind];
        omitted[kind] = list->omitted;
        for (uint32_t i = 0; i < list->n; i++) {
            struct kept_note *note = &out[count++];
            note->kind = (enum note_kind)kind;
            note->text = str_of(list->shown[i]);
        }
    }
    pthread_mutex_unlock(&n->lock);
    return count;
}

static bool is_shown(const struct note_list *list, str text)
{
    for (uint32_t i = 0; i < list->n; i++)
        if (str_eq(str_of(list->shown[i]), text)) return true;
    return false;
}

void notes_show(struct notes *n, const struct kept_note *note)
{
    pthread_mutex_lock(&n->lock);
    struct note_list *list = &n->lists[note->kind];
    if (!is_shown(list, note->text)) show(list, note->text);
    pthread_mutex_unlock(&n->lock);
}

void notes_omit(struct notes *n, enum note_kind kind, uint32_t more)
{
    pthread_mutex_lock(&n->lock);
    n->lists[kind].omitted += more;
    pthread_mutex_unlock(&n->lock);
}

void notes_take(struct notes *n, struct query_notes *out)
{
    pthread_mutex_lock(&n->lock);
    move_list(&n->lists[NOTE_WARNING], "warning", &out->warnings, &out->n_warnings);
    move_list(&n->lists[NOTE_INFO], "info", &out->infos, &out->n_infos);
    pthread_mutex_unlock(&n->lock);
}

void query_notes_deinit(struct query_notes *n)
{
    for (uint32_t i = 0; i < n->n_warnings; i++)
        mem_free(n->warnings[i]);
    for (uint32_t i = 0; i < n->n_infos; i++)
        mem_free(n->infos[i]);
    mem_free(n->warnings);
    mem_free(n->infos);
    *n = (struct query_notes){0};
}

/* ---- notes that several operators make ----------------------------------------------------------- */

void note_mixed_range(struct notes *n, uint32_t at, str metric)
{
    notes_add(n, NOTE_WARNING, at, "encountered a mix of histograms and floats for metric name \"%.*s\"",
              STR_ARG(metric));
}

void note_ignored_in_range(struct notes *n, uint32_t at, str metric)
{
    notes_add(n, NOTE_INFO, at,
              "ignored histograms in a range containing both floats and histograms for metric name \"%.*s\"",
              STR_ARG(metric));
}

void note_mixed_schemas(struct notes *n, uint32_t at, str metric)
{
    notes_add(n, NOTE_WARNING, at,
              "vector contains a mix of histograms with exponential and custom buckets schemas for metric name "
              "\"%.*s\"",
              STR_ARG(metric));
}

void note_not_counter(struct notes *n, uint32_t at, str metric)
{
    notes_add(n, NOTE_WARNING, at, "this native histogram metric is not a counter: \"%.*s\"", STR_ARG(metric));
}

void note_not_gauge(struct notes *n, uint32_t at, str metric)
{
    notes_add(n, NOTE_WARNING, at, "this native histogram metric is not a gauge: \"%.*s\"", STR_ARG(metric));
}

void note_reset_collision(struct notes *n, uint32_t at, const char *operation)
{
    notes_add(n, NOTE_WARNING, at, "conflicting counter resets during histogram %s", operation);
}

void note_bounds_reconciled(struct notes *n, uint32_t at, const char *operation)
{
    notes_add(n, NOTE_INFO, at, "mismatched custom buckets were reconciled during %s", operation);
}

void note_bad_quantile(struct notes *n, uint32_t at, double q)
{
    char text[NUM_DOUBLE_MAX];
    size_t len = num_format_double_short(q, text);
    notes_add(n, NOTE_WARNING, at, "quantile value should be between 0 and 1, got %.*s", (int)len, text);
}

void note_ignored_in_aggregation(struct notes *n, uint32_t at, const char *aggregation)
{
    notes_add(n, NOTE_INFO, at, "ignored histogram in %s aggregation", aggregation);
}
