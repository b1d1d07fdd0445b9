/*
 * zframe.h: zstd frames with a checksum; the only unit that includes zstd.
 *
 *   offset 0  u32  payload bytes on disk (compressed, or raw if that is not larger)
 *          4  u32  raw bytes; bit 31 set: payload is stored raw
 *          8  u64  XXH3-64 of the first 8 bytes and the payload
 *         16       payload
 *
 * Checksums are verified before any byte is decompressed; -DVARVE_NO_READ_CHECKSUMS turns that off
 * (to measure its cost only). A zctx is a scratch of one thread.
 */
#ifndef VARVE_STORAGE_BASE_ZFRAME_H
#define VARVE_STORAGE_BASE_ZFRAME_H

#include "storage/base/buf.h"

#define ZFRAME_HEADER 16

struct zctx;
struct zctx *zctx_create(void);
void zctx_destroy(struct zctx *z);

/* Appends one frame over [p, p+n) to out. level: zstd's (1 is the house's choice). */
void zframe_put(struct zctx *z, const void *p, size_t n, int level, struct buf *out);

/* Reads the header: sizes on disk (header included) and raw. ERR_CORRUPT if they exceed max_raw or are absurd. */
err zframe_sizes(const void *header, size_t max_raw, size_t *disk, size_t *raw) __attribute__((warn_unused_result));

/* Verifies and expands the frame at [p, p+n) into dst (raw bytes, as zframe_sizes said). */
err zframe_get(struct zctx *z, const void *p, size_t n, void *dst, size_t raw) __attribute__((warn_unused_result));

/* Plain zstd of outside bytes (ingest bodies, which may be several frames or lack a content size):
 * appends to out, whose cap bounds the result. ERR_INVALID on bad data, ERR_TOO_LARGE over out->max. */
err zstd_expand(const void *p, size_t n, struct buf *out) __attribute__((warn_unused_result));

/* The same piece by piece, for files of any length (windows up to 128 MiB). One thread's. */
struct zstd_stream;
struct zstd_stream *zstd_stream_create(void);
void zstd_stream_destroy(struct zstd_stream *s); /* NULL allowed */
/*
 * Takes bytes off the front of *in (moves it on) and writes up to `room` to `to`; *got says how many. *at_end: a frame
 * just ended, so the data may end here. ERR_INVALID on bad data.
 */
err zstd_stream_expand(struct zstd_stream *s, str *in, void *to, size_t room, size_t *got, bool *at_end)
    __attribute__((warn_unused_result));

#endif
