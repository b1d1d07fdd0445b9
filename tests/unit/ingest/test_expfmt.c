/*
 * test_expfmt.c: the text exposition formats: what is written by real exporters and by careless hands.
 * Several documents come from bug reports against other servers.
 */
#include "ingest/expfmt.h"
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

/* One document, what it leaves behind. status 204 or 400; text: the dump of metric. */
static void document(struct fixture *f, const char *body, int status, const char *metric, const char *text)
{
    char *exact = mem_dup(body, strlen(body));
    int got = post(f, INGEST_EXPOSITION, (str){exact, strlen(body)});
    if (got != status) fail_msg("`%s` gave %d: %s", body, got, (char *)f->reply.body.data);
    const char *stored = dump(f, metric);
    if (strcmp(stored, text) != 0) fail_msg("`%s` stored %s", body, stored);
    mem_free(exact);
}

#define ONE(metric, labels, value)                                                                                     \
    "{\"metric\":{\"__name__\":\"" metric "\"" labels "},\"values\":[" value "],\"timestamps\":[1749999600000]}\n"

static void test_lines(void **state)
{
    static const struct {
        const char *body, *metric, *text;
    } table[] = {
        {"a1 1 1749999600000\n", "a1", ONE("a1", "", "1")},
        {"a2 1 1749999600000", "a2", ONE("a2", "", "1")},
        {"a3 1 1749999600000\r\n\r\n", "a3", ONE("a3", "", "1")},
        {" \ta4\t 3\t1749999600000\t \n", "a4", ONE("a4", "", "3")},
        {"a5{} 1 1749999600000\n", "a5", ONE("a5", "", "1")},
        {"a6{b=\"c\",} 1 1749999600000\n", "a6", ONE("a6", ",\"b\":\"c\"", "1")},
        {"a7 { b = \"c\" , d = \"e\" } 1 1749999600000\n", "a7", ONE("a7", ",\"b\":\"c\",\"d\":\"e\"", "1")},
        {"a8{b=\"}\",c=\"a b\"} 1 1749999600000\n", "a8", ONE("a8", ",\"b\":\"}\",\"c\":\"a b\"", "1")},
        {"a9{part=\"F:\\\\\",vm=\"t1\"} 1 1749999600000\n", "a9", ONE("a9", ",\"part\":\"F:\\\\\",\"vm\":\"t1\"", "1")},
        {"b1{q=\"\\\"x\\\"\",n=\"a\\nb\",o=\"\\q\"} 1 1749999600000\n", "b1",
         ONE("b1", ",\"n\":\"a\\nb\",\"o\":\"\\\\q\",\"q\":\"\\\"x\\\"\"", "1")},
        {"b2{e=\"\"} 1 1749999600000\n", "b2", ONE("b2", "", "1")},
        {"{\"b.3\",\"l.x\"=\"v\"} 1 1749999600000\n", "b.3", ONE("b.3", ",\"l.x\":\"v\"", "1")},
        {"b4{\"l.x\"=\"v\"} 1 1749999600000\n", "b4", ONE("b4", ",\"l.x\":\"v\"", "1")},
        {"{\"b\\\"5\"} 1 1749999600000\n", "b\"5", ONE("b\\\"5", "", "1")},
        {"{l=\"v\",\"b6\"} 1 1749999600000\n", "b6", ONE("b6", ",\"l\":\"v\"", "1")},
        {"{__name__=\"b7\",\"b7x\"} 1 1749999600000\nb7 1 1749999600000\n", NULL, NULL},
        {"b8 NaN 1749999600000\n", "b8", ONE("b8", "", "\"NaN\"")},
        {"b9 +Inf 1749999600000\n", "b9", ONE("b9", "", "\"Infinity\"")},
        {"c1 -inf 1749999600000\n", "c1", ONE("c1", "", "\"-Infinity\"")},
        {"c2 0x1.8p1 1749999600000\n", "c2", ONE("c2", "", "3")},
        {"c3 -0 1749999600000\n", "c3", ONE("c3", "", "-0")},
        {"c4 1e-3 1749999600000\n", "c4", ONE("c4", "", "0.001")},
        {"c5 +5 1749999600000\n", "c5", ONE("c5", "", "5")},
        {"c6_total{n=\"1\"} 5 1749999600000 # {\"net.http\"=\"abc\"} 1.0\n", "c6_total",
         ONE("c6_total", ",\"n\":\"1\"", "5")},
        {"c7{a=\"\xc3\xa9\"} 1 1749999600000\n", "c7", ONE("c7", ",\"a\":\"\xc3\xa9\"", "1")},
        {"c8:x 1 1749999600000\n", "c8:x", ONE("c8:x", "", "1")},
        {"# a comment\n#\n# HELP\n#HELP x y\nc9 1 1749999600000\n", "c9", ONE("c9", "", "1")},
        {"d1 1 1749999600.000\n", "d1", ONE("d1", "", "1")},
        {"d2 1 1.7499996e9\n", "d2", ONE("d2", "", "1")},
        {"d3 1 1.7499996e12\n", "d3", ONE("d3", "", "1")},
        {"d4 123 1749999600000\nd4 456 1749999600000\n", "d4", ONE("d4", "", "456")},
        {"d5 1 1749999600\n# EOF\n", "d5", ONE("d5", "", "1")},
        {"d6 1 1749999600000\n# EOF", "d6", ONE("d6", "", "1")},
        {"d7 StaleNaN 1749999600000\n", "d7", ONE("d7", "", "\"StaleNaN\"")},
        {"d8_bucket{le=\"+Inf\"} 6 1749999600000 # {id=\"6876\"} -0.0006 1.6688084762944589e+09\n", "d8_bucket",
         ONE("d8_bucket", ",\"le\":\"+Inf\"", "6")},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++)
        if (table[i].metric) document(*state, table[i].body, 204, table[i].metric, table[i].text);
}

