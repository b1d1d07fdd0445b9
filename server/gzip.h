/*
 * gzip.h: compression of answers, and expansion of what is stored compressed.
 */
#ifndef VARVE_SERVER_GZIP_H
#define VARVE_SERVER_GZIP_H

#include "storage/base/buf.h"

/* True if an Accept-Encoding header names gzip, or *, with a weight that is not 0. */
bool gzip_accepted(str accept_encoding);
/* The whole of in (below 2 GiB), compressed into the empty out; false if that did not work or did not help. */
bool gzip_whole(const struct buf *in, struct buf *out);

/* A gzip member of n bytes when expanded, expanded into the empty out; false if it is not such a one. */
bool gzip_expand(str in, size_t n, struct buf *out);

/* Piece by piece: what comes out goes to emit, whose false ends it all. One thread. */
typedef bool (*gzip_emit_fn)(void *arg, str bytes);
struct gzip;
struct gzip *gzip_create(gzip_emit_fn emit, void *arg);
void gzip_destroy(struct gzip *g); /* NULL allowed */
bool gzip_write(struct gzip *g, str bytes);
bool gzip_finish(struct gzip *g);

#endif
