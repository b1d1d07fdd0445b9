/*
 * test_histogram.c: native histograms: arithmetic over different layouts, resets, quantiles, fractions, trimming; and
 * classic buckets. Expected values follow from the bucket bounds by hand.
 */
#include "tests/unit/testing.h"

#include <math.h>

#include "query/histogram.h"
#include "storage/base/rng.h"

static struct arena a;

static int setup(void **state)
{
    (void)state;
    arena_init(&a);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    arena_deinit(&a);
    return 0;
}

/* Buckets at consecutive indexes from `first`. */
static struct hist *make(int32_t schema, int32_t first, const double *counts, uint32_t n)
{
    struct hist *h = arena_zalloc(&a, sizeof *h);
    h->schema = schema;
    h->positive_spans = arena_alloc(&a, sizeof *h->positive_spans);
    h->positive_spans[0] = (struct hist_span){first, n};
    h->n_positive_spans = n > 0;
    h->positive = arena_dup(&a, counts, n * sizeof *counts);
    h->n_positive = n;
    for (uint32_t i = 0; i < n; i++)
        h->count += counts[i];
    h->sum = h->count;
    return h;
}

static struct hist *with_custom(struct hist *h, const double *bounds, uint32_t n)
{
    h->schema = HIST_SCHEMA_CUSTOM;
    h->custom = arena_dup(&a, bounds, n * sizeof *bounds);
    h->n_custom = n;
    return h;
}

/* The text form holds count, sum and all populated buckets. */
static void expect_text(const struct hist *h, const char *want)
{
    struct buf out = {0};
    hist_print(h, &out, &a);
    buf_u8(&out, 0);
    assert_string_equal((char *)out.data, want);
    buf_deinit(&out);
}

static bool near(double x, double y)
{
    return x == y || fabs(x - y) <= 1e-12 * fmax(fabs(x), fabs(y));
}

static void test_bounds(void **state)
{
    (void)state;
    assert_true(hist_bound(0, 0, NULL, 0) == 1 && hist_bound(3, 0, NULL, 0) == 8 && hist_bound(-2, 0, NULL, 0) == 0.25);
    assert_true(hist_bound(1, -2, NULL, 0) == 16 && hist_bound(-1, -2, NULL, 0) == 0.0625);
    assert_true(hist_bound(2, 1, NULL, 0) == 2 && hist_bound(-1, 1, NULL, 0) == 0.7071067811865475);
    assert_true(hist_bound(1024, 0, NULL, 0) < INFINITY && hist_bound(1025, 0, NULL, 0) == INFINITY);
    const double custom[] = {1, 5};
    assert_true(hist_bound(-1, HIST_SCHEMA_CUSTOM, custom, 2) == -INFINITY);
    assert_true(hist_bound(1, HIST_SCHEMA_CUSTOM, custom, 2) == 5);
    assert_true(hist_bound(2, HIST_SCHEMA_CUSTOM, custom, 2) == INFINITY);
}

static void test_add_and_sub(void **state)
{
    (void)state;
    struct hist *x = make(0, 1, (const double[]){1, 2}, 2), *y = make(0, 2, (const double[]){5, 0, 7}, 3);
    struct hist *sum = hist_copy(&a, x);
    assert_false(hist_add(sum, y, &a).incompatible);
    expect_text(sum, "{count:15, sum:15, (1,2]:1, (2,4]:7, (8,16]:7}");
    hist_sub(sum, y, &a);
    hist_compact(sum, &a);
    assert_true(hist_equal(sum, x));
    hist_mul(sum, -2);
    assert_int_equal(sum->reset_hint, HIST_RESET_GAUGE);
    expect_text(sum, "{count:-6, sum:-6, (1,2]:-2, (2,4]:-4}");
    hist_div(sum, 0);
    assert_int_equal(sum->n_positive, 0);
}

static void test_schemas_meet(void **state)
{
    (void)state;
    struct hist *fine = make(1, 1, (const double[]){1, 2, 3, 4}, 4); /* (1,1.41] (1.41,2] (2,2.83] (2.83,4] */
    struct hist *coarse = make(0, 1, (const double[]){10, 20}, 2);
    hist_add(fine, coarse, &a);
    expect_text(fine, "{count:40, sum:40, (1,2]:13, (2,4]:27}");
    assert_int_equal(fine->schema, 0);
    struct hist *low = hist_to_schema(coarse, -1, &a);
    expect_text(low, "{count:30, sum:30, (1,4]:30}");
}

static void test_zero_buckets_meet(void **state)
{
    (void)state;
    struct hist *x = make(0, 0, (const double[]){4, 1}, 2), *y = make(0, 1, (const double[]){3}, 1); /* (0.5,1] (1,2] */
    x->zero_count = 1;
    x->zero_threshold = 0.001;
    y->zero_count = 2;
    y->zero_threshold = 0.75; /* inside a populated bucket of x: grows to 1 */
    hist_add(x, y, &a);
    assert_true(x->zero_threshold == 1 && x->zero_count == 7);
    expect_text(x, "{count:8, sum:8, [-1,1]:7, (1,2]:4}");
}

