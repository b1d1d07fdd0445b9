/*
 * h_read.c: remote read: another Prometheus (or a Thanos sidecar) asks for raw samples.
 *
 * On a read worker. A sampled answer is packed and sent whole; chunks go through the exchange's stream
 * while they are read, as exports do: memory does not grow with the answer, and a slow client holds back
 * its own read. Before the first byte left, an error is an ordinary answer; later, the connection is cut
 * without the last chunk, so that the client can't take the part for the whole.
 */
#include <strings.h>

#include "server/args.h"
#include "server/handlers.h"

static err check_encoding(const struct exchange *x)
{
    str encoding = http_header(&x->in, HEADER_CONTENT_ENCODING);
    bool snappy = encoding.n == 0 || (encoding.n == 6 && strncasecmp(encoding.p, "snappy", 6) == 0);
    if (snappy) return NULL;
    return err_new(ERR_UNSUPPORTED, "remote read requests come as snappy blocks, not as Content-Encoding \"%.*s\"",
                   (int)(encoding.n < 100 ? encoding.n : 100), encoding.p);
}

static void answer_samples(struct server *s, struct exchange *x, const struct read_request *rq)
{
    answer_reset(&x->out);
    err e = query_read_samples(s->engine, rq, &x->canceled, &x->out.body);
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    x->out.status = 200;
    x->out.content_type = "application/x-protobuf";
    x->out.snappied = true;
}

static bool send_frame(void *arg, str bytes)
{
    struct exchange *x = arg;
    bool canceled = atomic_load_explicit(&x->canceled, memory_order_relaxed);
    return !canceled && stream_write(x->stream, bytes);
}

static void answer_chunks(struct server *s, struct exchange *x, const struct read_request *rq)
{
    x->out.status = 200; /* the head is complete before the first write: the loop reads it then */
    x->out.content_type = "application/x-streamed-protobuf; proto=prometheus.ChunkedReadResponse";
    err e = query_read_chunks(s->engine, rq, &x->canceled, send_frame, x);
    x->streamed = e == NULL || stream_started(x->stream);
    x->stream_complete = e == NULL && !atomic_load_explicit(&x->canceled, memory_order_relaxed);
    if (!x->streamed) {
        answer_err(&x->out, e);
        return;
    }
    if (e != NULL) log_warn(s->log, "a remote read broke off", "error=\"%s\"", err_message(e));
    err_free(e);
}

void h_remote_read(struct server *s, struct exchange *x)
{
    struct read_request *rq = NULL;
    err e = check_encoding(x);
    if (e == NULL) e = args_no_extra(x);
    if (e == NULL) e = query_read_parse(x->in.body, &rq);
    if (e != NULL)
        answer_err(&x->out, e);
    else if (query_read_type(rq) == QUERY_READ_CHUNKS)
        answer_chunks(s, x, rq);
    else
        answer_samples(s, x, rq);
    query_read_destroy(rq);
}
