/* test_jsonl.c: JSON lines in, export out, and that what comes out goes in again unchanged. */
#include "ingest/export_internal.h"
#include "ingest/json_read.h"
#include "tests/unit/ingest/fixture.h"

static struct fixture shared;

static int setup(void **state)
{
    fixture_open(&shared, 0, 0, 0);
    *state = &shared;
    return 0;
}

static int teardown(void **state)
{
    fixture_close(*state);
    return 0;
}

static void test_lines(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *body, *metric, *text;
    } table[] = {
        {"{\"metric\":{\"__name__\":\"j1\",\"b\":\"2\",\"a\":\"1\"},\"values\":[1,2.5],\"timestamps\":[1,2]}\n", "j1",
         "{\"metric\":{\"__name__\":\"j1\",\"a\":\"1\",\"b\":\"2\"},\"values\":[1,2.5],\"timestamps\":[1,2]}\n"},
        {"  { \"timestamps\" : [ 5 , 4 ] , \"other\":{\"x\":[1,null,true,\"\\u00e9\"]}, \"values\" : [ -0 , 1e300 ] ,"
         "\"metric\" : { \"__name__\" : \"j2\" } } \r\n",
         "j2", NULL},
        {"{\"metric\":{\"__name__\":\"j3\",\"e\":\"\\u00e9\\ud83d\\ude00\\\"\\n\"},\"values\":[1],\"timestamps\":[1]}",
         "j3",
         "{\"metric\":{\"__name__\":\"j3\",\"e\":\"\xc3\xa9\xf0\x9f\x98\x80\\\"\\n\"},\"values\":[1],\"timestamps\":[1]"
         "}\n"},
        {"{\"metric\":{\"__name__\":\"j4\"},\"values\":[123,\"Infinity\",\"-Infinity\",\"+Inf\",\"NaN\",\"StaleNaN\","
         "456],"
         "\"timestamps\":[1,2,3,4,5,6,7]}",
         "j4",
         "{\"metric\":{\"__name__\":\"j4\"},\"values\":[123,\"Infinity\",\"-Infinity\",\"Infinity\",\"NaN\","
         "\"StaleNaN\","
         "456],\"timestamps\":[1,2,3,4,5,6,7]}\n"},
        {"{\"metric\":{\"__name__\":\"j5\"},\"values\":[],\"timestamps\":[]}\n\n", "j5", ""},
        {"{\"metric\":{\"__name__\":\"j6\",\"\\u0061\":\"1\"},\"values\":[0.1],\"timestamps\":[-1]}", "j6",
         "{\"metric\":{\"__name__\":\"j6\",\"a\":\"1\"},\"values\":[0.1],\"timestamps\":[-1]}\n"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int status = post(f, INGEST_JSON_LINES, str_of(table[i].body));
        if (status != 204) fail_msg("row %zu: %s", i, (char *)f->reply.body.data);
        const char *got = dump(f, table[i].metric);
        if (table[i].text && strcmp(got, table[i].text) != 0) fail_msg("row %zu: %s", i, got);
    }
    assert_non_null(strstr(dump(f, "j2"), ",-0],\"timestamps\":[4,5]"));
}

