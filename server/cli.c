/*
 * cli.c: which command runs: serve (the default), verify, inspect, version, health, and the client's.
 *
 * Each command is a row of a table: its name, its words, its help. The server's own commands share the
 * option table of config.c; --detail, --json and --url belong to one each and are taken out first. verify and
 * inspect are offline and read only: they look at files, not at a running server. The client's
 * commands (cli_*.c) have flags of their own.
 */
#include "server/cli.h"

#include <stdio.h>
#include <stdlib.h>

#include "server/cli_commands.h"
#include "server/config.h"
#include "server/machine.h"
#include "server/server.h"
#include "server/version.h"
#include "storage/base/alloc.h"
#include "storage/kernels_choice.h"

enum { EXIT_GOOD, EXIT_FAILED, EXIT_USAGE };

#define HEALTH_TIMEOUT_MS 5000
#define HEALTH_BODY_MAX ((size_t)64 << 10)

struct invocation {
    struct config config;
    char **words; /* after the command's name */
    int n_words;
    const char *url;
    int detail;
    bool json;
};

static int report(err e, int code)
{
    fprintf(stderr, "varve: %s\n", err_message(e));
    err_free(e);
    return code;
}

static int print_all(const struct buf *b, FILE *to)
{
    fwrite(b->data, 1, b->n, to);
    return fflush(to) == 0 ? EXIT_GOOD : EXIT_FAILED;
}

/* ---- commands ------------------------------------------------------------------------------------------------ */

static int run_serve(struct invocation *in)
{
    if (in->n_words > 0)
        return report(err_new(ERR_INVALID, "unknown argument %s (see --help)", in->words[0]), EXIT_USAGE);
    if (in->config.storage_path[0] == '\0') return report(err_new(ERR_INVALID, "--storage.path is empty"), EXIT_USAGE);
    config_derive(&in->config, machine_memory(), machine_cores());
    return server_run(&in->config);
}

static int run_verify(struct invocation *in)
{
    if (in->n_words > 1) return report(err_new(ERR_INVALID, "verify takes one path"), EXIT_USAGE);
    const char *path = in->n_words == 1 ? in->words[0] : in->config.storage_path;
    struct buf out = {0};
    uint64_t faults = 0;
    err e = storage_verify(env_posix(), path, &out, &faults);
    print_all(&out, stdout);
    buf_deinit(&out);
    if (e != NULL) return report(e, EXIT_FAILED);
    printf("%s: %llu fault%s\n", path, (unsigned long long)faults, faults == 1 ? "" : "s");
    return faults == 0 ? EXIT_GOOD : EXIT_FAILED;
}

static int run_inspect(struct invocation *in)
{
    if (in->n_words != 1) return report(err_new(ERR_INVALID, "inspect takes one file"), EXIT_USAGE);
    struct buf out = {0};
    err e = storage_inspect(env_posix(), in->words[0], in->detail, &out);
    print_all(&out, stdout);
    buf_deinit(&out);
    return e != NULL ? report(e, EXIT_FAILED) : EXIT_GOOD;
}

/* Answers varve --version too, where there is no invocation. */
static int run_version(struct invocation *in)
{
    if (in != NULL && in->n_words > 0) return report(err_new(ERR_INVALID, "version takes --json only"), EXIT_USAGE);
    struct buf out = {0};
    if (in != NULL && in->json)
        version_print_json(&out);
    else
        version_print(&out);
    int code = print_all(&out, stdout);
    buf_deinit(&out);
    return code;
}

/* ---- health -------------------------------------------------------------------------------------------------- */

/* Where the server of the same configuration listens, as seen from this machine. */
static err own_url(const struct config *c, char *out, size_t n)
{
    size_t first = strcspn(c->listen, ",");
    const char *colon = memrchr(c->listen, ':', first);
    if (colon == NULL) return err_new(ERR_INVALID, "--web.listen-address: \"%s\" is not host:port", c->listen);
    int host = (int)(colon - c->listen), port = (int)(c->listen + first - colon - 1);
    bool any = host == 0 || strncmp(c->listen, "0.0.0.0", 7) == 0 || strncmp(c->listen, "[::]", 4) == 0;
    snprintf(out, n, "http://%.*s:%.*s/-/ready", any ? 9 : host, any ? "localhost" : c->listen, port, colon + 1);
    return NULL;
}

