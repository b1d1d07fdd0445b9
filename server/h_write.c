/*
 * h_write.c: bodies of samples → ingest.
 *
 * Runs on the loop: decoding and appending a body takes microseconds to a few milliseconds, and the
 * body then needs no copy. The answer waits for the log (x->seq); the connection sends it when the
 * number has settled. The write is counted in the loop's acks before it goes to storage, see acks.c.
 */
#include "server/handlers.h"

static void write_body(struct server *s, struct exchange *x, enum ingest_format format)
{
    struct exchange_home *home = x->home;
    if (home->scratch == NULL) home->scratch = ingest_scratch_create(s->ingest);
    struct ingest_request rq = {
        .format = format,
        .content_type = http_header(&x->in, HEADER_CONTENT_TYPE),
        .content_encoding = http_header(&x->in, HEADER_CONTENT_ENCODING),
        .body = x->in.body,
        .args = x->params.v,
        .n_args = x->params.n,
    };
    struct ingest_reply reply = {0};
    acks_begin(home->acks);
    ingest_handle(s->ingest, home->scratch, &rq, &reply);
    if (reply.seq == 0) acks_abandon(home->acks);
    x->seq = reply.seq;
    x->out.status = reply.status;
    x->out.retry_after_s = reply.retry_after ? 5 : 0;
    buf_deinit(&x->out.body);
    x->out.body = reply.body;
}

void h_remote_write(struct server *s, struct exchange *x)
{
    write_body(s, x, INGEST_REMOTE_WRITE);
}

void h_import_text(struct server *s, struct exchange *x)
{
    write_body(s, x, INGEST_EXPOSITION);
}

void h_import_json(struct server *s, struct exchange *x)
{
    write_body(s, x, INGEST_JSON_LINES);
}
