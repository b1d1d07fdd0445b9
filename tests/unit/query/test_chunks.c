/*
 * test_chunks.c: Prometheus's chunks: bytes worked out by hand, and random series through a reader of the tests' own
 * (chunk_reader.h). tests/e2e/test_remote_read.py compares whole chunks with those of a real Prometheus.
 */
#include "query/chunk_hist.h"
#include "query/chunk_xor.h"
#include "storage/base/rng.h"
#include "tests/unit/query/chunk_reader.h"

static void expect_bytes(const struct buf *out, const char *hex)
{
    char text[512] = "";
    assert_true(out->n < 250);
    for (size_t i = 0; i < out->n; i++)
        snprintf(text + 2 * i, 3, "%02x", out->data[i]);
    assert_string_equal(text, hex);
}

static void test_xor_by_hand(void **state)
{
    (void)state;
    struct buf out = {0};
    struct chunk_xor c;
    chunk_xor_begin(&c, &out);
    chunk_xor_add(&c, 1000, 1.0);
    chunk_xor_add(&c, 2000, 1.0);
    chunk_xor_add(&c, 3000, 2.0);
    chunk_xor_add(&c, 4001, 2.0);
    chunk_xor_end(&c);
    /* 4 samples; zigzag(1000) = 2000 = d0 0f; 1.0; varint 1000 = e8 07; then bits:
     * 0 same value | 0 same distance, 11 leading 1 (00001) size 11 (001011) of 0x7ff | 10 + 14 bits of 1, 0 same value
     */
    expect_bytes(&out, "0004d00f3ff0000000000000e807"
                       "30"   /* 0 0 11 0000 */
                       "97ff" /* 1 001011 1 | 1111 1111 */
                       "e000" /* 11 10 0000 0000 0000 ... */
                       "40");
    buf_deinit(&out);
}

static void test_classes(void **state)
{
    (void)state;
    static const int64_t edges[] = {0,
                                    1,
                                    -1,
                                    3,
                                    4,
                                    5,
                                    -3,
                                    -4,
                                    32,
                                    33,
                                    -31,
                                    -32,
                                    256,
                                    257,
                                    -255,
                                    -256,
                                    2048,
                                    2049,
                                    -2047,
                                    -2048,
                                    8192,
                                    8193,
                                    -8191,
                                    65536,
                                    65537,
                                    131072,
                                    131073,
                                    -131071,
                                    -131072,
                                    524288,
                                    524289,
                                    1 << 24,
                                    (1 << 24) + 1,
                                    INT64_C(1) << 55,
                                    (INT64_C(1) << 55) + 1,
                                    INT64_MAX,
                                    INT64_MIN};
    struct buf out = {0};
    struct chunk_bits b = {.out = &out};
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        chunk_bits_int(&b, edges[i]);
        chunk_bits_uint(&b, (uint64_t)edges[i]);
        chunk_bits_varint(&b, (uint64_t)edges[i]);
    }
    chunk_bits_end(&b);
    struct bit_reader r = {.p = out.data, .n = out.n};
    for (size_t i = 0; i < ARRAY_LEN(edges); i++) {
        assert_true(read_varbit(&r) == edges[i]);
        assert_true(read_varbit_unsigned(&r) == (uint64_t)edges[i]);
        assert_true(read_varint(&r) == (uint64_t)edges[i]);
    }
    read_chunk_end(&r);
    buf_deinit(&out);
}

static double any_value(struct rng *rng, double before)
{
    switch (rng_below(rng, 6)) {
    case 0:
        return before;
    case 1:
        return before + 1;
    case 2:
        return f64_from_bits(rng_next(rng)); /* NaNs with payloads, denormals, infinities */
    case 3:
        return f64_from_bits(STALE_NAN_BITS);
    case 4:
        return -0.0;
    default:
        return (double)rng_below(rng, 1000) / 10;
    }
}

static void test_xor_round_trip(void **state)
{
    (void)state;
    static const int64_t steps[] = {1, 15000, 15001, 23000, 100000, 600000, INT64_C(1) << 40};
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct buf out = {0};
    for (int round = 0; round < 500; round++) {
        int64_t t[CHUNK_SAMPLES_MAX], got_t[CHUNK_SAMPLES_MAX], now = (int64_t)rng_below(&rng, 1u << 31) - (1 << 30);
        double v[CHUNK_SAMPLES_MAX], got_v[CHUNK_SAMPLES_MAX], value = 0;
        uint32_t n = 1 + (uint32_t)rng_below(&rng, CHUNK_SAMPLES_MAX);
        struct chunk_xor c;
        buf_clear(&out);
        buf_str(&out, STR("before"));
        chunk_xor_begin(&c, &out);
        for (uint32_t i = 0; i < n; i++) {
            t[i] = now += steps[rng_chance(&rng, 0.7) ? 1 : rng_below(&rng, ARRAY_LEN(steps))];
            v[i] = value = any_value(&rng, value);
            chunk_xor_add(&c, t[i], v[i]);
        }
        chunk_xor_end(&c);
        assert_int_equal(read_xor_chunk(out.data + 6, out.n - 6, got_t, got_v, CHUNK_SAMPLES_MAX), n);
        assert_memory_equal(got_t, t, n * sizeof t[0]);
        assert_memory_equal(got_v, v, n * sizeof v[0]);
    }
    buf_deinit(&out);
}

