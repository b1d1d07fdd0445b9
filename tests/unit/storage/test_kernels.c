/*
 * Unit kernels: every variant that this processor can run against the portable one, bit for bit, and the portable
 * one against definitions: all short lengths and widths, random and awkward numbers, no byte beyond the result.
 */
#include "tests/unit/testing.h"

#include <math.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/kernels.h"
#include "storage/kernels_choice.h"

enum { LENGTH_MAX = 208, LONG = 480, ROUNDS = 3, GUARD = 64, VARIANTS_MAX = 8 };

struct names {
    const char *name[VARIANTS_MAX];
    size_t n;
};

static void add_name(void *context, const char *name)
{
    struct names *names = context;
    assert_true(names->n < VARIANTS_MAX);
    names->name[names->n++] = name;
}

static struct names all_names(void)
{
    struct names names = {0};
    kernels_each(add_name, &names);
    return names;
}

/* ---- numbers */

static double awkward_double(struct rng *r)
{
    static const double some[] = {0.0,
                                  -0.0,
                                  NAN,
                                  -NAN,
                                  INFINITY,
                                  -INFINITY,
                                  5e-324,
                                  -5e-324,
                                  2.25e-308,
                                  1.7e308,
                                  0x1p51,
                                  -0x1p51,
                                  0x1p52,
                                  0x1p53,
                                  0.1,
                                  -0.3,
                                  1e22,
                                  123456.789,
                                  2251799813685247.0,
                                  0.5,
                                  1e-22,
                                  4503599627370495.5};
    return some[rng_below(r, ARRAY_LEN(some))];
}

/* Decimals, decimals a few ulps off, awkward ones, any bits: with few or many of each kind. */
static double any_double(struct rng *r, double oddness)
{
    double decimal = (double)((int64_t)rng_below(r, 2000000) - 1000000) / 1000;
    if (!rng_chance(r, oddness)) return decimal;
    uint64_t bits = rng_next(r);
    switch (rng_below(r, 3)) {
    case 0:
        return awkward_double(r);
    case 1:
        return nextafter(decimal, rng_chance(r, 0.5) ? INFINITY : -INFINITY);
    default:
        memcpy(&decimal, &bits, sizeof decimal);
        return decimal;
    }
}

static uint64_t any_integer(struct rng *r)
{
    static const uint64_t some[] = {0,
                                    1,
                                    255,
                                    256,
                                    65535,
                                    65536,
                                    UINT32_MAX,
                                    UINT64_C(1) << 51,
                                    UINT64_MAX,
                                    UINT64_C(1) << 63,
                                    (UINT64_C(1) << 63) - 1,
                                    UINT64_MAX - 32767};
    return rng_chance(r, 0.2) ? some[rng_below(r, ARRAY_LEN(some))] : rng_next(r) >> rng_below(r, 64);
}

/* ---- results of one variant, and comparing */

/* Room for a result with bytes after it that must stay as they are. Every call of a test writes into fresh ones. */
struct result {
    uint8_t *p;
    size_t bytes;
};

static struct result result_of(size_t bytes)
{
    struct result r = {mem_alloc(bytes + GUARD), bytes};
    memset(r.p, 0xa5, bytes + GUARD);
    return r;
}

static void result_free(struct result *r)
{
    for (size_t i = 0; i < GUARD; i++)
        assert_int_equal(r->p[r->bytes + i], 0xa5);
    mem_free(r->p);
}

static void assert_same(struct result *a, struct result *b, const char *variant, const char *what, size_t n)
{
    assert_int_equal(a->bytes, b->bytes);
    if (a->bytes > 0 && memcmp(a->p, b->p, a->bytes) != 0)
        fail_msg("%s: %s of %zu numbers differs from portable", variant, what, n);
    result_free(a);
    result_free(b);
}

/* ---- planes */

