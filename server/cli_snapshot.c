/*
 * cli_snapshot.c: varve snapshot create, list, delete.
 *
 * What the server names goes to the standard output, one name a line, so that scripts can use it.
 */
#include <stdio.h>

#include "server/cli_commands.h"
#include "server/table.h"

struct snapshot_call {
    struct cli_call *call;
    enum cli_format format;
    struct client_answer answer;
    struct api_answer api;
    struct buf form, out;
};

static int ask(struct snapshot_call *s, const char *path)
{
    return cli_ask(s->call, path, &s->form, NULL, &s->answer, &s->api);
}

static str body(const struct snapshot_call *s)
{
    return buf_as_str(&s->answer.body);
}

static err print_name(struct snapshot_call *s)
{
    str raw, name;
    TRY(api_member(body(s), STR("snapshot"), &s->call->arena, &raw));
    TRY(api_string_parse(raw, &s->call->arena, &name));
    table_safe_text(&s->out, name);
    buf_str(&s->out, STR("\n"));
    return NULL;
}

static err print_list(struct snapshot_call *s)
{
    str raw, *names;
    size_t n;
    TRY(api_member(body(s), STR("snapshots"), &s->call->arena, &raw));
    TRY(api_strings_parse(raw, &s->call->arena, &names, &n));
    for (size_t i = 0; i < n; i++) {
        table_safe_text(&s->out, names[i]);
        buf_str(&s->out, STR("\n"));
    }
    return NULL;
}

static err print_nothing(struct snapshot_call *s)
{
    (void)s;
    return NULL;
}

static const struct action {
    const char *name, *path;
    int n_words;
    err (*print)(struct snapshot_call *s);
} actions[] = {
    {"list", "/snapshot/list", 1, print_list},
    {"create", "/snapshot/create", 1, print_name},
    {"delete", "/snapshot/delete", 2, print_nothing},
};

/* Without a word: list, which changes nothing. */
static err find_action(const struct cli_call *call, const struct action **out)
{
    *out = &actions[0];
    if (call->n_words == 0) return NULL;
    for (size_t i = 0; i < ARRAY_LEN(actions); i++) {
        if (strcmp(call->words[0], actions[i].name) != 0) continue;
        *out = &actions[i];
        if (call->n_words == actions[i].n_words) return NULL;
    }
    return err_new(ERR_INVALID, "usage: varve snapshot [list | create | delete NAME]");
}

static int show(struct snapshot_call *s, const struct action *action)
{
    err e = NULL;
    if (s->format == CLI_JSON) {
        buf_str(&s->out, body(s));
        buf_str(&s->out, STR("\n"));
    } else {
        e = action->print(s);
    }
    if (e == NULL) return cli_print(&s->out);
    cli_report(e);
    return CLI_FAILED;
}

static int run_snapshot(struct cli_call *call)
{
    struct snapshot_call s = {.call = call};
    const struct action *action;
    int code;
    err e = find_action(call, &action);
    if (e == NULL) e = cli_get_format(call, &s.format);
    if (e != NULL) return cli_report(e);
    if (action->n_words == 2) cli_form(&s.form, "snapshot", call->words[1]);
    code = ask(&s, action->path);
    if (code == CLI_OK) code = show(&s, action);
    client_answer_deinit(&s.answer);
    buf_deinit(&s.form);
    buf_deinit(&s.out);
    return code;
}

static const struct cli_flag flags[] = {
    {"format", "FORMAT", "table", NULL, "table (lines), json (the server's answer) or csv (lines)"},
};

const struct cli_command cli_snapshot = {
    .name = "snapshot",
    .words = "[list | create | delete NAME]",
    .help = "the server's snapshots: hard-linked copies of its data, in snapshots/ of the data directory",
    .max_words = 2,
    .asks_server = true,
    .flags = flags,
    .n_flags = ARRAY_LEN(flags),
    .run = run_snapshot,
};
