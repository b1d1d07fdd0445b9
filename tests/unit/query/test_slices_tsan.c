/*
 * test_slices_tsan.c: aggregations over many series give on several threads what they give on one, bit for bit where
 * terms are whole numbers, also when several queries want the same helpers, when one is canceled, and when histograms
 * come up half-way.
 */
#include "tests/unit/query/query_db.h"

#include <pthread.h>

#include "storage/hist.h"

#define SERIES 3000
#define THREADS 4
#define ASKERS 3

static struct query_db one, many; /* one database, two engines */

/* series i of group i % 7 holds whole numbers that differ by series and step */
static void load(struct query_db *q)
{
    for (int i = 0; i < SERIES; i++) {
        int64_t t[8];
        double v[8];
        char series[96];
        snprintf(series, sizeof series, "m_total{group=\"%d\",i=\"%d\"}", i % 7, i);
        for (int k = 0; k < 8; k++) {
            t[k] = k * 15000;
            v[k] = (double)(i % 1000) + k * (i % 13);
        }
        if (i % 50 == 3) v[4] = f64_from_bits(STALE_NAN_BITS);
        query_db_append(q, series, t, v, NULL, 8);
    }
}

static void add_histogram(struct query_db *q)
{
    struct buf blob = {0};
    struct hist h = {.schema = 0, .zero_threshold = 0.001, .count = 3, .sum = 10, .zero_count = 3};
    hist_encode(&h, &blob);
    int64_t t = 30000;
    double v = 0;
    str s = buf_as_str(&blob);
    query_db_append(q, "mixed{i=\"h\"}", &t, &v, &s, 1);
    buf_deinit(&blob);
    for (int i = 0; i < SERIES; i++) {
        char series[96];
        snprintf(series, sizeof series, "mixed{i=\"%d\"}", i);
        v = i;
        query_db_append(q, series, &t, &v, NULL, 1);
    }
}

static int setup(void **state)
{
    (void)state;
    query_db_open(&one, &(struct query_options){.threads = 1});
    many = one;
    many.engine = query_create(&(struct query_options){.db = one.db, .experimental = true, .threads = THREADS});
    load(&one);
    add_histogram(&one);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_notes_deinit(&many.notes);
    query_destroy(many.engine);
    query_db_close(&one);
    return 0;
}

static const char *const QUERIES[] = {
    "sum(m_total)",
    "sum by (group) (m_total)",
    "avg by (group) (m_total * 1)",
    "min without (i) (-m_total)",
    "max by (group) (rate(m_total[1m]))",
    "count(m_total)",
    "count by (i) (m_total) > 0",
    "group by (group) (last_over_time(m_total[30s]))",
    "round(stddev by (group) (m_total), 0.000001)",
    "round(stdvar(m_total), 0.0001)",
    "sum(clamp_max(abs(-m_total), 500))",
    "sum(quantile_over_time(0.5, m_total[1m]))",
    "count(mixed)",
    "sum(mixed)",
    "max(mixed)",
    "sum by (group) (m_total) / on (group) count by (group) (m_total)",
    "sum(max_over_time(sum by (group) (m_total)[1m:15s]))",
};

static void expect_same(struct query_db *a, struct query_db *b, const char *text)
{
    char *want = query_db_run(a, text, 30, 120, 15), *got = query_db_run(b, text, 30, 120, 15);
    if (strcmp(want, got) != 0 || strncmp(got, "error", 5) == 0)
        fail_msg("query: %s\none thread: %.400s\nmany: %.400s", text, want, got);
    mem_free(want);
    mem_free(got);
}

static void test_same_answers(void **state)
{
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(QUERIES); i++)
        expect_same(&one, &many, QUERIES[i]);
}

static void *ask(void *arg)
{
    struct query_db own = many; /* notes of its own */
    own.notes = (struct query_notes){0};
    struct query_db reference = one;
    reference.notes = (struct query_notes){0};
    size_t from = *(size_t *)arg;
    for (size_t i = 0; i < 6; i++)
        expect_same(&reference, &own, QUERIES[(from + i) % ARRAY_LEN(QUERIES)]);
    query_notes_deinit(&own.notes);
    query_notes_deinit(&reference.notes);
    return NULL;
}

static void test_helpers_are_shared(void **state)
{
    (void)state;
    pthread_t threads[ASKERS];
    size_t from[ASKERS];
    for (size_t i = 0; i < ASKERS; i++) {
        from[i] = 5 * i;
        assert_int_equal(pthread_create(&threads[i], NULL, ask, &from[i]), 0);
    }
    for (size_t i = 0; i < ASKERS; i++)
        pthread_join(threads[i], NULL);
}

static void test_limits_hold_over_all_slices(void **state)
{
    (void)state;
    struct query_options o = {.db = one.db, .threads = THREADS, .max_samples = 1000};
    struct query_engine *strict = query_create(&o);
    struct query_db q = one;
    q.engine = strict;
    q.notes = (struct query_notes){0};
    char *got = query_db_run(&q, "count by (i) (m_total)", 30, 120, 15);
    assert_non_null(strstr(got, "too many samples"));
    mem_free(got);
    query_notes_deinit(&q.notes);
    query_destroy(strict);
}

static void test_canceled(void **state)
{
    (void)state;
    atomic_bool canceled = true;
    struct query_request rq = {.text = STR("sum(m_total)"), .start_ms = 30000, .end_ms = 120000, .step_ms = 15000};
    rq.canceled = &canceled;
    struct buf out = {0};
    struct query_notes notes = {0};
    err e = query_run(many.engine, &rq, &out, &notes);
    assert_int_equal(err_code(e), ERR_CANCELED);
    err_free(e);
    query_notes_deinit(&notes);
    buf_deinit(&out);
}

static void test_explain_tells_of_slices(void **state)
{
    (void)state;
    struct query_request rq = {.text = STR("count(m_total)"), .start_ms = 30000, .end_ms = 30000, .explain = true};
    struct buf out = {0};
    struct query_notes notes = {0};
    query_db_ok(query_run(many.engine, &rq, &out, &notes));
    buf_u8(&out, 0);
    assert_non_null(strstr((const char *)out.data, "\"rows\":3000"));
    assert_non_null(strstr((const char *)out.data, "\"slices\":"));
    query_notes_deinit(&notes);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_helpers_are_shared),
        cmocka_unit_test(test_limits_hold_over_all_slices),
        cmocka_unit_test(test_canceled),
        cmocka_unit_test(test_explain_tells_of_slices),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
