/*
 * hist.c: one native histogram sample as canonical bytes.
 *
 *   layout   u8              bits 0-1 reset hint; bit 2 float histogram; others zero
 *            zigzag varint   schema
 *            u8 [f64]        zero threshold: 0 zero, 1 2^-128 (the usual one), 2 the double that follows
 *            spans           positive: varint number, each zigzag varint offset, varint length (>= 1)
 *            spans           negative, likewise
 *            [varint, f64s]  custom bounds, if the schema is -53
 *   counts   count, zero count, positive buckets, negative buckets:
 *            integers: varint, varint, then zigzag varints, each bucket's difference from the one before it
 *            (of its sign; the first from 0)
 *            floats:   f64 each
 *   f64      sum
 *
 * Canonical: spans of length 0 are folded into the next offset, a span without a gap into the one before
 * it, and varints are as short as can be; so equal histograms have equal bytes. Trailing empty spans
 * vanish. A decoded histogram has passed the same checks as one that came in. Pure functions; arrays
 * live in the caller's arena.
 */
#include "storage/hist.h"

#include <math.h>

#include "storage/base/limits.h"
#include "storage/base/varint.h"

#define RESET_MASK 0x03
#define IS_FLOAT 0x04
#define SCHEMA_MIN (-4)
#define SCHEMA_MAX 8
#define INDEX_END (INT64_C(1) << 30) /* bucket indexes are nearer to 0, so that sums of offsets fit 32 bits */

enum threshold { THRESHOLD_ZERO, THRESHOLD_USUAL, THRESHOLD_STORED };
static const double usual_threshold = 0x1p-128;

/* ---- checking */

/* What is wrong with the spans of one sign, or NULL. */
static const char *spans_fault(const struct hist_span *spans, uint32_t n_spans, uint32_t n_buckets)
{
    uint64_t length = 0;
    int64_t index = 0;
    for (uint32_t i = 0; i < n_spans; i++) {
        if (i > 0 && spans[i].offset < 0) return "a span starts before the end of the last one";
        length += spans[i].length;
        index += (int64_t)spans[i].offset + spans[i].length;
        if (index >= INDEX_END || index <= -INDEX_END) return "bucket index out of range";
    }
    return length == n_buckets ? NULL : "spans and bucket counts disagree";
}

static bool count_fits(double c, bool is_float)
{
    if (is_float) return !(c < 0);
    return c >= 0 && c < 0x1p63 && c == floor(c);
}

static const char *counts_fault(const struct hist *h)
{
    bool good = count_fits(h->count, h->is_float) && count_fits(h->zero_count, h->is_float);
    for (uint32_t i = 0; i < h->n_positive; i++)
        good &= count_fits(h->positive[i], h->is_float);
    for (uint32_t i = 0; i < h->n_negative; i++)
        good &= count_fits(h->negative[i], h->is_float);
    return good ? NULL : "a count is negative or not whole";
}

static const char *custom_fault(const struct hist *h)
{
    for (uint32_t i = 0; i < h->n_custom; i++) {
        if (isnan(h->custom[i]) || h->custom[i] == (double)INFINITY) return "a custom bound is NaN or +Inf";
        if (i > 0 && !(h->custom[i] > h->custom[i - 1])) return "custom bounds do not increase";
    }
    if (h->n_negative != 0 || h->n_negative_spans != 0) return "custom bounds with negative buckets";
    if (h->zero_count != 0 || h->zero_threshold != 0) return "custom bounds with a zero bucket";
    int64_t end = 0;
    for (uint32_t i = 0; i < h->n_positive_spans; i++)
        end += (int64_t)h->positive_spans[i].offset + h->positive_spans[i].length;
    if (h->n_positive_spans > 0 && h->positive_spans[0].offset < 0) return "a bucket before the first custom bound";
    return end <= (int64_t)h->n_custom + 1 ? NULL : "more buckets than custom bounds";
}

/* What is wrong with h but its size, or NULL. */
static const char *fault_of(const struct hist *h)
{
    bool custom = h->schema == HIST_SCHEMA_CUSTOM;
    if (!custom && (h->schema < SCHEMA_MIN || h->schema > SCHEMA_MAX)) return "unknown schema";
    if (h->reset_hint > RESET_MASK) return "unknown reset hint";
    if (!(h->zero_threshold >= 0)) return "negative zero threshold";
    if (!custom && h->n_custom != 0) return "custom bounds without their schema";
    const char *fault = spans_fault(h->positive_spans, h->n_positive_spans, h->n_positive);
    if (fault == NULL) fault = spans_fault(h->negative_spans, h->n_negative_spans, h->n_negative);
    if (fault == NULL) fault = counts_fault(h);
    if (fault == NULL && custom) fault = custom_fault(h);
    return fault;
}

