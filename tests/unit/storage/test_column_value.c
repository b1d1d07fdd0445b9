/*
 * test_column_value.c: columns of doubles come back bit for bit, whatever they hold, whatever the hint says;
 * what does not come from the encoder is refused or harmless.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/column_value.h"

#define N LIMIT_BLOCK_SAMPLES

struct fixture {
    struct column_scratch *scratch;
    struct rng rng;
    double v[N], back[N + COLUMN_VALUE_PAD];
    struct buf out;
};

static struct fixture *fixture_create(void)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261130;
    print_message("VARVE_SEED=%llu\n", (unsigned long long)seed);
    rng_seed(&f->rng, seed);
    f->scratch = column_scratch_create();
    return f;
}

static void fixture_destroy(struct fixture *f)
{
    column_scratch_destroy(f->scratch);
    buf_deinit(&f->out);
    mem_free(f);
}

static void expect_same(const double *a, const double *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (f64_bits(a[i]) != f64_bits(b[i])) fail_msg("value %zu of %zu: %a became %a", i, n, a[i], b[i]);
}

/* Decodes from a heap copy of the exact size, so that ASan sees any read too far. */
static err decode_exact(struct fixture *f, const uint8_t *p, size_t bytes, size_t n)
{
    uint8_t *copy = mem_dup(p, bytes);
    err e = column_value_decode(f->scratch, copy, bytes, n, f->back);
    mem_free(copy);
    return e;
}

static size_t round_trip(struct fixture *f, size_t n, struct column_hint *hint)
{
    buf_clear(&f->out);
    column_value_encode(f->scratch, f->v, n, hint, &f->out);
    err e = decode_exact(f, f->out.data, f->out.n, n);
    if (e) fail_msg("%s", err_message(e));
    expect_same(f->v, f->back, n);
    assert_true(f->out.n <= 9 * n + 64);
    return f->out.n;
}

/* ---- kinds of data; each fills v[0..n) */

typedef void (*fill_fn)(struct rng *r, double *v, size_t n);

static double signed_unit(struct rng *r)
{
    return rng_unit(r) * 2 - 1;
}

static void fill_random_bits(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = f64_from_bits(rng_next(r));
}

static void fill_counter(struct rng *r, double *v, size_t n)
{
    double at = (double)rng_below(r, 1000000);
    for (size_t i = 0; i < n; i++) {
        at = rng_chance(r, 0.01) ? 0 : at + (double)rng_below(r, 300);
        v[i] = at;
    }
}

static void fill_sparse_counter(struct rng *r, double *v, size_t n)
{
    double at = 1e9;
    for (size_t i = 0; i < n; i++)
        v[i] = at += rng_chance(r, 0.03) ? 1 : 0;
}

static void fill_gauge(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (double)(int64_t)(signed_unit(r) * 5000) / 100;
}

static void fill_pages(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = 4096.0 * (double)rng_below(r, 3000000);
}

static void fill_sums_of_tenths(struct rng *r, double *v, size_t n)
{
    double at = 0;
    for (size_t i = 0; i < n; i++)
        v[i] = at += 0.1 * (double)rng_below(r, 4);
}

static void fill_sums_of_microseconds(struct rng *r, double *v, size_t n)
{
    double at = 0;
    for (size_t i = 0; i < n; i++)
        v[i] = at += (double)rng_below(r, 1000000) / 1e6;
}

static void fill_denormals(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = f64_from_bits(rng_next(r) >> 12 | (rng_chance(r, 0.5) ? UINT64_C(1) << 63 : 0));
}

static void fill_tiny_denormals(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = f64_from_bits(rng_below(r, 100000));
}

static void fill_edges_of_integers(struct rng *r, double *v, size_t n)
{
    static const double edges[] = {0x1p31, 0x1p32, 0x1p50, 0x1p51, 0x1p52, 0x1p53, 0x1p62, 0x1p63, 0x1p64};
    for (size_t i = 0; i < n; i++) {
        double edge = edges[rng_below(r, ARRAY_LEN(edges))] + (double)rng_below(r, 5) - 2;
        v[i] = rng_chance(r, 0.5) ? edge : -edge;
    }
}

static void fill_seventeen_digits(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = 1796034208.0 + rng_unit(r);
}

static void fill_floats32(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = (float)signed_unit(r);
}

