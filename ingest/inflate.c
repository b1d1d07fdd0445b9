/*
 * inflate.c: content encodings of request bodies; the only unit that includes zlib.
 *
 * A body is expanded whole, and its trailer checked, before anything of it is looked at: a body that
 * was cut on its way stores nothing. The cap of the output buffer is the defence against bombs: output
 * grows in steps, never by what a header promises (zstd and snappy check their promise against the cap
 * first). Owns nothing between calls; any thread.
 */
#include "ingest/inflate.h"

#include <strings.h>
#include <zlib.h>

#include "ingest/text.h"
#include "storage/base/alloc.h"
#include "storage/base/snappy.h"
#include "storage/base/zframe.h"

#define STEP (64u << 10) /* least room for one call of inflate */

err encoding_parse(str header, enum encoding absent, enum encoding *out)
{
    static const struct {
        const char *name;
        enum encoding encoding;
    } table[] = {
        {"identity", ENCODING_IDENTITY}, {"gzip", ENCODING_GZIP}, {"x-gzip", ENCODING_GZIP},
        {"deflate", ENCODING_DEFLATE},   {"zstd", ENCODING_ZSTD}, {"snappy", ENCODING_SNAPPY},
    };
    header = text_trim(header);
    *out = absent;
    if (header.n == 0) return NULL;
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        if (header.n != strlen(table[i].name) || strncasecmp(header.p, table[i].name, header.n) != 0) continue;
        *out = table[i].encoding;
        return NULL;
    }
    header = text_shown(header);
    return err_new(ERR_UNSUPPORTED,
                   "Content-Encoding \"%.*s\" is not accepted; use gzip, deflate, zstd, snappy or identity",
                   STR_ARG(header));
}

/* ---- zlib --------------------------------------------------------------------------------------- */

static void *allocate(void *unused, unsigned n, unsigned size)
{
    (void)unused;
    return mem_alloc((size_t)n * size);
}

static void release(void *unused, void *p)
{
    (void)unused;
    mem_free(p);
}

/* Room for the next call of inflate: what the buffer has, at least STEP, less only at its cap. */
static uint8_t *next_room(struct buf *out, size_t *room)
{
    size_t want = out->cap - out->n > STEP ? out->cap - out->n : STEP;
    if (out->max && want > out->max - out->n) want = out->max - out->n;
    *room = want < UINT32_MAX ? want : UINT32_MAX;
    return want ? buf_reserve(out, want) : NULL;
}

/* Nothing may follow what the cap allows: one more byte of output tells a bomb from a body of just that size. */
static bool stream_ended(z_stream *z)
{
    uint8_t more;
    z->next_out = &more;
    z->avail_out = 1;
    bool ended = inflate(z, Z_NO_FLUSH) == Z_STREAM_END && z->avail_out == 1;
    z->next_out = NULL;
    return ended;
}

/* One gzip member or zlib stream. */
static err inflate_stream(z_stream *z, struct buf *out, const char *name)
{
    for (;;) {
        size_t room;
        z->next_out = next_room(out, &room);
        if (z->next_out == NULL) {
            if (stream_ended(z)) return NULL;
            return err_new(ERR_TOO_LARGE, "%s: body expands to more than the limit of %zu bytes", name, out->max);
        }
        z->avail_out = (unsigned)room;
        int r = inflate(z, Z_NO_FLUSH);
        out->n += room - z->avail_out;
        if (r == Z_STREAM_END) return NULL;
        if (r == Z_BUF_ERROR || (r == Z_OK && z->avail_in == 0 && z->avail_out > 0))
            return err_new(ERR_INVALID, "%s: body is cut off", name);
        if (r != Z_OK) return err_new(ERR_INVALID, "%s: %s", name, z->msg ? z->msg : "damaged body");
    }
}

/* bits: zlib's window bits with its markers for the container. Gzip bodies may be several members in a row. */
static err inflate_all(str body, int bits, bool members, const char *name, struct buf *out)
{
    z_stream z = {.zalloc = allocate, .zfree = release};
    z.next_in = (Bytef *)(uintptr_t)body.p; /* zlib's interface lacks the const */
    z.avail_in = (unsigned)body.n;
    if (body.n > UINT32_MAX) return err_new(ERR_TOO_LARGE, "%s: body too large", name);
    if (inflateInit2(&z, bits) != Z_OK) return err_new(ERR_INTERNAL, "zlib does not start");
    err e = inflate_stream(&z, out, name);
    while (e == NULL && members && z.avail_in > 0 && inflateReset(&z) == Z_OK)
        e = inflate_stream(&z, out, name);
    if (e == NULL && z.avail_in > 0) e = err_new(ERR_INVALID, "%s: %u bytes after the end", name, z.avail_in);
    inflateEnd(&z);
    return e;
}

/* HTTP's deflate is the zlib container; some clients send the bare stream. The container's first byte tells. */
static bool has_zlib_header(str body)
{
    if (body.n < 2) return true;
    unsigned first = (uint8_t)body.p[0], second = (uint8_t)body.p[1];
    return (first & 0x0f) == 8 && (first << 8 | second) % 31 == 0;
}

err body_expand(enum encoding encoding, str body, struct buf *out, str *raw)
{
    enum { GZIP_BITS = 16 + 15, ZLIB_BITS = 15, BARE_BITS = -15 };
    buf_clear(out);
    switch (encoding) {
    case ENCODING_IDENTITY:
        if (out->max && body.n > out->max)
            return err_new(ERR_TOO_LARGE, "body of %zu bytes, the limit is %zu", body.n, out->max);
        *raw = body;
        return NULL;
    case ENCODING_GZIP:
        TRY(inflate_all(body, GZIP_BITS, true, "gzip", out));
        break;
    case ENCODING_DEFLATE:
        TRY(inflate_all(body, has_zlib_header(body) ? ZLIB_BITS : BARE_BITS, false, "deflate", out));
        break;
    case ENCODING_ZSTD:
        TRY(zstd_expand(body.p, body.n, out));
        break;
    case ENCODING_SNAPPY:
        TRY(snappy_expand(body.p, body.n, out));
        break;
    }
    *raw = buf_as_str(out);
    return NULL;
}
