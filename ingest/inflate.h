/*
 * inflate.h: content encodings of request bodies; private to the ingest room.
 */
#ifndef VARVE_INGEST_INFLATE_H
#define VARVE_INGEST_INFLATE_H

#include "ingest/ingest.h"

enum encoding { ENCODING_IDENTITY, ENCODING_GZIP, ENCODING_DEFLATE, ENCODING_ZSTD, ENCODING_SNAPPY };

/* The value of a Content-Encoding header; empty = absent. ERR_UNSUPPORTED names what is taken. */
err encoding_parse(str header, enum encoding absent, enum encoding *out) __attribute__((warn_unused_result));

/* *raw becomes the body expanded: in out, whose cap bounds it, or the body itself for identity. The whole
 * stream is verified first: a cut or damaged body is ERR_INVALID, one over the cap ERR_TOO_LARGE. */
err body_expand(enum encoding encoding, str body, struct buf *out, str *raw) __attribute__((warn_unused_result));

#endif
