/*
 * h_export.c: raw samples out, as JSON lines, while they are read.
 *
 * On an export worker, through the exchange's stream: memory does not grow with the answer, and a slow
 * client holds back its export (and perhaps others), nothing else. Before the first byte left, an
 * error is an ordinary answer; later, the connection is cut without the last chunk, so that the client
 * can't take the part for the whole.
 *
 * Several match[] are exported one after the other; a series that fits two of them comes twice.
 */
#include "server/args.h"
#include "server/gzip.h"
#include "server/handlers.h"

struct export_call {
    struct exchange *x;
    struct match_sets sets;
    int64_t start_ms, end_ms;
    uint64_t max_rows; /* samples a line; 0 = no limit */
    struct gzip *gzip; /* NULL: sent as it is */
};

static err export_arguments(struct export_call *call)
{
    struct exchange *x = call->x;
    TRY(args_match(x, true, &call->sets));
    TRY(args_range(x, &call->start_ms, &call->end_ms));
    str format = args_text(x, "format");
    if (format.n > 0 && !str_eq(format, STR("json")))
        return err_new(ERR_INVALID, "invalid parameter \"format\": only json is known");
    return args_count(x, "max_rows_per_line", &call->max_rows);
}

static bool send_bytes(void *arg, str bytes)
{
    struct exchange *x = arg;
    bool canceled = atomic_load_explicit(&x->canceled, memory_order_relaxed);
    return !canceled && stream_write(x->stream, bytes);
}

static bool export_emit(void *arg, str bytes)
{
    struct export_call *call = arg;
    return call->gzip != NULL ? gzip_write(call->gzip, bytes) : send_bytes(call->x, bytes);
}

static err export_sets(struct server *s, struct export_call *call)
{
    for (uint32_t i = 0; i < call->sets.n; i++) {
        const struct match_set *set = &call->sets.sets[i];
        TRY(ingest_export_json(s->db, set->m, set->n, call->start_ms, call->end_ms, (size_t)call->max_rows, export_emit,
                               call));
    }
    if (call->gzip != NULL) gzip_finish(call->gzip);
    return NULL;
}

/* Head of the answer: complete before the first write, as the loop reads it then. */
static void export_head(struct server *s, struct export_call *call)
{
    struct exchange *x = call->x;
    x->out.status = 200;
    x->out.content_type = "application/stream+json; charset=utf-8";
    bool gzip =
        s->config->compression == COMPRESSION_GZIP && gzip_accepted(http_header(&x->in, HEADER_ACCEPT_ENCODING));
    if (!gzip) return;
    x->out.gzipped = true;
    call->gzip = gzip_create(send_bytes, x);
}

void h_export_json(struct server *s, struct exchange *x)
{
    struct export_call call = {.x = x};
    export_head(s, &call);
    err e = export_arguments(&call);
    if (e == NULL) e = export_sets(s, &call);
    gzip_destroy(call.gzip);
    match_sets_deinit(&call.sets);
    x->streamed = e == NULL || stream_started(x->stream);
    x->stream_complete = e == NULL && !atomic_load_explicit(&x->canceled, memory_order_relaxed);
    if (!x->streamed) {
        answer_err(&x->out, e);
        return;
    }
    if (e != NULL) log_warn(s->log, "an export broke off", "error=\"%s\"", err_message(e));
    err_free(e);
}
