/*
 * gzip.c: the one compression of answers, whole or piece by piece.
 *
 * Only gzip is offered: other codings break clients (Grafana's query path among them). The window is
 * small (8 KiB, about 100 KiB of memory while it runs): answers are repetitive JSON, and the memory
 * is a request's. Level 1: the network is rarely slower than that.
 */
#include "server/gzip.h"

#include <strings.h>
#include <zlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/num.h"

#define LEVEL 1
#define WINDOW (13 + 16) /* 2^13 bytes; + 16: gzip framing */
#define MEMORY 7
#define PIECE ((size_t)16 << 10)

struct gzip {
    z_stream z;
    gzip_emit_fn emit;
    void *arg;
    bool stopped; /* emit said so */
    unsigned char piece[PIECE];
};

static str trim(str s)
{
    while (s.n > 0 && (s.p[0] == ' ' || s.p[0] == '\t'))
        s = (str){s.p + 1, s.n - 1};
    while (s.n > 0 && (s.p[s.n - 1] == ' ' || s.p[s.n - 1] == '\t'))
        s.n--;
    return s;
}

/* Up to the first `c` of *s, trimmed; *s goes on behind it. */
static str next_item(str *s, char c)
{
    const char *at = memchr(s->p, c, s->n);
    str head = {s->p, at == NULL ? s->n : (size_t)(at - s->p)};
    size_t taken = head.n + (at != NULL);
    *s = (str){s->p + taken, s->n - taken};
    return trim(head);
}

bool gzip_accepted(str header)
{
    while (header.n > 0) {
        str weight = next_item(&header, ',');
        str name = next_item(&weight, ';');
        weight = trim(weight);
        bool gzip = name.n == 4 && strncasecmp(name.p, "gzip", 4) == 0;
        if (!gzip && !str_eq(name, STR("*"))) continue;
        double q = 1;
        if (str_starts_with(weight, STR("q=")) && !num_parse_double((str){weight.p + 2, weight.n - 2}, &q)) q = 0;
        return q > 0;
    }
    return false;
}

static void *gzip_alloc(void *arg, unsigned items, unsigned size)
{
    (void)arg;
    return mem_alloc((size_t)items * size);
}

static void gzip_free(void *arg, void *p)
{
    (void)arg;
    mem_free(p);
}

bool gzip_whole(const struct buf *in, struct buf *out)
{
    z_stream z = {.zalloc = gzip_alloc, .zfree = gzip_free};
    if (deflateInit2(&z, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) != Z_OK) return false;
    size_t bound = deflateBound(&z, in->n);
    z.next_in = in->data;
    z.avail_in = (unsigned)in->n;
    z.next_out = buf_reserve(out, bound);
    z.avail_out = (unsigned)bound;
    int rc = deflate(&z, Z_FINISH);
    out->n = z.total_out;
    deflateEnd(&z);
    return rc == Z_STREAM_END && out->n < in->n;
}

bool gzip_expand(str in, size_t n, struct buf *out)
{
    z_stream z = {.zalloc = gzip_alloc, .zfree = gzip_free};
    if (inflateInit2(&z, 15 + 16) != Z_OK) return false;
    z.next_in = (Bytef *)(uintptr_t)in.p; /* zlib's interface lacks the const */
    z.avail_in = (unsigned)in.n;
    z.next_out = buf_reserve(out, n);
    z.avail_out = (unsigned)n;
    int rc = inflate(&z, Z_FINISH);
    out->n = z.total_out;
    inflateEnd(&z);
    return rc == Z_STREAM_END && out->n == n;
}

struct gzip *gzip_create(gzip_emit_fn emit, void *arg)
{
    struct gzip *g = mem_zalloc(sizeof *g);
    g->emit = emit;
    g->arg = arg;
    g->z.zalloc = gzip_alloc;
    g->z.zfree = gzip_free;
    check(deflateInit2(&g->z, LEVEL, Z_DEFLATED, WINDOW, MEMORY, Z_DEFAULT_STRATEGY) == Z_OK);
    return g;
}

void gzip_destroy(struct gzip *g)
{
    if (g == NULL) return;
    deflateEnd(&g->z);
    mem_free(g);
}

/* Runs deflate until it has nothing more to say for now. */
static bool run(struct gzip *g, int flush)
{
    do {
        g->z.next_out = g->piece;
        g->z.avail_out = sizeof g->piece;
        deflate(&g->z, flush);
        size_t n = sizeof g->piece - g->z.avail_out;
        if (n > 0 && !g->stopped) g->stopped = !g->emit(g->arg, (str){(const char *)g->piece, n});
    } while (g->z.avail_out == 0 && !g->stopped);
    return !g->stopped;
}

bool gzip_write(struct gzip *g, str bytes)
{
    while (bytes.n > 0 && !g->stopped) {
        size_t n = bytes.n < PIECE ? bytes.n : PIECE;
        g->z.next_in = (unsigned char *)bytes.p;
        g->z.avail_in = (unsigned)n;
        run(g, Z_NO_FLUSH);
        bytes = (str){bytes.p + n, bytes.n - n};
    }
    return !g->stopped;
}

bool gzip_finish(struct gzip *g)
{
    g->z.avail_in = 0;
    return run(g, Z_FINISH);
}
