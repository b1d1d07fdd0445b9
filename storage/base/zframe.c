/*
 * zframe.c: zstd frames with a checksum (layout: zframe.h), and expansion of zstd bodies from outside.
 *
 * A zctx keeps one compressor and one decompressor, made when first used: threads that only read
 * never pay for a compressor. Frames hold no zstd checksum, ours covers the sizes too. Expansion of
 * outside bytes allows a window of at most 16 MiB, whatever the sender claims, and grows its output
 * by what really came out, so a small body can't make us take much memory. A zctx is used by one
 * thread at a time; zstd_expand is free of state.
 */
#include "storage/base/zframe.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/hash.h"

#include <zstd.h>

#define RAW_FLAG (UINT32_C(1) << 31)
#define COVERED 8 /* header bytes under the checksum: both sizes */
#define EXPAND_WINDOW_LOG 24
#define STREAM_WINDOW_LOG 27     /* what zstd itself writes at most without being told that readers can do more */
#define EXPAND_STEP (128u << 10) /* output room per round: one zstd block */

struct zctx {
    ZSTD_CCtx *compressor;
    ZSTD_DCtx *decompressor;
};

struct zctx *zctx_create(void)
{
    return mem_zalloc(sizeof(struct zctx));
}

void zctx_destroy(struct zctx *z)
{
    if (!z) return;
    ZSTD_freeCCtx(z->compressor);
    ZSTD_freeDCtx(z->decompressor);
    mem_free(z);
}

/* ---- frames of ours */

static void put_header(uint8_t *frame, uint32_t payload, uint32_t raw)
{
    memcpy(frame, &payload, 4);
    memcpy(frame + 4, &raw, 4);
    uint64_t sum = checksum64_two(frame, COVERED, frame + ZFRAME_HEADER, payload);
    memcpy(frame + 8, &sum, 8);
}

/* Compressed size written to `to`, 0 when compression gains nothing (or zstd can't). */
static size_t compress(struct zctx *z, const void *p, size_t n, int level, uint8_t *to)
{
    if (!z->compressor) z->compressor = ZSTD_createCCtx();
    if (!z->compressor || n == 0) return 0;
    /* room for n - 1 bytes only: zstd gives up by itself when the result is not smaller */
    size_t got = ZSTD_compressCCtx(z->compressor, to, n - 1, p, n, level);
    return ZSTD_isError(got) ? 0 : got;
}

void zframe_put(struct zctx *z, const void *p, size_t n, int level, struct buf *out)
{
    check(n < RAW_FLAG);
    uint8_t *frame = buf_reserve(out, ZFRAME_HEADER + n);
    if (!frame) return;
    size_t payload = compress(z, p, n, level, frame + ZFRAME_HEADER);
    uint32_t raw = (uint32_t)n;
    if (payload == 0) {
        if (n) memcpy(frame + ZFRAME_HEADER, p, n);
        payload = n;
        raw |= RAW_FLAG;
    }
    put_header(frame, (uint32_t)payload, raw);
    out->n += ZFRAME_HEADER + payload;
}

err zframe_sizes(const void *header, size_t max_raw, size_t *disk, size_t *raw)
{
    uint32_t payload, word;
    memcpy(&payload, header, 4);
    memcpy(&word, (const uint8_t *)header + 4, 4);
    uint32_t expanded = word & ~RAW_FLAG;
    bool is_raw = word & RAW_FLAG;
    if (expanded > max_raw)
        return err_corrupt("frame: %u raw bytes, more than the %zu allowed here", expanded, max_raw);
    if (is_raw ? payload != expanded : payload >= expanded)
        return err_corrupt("frame: absurd sizes %u and %u", payload, expanded);
    *disk = ZFRAME_HEADER + (size_t)payload;
    *raw = expanded;
    return NULL;
}

static err verify(const uint8_t *frame, size_t payload)
{
#ifdef VARVE_NO_READ_CHECKSUMS
    (void)frame;
    (void)payload;
    return NULL;
#else
    uint64_t stored;
    memcpy(&stored, frame + 8, 8);
    if (stored == checksum64_two(frame, COVERED, frame + ZFRAME_HEADER, payload)) return NULL;
    return err_corrupt("frame: checksum mismatch over %zu bytes", payload);
#endif
}

