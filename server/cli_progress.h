/*
 * cli_progress.h: how far a long command is, on stderr: a bar on a terminal, a plain line now and then elsewhere.
 */
#ifndef VARVE_SERVER_CLI_PROGRESS_H
#define VARVE_SERVER_CLI_PROGRESS_H

#include "storage/base/buf.h"

struct progress {
    const char *rows;           /* what is counted: "samples"; NULL: bytes alone */
    uint64_t bytes, total;      /* total 0: not known */
    uint64_t n;                 /* rows so far */
    uint64_t start_ns, next_ns; /* next_ns: when to show it again */
    bool bar;                   /* stderr is a terminal */
    bool shown;
};

void progress_start(struct progress *p, const char *rows, uint64_t total);
/* Sets how far it is; prints if it is time to. */
void progress_update(struct progress *p, uint64_t bytes, uint64_t n);
/* Takes the bar away, so that something else can be printed. */
void progress_clear(struct progress *p);
double progress_seconds(const struct progress *p);

/* The line itself: bar or not, after so many seconds. */
void progress_line(const struct progress *p, double seconds, struct buf *out);
/* 12.3 MiB; 1.2M */
void progress_bytes(struct buf *out, uint64_t bytes);
void progress_count(struct buf *out, double n);

#endif