static void test_bad_lines(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *line, *why;
    } table[] = {
        {"x", "a value is missing"},
        {"x{", "braces are not closed"},
        {"x{a", "braces are not closed"},
        {"x{a=", "label value in quotes"},
        {"x{a=b} 1", "label value in quotes"},
        {"x{a=\"b} 1", "a quote is not closed"},
        {"x{a=\"b\\\"} 1", "a quote is not closed"},
        {"x{a=\"b\" c=\"d\"} 1", "a comma or a closing brace"},
        {"x{a,b=\"c\"} 1", "= is expected"},
        {"x{,} 1", "label name is expected"},
        {"x{\"y\"} 1", "= is expected"},
        {"x{1a=\"b\"} 1", "label name is expected"},
        {"{} 1", "metric name is missing"},
        {"{a=\"b\"} 1", "metric name is missing"},
        {"{\"a\",\"b\"} 1", "= is expected"},
        {"1x 1", "metric name is expected"},
        {"x-y 1", "value is not a number"},
        {"x 1.9T", "value is not a number"},
        {"x 1_000", "value is not a number"},
        {"x abc", "value is not a number"},
        {"x 1 abc", "timestamp"},
        {"x 1 1749999600000 y", "unexpected text"},
        {"x 1 99999999999999999999", "timestamp"},
        {"x 1 NaN", "timestamp"},
        {"node_\xf3_state 1", "invalid UTF-8"},
        {"x{a=\"\xff\"} 1 1749999600000", "not valid UTF-8"},
        {"x{a=\"1\",a=\"2\"} 1 1749999600000", "duplicate label name \\\"a\\\""},
        {"x{__name__=\"y\"} 1 1749999600000", "duplicate label name"},
        {"x{\"\"=\"y\"} 1 1749999600000", "empty label name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        char body[256];
        snprintf(body, sizeof body, "ok{l=\"1\"} %zu 1749999600000\n%s\r\nok{l=\"2\"} %zu 1749999600000", i,
                 table[i].line, i);
        int status = post(f, INGEST_EXPOSITION, str_of(body));
        if (status != 400) fail_msg("`%s` gave %d", table[i].line, status);
        assert_reply_has(f, table[i].why);
        assert_reply_has(f, "\"accepted\":2,\"rejected\":1");
        assert_reply_has(f, "{\"line\":2,");
    }
    assert_non_null(strstr(dump(f, "ok"), "\"values\":[28]"));
    assert_string_equal(dump(f, "x"), "");
}