err zframe_get(struct zctx *z, const void *p, size_t n, void *dst, size_t raw)
{
    const uint8_t *frame = p;
    size_t disk, expanded;
    if (n < ZFRAME_HEADER) return err_corrupt("frame: cut off after %zu bytes", n);
    TRY(zframe_sizes(frame, raw, &disk, &expanded));
    if (disk != n || expanded != raw)
        return err_corrupt("frame: %zu and %zu bytes where %zu and %zu were expected", disk, expanded, n, raw);
    size_t payload = n - ZFRAME_HEADER;
    TRY(verify(frame, payload));
    if (payload == raw) { /* only raw payloads are as long as what they stand for */
        if (raw) memcpy(dst, frame + ZFRAME_HEADER, raw);
        return NULL;
    }
    if (!z->decompressor) z->decompressor = ZSTD_createDCtx();
    if (!z->decompressor) return err_new(ERR_NO_MEMORY, "frame: no memory for a decompressor");
    size_t got = ZSTD_decompressDCtx(z->decompressor, dst, raw, frame + ZFRAME_HEADER, payload);
    if (ZSTD_isError(got)) return err_corrupt("frame: %s", ZSTD_getErrorName(got));
    if (got != raw) return err_corrupt("frame: %zu bytes came out, %zu were promised", got, raw);
    return NULL;
}

/* ---- bodies from outside */

/* How much room to offer for what comes next: the rest of a frame whose header gives its size, as
 * zstd then expands it in one go without a window of its own; else one step. A claim that the bytes
 * at hand can't fulfil (a block makes 128 KiB from 4 bytes at best) is not believed. */
static size_t room_for(const ZSTD_inBuffer *in, bool frame_start)
{
    size_t left = in->size - in->pos;
    if (!frame_start) return EXPAND_STEP;
    unsigned long long claim = ZSTD_getFrameContentSize((const uint8_t *)in->src + in->pos, left);
    if (claim == ZSTD_CONTENTSIZE_UNKNOWN || claim == ZSTD_CONTENTSIZE_ERROR) return EXPAND_STEP;
    if (claim > (left / 4 + 1) * EXPAND_STEP || claim < EXPAND_STEP) return EXPAND_STEP;
    return (size_t)claim;
}

static err expand_with(ZSTD_DCtx *d, const void *p, size_t n, struct buf *out)
{
    ZSTD_inBuffer in = {p, n, 0};
    bool frame_start = true;
    size_t hint = 1;
    while (in.pos < in.size || hint != 0) {
        size_t room = room_for(&in, frame_start);
        if (room > out->max - out->n) room = out->max - out->n; /* with no room left, no progress shows below */
        uint8_t *to = buf_reserve(out, room);
        if (!to) return buf_status(out, "expanded body");
        ZSTD_outBuffer sink = {to, room, 0};
        size_t before = in.pos;
        hint = ZSTD_decompressStream(d, &sink, &in);
        if (ZSTD_isError(hint)) return err_new(ERR_INVALID, "zstd: %s", ZSTD_getErrorName(hint));
        out->n += sink.pos;
        frame_start = hint == 0;
        if (sink.pos > 0 || in.pos > before) continue;
        if (room > 0) return err_new(ERR_INVALID, "zstd: the data is cut off");
        out->failed = true;
        return buf_status(out, "expanded body");
    }
    return NULL;
}

err zstd_expand(const void *p, size_t n, struct buf *out)
{
    check(out->max > 0);
    if (n == 0) return err_new(ERR_INVALID, "zstd: empty body");
    ZSTD_DCtx *d = ZSTD_createDCtx();
    if (!d) return err_new(ERR_NO_MEMORY, "zstd: no memory for a decompressor");
    ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, EXPAND_WINDOW_LOG);
    err e = expand_with(d, p, n, out);
    ZSTD_freeDCtx(d);
    return e;
}

struct zstd_stream {
    ZSTD_DCtx *d;
};

struct zstd_stream *zstd_stream_create(void)
{
    struct zstd_stream *s = mem_alloc(sizeof *s);
    s->d = ZSTD_createDCtx();
    if (s->d != NULL) ZSTD_DCtx_setParameter(s->d, ZSTD_d_windowLogMax, STREAM_WINDOW_LOG);
    return s;
}

void zstd_stream_destroy(struct zstd_stream *s)
{
    if (s == NULL) return;
    ZSTD_freeDCtx(s->d);
    mem_free(s);
}

err zstd_stream_expand(struct zstd_stream *s, str *in, void *to, size_t room, size_t *got, bool *at_end)
{
    ZSTD_inBuffer source = {in->p, in->n, 0};
    ZSTD_outBuffer sink = {to, room, 0};
    if (s->d == NULL) return err_new(ERR_NO_MEMORY, "zstd: no memory for a decompressor");
    size_t hint = ZSTD_decompressStream(s->d, &sink, &source);
    if (ZSTD_isError(hint)) return err_new(ERR_INVALID, "zstd: %s", ZSTD_getErrorName(hint));
    *in = (str){in->p + source.pos, in->n - source.pos};
    *got = sink.pos;
    *at_end = hint == 0;
    return NULL;
}
