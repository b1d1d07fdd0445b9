/*
 * bench_column.c: what the columns cost: bytes a sample, raw and after zstd, and samples a second.
 *
 *   bench_column [capture.tsv.zst]
 *
 * With a capture (VARVE_CAPTURE, or the argument) real series are measured: each series is cut into
 * blocks of 120, 240, 480 samples, the blocks of neighbouring series at the same time are concatenated
 * to frames, and frames are compressed with level 1. Without one only generated kinds are measured.
 * Constant blocks are counted with their raw bytes outside of the frames, as parts store them.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/base/zframe.h"
#include "storage/column_time.h"
#include "storage/column_value.h"

#define CAPTURE_DEFAULT "/work/shared/bench/capture/fleet.tsv.zst"
#define SECONDS_A_MEASURE 0.4 /* of this thread's CPU time */
#define ROUNDS 200            /* between two looks at the clock */

/* Series of equal length, one after the other. */
struct data {
    double *v;
    size_t series, samples;
};

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* ---- the capture */

static bool read_file(const char *path, struct buf *out)
{
    FILE *f = fopen(path, "rb");
    if (f == NULL) return false;
    size_t got;
    do {
        uint8_t *p = buf_reserve(out, 65536);
        got = fread(p, 1, 65536, f);
        out->n += got;
    } while (got > 0);
    fclose(f);
    return true;
}

static double power_of_ten(long places)
{
    double p = 1;
    while (places-- > 0)
        p *= 10;
    return p;
}

/* One line's fields 3, 5 and 6 into v[0..samples); false if it is not a series. */
static bool parse_line(char *line, size_t samples, double *v)
{
    char *field[6] = {line};
    for (int i = 1; i < 6; i++) {
        char *tab = strchr(field[i - 1], '\t');
        if (tab == NULL) return false;
        *tab = 0;
        field[i] = tab + 1;
    }
    bool real = field[2][0] == 'r';
    double scale = power_of_ten(real ? 0 : strtol(field[2], NULL, 10));
    double whole = real ? 0 : (double)strtoll(field[4], NULL, 10);
    v[0] = real ? strtod(field[4], NULL) : whole / scale;
    size_t n = 1;
    for (char *p = field[5]; n < samples && *p;) {
        double step = strtod(p, &p);
        long times = *p == '*' ? strtol(p + 1, &p, 10) : 1;
        while (times-- > 0 && n < samples) {
            whole += step;
            v[n++] = real ? step : whole / scale;
        }
        while (*p == ' ')
            p++;
    }
    return n == samples;
}

static bool load_capture(const char *path, struct data *d)
{
    struct buf packed = {0}, text = {.max = 64 << 20};
    bool ok = read_file(path, &packed);
    if (ok) {
        err e = zstd_expand(packed.data, packed.n, &text);
        ok = e == NULL;
        err_free(e);
    }
    buf_deinit(&packed);
    buf_u8(&text, 0);
    char *line = ok ? (char *)text.data : NULL;
    size_t capacity = 0;
    while (line != NULL && *line) {
        char *end = strchr(line, '\n');
        if (end != NULL) *end = 0;
        if (strncmp(line, "# samples ", 10) == 0) d->samples = strtoul(line + 10, NULL, 10);
        if (line[0] != '#' && d->samples > 0) {
            d->v = mem_grow(d->v, &capacity, (d->series + 1) * d->samples, sizeof *d->v);
            d->series += parse_line(line, d->samples, d->v + d->series * d->samples);
        }
        line = end ? end + 1 : NULL;
    }
    buf_deinit(&text);
    return d->series > 0;
}

/* ---- generated kinds */

enum kind { COUNTER, SPARSE, GAUGE2, PAGES, SUMS, NOISE, KINDS };
static const char *const kind_names[KINDS] = {"counter", "sparse", "gauge .2", "pages", "sums", "noise"};

static double next_value(enum kind kind, struct rng *r, double last)
{
    switch (kind) {
    case COUNTER:
        return last + (double)(1000 + rng_below(r, 200));
    case SPARSE:
        return last + (rng_chance(r, 0.05) ? 1 : 0);
    case GAUGE2:
        return (double)rng_below(r, 10000) / 100;
    case PAGES:
        return 4096.0 * (double)(100000 + rng_below(r, 2000));
    case SUMS:
        return last + (double)rng_below(r, 50000) / 1e6;
    default:
        return rng_unit(r);
    }
}

static struct data generate(enum kind kind, size_t series, size_t samples)
{
    struct data d = {mem_alloc(series * samples * sizeof(double)), series, samples};
    struct rng r;
    rng_seed(&r, 7);
    for (size_t i = 0; i < series; i++) {
        double last = (double)rng_below(&r, 100000);
        for (size_t j = 0; j < samples; j++)
            d.v[i * samples + j] = last = next_value(kind, &r, last);
    }
    return d;
}

/* ---- measuring */

struct block {
    uint32_t offset, bytes;
    bool constant;
};

struct encoded {
    struct buf bytes;
    struct block *blocks; /* time-major: all series at one time stand together */
    size_t count, n;
    struct column_hint *hints;
};

static void encode_all(const struct data *d, struct column_scratch *s, bool with_hints, struct encoded *e)
{
    buf_clear(&e->bytes);
    size_t rounds = d->samples / e->n;
    e->count = 0;
    for (size_t round = 0; round < rounds; round++) {
        for (size_t i = 0; i < d->series; i++) {
            struct block *b = &e->blocks[e->count++];
            b->offset = (uint32_t)e->bytes.n;
            column_value_encode(s, d->v + i * d->samples + round * e->n, e->n, with_hints ? &e->hints[i] : NULL,
                                &e->bytes);
            b->bytes = (uint32_t)e->bytes.n - b->offset;
        }
    }
}