static void test_bad_lines(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *line, *why;
    } table[] = {
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1,2],\"timestamps\":[1]}", "differ in length"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1],\"timestamps\":[1]", "a comma is expected"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1],\"timestamps\":[1]} x", "text after the object"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1]}", "\\\"timestamps\\\" is missing"},
        {"{\"metric\":{\"__name__\":\"x\"},\"timestamps\":[1]}", "\\\"values\\\" is missing"},
        {"{\"values\":[1],\"timestamps\":[1]}", "\\\"metric\\\" is missing"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[\"abc\"],\"timestamps\":[1]}", "a value is no number"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[+5],\"timestamps\":[1]}", "bad number"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[05],\"timestamps\":[1]}", "bad number"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1.],\"timestamps\":[1]}", "bad number"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[NaN],\"timestamps\":[1]}", "bad number"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1],\"timestamps\":[1.5]}", "whole number of milliseconds"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[1],\"timestamps\":[\"1\"]}", "bad number"},
        {"{\"metric\":{\"__name__\":\"x\"},\"values\":[true],\"timestamps\":[1]}", "bad number"},
        {"{\"metric\":[],\"values\":[1],\"timestamps\":[1]}", "is no object"},
        {"{\"metric\":{\"__name__\":\"x\"},\"metric\":{},\"values\":[1],\"timestamps\":[1]}", "comes twice"},
        {"{\"metric\":{\"__name__\":5},\"values\":[1],\"timestamps\":[1]}", "a string is expected"},
        {"{\"metric\":{\"a\":\"1\"},\"values\":[1],\"timestamps\":[1]}", "__name__"},
        {"{\"metric\":{\"__name__\":\"x\",\"a\":\"1\",\"a\":\"2\"},\"values\":[1],\"timestamps\":[1]}",
         "duplicate label name"},
        {"{\"metric\":{\"__name__\":\"x\",\"a\":\"\\ud800\"},\"values\":[1],\"timestamps\":[1]}", "bad escape"},
        {"{\"metric\":{\"__name__\":\"x\",\"a\":\"\xff\"},\"values\":[1],\"timestamps\":[1]}", "not valid UTF-8"},
        {"[]", "an object is expected"},
        {"nonsense", "an object is expected"},
        {"{\"a\":[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]]}",
         "too deeply"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct buf body = {0};
        buf_printf(&body, "%s\n{\"metric\":{\"__name__\":\"jok\"},\"values\":[%zu],\"timestamps\":[%zu]}\n",
                   table[i].line, i, i);
        char *exact = mem_dup(body.data, body.n);
        int status = post(f, INGEST_JSON_LINES, (str){exact, body.n});
        if (status != 400) fail_msg("`%s` gave %d", table[i].line, status);
        assert_reply_has(f, table[i].why);
        assert_reply_has(f, "{\"line\":1,");
        assert_reply_has(f, "\"accepted\":1,\"rejected\":1");
        mem_free(exact);
        buf_deinit(&body);
    }
    assert_string_equal(dump(f, "x"), "");
}

/* A slot without a value never shifts the others. */
static void test_null(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, INGEST_JSON_LINES,
                          STR("{\"metric\":{\"__name__\":\"jn\"},\"values\":[1,null,3],\"timestamps\":[1,2,3]}")),
                     400);
    assert_reply_has(f, "null is not a value (timestamp 2)");
    assert_reply_has(f, "\"accepted\":2,\"rejected\":1");
    assert_string_equal(dump(f, "jn"), "{\"metric\":{\"__name__\":\"jn\"},\"values\":[1,3],\"timestamps\":[1,3]}\n");
}

static void test_histograms(void **state)
{
    struct fixture *f = *state;
    static const char line[] =
        "{\"metric\":{\"__name__\":\"jh\"},\"histograms\":["
        "{\"schema\":3,\"float\":false,\"reset\":\"no\",\"count\":12,\"sum\":18.4,\"zero_threshold\":0.001,"
        "\"zero_count\":2,\"positive\":{\"spans\":[[0,2],[4,1]],\"counts\":[3,4,3]}},"
        "{\"schema\":0,\"float\":true,\"reset\":\"gauge\",\"count\":2.5,\"sum\":-1,\"zero_threshold\":0,"
        "\"zero_count\":1,\"negative\":{\"spans\":[[-2,1]],\"counts\":[1.5]}}],\"timestamps\":[1,2]}\n";
    int status = post(f, INGEST_JSON_LINES, STR(line));
    if (status != 204) fail_msg("%s", (char *)f->reply.body.data);
    assert_string_equal(dump(f, "jh"), line);
    static const char *const bad[] = {
        "{\"schema\":3,\"count\":1,\"positive\":{\"spans\":[[0,2]],\"counts\":[1]}}",
        "{\"schema\":99}",
        "{\"schema\":0,\"reset\":\"odd\"}",
        "{\"schema\":0,\"positive\":{\"spans\":[[0]]}}",
        "7",
    };
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct buf body = {0};
        buf_printf(&body, "{\"metric\":{\"__name__\":\"jhb\"},\"histograms\":[%s],\"timestamps\":[1]}", bad[i]);
        if (post(f, INGEST_JSON_LINES, buf_as_str(&body)) != 400) fail_msg("%s", bad[i]);
        assert_reply_has(f, "\"accepted\":0,\"rejected\":1");
        buf_deinit(&body);
    }
}

static double random_value(struct rng *rng)
{
    if (rng_chance(rng, 0.3)) return (double)rng_below(rng, 1000);
    double v = f64_from_bits(rng_next(rng));
    return v == v ? v : f64_from_bits(STALE_NAN_BITS);
}

