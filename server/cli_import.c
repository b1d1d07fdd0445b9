/*
 * cli_import.c: varve import: a file of rows, sent in batches of whole lines.
 *
 *   file ─► input (expands) ─► batch of ≥ 4 MiB, cut at its last line end ─► POST
 *                                 ▲ the rest of the line stays                │ 204, 400: next batch
 *                                                                              │ 413: halves of it
 *                                                                              │ 503, no answer: the same again
 *
 * Memory is one batch, or one line if that is longer (LINE_MAX at most). Sending again is harmless: a
 * sample that was stored already is the same sample. Rows that the server rejects are counted, the
 * first ones named, and do not stop the rest; exit code 4 tells of them.
 */
#include <stdio.h>
#include <time.h>

#include "server/cli_commands.h"
#include "server/cli_input.h"
#include "server/cli_progress.h"
#include "storage/base/alloc.h"

#define BATCH_BYTES ((size_t)4 << 20)
#define LINE_MAX ((size_t)48 << 20) /* below the 64 MiB that a server takes at most unless told otherwise */
#define READ_BYTES ((size_t)256 << 10)
#define NAMED_MAX 10 /* rejections that are printed */
#define WAIT_MAX_S 60
#define WAIT_FIRST_S 1

enum rows { ROWS_UNKNOWN, ROWS_JSONL, ROWS_TEXT };

struct import {
    struct cli_call *call;
    struct client *client;
    struct input *input;
    enum rows rows;
    struct buf path; /* with its query string, NUL-terminated */
    struct buf batch;
    uint64_t line; /* number of the batch's first line */
    uint64_t stored, rejected, rejections;
    uint64_t retries_max;
    struct progress progress;
    struct client_answer answer;
    bool refused; /* said already */
};

/* ---- what a batch holds -------------------------------------------------------------------------------------- */

static uint64_t count_lines(str s)
{
    uint64_t n = 0;
    for (const char *p = s.p, *end = s.p + s.n; p < end && (p = memchr(p, '\n', (size_t)(end - p))) != NULL; p++)
        n++;
    return n;
}

/* Samples of JSON lines: the elements of their "timestamps". */
static uint64_t count_jsonl(str s)
{
    static const char key[] = "\"timestamps\":[";
    const char *p = s.p, *end = s.p + s.n;
    uint64_t n = 0;
    while (p < end && (p = memmem(p, (size_t)(end - p), key, sizeof key - 1)) != NULL) {
        p += sizeof key - 1;
        if (p < end && *p != ']') n++;
        for (; p < end && *p != ']'; p++)
            n += *p == ',';
    }
    return n;
}

/* Lines of text that are neither empty nor comments. */
static uint64_t count_text(str s)
{
    uint64_t n = 0;
    for (size_t i = 0; i < s.n;) {
        const char *end = memchr(s.p + i, '\n', s.n - i);
        n += s.p[i] != '#' && s.p[i] != '\n';
        i = end != NULL ? (size_t)(end - s.p) + 1 : s.n;
    }
    return n;
}

static uint64_t count_samples(const struct import *im, str s)
{
    return im->rows == ROWS_JSONL ? count_jsonl(s) : count_text(s);
}

/* JSON lines begin with {"metric": ; a brace alone begins a line of text too ({"a.b"} 1). */
static enum rows recognize(str s)
{
    static const char blank[] = " \t\r\n";
    while (s.n > 0 && memchr(blank, s.p[0], sizeof blank - 1) != NULL)
        s = (str){s.p + 1, s.n - 1};
    if (!str_starts_with(s, STR("{"))) return ROWS_TEXT;
    s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && memchr(blank, s.p[0], sizeof blank - 1) != NULL)
        s = (str){s.p + 1, s.n - 1};
    static const char *const keys[] = {"\"metric\"", "\"values\"", "\"timestamps\""};
    for (size_t i = 0; i < ARRAY_LEN(keys); i++) {
        str key = str_of(keys[i]);
        size_t at = key.n;
        if (!str_starts_with(s, key)) continue;
        while (at < s.n && s.p[at] == ' ')
            at++;
        if (at < s.n && s.p[at] == ':') return ROWS_JSONL;
    }
    return ROWS_TEXT;
}

static void set_path(struct import *im)
{
    struct buf form = {0};
    const char *path = im->rows == ROWS_JSONL ? "/api/v1/import" : "/api/v1/import/prometheus";
    cli_form_all(&form, im->call, "extra-label", "extra_label");
    buf_clear(&im->path);
    buf_printf(&im->path, "%s%s%.*s", path, form.n > 0 ? "?" : "", (int)form.n, form.n > 0 ? (char *)form.data : "");
    buf_u8(&im->path, '\0');
    buf_deinit(&form);
}

