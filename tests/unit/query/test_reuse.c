/*
 * test_reuse.c: range queries answered with kept answers say what they would say without, whatever is written or
 * deleted in between; and steps are in fact taken over.
 *
 * Values are whole numbers, so that sums do not depend on where an evaluation begins.
 */
#include "tests/unit/query/query_db.h"

#include "query/engine.h"
#include "storage/base/rng.h"
#include "storage/hist.h"

#define STEP 15 /* s */
#define SERIES 12
#define ROUNDS 1500
#define CACHE_BYTES ((size_t)1 << 20)

static struct query_db cached, plain; /* one database, two engines */
static struct metrics *metrics;

static int setup(void **state)
{
    (void)state;
    metrics = metrics_create();
    query_db_open(&plain, NULL);
    cached = plain;
    cached.engine = query_create(&(struct query_options){
        .db = plain.db, .metrics = metrics, .experimental = true, .result_cache_bytes = CACHE_BYTES});
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_notes_deinit(&cached.notes);
    query_destroy(cached.engine);
    query_db_close(&plain);
    metrics_destroy(metrics);
    return 0;
}

/* Steps taken over since the last call. */
static uint64_t steps_known(void)
{
    static uint64_t before;
    struct buf page = {0};
    metrics_print(metrics, &page);
    buf_u8(&page, 0);
    const char *at = strstr((char *)page.data, "\nvarve_query_steps_known_total ");
    assert_non_null(at);
    uint64_t now = strtoull(at + strlen("\nvarve_query_steps_known_total "), NULL, 10), more = now - before;
    before = now;
    buf_deinit(&page);
    return more;
}

/* No two series have the same value ever: which one topk takes of equals is up to the order of series. */
static void write_one(int i, double t_s, double number)
{
    double v = is_stale_nan(number) ? number : number * SERIES + i;
    char series[64];
    int64_t t = (int64_t)(t_s * 1000);
    snprintf(series, sizeof series, "m{i=\"%d\",g=\"%d\"}", i, i % 3);
    query_db_append(&plain, series, &t, &v, NULL, 1);
}

static void expect_same(const char *text, double start, double end)
{
    char *want = query_db_run(&plain, text, start, end, STEP), *got = query_db_run(&cached, text, start, end, STEP);
    if (strcmp(want, got) != 0) fail_msg("query: %s\nwithout: %.600s\nwith:    %.600s", text, want, got);
    mem_free(want);
    mem_free(got);
}

static const char *const QUERIES[] = {
    "m",
    "m{g=\"1\"}",
    "sum by (g) (m)",
    "sum(rate(m[1m])) > 0",
    "max_over_time(sum(m)[2m:30s])",
    "topk(2, m)",
    "m offset 1m",
    "count_values(\"v\", m)",
    "absent(m{i=\"nothing\"})",
    "m > 600 or m * 2",
    "label_replace(m, \"x\", \"$1\", \"i\", \"(.*)\")",
    "m offset -30s", /* the rest looks beyond a step, or at the range as a whole */
    "m @ end()",
    "m - m @ start()",
    "limitk(2, m)",
    "sum_over_time(m[1m] @ 600)",
    "m[1m:15s] offset -15s",
    "last_over_time(m[1m:15s] offset -15s)",
    "time() - timestamp(m)",
    "changes(m[90s] smoothed)",
    "increase(m[90s] anchored)",
};

/* Time goes on; most samples are new, some late, some series stop, now and then something is deleted. */
static void test_same_answers(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    double now = 1000;
    steps_known();
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t what = rng_below(&r, 100);
        if (what < 40) now += (double)rng_below(&r, 20);
        if (what < 60)
            for (int i = 0; i < SERIES; i++)
                if (!rng_chance(&r, 0.2)) write_one(i, now + (double)rng_below(&r, 2), (double)rng_below(&r, 100));
        if (what == 60) write_one((int)rng_below(&r, SERIES), now - (double)rng_below(&r, 600), 1);
        if (what == 61) write_one((int)rng_below(&r, SERIES), now, f64_from_bits(STALE_NAN_BITS));
        if (what == 62) query_db_ok(storage_flush(plain.db));
        if (what == 63 && round % 4 == 0) {
            struct matcher m = {.op = MATCH_EQ, .name = STR("g"), .value = STR("2")};
            int64_t t = (int64_t)(now - (double)rng_below(&r, 600)) * 1000;
            query_db_ok(storage_delete(plain.db, &m, 1, t, t + 60000));
        }
        double end = (double)((int64_t)now / STEP * STEP) + STEP * (double)rng_below(&r, 3), start = end - STEP * 30;
        if (rng_chance(&r, 0.1)) start += STEP * (double)rng_below(&r, 20);
        if (rng_chance(&r, 0.05)) start += 1; /* other times altogether */
        expect_same(QUERIES[rng_below(&r, ARRAY_LEN(QUERIES))], start, end);
    }
    assert_true(steps_known() > ROUNDS);
    assert_true(query_results_bytes(cached.engine) <= CACHE_BYTES);
}