/* Random samples out, in again under another name, out again: the same bits both times. */
static void test_round_trip(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    test_seed(&rng);
    struct buf body = {0}, first = {0};
    double values[3000];
    buf_str(&body, STR("{\"metric\":{\"__name__\":\"rt\"},\"values\":["));
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        values[i] = random_value(&rng);
        const char *format = is_stale_nan(values[i])      ? "%s\"StaleNaN\""
                             : __builtin_isinf(values[i]) ? "%s\"%g\""
                                                          : "%s%.17g";
        buf_printf(&body, format, i ? "," : "", values[i]);
    }
    buf_str(&body, STR("],\"timestamps\":["));
    for (size_t i = 0; i < ARRAY_LEN(values); i++)
        buf_printf(&body, "%s%zu", i ? "," : "", i * 1000);
    buf_str(&body, STR("]}"));
    int status = post(f, INGEST_JSON_LINES, buf_as_str(&body));
    if (status != 204) fail_msg("%s", (char *)f->reply.body.data);
    buf_str(&first, str_of(dump(f, "rt")));
    memcpy(memmem(first.data, first.n, "\"rt\"", 4), "\"rx\"", 4); /* no NUL behind it yet */
    assert_int_equal(post(f, INGEST_JSON_LINES, buf_as_str(&first)), 204);
    buf_u8(&first, 0);
    assert_string_equal(dump(f, "rx"), (char *)first.data);
    struct matcher m;
    assert_null(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("rx")));
    struct select_options o = {.t_min = 0, .t_max = INT64_C(1) << 40};
    struct selection *sel;
    struct samples s;
    assert_null(storage_select(f->db, &m, 1, &o, &sel));
    struct reader *r = reader_create(sel);
    assert_null(reader_samples(r, 0, 0, INT64_C(1) << 40, &s));
    assert_int_equal(s.n, ARRAY_LEN(values));
    for (size_t i = 0; i < s.n; i++)
        assert_true(f64_bits(s.v[i]) == f64_bits(values[i]));
    reader_destroy(r);
    selection_destroy(sel);
    matcher_deinit(&m);
    buf_deinit(&body);
    buf_deinit(&first);
}

static bool count_lines(void *arg, str bytes)
{
    size_t *lines = arg;
    for (size_t i = 0; i < bytes.n; i++)
        *lines += bytes.p[i] == '\n';
    return *lines < 3;
}

static void test_export_limits(void **state)
{
    struct fixture *f = *state;
    struct matcher m;
    assert_int_equal(post(f, INGEST_JSON_LINES,
                          STR("{\"metric\":{\"__name__\":\"el\"},\"values\":[1,2,3,4,5],\"timestamps\":[1,2,3,4,5]}")),
                     204);
    assert_null(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("el")));
    struct match_set set = {&m, 1};
    struct ingest_export rq = {.sets = &set, .n_sets = 1, .t_max = 10, .max_rows = 4};
    size_t lines = 0;
    assert_null(ingest_export(f->db, &rq, count_lines, &lines));
    assert_int_equal(lines, 2);
    lines = 0;
    rq = (struct ingest_export){.sets = &set, .n_sets = 1, .t_min = 2, .t_max = 3, .max_rows = 1};
    assert_null(ingest_export(f->db, &rq, count_lines, &lines));
    assert_int_equal(lines, 2);
    lines = 0;
    rq = (struct ingest_export){.sets = &set, .n_sets = 1, .t_max = 10, .max_rows = 1};
    err e = ingest_export(f->db, &rq, count_lines, &lines);
    assert_int_equal(err_code(e), ERR_CANCELED);
    err_free(e);
    matcher_deinit(&m);
}

static bool keep_bytes(void *arg, str bytes)
{
    buf_str(arg, bytes);
    return true;
}

static void assert_export(struct fixture *f, enum ingest_export_format format, const char *columns, const char *want)
{
    struct matcher m[2];
    struct buf out = {0};
    assert_null(matcher_init(&m[0], MATCH_EQ, LABEL_NAME, STR("ex port")));
    assert_null(matcher_init(&m[1], MATCH_EQ, STR("l"), STR("a,\"b\"\n")));
    struct match_set sets[] = {{&m[0], 1}, {&m[1], 1}}; /* one series fits both: it comes once */
    struct ingest_export rq = {.sets = sets,
                               .n_sets = 2,
                               .t_min = INT64_MIN / 2,
                               .t_max = INT64_MAX / 2,
                               .max_rows = 1,
                               .format = format,
                               .columns = str_of(columns)};
    assert_null(ingest_export(f->db, &rq, keep_bytes, &out));
    buf_u8(&out, 0);
    assert_string_equal((const char *)out.data, want);
    buf_deinit(&out);
}