/* A URL without a path means the readiness page. */
static err ask_health(const char *url, struct client_answer *a, struct buf *shown)
{
    struct client *client;
    TRY(client_create(&(struct client_options){.url = url, .timeout_ms = HEALTH_TIMEOUT_MS}, &client));
    const char *base = client_url(client);
    const char *path = strchr(base + strlen("http://"), '/') != NULL ? "" : "/-/ready";
    buf_printf(shown, "%s%s", base, path);
    struct client_request rq = {.method = "GET", .path = path};
    err e = client_do(client, &rq, a, NULL, NULL);
    client_destroy(client);
    return e;
}

static int run_health(struct invocation *in)
{
    char own[256];
    const char *text = in->url;
    struct client_answer a = {.body.max = HEALTH_BODY_MAX};
    struct buf shown = {0};
    if (text == NULL) {
        err e = own_url(&in->config, own, sizeof own);
        if (e != NULL) return report(e, EXIT_USAGE);
        text = own;
    }
    err e = ask_health(text, &a, &shown);
    int code = a.status == 200 ? EXIT_GOOD : EXIT_FAILED;
    if (e != NULL)
        code = report(e, err_code(e) == ERR_INVALID || err_code(e) == ERR_UNSUPPORTED ? EXIT_USAGE : EXIT_FAILED);
    else
        printf("%.*s: %d\n", (int)shown.n, (const char *)shown.data, a.status);
    client_answer_deinit(&a);
    buf_deinit(&shown);
    return code;
}

/* ---- which --------------------------------------------------------------------------------------------------- */

static const struct command {
    const char *name, *words, *help;
    int (*run)(struct invocation *in);
} commands[] = {
    {"serve", "", "run the server (the default)", run_serve},
    {"verify", "[PATH]", "check a data directory, offline; exit code 1 if anything is damaged", run_verify},
    {"inspect", "FILE [--detail=N]", "print what a file of a data directory holds", run_inspect},
    {"version", "[--json]", "print the version, how it was built, and of what", run_version},
    {"health", "[--url=URL]", "ask a running server whether it is ready; exit code 1 if not", run_health},
};

static const struct cli_command *const client_commands[] = {
    &cli_query,  &cli_query_range, &cli_labels, &cli_series,  &cli_import,
    &cli_export, &cli_snapshot,    &cli_backup, &cli_restore,
};

static int print_help(void)
{
    struct buf out = {0};
    buf_str(&out, STR("varve: a time-series database server.\n\nCommands:\n\n"));
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        buf_printf(&out, "  varve %s %s\n      %s\n", commands[i].name, commands[i].words, commands[i].help);
    buf_str(&out, STR("\nAs a client of a running server (varve COMMAND --help shows the flags of one):\n\n"));
    for (size_t i = 0; i < ARRAY_LEN(client_commands); i++)
        buf_printf(&out, "  varve %s %s\n      %s\n", client_commands[i]->name, client_commands[i]->words,
                   client_commands[i]->help);
    buf_str(&out, STR("\nExit codes: 0 done (serve: stopped when asked to), 1 failed (damaged, not ready),\n"
                      "2 wrong arguments, 3 the server refused, 4 done in part (rejected rows).\n\n"));
    config_print_help(&out);
    int code = print_all(&out, stdout);
    buf_deinit(&out);
    return code;
}

static const struct command *command_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        if (strcmp(commands[i].name, name) == 0) return &commands[i];
    return NULL;
}

/* Takes "--name=value" or "--name value" out of argv; its value, or NULL if it is not there. */
static const char *take_own(int *argc, char **argv, const char *name)
{
    size_t n = strlen(name);
    for (int i = 1; i < *argc; i++) {
        bool joined = strncmp(argv[i], name, n) == 0 && argv[i][n] == '=';
        bool apart = strcmp(argv[i], name) == 0 && i + 1 < *argc;
        if (!joined && !apart) continue;
        const char *value = joined ? argv[i] + n + 1 : argv[i + 1];
        int taken = joined ? 1 : 2;
        memmove(argv + i, argv + i + taken, (size_t)(*argc - i - taken) * sizeof *argv);
        *argc -= taken;
        return value;
    }
    return NULL;
}

