/*
 * cli_input.c: a file or the standard input as a stream of bytes, expanded if it is gzip or zstd.
 *
 * The first bytes tell the compression, not the name. Files of several gzip members or zstd frames
 * are one stream, as their tools see it. Memory: one piece of the file, and zlib's or zstd's window.
 * One thread's.
 */
#include "server/cli_input.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include "storage/base/alloc.h"
#include "storage/base/zframe.h"

#define PIECE ((size_t)256 << 10)
#define MAGIC_BYTES 4
#define GZIP_BITS (15 + 16) /* zlib's largest window; + 16: the gzip container */

enum packing { PACKING_UNKNOWN, PACKING_NONE, PACKING_GZIP, PACKING_ZSTD };

struct input {
    int fd;
    uint64_t taken, size;
    enum packing packing;
    bool at_end;   /* the file has no more bytes */
    bool may_end;  /* the compressed stream is between members */
    str rest;      /* of the piece: read, not used yet */
    z_stream zlib; /* PACKING_GZIP */
    struct zstd_stream *zstd;
    char piece[PIECE];
};

struct input *input_of(int fd)
{
    struct stat st;
    struct input *in = mem_zalloc(sizeof *in);
    in->fd = fd;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode)) in->size = (uint64_t)st.st_size;
    return in;
}

err input_open(const char *path, struct input **out)
{
    int fd = strcmp(path, "-") == 0 ? dup(STDIN_FILENO) : open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0) return err_errno(errno, "open %s", path);
    *out = input_of(fd);
    return NULL;
}

void input_close(struct input *in)
{
    if (in == NULL) return;
    if (in->packing == PACKING_GZIP) inflateEnd(&in->zlib);
    zstd_stream_destroy(in->zstd);
    close(in->fd);
    mem_free(in);
}

uint64_t input_taken(const struct input *in)
{
    return in->taken;
}

uint64_t input_size(const struct input *in)
{
    return in->size;
}

/* Reads on behind what is left of the piece. */
static err fill(struct input *in)
{
    if (in->rest.n > 0) memmove(in->piece, in->rest.p, in->rest.n);
    in->rest.p = in->piece;
    ssize_t n;
    do
        n = read(in->fd, in->piece + in->rest.n, PIECE - in->rest.n);
    while (n < 0 && errno == EINTR);
    if (n < 0) return err_errno(errno, "read");
    in->at_end = n == 0;
    in->rest.n += (size_t)n;
    in->taken += (uint64_t)n;
    return NULL;
}

static void *zlib_alloc(void *arg, unsigned items, unsigned size)
{
    (void)arg;
    return mem_alloc((size_t)items * size);
}

static void zlib_free(void *arg, void *p)
{
    (void)arg;
    mem_free(p);
}

static err recognize(struct input *in)
{
    static const char gzip[] = "\x1f\x8b", zstd[] = "\x28\xb5\x2f\xfd";
    while (in->rest.n < MAGIC_BYTES && !in->at_end)
        TRY(fill(in));
    in->packing = PACKING_NONE;
    if (str_starts_with(in->rest, STR(zstd))) {
        in->packing = PACKING_ZSTD;
        in->zstd = zstd_stream_create();
    } else if (str_starts_with(in->rest, STR(gzip))) {
        in->zlib = (z_stream){.zalloc = zlib_alloc, .zfree = zlib_free};
        if (inflateInit2(&in->zlib, GZIP_BITS) != Z_OK) return err_new(ERR_INTERNAL, "zlib does not start");
        in->packing = PACKING_GZIP;
    }
    return NULL;
}

static err expand_gzip(struct input *in, void *to, size_t room, size_t *got)
{
    if (in->may_end) {
        if (inflateReset(&in->zlib) != Z_OK) return err_new(ERR_INTERNAL, "zlib does not start");
        in->may_end = false;
    }
    in->zlib.next_in = (Bytef *)(uintptr_t)in->rest.p; /* zlib's interface lacks the const */
    in->zlib.avail_in = (unsigned)in->rest.n;
    in->zlib.next_out = to;
    in->zlib.avail_out = room < UINT32_MAX ? (unsigned)room : UINT32_MAX;
    size_t offered = in->zlib.avail_out;
    int r = inflate(&in->zlib, Z_NO_FLUSH);
    *got = offered - in->zlib.avail_out;
    in->rest = (str){in->rest.p + (in->rest.n - in->zlib.avail_in), in->zlib.avail_in};
    in->may_end = r == Z_STREAM_END;
    if (r == Z_OK || r == Z_STREAM_END || r == Z_BUF_ERROR) return NULL;
    return err_new(ERR_INVALID, "gzip: %s", in->zlib.msg != NULL ? in->zlib.msg : "damaged data");
}

static void copy_plain(struct input *in, void *to, size_t room, size_t *got)
{
    *got = in->rest.n < room ? in->rest.n : room;
    memcpy(to, in->rest.p, *got);
    in->rest = (str){in->rest.p + *got, in->rest.n - *got};
}

/* From what is in the piece; *got 0: more of the file is needed. */
static err expand(struct input *in, void *to, size_t room, size_t *got)
{
    *got = 0;
    if (in->packing == PACKING_GZIP) return expand_gzip(in, to, room, got);
    if (in->packing == PACKING_ZSTD) return zstd_stream_expand(in->zstd, &in->rest, to, room, got, &in->may_end);
    copy_plain(in, to, room, got);
    return NULL;
}

err input_read(struct input *in, void *to, size_t room, size_t *got)
{
    if (in->packing == PACKING_UNKNOWN) TRY(recognize(in));
    for (;;) {
        size_t before = in->rest.n;
        bool between = in->may_end && in->rest.n == 0;
        *got = 0;
        if (!between) TRY(expand(in, to, room, got)); /* without input too: output may be held back */
        if (*got > 0) return NULL;
        if (in->rest.n < before) continue; /* a header, a trailer */
        if (in->at_end) break;
        TRY(fill(in));
    }
    bool whole = in->packing == PACKING_NONE || (in->may_end && in->rest.n == 0);
    return whole ? NULL : err_new(ERR_INVALID, "the compressed data is cut off");
}
