/*
 * cli_call.c: flags of the client commands: parsing, defaults, help.
 *
 * Each command brings its table of flags; those that ask a server share one more table here. A word
 * that begins with "--" is a flag, everything else an argument ("-up" is a query), and "--" ends the
 * flags. Nothing is read or connected while parsing, so a wrong argument is found before anything
 * happens.
 */
#include "server/cli_call.h"

#include <stdio.h>
#include <unistd.h>

#include "server/config.h"
#include "storage/base/alloc.h"
#include "storage/base/num.h"

static const struct cli_flag server_flags[] = {
    {"url", "URL", "http://127.0.0.1:8428", "VARVE_URL", "the server: http://[user:password@]host:port[/prefix]"},
    {"bearer-token", "TOKEN", NULL, "VARVE_BEARER_TOKEN", "sent as Authorization: Bearer"},
    {"timeout", "DURATION", "2m", NULL, "longest time to connect, and longest silence of the server"},
};

/* ---- parsing ------------------------------------------------------------------------------------------------- */

static const struct cli_flag *find_in(const struct cli_flag *flags, size_t n, str name)
{
    for (size_t i = 0; i < n; i++)
        if (str_eq(name, str_of(flags[i].name))) return &flags[i];
    return NULL;
}

static const struct cli_flag *find_flag(const struct cli_command *command, str name)
{
    const struct cli_flag *f = find_in(command->flags, command->n_flags, name);
    if (f == NULL && command->asks_server) f = find_in(server_flags, ARRAY_LEN(server_flags), name);
    return f;
}

/* --name=value, --name value, --switch; *i moves over a value that is a word of its own. */
static err take_flag(struct cli_call *call, int argc, char **argv, int *i)
{
    const char *name = argv[*i] + 2, *equals = strchr(name, '=');
    str text = {name, equals != NULL ? (size_t)(equals - name) : strlen(name)};
    const struct cli_flag *f = find_flag(call->command, text);
    if (f == NULL)
        return err_new(ERR_INVALID, "unknown flag --%.*s (see varve %s --help)", STR_ARG(text), call->command->name);
    struct cli_value *v = &call->values[call->n_values++];
    *v = (struct cli_value){f, ""};
    if (f->value == NULL) {
        return equals == NULL ? NULL : err_new(ERR_INVALID, "--%s takes no value", f->name);
    }
    if (equals != NULL) {
        v->text = equals + 1;
        return NULL;
    }
    if (*i + 1 >= argc) return err_new(ERR_INVALID, "--%s needs a value: %s", f->name, f->value);
    v->text = argv[++*i];
    return NULL;
}

err cli_call_parse(struct cli_call *call, const struct cli_command *command, int argc, char **argv, char **environment)
{
    *call = (struct cli_call){.command = command, .environment = environment};
    call->words = mem_alloc((size_t)argc * sizeof *call->words + 1);
    call->values = mem_alloc((size_t)argc * sizeof *call->values + 1);
    bool flags_end = false;
    for (int i = 0; i < argc; i++) {
        bool is_flag = !flags_end && strncmp(argv[i], "--", 2) == 0;
        if (is_flag && argv[i][2] == '\0')
            flags_end = true;
        else if (is_flag)
            TRY(take_flag(call, argc, argv, &i));
        else
            call->words[call->n_words++] = argv[i];
    }
    if (call->n_words < command->min_words || call->n_words > command->max_words)
        return err_new(ERR_INVALID, "usage: varve %s %s", command->name, command->words);
    return NULL;
}

void cli_call_deinit(struct cli_call *call)
{
    mem_free(call->words);
    mem_free(call->values);
    arena_deinit(&call->arena);
}

/* ---- values -------------------------------------------------------------------------------------------------- */

const char *cli_nth(const struct cli_call *call, const char *name, size_t i)
{
    for (size_t k = 0; k < call->n_values; k++)
        if (strcmp(call->values[k].flag->name, name) == 0 && i-- == 0) return call->values[k].text;
    return NULL;
}

