/*
 * answer.c: envelopes, the one mapping of error codes to HTTP statuses, and when to compress.
 *
 * Clients (Grafana above all) read error texts only from JSON with status 400, 422 or 503, so every
 * error a query can raise maps to one of those.
 */
#include "server/answer.h"

#include <stdarg.h>
#include <stdio.h>

#include "server/gzip.h"

#define BODY_KEEP ((size_t)64 << 10) /* larger buffers go back to the heap with their answer */
#define GZIP_MIN 1400                /* below that, one packet carries it anyway */

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

void answer_compress(struct answer *a, str accept_encoding)
{
    bool worth = a->body.n >= GZIP_MIN && a->body.n < UINT32_MAX / 2;
    if (a->gzipped || a->snappied || !worth || !gzip_accepted(accept_encoding)) return;
    struct buf out = {0};
    if (!gzip_whole(&a->body, &out)) {
        buf_deinit(&out);
        return;
    }
    buf_deinit(&a->body);
    a->body = out;
    a->gzipped = true;
}
