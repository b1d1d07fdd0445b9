/*
 * cli.h: the subcommands of the varve program.
 */
#ifndef VARVE_SERVER_CLI_H
#define VARVE_SERVER_CLI_H

/* Runs what the arguments ask for. Returns the exit code: 0 good, 1 it failed, 2 the arguments are wrong. */
int cli_run(int argc, char **argv, char **environment);

#endif
