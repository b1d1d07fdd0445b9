/*
 * chunk_hist.c: native histograms as Prometheus's chunks.
 *
 *   u16 (high byte first)  number of samples
 *   u8                     bits 7-6: 10 the first sample is a counter reset, 11 gauges, 00 not known
 *   layout    u8           zero threshold: 0 zero; 1..254 the power of two 2^(n - 244); 255 + 64 bits others
 *             varbit       schema
 *             spans        positive, negative: varbit number, each varbit length and offset
 *             [bounds]     of schema -53: varbit number, each varbit of bound * 1000 + 1, or bit 0 and 64 bits
 *   sample 1  varbit time; integers: varbit count, zero count; 64 bits sum; varbits of the buckets, each the
 *             difference from the bucket before. Floats: 64 bits each
 *   others    varbit of how the distance of times changed; integers: likewise of count, zero count, buckets, and
 *             the sum xor'ed; floats: all xor'ed, each with the one before it
 *   A stale sample has no counts and no buckets.
 *
 * A reader takes every sample but the first for "no counter reset", so one that is a reset, or could be, begins
 * a chunk; of what begins a chunk readers find out by themselves. Hints that say more than "reset" are not kept.
 * Source: tsdb/docs/format/chunks.md of Prometheus.
 */
#include "query/chunk_hist.h"

#include <math.h>

#include "query/chunk_xor.h"

#define CHUNK_BYTES_MAX (32u << 10) /* at which no more samples fit: they may be big */

enum { HEADER_RESET = 0x80, HEADER_GAUGE = 0xc0 };

/* A count: integers as a number that changes steadily, floats xor'ed. */
struct chunk_bucket {
    double count;
    int64_t number, delta;
    struct chunk_double bits;
};

void chunk_hist_deinit(struct chunk_hist *c)
{
    arena_deinit(&c->arena);
}

/* ---- layout -------------------------------------------------------------------------------------------------- */

static void put_threshold(struct chunk_bits *b, double threshold)
{
    int exponent;
    if (threshold == 0) {
        chunk_bits_put(b, 0, 8);
    } else if (frexp(threshold, &exponent) == 0.5 && exponent >= -242 && exponent <= 11) {
        chunk_bits_put(b, (uint64_t)(exponent + 243), 8);
    } else {
        chunk_bits_put(b, 255, 8);
        chunk_bits_put(b, f64_bits(threshold), 64);
    }
}

static void put_spans(struct chunk_bits *b, const struct hist_span *spans, uint32_t n)
{
    chunk_bits_uint(b, n);
    for (uint32_t i = 0; i < n; i++) {
        chunk_bits_uint(b, spans[i].length);
        chunk_bits_int(b, spans[i].offset);
    }
}

/* Multiples of 0.001 up to what 25 bits hold are short. */
static void put_bound(struct chunk_bits *b, double bound)
{
    double thousandths = bound * 1000;
    bool small = thousandths >= 0 && thousandths <= 33554430;
    if (small && (double)(uint64_t)round(thousandths) / 1000 == bound) {
        chunk_bits_uint(b, (uint64_t)round(thousandths) + 1);
        return;
    }
    chunk_bits_put(b, 0, 1);
    chunk_bits_put(b, f64_bits(bound), 64);
}

static void put_layout(struct chunk_bits *b, const struct hist *h)
{
    put_threshold(b, h->zero_threshold);
    chunk_bits_int(b, h->schema);
    put_spans(b, h->positive_spans, h->n_positive_spans);
    put_spans(b, h->negative_spans, h->n_negative_spans);
    if (h->schema != HIST_SCHEMA_CUSTOM) return;
    chunk_bits_uint(b, h->n_custom);
    for (uint32_t i = 0; i < h->n_custom; i++)
        put_bound(b, h->custom[i]);
}

static bool same_spans(const struct hist_span *x, uint32_t n_x, const struct hist_span *y, uint32_t n_y)
{
    return n_x == n_y && (n_x == 0 || memcmp(x, y, n_x * sizeof *x) == 0);
}

static bool same_layout(const struct hist *x, const struct hist *y)
{
    if (x->schema != y->schema || f64_bits(x->zero_threshold) != f64_bits(y->zero_threshold)) return false;
    if (x->n_custom != y->n_custom || (x->n_custom && memcmp(x->custom, y->custom, x->n_custom * sizeof(double)) != 0))
        return false;
    return same_spans(x->positive_spans, x->n_positive_spans, y->positive_spans, y->n_positive_spans) &&
           same_spans(x->negative_spans, x->n_negative_spans, y->negative_spans, y->n_negative_spans);
}

/* ---- samples ------------------------------------------------------------------------------------------------- */

/* A stale marker has no buckets and no counts, and does not set a layout. */
static struct hist plain(const struct hist *h)
{
    if (!is_stale_nan(h->sum)) return *h;
    return (struct hist){.is_float = h->is_float, .sum = h->sum};
}

static void put_first_count(struct chunk_hist *c, struct chunk_bucket *k, double count)
{
    *k = (struct chunk_bucket){.count = count, .number = (int64_t)count, .bits = chunk_double_of(count)};
    if (c->layout.is_float)
        chunk_bits_put(&c->bits, f64_bits(count), 64);
    else
        chunk_bits_uint(&c->bits, (uint64_t)k->number);
}

