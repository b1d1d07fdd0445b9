/*
 * assert.c: the end of a process whose invariant broke. Writes one line to stderr with write(2),
 * because the heap and stdio may be what is broken, and aborts so that a core is left.
 */
#include "storage/base/assert.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

void check_failed(const char *file, int line, const char *text)
{
    char message[512];
    int n = snprintf(message, sizeof message, "%s:%d: check failed: %s\n", file, line, text);
    size_t length = n < 0 ? 0 : (size_t)n;
    if (length >= sizeof message) length = sizeof message - 1;
    ssize_t written = write(STDERR_FILENO, message, length);
    (void)written; /* nothing is left to do about it */
    abort();
}
