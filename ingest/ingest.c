/*
 * ingest.c: the room's front: a request's headers choose encoding and decoder, the outcome becomes a reply.
 *
 *   ingest_handle → body_expand → remote_write_decode | expfmt_decode | jsonl_decode
 *                 → admit_flush → storage_append
 *
 * What can be stored is stored; 204 means all of it was. Anything refused makes a 400 that counts and
 * names it, which senders don't repeat; 503 with Retry-After is for what another try may mend.
 *
 * struct ingest is shared and only counts after creation; a scratch is one thread's. Its buffers are
 * kept from request to request unless a giant made them grow past SCRATCH_KEEP.
 */
#include "ingest/ingest.h"

#include <strings.h>

#include "ingest/admit.h"
#include "ingest/expfmt.h"
#include "ingest/inflate.h"
#include "ingest/jsonl.h"
#include "ingest/remote_write.h"
#include "ingest/remote_write2.h"
#include "ingest/text.h"
#include "storage/base/alloc.h"
#include "storage/base/json.h"
#include "storage/base/limits.h"
#include "storage/base/num.h"

#define SCRATCH_KEEP (16u << 20)
#define FORMATS 3

struct ingest {
    struct db *db;
    size_t max_body_raw;
    struct protocol protocols[FORMATS]; /* by enum ingest_format */
};

struct ingest_scratch {
    struct rows rows;
    struct arena arena; /* of the request */
    struct buf raw;     /* the body, expanded */
};

/* ---- life --------------------------------------------------------------------------------------- */

struct ingest *ingest_create(const struct ingest_options *o)
{
    static const char *const names[FORMATS] = {
        [INGEST_REMOTE_WRITE] = "remote_write",
        [INGEST_EXPOSITION] = "exposition",
        [INGEST_JSON_LINES] = "json_lines",
    };
    struct ingest *in = mem_zalloc(sizeof *in);
    in->db = o->db;
    in->max_body_raw = o->max_body_raw ? o->max_body_raw : LIMIT_BODY_RAW;
    for (int i = 0; i < FORMATS; i++)
        protocol_init(&in->protocols[i], o->metrics, names[i]);
    return in;
}

void ingest_destroy(struct ingest *in)
{
    mem_free(in);
}

struct ingest_scratch *ingest_scratch_create(struct ingest *in)
{
    struct ingest_scratch *s = mem_zalloc(sizeof *s);
    s->raw.max = in->max_body_raw;
    return s;
}

void ingest_scratch_destroy(struct ingest_scratch *s)
{
    if (s == NULL) return;
    rows_deinit(&s->rows);
    arena_deinit(&s->arena);
    buf_deinit(&s->raw);
    mem_free(s);
}

static void scratch_reset(struct ingest_scratch *s)
{
    rows_clear(&s->rows);
    if (s->arena.bytes > SCRATCH_KEEP)
        arena_deinit(&s->arena);
    else
        arena_reset(&s->arena);
    if (s->raw.cap > SCRATCH_KEEP) buf_deinit(&s->raw);
}

/* ---- headers and arguments ---------------------------------------------------------------------- */

static bool equals(str s, const char *word)
{
    return s.n == strlen(word) && strncasecmp(s.p, word, s.n) == 0;
}

/* Takes the part before the next separator off the front of s, trimmed. */
static str take_part(str *s, char separator)
{
    const char *at = s->n ? memchr(s->p, separator, s->n) : NULL;
    str part = {s->p, at ? (size_t)(at - s->p) : s->n};
    *s = at ? (str){at + 1, s->n - part.n - 1} : (str){0};
    return text_trim(part);
}

static str unquoted(str s)
{
    return s.n >= 2 && s.p[0] == '"' && s.p[s.n - 1] == '"' ? (str){s.p + 1, s.n - 2} : s;
}

/* Absent or application/x-protobuf, whose proto parameter, if any, names one of the messages that we take. */
static err remote_write_version(str content_type, int *version)
{
    str rest = content_type;
    str type = take_part(&rest, ';');
    bool good = type.n == 0 || equals(type, "application/x-protobuf");
    *version = 1;
    while (rest.n > 0) {
        str value = take_part(&rest, ';');
        str name = take_part(&value, '=');
        if (!equals(name, "proto")) continue;
        str proto = unquoted(text_trim(value));
        *version = str_eq(proto, STR("io.prometheus.write.v2.Request")) ? 2 : 1;
        if (*version == 1 && !str_eq(proto, STR("prometheus.WriteRequest"))) good = false;
    }
    if (good) return NULL;
    content_type = text_shown(content_type);
    return err_new(ERR_UNSUPPORTED,
                   "Content-Type \"%.*s\" is not accepted here; send remote write as application/x-protobuf with proto="
                   "prometheus.WriteRequest or proto=io.prometheus.write.v2.Request, Content-Encoding snappy or zstd",
                   STR_ARG(content_type));
}

