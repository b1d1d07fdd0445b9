/*
 * cli_query.c: varve query, query-range, labels, series.
 *
 * The server's words are shown as they came: numbers are never parsed and printed anew, and
 * --format=json is the answer itself. Arguments that only the server can judge (selectors, RFC 3339
 * times, steps) go to it unchanged; its error is shown.
 */
#include <stdio.h>
#include <unistd.h>

#include "server/cli_commands.h"
#include "server/cli_result.h"
#include "server/table.h"
#include "server/url.h"
#include "storage/base/env.h"

/* What one of these commands asks for, and what comes back. */
struct ask {
    struct cli_call *call;
    enum cli_format format;
    struct buf form;
    struct client_answer answer;
    struct api_answer api;
    struct buf out;
};

static int64_t now_ms(void)
{
    return env_posix()->ops->now_ms(env_posix());
}

/* A time flag into the form, if it was given or has a default. */
static err add_time(struct ask *q, const char *name)
{
    const char *text = cli_get(q->call, name);
    str at;
    if (text == NULL) return NULL;
    TRY(err_wrap(cli_time(q->call, text, now_ms(), &at), "--%s", name));
    cli_form(&q->form, name, at.p);
    return NULL;
}

/* The server gives up when this client would. */
static err add_timeout(struct ask *q)
{
    int64_t ms;
    char text[32];
    TRY(cli_get_duration(q->call, "timeout", &ms));
    snprintf(text, sizeof text, "%lldms", (long long)ms);
    cli_form(&q->form, "timeout", text);
    return NULL;
}

static err print_as(struct ask *q, err (*table)(struct ask *q), err (*csv)(struct ask *q))
{
    switch (q->format) {
    case CLI_JSON:
        buf_str(&q->out, buf_as_str(&q->answer.body));
        if (q->out.n > 0 && q->out.data[q->out.n - 1] != '\n') buf_str(&q->out, STR("\n"));
        return NULL;
    case CLI_CSV:
        return csv(q);
    case CLI_TABLE:
        break;
    }
    return table(q);
}

/* Asks path, prints the answer; e: what went wrong before. */
static int run_ask(struct ask *q, err e, const char *path, const char *query, err (*table)(struct ask *q),
                   err (*csv)(struct ask *q))
{
    int code = CLI_USAGE;
    if (e != NULL)
        cli_report(e);
    else
        code = cli_ask(q->call, path, &q->form, query, &q->answer, &q->api);
    if (code == CLI_OK) {
        e = print_as(q, table, csv);
        if (e != NULL) {
            cli_report(e);
            code = CLI_FAILED;
        } else {
            code = cli_print(&q->out);
        }
    }
    client_answer_deinit(&q->answer);
    buf_deinit(&q->form);
    buf_deinit(&q->out);
    return code;
}

/* ---- query and query-range ----------------------------------------------------------------------------------- */

static err result_table(struct ask *q)
{
    struct api_result r;
    TRY(api_result_parse(q->api.data, &q->call->arena, &r));
    if (r.kind != API_SCALAR && r.kind != API_STRING && r.n == 0) fprintf(stderr, "no data\n");
    return cli_result_table(&r, &q->call->arena, cli_colours(q->call, STDOUT_FILENO), &q->out);
}

static err result_csv(struct ask *q)
{
    struct api_result r;
    TRY(api_result_parse(q->api.data, &q->call->arena, &r));
    return cli_result_csv(&r, &q->call->arena, &q->out);
}

static err query_form(struct ask *q)
{
    TRY(cli_get_format(q->call, &q->format));
    cli_form(&q->form, "query", q->call->words[0]);
    return add_timeout(q);
}

static int run_query(struct cli_call *call)
{
    struct ask q = {.call = call};
    err e = query_form(&q);
    if (e == NULL) e = add_time(&q, "time");
    return run_ask(&q, e, "/api/v1/query", call->words[0], result_table, result_csv);
}

static int run_query_range(struct cli_call *call)
{
    struct ask q = {.call = call};
    err e = query_form(&q);
    if (e == NULL) e = add_time(&q, "start");
    if (e == NULL) e = add_time(&q, "end");
    cli_form(&q.form, "step", cli_get(call, "step"));
    return run_ask(&q, e, "/api/v1/query_range", call->words[0], result_table, result_csv);
}

/* ---- labels and series --------------------------------------------------------------------------------------- */

static err strings_lines(struct ask *q)
{
    str *v;
    size_t n;
    TRY(api_strings_parse(q->api.data, &q->call->arena, &v, &n));
    for (size_t i = 0; i < n; i++) {
        table_safe_text(&q->out, v[i]);
        buf_str(&q->out, STR("\n"));
    }
    return NULL;
}