static void put_first_buckets(struct chunk_hist *c, struct chunk_bucket *k, const double *counts, uint32_t n)
{
    int64_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        k[i] = (struct chunk_bucket){.count = counts[i], .bits = chunk_double_of(counts[i])};
        if (c->layout.is_float) {
            chunk_bits_put(&c->bits, f64_bits(counts[i]), 64);
            continue;
        }
        k[i].number = (int64_t)counts[i] - before;
        before = (int64_t)counts[i];
        chunk_bits_int(&c->bits, k[i].number);
    }
}

static void put_number(struct chunk_hist *c, struct chunk_bucket *k, int64_t number)
{
    int64_t delta = (int64_t)((uint64_t)number - (uint64_t)k->number);
    chunk_bits_int(&c->bits, (int64_t)((uint64_t)delta - (uint64_t)k->delta));
    k->number = number;
    k->delta = delta;
}

static void put_count(struct chunk_hist *c, struct chunk_bucket *k, double count)
{
    k->count = count;
    if (c->layout.is_float)
        chunk_bits_double(&c->bits, &k->bits, count);
    else if (c->stale)
        chunk_bits_int(&c->bits, 0);
    else
        put_number(c, k, (int64_t)count);
}

static void put_buckets(struct chunk_hist *c, struct chunk_bucket *k, const double *counts, uint32_t n)
{
    int64_t before = 0;
    for (uint32_t i = 0; i < n; i++) {
        k[i].count = counts[i];
        if (c->layout.is_float) {
            chunk_bits_double(&c->bits, &k[i].bits, counts[i]);
            continue;
        }
        put_number(c, &k[i], (int64_t)counts[i] - before);
        before = (int64_t)counts[i];
    }
}

static void keep_layout(struct chunk_hist *c, const struct hist *h)
{
    struct arena *a = &c->arena;
    arena_reset(a);
    c->layout = *h;
    c->layout.positive_spans = arena_dup(a, h->positive_spans, h->n_positive_spans * sizeof *h->positive_spans);
    c->layout.negative_spans = arena_dup(a, h->negative_spans, h->n_negative_spans * sizeof *h->negative_spans);
    c->layout.custom = arena_dup(a, h->custom, h->n_custom * sizeof *h->custom);
    c->count = arena_zalloc(a, sizeof *c->count);
    c->zero = arena_zalloc(a, sizeof *c->zero);
    c->buckets = arena_zalloc(a, ((size_t)h->n_positive + h->n_negative) * sizeof *c->buckets);
}

void chunk_hist_begin(struct chunk_hist *c, struct buf *out, int64_t t, const struct hist *sample)
{
    struct hist h = plain(sample);
    *c = (struct chunk_hist){.bits = {.out = out}, .start = out->n, .n = 1, .t = t, .arena = c->arena};
    c->gauge = sample->reset_hint == HIST_RESET_GAUGE;
    c->stale = is_stale_nan(h.sum);
    keep_layout(c, &h);
    buf_u16(out, 0);
    buf_u8(out, c->gauge ? HEADER_GAUGE : sample->reset_hint == HIST_RESET_YES ? HEADER_RESET : 0);
    put_layout(&c->bits, &h);
    chunk_bits_int(&c->bits, t);
    put_first_count(c, c->count, h.count);
    put_first_count(c, c->zero, h.zero_count);
    chunk_bits_put(&c->bits, f64_bits(h.sum), 64);
    c->sum = chunk_double_of(h.sum);
    put_first_buckets(c, c->buckets, h.positive, h.n_positive);
    put_first_buckets(c, c->buckets + h.n_positive, h.negative, h.n_negative);
}

static bool shrank(const struct chunk_bucket *k, const double *counts, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!(counts[i] >= k[i].count)) return true;
    return false;
}

bool chunk_hist_fits(const struct chunk_hist *c, const struct hist *h)
{
    bool gauge = h->reset_hint == HIST_RESET_GAUGE, room = chunk_bits_size(&c->bits) - c->start < CHUNK_BYTES_MAX;
    if (c->n >= CHUNK_SAMPLES_MAX || !room || h->is_float != c->layout.is_float || gauge != c->gauge) return false;
    if (h->reset_hint == HIST_RESET_YES) return false;
    if (is_stale_nan(h->sum)) return true;
    if (c->stale || !same_layout(h, &c->layout)) return false;
    if (gauge || h->reset_hint == HIST_RESET_NO) return true;
    return !shrank(c->count, &h->count, 1) && !shrank(c->zero, &h->zero_count, 1) &&
           !shrank(c->buckets, h->positive, h->n_positive) &&
           !shrank(c->buckets + h->n_positive, h->negative, h->n_negative);
}

void chunk_hist_add(struct chunk_hist *c, int64_t t, const struct hist *sample)
{
    struct hist h = plain(sample);
    int64_t delta = (int64_t)((uint64_t)t - (uint64_t)c->t);
    c->stale = is_stale_nan(h.sum);
    chunk_bits_int(&c->bits, (int64_t)((uint64_t)delta - (uint64_t)c->delta));
    c->t = t;
    c->delta = delta;
    put_count(c, c->count, h.count);
    put_count(c, c->zero, h.zero_count);
    chunk_bits_double(&c->bits, &c->sum, h.sum);
    put_buckets(c, c->buckets, h.positive, h.n_positive);
    put_buckets(c, c->buckets + h.n_positive, h.negative, h.n_negative);
    c->n++;
}

void chunk_hist_end(struct chunk_hist *c)
{
    chunk_bits_end(&c->bits);
    chunk_xor_count(c->bits.out, c->start, c->n);
}