static void fill_specials(struct rng *r, double *v, size_t n)
{
    static const uint64_t specials[] = {0,
                                        UINT64_C(1) << 63,
                                        UINT64_C(0x7ff0000000000000),
                                        UINT64_C(0xfff0000000000000),
                                        STALE_NAN_BITS,
                                        UINT64_C(0x7ff8000000000001),
                                        UINT64_C(0xffffffffffffffff),
                                        UINT64_C(0x7fefffffffffffff),
                                        1};
    for (size_t i = 0; i < n; i++)
        v[i] = f64_from_bits(specials[rng_below(r, ARRAY_LEN(specials))]);
}

static void fill_outliers(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = rng_chance(r, 0.03) ? signed_unit(r) * 1e300 : (double)rng_below(r, 10);
}

static void fill_steps(struct rng *r, double *v, size_t n)
{
    double start = (double)rng_below(r, 1000) / 4, step = signed_unit(r) > 0 ? 15 : -0.25;
    for (size_t i = 0; i < n; i++)
        v[i] = start + step * (double)i;
}

static void fill_mixed_exponents(struct rng *r, double *v, size_t n)
{
    static const double powers[] = {1e0, 1e3, 1e9, 1e18, 1e22};
    for (size_t i = 0; i < n; i++)
        v[i] = (double)(int64_t)(signed_unit(r) * 1e6) / powers[rng_below(r, ARRAY_LEN(powers))];
}

static void fill_huge(struct rng *r, double *v, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = rng_chance(r, 0.5) ? signed_unit(r) * 1.7e308 : signed_unit(r) * 9.2e18;
}

static const fill_fn fills[] = {fill_random_bits,
                                fill_counter,
                                fill_sparse_counter,
                                fill_gauge,
                                fill_pages,
                                fill_sums_of_tenths,
                                fill_sums_of_microseconds,
                                fill_denormals,
                                fill_tiny_denormals,
                                fill_edges_of_integers,
                                fill_seventeen_digits,
                                fill_floats32,
                                fill_specials,
                                fill_outliers,
                                fill_steps,
                                fill_mixed_exponents,
                                fill_huge};

/* Sprinkles exceptions over v. */
static void disturb(struct rng *r, double *v, size_t n)
{
    double some[1];
    size_t times = 1 + rng_below(r, 1 + n / 10);
    for (size_t i = 0; i < times; i++) {
        fill_specials(r, some, 1);
        v[rng_below(r, n)] = some[0];
    }
}

static void every_kind_comes_back(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    for (size_t kind = 0; kind < ARRAY_LEN(fills); kind++) {
        for (int turn = 0; turn < 40; turn++) {
            size_t n = 1 + rng_below(&f->rng, turn % 4 == 0 ? N : 200);
            fills[kind](&f->rng, f->v, n);
            if (turn % 2) disturb(&f->rng, f->v, n);
            round_trip(f, n, NULL);
        }
    }
    fixture_destroy(f);
}

static void every_length_comes_back(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    for (size_t n = 1; n <= N; n += n < 300 ? 1 : 1 + rng_below(&f->rng, 20)) {
        fills[rng_below(&f->rng, ARRAY_LEN(fills))](&f->rng, f->v, n);
        round_trip(f, n, NULL);
    }
    fill_random_bits(&f->rng, f->v, N);
    round_trip(f, N, NULL);
    fixture_destroy(f);
}

/* A hint kept over blocks of changing nature, and hints that are plain noise, never harm. */
static void wrong_hints_are_harmless(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    struct column_hint hint = {0};
    for (int turn = 0; turn < 600; turn++) {
        size_t n = 1 + rng_below(&f->rng, 150);
        fills[rng_below(&f->rng, ARRAY_LEN(fills))](&f->rng, f->v, n);
        if (rng_chance(&f->rng, 0.2)) {
            uint64_t noise = rng_next(&f->rng);
            memcpy(&hint, &noise, sizeof hint);
        }
        round_trip(f, n, &hint);
    }
    fixture_destroy(f);
}

static void a_hint_adapts(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    struct column_hint hint = {0};
    fill_sums_of_microseconds(&f->rng, f->v, 240);
    round_trip(f, 240, &hint);
    fill_counter(&f->rng, f->v, 240);
    size_t after = round_trip(f, 240, &hint), fresh = round_trip(f, 240, NULL);
    assert_int_equal(after, fresh);
    fixture_destroy(f);
}