/* ---- histograms */

static struct arena arena;

static void any_side(struct rng *rng, uint32_t *n_spans, struct hist_span **spans, uint32_t *n, double **counts)
{
    *n_spans = (uint32_t)rng_below(rng, 4);
    *spans = arena_zalloc(&arena, *n_spans * sizeof **spans);
    *n = 0;
    for (uint32_t i = 0; i < *n_spans; i++) {
        (*spans)[i].offset = i ? 1 + (int32_t)rng_below(rng, 300) : (int32_t)rng_below(rng, 4000) - 2000;
        (*spans)[i].length = 1 + (uint32_t)rng_below(rng, 9);
        *n += (*spans)[i].length;
    }
    *counts = arena_zalloc(&arena, *n * sizeof **counts);
}

static struct hist any_hist(struct rng *rng, bool is_float)
{
    static const double thresholds[] = {0, 0x1p-128, 0.001, 1, 1024, 2048, 0x1p-243, 0x1p-300};
    static const double bounds[] = {-5, 0, 0.001, 0.1, 0.3, 1.0005, 33554.43, 33554.431, 1e9};
    struct hist h = {.is_float = is_float, .schema = (int32_t)rng_below(rng, 13) - 4};
    any_side(rng, &h.n_positive_spans, &h.positive_spans, &h.n_positive, &h.positive);
    if (rng_chance(rng, 0.3)) {
        h.schema = HIST_SCHEMA_CUSTOM;
        h.n_custom = ARRAY_LEN(bounds);
        h.custom = arena_dup(&arena, bounds, sizeof bounds);
        return h;
    }
    any_side(rng, &h.n_negative_spans, &h.negative_spans, &h.n_negative, &h.negative);
    h.zero_threshold = thresholds[rng_below(rng, ARRAY_LEN(thresholds))];
    return h;
}

static double grown(struct rng *rng, double count, bool is_float)
{
    if (rng_chance(rng, 0.3)) return count;
    return count + (is_float ? rng_unit(rng) * 10 : (double)rng_below(rng, rng_chance(rng, 0.1) ? 1 << 30 : 20));
}

/* The next sample of a counter. */
static struct hist next_hist(struct rng *rng, const struct hist *before)
{
    struct hist h = *before;
    h.positive = arena_dup(&arena, h.positive, h.n_positive * sizeof *h.positive);
    h.negative = arena_dup(&arena, h.negative, h.n_negative * sizeof *h.negative);
    for (uint32_t i = 0; i < h.n_positive; i++)
        h.positive[i] = grown(rng, h.positive[i], h.is_float);
    for (uint32_t i = 0; i < h.n_negative; i++)
        h.negative[i] = grown(rng, h.negative[i], h.is_float);
    h.count = grown(rng, h.count, h.is_float);
    h.zero_count = grown(rng, h.zero_count, h.is_float);
    h.sum = any_value(rng, h.sum);
    if (is_stale_nan(h.sum)) h.sum = 1;
    return h;
}

static void assert_same(const struct hist *got, const struct hist *want)
{
    assert_int_equal(got->schema, want->schema);
    assert_true(f64_bits(got->sum) == f64_bits(want->sum) && f64_bits(got->count) == f64_bits(want->count));
    assert_true(got->zero_count == want->zero_count && got->zero_threshold == want->zero_threshold);
    assert_int_equal(got->n_positive_spans, want->n_positive_spans);
    assert_int_equal(got->n_negative_spans, want->n_negative_spans);
    assert_int_equal(got->n_positive, want->n_positive);
    assert_int_equal(got->n_negative, want->n_negative);
    assert_int_equal(got->n_custom, want->n_custom);
    assert_memory_equal(got->positive_spans, want->positive_spans, want->n_positive_spans * sizeof(struct hist_span));
    assert_memory_equal(got->negative_spans, want->negative_spans, want->n_negative_spans * sizeof(struct hist_span));
    for (uint32_t i = 0; i < want->n_positive; i++)
        assert_true(f64_bits(got->positive[i]) == f64_bits(want->positive[i]));
    for (uint32_t i = 0; i < want->n_negative; i++)
        assert_true(f64_bits(got->negative[i]) == f64_bits(want->negative[i]));
    for (uint32_t i = 0; i < want->n_custom; i++)
        assert_true(f64_bits(got->custom[i]) == f64_bits(want->custom[i]));
}