/* Compressed bytes of all blocks that are not constant, in frames of about `target` raw bytes. */
static size_t framed_size(const struct encoded *e, struct zctx *z, size_t target, size_t *constants)
{
    struct buf frame = {0}, out = {0};
    *constants = 0;
    for (size_t i = 0; i <= e->count; i++) {
        if (frame.n >= target || (i == e->count && frame.n > 0)) {
            zframe_put(z, frame.data, frame.n, 1, &out);
            buf_clear(&frame);
        }
        if (i == e->count) break;
        double v;
        const uint8_t *p = e->bytes.data + e->blocks[i].offset;
        if (column_value_is_constant(p, e->blocks[i].bytes, &v))
            *constants += 1;
        else
            buf_put(&frame, p, e->blocks[i].bytes);
    }
    size_t bytes = out.n;
    buf_deinit(&frame);
    buf_deinit(&out);
    return bytes;
}

static double encode_rate(const struct data *d, struct column_scratch *s, bool with_hints, struct encoded *e)
{
    double start = now(), spent;
    size_t samples = 0;
    do {
        encode_all(d, s, with_hints, e);
        samples += e->count * e->n;
        spent = now() - start;
    } while (spent < SECONDS_A_MEASURE);
    return (double)samples / spent / 1e6;
}

static double decode_rate(struct column_scratch *s, const struct encoded *e)
{
    static double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    double start = now(), spent;
    size_t samples = 0;
    do {
        for (size_t i = 0; i < e->count; i++)
            err_free(column_value_decode(s, e->bytes.data + e->blocks[i].offset, e->blocks[i].bytes, e->n, v));
        samples += e->count * e->n;
        spent = now() - start;
    } while (spent < SECONDS_A_MEASURE);
    return (double)samples / spent / 1e6;
}

static void measure(const char *name, const struct data *d, size_t n, struct column_scratch *s, struct zctx *z)
{
    struct encoded e = {.n = n};
    e.blocks = mem_alloc((d->samples / n) * d->series * sizeof *e.blocks);
    e.hints = mem_zalloc(d->series * sizeof *e.hints);
    double cold = encode_rate(d, s, false, &e), warm = encode_rate(d, s, true, &e), decode = decode_rate(s, &e);
    size_t constants, small = framed_size(&e, z, LIMIT_FRAME_TARGET, &constants);
    size_t large = framed_size(&e, z, 65536, &constants);
    double samples = (double)(e.count * n);
    printf("%-10s %5zu %8.3f %8.4f %8.4f %7.1f%% %9.1f %9.1f %9.1f\n", name, n, (double)e.bytes.n / samples,
           (double)small / samples, (double)large / samples, 100 * (double)constants / (double)e.count, cold, warm,
           decode);
    mem_free(e.blocks);
    mem_free(e.hints);
    buf_deinit(&e.bytes);
}

static void measure_time(size_t n, uint64_t jitter)
{
    struct rng r;
    rng_seed(&r, 7);
    int64_t t[LIMIT_BLOCK_SAMPLES], back[LIMIT_BLOCK_SAMPLES];
    for (size_t i = 0; i < n; i++)
        t[i] = 1796034208352 + (int64_t)i * 15000 + (int64_t)rng_below(&r, jitter + 1);
    struct buf out = {0};
    double start = now(), encode, decode;
    size_t samples = 0;
    do {
        for (int i = 0; i < ROUNDS; i++) {
            buf_clear(&out);
            column_time_encode(t, n, &out);
        }
        samples += ROUNDS * n;
    } while (now() - start < SECONDS_A_MEASURE / 2);
    encode = (double)samples / (now() - start) / 1e6;
    start = now();
    samples = 0;
    do {
        for (int i = 0; i < ROUNDS; i++)
            err_free(column_time_decode(out.data, out.n, n, back));
        samples += ROUNDS * n;
    } while (now() - start < SECONDS_A_MEASURE / 2);
    decode = (double)samples / (now() - start) / 1e6;
    printf("time ±%-4zu %5zu %8.3f %36s %9.1f %9s %9.1f\n", (size_t)jitter, n, (double)out.n / (double)n, "", encode,
           "", decode);
    buf_deinit(&out);
}

int main(int argc, char **argv)
{
    const char *path = argc > 1 ? argv[1] : getenv("VARVE_CAPTURE");
    struct column_scratch *s = column_scratch_create();
    struct zctx *z = zctx_create();
    printf("%-10s %5s %8s %8s %8s %8s %9s %9s %9s\n", "data", "n", "raw B", "16 KiB", "64 KiB", "const", "enc M/s",
           "hinted", "dec M/s");
    struct data capture = {0};
    if (load_capture(path ? path : CAPTURE_DEFAULT, &capture))
        for (size_t n = 120; n <= 480; n *= 2)
            measure("capture", &capture, n, s, z);
    mem_free(capture.v);
    for (enum kind kind = 0; kind < KINDS; kind++) {
        struct data d = generate(kind, 200, 2048);
        measure(kind_names[kind], &d, 240, s, z);
        measure(kind_names[kind], &d, 2048, s, z);
        mem_free(d.v);
    }
    measure_time(240, 0);
    measure_time(240, 8);
    measure_time(2048, 8);
    zctx_destroy(z);
    column_scratch_destroy(s);
    return 0;
}
