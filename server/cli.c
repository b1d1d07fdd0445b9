/*
 * cli.c: serve (the default), verify, inspect, version, health, help.
 *
 * Each command is a row of the table: its name, its words, its help. The commands share the option
 * table of config.c; --detail and --url belong to one command each and are taken out first. verify
 * and inspect are offline and read only: they look at files, not at a running server.
 */
#include "server/cli.h"

#include <errno.h>
#include <netdb.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <unistd.h>

#include "server/config.h"
#include "server/machine.h"
#include "server/server.h"
#include "storage/base/alloc.h"

enum { EXIT_GOOD, EXIT_FAILED, EXIT_USAGE };

struct invocation {
    struct config config;
    char **words; /* after the command's name */
    int n_words;
    const char *url;
    int detail;
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

static int run_version(struct invocation *in)
{
    (void)in;
    printf("varve %s (%s)\n", VARVE_VERSION, VARVE_REVISION);
    return EXIT_GOOD;
}

/* ---- health -------------------------------------------------------------------------------------------------- */

/* http://host:port/path taken apart; no other form is needed for a health check. */
struct url {
    char host[128], port[8];
    const char *path;
};

static err url_parse(const char *text, struct url *u)
{
    str rest = str_of(text), scheme = STR("http://");
    if (!str_starts_with(rest, scheme)) return err_new(ERR_INVALID, "--url: \"%s\" does not begin with http://", text);
    const char *host = text + scheme.n;
    size_t n = strcspn(host, "/");
    u->path = host[n] == '/' ? host + n : "/-/ready";
    bool v6 = host[0] == '[';
    const char *end = v6 ? memchr(host, ']', n) : memchr(host, ':', n);
    if (v6 && end == NULL) return err_new(ERR_INVALID, "--url: \"%s\": a bracket is missing", text);
    size_t host_n = end != NULL ? (size_t)(end - host) - (v6 ? 1 : 0) : n;
    const char *port = v6 ? end + 1 : end;
    bool has_port = port != NULL && port < host + n && *port == ':';
    snprintf(u->host, sizeof u->host, "%.*s", (int)host_n, host + (v6 ? 1 : 0));
    snprintf(u->port, sizeof u->port, "%.*s", has_port ? (int)(host + n - port - 1) : 2, has_port ? port + 1 : "80");
    return NULL;
}

/* A connection to one of the host's addresses. "localhost" is loopback without asking: in an image there may be no file
 * of hosts, and a name server may not know it. */
static err connect_to(const struct url *u, int *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found = NULL;
    const char *host = strcmp(u->host, "localhost") == 0 ? NULL : u->host;
    int failed = getaddrinfo(host, u->port, &hints, &found);
    if (failed != 0) return err_new(ERR_IO, "can't find host \"%s\": %s", u->host, gai_strerror(failed));
    int fd = -1, why = 0;
    struct timeval patience = {.tv_sec = 5};
    for (struct addrinfo *a = found; a != NULL && fd < 0; a = a->ai_next) {
        fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (fd < 0) continue;
        setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof patience);
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience);
        if (connect(fd, a->ai_addr, a->ai_addrlen) == 0) break;
        why = errno;
        close(fd);
        fd = -1;
    }
    freeaddrinfo(found);
    *out = fd;
    return fd >= 0 ? NULL : err_errno(why, "can't connect to %s port %s", u->host, u->port);
}

/* The status code of a GET, or -1. */
static int get_status(int fd, const struct url *u)
{
    char text[512];
    int n = snprintf(text, sizeof text, "GET %s HTTP/1.0\r\nHost: %s\r\n\r\n", u->path, u->host);
    if (n < 0 || (size_t)n >= sizeof text || write(fd, text, (size_t)n) != n) return -1;
    size_t have = 0;
    while (have < 12) {
        ssize_t got = read(fd, text + have, sizeof text - 1 - have);
        if (got <= 0) return -1;
        have += (size_t)got;
    }
    text[have] = '\0';
    return strncmp(text, "HTTP/1.", 7) == 0 ? atoi(text + 9) : -1;
}

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

static int run_health(struct invocation *in)
{
    char own[256];
    const char *text = in->url;
    struct url u = {0};
    err e = NULL;
    if (text == NULL) {
        e = own_url(&in->config, own, sizeof own);
        text = own;
    }
    if (e == NULL) e = url_parse(text, &u);
    if (e != NULL) return report(e, EXIT_USAGE);
    int fd = -1;
    e = connect_to(&u, &fd);
    if (e != NULL) return report(e, EXIT_FAILED);
    int status = get_status(fd, &u);
    close(fd);
    if (status < 0) return report(err_new(ERR_IO, "no answer from %s", text), EXIT_FAILED);
    printf("%s: %d\n", text, status);
    return status == 200 ? EXIT_GOOD : EXIT_FAILED;
}

/* ---- which --------------------------------------------------------------------------------------------------- */

static const struct command {
    const char *name, *words, *help;
    int (*run)(struct invocation *in);
} commands[] = {
    {"serve", "", "run the server (the default)", run_serve},
    {"verify", "[PATH]", "check a data directory, offline; exit code 1 if anything is damaged", run_verify},
    {"inspect", "FILE [--detail=N]", "print what a file of a data directory holds", run_inspect},
    {"version", "", "print the version", run_version},
    {"health", "[--url=URL]", "ask a running server whether it is ready; exit code 1 if not", run_health},
};

static int print_help(void)
{
    struct buf out = {0};
    buf_str(&out, STR("varve: a time-series database server.\n\nCommands:\n\n"));
    for (size_t i = 0; i < ARRAY_LEN(commands); i++)
        buf_printf(&out, "  varve %s %s\n      %s\n", commands[i].name, commands[i].words, commands[i].help);
    buf_str(&out, STR("\nExit codes: 0 good (serve: stopped when asked to), 1 it failed, 2 wrong arguments.\n\n"));
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
    const char *detail = command->run == run_inspect ? take_own(&argc, argv, "--detail") : NULL;
    in.detail = detail != NULL ? atoi(detail) : 0;
    err e = config_load(&in.config, argc, argv, environment, in.words, &in.n_words);
    int code = e != NULL ? report(e, EXIT_USAGE) : command->run(&in);
    mem_free(in.words);
    return code;
}

int cli_run(int argc, char **argv, char **environment)
{
    static const char *const help[] = {"--help", "-h", "help"};
    static const char *const version[] = {"--version", "-v"};
    for (int i = 1; i < argc; i++) {
        if (is_word(argv[i], help, ARRAY_LEN(help))) return print_help();
        if (is_word(argv[i], version, ARRAY_LEN(version))) return run_version(NULL);
    }
    if (argc < 2 || argv[1][0] == '-') return run_command(&commands[0], argc, argv, environment);
    const struct command *command = command_find(argv[1]);
    if (command == NULL) return report(err_new(ERR_INVALID, "unknown command %s (see --help)", argv[1]), EXIT_USAGE);
    return run_command(command, argc - 1, argv + 1, environment);
}
