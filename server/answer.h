/*
 * answer.h: the answer to one request: status, headers that vary, body; and the API's JSON envelope.
 *
 * An answer owns its body buffer. Filled by one thread (loop or worker), then sent by the loop.
 */
#ifndef VARVE_SERVER_ANSWER_H
#define VARVE_SERVER_ANSWER_H

#include "query/query.h"
#include "storage/base/json.h"

#define ANSWER_JSON "application/json"
#define ANSWER_TEXT "text/plain; charset=utf-8"
#define ANSWER_METRICS "text/plain; version=0.0.4; charset=utf-8; escaping=underscores"

struct answer {
    int status;               /* 0 = not filled yet */
    const char *content_type; /* static; NULL = ANSWER_JSON */
    const char *headers;      /* static; further header lines, each with its CRLF; NULL = none */
    const char *etag;         /* static, quotes included; NULL = no such header */
    unsigned allow;           /* verbs to name in Allow, 0 = no such header */
    int retry_after_s;        /* 0 = no such header */
    bool written_counts;      /* the X-Prometheus-Remote-Write-...-Written headers, with: */
    uint64_t samples_written, histograms_written, exemplars_written;
    bool close;     /* end the connection after it */
    bool preflight; /* answer to OPTIONS: name the methods and headers allowed to other origins */
    bool gzipped;   /* what the body is packed with, if with anything: */
    bool snappied;
    struct buf body;
};

void answer_reset(struct answer *a); /* empty; keeps a small body buffer */
void answer_deinit(struct answer *a);

/* {"status":"error","errorType":...,"error":...} in place of whatever was there. */
void answer_error(struct answer *a, int status, const char *type, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
/* The same out of an error value, which it takes. */
void answer_err(struct answer *a, err e);
void answer_text(struct answer *a, int status, const char *text);

/* Success: begin, then one JSON value appended to a->body, then end. notes may be NULL. */
void answer_data_begin(struct answer *a);
void answer_data_end(struct answer *a, const struct query_notes *notes);

/* What an error's code means in HTTP. */
int answer_status_of(enum err_code code);

/* Compresses the body if the request takes gzip and it is worth it. */
void answer_compress(struct answer *a, str accept_encoding);

#endif