static void test_many_errors(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0};
    for (int i = 0; i < 1000; i++)
        buf_printf(&body, "me %d 1749999600000\nbad%d\n", i, i);
    assert_int_equal(post(f, INGEST_EXPOSITION, buf_as_str(&body)), 400);
    assert_reply_has(
        f, "\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"1000 of 2000 samples were not stored; "
           "line 2: a value is missing: `bad0`\",\"accepted\":1000,\"rejected\":1000");
    assert_reply_has(f, "\"line\":20,");
    assert_null(strstr((char *)f->reply.body.data, "\"line\":22,"));
    buf_deinit(&body);
}

static void test_default_times(void **state)
{
    struct fixture *f = *state;
    struct label args[] = {{STR("timestamp"), STR("1749999600000")}, {STR("extra_label"), STR("dc=eu")}};
    struct ingest_request rq = {.format = INGEST_EXPOSITION, .body = STR("t1 5\n"), .args = args, .n_args = 2};
    assert_int_equal(post_full(f, &rq), 204);
    assert_string_equal(dump(f, "t1"), ONE("t1", ",\"dc\":\"eu\"", "5"));
    args[0].value = STR("soon");
    assert_int_equal(post_full(f, &rq), 400);
    int64_t before = (int64_t)time(NULL) * 1000;
    assert_int_equal(post(f, INGEST_EXPOSITION, STR("t2 5\n")), 204);
    const char *at = strstr(dump(f, "t2"), "\"timestamps\":[");
    assert_non_null(at);
    int64_t stored = strtoll(at + strlen("\"timestamps\":["), NULL, 10);
    assert_true(stored >= before && stored < before + 60000);
    rq = (struct ingest_request){.format = INGEST_EXPOSITION,
                                 .content_type = STR("application/openmetrics-text; version=1.0.0"),
                                 .body = STR("t3 5 1749999600\n")};
    assert_int_equal(post_full(f, &rq), 204);
    assert_string_equal(dump(f, "t3"), ONE("t3", "", "5"));
}

static void test_outside_retention(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 86400000, 86400000, 0);
    struct label args[] = {{STR("timestamp"), STR("1599894041764")}};
    struct ingest_request rq = {
        .format = INGEST_EXPOSITION, .body = STR("foo{bar=\"baz\"} 123\n"), .args = args, .n_args = 1};
    assert_int_equal(post_full(&f, &rq), 400);
    assert_reply_has(&f, "older than the retention");
    assert_reply_has(&f, "\"accepted\":0,\"rejected\":1");
    assert_reply_has(&f, "foo{bar=\\\"baz\\\"}");
    fixture_close(&f);
}

static bool keep_metadata(void *arg, const struct metric_metadata *m)
{
    buf_printf(arg, "%.*s|%.*s|%.*s|%.*s\n", STR_ARG(m->metric), STR_ARG(m->type), STR_ARG(m->help), STR_ARG(m->unit));
    return true;
}

static void test_metadata(void **state)
{
    struct fixture *f = *state;
    struct buf seen = {0};
    document(
        f,
        "# HELP m1 Two \\\\ lines\\n here.\n# TYPE m1 counter\nm1 1 1749999600000\n"
        "# TYPE m2 untyped\n# TYPE m.3 gauge\n# TYPE \"m 4\" histogram\n# UNIT m5\n# HELP m5 text \n# TYPE m6 summary\n"
        "# EOF\n",
        204, "m1", ONE("m1", "", "1"));
    storage_metadata_each(f->db, STR("m1"), keep_metadata, &seen);
    storage_metadata_each(f->db, STR("m2"), keep_metadata, &seen);
    storage_metadata_each(f->db, STR("m 4"), keep_metadata, &seen);
    storage_metadata_each(f->db, STR("m5"), keep_metadata, &seen);
    storage_metadata_each(f->db, STR("m6"), keep_metadata, &seen);
    str expected =
        STR("m1|counter|Two \\ lines\n here.|\nm2|unknown||\nm 4|histogram||\nm5|unknown|text |\nm6|summary||\n");
    if (!str_eq(buf_as_str(&seen), expected)) fail_msg("%.*s", (int)seen.n, (char *)seen.data);
    buf_deinit(&seen);
}

