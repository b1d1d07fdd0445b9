/*
 * ingest.h: the one header of the ingest room: bytes of any protocol → rows → storage_append.
 *
 * A request is a whole body in memory with what its headers said. The reply carries the HTTP status,
 * the body to send, and the sequence number that has to settle before it may be sent. Any thread; a
 * `struct ingest_scratch` is one thread's reusable memory.
 */
#ifndef VARVE_INGEST_H
#define VARVE_INGEST_H

#include "storage/storage.h"

struct ingest;         /* options and counters, one a server */
struct ingest_scratch; /* one a thread */

struct ingest_options {
    struct db *db;           /* borrowed */
    struct metrics *metrics; /* borrowed, may be NULL */
    struct log *log;
    size_t max_body_raw; /* bytes after decompression; 0 = LIMIT_BODY_RAW */
};
struct ingest *ingest_create(const struct ingest_options *o);
void ingest_destroy(struct ingest *in);
struct ingest_scratch *ingest_scratch_create(struct ingest *in);
void ingest_scratch_destroy(struct ingest_scratch *s);

enum ingest_format {
    INGEST_REMOTE_WRITE, /* 1.0 or 2.0: the content type decides */
    INGEST_EXPOSITION,   /* Prometheus text */
    INGEST_JSON_LINES,   /* {"metric":{...},"values":[...],"timestamps":[ms...]} a line */
};

struct ingest_request {
    enum ingest_format format;
    str content_type, content_encoding; /* header values, n = 0 if absent */
    str body;
    /* query arguments, decoded; name/value pairs in the order sent (extra_label, timestamp) */
    const struct label *args;
    uint32_t n_args;
};

struct ingest_reply {
    int status;          /* 204, 400, 413, 415, 503, ... */
    uint64_t seq;        /* wait for it before answering; 0 = answer at once */
    bool retry_after;    /* send Retry-After: 5 */
    bool written_counts; /* remote write 2.0: the three X-Prometheus-Remote-Write-...-Written headers belong to it */
    uint64_t samples_written, histograms_written, exemplars_written;
    struct buf body; /* JSON (errors, partial acceptance); empty for 204; the caller's */
};

/* Never fails itself: what went wrong is in the reply. */
void ingest_handle(struct ingest *in, struct ingest_scratch *s, const struct ingest_request *rq,
                   struct ingest_reply *reply);

/* Raw samples out. */
enum ingest_export_format {
    INGEST_EXPORT_JSON_LINES, /* one line a series (and per max_rows), as INGEST_JSON_LINES reads it */
    INGEST_EXPORT_TEXT,       /* Prometheus text, a line a sample; without native histograms, as the next two */
    INGEST_EXPORT_PROMAPI,    /* a matrix of the query API */
    INGEST_EXPORT_CSV,        /* a row a sample */
};
struct ingest_export {
    const struct match_set *sets; /* series that satisfy one of them */
    uint32_t n_sets;
    int64_t t_min, t_max; /* inclusive */
    enum ingest_export_format format;
    size_t max_rows; /* samples a line of JSON; 0 = some thousands */
    str columns;     /* CSV: see export_csv.c */
};
/* Writes through `emit`, which stops the export by false. ERR_INVALID for columns that are wrong, before any output. */
typedef bool (*ingest_emit_fn)(void *arg, str bytes);
err ingest_export(struct db *db, const struct ingest_export *rq, ingest_emit_fn emit, void *arg)
    __attribute__((warn_unused_result));

#endif
