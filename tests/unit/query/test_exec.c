/*
 * test_exec.c: queries over a small database: selectors, lookback, offset, @, range functions, subqueries, functions,
 * budgets. Expected answers were worked out by hand from the language's documentation.
 */
#include "tests/unit/query/query_db.h"

static struct query_db q;

static int setup(void **state)
{
    (void)state;
    query_db_open(&q, NULL);
    query_db_load(&q, 60000, "up{job=\"a\",i=\"1\"}", "0+1x20");
    query_db_load(&q, 60000, "up{job=\"a\",i=\"2\"}", "10 _ _ 40 stale _ 50");
    query_db_load(&q, 10000, "hits_total{i=\"1\"}", "0+5x30 0+5x30");
    query_db_load(&q, 60000, "when", "1767225600 951782400 -1");
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    query_db_close(&q);
    return 0;
}

static void test_scalars_and_strings(void **state)
{
    (void)state;
    expect_at(&q, 10, "1 + 2 * 3 ^ 2", "[10,\"19\"]");
    expect_at(&q, 10, "2 > bool 1", "[10,\"1\"]");
    expect_at(&q, 10, "-5 % 3", "[10,\"-2\"]");
    expect_at(&q, 10.5, "time()", "[10.5,\"10.5\"]");
    expect_at(&q, 10, "\"text \\\" here\"", "[10,\"text \\\" here\"]");
    expect_at(&q, 10, "vector(Inf)", "[{\"metric\":{},\"value\":[10,\"+Inf\"]}]");
    expect_at(&q, 10, "max_of(1, 2) + min_of(3, NaN)", "[10,\"NaN\"]");
}

static void test_lookback_is_left_open(void **state)
{
    (void)state;
    expect_at(&q, 0, "up{i=\"2\"}",
              "[{\"metric\":{\"__name__\":\"up\",\"i\":\"2\",\"job\":\"a\"},\"value\":[0,\"10\"]}]");
    expect_at(&q, 179.999, "up{i=\"2\"} * 1", "[{\"metric\":{\"i\":\"2\",\"job\":\"a\"},\"value\":[179.999,\"10\"]}]");
    expect_at(&q, 239.9, "up{i=\"2\"} * 1", "[{\"metric\":{\"i\":\"2\",\"job\":\"a\"},\"value\":[239.9,\"40\"]}]");
    expect_at(&q, 240, "up{i=\"2\"}", "[]");     /* the marker ends it at once */
    expect_at(&q, 1499.9, "when * 0 + 1", "[]"); /* last sample at 120 s */
    expect_at(&q, 419.999, "when", "[{\"metric\":{\"__name__\":\"when\"},\"value\":[419.999,\"-1\"]}]");
    expect_at(&q, 420, "when", "[]"); /* exactly the lookback away */
}

static void test_offset_and_at(void **state)
{
    (void)state;
    const char *five = "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[600,\"5\"]}]";
    expect_at(&q, 600, "up{i=\"1\"} offset 5m + 0", five);
    expect_at(&q, 600, "up{i=\"1\"} @ 300 + 0", five);
    expect_at(&q, 600, "up{i=\"1\"} @ 0 offset -5m + 0", five);
    expect_at(&q, 600, "up{i=\"1\"} @ end() offset 5m + 0", five);
    query_db_expect(
        &q, "up{i=\"1\"} @ 120 + time()", 0, 120, 60,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"values\":[[0,\"2\"],"
        "[60,\"62\"],[120,\"122\"]]}]}");
}

