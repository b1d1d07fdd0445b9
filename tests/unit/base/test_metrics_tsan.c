/* Unit metrics: exposition text, sharing by name and labels, counting from several threads. */
#include "tests/unit/testing.h"

#include "storage/base/metrics.h"

#include <math.h>
#include <pthread.h>

static char *printed(struct metrics *m)
{
    static char text[1 << 16];
    struct buf out = {0};
    metrics_print(m, &out);
    assert_true(out.n < sizeof text);
    if (out.n) memcpy(text, out.data, out.n);
    text[out.n] = '\0';
    buf_deinit(&out);
    return text;
}

static double answer(void *arg)
{
    return *(double *)arg;
}

static void test_groups_by_name(void **state)
{
    (void)state;
    double value = 0.5, other = NAN;
    struct metrics *m = metrics_create();
    struct counter *a = metrics_counter(m, "rows_total", "protocol=\"a\"", "Rows.");
    struct gauge *g = metrics_gauge(m, "open", NULL, "Open\nthings \\ here.");
    struct counter *b = metrics_counter(m, "rows_total", "protocol=\"b\"", "Rows.");
    metrics_callback(m, "gauge", "load", "", "Load.", answer, &value);
    counter_add(a, 5);
    counter_inc(b);
    gauge_set(g, -3);
    gauge_add(g, 1);
    assert_string_equal(printed(m), "# HELP rows_total Rows.\n# TYPE rows_total counter\n"
                                    "rows_total{protocol=\"a\"} 5\nrows_total{protocol=\"b\"} 1\n"
                                    "# HELP open Open\\nthings \\\\ here.\n# TYPE open gauge\nopen -2\n"
                                    "# HELP load Load.\n# TYPE load gauge\nload 0.5\n");
    metrics_callback(m, "gauge", "load", "", "Load.", answer, &other);
    assert_non_null(strstr(printed(m), "load NaN\n"));
    assert_int_equal(counter_value(a), 5);
    assert_int_equal(gauge_value(g), -2);
    metrics_destroy(m);
}

static void test_same_name_same_metric(void **state)
{
    (void)state;
    struct metrics *m = metrics_create();
    struct counter *a = metrics_counter(m, "x_total", "a=\"1\"", "X.");
    assert_ptr_equal(metrics_counter(m, "x_total", "a=\"1\"", "X."), a);
    struct counter *b = metrics_counter(m, "x_total", "a=\"2\"", "X.");
    size_t apart = (size_t)llabs((char *)a - (char *)b);
    assert_true(apart >= 64);
    assert_int_equal((uintptr_t)a % 64, 0);
    metrics_destroy(m);
}

static void test_without_registry(void **state)
{
    (void)state;
    struct counter *c = metrics_counter(NULL, "orphan_total", NULL, "Nobody's.");
    counter_add(c, 2);
    assert_int_equal(counter_value(c), 2);
    metrics_callback(NULL, "gauge", "x", NULL, "X.", answer, NULL);
    metrics_print(NULL, NULL);
    metrics_destroy(NULL);
}

static void test_histogram(void **state)
{
    (void)state;
    struct metrics *m = metrics_create();
    struct histogram *h = metrics_histogram(m, "took_seconds", "op=\"x\"", "Time.");
    static const double seen[] = {0, 0.0001, 0.00011, 0.3, 100, 101, -1, INFINITY, NAN};
    for (size_t i = 0; i < ARRAY_LEN(seen); i++)
        histogram_observe(h, seen[i]);
    const char *text = printed(m);
    assert_non_null(strstr(text, "# TYPE took_seconds histogram\n"));
    assert_non_null(strstr(text, "took_seconds_bucket{op=\"x\",le=\"0.0001\"} 3\n"));
    assert_non_null(strstr(text, "took_seconds_bucket{op=\"x\",le=\"0.00025\"} 4\n"));
    assert_non_null(strstr(text, "took_seconds_bucket{op=\"x\",le=\"0.5\"} 5\n"));
    assert_non_null(strstr(text, "took_seconds_bucket{op=\"x\",le=\"100\"} 6\n"));
    assert_non_null(strstr(text, "took_seconds_bucket{op=\"x\",le=\"+Inf\"} 8\n"));
    assert_non_null(strstr(text, "took_seconds_count{op=\"x\"} 8\n"));
    assert_non_null(strstr(text, "took_seconds_sum{op=\"x\"} 1000000201.30021\n"));
    metrics_destroy(m);
}

struct shared {
    struct metrics *m;
    struct counter *c;
    struct histogram *h;
};

enum { THREADS = 4, ADDS = 5000 };

static void *count(void *arg)
{
    struct shared *s = arg;
    for (int i = 0; i < ADDS; i++) {
        counter_inc(s->c);
        histogram_observe(s->h, 0.001);
        if (i % 1000 == 0) counter_inc(metrics_counter(s->m, "late_total", "", "Registered by several threads."));
    }
    return NULL;
}

static void test_threads(void **state)
{
    (void)state;
    struct shared s = {.m = metrics_create()};
    s.c = metrics_counter(s.m, "n_total", NULL, "N.");
    s.h = metrics_histogram(s.m, "h_seconds", NULL, "H.");
    pthread_t ids[THREADS];
    for (int i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&ids[i], NULL, count, &s), 0);
    for (int i = 0; i < 20; i++)
        printed(s.m);
    for (int i = 0; i < THREADS; i++)
        pthread_join(ids[i], NULL);
    assert_int_equal(counter_value(s.c), THREADS * ADDS);
    assert_non_null(strstr(printed(s.m), "h_seconds_count 20000\n"));
    assert_non_null(strstr(printed(s.m), "h_seconds_sum 20\n"));
    assert_non_null(strstr(printed(s.m), "late_total 20\n"));
    metrics_destroy(s.m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_groups_by_name),   cmocka_unit_test(test_same_name_same_metric),
        cmocka_unit_test(test_without_registry), cmocka_unit_test(test_histogram),
        cmocka_unit_test(test_threads),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