static void test_export_forms(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, INGEST_JSON_LINES,
                          STR("{\"metric\":{\"__name__\":\"ex port\",\"l\":\"a,\\\"b\\\"\\n\"},"
                              "\"values\":[1.5,-2,\"NaN\"],\"timestamps\":[951827696789,1000,0]}")),
                     204);
    assert_export(f, INGEST_EXPORT_TEXT, "",
                  "{\"ex port\",l=\"a,\\\"b\\\"\\n\"} NaN 0\n{\"ex port\",l=\"a,\\\"b\\\"\\n\"} -2 1000\n"
                  "{\"ex port\",l=\"a,\\\"b\\\"\\n\"} 1.5 951827696789\n");
    assert_export(f, INGEST_EXPORT_PROMAPI, "",
                  "{\"status\":\"success\",\"data\":{\"resultType\":\"matrix\",\"result\":[{\"metric\":"
                  "{\"__name__\":\"ex port\",\"l\":\"a,\\\"b\\\"\\n\"},\"values\":"
                  "[[0,\"NaN\"],[1,\"-2\"],[951827696.789,\"1.5\"]]}]}}\n");
    assert_export(f, INGEST_EXPORT_CSV, "__name__, l ,__value__,__timestamp__,none",
                  "__name__,l,__value__,__timestamp__,none\nex port,\"a,\"\"b\"\"\n\",NaN,0,\n"
                  "ex port,\"a,\"\"b\"\"\n\",-2,1000,\nex port,\"a,\"\"b\"\"\n\",1.5,951827696789,\n");
    assert_export(f, INGEST_EXPORT_CSV, "__timestamp__:unix_s,__timestamp__:unix_ns,__timestamp__:rfc3339",
                  "__timestamp__:unix_s,__timestamp__:unix_ns,__timestamp__:rfc3339\n0,0,1970-01-01T00:00:00Z\n"
                  "1,1000000000,1970-01-01T00:00:01Z\n951827696,951827696789000000,2000-02-29T12:34:56.789Z\n");
    assert_export(f, INGEST_EXPORT_CSV,
                  "__timestamp__:custom:Mon Monday Jan January _2 2 02 1 01 06 15 3 03 4 5 PM pm MST",
                  "__timestamp__:custom:Mon Monday Jan January _2 2 02 1 01 06 15 3 03 4 5 PM pm MST\n"
                  "Thu Thursday Jan January  1 1 01 1 01 70 00 12 12 0 0 AM am UTC\n"
                  "Thu Thursday Jan January  1 1 01 1 01 70 00 12 12 0 1 AM am UTC\n"
                  "Tue Tuesday Feb February 29 29 29 2 02 00 12 12 12 34 56 PM pm UTC\n");
    assert_export(f, INGEST_EXPORT_CSV, "__timestamp__:custom:05.000000|.9|.99.Z0700-0700-07:00",
                  "__timestamp__:custom:05.000000|.9|.99.Z0700-0700-07:00\n00.000000||.Z+0000+00:00\n"
                  "01.000000||.Z+0000+00:00\n56.789000|.7|.78.Z+0000+00:00\n");
}

static void assert_no_columns(struct arena *a, str format)
{
    struct csv_column *columns;
    uint32_t n;
    err e = export_csv_parse(format, a, &columns, &n);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
}

static void test_csv_columns(void **state)
{
    (void)state;
    static const char *const wrong[] = {
        "", ",a", "a,", " ", "a,,b", "__timestamp__:", "__timestamp__:unix", "a,__timestamp__:custom:"};
    struct arena a = {0};
    struct csv_column *columns;
    uint32_t n;
    for (size_t i = 0; i < ARRAY_LEN(wrong); i++)
        assert_no_columns(&a, str_of(wrong[i]));
    char many[2001];
    memset(many, ',', sizeof many);
    assert_no_columns(&a, (str){many, sizeof many});
    assert_null(export_csv_parse(STR("__timestamps__,__timestamp__:unix_ms"), &a, &columns, &n));
    assert_int_equal(n, 2);
    assert_int_equal(columns[0].kind, CSV_LABEL);
    assert_int_equal(columns[1].kind, CSV_UNIX_MS);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),        cmocka_unit_test(test_bad_lines),   cmocka_unit_test(test_null),
        cmocka_unit_test(test_histograms),   cmocka_unit_test(test_round_trip),  cmocka_unit_test(test_export_limits),
        cmocka_unit_test(test_export_forms), cmocka_unit_test(test_csv_columns),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
