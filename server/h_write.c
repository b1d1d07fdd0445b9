/*
 * h_write.c: bodies of samples → ingest.
 *
 * Runs on the loop: decoding and appending a body takes microseconds to a few milliseconds, and the
 * body then needs no copy. Only bodies of several megabytes go to a slow worker (route.c), which then
 * has a scratch of its own. The answer waits for the log (x->seq): the connection sees to that.
 */
#include "server/handlers.h"

static struct ingest_scratch *loop_scratch(struct server *s, struct exchange_home *home)
{
    home->scratch_used = true;
    if (home->scratch == NULL) home->scratch = ingest_scratch_create(s->ingest);
    return home->scratch;
}

static void write_body(struct server *s, struct exchange *x, enum ingest_format format)
{
    struct ingest_scratch *own = x->away ? ingest_scratch_create(s->ingest) : NULL;
    struct ingest_request rq = {
        .format = format,
        .content_type = http_header(&x->in, HEADER_CONTENT_TYPE),
        .content_encoding = http_header(&x->in, HEADER_CONTENT_ENCODING),
        .body = x->in.body,
        .args = x->params.v,
        .n_args = x->params.n,
    };
    struct ingest_reply reply = {0};
    ingest_handle(s->ingest, own != NULL ? own : loop_scratch(s, x->home), &rq, &reply);
    ingest_scratch_destroy(own);
    x->seq = reply.seq;
    x->out.status = reply.status;
    x->out.retry_after_s = reply.retry_after ? 5 : 0;
    x->out.written_counts = reply.written_counts;
    x->out.samples_written = reply.samples_written;
    x->out.histograms_written = reply.histograms_written;
    x->out.exemplars_written = reply.exemplars_written;
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
