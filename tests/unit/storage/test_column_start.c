/*
 * test_column_start.c: columns of start timestamps come back whatever they are, stay small, and damage is refused.
 */
#include "tests/unit/testing.h"

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/column_start.h"

#define N LIMIT_BLOCK_SAMPLES

struct columns {
    int64_t t[N], start[N];
};

/* Encodes behind other bytes, decodes from and into heap blocks of the exact size, compares; returns the bytes. */
static size_t round_trip(const struct columns *c, size_t n)
{
    struct buf out = {0};
    struct column_start_hint hint = {0};
    buf_u32(&out, 0x01020304);
    column_start_encode(c->t, c->start, n, &hint, &out);
    size_t bytes = out.n - 4;
    uint8_t *copy = mem_dup(out.data + 4, bytes);
    int64_t *back = mem_alloc(n * sizeof *back);
    assert_ok(column_start_decode(copy, bytes, c->t, n, back));
    assert_memory_equal(c->start, back, n * sizeof *back);
    assert_err(column_start_decode(copy, bytes - 1, c->t, n, back), ERR_CORRUPT);
    mem_free(back);
    mem_free(copy);
    buf_deinit(&out);
    return bytes;
}

static void fill_times(struct rng *r, struct columns *c)
{
    int64_t t = INT64_C(1796034208352);
    for (size_t i = 0; i < N; i++)
        c->t[i] = t += 1 + (int64_t)rng_below(r, 30000); /* nothing regular to lean on */
}

static void test_usual_columns_are_small(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct columns c;
    fill_times(&r, &c);
    for (size_t i = 0; i < N; i++)
        c.start[i] = c.t[0] - 5000;
    assert_true(round_trip(&c, N) < 16); /* a counter that was never reset */
    for (size_t i = 0; i < N; i++)
        c.start[i] = c.t[i] - 60000;
    assert_true(round_trip(&c, N) < 16); /* deltas of a minute */
    for (size_t i = 0; i < N; i++)
        c.start[i] = i < 1000 ? c.t[0] - 1 : c.t[999] + 7;
    assert_true(round_trip(&c, N) < 24); /* one reset */
}

static void test_anything_comes_back(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    struct columns c;
    fill_times(&r, &c);
    for (size_t n = 1; n <= N; n += n < 40 ? 1 : 1 + rng_below(&r, 100)) {
        double none = rng_chance(&r, 0.5) ? 0 : rng_unit(&r);
        unsigned bits = (unsigned)rng_below(&r, 64);
        for (size_t i = 0; i < n; i++)
            c.start[i] = rng_chance(&r, none) ? 0 : (int64_t)((uint64_t)c.t[i] - (rng_next(&r) >> bits));
        round_trip(&c, n);
    }
    int64_t extremes[] = {INT64_MIN, INT64_MAX, 0, -1, 1};
    memcpy(c.start, extremes, sizeof extremes);
    round_trip(&c, ARRAY_LEN(extremes));
}

static void test_damage_is_refused(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    int64_t t[50], back[50];
    uint8_t bytes[100];
    for (size_t i = 0; i < ARRAY_LEN(t); i++)
        t[i] = (int64_t)i;
    bytes[0] = 2;
    assert_err(column_start_decode(bytes, 100, t, 50, back), ERR_CORRUPT);
    assert_err(column_start_decode(bytes, 0, t, 50, back), ERR_CORRUPT);
    for (int i = 0; i < 20000; i++) {
        size_t n = rng_below(&r, sizeof bytes);
        for (size_t k = 0; k < n; k++)
            bytes[k] = (uint8_t)(rng_chance(&r, 0.5) ? rng_below(&r, 3) : rng_next(&r));
        uint8_t *copy = mem_dup(bytes, n);
        err_free(column_start_decode(copy, n, t, 1 + rng_below(&r, 50), back));
        mem_free(copy);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_usual_columns_are_small),
        cmocka_unit_test(test_anything_comes_back),
        cmocka_unit_test(test_damage_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