static void test_custom_bounds_meet(void **state)
{
    (void)state;
    struct hist *x = with_custom(make(0, 0, (const double[]){1, 2, 3}, 3), (const double[]){5, 10}, 2);
    struct hist *y = with_custom(make(0, 0, (const double[]){4, 8}, 2), (const double[]){10}, 1);
    struct hist_outcome o = hist_add(x, y, &a);
    assert_true(o.reconciled && !o.incompatible);
    expect_text(x, "{count:18, sum:18, [-Inf,10]:7, (10,+Inf]:11}");
    assert_true(hist_add(x, make(0, 0, (const double[]){1}, 1), &a).incompatible);
}

static void test_hints(void **state)
{
    (void)state;
    struct hist *x = make(0, 0, (const double[]){1}, 1), *y = hist_copy(&a, x);
    x->reset_hint = HIST_RESET_YES;
    y->reset_hint = HIST_RESET_NO;
    assert_true(hist_add(x, y, &a).reset_collision);
    assert_int_equal(x->reset_hint, HIST_RESET_UNKNOWN);
    y->reset_hint = HIST_RESET_GAUGE;
    assert_false(hist_add(x, y, &a).reset_collision);
    assert_int_equal(x->reset_hint, HIST_RESET_GAUGE);
}

static void test_running_sums(void **state)
{
    (void)state;
    struct hist_sum sum = {0}, mean = {.mean = true};
    const double values[] = {1e100, 1, -1e100};
    for (int i = 0; i < 3; i++) {
        struct hist *h = make(0, i, values + i, 1);
        hist_sum_add(&sum, h, &a);
        hist_sum_add(&mean, h, &a);
    }
    assert_true(hist_sum_take(&sum, &a)->sum == 1);
    assert_true(near(hist_sum_take(&mean, &a)->sum, 1.0 / 3));
    struct hist_sum huge = {.mean = true};
    const double most = 1.7e308;
    for (int i = 0; i < 3; i++)
        hist_sum_add(&huge, make(0, 0, &most, 1), &a);
    assert_true(near(hist_sum_take(&huge, &a)->count, most));
}

/* Sums in place (same layout) and by merging agree. */
static void test_layouts_do_not_matter(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (int round = 0; round < 200; round++) {
        double counts[8], total = 0, sum = 0;
        struct hist *wide = make(0, -8, (const double[24]){0}, 24), *narrow = NULL;
        for (int i = 0; i < 10; i++) {
            uint32_t n = (uint32_t)rng_below(&r, 8) + 1;
            for (uint32_t k = 0; k < n; k++)
                counts[k] = (double)rng_below(&r, 100);
            struct hist *h = make(0, (int32_t)rng_below(&r, 16) - 8, counts, n);
            total += h->count;
            sum += h->sum;
            hist_add(wide, h, &a);
            if (narrow)
                hist_add(narrow, h, &a);
            else
                narrow = h;
        }
        hist_compact(wide, &a);
        hist_compact(narrow, &a);
        assert_true(hist_equal(wide, narrow));
        assert_true(wide->count == total && wide->sum == sum);
    }
}

static void test_resets(void **state)
{
    (void)state;
    struct hist *x = make(0, 1, (const double[]){5, 5}, 2), *more = make(0, 1, (const double[]){6, 5, 1}, 3);
    struct hist *shifted = make(0, 1, (const double[]){4, 9}, 2), *finer = make(1, 1, (const double[]){50, 50}, 2);
    assert_false(hist_detect_reset(more, x, &a));
    assert_true(hist_detect_reset(x, more, &a));
    assert_true(hist_detect_reset(shifted, x, &a)); /* a bucket shrank though the count grew */
    assert_true(hist_detect_reset(finer, x, &a));
    assert_false(hist_detect_reset(make(-1, 1, (const double[]){12}, 1), x, &a)); /* coarser, and holds all */
    shifted->reset_hint = HIST_RESET_NO;
    assert_false(hist_detect_reset(shifted, x, &a));
}

