/*
 * test_column_hist.c: histograms have canonical bytes that give them back, columns of blobs come back byte for
 * byte, invalid histograms and damaged bytes are refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include <math.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/column_hist.h"

#define SPANS 4
#define BUCKETS 64

/* A histogram with its arrays. */
struct sample {
    struct hist h;
    struct hist_span spans[2][SPANS];
    double counts[2][BUCKETS], custom[BUCKETS];
};

static struct rng seeded(void)
{
    struct rng r;
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261130;
    print_message("VARVE_SEED=%llu\n", (unsigned long long)seed);
    rng_seed(&r, seed);
    return r;
}

static void wire(struct sample *s)
{
    s->h.positive_spans = s->spans[0];
    s->h.negative_spans = s->spans[1];
    s->h.positive = s->counts[0];
    s->h.negative = s->counts[1];
    s->h.custom = s->custom;
}

static uint32_t random_spans(struct rng *r, struct hist_span *spans, uint32_t *n)
{
    uint32_t total = 0;
    *n = (uint32_t)rng_below(r, SPANS + 1);
    for (uint32_t i = 0; i < *n; i++) {
        int32_t offset = (int32_t)rng_below(r, 5) - (i == 0 ? 3 : 0);
        spans[i] = (struct hist_span){offset, (uint32_t)rng_below(r, 8)};
        total += spans[i].length;
    }
    return total;
}

static double random_count(struct rng *r, bool is_float)
{
    return is_float ? rng_unit(r) * 1e6 : (double)(rng_next(r) >> (1 + rng_below(r, 63)) >> 10);
}

static void random_hist(struct rng *r, struct sample *s)
{
    *s = (struct sample){0};
    wire(s);
    s->h.is_float = rng_chance(r, 0.3);
    s->h.reset_hint = (uint8_t)rng_below(r, 4);
    s->h.schema = (int32_t)rng_below(r, 13) - 4;
    s->h.zero_threshold = rng_chance(r, 0.6) ? 0x1p-128 : rng_chance(r, 0.5) ? 0 : rng_unit(r);
    s->h.n_positive = random_spans(r, s->spans[0], &s->h.n_positive_spans);
    s->h.n_negative = random_spans(r, s->spans[1], &s->h.n_negative_spans);
    for (uint32_t i = 0; i < BUCKETS; i++) {
        s->counts[0][i] = random_count(r, s->h.is_float);
        s->counts[1][i] = random_count(r, s->h.is_float);
    }
    s->h.count = random_count(r, s->h.is_float);
    s->h.zero_count = random_count(r, s->h.is_float);
    s->h.sum = rng_chance(r, 0.1) ? f64_from_bits(STALE_NAN_BITS) : rng_unit(r) * 1000;
}

static void make_custom(struct sample *s)
{
    *s = (struct sample){.h = {.schema = HIST_SCHEMA_CUSTOM, .count = 6, .sum = 12.5}};
    wire(s);
    for (uint32_t i = 0; i < 3; i++) {
        s->custom[i] = i * 0.25 - 0.5;
        s->counts[0][i] = i + 1;
    }
    s->h.n_custom = 3;
    s->h.n_positive = 3;
    s->h.n_positive_spans = 1;
    s->spans[0][0] = (struct hist_span){1, 3};
}

/* ---- single histograms */

static void expect_valid(const struct hist *h)
{
    err e = hist_validate(h);
    if (e) fail_msg("%s", err_message(e));
}

static void expect_doubles(const double *a, const double *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        assert_true(f64_bits(a[i]) == f64_bits(b[i]));
}

/* The index of the i-th bucket, whatever way the spans are cut. */
static int64_t bucket_index(const struct hist_span *spans, uint32_t n, uint32_t bucket)
{
    int64_t index = 0;
    for (uint32_t i = 0; i < n; i++) {
        index += spans[i].offset;
        if (bucket < spans[i].length) return index + bucket;
        bucket -= spans[i].length;
        index += spans[i].length;
    }
    return INT64_MIN;
}

static void expect_equal(const struct hist *a, const struct hist *b)
{
    assert_int_equal(a->schema, b->schema);
    assert_int_equal(a->reset_hint, b->reset_hint);
    assert_int_equal(a->is_float, b->is_float);
    assert_int_equal(a->n_positive, b->n_positive);
    assert_int_equal(a->n_negative, b->n_negative);
    assert_int_equal(a->n_custom, b->n_custom);
    expect_doubles((double[]){a->zero_threshold, a->zero_count, a->count, a->sum},
                   (double[]){b->zero_threshold, b->zero_count, b->count, b->sum}, 4);
    expect_doubles(a->positive, b->positive, a->n_positive);
    expect_doubles(a->negative, b->negative, a->n_negative);
    expect_doubles(a->custom, b->custom, a->n_custom);
    for (uint32_t i = 0; i < a->n_positive; i++)
        assert_int_equal(bucket_index(a->positive_spans, a->n_positive_spans, i),
                         bucket_index(b->positive_spans, b->n_positive_spans, i));
    for (uint32_t i = 0; i < a->n_negative; i++)
        assert_int_equal(bucket_index(a->negative_spans, a->n_negative_spans, i),
                         bucket_index(b->negative_spans, b->n_negative_spans, i));
}