static err strings_csv(struct ask *q)
{
    struct table t;
    str *v;
    size_t n;
    TRY(api_strings_parse(q->api.data, &q->call->arena, &v, &n));
    table_init(&t, 1, &q->call->arena);
    table_column(&t, 0, str_of(q->call->n_words > 0 ? q->call->words[0] : "label"), TABLE_LEFT);
    for (size_t i = 0; i < n; i++) {
        table_row(&t);
        table_cell(&t, v[i]);
    }
    table_print_csv(&t, &q->out);
    table_deinit(&t);
    return NULL;
}

static err find_form(struct ask *q)
{
    TRY(cli_get_format(q->call, &q->format));
    cli_form_all(&q->form, q->call, "match", "match[]");
    TRY(add_time(q, "start"));
    TRY(add_time(q, "end"));
    cli_form(&q->form, "limit", cli_get(q->call, "limit"));
    return NULL;
}

static int run_labels(struct cli_call *call)
{
    struct ask q = {.call = call};
    struct buf path = {0};
    err e = find_form(&q);
    buf_str(&path, STR("/api/v1/label"));
    if (call->n_words > 0) {
        buf_u8(&path, '/');
        url_escape(&path, str_of(call->words[0]));
        buf_str(&path, STR("/values"));
    } else {
        buf_u8(&path, 's');
    }
    buf_u8(&path, '\0');
    int code = run_ask(&q, e, (const char *)path.data, NULL, strings_lines, strings_csv);
    buf_deinit(&path);
    return code;
}

static err series_lines(struct ask *q)
{
    struct api_result r;
    TRY(api_series_parse(q->api.data, &q->call->arena, &r));
    cli_result_selectors(&r, &q->out);
    return NULL;
}

static err series_csv(struct ask *q)
{
    struct api_result r;
    TRY(api_series_parse(q->api.data, &q->call->arena, &r));
    return cli_result_series_csv(&r, &q->call->arena, &q->out);
}

static int run_series(struct cli_call *call)
{
    struct ask q = {.call = call};
    err e = find_form(&q);
    if (e == NULL && !cli_has(call, "match")) e = err_new(ERR_INVALID, "series needs --match=SELECTOR");
    return run_ask(&q, e, "/api/v1/series", NULL, series_lines, series_csv);
}

/* ---- which --------------------------------------------------------------------------------------------------- */

static const struct cli_flag query_flags[] = {
    {"time", "TIME", NULL, NULL, "when: now, now-1h, -1h, seconds or RFC 3339 (the server's clock)"},
    {"format", "FORMAT", "table", NULL, "table, json (the server's answer) or csv"},
};
static const struct cli_flag range_flags[] = {
    {"start", "TIME", "-1h", NULL, "first point: now-1h, -1h, seconds or RFC 3339"},
    {"end", "TIME", "now", NULL, "last point"},
    {"step", "DURATION", "1m", NULL, "distance of points"},
    {"format", "FORMAT", "table", NULL, "table, json (the server's answer) or csv"},
};
static const struct cli_flag find_flags[] = {
    {"match", "SELECTOR", NULL, NULL, "only series that it selects; may be repeated"},
    {"start", "TIME", NULL, NULL, "only series with samples after it"},
    {"end", "TIME", NULL, NULL, "only series with samples before it"},
    {"limit", "N", NULL, NULL, "at most so many"},
    {"format", "FORMAT", "table", NULL, "table (lines), json (the server's answer) or csv"},
};

const struct cli_command cli_query = {
    .name = "query",
    .words = "EXPR [--time=TIME] [--format=table|json|csv]",
    .help = "evaluate a PromQL expression at one time",
    .min_words = 1,
    .max_words = 1,
    .asks_server = true,
    .flags = query_flags,
    .n_flags = ARRAY_LEN(query_flags),
    .run = run_query,
};
const struct cli_command cli_query_range = {
    .name = "query-range",
    .words = "EXPR [--start=TIME] [--end=TIME] [--step=DURATION]",
    .help = "evaluate a PromQL expression over a range",
    .min_words = 1,
    .max_words = 1,
    .asks_server = true,
    .flags = range_flags,
    .n_flags = ARRAY_LEN(range_flags),
    .run = run_query_range,
};
const struct cli_command cli_labels = {
    .name = "labels",
    .words = "[NAME] [--match=SELECTOR]",
    .help = "list label names, or the values of one",
    .max_words = 1,
    .asks_server = true,
    .flags = find_flags,
    .n_flags = ARRAY_LEN(find_flags),
    .run = run_labels,
};
const struct cli_command cli_series = {
    .name = "series",
    .words = "--match=SELECTOR",
    .help = "list series",
    .asks_server = true,
    .flags = find_flags,
    .n_flags = ARRAY_LEN(find_flags),
    .run = run_series,
};