/* No encoding of h is longer. */
static uint64_t size_bound(const struct hist *h)
{
    uint64_t spans = (uint64_t)h->n_positive_spans + h->n_negative_spans;
    uint64_t counts = 2 + (uint64_t)h->n_positive + h->n_negative;
    return 40 + 10 * spans + (h->is_float ? 8 : VARINT_MAX) * counts + 8 * (uint64_t)h->n_custom;
}

err hist_validate(const struct hist *h)
{
    if (size_bound(h) > LIMIT_HIST_BLOB) return err_new(ERR_INVALID, "histogram with too many buckets");
    const char *fault = fault_of(h);
    return fault ? err_new(ERR_INVALID, "histogram: %s", fault) : NULL;
}

/* ---- encoding */

static void put_f64(struct buf *out, double v)
{
    buf_u64(out, f64_bits(v));
}

static void put_threshold(struct buf *out, double v)
{
    if (f64_bits(v) == 0) {
        buf_u8(out, THRESHOLD_ZERO);
    } else if (v == usual_threshold) {
        buf_u8(out, THRESHOLD_USUAL);
    } else {
        buf_u8(out, THRESHOLD_STORED);
        put_f64(out, v);
    }
}

/* Merges from spans[*at] on what makes one canonical span; false at the end. */
static bool next_span(const struct hist_span *spans, uint32_t n, uint32_t *at, struct hist_span *merged)
{
    *merged = (struct hist_span){0};
    for (; *at < n && merged->length == 0; ++*at) {
        merged->offset += spans[*at].offset;
        merged->length = spans[*at].length;
    }
    for (; *at < n && spans[*at].offset == 0; ++*at)
        merged->length += spans[*at].length;
    return merged->length != 0;
}

static void put_spans(struct buf *out, const struct hist_span *spans, uint32_t n)
{
    struct hist_span merged;
    uint32_t count = 0, at = 0;
    while (next_span(spans, n, &at, &merged))
        count++;
    buf_varint(out, count);
    at = 0;
    while (next_span(spans, n, &at, &merged)) {
        buf_zigzag(out, merged.offset);
        buf_varint(out, merged.length);
    }
}

static void put_buckets(struct buf *out, const double *counts, uint32_t n, bool is_float)
{
    int64_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (is_float) {
            put_f64(out, counts[i]);
            continue;
        }
        buf_zigzag(out, (int64_t)counts[i] - last);
        last = (int64_t)counts[i];
    }
}

static void put_count(struct buf *out, double count, bool is_float)
{
    if (is_float)
        put_f64(out, count);
    else
        buf_varint(out, (uint64_t)count);
}

void hist_encode(const struct hist *h, struct buf *out)
{
    buf_u8(out, (uint8_t)(h->reset_hint | (h->is_float ? IS_FLOAT : 0)));
    buf_zigzag(out, h->schema);
    put_threshold(out, h->zero_threshold);
    put_spans(out, h->positive_spans, h->n_positive_spans);
    put_spans(out, h->negative_spans, h->n_negative_spans);
    if (h->schema == HIST_SCHEMA_CUSTOM) {
        buf_varint(out, h->n_custom);
        for (uint32_t i = 0; i < h->n_custom; i++)
            put_f64(out, h->custom[i]);
    }
    put_count(out, h->count, h->is_float);
    put_count(out, h->zero_count, h->is_float);
    put_buckets(out, h->positive, h->n_positive, h->is_float);
    put_buckets(out, h->negative, h->n_negative, h->is_float);
    put_f64(out, h->sum);
}

/* ---- decoding */

static double get_f64(struct cursor *c)
{
    return f64_from_bits(cursor_u64(c));
}

/* A count of things that take at least `least` bytes each; 0 and failed if they can't all be there. */
static uint32_t get_number(struct cursor *c, size_t least)
{
    uint64_t n = cursor_varint(c);
    if (n <= cursor_left(c) / least) return (uint32_t)n;
    c->failed = true;
    return 0;
}