/* ---- sending ------------------------------------------------------------------------------------------------- */

static void say(struct import *im, const char *text)
{
    progress_clear(&im->progress);
    fprintf(stderr, "varve: %s\n", text);
}

static void wait_seconds(int64_t seconds)
{
    struct timespec left = {.tv_sec = seconds < WAIT_MAX_S ? seconds : WAIT_MAX_S};
    while (nanosleep(&left, &left) != 0)
        continue;
}

/* One batch until the server has an answer other than "later". */
static err send_patiently(struct import *im, str batch)
{
    struct client_request rq = {
        .method = "POST", .path = (const char *)im->path.data, .content_type = "text/plain", .body = batch};
    if (im->rows == ROWS_JSONL) rq.content_type = "application/json";
    int64_t pause = WAIT_FIRST_S;
    for (uint64_t tries = 0;; tries++) {
        err e = client_do(im->client, &rq, &im->answer, NULL, NULL);
        bool later = e == NULL && (im->answer.status == 503 || im->answer.status == 429);
        if (e == NULL && !later) return NULL;
        if (tries >= im->retries_max) return e; /* NULL: the refusal is the answer */
        int64_t seconds = later && im->answer.retry_after_s >= 0 ? im->answer.retry_after_s : pause;
        char text[300];
        snprintf(text, sizeof text, "%s; trying again in %lld s", later ? "the server is busy" : err_message(e),
                 (long long)seconds);
        say(im, text);
        err_free(e);
        wait_seconds(seconds);
        pause = pause * 2 < WAIT_MAX_S ? pause * 2 : WAIT_MAX_S;
    }
}

static void note_rejection(struct import *im, uint64_t line, str why)
{
    char text[600];
    if (im->rejections++ >= NAMED_MAX) return;
    snprintf(text, sizeof text, "in the batch from line %llu on: %.*s", (unsigned long long)line,
             (int)(why.n < 400 ? why.n : 400), why.p);
    say(im, im->rejections == NAMED_MAX ? "further rejections are counted, not shown" : text);
}

/* 400 with counts: some rows are stored, some are not. */
static bool took_part(struct import *im, uint64_t line)
{
    struct api_answer a;
    bool counted = false;
    struct arena_mark mark = arena_mark(&im->call->arena);
    err e = api_answer_parse(buf_as_str(&im->answer.body), &im->call->arena, &a);
    if (e == NULL && im->answer.status == 400 && a.accepted + a.rejected > 0) {
        im->stored += a.accepted;
        im->rejected += a.rejected;
        note_rejection(im, line, a.error);
        counted = true;
    }
    err_free(e);
    arena_rewind(&im->call->arena, mark);
    return counted;
}

/* Where to cut: behind the line end next to the middle; 0: it is one line. */
static size_t middle(str batch)
{
    const char *half = batch.p + batch.n / 2;
    const char *end = memchr(half, '\n', batch.n - batch.n / 2);
    if (end == NULL || end + 1 == batch.p + batch.n) end = memrchr(batch.p, '\n', batch.n / 2);
    return end != NULL ? (size_t)(end - batch.p) + 1 : 0;
}