static void test_range_functions(void **state)
{
    (void)state;
    const char *form = "[{\"metric\":{\"i\":\"1\"},\"value\":[300,\"%s\"]}]";
    static const char *const CASES[][2] = {
        {"count_over_time(hits_total[1m])", "6"},
        {"sum_over_time(hits_total[30s])", "435"},
        {"avg_over_time(hits_total[30s])", "145"},
        {"min_over_time(hits_total[1m])", "125"},
        {"max_over_time(hits_total[1m])", "150"},
        {"rate(hits_total[1m])", "0.5"},
        {"increase(hits_total[1m])", "30"},
        {"delta(hits_total[1m])", "30"},
        {"irate(hits_total[1m])", "0.5"},
        {"idelta(hits_total[1m])", "5"},
        {"deriv(hits_total[1m])", "0.5"},
        {"predict_linear(hits_total[1m], 60)", "180"},
        {"changes(hits_total[1m])", "5"},
        {"resets(hits_total[1m])", "0"},
        {"present_over_time(hits_total[1m])", "1"},
        {"quantile_over_time(0.5, hits_total[1m])", "137.5"},
        {"stdvar_over_time(hits_total[20s])", "6.25"},
        {"mad_over_time(hits_total[50s])", "5"},
        {"ts_of_max_over_time(hits_total[1m])", "300"},
        {"ts_of_first_over_time(hits_total[1m])", "250"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char want[128];
        snprintf(want, sizeof want, form, CASES[i][1]);
        expect_at(&q, 300, CASES[i][0], want);
    }
    expect_at(&q, 300, "last_over_time(hits_total[1m])",
              "[{\"metric\":{\"__name__\":\"hits_total\",\"i\":\"1\"},\"value\":[300,\"150\"]}]");
    /* over the reset: 5 before it and 5 after in 30 s, extrapolated to 40 s */
    expect_at(&q, 320, "increase(hits_total[40s])",
              "[{\"metric\":{\"i\":\"1\"},\"value\":[320,\"13.333333333333332\"]}]");
    expect_at(&q, 320, "resets(hits_total[40s])", "[{\"metric\":{\"i\":\"1\"},\"value\":[320,\"1\"]}]");
}

static void test_default_rollup(void **state)
{
    (void)state;
    /* 10 at 0, 40 at 180, stale at 240, 50 at 360 */
    const char *form = "[{\"metric\":{\"__name__\":\"up\",\"i\":\"2\",\"job\":\"a\"},\"value\":[%s,\"%s\"]}]";
    static const struct {
        double at;
        const char *query, *time, *value;
    } CASES[] = {
        {230, "default_rollup(up{i=\"2\"}[1m])", "230", "40"},
        {239, "default_rollup(up{i=\"2\"}[59s])", NULL, NULL},      /* (180, 239] */
        {240, "default_rollup(up{i=\"2\"}[1h])", NULL, NULL},       /* the series has ended, ... */
        {240, "last_over_time(up{i=\"2\"}[1h])", "240", "40"},      /* ... which ranges do not know */
        {3000, "default_rollup(up{i=\"2\"}[3600s])", "3000", "50"}, /* beyond the lookback */
        {3000, "default_rollup(up{i=\"2\"})", NULL, NULL},
        {400, "default_rollup(up{i=\"2\"})", "400", "50"},
        {3000, "default_rollup(up{i=\"2\"}[1m] offset 44m)", "3000", "50"},
        {3000, "default_rollup(up{i=\"2\"}[1h:1m])", "3000", "50"},
    };
    for (size_t i = 0; i < ARRAY_LEN(CASES); i++) {
        char want[128];
        snprintf(want, sizeof want, CASES[i].value ? form : "[]", CASES[i].time, CASES[i].value);
        expect_at(&q, CASES[i].at, CASES[i].query, want);
    }
    query_db_expect(&q, "sum(default_rollup(up{i=\"2\"}[2m])) + 0", 180, 480, 120,
                    "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{},\"values\":[[180,\"40\"],[420,\"50\"]]}]}");
    expect_failure(&q, 300, "default_rollup(up[5m] anchored)", "execution", "anchored modifier can only be used with");
}

static void test_extended_ranges(void **state)
{
    (void)state;
    expect_at(&q, 305, "increase(hits_total[10s] smoothed)", "[{\"metric\":{\"i\":\"1\"},\"value\":[305,\"2.5\"]}]");
    expect_at(&q, 295, "increase(hits_total[10s] anchored)", "[{\"metric\":{\"i\":\"1\"},\"value\":[295,\"5\"]}]");
    expect_at(&q, 295, "hits_total smoothed + 0", "[{\"metric\":{\"i\":\"1\"},\"value\":[295,\"147.5\"]}]");
    expect_failure(&q, 295, "sum_over_time(hits_total[1m] anchored)", "execution", "anchored modifier");
}

static void test_subqueries(void **state)
{
    (void)state;
    /* steps at 180, 240, 300: multiples of a minute in (120, 300] */
    expect_at(&q, 300, "sum_over_time(up{i=\"1\"}[3m:1m])",
              "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[300,\"12\"]}]");
    expect_at(&q, 310, "count_over_time(vector(1)[2m:])", "[{\"metric\":{},\"value\":[310,\"2\"]}]");
    expect_at(&q, 300, "max_over_time(sum(up)[5m:1m])", "[{\"metric\":{},\"value\":[300,\"43\"]}]");
    expect_at(&q, 300, "max_over_time(rate(hits_total[1m])[2m:30s] @ 290 offset 10s)",
              "[{\"metric\":{\"i\":\"1\"},\"value\":[300,\"0.5\"]}]");
    expect_at(&q, 120, "vector(7)[1m:30s]", "[{\"metric\":{},\"values\":[[90,\"7\"],[120,\"7\"]]}]");
}

static void test_range_vector_as_result(void **state)
{
    (void)state;
    expect_at(&q, 300, "up{i=\"2\"}[5m]",
              "[{\"metric\":{\"__name__\":\"up\",\"i\":\"2\",\"job\":\"a\"},\"values\":[[180,\"40\"]]}]");
}

static void test_functions(void **state)
{
    (void)state;
    expect_at(&q, 60, "year(when)", "[{\"metric\":{},\"value\":[60,\"2000\"]}]");
    expect_at(&q, 60, "day_of_month(when) + 100 * month(when)", "[{\"metric\":{},\"value\":[60,\"229\"]}]");
    expect_at(&q, 0, "days_in_month(when) + 100 * day_of_week(when)", "[{\"metric\":{},\"value\":[0,\"431\"]}]");
    expect_at(&q, 120, "hour(when) * 100 + minute(when)", "[{\"metric\":{},\"value\":[120,\"2359\"]}]");
    expect_at(&q, 86400, "day_of_year()", "[{\"metric\":{},\"value\":[86400,\"2\"]}]");
    expect_at(&q, 300, "clamp(up{i=\"1\"}, 1, 3)", "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[300,\"3\"]}]");
    expect_at(&q, 300, "clamp(up{i=\"1\"}, 3, 1)", "[]");
    expect_at(&q, 300, "round(up{i=\"1\"} / 2, 5)", "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[300,\"5\"]}]");
    expect_at(&q, 300, "scalar(up)", "[300,\"5\"]");
    expect_at(&q, 200, "scalar(up)", "[200,\"NaN\"]");
    expect_at(&q, 330, "timestamp(up{i=\"1\"})", "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[330,\"300\"]}]");
    expect_at(&q, 330, "timestamp(-up{i=\"1\"})", "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[330,\"330\"]}]");
    expect_at(&q, 300, "absent(nope{a=\"1\",b=~\"x\",c=\"2\",c=\"3\"})",
              "[{\"metric\":{\"a\":\"1\"},\"value\":[300,\"1\"]}]");
    expect_at(&q, 300, "absent(up)", "[]");
    query_db_expect(
        &q, "absent_over_time(up{i=\"2\"}[1m])", 180, 360, 60,
        "{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"i\":\"2\"},\"values\":[[240,\"1\"],[300,\"1\"]]"
        "}]}");
    expect_at(&q, 300, "label_replace(up{i=\"1\"}, \"k\", \"$1-$2\", \"job\", \"(.)()\")",
              "[{\"metric\":{\"__name__\":\"up\",\"i\":\"1\",\"job\":\"a\",\"k\":\"a-\"},\"value\":[300,\"5\"]}]");
    expect_at(&q, 300, "label_join(up{i=\"1\"}, \"i\", \"-\", \"job\", \"nope\", \"i\")",
              "[{\"metric\":{\"__name__\":\"up\",\"i\":\"a--1\",\"job\":\"a\"},\"value\":[300,\"5\"]}]");
    expect_failure(&q, 200, "label_replace(up, \"i\", \"\", \"i\", \".*\")", "execution", "same labelset");
}

static void test_sorting(void **state)
{
    (void)state;
    expect_at(&q, 200, "sort(up * on(i) group_left() up)",
              "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[200,\"9\"]},{\"metric\":{\"i\":\"2\",\"job\":\"a\"},"
              "\"value\":[200,\"1600\"]}]");
    expect_at(
        &q, 200, "sort_desc(-up)",
        "[{\"metric\":{\"i\":\"1\",\"job\":\"a\"},\"value\":[200,\"-3\"]},{\"metric\":{\"i\":\"2\",\"job\":\"a\"},"
        "\"value\":[200,\"-40\"]}]");
    expect_at(
        &q, 200, "sort_by_label_desc(up + 0, \"i\")",
        "[{\"metric\":{\"i\":\"2\",\"job\":\"a\"},\"value\":[200,\"40\"]},{\"metric\":{\"i\":\"1\",\"job\":\"a\"},"
        "\"value\":[200,\"3\"]}]");
}

static void test_names_go_at_the_end(void **state)
{
    (void)state;
    expect_at(&q, 300, "sum by (__name__) (rate(hits_total[1m]))", "[{\"metric\":{},\"value\":[300,\"0.5\"]}]");
    expect_at(&q, 300, "label_replace(rate(hits_total[1m]), \"n\", \"$1\", \"__name__\", \"(.*)\")",
              "[{\"metric\":{\"i\":\"1\",\"n\":\"hits_total\"},\"value\":[300,\"0.5\"]}]");
}

static void test_notes(void **state)
{
    (void)state;
    char *got = query_db_run(&q, "\n rate(up[5m])", 300, 300, 0);
    mem_free(got);
    assert_int_equal(q.notes.n_infos, 1);
    assert_string_equal(q.notes.infos[0], "PromQL info: metric might not be a counter, name does not end in "
                                          "_total/_sum/_count/_bucket: \"up\" (2:7)");
    expect_at(&q, 300, "rate(hits_total[1m])", "[{\"metric\":{\"i\":\"1\"},\"value\":[300,\"0.5\"]}]");
    assert_int_equal(q.notes.n_infos + q.notes.n_warnings, 0);
}

static void test_requests_that_are_wrong(void **state)
{
    (void)state;
    expect_failure(&q, 0, "up[", "invalid", "1:4");
    expect_failure(&q, 0, "max_over_time(up[1y:1ms])", "limit", "--query.max-samples");
    expect_failure(&q, 0, "double_exponential_smoothing(hits_total[5m], 1, 0.5)", "execution", "smoothing factor");
    char *got = query_db_run(&q, "up", 0, 11001, 1);
    assert_string_equal(got, "error invalid: exceeded maximum resolution of 11000 points per timeseries "
                             "(--query.max-points); the smallest step that passes is 1.001 s");
    mem_free(got);
    got = query_db_run(&q, "up[5m]", 0, 100, 10);
    assert_non_null(strstr(got, "error invalid: invalid expression type \"range vector\""));
    mem_free(got);
}

static void test_high_trees(void **state)
{
    (void)state;
    struct buf text = {0};
    buf_u8(&text, '1');
    for (int i = 0; i < 5000; i++)
        buf_str(&text, STR("+1"));
    buf_u8(&text, 0);
    expect_at(&q, 5, (const char *)text.data, "[5,\"5001\"]");
    buf_deinit(&text);
}

static void test_budgets(void **state)
{
    (void)state;
    struct query_db small;
    query_db_open(&small, &(struct query_options){.max_samples = 100, .max_memory = 1 << 20});
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "m{i=\"%d\"}", i);
        query_db_load(&small, 1000, name, "0+1x10");
    }
    expect_failure(&small, 10, "max_over_time(m[10s:10ms])", "limit", "--query.max-samples");
    char *got = query_db_run(&small, "m", 0, 10, 1);
    assert_non_null(strstr(got, "--query.max-samples"));
    mem_free(got);
    got = query_db_run(&small, "sum(m)", 0, 10, 1); /* folded, not held */
    assert_non_null(strstr(got, "[10,\"200\"]"));
    mem_free(got);
    query_db_close(&small);
}

