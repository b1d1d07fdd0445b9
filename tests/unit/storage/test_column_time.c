/*
 * test_column_time.c: columns of timestamps come back, stay small, and damage is refused.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/column_time.h"

#define N LIMIT_BLOCK_SAMPLES

static struct rng seeded(void)
{
    struct rng r;
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 0) : 20261130;
    print_message("VARVE_SEED=%llu\n", (unsigned long long)seed);
    rng_seed(&r, seed);
    return r;
}

/* Encodes, decodes from and into heap blocks of the exact size, compares; returns the bytes. */
static size_t round_trip(const int64_t *t, size_t n)
{
    struct buf out = {0};
    column_time_encode(t, n, &out);
    uint8_t *copy = mem_dup(out.data, out.n);
    int64_t *back = mem_alloc(n * sizeof *back);
    err e = column_time_decode(copy, out.n, n, back);
    if (e) fail_msg("%s", err_message(e));
    assert_memory_equal(t, back, n * sizeof *back);
    size_t bytes = out.n;
    mem_free(back);
    mem_free(copy);
    buf_deinit(&out);
    return bytes;
}

static void fill_steps(int64_t *t, size_t n, int64_t step)
{
    for (size_t i = 0; i < n; i++)
        t[i] = 1796034208352 + (int64_t)i * step;
}

static void every_length_comes_back(void **state)
{
    (void)state;
    struct rng r = seeded();
    int64_t t[N];
    for (size_t n = 1; n <= N; n += n < 200 ? 1 : 1 + rng_below(&r, 30)) {
        int64_t at = (int64_t)(rng_next(&r) >> 12) - (INT64_C(1) << 50);
        uint64_t most = UINT64_C(1) << rng_below(&r, 40);
        for (size_t i = 0; i < n; i++)
            t[i] = at += 1 + (int64_t)rng_below(&r, most);
        round_trip(t, n);
    }
}

static void extremes_come_back(void **state)
{
    (void)state;
    round_trip((int64_t[]){INT64_MIN, INT64_MAX}, 2);
    round_trip((int64_t[]){INT64_MIN, -1, 0, 1, INT64_MAX}, 5);
    round_trip((int64_t[]){LIMIT_TIME_MIN, LIMIT_TIME_MAX}, 2);
    round_trip((int64_t[]){INT64_MAX}, 1);
}

static void a_constant_step_is_a_few_bytes(void **state)
{
    (void)state;
    int64_t t[N];
    fill_steps(t, N, 15000);
    assert_true(round_trip(t, N) <= 11);
    fill_steps(t, N, 1);
    assert_true(round_trip(t, N) <= 11);
}

static void jitter_is_a_byte_a_sample(void **state)
{
    (void)state;
    struct rng r = seeded();
    int64_t t[240];
    fill_steps(t, 240, 15000);
    for (size_t i = 0; i < 240; i++)
        t[i] += (int64_t)rng_below(&r, 9);
    assert_true(round_trip(t, 240) <= 240 + 16);
}

static void a_gap_costs_a_patch(void **state)
{
    (void)state;
    int64_t t[240];
    fill_steps(t, 240, 15000);
    for (size_t i = 100; i < 240; i++)
        t[i] += 3600000;
    assert_true(round_trip(t, 240) <= 24);
}

static void expect_corrupt(const uint8_t *p, size_t bytes, size_t n)
{
    int64_t t[N];
    uint8_t *copy = mem_dup(p, bytes);
    err e = column_time_decode(copy, bytes, n, t);
    assert_int_equal(err_code(e), ERR_CORRUPT);
    err_free(e);
    mem_free(copy);
}

static void cut_or_longer_is_corrupt(void **state)
{
    (void)state;
    struct rng r = seeded();
    int64_t t[60], at = 0;
    for (size_t i = 0; i < 60; i++)
        t[i] = at += 1 + (int64_t)rng_below(&r, i == 30 ? 1000000000 : 5000);
    struct buf out = {0};
    column_time_encode(t, 60, &out);
    for (size_t cut = 0; cut < out.n; cut++)
        expect_corrupt(out.data, cut, 60);
    buf_u8(&out, 0);
    expect_corrupt(out.data, out.n, 60);
    buf_deinit(&out);
}

static void what_does_not_increase_is_corrupt(void **state)
{
    (void)state;
    struct buf out = {0};
    column_time_encode((int64_t[]){1, 2, 3, 3}, 4, &out);
    expect_corrupt(out.data, out.n, 4);
    buf_clear(&out);
    column_time_encode((int64_t[]){5, 4}, 2, &out);
    expect_corrupt(out.data, out.n, 2);
    buf_deinit(&out);
}

static void noise_never_crashes(void **state)
{
    (void)state;
    struct rng r = seeded();
    int64_t t[N];
    for (int turn = 0; turn < 50000; turn++) {
        uint8_t noise[64];
        for (size_t i = 0; i < sizeof noise; i++)
            noise[i] = (uint8_t)(rng_next(&r) >> (rng_chance(&r, 0.5) ? 0 : 5));
        size_t bytes = 1 + rng_below(&r, 64);
        uint8_t *copy = mem_dup(noise, bytes);
        err_free(column_time_decode(copy, bytes, 1 + rng_below(&r, turn % 2 ? N : 20), t));
        mem_free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_length_comes_back),
        cmocka_unit_test(extremes_come_back),
        cmocka_unit_test(a_constant_step_is_a_few_bytes),
        cmocka_unit_test(jitter_is_a_byte_a_sample),
        cmocka_unit_test(a_gap_costs_a_patch),
        cmocka_unit_test(cut_or_longer_is_corrupt),
        cmocka_unit_test(what_does_not_increase_is_corrupt),
        cmocka_unit_test(noise_never_crashes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
