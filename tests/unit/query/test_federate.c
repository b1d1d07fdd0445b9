/* test_federate.c: which samples /federate has, in which order, as text and as protobuf, byte for byte. */
#include "tests/unit/query/query_db.h"

#include "storage/base/protobuf.h"
#include "storage/column_hist.h"

#define MINUTE INT64_C(60000)

static str federate(struct query_db *q, struct buf *out, const char *const *texts, uint32_t n, int64_t now_ms,
                    bool protobuf, bool utf8)
{
    struct match_sets sets;
    str match[4];
    for (uint32_t i = 0; i < n; i++)
        match[i] = str_of(texts[i]);
    assert_ok(match_sets_parse(match, n, &sets));
    struct federate_request rq = {.match = &sets, .now_ms = now_ms, .protobuf = protobuf, .utf8 = utf8};
    buf_clear(out);
    assert_ok(query_federate(q->engine, &rq, out));
    match_sets_deinit(&sets);
    return buf_as_str(out);
}

static void expect(struct query_db *q, const char *match, int64_t now_ms, const char *want)
{
    struct buf out = {0};
    federate(q, &out, &match, 1, now_ms, false, false);
    buf_u8(&out, 0);
    assert_string_equal((const char *)out.data, want);
    buf_deinit(&out);
}

static void test_newest_sample(void **state)
{
    (void)state;
    struct query_db q;
    query_db_open(&q, NULL);
    query_db_load(&q, MINUTE, "{__name__=\"up\",job=\"b\",instance=\"x:1\"}", "1 2 3 _ 5 6");
    query_db_load(&q, MINUTE, "{__name__=\"up\",job=\"a\"}", "1 2 3");
    query_db_load(&q, MINUTE, "{__name__=\"gone\"}", "1 2 3 stale");
    query_db_load(&q, MINUTE, "{__name__=\"odd\",v=\"a\\\"b\\\\c\"}", "_ _ NaN");
    expect(&q, "{__name__=~\".+\"}", 3 * MINUTE,
           "# TYPE odd untyped\nodd{v=\"a\\\"b\\\\c\",instance=\"\"} NaN 120000\n"
           "# TYPE up untyped\nup{instance=\"x:1\",job=\"b\"} 3 120000\nup{job=\"a\",instance=\"\"} 3 120000\n");
    expect(&q, "up", 4 * MINUTE,
           "# TYPE up untyped\nup{instance=\"x:1\",job=\"b\"} 5 240000\nup{job=\"a\",instance=\"\"} 3 120000\n");
    expect(&q, "up", 2 * MINUTE - 1,
           "# TYPE up untyped\nup{instance=\"x:1\",job=\"b\"} 2 60000\nup{job=\"a\",instance=\"\"} 2 60000\n");
    expect(&q, "up", 8 * MINUTE, "# TYPE up untyped\nup{instance=\"x:1\",job=\"b\"} 6 300000\n");
    expect(&q, "gone", 2 * MINUTE, "# TYPE gone untyped\ngone{instance=\"\"} 3 120000\n");
    expect(&q, "gone", 3 * MINUTE, "");
    expect(&q, "up", 30 * MINUTE, "");
    expect(&q, "none", MINUTE, "");
    query_db_close(&q);
}

static void test_several_sets(void **state)
{
    (void)state;
    struct query_db q;
    struct buf out = {0};
    query_db_open(&q, NULL);
    query_db_load(&q, MINUTE, "{__name__=\"b\",i=\"1\"}", "1e300");
    query_db_load(&q, MINUTE, "{__name__=\"b\",i=\"2\"}", "-Inf");
    query_db_load(&q, MINUTE, "{__name__=\"a\",i=\"1\"}", "0.1");
    str text = federate(&q, &out, (const char *const[]){"{i=\"1\"}", "b"}, 2, 0, false, false);
    str want = STR("# TYPE a untyped\na{i=\"1\",instance=\"\"} 0.1 0\n"
                   "# TYPE b untyped\nb{i=\"1\",instance=\"\"} 1e+300 0\nb{i=\"2\",instance=\"\"} -Inf 0\n");
    if (!str_eq(text, want)) fail_msg("%.*s", STR_ARG(text));
    assert_int_equal(federate(&q, &out, NULL, 0, 0, false, false).n, 0);
    buf_deinit(&out);
    query_db_close(&q);
}

static void test_names(void **state)
{
    (void)state;
    struct query_db q;
    struct buf out = {0};
    const char *match = "{__name__=~\".+\"}";
    query_db_open(&q, NULL);
    query_db_load(&q, MINUTE, "{__name__=\"http.req:1 \xc3\xa9\",\"k8s.ns\"=\"\xc3\xa9\",instance=\"i\"}", "7");
    str text = federate(&q, &out, &match, 1, 0, false, false);
    str want = STR("# TYPE http_req:1__ untyped\nhttp_req:1__{instance=\"i\",k8s_ns=\"\xc3\xa9\"} 7 0\n");
    if (!str_eq(text, want)) fail_msg("%.*s", STR_ARG(text));
    text = federate(&q, &out, &match, 1, 0, false, true);
    want = STR("# TYPE \"http.req:1 \xc3\xa9\" untyped\n"
               "{\"http.req:1 \xc3\xa9\",instance=\"i\",\"k8s.ns\"=\"\xc3\xa9\"} 7 0\n");
    if (!str_eq(text, want)) fail_msg("%.*s", STR_ARG(text));
    buf_deinit(&out);
    query_db_close(&q);
}

