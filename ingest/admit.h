/*
 * admit.h: one request on its way into storage: what was taken, what was refused and why; private to
 * the ingest room. Decoders push rows and call admit_flush; all counting is here.
 */
#ifndef VARVE_INGEST_ADMIT_H
#define VARVE_INGEST_ADMIT_H

#include "ingest/ingest.h"
#include "ingest/rows.h"

enum reject {
    REJECT_MALFORMED, /* lines or values that can't be read */
    REJECT_LABELS,    /* duplicate, empty, too long, no name, not UTF-8 */
    REJECT_HISTOGRAM, /* native histograms that contradict themselves */
    REJECT_TOO_OLD,   /* before the retention */
    REJECT_TOO_NEW,   /* beyond the future window */
    REJECT_N,
};

/* Counters of one protocol. */
struct protocol {
    const char *name;
    struct counter *requests, *bytes, *raw_bytes, *samples, *failed;
    struct counter *rejected[REJECT_N];
    struct histogram *seconds; /* to decode and append a request; without the wait for the log */
    struct counter *exemplars; /* stored, or there before */
};
void protocol_init(struct protocol *p, struct metrics *m, const char *name);

/* Parses the raw bytes of a series into labels; strings may point into raw or the arena. */
typedef err (*admit_parse_fn)(str raw, struct arena *a, struct labels *out);

#define ADMIT_ERRORS_SHOWN 10

struct admit_error {
    uint32_t line; /* 0: none */
    str text;
};

struct admit {
    struct db *db;
    struct protocol *protocol;
    struct rows *rows;
    struct arena *arena; /* the request's */
    admit_parse_fn parse;
    struct labels extra;                           /* extra_label arguments: added to every series */
    struct hash128 tag;                            /* of protocol and extra labels, mixed into every alias */
    const struct hash_key *key;                    /* of aliases */
    uint64_t accepted, rejected[REJECT_N];         /* samples, histograms among them */
    uint64_t accepted_hists, exemplars;            /* exemplars: stored, or there before */
    bool late_exemplars_said;                      /* an exemplar that comes too late is an error of the sender's */
    struct admit_error errors[ADMIT_ERRORS_SHOWN]; /* the first ones; texts in the arena */
    uint32_t n_errors;
    uint64_t seq; /* of the newest batch written */
    err failure;  /* storage refused a whole batch, or the body is no such thing; owned; nothing goes on after it */
};

/* The extra labels and the protocol's name decide the tag; a->extra must be set. */
void admit_init_tag(struct admit *a);

/* The alias of a series whose labels came as these bytes. */
static inline struct hash128 admit_alias(const struct admit *a, const void *raw, size_t n)
{
    return hash128_pair(hash128(a->key, raw, n), a->tag);
}

/* Hands the rows to storage and clears them. False if storage took none of them: a->failure says why. */
bool admit_flush(struct admit *a);
/* Room for n more samples, flushing first if needed. False as admit_flush. The newest series is closed by a flush:
 * call before rows_series. n <= ROWS_SAMPLES_MAX. */
static inline bool admit_room(struct admit *a, size_t n)
{
    return __builtin_expect(rows_room(a->rows, n), 1) || (admit_flush(a) && rows_room(a->rows, n));
}
/* Room for one more sample of the newest series, which goes on in the next batch if this one is full. */
bool admit_room_within(struct admit *a);

/* Makes room for an exemplar, flushing first if needed: a->rows->arena is for its labels then, and rows_exemplar for
 * itself. It is stored behind the samples pushed so far: those of its series come first. False as admit_flush. */
bool admit_exemplar_room(struct admit *a);

/* Counts n samples (or lines) as refused and keeps the reason if it is among the first. */
void admit_reject(struct admit *a, enum reject why, uint64_t n, uint32_t line, const char *format, ...)
    __attribute__((format(printf, 5, 6)));

/* A series as text for a message, cut if it is long. In the request's arena. */
str admit_series_text(struct admit *a, str raw);

uint64_t admit_rejected(const struct admit *a); /* of all reasons */

#endif
