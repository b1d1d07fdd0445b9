/*
 * Fuzzes what a client command makes of a server's answer: bytes of HTTP in pieces, the API's JSON, tables and CSV.
 * The first byte of the input says in which pieces the rest arrives.
 */
#include "server/cli_result.h"
#include "server/client_reader.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define BODY_MAX 65536

static void use_strings(str data, struct arena *a)
{
    str *v, text;
    size_t n;
    err_free(api_strings_parse(data, a, &v, &n));
    err_free(api_member(data, STR("snapshot"), a, &text));
    err_free(api_string_parse(data, a, &text));
}

static void use_result(str data, struct arena *a, struct buf *out)
{
    struct api_result r;
    err e = api_result_parse(data, a, &r);
    if (e == NULL) e = cli_result_table(&r, a, true, out);
    for (size_t i = 0; i < out->n; i++)
        check(out->data[i] >= 0x20 || out->data[i] == '\n' || out->data[i] == '\033');
    if (e == NULL) e = cli_result_csv(&r, a, out);
    err_free(e);
    e = api_series_parse(data, a, &r);
    if (e == NULL) cli_result_selectors(&r, out);
    if (e == NULL) e = cli_result_series_csv(&r, a, out);
    err_free(e);
}

static void use_body(str body)
{
    struct arena a = {0};
    struct buf out = {.max = (size_t)64 << 20};
    struct api_answer answer;
    uint32_t line, column;
    err e = api_answer_parse(body, &a, &answer);
    if (e == NULL) {
        api_error_place(answer.error, &line, &column);
        use_strings(answer.data, &a);
        use_result(answer.data, &a, &out);
    }
    err_free(e);
    buf_deinit(&out);
    arena_deinit(&a);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n < 2) return 0;
    struct client_answer answer = {.body.max = BODY_MAX};
    struct client_reader *r = client_reader_create();
    size_t piece = data[0] == 0 ? n : data[0];
    bool done = false;
    err e = NULL;
    client_reader_begin(r, &answer, NULL, NULL);
    for (size_t at = 1; at < n && e == NULL && !done; at += piece) {
        size_t now = n - at < piece ? n - at : piece;
        char *exact = mem_dup(data + at, now);
        e = client_reader_feed(r, exact, now, &done);
        mem_free(exact);
    }
    if (e == NULL && !done) e = client_reader_feed(r, "", 0, &done);
    check(e != NULL || done);
    if (e == NULL) use_body(buf_as_str(&answer.body));
    err_free(e);
    client_reader_destroy(r);
    client_answer_deinit(&answer);
    return 0;
}
