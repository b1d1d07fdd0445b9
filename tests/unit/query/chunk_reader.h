/*
 * chunk_reader.h: reads Prometheus's chunks, written for the tests alone from the format's description: bit by bit, one
 * function a kind. Arrays are as long as the tests need.
 */
#ifndef VARVE_TESTS_QUERY_CHUNK_READER_H
#define VARVE_TESTS_QUERY_CHUNK_READER_H

#include "storage/column_hist.h"
#include "tests/unit/testing.h"

struct bit_reader {
    const uint8_t *p;
    size_t n, at; /* bytes; bit */
};

static inline uint64_t read_bits(struct bit_reader *r, unsigned n)
{
    uint64_t v = 0;
    for (unsigned i = 0; i < n; i++, r->at++) {
        assert_true(r->at / 8 < r->n);
        v = v << 1 | (r->p[r->at / 8] >> (7 - r->at % 8) & 1);
    }
    return v;
}

/* Ones until a zero, at most `max`. */
static inline unsigned read_ones(struct bit_reader *r, unsigned max)
{
    unsigned n = 0;
    while (n < max && read_bits(r, 1))
        n++;
    return n;
}

/* n bits whose upper half, but for the first number of it, means negative ones. */
static inline int64_t read_signed(struct bit_reader *r, unsigned n)
{
    uint64_t v = read_bits(r, n);
    if (n < 64 && v > UINT64_C(1) << (n - 1)) v -= UINT64_C(1) << n;
    return (int64_t)v;
}

static const unsigned varbit_sizes[] = {0, 3, 6, 9, 12, 18, 25, 56, 64};

static inline int64_t read_varbit(struct bit_reader *r)
{
    unsigned size = varbit_sizes[read_ones(r, 8)];
    return size ? read_signed(r, size) : 0;
}

static inline uint64_t read_varbit_unsigned(struct bit_reader *r)
{
    unsigned size = varbit_sizes[read_ones(r, 8)];
    return size ? read_bits(r, size) : 0;
}

static inline uint64_t read_varint(struct bit_reader *r)
{
    uint64_t v = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint64_t byte = read_bits(r, 8);
        v |= (byte & 127) << shift;
        if (byte < 128) return v;
    }
}

struct xor_reader {
    uint64_t bits;
    unsigned leading, size;
};

static inline double read_xor(struct bit_reader *r, struct xor_reader *x)
{
    if (read_bits(r, 1)) {
        if (read_bits(r, 1)) {
            x->leading = (unsigned)read_bits(r, 5);
            x->size = (unsigned)read_bits(r, 6);
            if (x->size == 0) x->size = 64;
        }
        assert_true(x->size > 0);
        x->bits ^= read_bits(r, x->size) << (64 - x->leading - x->size);
    }
    return f64_from_bits(x->bits);
}

static inline uint32_t read_chunk_start(struct bit_reader *r, const uint8_t *p, size_t n)
{
    *r = (struct bit_reader){.p = p, .n = n};
    return (uint32_t)read_bits(r, 16);
}

/* No more than the padding is left. */
static inline void read_chunk_end(const struct bit_reader *r)
{
    assert_int_equal((r->at + 7) / 8, r->n);
}

/* The samples of an XOR chunk; how many. */
static inline uint32_t read_xor_chunk(const uint8_t *p, size_t n, int64_t *t, double *v, uint32_t max)
{
    static const unsigned sizes[] = {0, 14, 17, 20, 64};
    struct bit_reader r;
    struct xor_reader x = {0};
    uint32_t count = read_chunk_start(&r, p, n);
    int64_t delta = 0;
    assert_true(count <= max);
    for (uint32_t i = 0; i < count; i++) {
        if (i == 0) {
            uint64_t u = read_varint(&r);
            t[0] = (int64_t)(u >> 1) ^ -(int64_t)(u & 1);
            x.bits = read_bits(&r, 64);
            v[0] = f64_from_bits(x.bits);
            continue;
        }
        unsigned size = i == 1 ? 0 : sizes[read_ones(&r, 4)];
        if (i == 1)
            delta = (int64_t)read_varint(&r);
        else if (size)
            delta += read_signed(&r, size);
        t[i] = t[i - 1] + delta;
        v[i] = read_xor(&r, &x);
    }
    read_chunk_end(&r);
    return count;
}

/* ---- histograms */

struct hist_chunk {
    uint32_t n;
    unsigned header; /* the two bits */
    struct hist layout;
    int64_t t[256];
    struct hist h[256];
};