/* ---- protobuf ------------------------------------------------------------------------------------------------ */

static void load_hist(struct query_db *q, const char *series, int64_t t, bool custom)
{
    struct hist_span span = {.offset = custom ? 0 : -3, .length = 2};
    double counts[] = {1, 2}, bounds[] = {0.5, 5};
    struct hist h = {.schema = custom ? HIST_SCHEMA_CUSTOM : 2,
                     .count = custom ? 3 : 4,
                     .sum = 9.5,
                     .zero_count = custom ? 0 : 1,
                     .zero_threshold = custom ? 0 : 0.001,
                     .n_positive_spans = 1,
                     .positive_spans = &span,
                     .n_positive = 2,
                     .positive = counts,
                     .n_custom = custom ? 2 : 0,
                     .custom = bounds};
    struct buf blob = {0};
    assert_ok(hist_validate(&h));
    hist_encode(&h, &blob);
    str bytes = buf_as_str(&blob);
    double sum = h.sum;
    query_db_append(q, series, &t, &sum, &bytes, 1);
    buf_deinit(&blob);
}

/* The next delimited message. */
static str next_message(str *s)
{
    uint64_t n = 0;
    size_t used = 0;
    for (unsigned shift = 0;; shift += 7) {
        uint8_t byte = (uint8_t)s->p[used++];
        n |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80) break;
    }
    str message = {s->p + used, (size_t)n};
    assert_true(used + n <= s->n);
    *s = (str){message.p + n, s->n - used - (size_t)n};
    return message;
}

/* The k-th field of that number, which must be there. */
static struct pb_field field(str message, uint32_t number, int k)
{
    struct pb m = pb_of(message);
    struct pb_field f;
    while (pb_next(&m, &f))
        if (f.number == number && k-- == 0) return f;
    fail_msg("field %u is missing", number);
    return f;
}

static double number(str message, uint32_t n, int k)
{
    return f64_from_bits(field(message, n, k).u);
}

static void test_protobuf(void **state)
{
    (void)state;
    struct query_db q;
    struct buf out = {0};
    const char *match = "{__name__=~\".+\"}";
    query_db_open(&q, NULL);
    load_hist(&q, "{__name__=\"lat\",job=\"j\"}", MINUTE, false);
    load_hist(&q, "{__name__=\"nhcb\"}", MINUTE, true);
    query_db_load(&q, MINUTE, "{__name__=\"lat\",job=\"k\"}", "1 2.5");
    str all = federate(&q, &out, &match, 1, MINUTE, true, false);

    str floats = next_message(&all); /* of one name, floats come first */
    assert_true(str_eq(field(floats, 1, 0).bytes, STR("lat")));
    assert_int_equal(field(floats, 3, 0).u, 3);
    str metric = field(floats, 4, 0).bytes;
    assert_true(str_eq(field(field(metric, 1, 0).bytes, 2, 0).bytes, STR("k")));
    assert_true(str_eq(field(field(metric, 1, 1).bytes, 1, 0).bytes, STR("instance")));
    assert_true(number(field(metric, 5, 0).bytes, 1, 0) == 2.5);
    assert_int_equal(field(metric, 6, 0).u, MINUTE);

    str hists = next_message(&all);
    assert_int_equal(field(hists, 3, 0).u, 4);
    str h = field(field(hists, 4, 0).bytes, 7, 0).bytes;
    assert_true(number(h, 2, 0) == 9.5 && number(h, 4, 0) == 4 && number(h, 6, 0) == 0.001 && number(h, 8, 0) == 1);
    assert_int_equal(field(h, 5, 0).u, 4); /* 2, zigzag */
    assert_int_equal(field(field(h, 12, 0).bytes, 1, 0).u, 5);
    assert_int_equal(field(field(h, 12, 0).bytes, 2, 0).u, 2);
    assert_true(number(h, 14, 0) == 1 && number(h, 14, 1) == 2);
    assert_int_equal(all.n, 0); /* custom bounds have no place there */

    str text = federate(&q, &out, &match, 1, MINUTE, false, false); /* nor any histogram in the text */
    str want = STR("# TYPE lat untyped\nlat{job=\"k\",instance=\"\"} 2.5 60000\n");
    if (!str_eq(text, want)) fail_msg("%.*s", STR_ARG(text));
    buf_deinit(&out);
    query_db_close(&q);
}

static void test_memory_is_bounded(void **state)
{
    (void)state;
    struct query_db q;
    struct buf out = {0};
    struct match_sets sets;
    query_db_open(&q, &(struct query_options){.max_memory = 2000});
    for (int i = 0; i < 50; i++) {
        char series[64];
        snprintf(series, sizeof series, "{__name__=\"m\",i=\"%d\"}", i);
        query_db_load(&q, MINUTE, series, "1");
    }
    assert_ok(match_sets_parse(&STR("m"), 1, &sets));
    assert_err(query_federate(q.engine, &(struct federate_request){.match = &sets}, &out), ERR_LIMIT);
    match_sets_deinit(&sets);
    buf_deinit(&out);
    query_db_close(&q);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest_sample), cmocka_unit_test(test_several_sets),      cmocka_unit_test(test_names),
        cmocka_unit_test(test_protobuf),      cmocka_unit_test(test_memory_is_bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
