/*
 * wire.c: status line and headers.
 *
 * The head is small and bounded: the only texts of the client's in it are its Origin, echoed when the
 * operator's pattern allows it, and the header names of a preflight; both are limited. An answer without body (204,
 * 304) has no length.
 */
#include "server/wire.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdio.h>
#include <time.h>

#include "server/server.h"
#include "storage/base/assert.h"

#define ORIGIN_MAX 256
#define REQUESTED_HEADERS_MAX 512

struct head {
    char *p;
    size_t n;
};

static void put(struct head *h, const char *format, ...) __attribute__((format(printf, 2, 3)));

static void put(struct head *h, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(h->p + h->n, WIRE_HEAD_MAX - h->n, format, args);
    va_end(args);
    check(n >= 0 && (size_t)n < WIRE_HEAD_MAX - h->n);
    h->n += (size_t)n;
}

static void put_verbs(struct head *h, const char *header, unsigned verbs)
{
    static const struct {
        unsigned verb;
        const char *name;
    } names[] = {{VERB_GET, "GET"}, {VERB_HEAD, "HEAD"},     {VERB_POST, "POST"},
                 {VERB_PUT, "PUT"}, {VERB_DELETE, "DELETE"}, {VERB_OPTIONS, "OPTIONS"}};
    const char *separator = "";
    put(h, "%s: ", header);
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (!(verbs & names[i].verb)) continue;
        put(h, "%s%s", separator, names[i].name);
        separator = ", ";
    }
    put(h, "\r\n");
}

/* Headers that a preflight asks for, to be allowed: no header decides anything here. Names and commas only. */
static str requested_headers(const struct exchange *x)
{
    str asked = http_header(&x->in, HEADER_ACCESS_CONTROL_REQUEST_HEADERS);
    if (asked.n > REQUESTED_HEADERS_MAX) return (str){0};
    for (size_t i = 0; i < asked.n; i++)
        if (!isalnum((unsigned char)asked.p[i]) && strchr("-_, ", asked.p[i]) == NULL) return (str){0};
    return asked;
}

static void put_cors(struct head *h, const struct exchange *x)
{
    str origin = http_header(&x->in, HEADER_ORIGIN);
    if (origin.n == 0 || origin.n > ORIGIN_MAX) return;
    str allow = cors_allow(&x->server->cors, origin);
    if (allow.n == 0) return;
    put(h, "Access-Control-Allow-Origin: %.*s\r\nAccess-Control-Expose-Headers: Date\r\nVary: Origin\r\n",
        STR_ARG(allow));
    if (!x->out.preflight) return;
    put_verbs(h, "Access-Control-Allow-Methods", x->out.allow);
    str more = requested_headers(x);
    put(h,
        "Access-Control-Allow-Headers: Accept, Authorization, Content-Encoding, Content-Type, Origin%s%.*s\r\n"
        "Access-Control-Max-Age: 3600\r\n",
        more.n > 0 ? ", " : "", STR_ARG(more));
}

static void put_body_headers(struct head *h, const struct exchange *x, bool chunked)
{
    const struct answer *a = &x->out;
    if (a->status == 204 || a->status == 304) return;
    put(h, "Content-Type: %s\r\n", a->content_type != NULL ? a->content_type : ANSWER_JSON);
    if (chunked)
        put(h, "Transfer-Encoding: chunked\r\n");
    else if (x->stream == NULL)
        put(h, "Content-Length: %zu\r\n", a->body.n);
    if (a->gzipped || a->snappied) put(h, "Content-Encoding: %s\r\n", a->gzipped ? "gzip" : "snappy");
    if (x->server->config->compression == COMPRESSION_GZIP) put(h, "Vary: Accept-Encoding\r\n");
}

/* What a receiver of remote write 2.0 owes its sender. */
static void put_written_counts(struct head *h, const struct answer *a)
{
    put(h, "X-Prometheus-Remote-Write-Samples-Written: %llu\r\n", (unsigned long long)a->samples_written);
    put(h, "X-Prometheus-Remote-Write-Histograms-Written: %llu\r\n", (unsigned long long)a->histograms_written);
    put(h, "X-Prometheus-Remote-Write-Exemplars-Written: %llu\r\n", (unsigned long long)a->exemplars_written);
}

size_t wire_head(const struct exchange *x, const struct wire_options *o, char *out)
{
    struct head h = {0};
    h.p = out;
    const struct answer *a = &x->out;
    put(&h, "HTTP/1.1 %d %s\r\nDate: %s\r\n", a->status, http_status_text(a->status), o->date);
    put_body_headers(&h, x, o->chunked);
    if (a->headers != NULL) put(&h, "%s", a->headers);
    if (a->etag != NULL) put(&h, "ETag: %s\r\n", a->etag);
    if (a->allow != 0) put_verbs(&h, "Allow", a->allow);
    if (a->retry_after_s > 0) put(&h, "Retry-After: %d\r\n", a->retry_after_s);
    if (a->written_counts) put_written_counts(&h, a);
    put_cors(&h, x);
    if (o->close)
        put(&h, "Connection: close\r\n");
    else if (!x->in.http11)
        put(&h, "Connection: keep-alive\r\n");
    put(&h, "\r\n");
    return h.n;
}

void wire_date(int64_t now_ms, char *out)
{
    time_t seconds = (time_t)(now_ms / 1000);
    struct tm tm;
    gmtime_r(&seconds, &tm);
    strftime(out, 32, "%a, %d %b %Y %H:%M:%S GMT", &tm);
}
