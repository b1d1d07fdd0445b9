/*
 * answer.c: envelopes, the one mapping of error codes to HTTP statuses, and gzip.
 *
 * Clients (Grafana above all) read error texts only from JSON with status 400, 422 or 503, so every
 * error a query can raise maps to one of those. Only gzip is offered: other codings break clients.
 * gzip uses a small window: answers are repetitive JSON, and the memory is a request's.
 */
#include "server/answer.h"

#include <stdarg.h>
#include <stdio.h>
#include <strings.h>
#include <zlib.h>

#include "storage/base/alloc.h"
#include "storage/base/num.h"

#define BODY_KEEP ((size_t)64 << 10) /* larger buffers go back to the heap with their answer */
#define GZIP_MIN 1400                /* below that, one packet carries it anyway */
#define GZIP_LEVEL 1
#define GZIP_WINDOW (13 + 16) /* 8 KiB window; + 16: gzip framing */
#define GZIP_MEMORY 7

void answer_reset(struct answer *a)
{
    struct buf body = a->body;
    if (body.cap > BODY_KEEP) {
        buf_deinit(&body);
        body = (struct buf){0};
    }
    buf_clear(&body);
    *a = (struct answer){.body = body};
}

void answer_deinit(struct answer *a)
{
    buf_deinit(&a->body);
}

static void error_body(struct answer *a, int status, const char *type, str text)
{
    answer_reset(a);
    a->status = status;
    struct json j;
    json_init(&j, &a->body);
    json_object(&j);
    json_key(&j, "status");
    json_cstr(&j, "error");
    json_key(&j, "errorType");
    json_cstr(&j, type);
    json_key(&j, "error");
    json_str(&j, text);
    json_object_end(&j);
    buf_u8(&a->body, '\n');
}

void answer_error(struct answer *a, int status, const char *type, const char *format, ...)
{
    char text[512];
    va_list args;
    va_start(args, format);
    int n = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    size_t length = n < 0 ? 0 : (size_t)n < sizeof text ? (size_t)n : sizeof text - 1;
    error_body(a, status, type, (str){text, length});
}

static const struct {
    enum err_code code;
    int status;
    const char *type;
} meanings[] = {
    {ERR_INVALID, 400, "bad_data"},      {ERR_TOO_LARGE, 413, "too_large"},  {ERR_UNSUPPORTED, 415, "unsupported"},
    {ERR_NOT_FOUND, 404, "not_found"},   {ERR_LIMIT, 422, "execution"},      {ERR_EXECUTION, 422, "execution"},
    {ERR_TIMEOUT, 503, "timeout"},       {ERR_CANCELED, 499, "canceled"},    {ERR_BUSY, 503, "unavailable"},
    {ERR_READ_ONLY, 503, "unavailable"}, {ERR_NO_SPACE, 503, "unavailable"}, {ERR_IO, 500, "internal"},
    {ERR_CORRUPT, 500, "internal"},      {ERR_LOCKED, 500, "internal"},      {ERR_NO_MEMORY, 503, "unavailable"},
    {ERR_INTERNAL, 500, "internal"},
};

int answer_status_of(enum err_code code)
{
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].code == code) return meanings[i].status;
    return 500;
}

void answer_err(struct answer *a, err e)
{
    enum err_code code = err_code(e);
    const char *type = "internal";
    for (size_t i = 0; i < ARRAY_LEN(meanings); i++)
        if (meanings[i].code == code) type = meanings[i].type;
    error_body(a, answer_status_of(code), type, str_of(err_message(e)));
    bool passing = code == ERR_BUSY || code == ERR_READ_ONLY || code == ERR_NO_SPACE || code == ERR_NO_MEMORY;
    if (passing) a->retry_after_s = 5;
    err_free(e);
}

void answer_text(struct answer *a, int status, const char *text)
{
    answer_reset(a);
    a->status = status;
    a->content_type = ANSWER_TEXT;
    buf_str(&a->body, str_of(text));
}

void answer_data_begin(struct answer *a)
{
    answer_reset(a);
    a->status = 200;
    buf_str(&a->body, STR("{\"status\":\"success\",\"data\":"));
}

static void note_list(struct buf *out, const char *key, char **texts, uint32_t n)
{
    if (n == 0) return;
    buf_printf(out, ",\"%s\":", key);
    struct json j;
    json_init(&j, out);
    json_array(&j);
    for (uint32_t i = 0; i < n; i++)
        json_cstr(&j, texts[i]);
    json_array_end(&j);
}

void answer_data_end(struct answer *a, const struct query_notes *notes)
{
    if (notes != NULL) {
        note_list(&a->body, "warnings", notes->warnings, notes->n_warnings);
        note_list(&a->body, "infos", notes->infos, notes->n_infos);
    }
    buf_str(&a->body, STR("}\n"));
}

static str trim(str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Up to the first `c` of *s, trimmed; *s goes on behind it. */
static str next_item(str *s, char c)
{
    const char *at = memchr(s->p, c, s->n);
    str head = {s->p, at == NULL ? s->n : (size_t)(at - s->p)};
    size_t taken = head.n + (at != NULL);
    *s = (str){s->p + taken, s->n - taken};
    return trim(head);
}

/* True if an Accept-Encoding header names gzip, or *, with a weight that is not 0. */
static bool takes_gzip(str header)
{
    while (header.n > 0) {
        str weight = next_item(&header, ',');
        str name = next_item(&weight, ';');
        weight = trim(weight);
        bool gzip = name.n == 4 && strncasecmp(name.p, "gzip", 4) == 0;
        if (!gzip && !str_eq(name, STR("*"))) continue;
        double q = 1;
        if (str_starts_with(weight, STR("q=")) && !num_parse_double((str){weight.p + 2, weight.n - 2}, &q)) q = 0;
        return q > 0;
    }
    return false;
}

static void *gzip_alloc(void *arg, unsigned items, unsigned size)
{
    (void)arg;
    return mem_alloc((size_t)items * size);
}

static void gzip_free(void *arg, void *p)
{
    (void)arg;
    mem_free(p);
}

/* The whole of in, compressed into out; false if that did not work or did not help. */
static bool gzip_whole(const struct buf *in, struct buf *out)
{
    z_stream z = {.zalloc = gzip_alloc, .zfree = gzip_free};
    if (deflateInit2(&z, GZIP_LEVEL, Z_DEFLATED, GZIP_WINDOW, GZIP_MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) return false;
    size_t bound = deflateBound(&z, in->n);
    z.next_in = in->data;
    z.avail_in = (unsigned)in->n;
    z.next_out = buf_reserve(out, bound);
    z.avail_out = (unsigned)bound;
    int rc = deflate(&z, Z_FINISH);
    out->n = z.total_out;
    deflateEnd(&z);
    return rc == Z_STREAM_END && out->n < in->n;
}

void answer_compress(struct answer *a, str accept_encoding)
{
    bool worth = a->body.n >= GZIP_MIN && a->body.n < UINT32_MAX / 2;
    if (a->gzipped || !worth || !takes_gzip(accept_encoding)) return;
    struct buf out = {0};
    if (!gzip_whole(&a->body, &out)) {
        buf_deinit(&out);
        return;
    }
    buf_deinit(&a->body);
    a->body = out;
    a->gzipped = true;
}