static const char *from_environment(const struct cli_call *call, const char *variable)
{
    size_t n = strlen(variable);
    for (char **e = call->environment; e != NULL && *e != NULL; e++)
        if (strncmp(*e, variable, n) == 0 && (*e)[n] == '=' && (*e)[n + 1] != '\0') return *e + n + 1;
    return NULL;
}

const char *cli_get(const struct cli_call *call, const char *name)
{
    for (size_t k = call->n_values; k > 0; k--)
        if (strcmp(call->values[k - 1].flag->name, name) == 0) return call->values[k - 1].text;
    const struct cli_flag *f = find_flag(call->command, str_of(name));
    const char *text = f != NULL && f->variable != NULL ? from_environment(call, f->variable) : NULL;
    return text != NULL || f == NULL ? text : f->initial;
}

bool cli_has(const struct cli_call *call, const char *name)
{
    return cli_nth(call, name, 0) != NULL;
}

err cli_get_duration(const struct cli_call *call, const char *name, int64_t *ms)
{
    const char *text = cli_get(call, name);
    if (text != NULL && config_parse_duration(str_of(text), ms)) return NULL;
    return err_new(ERR_INVALID, "--%s: \"%s\" is not a duration, such as 30s or 1h30m", name, text != NULL ? text : "");
}

err cli_get_count(const struct cli_call *call, const char *name, uint64_t *n)
{
    const char *text = cli_get(call, name);
    int64_t v;
    if (text == NULL || !num_parse_i64(str_of(text), &v) || v < 0)
        return err_new(ERR_INVALID, "--%s: \"%s\" is not a number", name, text != NULL ? text : "");
    *n = (uint64_t)v;
    return NULL;
}

err cli_get_format(const struct cli_call *call, enum cli_format *out)
{
    static const char *const names[] = {"table", "json", "csv"};
    const char *text = cli_get(call, "format");
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        if (strcmp(text, names[i]) != 0) continue;
        *out = (enum cli_format)i;
        return NULL;
    }
    return err_new(ERR_INVALID, "--format: \"%s\" is not one of table json csv", text);
}

err cli_time(struct cli_call *call, const char *text, int64_t now_ms, str *out)
{
    str s = str_of(text);
    bool now = str_starts_with(s, STR("now"));
    if (now) s = (str){s.p + 3, s.n - 3};
    bool relative = s.n > 1 && (s.p[0] == '-' || (now && s.p[0] == '+'));
    int64_t distance = 0;
    bool is_duration = relative && config_parse_duration((str){s.p + 1, s.n - 1}, &distance);
    bool plain_number = !now && relative && strspn(s.p + 1, "0123456789.") == s.n - 1; /* before 1970 */
    if (plain_number || (!now && !relative)) {
        *out = str_of(text);
        return NULL;
    }
    if (s.n > 0 && !is_duration)
        return err_new(ERR_INVALID, "\"%s\" is not a time: now, now-1h, -1h, seconds, or RFC 3339", text);
    char digits[32];
    int64_t at = s.n > 0 && s.p[0] == '-' ? now_ms - distance : now_ms + distance;
    *out = arena_str(&call->arena, (str){digits, num_format_ms(at, digits)});
    return NULL;
}

/* ---- help ---------------------------------------------------------------------------------------------------- */

static void help_flags(const struct cli_flag *flags, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        const struct cli_flag *f = &flags[i];
        buf_printf(out, "  --%s%s%s\n      %s", f->name, f->value != NULL ? "=" : "", f->value != NULL ? f->value : "",
                   f->help);
        if (f->initial != NULL) buf_printf(out, " (%s)", f->initial);
        if (f->variable != NULL) buf_printf(out, "; also %s", f->variable);
        buf_str(out, STR("\n"));
    }
}

void cli_help_command(const struct cli_command *command, struct buf *out)
{
    buf_printf(out, "varve %s %s\n\n  %s\n\n", command->name, command->words, command->help);
    help_flags(command->flags, command->n_flags, out);
    if (command->asks_server) help_flags(server_flags, ARRAY_LEN(server_flags), out);
    buf_str(out, STR("\nExit codes: 0 done, 1 failed, 2 wrong arguments, 3 the server refused, 4 done in part.\n"));
}
