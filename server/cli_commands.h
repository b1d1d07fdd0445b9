/*
 * cli_commands.h: the commands that talk to a server or copy data directories; cli.c lists them.
 */
#ifndef VARVE_SERVER_CLI_COMMANDS_H
#define VARVE_SERVER_CLI_COMMANDS_H

#include "server/cli_call.h"

extern const struct cli_command cli_query, cli_query_range, cli_labels, cli_series; /* cli_query.c */
extern const struct cli_command cli_import;                                         /* cli_import.c */
extern const struct cli_command cli_export;                                         /* cli_export.c */
extern const struct cli_command cli_snapshot;                                       /* cli_snapshot.c */
extern const struct cli_command cli_backup, cli_restore;                            /* cli_backup.c */

#endif
