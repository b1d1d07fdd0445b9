/*
 * client_reader.c: http-parser's callbacks for answers.
 *
 * The parser keeps what it needs between pieces; what is kept here is the header at hand (its name
 * and value, bounded) and the first error, which stops the parser. Interim answers (1xx) are passed
 * over. Not thread-safe: one reader is one connection's.
 */
#include "server/client_reader.h"

#include <http_parser.h>
#include <strings.h>

#include "storage/base/alloc.h"
#include "storage/base/num.h"

#define FIELD_MAX 64 /* longer headers are none that matter */

struct client_reader {
    http_parser parser;
    struct client_answer *answer;
    client_body_fn fn;
    void *arg;
    err failure;
    char name[FIELD_MAX], value[FIELD_MAX];
    size_t name_n, value_n;
    bool in_value, complete, reusable;
};

static struct client_reader *reader_of(http_parser *p)
{
    return p->data;
}

static void end_header(struct client_reader *r)
{
    static const char retry_after[] = "Retry-After";
    int64_t seconds;
    bool mine = r->name_n == sizeof retry_after - 1 && strncasecmp(r->name, retry_after, r->name_n) == 0;
    if (mine && r->value_n < FIELD_MAX && num_parse_i64((str){r->value, r->value_n}, &seconds) && seconds >= 0)
        r->answer->retry_after_s = seconds;
    r->name_n = r->value_n = 0;
    r->in_value = false;
}

/* Keeps what fits; one that doesn't counts on, so that it equals no name. */
static void keep(char *to, size_t *have, const char *p, size_t n)
{
    if (*have + n <= FIELD_MAX) memcpy(to + *have, p, n);
    *have = *have + n <= FIELD_MAX ? *have + n : FIELD_MAX + 1;
}

static int on_field(http_parser *p, const char *at, size_t n)
{
    struct client_reader *r = reader_of(p);
    if (r->in_value) end_header(r);
    if (r->name_n <= FIELD_MAX) keep(r->name, &r->name_n, at, n);
    return 0;
}

static int on_value(http_parser *p, const char *at, size_t n)
{
    struct client_reader *r = reader_of(p);
    r->in_value = true;
    if (r->value_n <= FIELD_MAX) keep(r->value, &r->value_n, at, n);
    return 0;
}

static int on_headers_complete(http_parser *p)
{
    struct client_reader *r = reader_of(p);
    end_header(r);
    r->answer->status = (int)p->status_code;
    return 0;
}

static int on_body(http_parser *p, const char *at, size_t n)
{
    struct client_reader *r = reader_of(p);
    bool to_fn = r->fn != NULL && p->status_code / 100 == 2;
    if (to_fn) {
        r->failure = r->fn(r->arg, (str){at, n});
        return r->failure != NULL;
    }
    buf_put(&r->answer->body, at, n);
    if (r->answer->body.failed)
        r->failure = err_new(ERR_TOO_LARGE, "the answer is longer than %zu bytes", r->answer->body.max);
    return r->failure != NULL;
}

static int on_complete(http_parser *p)
{
    struct client_reader *r = reader_of(p);
    if (p->status_code / 100 == 1) return 0;
    r->reusable = http_should_keep_alive(p);
    r->complete = true;
    http_parser_pause(p, 1); /* nothing behind it is wanted */
    return 0;
}

static const http_parser_settings callbacks = {
    .on_header_field = on_field,
    .on_header_value = on_value,
    .on_headers_complete = on_headers_complete,
    .on_body = on_body,
    .on_message_complete = on_complete,
};

struct client_reader *client_reader_create(void)
{
    return mem_zalloc(sizeof(struct client_reader));
}

void client_reader_destroy(struct client_reader *r)
{
    if (r == NULL) return;
    err_free(r->failure);
    mem_free(r);
}

void client_answer_deinit(struct client_answer *a)
{
    buf_deinit(&a->body);
}

void client_reader_begin(struct client_reader *r, struct client_answer *a, client_body_fn fn, void *arg)
{
    err_free(r->failure);
    *r = (struct client_reader){.answer = a, .fn = fn, .arg = arg};
    http_parser_init(&r->parser, HTTP_RESPONSE);
    r->parser.data = r;
    a->status = 0;
    a->retry_after_s = -1;
    buf_clear(&a->body);
}

err client_reader_feed(struct client_reader *r, const char *p, size_t n, bool *done)
{
    size_t used = http_parser_execute(&r->parser, &callbacks, p, n);
    err e = r->failure;
    r->failure = NULL;
    *done = r->complete;
    if (e != NULL || r->complete) return e;
    enum http_errno problem = HTTP_PARSER_ERRNO(&r->parser);
    if (n == 0 && r->answer->status == 0) return err_new(ERR_IO, "the server closed the connection without an answer");
    if (n == 0 || problem == HPE_INVALID_EOF_STATE)
        return err_new(ERR_IO, "the answer broke off: the server ended the connection before its end");
    if (problem != HPE_OK || used != n)
        return err_new(ERR_IO, "what answers is no HTTP server: %s", http_errno_description(problem));
    return NULL;
}

bool client_reader_reusable(const struct client_reader *r)
{
    return r->complete && r->reusable;
}
