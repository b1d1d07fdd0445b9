/* test_postings.c: sets against a plain array of flags, their bytes there and back, and hostile bytes. */
#include "tests/unit/testing.h"

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/postings.h"

#define LIMIT 300000u

struct plain {
    bool *has;
    uint32_t *list;
    size_t n;
};

static void plain_list(struct plain *p)
{
    p->n = 0;
    for (uint32_t i = 0; i < LIMIT; i++)
        if (p->has[i]) p->list[p->n++] = i;
}

/* shape 0: sparse, 1: runs, 2: half of everything, 3: a few, 4: all, 5: none */
static void plain_fill(struct plain *p, struct rng *r, unsigned shape)
{
    p->has = mem_zalloc(LIMIT);
    p->list = mem_alloc(LIMIT * sizeof *p->list);
    for (uint32_t i = 0; i < LIMIT; i++) {
        if (shape == 0) p->has[i] = rng_chance(r, 0.01);
        if (shape == 1 && rng_chance(r, 0.001))
            for (uint32_t n = (uint32_t)rng_below(r, 500); n > 0 && i + 1 < LIMIT; n--)
                p->has[i++] = true;
        if (shape == 2) p->has[i] = rng_chance(r, 0.5);
        if (shape == 3) p->has[i] = rng_chance(r, 0.00002);
        if (shape == 4) p->has[i] = true;
    }
    plain_list(p);
}

static void plain_free(struct plain *p)
{
    mem_free(p->has);
    mem_free(p->list);
}

static void compare(const struct postings *set, const struct plain *p)
{
    uint32_t *list = mem_alloc((p->n + 1) * sizeof *list);
    assert_int_equal(postings_count(set), p->n);
    assert_int_equal(postings_list(set, list, p->n), p->n);
    assert_memory_equal(list, p->list, p->n * sizeof *list);
    assert_int_equal(postings_is_empty(set), p->n == 0);
    mem_free(list);
}

static void check_bytes(const struct plain *p)
{
    struct buf a = {0}, b = {0};
    struct postings *set = postings_of(p->list, p->n), *back;
    postings_encode(set, &a);
    postings_encode_list(p->list, p->n, &b);
    assert_int_equal(a.n, b.n);
    assert_memory_equal(a.data, b.data, a.n);
    assert_ok(postings_decode(buf_as_str(&a), LIMIT, &back));
    compare(back, p);
    if (p->n > 0)
        assert_err(postings_decode(buf_as_str(&a), p->list[p->n - 1], &(struct postings *){NULL}), ERR_CORRUPT);
    postings_destroy(set);
    postings_destroy(back);
    buf_deinit(&a);
    buf_deinit(&b);
}

static void test_bytes(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (unsigned shape = 0; shape < 6; shape++) {
        struct plain p;
        plain_fill(&p, &r, shape);
        check_bytes(&p);
        plain_free(&p);
    }
}

/* The three forms are really chosen: a list, runs, Roaring. */
static void test_forms(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static const uint8_t tags[] = {0, 1, 2, 0, 1, 0};
    for (unsigned shape = 0; shape < 6; shape++) {
        struct plain p;
        struct buf b = {0};
        plain_fill(&p, &r, shape);
        postings_encode_list(p.list, p.n, &b);
        assert_int_equal(b.data[0], tags[shape]);
        buf_deinit(&b);
        plain_free(&p);
    }
}

static void test_window(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (unsigned shape = 0; shape < 6; shape++) {
        struct plain p;
        struct buf b = {0};
        plain_fill(&p, &r, shape);
        postings_encode_list(p.list, p.n, &b);
        uint32_t from = 1000, to = LIMIT / 2;
        if (p.n > 2) { /* both ends are members */
            from = p.list[rng_below(&r, p.n / 2)];
            to = p.list[p.n / 2 + rng_below(&r, p.n / 2)];
        }
        struct postings *set = postings_create();
        assert_ok(postings_decode_or(buf_as_str(&b), LIMIT, from, to, set));
        for (uint32_t i = 0; i < LIMIT; i++) {
            if (i >= from && i <= to) assert_int_equal(postings_has(set, i), p.has[i]);
            if (postings_has(set, i)) assert_true(p.has[i]);
        }
        postings_destroy(set);
        buf_deinit(&b);
        plain_free(&p);
    }
}