static struct result split_by(const char *variant, const uint64_t *u, size_t n, unsigned width)
{
    struct result planes = result_of(n * width);
    assert_ok(kernels_choose(variant));
    kernels_split(u, n, width, planes.p);
    return planes;
}

static struct result join_by(const char *variant, const uint8_t *planes, size_t n, unsigned width)
{
    struct result u = result_of(8 * n);
    assert_ok(kernels_choose(variant));
    kernels_join(planes, n, width, (uint64_t *)u.p);
    return u;
}

static void planes_by_definition(const uint64_t *u, size_t n, unsigned width)
{
    struct result planes = split_by("portable", u, n, width), back = join_by("portable", planes.p, n, width);
    uint64_t mask = width == 8 ? UINT64_MAX : (UINT64_C(1) << (8 * width)) - 1;
    for (size_t i = 0; i < n; i++) {
        uint64_t x;
        memcpy(&x, back.p + 8 * i, 8);
        assert_true(x == (u[i] & mask));
        for (unsigned plane = 0; plane < width; plane++)
            assert_int_equal(planes.p[plane * n + i], u[i] >> (8 * (width - 1 - plane)) & 0xff);
    }
    result_free(&planes);
    result_free(&back);
}

static void planes_case(const struct names *names, const uint64_t *u, size_t n, unsigned width)
{
    planes_by_definition(u, n, width);
    for (size_t i = 1; i < names->n; i++) {
        const char *name = names->name[i];
        struct result ours = split_by(name, u, n, width), planes = split_by("portable", u, n, width);
        struct result back = join_by(name, planes.p, n, width), expected = join_by("portable", planes.p, n, width);
        assert_same(&ours, &planes, name, "split", n);
        assert_same(&back, &expected, name, "join", n);
    }
}

static void test_planes(void **state)
{
    (void)state;
    struct names names = all_names();
    struct rng r;
    rng_seed(&r, test_seed());
    for (size_t n = 0; n <= LENGTH_MAX + 1; n++) {
        size_t count = n <= LENGTH_MAX ? n : LONG;
        uint64_t *u = mem_alloc((count + 1) * sizeof *u);
        for (size_t i = 0; i < count; i++)
            u[i] = any_integer(&r);
        for (unsigned width = 0; width <= 8; width++)
            planes_case(&names, u, count, width);
        mem_free(u);
    }
}

/* ---- decimals and order */

struct floats_result {
    struct result k, r, bad, unscaled, with_ulps, ordered, unordered;
    size_t n_bad;
    bool any_residual;
};

static struct floats_result floats_by(const char *variant, const double *v, const int64_t *any, size_t n,
                                      unsigned exponent)
{
    struct floats_result f = {.k = result_of(8 * n),
                              .r = result_of(8 * n),
                              .bad = result_of(n),
                              .unscaled = result_of(8 * n),
                              .with_ulps = result_of(8 * n),
                              .ordered = result_of(8 * n),
                              .unordered = result_of(8 * n)};
    assert_ok(kernels_choose(variant));
    f.n_bad = kernels_scale(v, n, exponent, (int64_t *)f.k.p, (int64_t *)f.r.p, f.bad.p, &f.any_residual);
    kernels_unscale(any, n, exponent, (double *)f.unscaled.p);
    kernels_unscale((int64_t *)f.k.p, n, exponent, (double *)f.with_ulps.p);
    kernels_add_ulps((double *)f.with_ulps.p, (int64_t *)f.r.p, n);
    kernels_order(v, n, (int64_t *)f.ordered.p);
    kernels_unorder((int64_t *)f.ordered.p, n, (double *)f.unordered.p);
    return f;
}

static void floats_by_definition(const double *v, size_t n, const struct floats_result *f)
{
    size_t n_bad = 0;
    for (size_t i = 0; i < n; i++) {
        assert_in_range(f->bad.p[i], 0, 1);
        n_bad += f->bad.p[i];
        assert_memory_equal(f->unordered.p + 8 * i, &v[i], 8);
        if (!f->bad.p[i]) assert_memory_equal(f->with_ulps.p + 8 * i, &v[i], 8);
    }
    assert_int_equal(f->n_bad, n_bad);
}

