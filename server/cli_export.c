/*
 * cli_export.c: varve export: raw samples as JSON lines, as they come.
 *
 * The body goes to the standard output piece by piece, so memory does not grow with it. An answer that
 * breaks off is an error (the server ends an incomplete export without its last chunk), with what came
 * before it written.
 */
#include <errno.h>
#include <stdio.h>
#include <unistd.h>

#include "server/cli_commands.h"
#include "server/cli_progress.h"
#include "storage/base/env.h"

struct export
{
    struct progress progress;
    uint64_t bytes, lines;
};

static err write_piece(void *arg, str piece)
{
    struct export *x = arg;
    if (fwrite(piece.p, 1, piece.n, stdout) != piece.n) return err_errno(errno, "write the standard output");
    x->bytes += piece.n;
    for (size_t i = 0; i < piece.n; i++)
        x->lines += piece.p[i] == '\n';
    if (!isatty(STDOUT_FILENO)) progress_update(&x->progress, x->bytes, x->lines);
    return NULL;
}

static err export_form(struct cli_call *call, struct buf *form)
{
    static const char *const times[] = {"start", "end"};
    int64_t now = env_posix()->ops->now_ms(env_posix());
    if (!cli_has(call, "match"))
        return err_new(ERR_INVALID, "export needs --match=SELECTOR, such as '{__name__!=\"\"}'");
    cli_form_all(form, call, "match", "match[]");
    for (size_t i = 0; i < ARRAY_LEN(times); i++) {
        const char *text = cli_get(call, times[i]);
        str at;
        if (text == NULL) continue;
        TRY(err_wrap(cli_time(call, text, now, &at), "--%s", times[i]));
        cli_form(form, times[i], at.p);
    }
    cli_form(form, "max_rows_per_line", cli_get(call, "max-rows-per-line"));
    return NULL;
}

static int run_export(struct cli_call *call)
{
    struct export x = {0};
    struct buf form = {0};
    struct client *client = NULL;
    struct client_answer answer = {.body.max = (size_t)1 << 20};
    int code = CLI_OK;
    err e = export_form(call, &form);
    if (e == NULL) e = cli_connect(call, &client);
    progress_start(&x.progress, "series", 0);
    if (e == NULL) {
        struct client_request rq = {.method = "POST", .path = "/api/v1/export"};
        rq.content_type = "application/x-www-form-urlencoded";
        rq.body = buf_as_str(&form);
        e = client_do(client, &rq, &answer, write_piece, &x);
    }
    progress_clear(&x.progress);
    if (fflush(stdout) != 0 && e == NULL) e = err_errno(errno, "write the standard output");
    if (e != NULL)
        code = cli_report(e);
    else if (answer.status / 100 != 2)
        code = cli_refused(call, &answer, NULL);
    client_destroy(client);
    client_answer_deinit(&answer);
    buf_deinit(&form);
    return code;
}

static const struct cli_flag flags[] = {
    {"match", "SELECTOR", NULL, NULL, "which series; may be repeated"},
    {"start", "TIME", NULL, NULL, "first sample: now-1h, -1h, seconds or RFC 3339"},
    {"end", "TIME", NULL, NULL, "last sample"},
    {"max-rows-per-line", "N", NULL, NULL, "samples a line; more go to further lines"},
};

const struct cli_command cli_export = {
    .name = "export",
    .words = "--match=SELECTOR > FILE",
    .help = "write raw samples as JSON lines, which import reads",
    .asks_server = true,
    .flags = flags,
    .n_flags = ARRAY_LEN(flags),
    .run = run_export,
};
