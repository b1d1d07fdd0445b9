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

/* JSON lines out: one line a series (and per max_rows), raw samples. Writes through `emit`, false stops. */
typedef bool (*ingest_emit_fn)(void *arg, str bytes);
err ingest_export_json(struct db *db, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max, size_t max_rows,
                       ingest_emit_fn emit, void *arg) __attribute__((warn_unused_result));

#endif