static void floats_case(const struct names *names, const double *v, const int64_t *any, size_t n, unsigned exponent)
{
    for (size_t i = 0; i < names->n; i++) {
        const char *name = names->name[i];
        struct floats_result a = floats_by(name, v, any, n, exponent), b = floats_by("portable", v, any, n, exponent);
        floats_by_definition(v, n, &a);
        assert_int_equal(a.n_bad, b.n_bad);
        assert_int_equal(a.any_residual, b.any_residual);
        assert_same(&a.k, &b.k, name, "scale", n);
        assert_same(&a.r, &b.r, name, "scale's residual", n);
        assert_same(&a.bad, &b.bad, name, "scale's bad", n);
        assert_same(&a.unscaled, &b.unscaled, name, "unscale", n);
        assert_same(&a.with_ulps, &b.with_ulps, name, "add_ulps", n);
        assert_same(&a.ordered, &b.ordered, name, "order", n);
        assert_same(&a.unordered, &b.unordered, name, "unorder", n);
    }
}

static void test_floats(void **state)
{
    (void)state;
    static const double oddness[ROUNDS] = {0, 0.02, 0.5};
    struct names names = all_names();
    struct rng r;
    rng_seed(&r, test_seed());
    for (size_t n = 0; n <= LENGTH_MAX + 1; n++) {
        size_t count = n <= LENGTH_MAX ? n : LONG;
        double *v = mem_alloc((count + 1) * sizeof *v);
        int64_t *any = mem_alloc((count + 1) * sizeof *any);
        for (size_t round = 0; round < ROUNDS; round++) {
            for (size_t i = 0; i < count; i++) {
                v[i] = any_double(&r, oddness[round]);
                any[i] = (int64_t)any_integer(&r) % (KERNELS_DECIMAL_MAX + 1);
            }
            floats_case(&names, v, any, count, 3);
            floats_case(&names, v, any, count, (unsigned)rng_below(&r, KERNELS_EXPONENT_MAX + 1));
        }
        mem_free(v);
        mem_free(any);
    }
}

/* One instruction for a product and a sum would round 0.1 * 10 + 1.5 * 2^52 otherwise somewhere here. */
static void test_rounds_twice(void **state)
{
    (void)state;
    struct names names = all_names();
    double v[LENGTH_MAX];
    int64_t any[LENGTH_MAX] = {0};
    for (size_t i = 0; i < LENGTH_MAX; i++)
        v[i] = ((double)i + 0.5) / 1e7;
    for (size_t i = 0; i < LENGTH_MAX; i += 2)
        v[i] = nextafter(v[i], 0);
    for (unsigned exponent = 5; exponent < 9; exponent++)
        floats_case(&names, v, any, LENGTH_MAX, exponent);
}

/* ---- the choice */

static void test_choice(void **state)
{
    (void)state;
    struct names names = all_names();
    assert_string_equal(names.name[0], "portable");
    for (size_t i = 0; i < names.n; i++) {
        assert_ok(kernels_choose(names.name[i]));
        assert_string_equal(kernels_chosen(), names.name[i]);
    }
    err e = kernels_choose("mmx");
    assert_non_null(strstr(err_message(e), "mmx"));
    assert_non_null(strstr(err_message(e), " portable"));
    assert_err(e, ERR_INVALID);
    assert_err(kernels_choose(""), ERR_INVALID);
    assert_string_equal(kernels_chosen(), names.name[names.n - 1]);
    assert_ok(kernels_choose(NULL));
    assert_string_equal(kernels_chosen(), names.name[names.n - 1]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_planes),
        cmocka_unit_test(test_floats),
        cmocka_unit_test(test_rounds_twice),
        cmocka_unit_test(test_choice),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
