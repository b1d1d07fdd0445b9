/*
 * wire.h: the head of an answer as bytes.
 *
 * Pure text; memory is the caller's. Any thread.
 */
#ifndef VARVE_SERVER_WIRE_H
#define VARVE_SERVER_WIRE_H

#include "server/exchange.h"

#define WIRE_HEAD_MAX 2048

struct wire_options {
    const char *date; /* as HTTP writes it */
    bool close;       /* the connection ends after this answer */
    bool chunked;     /* length unknown; only for HTTP/1.1 */
};

/* Writes status line and headers of x->out into out (WIRE_HEAD_MAX bytes); the length. */
size_t wire_head(const struct exchange *x, const struct wire_options *o, char *out);
/* "Mon, 30 Nov 2026 13:41:16 GMT" into out (32 bytes). */
void wire_date(int64_t now_ms, char *out);

#endif
