/*
 * cli_call.h: what the client commands share: their flags, exit codes, and talking to a server.
 *
 * A command is a constant struct cli_command; cli.c finds it by name, parses the flags and calls run. Commands print:
 * results to stdout, everything else to stderr. One thread.
 */
#ifndef VARVE_SERVER_CLI_CALL_H
#define VARVE_SERVER_CLI_CALL_H

#include "server/api_answer.h"
#include "server/client.h"

/* What scripts may rely on (README, "varve as a client"). */
enum cli_exit {
    CLI_OK = 0,
    CLI_FAILED = 1,  /* it could not be done: nobody answers, a file is damaged, the disk is full */
    CLI_USAGE = 2,   /* wrong arguments; nothing was done */
    CLI_REFUSED = 3, /* the server said no, and why is printed */
    CLI_PARTLY = 4,  /* import: some rows were rejected */
};

struct cli_flag {
    const char *name;     /* without the dashes */
    const char *value;    /* what it takes, as help shows it; NULL: a switch */
    const char *initial;  /* value if it is not given; NULL: none */
    const char *variable; /* environment variable that replaces `initial`; NULL: none */
    const char *help;
};

struct cli_call;
struct cli_command {
    const char *name, *words, *help;
    int min_words, max_words; /* arguments that are no flags */
    bool asks_server;         /* takes --url, --bearer-token, --timeout too */
    const struct cli_flag *flags;
    size_t n_flags;
    int (*run)(struct cli_call *call); /* enum cli_exit */
};

/* A command's arguments. Strings are argv's and the environment's. */
struct cli_call {
    const struct cli_command *command;
    const char **words;
    int n_words;
    struct cli_value {
        const struct cli_flag *flag;
        const char *text; /* "" of a switch */
    } * values;
    size_t n_values;
    char **environment;
    struct arena arena; /* lives as long as the call */
};

/* Takes argv (without program and command name) apart. ERR_INVALID names what is wrong. Needs cli_call_deinit always.
 */
err cli_call_parse(struct cli_call *call, const struct cli_command *command, int argc, char **argv, char **environment)
    __attribute__((warn_unused_result));
void cli_call_deinit(struct cli_call *call);

/* The value of a flag: the last given, else the environment's, else its initial one, else NULL. */
const char *cli_get(const struct cli_call *call, const char *name);
bool cli_has(const struct cli_call *call, const char *name);
/* The i-th of a flag that was given several times, NULL beyond. */
const char *cli_nth(const struct cli_call *call, const char *name, size_t i);
err cli_get_duration(const struct cli_call *call, const char *name, int64_t *ms) __attribute__((warn_unused_result));
err cli_get_count(const struct cli_call *call, const char *name, uint64_t *n) __attribute__((warn_unused_result));

enum cli_format { CLI_TABLE, CLI_JSON, CLI_CSV };
err cli_get_format(const struct cli_call *call, enum cli_format *out) __attribute__((warn_unused_result));
/* A time as the API takes it: as it is, but "now", "now-1h", "-1h" become seconds. now_ms: the clock. */
err cli_time(struct cli_call *call, const char *text, int64_t now_ms, str *out) __attribute__((warn_unused_result));

void cli_help_command(const struct cli_command *command, struct buf *out);

/* Prints e ("varve: ...") and frees it; the exit code that its kind stands for. */
int cli_report(err e);
/* Writes b to stdout; CLI_FAILED, said on stderr, if that fails. */
int cli_print(const struct buf *b);
/* May `file` show escape codes? A terminal, no NO_COLOR, no TERM=dumb. */
bool cli_colours(const struct cli_call *call, int fd);

/* A client for --url with --bearer-token and --timeout. */
err cli_connect(const struct cli_call *call, struct client **out) __attribute__((warn_unused_result));
/* Adds "name=value" to a form, escaped; nothing for a NULL value. */
void cli_form(struct buf *form, const char *name, const char *value);
/* All values of a repeated flag under one form name. */
void cli_form_all(struct buf *form, const struct cli_call *call, const char *flag, const char *name);

/*
 * Sends a form by POST and takes the answer apart; warnings and infos go to stderr. An error that the server answers is
 * printed (with `query`, if not NULL, and a mark under the place that the error names) and gives CLI_REFUSED; a failure
 * to ask CLI_FAILED. `a` needs client_answer_deinit always; `out` refers to it.
 */
int cli_ask(struct cli_call *call, const char *path, const struct buf *form, const char *query, struct client_answer *a,
            struct api_answer *out);
/* Prints what a server answered instead of success; CLI_REFUSED. */
int cli_refused(struct cli_call *call, const struct client_answer *a, const char *query);
/* The query with a mark under the place that the error names; nothing if it names none in it. */
void cli_mark_place(str query, str error, bool colours, struct buf *out);

#endif