/* Takes "--name" out of argv; whether it was there. */
static bool take_flag(int *argc, char **argv, const char *name)
{
    for (int i = 1; i < *argc; i++) {
        if (strcmp(argv[i], name) != 0) continue;
        memmove(argv + i, argv + i + 1, (size_t)(*argc - i - 1) * sizeof *argv);
        (*argc)--;
        return true;
    }
    return false;
}

static bool is_word(const char *arg, const char *const *words, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (strcmp(arg, words[i]) == 0) return true;
    return false;
}

static int run_command(const struct command *command, int argc, char **argv, char **environment)
{
    struct invocation in = {0};
    in.words = mem_alloc((size_t)argc * sizeof *in.words);
    if (command->run == run_health) in.url = take_own(&argc, argv, "--url");
    if (command->run == run_version) in.json = take_flag(&argc, argv, "--json");
    const char *detail = command->run == run_inspect ? take_own(&argc, argv, "--detail") : NULL;
    in.detail = detail != NULL ? atoi(detail) : 0;
    err e = config_load(&in.config, argc, argv, environment, in.words, &in.n_words);
    int code = e != NULL ? report(e, EXIT_USAGE) : command->run(&in);
    mem_free(in.words);
    return code;
}

static const struct cli_command *client_find(const char *name)
{
    for (size_t i = 0; i < ARRAY_LEN(client_commands); i++)
        if (strcmp(client_commands[i]->name, name) == 0) return client_commands[i];
    return NULL;
}

static int print_command_help(const struct cli_command *command)
{
    struct buf out = {0};
    cli_help_command(command, &out);
    int code = print_all(&out, stdout);
    buf_deinit(&out);
    return code;
}

/* argv: what follows the command's name. */
static int run_client(const struct cli_command *command, int argc, char **argv, char **environment)
{
    static const char *const help[] = {"--help", "-h"};
    for (int i = 0; i < argc; i++)
        if (is_word(argv[i], help, ARRAY_LEN(help))) return print_command_help(command);
    struct cli_call call;
    err e = cli_call_parse(&call, command, argc, argv, environment);
    int code = e != NULL ? report(e, EXIT_USAGE) : command->run(&call);
    cli_call_deinit(&call);
    return code;
}

/* VARVE_CPU names the variant of the tight loops, to compare them or to get around a fault. */
static err choose_kernels(char **environment)
{
    static const char variable[] = "VARVE_CPU=";
    const char *name = NULL;
    for (char **e = environment; e != NULL && *e != NULL; e++)
        if (strncmp(*e, variable, sizeof variable - 1) == 0) name = *e + sizeof variable - 1;
    return err_wrap(kernels_choose(name), "VARVE_CPU");
}

int cli_run(int argc, char **argv, char **environment)
{
    static const char *const help[] = {"--help", "-h", "help"};
    static const char *const version[] = {"--version", "-v"};
    err e = choose_kernels(environment);
    if (e != NULL) return report(e, EXIT_USAGE);
    const struct cli_command *client = argc > 1 ? client_find(argv[1]) : NULL;
    if (client != NULL) return run_client(client, argc - 2, argv + 2, environment);
    if (argc > 2 && strcmp(argv[1], "help") == 0 && client_find(argv[2]) != NULL)
        return print_command_help(client_find(argv[2]));
    for (int i = 1; i < argc; i++) {
        if (is_word(argv[i], help, ARRAY_LEN(help))) return print_help();
        if (is_word(argv[i], version, ARRAY_LEN(version))) return run_version(NULL);
    }
    if (argc < 2 || argv[1][0] == '-') return run_command(&commands[0], argc, argv, environment);
    const struct command *command = command_find(argv[1]);
    if (command == NULL) return report(err_new(ERR_INVALID, "unknown command %s (see --help)", argv[1]), EXIT_USAGE);
    return run_command(command, argc - 1, argv + 1, environment);
}