static void round_trip(const struct hist *h)
{
    struct arena a = {0};
    struct buf once = {0}, again = {0};
    struct hist back;
    expect_valid(h);
    hist_encode(h, &once);
    err e = hist_decode(buf_as_str(&once), &a, &back);
    if (e) fail_msg("%s", err_message(e));
    expect_equal(h, &back);
    expect_valid(&back);
    hist_encode(&back, &again);
    assert_true(str_eq(buf_as_str(&once), buf_as_str(&again)));
    buf_deinit(&once);
    buf_deinit(&again);
    arena_deinit(&a);
}

static void histograms_come_back(void **state)
{
    (void)state;
    struct rng r = seeded();
    struct sample s;
    for (int turn = 0; turn < 3000; turn++) {
        random_hist(&r, &s);
        round_trip(&s.h);
    }
    make_custom(&s);
    round_trip(&s.h);
    s = (struct sample){.h.sum = f64_from_bits(STALE_NAN_BITS)};
    wire(&s);
    round_trip(&s.h);
}

static void equal_histograms_have_equal_bytes(void **state)
{
    (void)state;
    struct sample a = {.h = {.n_positive = 3, .n_positive_spans = 2}}, b = {.h = {.n_positive = 3}};
    wire(&a);
    wire(&b);
    a.spans[0][0] = (struct hist_span){1, 2};
    a.spans[0][1] = (struct hist_span){3, 1};
    b.h.n_positive_spans = 4;
    b.spans[0][0] = (struct hist_span){1, 1};
    b.spans[0][1] = (struct hist_span){0, 1};
    b.spans[0][2] = (struct hist_span){2, 0};
    b.spans[0][3] = (struct hist_span){1, 1};
    struct buf one = {0}, other = {0};
    hist_encode(&a.h, &one);
    hist_encode(&b.h, &other);
    assert_true(str_eq(buf_as_str(&one), buf_as_str(&other)));
    buf_deinit(&one);
    buf_deinit(&other);
}

static void expect_invalid(const struct hist *h)
{
    err e = hist_validate(h);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
}

static void invalid_ones_are_refused(void **state)
{
    (void)state;
    struct sample s;
    make_custom(&s);
    expect_valid(&s.h);
    struct hist h = s.h;
    h.schema = 9;
    expect_invalid(&h);
    h.schema = -5;
    expect_invalid(&h);
    h = s.h;
    h.schema = 3; /* with custom bounds */
    expect_invalid(&h);
    h = s.h;
    h.n_positive = 2;
    expect_invalid(&h);
    h = s.h;
    h.zero_threshold = -1;
    expect_invalid(&h);
    h = s.h;
    h.reset_hint = 4;
    expect_invalid(&h);
    h = s.h;
    h.n_custom = 2; /* four buckets reach beyond three intervals */
    expect_invalid(&h);
    s.custom[1] = s.custom[0];
    expect_invalid(&s.h);
    s.custom[1] = (double)NAN;
    expect_invalid(&s.h);
    make_custom(&s);
    s.counts[0][1] = 1.5;
    expect_invalid(&s.h);
    s.h.is_float = true;
    expect_valid(&s.h);
    s.counts[0][1] = -1;
    expect_invalid(&s.h);
    make_custom(&s);
    s.h.schema = 0;
    s.h.n_custom = 0;
    s.spans[0][0] = (struct hist_span){INT32_MAX, 3};
    expect_invalid(&s.h);
}

static void too_many_buckets_are_refused(void **state)
{
    (void)state;
    struct hist_span span = {0, LIMIT_HIST_BLOB / 8};
    double *counts = mem_zalloc(span.length * sizeof *counts);
    struct hist h = {.is_float = true, .n_positive = span.length, .n_positive_spans = 1};
    h.positive_spans = &span;
    h.positive = counts;
    expect_invalid(&h);
    h.n_positive = span.length = LIMIT_HIST_BLOB / 8 - 20;
    round_trip(&h);
    mem_free(counts);
}

/* ---- columns */

#define MOST 300

struct column {
    struct buf bytes; /* of all blobs */
    str blobs[MOST];
    size_t n, offsets[MOST + 1];
};

static void add_blob(struct column *c, const struct hist *h)
{
    c->offsets[c->n++] = c->bytes.n;
    hist_encode(h, &c->bytes);
    c->offsets[c->n] = c->bytes.n;
}

static void add_noise(struct column *c, struct rng *r)
{
    c->offsets[c->n++] = c->bytes.n;
    for (size_t i = rng_below(r, 20); i > 0; i--)
        buf_u8(&c->bytes, (uint8_t)rng_next(r));
    c->offsets[c->n] = c->bytes.n;
}