static void sizes_are_small(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    for (size_t i = 0; i < 240; i++)
        f->v[i] = 0;
    assert_int_equal(round_trip(f, 240, NULL), 1);
    for (size_t i = 0; i < 240; i++)
        f->v[i] = 1;
    assert_int_equal(round_trip(f, 240, NULL), 3);
    f->v[239] = f64_from_bits(STALE_NAN_BITS);
    assert_true(round_trip(f, 240, NULL) <= 16);
    for (size_t i = 0; i < 240; i++)
        f->v[i] = (double)(1000 + 15 * i) / 10;
    assert_true(round_trip(f, 240, NULL) <= 8);
    for (size_t i = 0; i < 240; i++)
        f->v[i] = i < 100 ? 1000 : i < 200 ? 1001 : 1002;
    assert_true(round_trip(f, 240, NULL) <= 12);
    fill_gauge(&f->rng, f->v, 240);
    assert_true(round_trip(f, 240, NULL) <= 2 * 240 + 16);
    fill_sums_of_tenths(&f->rng, f->v, 240);
    assert_true(round_trip(f, 240, NULL) <= 2 * 240 + 32);
    fixture_destroy(f);
}

static void constants_need_no_decoding(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    static const uint64_t bits[] = {0, 1, UINT64_C(1) << 63, STALE_NAN_BITS, UINT64_C(0x7ff0000000000000)};
    for (size_t kind = 0; kind < ARRAY_LEN(bits); kind++) {
        for (size_t i = 0; i < 7; i++)
            f->v[i] = f64_from_bits(bits[kind]);
        round_trip(f, 7, NULL);
        double v = 0.5;
        assert_true(column_value_is_constant(f->out.data, f->out.n, &v));
        assert_true(f64_bits(v) == bits[kind]);
    }
    f->v[6] = 7;
    round_trip(f, 7, NULL);
    double v;
    assert_false(column_value_is_constant(f->out.data, f->out.n, &v));
    assert_false(column_value_is_constant("", 0, &v));
    fixture_destroy(f);
}

/* ---- bytes written by hand after storage/FORMAT.md: the reader and the document agree, for ever */

static void expect_values(struct fixture *f, const char *bytes, size_t n_bytes, const double *v, size_t n)
{
    err e = decode_exact(f, (const uint8_t *)bytes, n_bytes, n);
    if (e) fail_msg("%s", err_message(e));
    expect_same(v, f->back, n);
}

#define EXPECT_VALUES(f, bytes, ...)                                                                                   \
    expect_values(f, bytes, sizeof(bytes) - 1, (const double[]){__VA_ARGS__},                                          \
                  ARRAY_LEN(((const double[]){__VA_ARGS__})))

static void every_predictor_reads_as_documented(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    /* PLAIN_OFFSET, one plane, anchor 10 */
    EXPECT_VALUES(f, "\x00\x01\x14\x00\x02\x01", 10, 12, 11);
    /* PLAIN_ZIGZAG, two decimals, two planes: 300, -2, 0 */
    EXPECT_VALUES(f, "\x02\x12\x00\x02\x00\x00\x58\x03\x00", 3.00, -0.02, 0);
    /* DELTA_OFFSET, anchor -1, step at least 5 */
    EXPECT_VALUES(f, "\x00\x21\x01\x0a\x00\x02", -1, 4, 11);
    /* DELTA_ZIGZAG, shift 12, anchor 0 */
    EXPECT_VALUES(f, "\x00\xb1\x0c\x00\x02\x01", 0, 4096, 0);
    /* DELTA2_ZIGZAG, anchor 0, first step 1 */
    EXPECT_VALUES(f, "\x00\x41\x00\x02\x02\x02", 0, 1, 3, 6);
    /* LINEAR_OFFSET, width 0, anchor 0, step -7: nothing but the head */
    EXPECT_VALUES(f, "\x00\x50\x00\x0d", 0, -7, -14, -21);
    /* DELTA_OFFSET, width 0, a patch of 300 at number 1 */
    EXPECT_VALUES(f, "\x00\xa0\x40\x00\x00\x01\x01\xac\x02", 0, 0, 300, 300);
    fixture_destroy(f);
}

static void every_code_reads_as_documented(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    EXPECT_VALUES(f, "\x1f", 0, 0, 0);
    EXPECT_VALUES(f, "\x1f\x3f\xf8", 1.5, 1.5);
    EXPECT_VALUES(f, "\x1f\x80", -0.0);
    /* ordered bits, the line -2, -1, 0: the greatest negative number, -0, 0 */
    EXPECT_VALUES(f, "\x1e\x50\x03\x02", -0x1p-1074, -0.0, 0.0);
    /* residuals: 0.1 + 0.2 is 3 / 10 and one ulp */
    EXPECT_VALUES(f, "\x21\x50\x06\x02\x11\x00\x02\x00", 0.1 + 0.2, 0.4);
    /* an exception: the stale marker at position 1 */
    EXPECT_VALUES(f, "\x40\x00\x04\x01\x01\x7f\xf0\x00\x00\x00\x00\x00\x02", 2, f64_from_bits(STALE_NAN_BITS), 2);
    fixture_destroy(f);
}