static void test_cancel(void **state)
{
    (void)state;
    atomic_bool canceled = true;
    struct query_request rq = {.text = STR("sum(up)"), .canceled = &canceled};
    struct buf out = {0};
    struct query_notes notes = {0};
    err e = query_run(q.engine, &rq, &out, &notes);
    assert_int_equal(err_code(e), ERR_CANCELED);
    err_free(e);
    buf_deinit(&out);
    query_notes_deinit(&notes);
}

static void test_series_limit(void **state)
{
    (void)state;
    struct query_request rq = {.text = STR("up"), .start_ms = 180000, .end_ms = 180000, .limit = 1};
    struct buf out = {0};
    struct query_notes notes = {0};
    query_db_ok(query_run(q.engine, &rq, &out, &notes));
    buf_u8(&out, 0);
    assert_string_equal((char *)out.data,
                        "{\"resultType\":\"vector\",\"result\":[{\"metric\":{\"__name__\":\"up\",\"i\":"
                        "\"1\",\"job\":\"a\"},\"value\":[180,\"3\"]}]}");
    assert_int_equal(notes.n_warnings, 1);
    assert_string_equal(notes.warnings[0], "results truncated due to limit");
    buf_deinit(&out);
    query_notes_deinit(&notes);
}

static void test_explain_and_stats(void **state)
{
    (void)state;
    struct query_request rq = {.text = STR("sum(rate(hits_total[1m])) + 1"),
                               .start_ms = 300000,
                               .end_ms = 300000,
                               .explain = true,
                               .stats = true,
                               .stats_per_step = true};
    struct buf out = {0};
    struct query_notes notes = {0};
    query_db_ok(query_run(q.engine, &rq, &out, &notes));
    buf_u8(&out, 0);
    static const char *const PARTS[] = {
        "\"explain\":{\"node\":\"binary\",\"text\":\"sum(rate(hits_total[1m])) + 1\",\"steps\":1,\"rows\":1,",
        "{\"node\":\"samples\",\"text\":\"hits_total[1m]\",\"steps\":1,\"from\":240.001,\"to\":300,\"series\":1,"
        "\"rows\":1,\"seconds\":",
        ",\"samples\":6,\"bytes\":0}", "\"stats\":{\"timings\":{\"evalTotalTime\":",
        "\"samples\":{\"totalQueryableSamplesPerStep\":[[300,6]],\"totalQueryableSamples\":6,\"peakSamples\":"};
    for (size_t i = 0; i < ARRAY_LEN(PARTS); i++)
        if (!strstr((char *)out.data, PARTS[i])) fail_msg("%s\nis not in %s", PARTS[i], (char *)out.data);
    /* from a part: whole blocks are decoded, and that takes bytes */
    query_db_ok(storage_flush(q.db));
    buf_clear(&out);
    query_db_ok(query_run(q.engine, &rq, &out, &notes));
    buf_u8(&out, 0);
    const char *bytes = strstr((char *)out.data, ",\"samples\":62,\"bytes\":");
    if (!bytes || bytes[22] == '0') fail_msg("no bytes in %s", (char *)out.data);
    buf_deinit(&out);
    query_notes_deinit(&notes);
}