static inline struct hist_span *read_spans(struct bit_reader *r, struct arena *a, uint32_t *n, uint32_t *buckets)
{
    *n = (uint32_t)read_varbit_unsigned(r);
    struct hist_span *spans = arena_zalloc(a, *n * sizeof *spans);
    *buckets = 0;
    for (uint32_t i = 0; i < *n; i++) {
        spans[i].length = (uint32_t)read_varbit_unsigned(r);
        spans[i].offset = (int32_t)read_varbit(r);
        *buckets += spans[i].length;
    }
    return spans;
}

static inline double read_threshold(struct bit_reader *r)
{
    unsigned code = (unsigned)read_bits(r, 8);
    if (code == 0) return 0;
    return code == 255 ? f64_from_bits(read_bits(r, 64)) : __builtin_ldexp(0.5, (int)code - 243);
}

static inline void read_layout(struct bit_reader *r, struct arena *a, struct hist *h)
{
    h->zero_threshold = read_threshold(r);
    h->schema = (int32_t)read_varbit(r);
    h->positive_spans = read_spans(r, a, &h->n_positive_spans, &h->n_positive);
    h->negative_spans = read_spans(r, a, &h->n_negative_spans, &h->n_negative);
    if (h->schema != HIST_SCHEMA_CUSTOM) return;
    h->n_custom = (uint32_t)read_varbit_unsigned(r);
    h->custom = arena_zalloc(a, h->n_custom * sizeof *h->custom);
    for (uint32_t i = 0; i < h->n_custom; i++) {
        uint64_t u = read_varbit_unsigned(r);
        h->custom[i] = u ? (double)(u - 1) / 1000 : f64_from_bits(read_bits(r, 64));
    }
}

/* A count that changes: integers by the change of the change, floats by xor. */
struct count_reader {
    int64_t number, delta;
    struct xor_reader x;
};

static inline double read_count(struct bit_reader *r, struct count_reader *c, bool is_float, bool first, bool is_signed)
{
    if (is_float && first) c->x.bits = read_bits(r, 64);
    if (is_float) return first ? f64_from_bits(c->x.bits) : read_xor(r, &c->x);
    if (first) {
        c->number = is_signed ? read_varbit(r) : (int64_t)read_varbit_unsigned(r);
    } else {
        c->delta += read_varbit(r);
        c->number += c->delta;
    }
    return (double)c->number;
}

static inline double *read_buckets(struct bit_reader *r, struct arena *a, struct count_reader *c, uint32_t n,
                                   bool is_float, bool first)
{
    double *v = arena_zalloc(a, n * sizeof *v), before = 0;
    for (uint32_t i = 0; i < n; i++) {
        v[i] = read_count(r, &c[i], is_float, first, true) + (is_float ? 0 : before);
        before = v[i];
    }
    return v;
}

static inline void read_hist_chunk(const uint8_t *p, size_t n, bool is_float, struct arena *a, struct hist_chunk *out)
{
    struct bit_reader r;
    struct count_reader count = {0}, zero = {0};
    struct xor_reader sum = {0};
    out->n = read_chunk_start(&r, p, n);
    assert_true(out->n > 0 && out->n <= 256);
    out->header = (unsigned)read_bits(&r, 8) >> 6;
    out->layout = (struct hist){.is_float = is_float};
    read_layout(&r, a, &out->layout);
    uint32_t buckets = out->layout.n_positive + out->layout.n_negative;
    struct count_reader *c = arena_zalloc(a, buckets * sizeof *c);
    int64_t delta = 0;
    for (uint32_t i = 0; i < out->n; i++) {
        struct hist *h = &out->h[i];
        *h = out->layout;
        if (i > 0) delta += read_varbit(&r);
        out->t[i] = i ? out->t[i - 1] + delta : read_varbit(&r);
        h->count = read_count(&r, &count, is_float, i == 0, false);
        h->zero_count = read_count(&r, &zero, is_float, i == 0, false);
        if (i == 0) sum.bits = read_bits(&r, 64);
        h->sum = i ? read_xor(&r, &sum) : f64_from_bits(sum.bits);
        if (is_stale_nan(h->sum)) continue; /* without buckets */
        h->positive = read_buckets(&r, a, c, h->n_positive, is_float, i == 0);
        h->negative = read_buckets(&r, a, c + h->n_positive, h->n_negative, is_float, i == 0);
    }
    read_chunk_end(&r);
}

#endif
