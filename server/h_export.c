/*
 * h_export.c: raw samples out, as JSON lines or in another form, while they are read.
 *
 * On an export worker, through the exchange's stream: memory does not grow with the answer, and a slow
 * client holds back its export (and perhaps others), nothing else. Before the first byte left, an
 * error is an ordinary answer; later, the connection is cut without the last chunk, so that the client
 * can't take the part for the whole.
 */
#include "server/args.h"
#include "server/gzip.h"
#include "server/handlers.h"

struct export_call {
    struct exchange *x;
    struct match_sets sets;
    struct ingest_export rq;
    struct gzip *gzip; /* NULL: sent as it is */
};

/* format: json, the default, and two of VictoriaMetrics's. */
static err format_argument(const struct exchange *x, enum ingest_export_format *out)
{
    str format = args_text(x, "format");
    *out = INGEST_EXPORT_JSON_LINES;
    if (format.n == 0 || str_eq(format, STR("json"))) return NULL;
    if (!str_eq(format, STR("prometheus")) && !str_eq(format, STR("promapi")))
        return err_new(ERR_INVALID, "invalid parameter \"format\": json, prometheus and promapi are known");
    *out = str_eq(format, STR("promapi")) ? INGEST_EXPORT_PROMAPI : INGEST_EXPORT_TEXT;
    return NULL;
}

/* reduce_mem_usage is taken and changes nothing: memory is bounded in any case. */
static err export_arguments(struct export_call *call)
{
    struct exchange *x = call->x;
    uint64_t rows = 0;
    TRY(args_match(x, true, &call->sets));
    TRY(args_range(x, &call->rq.t_min, &call->rq.t_max));
    TRY(args_count(x, "max_rows_per_line", &rows));
    call->rq.sets = call->sets.sets;
    call->rq.n_sets = call->sets.n;
    call->rq.max_rows = (size_t)rows;
    if (call->rq.format != INGEST_EXPORT_CSV) return format_argument(x, &call->rq.format);
    call->rq.columns = args_text(x, "format");
    if (call->rq.columns.n > 0) return NULL;
    return err_new(ERR_INVALID, "invalid parameter \"format\": it is missing; as in "
                                "format=__name__,job,__value__,__timestamp__:unix_ms");
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

static err run_export(struct server *s, struct export_call *call)
{
    TRY(ingest_export(s->db, &call->rq, export_emit, call));
    if (call->gzip != NULL) gzip_finish(call->gzip);
    return NULL;
}

/* Head of the answer: complete before the first write, as the loop reads it then. */
static void export_head(struct server *s, struct export_call *call)
{
    static const char *const types[] = {[INGEST_EXPORT_JSON_LINES] = "application/stream+json; charset=utf-8",
                                        [INGEST_EXPORT_TEXT] = ANSWER_TEXT,
                                        [INGEST_EXPORT_PROMAPI] = ANSWER_JSON,
                                        [INGEST_EXPORT_CSV] = "text/csv; charset=utf-8"};
    struct exchange *x = call->x;
    x->out.status = 200;
    x->out.content_type = types[call->rq.format];
    bool gzip =
        s->config->compression == COMPRESSION_GZIP && gzip_accepted(http_header(&x->in, HEADER_ACCEPT_ENCODING));
    if (!gzip) return;
    x->out.gzipped = true;
    call->gzip = gzip_create(send_bytes, x);
}

static void export_as(struct server *s, struct exchange *x, enum ingest_export_format format)
{
    struct export_call call = {.x = x, .rq = {.format = format}};
    err e = export_arguments(&call);
    export_head(s, &call);
    if (e == NULL) e = run_export(s, &call);
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

void h_export_samples(struct server *s, struct exchange *x)
{
    export_as(s, x, INGEST_EXPORT_JSON_LINES);
}

void h_export_csv(struct server *s, struct exchange *x)
{
    export_as(s, x, INGEST_EXPORT_CSV);
}