static void test_quantiles(void **state)
{
    (void)state;
    enum hist_nan_note note;
    struct hist *h = make(0, 1, (const double[]){1, 2, 1}, 3); /* (1,2] (2,4] (4,8] */
    assert_true(near(hist_quantile(h, 0.5, &a, &note), 2 * sqrt(2)));
    assert_true(near(hist_quantile(h, 0.25, &a, &note), 2));
    assert_true(near(hist_quantile(h, 1, &a, &note), 8));
    assert_true(hist_quantile(h, -1, &a, &note) == -INFINITY && isnan(hist_quantile(h, NAN, &a, &note)));
    struct hist *linear = with_custom(make(0, 0, (const double[]){2, 2, 1}, 3), (const double[]){10, 20}, 2);
    assert_true(near(hist_quantile(linear, 0.2, &a, &note), 5)); /* from zero up to the lowest bound */
    assert_true(near(hist_quantile(linear, 0.6, &a, &note), 15));
    assert_true(near(hist_quantile(linear, 0.95, &a, &note), 20));
    h->count = 5; /* one observation is NaN */
    h->sum = NAN;
    hist_quantile(h, 0.5, &a, &note);
    assert_int_equal(note, HIST_NAN_SKEW);
    assert_true(isnan(hist_quantile(h, 0.95, &a, &note)));
    assert_int_equal(note, HIST_NAN_RESULT);
}

static void test_fractions_and_variance(void **state)
{
    (void)state;
    enum hist_nan_note note;
    struct hist *h = make(0, 1, (const double[]){1, 2, 1}, 3);
    assert_true(near(hist_fraction(h, 2, 4, &a, &note), 0.5));
    assert_true(near(hist_fraction(h, -INFINITY, 2 * sqrt(2), &a, &note), 0.5));
    assert_true(hist_fraction(h, 4, 2, &a, &note) == 0 && hist_fraction(h, 100, INFINITY, &a, &note) == 0);
    struct hist *one = make(0, 1, (const double[]){4}, 1);
    one->sum = 4 * sqrt(2);
    assert_true(hist_variance(one, &a) < 1e-20);
}

static void test_trimming(void **state)
{
    (void)state;
    struct hist *h = make(0, 1, (const double[]){1, 2, 1}, 3), *same = hist_copy(&a, h);
    hist_trim(same, 8, true, &a);
    assert_true(hist_equal(same, h)); /* nothing went: the sum stays, too */
    hist_trim(h, 4, true, &a);
    assert_true(h->count == 3 && near(h->sum, sqrt(2) + 2 * sqrt(8)));
    hist_trim(h, 2, false, &a);
    assert_true(h->count == 2 && near(h->sum, 2 * sqrt(8)));
}

static void test_classic_quantiles(void **state)
{
    (void)state;
    struct classic_fix fix;
    struct classic_bucket b[] = {{INFINITY, 10}, {1, 4}, {2, 8}};
    assert_true(near(classic_quantile(0.5, b, 3, &fix), 1.25));
    assert_true(near(classic_quantile(0.9, b, 3, &fix), 2)); /* in the last: its lower bound */
    assert_false(fix.forced);
    struct classic_bucket dent[] = {{1, 4}, {2, 3}, {3, 8}, {INFINITY, 8}};
    assert_true(near(classic_quantile(0.75, dent, 4, &fix), 2.5));
    assert_true(fix.forced && fix.low == 2 && fix.diff == 1);
    struct classic_bucket noise[] = {{1, 4}, {2, 4 * (1 - 1e-14)}, {INFINITY, 4}};
    classic_quantile(0.5, noise, 3, &fix);
    assert_false(fix.forced);
    struct classic_bucket no_inf[] = {{1, 4}, {2, 8}};
    assert_true(isnan(classic_quantile(0.5, no_inf, 2, &fix)));
    struct classic_bucket below[] = {{-1, 4}, {INFINITY, 8}};
    assert_true(classic_quantile(0.1, below, 2, &fix) == -1);
    struct classic_bucket twice[] = {{1, 1}, {1, 1}, {INFINITY, 2}};
    assert_true(near(classic_quantile(0.5, twice, 3, &fix), 0.5));
}

static void test_classic_fractions(void **state)
{
    (void)state;
    struct classic_bucket b[] = {{1, 4}, {2, 8}, {INFINITY, 10}};
    assert_true(near(classic_fraction(0, 1.5, b, 3), 0.6));
    assert_true(near(classic_fraction(1, INFINITY, b, 3), 0.6));
    assert_true(classic_fraction(3, 2, b, 3) == 0 && isnan(classic_fraction(NAN, 2, b, 3)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_bounds),
        cmocka_unit_test(test_add_and_sub),
        cmocka_unit_test(test_schemas_meet),
        cmocka_unit_test(test_zero_buckets_meet),
        cmocka_unit_test(test_custom_bounds_meet),
        cmocka_unit_test(test_hints),
        cmocka_unit_test(test_running_sums),
        cmocka_unit_test(test_layouts_do_not_matter),
        cmocka_unit_test(test_resets),
        cmocka_unit_test(test_quantiles),
        cmocka_unit_test(test_fractions_and_variance),
        cmocka_unit_test(test_trimming),
        cmocka_unit_test(test_classic_quantiles),
        cmocka_unit_test(test_classic_fractions),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