static void test_hist_round_trip(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct buf out = {0};
    struct chunk_hist c = {0};
    struct hist_chunk *got = calloc(1, sizeof *got);
    for (int round = 0; round < 500; round++) {
        struct hist h[CHUNK_SAMPLES_MAX];
        int64_t t[CHUNK_SAMPLES_MAX], now = 1000;
        uint32_t n = 1 + (uint32_t)rng_below(&rng, 20);
        bool is_float = round % 2;
        h[0] = any_hist(&rng, is_float);
        for (uint32_t i = 0; i < n; i++) {
            h[i] = next_hist(&rng, &h[i ? i - 1 : 0]);
            t[i] = now += 1 + (int64_t)rng_below(&rng, 100000);
        }
        buf_clear(&out);
        chunk_hist_begin(&c, &out, t[0], &h[0]);
        for (uint32_t i = 1; i < n; i++) {
            assert_true(chunk_hist_fits(&c, &h[i]));
            chunk_hist_add(&c, t[i], &h[i]);
        }
        chunk_hist_end(&c);
        read_hist_chunk(out.data, out.n, is_float, &arena, got);
        assert_int_equal(got->n, n);
        assert_int_equal(got->header, 0);
        assert_memory_equal(got->t, t, n * sizeof t[0]);
        for (uint32_t i = 0; i < n; i++)
            assert_same(&got->h[i], &h[i]);
        arena_reset(&arena);
    }
    chunk_hist_deinit(&c);
    free(got);
    buf_deinit(&out);
}

static struct hist simple(double a, double b, bool is_float)
{
    struct hist h = {.is_float = is_float, .count = a + b, .sum = 7, .n_positive_spans = 1, .n_positive = 2};
    h.positive_spans = arena_zalloc(&arena, sizeof *h.positive_spans);
    h.positive_spans[0] = (struct hist_span){1, 2};
    h.positive = arena_dup(&arena, (double[]){a, b}, 2 * sizeof(double));
    return h;
}

static void test_what_fits(void **state)
{
    (void)state;
    struct buf out = {0};
    struct chunk_hist c = {0};
    struct hist first = simple(5, 5, false), grew = simple(5, 6, false), moved = simple(6, 4, false);
    struct hist other = simple(9, 9, false), floats = simple(9, 9, true), gauge = moved, no = moved, yes = grew;
    other.schema = 1;
    gauge.reset_hint = HIST_RESET_GAUGE;
    no.reset_hint = HIST_RESET_NO;
    yes.reset_hint = HIST_RESET_YES;
    struct hist stale = {.sum = f64_from_bits(STALE_NAN_BITS)};
    chunk_hist_begin(&c, &out, 1, &first);
    assert_true(chunk_hist_fits(&c, &grew));
    assert_false(chunk_hist_fits(&c, &moved)); /* a bucket shrank: a reset */
    assert_true(chunk_hist_fits(&c, &no));     /* unless it is said to be none */
    assert_false(chunk_hist_fits(&c, &other));
    assert_false(chunk_hist_fits(&c, &floats));
    assert_false(chunk_hist_fits(&c, &gauge));
    assert_false(chunk_hist_fits(&c, &yes));
    assert_true(chunk_hist_fits(&c, &stale));
    chunk_hist_add(&c, 2, &stale);
    assert_false(chunk_hist_fits(&c, &grew)); /* after a stale marker only others */
    assert_true(chunk_hist_fits(&c, &stale));
    for (int i = 3; i <= CHUNK_SAMPLES_MAX; i++)
        chunk_hist_add(&c, i, &stale);
    assert_false(chunk_hist_fits(&c, &stale));
    chunk_hist_end(&c);
    struct hist_chunk *got = calloc(1, sizeof *got);
    read_hist_chunk(out.data, out.n, false, &arena, got);
    assert_int_equal(got->n, CHUNK_SAMPLES_MAX);
    assert_same(&got->h[0], &first);
    for (uint32_t i = 1; i < got->n; i++)
        assert_true(is_stale_nan(got->h[i].sum) && got->t[i] == i + 1);
    buf_clear(&out);
    chunk_hist_begin(&c, &out, 1, &gauge);
    assert_true(chunk_hist_fits(&c, &gauge));
    chunk_hist_end(&c);
    read_hist_chunk(out.data, out.n, false, &arena, got);
    assert_int_equal(got->header, 3);
    buf_clear(&out);
    chunk_hist_begin(&c, &out, 1, &yes);
    chunk_hist_end(&c);
    read_hist_chunk(out.data, out.n, false, &arena, got);
    assert_int_equal(got->header, 2);
    free(got);
    chunk_hist_deinit(&c);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_xor_by_hand),     cmocka_unit_test(test_classes),   cmocka_unit_test(test_xor_round_trip),
        cmocka_unit_test(test_hist_round_trip), cmocka_unit_test(test_what_fits),
    };
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_deinit(&arena);
    return failed;
}