/* false: the import ends here, why was said or is *e. */
static bool send_batch(struct import *im, str batch, uint64_t line, err *e)
{
    *e = send_patiently(im, batch);
    if (*e != NULL) return false;
    int status = im->answer.status;
    if (status / 100 == 2) {
        im->stored += count_samples(im, batch);
        return true;
    }
    if (status == 413) {
        size_t cut = middle(batch);
        if (cut == 0) {
            im->rejected += count_samples(im, batch);
            note_rejection(im, line, STR("the line is larger than the server takes"));
            return true;
        }
        str first = {batch.p, cut}, second = {batch.p + cut, batch.n - cut};
        return send_batch(im, first, line, e) && send_batch(im, second, line + count_lines(first), e);
    }
    if (took_part(im, line)) return true;
    progress_clear(&im->progress);
    cli_refused(im->call, &im->answer, NULL);
    im->refused = true;
    return false;
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* Reads until a batch is full; *ended: the file is at its end. */
static err fill_batch(struct import *im, bool *ended)
{
    size_t want = BATCH_BYTES > im->batch.n + READ_BYTES ? BATCH_BYTES : im->batch.n + READ_BYTES;
    while (im->batch.n < want) {
        size_t got;
        uint8_t *to = buf_reserve(&im->batch, READ_BYTES);
        TRY(input_read(im->input, to, READ_BYTES, &got));
        im->batch.n += got;
        *ended = got == 0;
        if (*ended) break;
    }
    bool open_end = im->batch.n > 0 && im->batch.data[im->batch.n - 1] != '\n';
    if (*ended && open_end) buf_u8(&im->batch, '\n');
    return NULL;
}

/* Sends the whole lines of the batch, keeps the rest. */
static bool send_lines(struct import *im, err *e)
{
    str all = buf_as_str(&im->batch);
    const char *end = all.n > 0 ? memrchr(all.p, '\n', all.n) : NULL;
    if (end == NULL) {
        if (all.n < LINE_MAX) return true;
        *e = err_new(ERR_TOO_LARGE, "line %llu is longer than %zu MiB", (unsigned long long)im->line, LINE_MAX >> 20);
        return false;
    }
    str lines = {all.p, (size_t)(end - all.p) + 1};
    if (im->rows == ROWS_UNKNOWN) im->rows = recognize(lines);
    if (im->path.n == 0) set_path(im);
    if (!send_batch(im, lines, im->line, e)) return false;
    im->line += count_lines(lines);
    memmove(im->batch.data, im->batch.data + lines.n, all.n - lines.n);
    im->batch.n -= lines.n;
    return true;
}

static err import_all(struct import *im)
{
    bool ended = false;
    while (!ended) {
        err e = NULL;
        TRY(fill_batch(im, &ended));
        if (!send_lines(im, &e)) return e;
        progress_update(&im->progress, input_taken(im->input), im->stored + im->rejected);
    }
    return NULL;
}

/* ---- the command --------------------------------------------------------------------------------------------- */

static err import_arguments(struct import *im)
{
    const char *format = cli_get(im->call, "format");
    if (strcmp(format, "jsonl") == 0)
        im->rows = ROWS_JSONL;
    else if (strcmp(format, "prometheus") == 0)
        im->rows = ROWS_TEXT;
    else if (strcmp(format, "auto") != 0)
        return err_new(ERR_INVALID, "--format: \"%s\" is not one of auto jsonl prometheus", format);
    TRY(cli_get_count(im->call, "retries", &im->retries_max));
    return cli_connect(im->call, &im->client);
}

static void print_summary(struct import *im)
{
    struct buf text = {0};
    double seconds = progress_seconds(&im->progress);
    progress_clear(&im->progress);
    buf_printf(&text, "%llu samples in %llu lines imported, ", (unsigned long long)im->stored,
               (unsigned long long)(im->line - 1));
    progress_bytes(&text, input_taken(im->input));
    buf_printf(&text, " in %.1f s", seconds);
    if (seconds > 0) {
        buf_str(&text, STR(", "));
        progress_count(&text, (double)im->stored / seconds);
        buf_str(&text, STR(" samples/s"));
    }
    buf_printf(&text, "; %llu rejected\n", (unsigned long long)im->rejected);
    fwrite(text.data, 1, text.n, stderr);
    buf_deinit(&text);
}

static int exit_code(struct import *im, err e)
{
    if (e != NULL) {
        progress_clear(&im->progress);
        cli_report(e);
        return CLI_FAILED;
    }
    if (im->refused) return CLI_REFUSED;
    return im->rejected > 0 ? CLI_PARTLY : CLI_OK;
}

static int run_import(struct cli_call *call)
{
    struct import im = {.call = call, .line = 1, .answer.body.max = (size_t)1 << 20};
    err e = import_arguments(&im);
    int code = CLI_USAGE;
    if (e != NULL) {
        cli_report(e);
    } else {
        e = input_open(call->words[0], &im.input);
        progress_start(&im.progress, "samples", im.input != NULL ? input_size(im.input) : 0);
        if (e == NULL) e = import_all(&im);
        code = exit_code(&im, e);
        if (im.input != NULL) print_summary(&im);
    }
    input_close(im.input);
    client_destroy(im.client);
    client_answer_deinit(&im.answer);
    buf_deinit(&im.batch);
    buf_deinit(&im.path);
    return code;
}

static const struct cli_flag flags[] = {
    {"format", "FORMAT", "auto", NULL, "auto, jsonl (what export writes) or prometheus (exposition text)"},
    {"extra-label", "NAME=VALUE", NULL, NULL, "added to every series; may be repeated"},
    {"retries", "N", "10", NULL, "how often a batch is tried again when the server is busy or gone"},
};

const struct cli_command cli_import = {
    .name = "import",
    .words = "FILE|- [--format=auto|jsonl|prometheus]",
    .help = "send a file of samples, plain or compressed with gzip or zstd; exit code 4 if rows were rejected",
    .min_words = 1,
    .max_words = 1,
    .asks_server = true,
    .flags = flags,
    .n_flags = ARRAY_LEN(flags),
    .run = run_import,
};