static void expect_corrupt(struct fixture *f, const uint8_t *p, size_t bytes, size_t n)
{
    err e = decode_exact(f, p, bytes, n);
    assert_int_equal(err_code(e), ERR_CORRUPT);
    err_free(e);
}

/* Every proper prefix, and the whole with a byte more, is refused. */
static void cut_or_longer_is_corrupt(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    for (size_t kind = 0; kind < ARRAY_LEN(fills); kind++) {
        fills[kind](&f->rng, f->v, 70);
        if (kind % 2) disturb(&f->rng, f->v, 70);
        f->v[3] = 12345; /* a constant, cut, is another constant */
        round_trip(f, 70, NULL);
        struct buf bytes = {0};
        buf_put(&bytes, f->out.data, f->out.n);
        for (size_t cut = 0; cut < bytes.n; cut++)
            expect_corrupt(f, bytes.data, cut, 70);
        buf_u8(&bytes, 0);
        expect_corrupt(f, bytes.data, bytes.n, 70);
        buf_deinit(&bytes);
    }
    fixture_destroy(f);
}

static void malformed_heads_are_corrupt(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    static const str bad[] = {
        {"", 0},                                                      /* nothing */
        {"\x13\x00\x00", 3},                                          /* exponent 19 */
        {"\x80\x00\x00", 3},                                          /* bit 7 */
        {"\x3e\x00\x00\x00\x00", 5},                                  /* residuals of bits */
        {"\x1f\x3f\xf8\x00\x00\x00\x00\x00\x00\x00", 10},             /* a constant of nine bytes */
        {"\x1f\x3f\x00", 3},                                          /* a constant with a zero byte at the end */
        {"\x00\x09\x00", 3},                                          /* width 9 */
        {"\x00\x60\x00", 3},                                          /* predictor 6 */
        {"\x00\x80\x80\x00", 4},                                      /* bit 7 of the second byte */
        {"\x00\x80\x40\x00\x00", 5},                                  /* no patch */
        {"\x00\x80\x40\x00\x05\x00", 6},                              /* more patches than numbers */
        {"\x00\x80\x40\x00\x01\x04\x00", 7},                          /* a patch behind the last number */
        {"\x40\x00\x04\x00", 4},                                      /* no exception */
        {"\x40\x00\x04\x01\x04\x00\x00\x00\x00\x00\x00\x00\x00", 13}, /* an exception behind the last value */
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        expect_corrupt(f, (const uint8_t *)bad[i].p, bad[i].n, 4);
    fixture_destroy(f);
}

static void damaged_bytes_never_crash(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    for (int turn = 0; turn < 6000; turn++) {
        size_t n = 1 + rng_below(&f->rng, 100);
        fills[rng_below(&f->rng, ARRAY_LEN(fills))](&f->rng, f->v, n);
        buf_clear(&f->out);
        column_value_encode(f->scratch, f->v, n, NULL, &f->out);
        size_t near = f->out.n < 16 ? f->out.n : 16;
        for (int flips = 0; flips < 3; flips++)
            f->out.data[rng_below(&f->rng, rng_chance(&f->rng, 0.5) ? near : f->out.n)] ^= (uint8_t)rng_next(&f->rng);
        err_free(decode_exact(f, f->out.data, f->out.n, 1 + rng_below(&f->rng, N)));
        err_free(decode_exact(f, f->out.data, f->out.n, n));
    }
    fixture_destroy(f);
}

static void a_full_buffer_only_fails(void **state)
{
    (void)state;
    struct fixture *f = fixture_create();
    fill_random_bits(&f->rng, f->v, N);
    f->out.max = 1000;
    column_value_encode(f->scratch, f->v, N, NULL, &f->out);
    assert_true(f->out.failed);
    fixture_destroy(f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_kind_comes_back),
        cmocka_unit_test(every_length_comes_back),
        cmocka_unit_test(wrong_hints_are_harmless),
        cmocka_unit_test(a_hint_adapts),
        cmocka_unit_test(sizes_are_small),
        cmocka_unit_test(constants_need_no_decoding),
        cmocka_unit_test(cut_or_longer_is_corrupt),
        cmocka_unit_test(damaged_bytes_never_crash),
        cmocka_unit_test(a_full_buffer_only_fails),
        cmocka_unit_test(every_predictor_reads_as_documented),
        cmocka_unit_test(every_code_reads_as_documented),
        cmocka_unit_test(malformed_heads_are_corrupt),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