static void test_operations(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (int round = 0; round < 6; round++) {
        struct plain a, b, want = {mem_zalloc(LIMIT), mem_alloc(LIMIT * sizeof(uint32_t)), 0};
        plain_fill(&a, &r, (unsigned)rng_below(&r, 6));
        plain_fill(&b, &r, (unsigned)rng_below(&r, 6));
        struct postings *x = postings_of(a.list, a.n), *y = postings_create(), *z[3];
        postings_add_many(y, b.list, b.n);
        for (int op = 0; op < 3; op++) {
            bool meet = false;
            for (uint32_t i = 0; i < LIMIT; i++) {
                want.has[i] = op == 0 ? a.has[i] && b.has[i] : op == 1 ? a.has[i] || b.has[i] : a.has[i] && !b.has[i];
                meet |= a.has[i] && b.has[i];
            }
            plain_list(&want);
            z[op] = postings_copy(x);
            (op == 0 ? postings_and : op == 1 ? postings_or : postings_andnot)(z[op], y);
            compare(z[op], &want);
            assert_int_equal(postings_intersects(x, y), meet);
        }
        struct postings *all = postings_or_many((const struct postings *[]){z[0], y, z[2]}, 3);
        postings_andnot(all, z[1]);
        assert_true(postings_is_empty(all));
        compare(x, &a);
        postings_destroy(all);
        for (int op = 0; op < 3; op++)
            postings_destroy(z[op]);
        postings_destroy(x);
        postings_destroy(y);
        plain_free(&a);
        plain_free(&b);
        plain_free(&want);
    }
}

static void test_small_things(void **state)
{
    (void)state;
    uint32_t from = 1, to = 1;
    struct postings *p = postings_range(5, 5), *none = postings_or_many(NULL, 0);
    assert_true(postings_is_empty(p));
    assert_true(postings_is_empty(none));
    assert_false(postings_bounds(p, &from, &to));
    postings_add(p, 7);
    postings_add(p, 70000);
    assert_true(postings_bounds(p, &from, &to) && from == 7 && to == 70000);
    assert_true(postings_has(p, 7) && !postings_has(p, 8));
    uint32_t one[1];
    assert_int_equal(postings_list(p, one, 1), 1);
    postings_destroy(p);
    postings_destroy(none);
    postings_destroy(NULL);
}

/* Any change to good bytes gives a set within the limit, or corruption. */
static void test_hostile_bytes(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    assert_err(postings_decode((str){"", 0}, 10, &(struct postings *){NULL}), ERR_CORRUPT);
    assert_err(postings_decode((str){"\x09", 1}, 10, &(struct postings *){NULL}), ERR_CORRUPT);
    for (unsigned shape = 0; shape < 4; shape++) {
        struct plain p;
        struct buf b = {0};
        plain_fill(&p, &r, shape);
        postings_encode_list(p.list, p.n, &b);
        for (int i = 0; i < 60; i++) {
            struct postings *set;
            size_t n = rng_chance(&r, 0.3) ? rng_below(&r, b.n + 1) : b.n, at = rng_below(&r, b.n < 64 ? b.n : 64);
            if (rng_chance(&r, 0.3)) at = rng_below(&r, b.n);
            uint8_t was = b.data[at], *copy;
            b.data[at] ^= (uint8_t)(1 + rng_below(&r, 255));
            copy = mem_dup(b.data, n > 0 ? n : 1);
            err e = postings_decode((str){(const char *)copy, n}, LIMIT, &set);
            if (e == NULL) {
                uint32_t from, to;
                if (postings_bounds(set, &from, &to)) assert_true(to < LIMIT);
                assert_true(postings_count(set) <= LIMIT);
                postings_destroy(set);
            } else {
                assert_err(e, ERR_CORRUPT);
            }
            b.data[at] = was;
            mem_free(copy);
        }
        buf_deinit(&b);
        plain_free(&p);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bytes),      cmocka_unit_test(test_forms),        cmocka_unit_test(test_window),
        cmocka_unit_test(test_operations), cmocka_unit_test(test_small_things), cmocka_unit_test(test_hostile_bytes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