/* A history: counts grow, now and then the layout changes, and with noise some blobs are not histograms at all. */
static void fill(struct column *c, struct rng *r, size_t n, bool noise)
{
    struct sample s;
    random_hist(r, &s);
    c->n = 0;
    buf_clear(&c->bytes);
    while (c->n < n) {
        if (rng_chance(r, 0.02)) random_hist(r, &s);
        for (uint32_t i = 0; i < s.h.n_positive; i++)
            s.counts[0][i] += (double)rng_below(r, 4);
        s.h.count += 10;
        s.h.sum += 0.5;
        if (noise && rng_chance(r, 0.05))
            add_noise(c, r);
        else
            add_blob(c, &s.h);
    }
    for (size_t i = 0; i < n; i++)
        c->blobs[i] = (str){(const char *)c->bytes.data + c->offsets[i], c->offsets[i + 1] - c->offsets[i]};
}

static size_t column_round_trip(const struct column *c)
{
    struct buf out = {0};
    struct arena a = {0};
    str back[MOST];
    column_hist_encode(c->blobs, c->n, &out);
    uint8_t *copy = mem_dup(out.data, out.n);
    err e = column_hist_decode(copy, out.n, c->n, &a, back);
    if (e) fail_msg("%s", err_message(e));
    mem_free(copy);
    for (size_t i = 0; i < c->n; i++)
        assert_true(str_eq(c->blobs[i], back[i]));
    size_t bytes = out.n;
    arena_deinit(&a);
    buf_deinit(&out);
    return bytes;
}

static void columns_come_back(void **state)
{
    (void)state;
    struct rng r = seeded();
    struct column c = {0};
    for (int turn = 0; turn < 120; turn++) {
        fill(&c, &r, 1 + rng_below(&r, MOST), turn % 2);
        column_round_trip(&c);
    }
    buf_deinit(&c.bytes);
}

static void similar_blobs_share_bytes(void **state)
{
    (void)state;
    struct rng r = seeded();
    struct column c = {0};
    struct sample s;
    make_custom(&s);
    for (size_t i = 0; i < 240; i++) {
        s.counts[0][rng_below(&r, 3)] += 1;
        s.h.count += 1;
        s.h.sum += 0.5;
        add_blob(&c, &s.h);
    }
    for (size_t i = 0; i < c.n; i++)
        c.blobs[i] = (str){(const char *)c.bytes.data + c.offsets[i], c.offsets[i + 1] - c.offsets[i]};
    assert_true(column_round_trip(&c) < c.bytes.n / 8);
    buf_deinit(&c.bytes);
}

static err decode_copy(const uint8_t *p, size_t bytes, size_t n)
{
    struct arena a = {0};
    str back[LIMIT_BLOCK_SAMPLES];
    uint8_t *copy = mem_dup(p, bytes);
    err e = column_hist_decode(copy, bytes, n, &a, back);
    for (size_t i = 0; e == NULL && i < n; i++) {
        struct hist h;
        err_free(hist_decode(back[i], &a, &h));
    }
    mem_free(copy);
    arena_deinit(&a);
    return e;
}

static void damage_never_crashes(void **state)
{
    (void)state;
    struct rng r = seeded();
    struct column c = {0};
    for (int turn = 0; turn < 300; turn++) {
        struct buf out = {0};
        fill(&c, &r, 1 + rng_below(&r, 30), false);
        column_hist_encode(c.blobs, c.n, &out);
        err e = decode_copy(out.data, rng_below(&r, out.n), c.n);
        assert_int_equal(err_code(e), ERR_CORRUPT);
        err_free(e);
        for (int i = 0; i < 10; i++) {
            out.data[rng_below(&r, out.n)] ^= (uint8_t)rng_next(&r);
            err_free(decode_copy(out.data, out.n, c.n));
        }
        buf_deinit(&out);
    }
    buf_deinit(&c.bytes);
}

/* A few bytes that promise 2,048 blobs of 60,000 buckets each. */
static void promises_are_bounded(void **state)
{
    (void)state;
    struct buf layout = {0}, out = {0};
    buf_put(&layout, "\0\0\0", 3);
    buf_varint(&layout, 1);
    buf_zigzag(&layout, 0);
    buf_varint(&layout, 60000);
    buf_varint(&layout, 0);
    buf_varint(&out, 2048 << 1 | 1);
    buf_lenstr(&out, buf_as_str(&layout));
    for (int i = 0; i < 60003; i++)
        buf_put(&out, "\0\0", 2);
    err e = decode_copy(out.data, out.n, 2048);
    assert_int_equal(err_code(e), ERR_CORRUPT);
    err_free(e);
    buf_deinit(&layout);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(histograms_come_back),     cmocka_unit_test(equal_histograms_have_equal_bytes),
        cmocka_unit_test(invalid_ones_are_refused), cmocka_unit_test(too_many_buckets_are_refused),
        cmocka_unit_test(columns_come_back),        cmocka_unit_test(similar_blobs_share_bytes),
        cmocka_unit_test(damage_never_crashes),     cmocka_unit_test(promises_are_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