static void test_steps_are_taken_over(void **state)
{
    (void)state;
    const double base = 100000;
    for (int k = 0; k <= 20; k++)
        for (int i = 0; i < SERIES; i++)
            write_one(i, base + k * STEP, k + i);
    steps_known();
    expect_same("sum by (i) (m)", base, base + 20 * STEP);
    assert_int_equal(steps_known(), 0);
    expect_same("sum by (i) (m)", base, base + 20 * STEP);
    assert_int_equal(steps_known(), 21);
    expect_same("sum by (i) (m)", base + STEP, base + 21 * STEP); /* one step further */
    assert_int_equal(steps_known(), 20);
    write_one(0, base + 10 * STEP, 7); /* late: from there on all is new */
    expect_same("sum by (i) (m)", base + STEP, base + 21 * STEP);
    assert_int_equal(steps_known(), 9);
    write_one(0, base - 1000, 7); /* older than everything */
    expect_same("sum by (i) (m)", base + STEP, base + 21 * STEP);
    assert_int_equal(steps_known(), 0);
    query_results_forget(cached.engine);
    assert_int_equal(query_results_bytes(cached.engine), 0);
    expect_same("sum by (i) (m)", base + STEP, base + 21 * STEP);
    assert_int_equal(steps_known(), 0);
}

/* Answers with histograms are evaluated each time; requests that say so, too. */
static void test_what_is_not_kept(void **state)
{
    (void)state;
    const double base = 200000;
    struct buf blob = {0};
    struct hist h = {.schema = 0, .zero_threshold = 0.001, .count = 3, .sum = 10, .zero_count = 3};
    hist_encode(&h, &blob);
    str s = buf_as_str(&blob);
    int64_t t = (int64_t)base * 1000;
    double v = 0;
    query_db_append(&plain, "native{i=\"h\"}", &t, &v, &s, 1);
    buf_deinit(&blob);
    write_one(1, base, 5);
    steps_known();
    for (int i = 0; i < 2; i++) {
        expect_same("native", base, base + 60);
        expect_same("nothing", base, base + 60);
        expect_same("1 + 1", base, base + 60);
    }
    struct query_request rq = {.text = STR("m"), .start_ms = t, .end_ms = t + 60000, .step_ms = 15000, .nocache = true};
    for (int i = 0; i < 2; i++) {
        struct buf out = {0};
        query_db_ok(query_run(cached.engine, &rq, &out, &cached.notes));
        buf_deinit(&out);
    }
    assert_int_equal(steps_known(), 0);
}

/* Notes come with known steps, once, until the steps that they were made with have gone. */
static void test_notes(void **state)
{
    (void)state;
    const double base = 250000;
    write_one(1, base, 5);
    steps_known();
    for (int i = 0; i < 3; i++) {
        expect_same("quantile(2 + 0 * time(), m)", base + i * STEP, base + (i + 2) * STEP);
        assert_int_equal(cached.notes.n_warnings, 1);
        assert_int_equal(plain.notes.n_warnings, 1);
        assert_string_equal(cached.notes.warnings[0], plain.notes.warnings[0]);
    }
    assert_int_equal(steps_known(), 4);
    static const char LATER[] = "quantile((time() < bool 250015) * 2, m)"; /* of the first step alone */
    expect_same(LATER, base, base + STEP);
    assert_int_equal(cached.notes.n_warnings, 1);
    expect_same(LATER, base + STEP, base + 2 * STEP);
    assert_int_equal(cached.notes.n_warnings, 1); /* it was made together with the step that is left */
    expect_same(LATER, base + 2 * STEP, base + 3 * STEP);
    assert_int_equal(cached.notes.n_warnings, 0);
    assert_int_equal(plain.notes.n_warnings, 0);
    assert_int_equal(steps_known(), 2);
}

