/*
 * cli_ask.c: a client command's conversation with the server, and what it says about it on stderr.
 *
 * An answer is held whole, bounded by ANSWER_MAX; commands whose answers can be longer stream them
 * (export). PromQL errors name line and column: the query is shown with a mark under that place.
 */
#include <stdio.h>
#include <unistd.h>

#include "server/cli_call.h"
#include "server/url.h"

#define ANSWER_MAX ((size_t)512 << 20)
#define SHOWN_MAX 400 /* bytes shown of an answer that is no JSON */

int cli_report(err e)
{
    enum err_code code = err_code(e);
    fprintf(stderr, "varve: %s\n", err_message(e));
    err_free(e);
    return code == ERR_INVALID || code == ERR_UNSUPPORTED ? CLI_USAGE : CLI_FAILED;
}

int cli_print(const struct buf *b)
{
    bool written = fwrite(b->data, 1, b->n, stdout) == b->n;
    if (fflush(stdout) == 0 && written) return CLI_OK;
    fprintf(stderr, "varve: can't write to the standard output\n");
    return CLI_FAILED;
}

bool cli_colours(const struct cli_call *call, int fd)
{
    if (!isatty(fd)) return false;
    for (char **e = call->environment; e != NULL && *e != NULL; e++) {
        bool forbids = strncmp(*e, "NO_COLOR=", 9) == 0 && (*e)[9] != '\0';
        if (forbids || strcmp(*e, "TERM=dumb") == 0) return false;
    }
    return true;
}

err cli_connect(const struct cli_call *call, struct client **out)
{
    struct client_options o = {.url = cli_get(call, "url"), .bearer = cli_get(call, "bearer-token")};
    TRY(cli_get_duration(call, "timeout", &o.timeout_ms));
    return err_wrap(client_create(&o, out), "--url");
}

void cli_form(struct buf *form, const char *name, const char *value)
{
    if (value == NULL) return;
    if (form->n > 0) buf_u8(form, '&');
    url_escape(form, str_of(name));
    buf_u8(form, '=');
    url_escape(form, str_of(value));
}

void cli_form_all(struct buf *form, const struct cli_call *call, const char *flag, const char *name)
{
    const char *value;
    for (size_t i = 0; (value = cli_nth(call, flag, i)) != NULL; i++)
        cli_form(form, name, value);
}

/* ---- refusals ------------------------------------------------------------------------------------------------ */

/* Line number `line` (from 1) of the text. */
static str line_of(str text, uint32_t line)
{
    for (;;) {
        const char *end = text.n > 0 ? memchr(text.p, '\n', text.n) : NULL;
        size_t n = end != NULL ? (size_t)(end - text.p) : text.n;
        if (--line == 0) return (str){text.p, n};
        if (end == NULL) return (str){0};
        text = (str){text.p + n + 1, text.n - n - 1};
    }
}

void cli_mark_place(str query, str error, bool colours, struct buf *out)
{
    uint32_t line, column;
    if (!api_error_place(error, &line, &column)) return;
    str shown = line_of(query, line);
    if (shown.n == 0 || column > shown.n + 1) return;
    buf_printf(out, "  %.*s\n  ", STR_ARG(shown));
    for (size_t i = 0; i + 1 < column; i++) {
        unsigned char c = (unsigned char)shown.p[i];
        if ((c & 0xc0) != 0x80) buf_u8(out, c == '\t' ? '\t' : ' ');
    }
    buf_str(out, colours ? STR("\033[1;31m^\033[0m\n") : STR("^\n"));
}

int cli_refused(struct cli_call *call, const struct client_answer *a, const char *query)
{
    struct api_answer answer;
    struct buf text = {0};
    str body = buf_as_str(&a->body);
    bool colours = cli_colours(call, STDERR_FILENO);
    err e = api_answer_parse(body, &call->arena, &answer);
    if (e == NULL && answer.error.n > 0) {
        buf_str(&text, STR("varve: "));
        buf_str(&text, answer.error);
        buf_printf(&text, " (%.*s, %d)\n", STR_ARG(answer.error_type), a->status);
        if (query != NULL) cli_mark_place(str_of(query), answer.error, colours, &text);
    } else {
        if (body.n > SHOWN_MAX) body.n = SHOWN_MAX;
        while (body.n > 0 && body.p[body.n - 1] == '\n')
            body.n--;
        buf_printf(&text, "varve: the server answers %d: %.*s\n", a->status, STR_ARG(body));
    }
    err_free(e);
    fwrite(text.data, 1, text.n, stderr);
    buf_deinit(&text);
    return CLI_REFUSED;
}

/* ---- asking -------------------------------------------------------------------------------------------------- */

static void print_notes(const char *kind, const str *notes, size_t n)
{
    for (size_t i = 0; i < n; i++)
        fprintf(stderr, "%s: %.*s\n", kind, STR_ARG(notes[i]));
}

static err send_form(struct cli_call *call, const char *path, const struct buf *form, struct client_answer *a)
{
    struct client *client;
    TRY(cli_connect(call, &client));
    struct client_request rq = {.method = "POST", .path = path};
    if (form != NULL) {
        rq.content_type = "application/x-www-form-urlencoded";
        rq.body = buf_as_str(form);
    }
    err e = client_do(client, &rq, a, NULL, NULL);
    client_destroy(client);
    return e;
}

int cli_ask(struct cli_call *call, const char *path, const struct buf *form, const char *query, struct client_answer *a,
            struct api_answer *out)
{
    *a = (struct client_answer){.body.max = ANSWER_MAX};
    err e = send_form(call, path, form, a);
    if (e != NULL) return cli_report(e);
    if (a->status / 100 != 2) return cli_refused(call, a, query);
    e = api_answer_parse(buf_as_str(&a->body), &call->arena, out);
    if (e == NULL && !out->success) e = err_new(ERR_IO, "the answer does not say that it is one");
    if (e != NULL) {
        cli_report(e);
        return CLI_FAILED;
    }
    print_notes("warning", out->warnings, out->n_warnings);
    print_notes("info", out->infos, out->n_infos);
    return CLI_OK;
}