/* Remote write knows these encodings only; others are refused so that the sender falls back. */
static err check_remote_write_encoding(str encoding)
{
    if (encoding.n == 0 || equals(encoding, "snappy") || equals(encoding, "zstd") || equals(encoding, "identity"))
        return NULL;
    encoding = text_shown(encoding);
    return err_new(ERR_UNSUPPORTED, "Content-Encoding \"%.*s\" is not accepted for remote write; send snappy or zstd",
                   STR_ARG(encoding));
}

static bool is_open_metrics(str content_type)
{
    return equals(take_part(&content_type, ';'), "application/openmetrics-text");
}

/* extra_label=name=value arguments, in the request's arena. */
static err read_extra_labels(struct admit *a, const struct ingest_request *rq)
{
    a->extra.v = arena_alloc(a->arena, rq->n_args * sizeof a->extra.v[0]);
    for (uint32_t i = 0; i < rq->n_args; i++) {
        if (!str_eq(rq->args[i].name, STR("extra_label"))) continue;
        str text = rq->args[i].value;
        const char *equal = text.n ? memchr(text.p, '=', text.n) : NULL;
        size_t n = equal ? (size_t)(equal - text.p) : 0;
        if (n == 0) return err_new(ERR_INVALID, "extra_label is not name=value: \"%.*s\"", STR_ARG(text));
        a->extra.v[a->extra.n++] = (struct label){{text.p, n}, {equal + 1, text.n - n - 1}};
    }
    return NULL;
}

/* The time of samples without one: the timestamp argument in milliseconds, else now. */
static err read_default_time(const struct ingest_request *rq, int64_t *ms)
{
    *ms = env_posix()->ops->now_ms(env_posix());
    for (uint32_t i = 0; i < rq->n_args; i++) {
        str value = rq->args[i].value;
        if (!str_eq(rq->args[i].name, STR("timestamp")) || value.n == 0) continue;
        if (!num_parse_i64(value, ms))
            return err_new(ERR_INVALID, "timestamp is not a number of milliseconds: \"%.*s\"", STR_ARG(value));
    }
    return NULL;
}

/* ---- decoding ----------------------------------------------------------------------------------- */

static err expand(struct ingest_scratch *s, struct protocol *p, const struct ingest_request *rq, str *raw)
{
    enum encoding absent = rq->format == INGEST_REMOTE_WRITE ? ENCODING_SNAPPY : ENCODING_IDENTITY;
    enum encoding encoding;
    if (rq->body.n > LIMIT_BODY_COMPRESSED)
        return err_new(ERR_TOO_LARGE, "body of %zu bytes, the limit is %u", rq->body.n, LIMIT_BODY_COMPRESSED);
    TRY(encoding_parse(rq->content_encoding, absent, &encoding));
    TRY(body_expand(encoding, rq->body, &s->raw, raw));
    counter_add(p->raw_bytes, raw->n);
    return NULL;
}

static err decode(struct admit *a, struct ingest_scratch *s, const struct ingest_request *rq,
                  struct ingest_reply *reply)
{
    static const admit_parse_fn parsers[FORMATS] = {
        [INGEST_REMOTE_WRITE] = remote_write_labels,
        [INGEST_EXPOSITION] = expfmt_labels,
        [INGEST_JSON_LINES] = jsonl_labels,
    };
    struct expfmt_options options = {.open_metrics = is_open_metrics(rq->content_type)};
    str raw = {0};
    int version = 1;
    if (rq->format == INGEST_REMOTE_WRITE) {
        TRY(remote_write_version(rq->content_type, &version));
        TRY(check_remote_write_encoding(rq->content_encoding));
        reply->written_counts = a->late_exemplars_said = version == 2;
    }
    TRY(read_extra_labels(a, rq));
    TRY(read_default_time(rq, &options.now));
    TRY(expand(s, a->protocol, rq, &raw));
    a->parse = version == 2 ? remote_write2_labels : parsers[rq->format];
    admit_init_tag(a);
    switch (rq->format) {
    case INGEST_REMOTE_WRITE:
        if (version == 2)
            remote_write2_decode(a, raw);
        else
            remote_write_decode(a, raw);
        break;
    case INGEST_EXPOSITION:
        expfmt_decode(a, raw, &options);
        break;
    case INGEST_JSON_LINES:
        jsonl_decode(a, raw);
        break;
    }
    admit_flush(a);
    return NULL;
}