/* More notes than are shown: those beyond are counted, of known steps by their share. */
static void test_many_notes(void **state)
{
    (void)state;
    const double base = 270000;
    write_one(1, base, 5);
    steps_known();
    for (int i = 0; i < 3; i++) {
        expect_same("quantile(time(), m)", base + i * STEP, base + (i + 19) * STEP);
        assert_int_equal(cached.notes.n_warnings, 11);
        assert_int_equal(plain.notes.n_warnings, 11);
        assert_string_equal(plain.notes.warnings[10], "10 more warning annotations omitted");
        assert_string_equal(cached.notes.warnings[10], "10 more warning annotations omitted");
    }
    assert_int_equal(steps_known(), 38);
    expect_same("quantile(time(), m)", base + 2 * STEP, base + 21 * STEP); /* all is known */
    assert_int_equal(steps_known(), 20);
    assert_int_equal(cached.notes.n_warnings, 11);
}

/* What is shown and what is counted end with the steps that had it, however often the panel is refreshed. */
static void test_notes_end(void **state)
{
    (void)state;
    static const char EARLY[] = "quantile((time() < bool 280300) * time(), m)"; /* the first 20 steps */
    const double base = 280000;
    write_one(1, base, 5);
    write_one(1, base + 250, 5);
    steps_known();
    for (int i = 0; i <= 20; i++)
        expect_same(EARLY, base + i * STEP, base + (i + 20) * STEP);
    assert_true(steps_known() > 0);
    expect_same(EARLY, base + 21 * STEP, base + 41 * STEP);
    assert_int_equal(plain.notes.n_warnings, 0);
    assert_int_equal(cached.notes.n_warnings, 0);
}

/* The newest step is evaluated anew after every write: what was said of it before is not said again. */
static void test_notes_of_a_new_evaluation(void **state)
{
    (void)state;
    const double base = 290000;
    write_one(1, base, 0.125); /* 0.125 * SERIES + 1 = 2.5 */
    steps_known();
    for (int i = 0; i < 6; i++) {
        write_one(1, base + 4 * STEP + i, i);
        expect_same("quantile(scalar(sum(m)), m)", base, base + 4 * STEP);
        expect_same("quantile(scalar(sum(m)), m)", base, base + 5 * STEP);
        assert_int_equal(cached.notes.n_warnings, plain.notes.n_warnings);
    }
    assert_true(steps_known() > 0);
}

/* What is kept for one set of filters is not shown to another. */
static void test_confined(void **state)
{
    (void)state;
    const double base = 300000;
    for (int i = 0; i < SERIES; i++)
        write_one(i, base, i);
    char *answers[3];
    for (int i = 0; i < 3; i++) {
        struct match_sets sets = {0};
        char filter[32], label[32];
        snprintf(filter, sizeof filter, "{g=\"%d\"}", i);
        snprintf(label, sizeof label, "\"g\":\"%d\"", i);
        str text = str_of(filter);
        query_db_ok(match_sets_parse(&text, 1, &sets));
        struct query_request rq = {.text = STR("m"),
                                   .start_ms = (int64_t)base * 1000,
                                   .end_ms = (int64_t)base * 1000 + 60000,
                                   .step_ms = 15000,
                                   .extra = &sets};
        struct buf out = {0};
        query_db_ok(query_run(cached.engine, &rq, &out, &cached.notes));
        answers[i] = mem_dup_str(buf_as_str(&out));
        buf_deinit(&out);
        match_sets_deinit(&sets);
        assert_non_null(strstr(answers[i], label));
    }
    for (int i = 0; i < 3; i++)
        assert_string_not_equal(answers[i], answers[(i + 1) % 3]);
    for (int i = 0; i < 3; i++)
        mem_free(answers[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_same_answers),
        cmocka_unit_test(test_steps_are_taken_over),
        cmocka_unit_test(test_what_is_not_kept),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_many_notes),
        cmocka_unit_test(test_notes_end),
        cmocka_unit_test(test_notes_of_a_new_evaluation),
        cmocka_unit_test(test_confined),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
