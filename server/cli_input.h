/*
 * cli_input.h: a file or the standard input as a stream of bytes, expanded if it is gzip or zstd.
 */
#ifndef VARVE_SERVER_CLI_INPUT_H
#define VARVE_SERVER_CLI_INPUT_H

#include "storage/base/err.h"

struct input;
/* Opens path, or the standard input for "-". */
err input_open(const char *path, struct input **out) __attribute__((warn_unused_result));
/* The same over a descriptor, which input_close closes. */
struct input *input_of(int fd);
void input_close(struct input *in); /* NULL allowed */

/* Up to room bytes of the expanded stream; *got 0: its end. ERR_INVALID: compressed data is damaged or cut off. */
err input_read(struct input *in, void *to, size_t room, size_t *got) __attribute__((warn_unused_result));

uint64_t input_taken(const struct input *in); /* bytes of the file read so far, before expanding */
uint64_t input_size(const struct input *in);  /* bytes of the file; 0: not known (a pipe) */

#endif