static void test_batches_and_size(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0};
    for (int i = 0; i < 200000; i++)
        buf_printf(&body, "big{i=\"%d\"} %d %lld\n", i % 50, i, (long long)(T0 + i));
    assert_int_equal(post(f, INGEST_EXPOSITION, buf_as_str(&body)), 204);
    dump(f, "big");
    assert_int_equal(dump_count(f, STR("1749999")), 200000);
    buf_clear(&body);
    buf_str(&body, STR("long{a=\""));
    for (int i = 0; i < (int)LIMIT_LINE; i++)
        buf_u8(&body, 'x');
    buf_str(&body, STR("\"} 1\nlong_ok 1 1749999600000\n"));
    assert_int_equal(post(f, INGEST_EXPOSITION, buf_as_str(&body)), 400);
    assert_reply_has(f, "the line is too long");
    assert_string_equal(dump(f, "long_ok"), ONE("long_ok", "", "1"));
    buf_deinit(&body);
}

/* Any bytes: no crash, and what is reported adds up. */
static void test_random_bytes(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    test_seed(&rng);
    static const char alphabet[] = "ab{}\"=,\\# 1.\n\t\xc3\xa9";
    for (int round = 0; round < 2000; round++) {
        struct buf body = {0};
        for (uint64_t i = rng_below(&rng, 40); i > 0; i--)
            buf_u8(&body, (uint8_t)alphabet[rng_below(&rng, sizeof alphabet - 1)]);
        int status = post(f, INGEST_EXPOSITION, buf_as_str(&body));
        assert_true(status == 204 || status == 400);
        buf_deinit(&body);
    }
}

/* An exemplar goes to its series; times are seconds; a bad one is named and leaves its sample alone. */
static void test_exemplars(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *body, *metric, *text;
        const char *why; /* NULL: 204 */
    } table[] = {
        {"x1{a=\"b\"} 1 1749999600000 # {trace_id=\"t\"} 0.5 1749999600.5", "x1",
         "x1{a=\"b\"} {trace_id=\"t\"}0.5@500;", NULL},
        {"x2 1 1749999600000 # {} 2", "x2", "x2 {}2@0?;", NULL},
        {"x3 1 1749999600000 #{ \"a.b\" = \"q\\\"\" , c=\"\" }2 1749999601\r", "x3", "x3 {\"a.b\"=\"q\\\"\"}2@1000;",
         NULL},
        {"x4 1 1749999600000 # {b=\"1\",a=\"2\"} NaN 1749999600000", "x4", "x4 {a=\"2\", b=\"1\"}nan@0;", NULL},
        {"x5 1 1749999600000 # {a=\"1\"}", "x5", "", "line 1: exemplar: its value is not a number"},
        {"x6 1 1749999600000 # trace_id", "x6", "", "exemplar: labels in braces are expected"},
        {"x7 1 1749999600000 # {a=\"1\"} 1 1 1", "x7", "", "exemplar: there is text after its timestamp"},
        {"x8 1 1749999600000 # {a=\"1\"} 1 x", "x8", "", "exemplar: its timestamp is no time"},
        {"x9 1 1749999600000 # {a=\"1} 1", "x9", "", "exemplar: a quote is not closed"},
        {"y1 1 1749999600000 # {a=\"1\",a=\"2\"} 1", "y1", "", NULL},
        {"y2 1 1749999600000 # {a=\"1\"} 1 5\ny2 2 1749999600001 # {a=\"1\"} 1 4", "y2",
         "y2 {a=\"1\"}1@-1749999595000;", NULL},
        {"y3{a=\"1\",a=\"2\"} 1 1749999600000 # {a=\"1\"} 1", "y3", "", "duplicate label name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        int status = post(f, INGEST_EXPOSITION, str_of(table[i].body));
        if (status != (table[i].why == NULL ? 204 : 400)) fail_msg("`%s` gave %d", table[i].body, status);
        if (table[i].why != NULL) assert_reply_has(f, table[i].why);
        assert_string_equal(dump_exemplars(f, table[i].metric), table[i].text);
        if (table[i].metric[0] == 'x') assert_non_null(strstr(dump(f, table[i].metric), "1749999600000"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lines),
        cmocka_unit_test(test_bad_lines),
        cmocka_unit_test(test_many_errors),
        cmocka_unit_test(test_default_times),
        cmocka_unit_test(test_outside_retention),
        cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_batches_and_size),
        cmocka_unit_test(test_exemplars),
        cmocka_unit_test(test_random_bytes),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