/* Spans into the arena, or only counted if it is NULL; *buckets gets the sum of their lengths. */
static struct hist_span *get_spans(struct cursor *c, struct arena *a, uint32_t *n_spans, uint32_t *buckets)
{
    uint32_t n = get_number(c, 2);
    struct hist_span *spans = a ? arena_alloc(a, n * sizeof *spans) : NULL;
    uint64_t total = 0;
    for (uint32_t i = 0; i < n && !c->failed; i++) {
        int64_t offset = cursor_zigzag(c);
        uint64_t length = cursor_varint(c);
        if (length == 0 || length > LIMIT_HIST_BLOB || offset > INT32_MAX || offset < INT32_MIN) c->failed = true;
        if (spans != NULL) spans[i] = (struct hist_span){(int32_t)offset, (uint32_t)length};
        total += length;
    }
    if (total > LIMIT_HIST_BLOB) c->failed = true;
    *n_spans = c->failed ? 0 : n;
    *buckets = c->failed ? 0 : (uint32_t)total;
    return spans;
}

static double *get_doubles(struct cursor *c, struct arena *a, uint32_t n)
{
    if (cursor_left(c) / 8 < n) {
        c->failed = true;
        return NULL;
    }
    double *v = arena_alloc(a, n * sizeof *v);
    for (uint32_t i = 0; i < n; i++)
        v[i] = get_f64(c);
    return v;
}

static double *get_buckets(struct cursor *c, struct arena *a, uint32_t n, bool is_float)
{
    if (is_float || c->failed) return get_doubles(c, a, n);
    double *counts = arena_alloc(a, n * sizeof *counts);
    uint64_t last = 0;
    for (uint32_t i = 0; i < n; i++) {
        last += (uint64_t)cursor_zigzag(c);
        counts[i] = (double)(int64_t)last;
    }
    return counts;
}

static double get_threshold(struct cursor *c)
{
    switch (cursor_u8(c)) {
    case THRESHOLD_ZERO:
        return 0;
    case THRESHOLD_USUAL:
        return usual_threshold;
    case THRESHOLD_STORED:
        return get_f64(c);
    default:
        c->failed = true;
        return 0;
    }
}

/* All fields up to the counts; without an arena the arrays are skipped. */
static void get_layout(struct cursor *c, struct arena *a, struct hist *h)
{
    uint8_t flags = cursor_u8(c);
    if (flags & ~(RESET_MASK | IS_FLOAT)) c->failed = true;
    h->reset_hint = flags & RESET_MASK;
    h->is_float = flags & IS_FLOAT;
    int64_t schema = cursor_zigzag(c);
    if (schema < HIST_SCHEMA_CUSTOM || schema > SCHEMA_MAX) c->failed = true;
    h->schema = c->failed ? 0 : (int32_t)schema;
    h->zero_threshold = get_threshold(c);
    h->positive_spans = get_spans(c, a, &h->n_positive_spans, &h->n_positive);
    h->negative_spans = get_spans(c, a, &h->n_negative_spans, &h->n_negative);
    if (h->schema != HIST_SCHEMA_CUSTOM) return;
    h->n_custom = get_number(c, 8);
    if (a != NULL)
        h->custom = get_doubles(c, a, h->n_custom);
    else
        cursor_bytes(c, (size_t)8 * h->n_custom);
}

bool hist_layout_read(struct cursor *c, struct hist_layout *l)
{
    struct hist h = {0};
    size_t before = cursor_left(c);
    get_layout(c, NULL, &h);
    l->bytes = before - cursor_left(c);
    l->positive = h.n_positive;
    l->negative = h.n_negative;
    l->is_float = h.is_float;
    return !c->failed;
}

err hist_decode(str blob, struct arena *a, struct hist *h)
{
    struct cursor c = cursor_of(blob.p, blob.n);
    *h = (struct hist){0};
    if (blob.n > LIMIT_HIST_BLOB) return err_corrupt("histogram: %zu bytes", blob.n);
    get_layout(&c, a, h);
    h->count = h->is_float ? get_f64(&c) : (double)cursor_varint(&c);
    h->zero_count = h->is_float ? get_f64(&c) : (double)cursor_varint(&c);
    h->positive = get_buckets(&c, a, h->n_positive, h->is_float);
    h->negative = get_buckets(&c, a, h->n_negative, h->is_float);
    h->sum = get_f64(&c);
    if (c.failed || cursor_left(&c) != 0) return err_corrupt("histogram: malformed blob of %zu bytes", blob.n);
    const char *fault = fault_of(h);
    return fault ? err_corrupt("histogram: %s", fault) : NULL;
}