static void test_meta(void **state)
{
    (void)state;
    struct match_sets sets;
    str texts[] = {STR("up{i=\"1\"}"), STR("{__name__=~\"up|when\"}")};
    query_db_ok(match_sets_parse(texts, 2, &sets));
    struct meta_request rq = {.match = &sets, .start_ms = 0, .end_ms = 600000};
    struct buf out = {0};
    struct query_notes notes = {0};
    query_db_ok(query_series(q.engine, &rq, &out, &notes));
    query_db_ok(query_label_names(q.engine, &rq, &out, &notes));
    query_db_ok(query_label_values(q.engine, STR("i"), &rq, &out, &notes));
    rq.limit = 1;
    query_db_ok(query_label_values(q.engine, STR("i"), &rq, &out, &notes));
    buf_u8(&out, 0);
    assert_string_equal(
        (char *)out.data,
        "[{\"__name__\":\"up\",\"i\":\"1\",\"job\":\"a\"},{\"__name__\":\"up\",\"i\":\"2\",\"job\":\"a\"},{"
        "\"__name__\":\"when\"}][\"__name__\",\"i\",\"job\"][\"1\",\"2\"][\"1\"]");
    assert_int_equal(notes.n_warnings, 1);
    buf_deinit(&out);
    query_notes_deinit(&notes);
    match_sets_deinit(&sets);
    str bad = STR("{}");
    err e = match_sets_parse(&bad, 1, &sets);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
    match_sets_deinit(&sets);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_scalars_and_strings),
        cmocka_unit_test(test_lookback_is_left_open),
        cmocka_unit_test(test_offset_and_at),
        cmocka_unit_test(test_range_functions),
        cmocka_unit_test(test_default_rollup),
        cmocka_unit_test(test_extended_ranges),
        cmocka_unit_test(test_subqueries),
        cmocka_unit_test(test_range_vector_as_result),
        cmocka_unit_test(test_functions),
        cmocka_unit_test(test_sorting),
        cmocka_unit_test(test_names_go_at_the_end),
        cmocka_unit_test(test_notes),
        cmocka_unit_test(test_requests_that_are_wrong),
        cmocka_unit_test(test_high_trees),
        cmocka_unit_test(test_budgets),
        cmocka_unit_test(test_cancel),
        cmocka_unit_test(test_series_limit),
        cmocka_unit_test(test_explain_and_stats),
        cmocka_unit_test(test_meta),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