/* ---- the reply ---------------------------------------------------------------------------------- */

static int status_of(enum err_code code)
{
    switch (code) {
    case ERR_TOO_LARGE:
        return 413;
    case ERR_UNSUPPORTED:
        return 415;
    case ERR_INVALID:
    case ERR_LIMIT:
        return 400;
    case ERR_BUSY:
    case ERR_READ_ONLY:
    case ERR_NO_SPACE:
    case ERR_TIMEOUT:
        return 503;
    default:
        return 500;
    }
}

static void print_error(const struct admit *a, int status, struct buf *out)
{
    const char *type = status < 500 ? "bad_data" : status == 503 ? "unavailable" : "internal";
    uint64_t rejected = admit_rejected(a);
    struct buf text = {0};
    struct json j;
    if (a->failure) {
        buf_str(&text, str_of(err_message(a->failure)));
    } else {
        buf_printf(&text, "%llu of %llu samples were not stored", (unsigned long long)rejected,
                   (unsigned long long)(rejected + a->accepted));
        if (a->n_errors > 0 && a->errors[0].line) buf_printf(&text, "; line %u", a->errors[0].line);
        if (a->n_errors > 0) buf_printf(&text, ": %.*s", STR_ARG(a->errors[0].text));
    }
    json_init(&j, out);
    json_object(&j);
    json_key(&j, "status");
    json_cstr(&j, "error");
    json_key(&j, "errorType");
    json_cstr(&j, type);
    json_key(&j, "error");
    json_str(&j, buf_as_str(&text));
    json_key(&j, "accepted");
    json_u64(&j, a->accepted);
    json_key(&j, "rejected");
    json_u64(&j, rejected);
    json_key(&j, "errors");
    json_array(&j);
    for (uint32_t i = 0; i < a->n_errors; i++) {
        json_object(&j);
        if (a->errors[i].line) {
            json_key(&j, "line");
            json_u64(&j, a->errors[i].line);
        }
        json_key(&j, "error");
        json_str(&j, a->errors[i].text);
        json_object_end(&j);
    }
    json_array_end(&j);
    json_object_end(&j);
    buf_deinit(&text);
}

static void count(struct protocol *p, const struct admit *a, const struct ingest_request *rq, int status)
{
    counter_inc(p->requests);
    counter_add(p->bytes, rq->body.n);
    counter_add(p->samples, a->accepted);
    counter_add(p->exemplars, a->exemplars);
    for (int i = 0; i < REJECT_N; i++)
        counter_add(p->rejected[i], a->rejected[i]);
    if (status != 204) counter_inc(p->failed);
}

void ingest_handle(struct ingest *in, struct ingest_scratch *s, const struct ingest_request *rq,
                   struct ingest_reply *reply)
{
    struct protocol *p = &in->protocols[rq->format];
    struct admit a = {
        .db = in->db, .protocol = p, .rows = &s->rows, .arena = &s->arena, .key = storage_hash_key(in->db)};
    const struct env_ops *env = env_posix()->ops;
    uint64_t begun = env->mono_ns(env_posix());
    *reply = (struct ingest_reply){.status = 204};
    err e = decode(&a, s, rq, reply);
    if (e) a.failure = e;
    reply->seq = a.seq;
    reply->samples_written = a.accepted - a.accepted_hists;
    reply->histograms_written = a.accepted_hists;
    reply->exemplars_written = a.exemplars;
    if (a.failure)
        reply->status = status_of(err_code(a.failure));
    else if (a.n_errors > 0 || admit_rejected(&a) > 0)
        reply->status = 400;
    reply->retry_after = reply->status == 503;
    if (reply->status != 204) print_error(&a, reply->status, &reply->body);
    count(p, &a, rq, reply->status);
    histogram_observe(p->seconds, (double)(env->mono_ns(env_posix()) - begun) / 1e9);
    err_free(a.failure);
    scratch_reset(s);
}
