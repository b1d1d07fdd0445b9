/*
 * test_remote_write.c: remote write 1.0 bodies, made by a small encoder here, end up as the right
 * samples; odd orders mean the same; bad series are named and cost only themselves.
 */
#include "ingest/remote_write.h"
#include "storage/base/varint.h"
#include "tests/unit/ingest/fixture.h"

/* ---- the encoder -------------------------------------------------------------------------------- */

static void put_bytes(struct buf *b, uint32_t field, str bytes)
{
    buf_varint(b, field << 3 | 2);
    buf_lenstr(b, bytes);
}

static void put_double(struct buf *b, uint32_t field, double v)
{
    buf_varint(b, field << 3 | 1);
    buf_u64(b, f64_bits(v));
}

static void put_varint_field(struct buf *b, uint32_t field, uint64_t v)
{
    buf_varint(b, field << 3);
    buf_varint(b, v);
}

/* Puts what `inner` holds as a message field, and empties it. */
static void put_message(struct buf *b, uint32_t field, struct buf *inner)
{
    put_bytes(b, field, buf_as_str(inner));
    buf_deinit(inner);
}

static void put_label(struct buf *series, const char *name, const char *value)
{
    struct buf label = {0};
    put_bytes(&label, 1, str_of(name));
    put_bytes(&label, 2, str_of(value));
    put_message(series, 1, &label);
}

/* "__name__=up,job=x" */
static void put_labels(struct buf *series, const char *text)
{
    char copy[512], *save = NULL;
    snprintf(copy, sizeof copy, "%s", text);
    for (char *pair = strtok_r(copy, ",", &save); pair; pair = strtok_r(NULL, ",", &save)) {
        char *equal = strchr(pair, '=');
        *equal = 0;
        put_label(series, pair, equal + 1);
    }
}

static void put_sample(struct buf *series, int64_t t, double v)
{
    struct buf sample = {0};
    if (f64_bits(v) != 0) put_double(&sample, 1, v);
    if (t != 0) put_varint_field(&sample, 2, (uint64_t)t);
    put_message(series, 2, &sample);
}

/* A series of one sample. */
static void put_series(struct buf *body, const char *labels, int64_t t, double v)
{
    struct buf series = {0};
    put_labels(&series, labels);
    put_sample(&series, t, v);
    put_message(body, 1, &series);
}

static int send(struct fixture *f, struct buf *body)
{
    char *exact = mem_dup(body->data ? body->data : (void *)"", body->n); /* reads past the end show */
    int status = post(f, INGEST_REMOTE_WRITE, (str){exact, body->n});
    mem_free(exact);
    buf_deinit(body);
    return status;
}

/* ---- tests -------------------------------------------------------------------------------------- */

static void test_samples(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, series = {0};
    put_series(&body, "__name__=up,job=x", T0, 1);
    put_labels(&series, "__name__=many,z=1,a=2");
    put_sample(&series, T0, 0);
    put_sample(&series, T0 + 1, -0.0);
    put_sample(&series, T0 + 2, 1.5e-320);
    put_sample(&series, T0 + 3, f64_from_bits(STALE_NAN_BITS));
    put_sample(&series, T0 + 4, __builtin_inf());
    put_sample(&series, -5, 7);
    put_sample(&series, 0, 8);
    put_message(&body, 1, &series);
    assert_int_equal(send(f, &body), 204);
    assert_string_equal(dump(f, "up"), "{\"metric\":{\"__name__\":\"up\",\"job\":\"x\"},\"values\":[1],"
                                       "\"timestamps\":[1749999600000]}\n");
    assert_string_equal(
        dump(f, "many"),
        "{\"metric\":{\"__name__\":\"many\",\"a\":\"2\",\"z\":\"1\"},"
        "\"values\":[7,8,0,-0,1.5e-320,\"StaleNaN\",\"Infinity\"],"
        "\"timestamps\":[-5,0,1749999600000,1749999600001,1749999600002,1749999600003,1749999600004]}\n");
    assert_int_equal(send(f, &body), 204); /* an empty request */
}

/* Labels in any order, before, between or after samples: one series. Sent again: the same. */
static void test_orders(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, series = {0};
    for (int round = 0; round < 2; round++) {
        put_series(&body, "__name__=o,a=1,b=2", T0, 1);
        put_series(&body, "b=2,__name__=o,a=1", T0 + 1, 2);
        put_series(&body, "b=2,__name__=o,a=1,empty=", T0 + 2, 3);
        put_sample(&series, T0 + 3, 4);
        put_labels(&series, "__name__=o,a=1,b=2");
        put_message(&body, 1, &series);
        put_labels(&series, "__name__=o");
        put_sample(&series, T0 + 4, 5);
        put_labels(&series, "b=2");
        put_sample(&series, T0 + 5, 6);
        put_labels(&series, "a=1");
        put_varint_field(&series, 99, 1); /* a field from the future */
        put_bytes(&series, 3, STR(""));   /* an exemplar: no labels, 0, no time */
        put_message(&body, 1, &series);
        assert_int_equal(send(f, &body), 204);
    }
    assert_string_equal(dump(f, "o"), "{\"metric\":{\"__name__\":\"o\",\"a\":\"1\",\"b\":\"2\"},"
                                      "\"values\":[1,2,3,4,5,6],\"timestamps\":[1749999600000,1749999600001,"
                                      "1749999600002,1749999600003,1749999600004,1749999600005]}\n");
}

static void test_bad_series(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *labels, *why;
    } table[] = {
        {"__name__=bad,a=1,a=2", "duplicate label name \\\"a\\\""},
        {"__name__=bad,=2", "empty label name"},
        {"__name__=bad,a=\xff", "not valid UTF-8"},
        {"a=1", "__name__"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct buf body = {0};
        put_series(&body, "__name__=good,n=1", T0 + (int64_t)i, 1);
        put_series(&body, table[i].labels, T0, 1);
        put_series(&body, table[i].labels, T0 + 1, 1);
        put_series(&body, "__name__=good,n=2", T0 + (int64_t)i, 1);
        assert_int_equal(send(f, &body), 400);
        assert_reply_has(f, table[i].why);
        assert_reply_has(f, "\"accepted\":2,\"rejected\":2");
        assert_reply_has(f, "2 of 4 samples were not stored");
    }
    assert_non_null(strstr(dump(f, "good"), "[1,1,1,1]"));
    assert_string_equal(dump(f, "bad"), "");
    struct buf body = {0}, series = {0};
    put_labels(&series, "__name__=bad,a=1,a=2"); /* no samples: nothing to refuse */
    put_message(&body, 1, &series);
    assert_int_equal(send(f, &body), 204);
}

static void test_malformed_stores_nothing(void **state)
{
    struct fixture *f = *state;
    struct buf good = {0};
    put_series(&good, "__name__=cut,a=1", T0, 1);
    put_series(&good, "__name__=cut,a=2", T0, 1);
    for (size_t n = 1; n < good.n; n++) {
        struct buf body = {0};
        buf_put(&body, good.data, n);
        int status = send(f, &body);
        if (status == 204) { /* cut between the two: a good request */
            assert_non_null(strstr(dump(f, "cut"), "\"a\":\"1\""));
            assert_null(strstr(dump(f, "cut"), "\"a\":\"2\""));
            continue;
        }
        assert_int_equal(status, 400);
        assert_reply_has(f, "at byte ");
    }
    assert_null(strstr(dump(f, "cut"), "\"a\":\"2\""));
    static const char *const bodies[] = {"\x0b",
                                         "\x0c",
                                         "\x07",
                                         "\x0a\x80",
                                         "\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01",
                                         "\x0a\x05\x12\x03\x09\x01\x02",
                                         "\x1a\x02\x08",
                                         "\x0a\x03\x0a\x01\x0b"};
    for (size_t i = 0; i < ARRAY_LEN(bodies); i++) {
        struct buf body = {0};
        buf_str(&body, str_of(bodies[i]));
        int status = send(f, &body);
        assert_int_equal(status, i + 1 < ARRAY_LEN(bodies) ? 400 : 204); /* the last: bad labels, but no samples */
    }
    buf_deinit(&good);
}

/* More samples than a batch holds: in one series, and in many. */
static void test_large_bodies(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, series = {0};
    int n = 150000;
    put_labels(&series, "__name__=large,a=1");
    for (int i = 0; i < n; i++)
        put_sample(&series, T0 + i, i);
    put_message(&body, 1, &series);
    for (int i = 0; i < 70000; i++) {
        char labels[64];
        snprintf(labels, sizeof labels, "__name__=wide,a=%d", i % 100);
        put_series(&body, labels, T0 + i, i);
    }
    assert_int_equal(send(f, &body), 204);
    assert_non_null(strstr(dump(f, "large"), "1749999749999]"));
    assert_int_equal(dump_count(f, STR("\n")), n / 10000);
    dump(f, "wide");
    assert_int_equal(dump_count(f, STR("17499996")), 70000);
}

/* ---- histograms --------------------------------------------------------------------------------- */

static void put_packed_sint64(struct buf *b, uint32_t field, const int64_t *v, size_t n)
{
    struct buf packed = {0};
    for (size_t i = 0; i < n; i++)
        buf_zigzag(&packed, v[i]);
    put_message(b, field, &packed);
}

static void put_span(struct buf *b, uint32_t field, int32_t offset, uint32_t length)
{
    struct buf span = {0};
    if (offset) put_varint_field(&span, 1, zigzag(offset));
    put_varint_field(&span, 2, length);
    put_message(b, field, &span);
}

static void put_hist(struct buf *series, int64_t t, uint64_t count, bool packed)
{
    static const int64_t deltas[] = {3, 1, -2};
    struct buf h = {0};
    put_varint_field(&h, 1, count);
    put_double(&h, 3, 18.4);
    put_varint_field(&h, 4, zigzag(3));
    put_double(&h, 5, 0.001);
    put_varint_field(&h, 6, 2);
    put_span(&h, 11, 0, 2);
    put_span(&h, 11, 4, 1);
    if (packed)
        put_packed_sint64(&h, 12, deltas, 3);
    else
        for (int i = 0; i < 3; i++)
            put_varint_field(&h, 12, zigzag(deltas[i]));
    put_varint_field(&h, 14, 2);
    put_varint_field(&h, 15, (uint64_t)t);
    put_message(series, 4, &h);
}

static void test_histograms(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, series = {0}, h = {0};
    put_labels(&series, "__name__=hist,a=1");
    put_hist(&series, T0, 11, true);
    put_hist(&series, T0 + 1, 11, false);
    put_sample(&series, T0 + 2, 5);
    put_double(&h, 2, 2.5);
    put_double(&h, 3, 1);
    put_double(&h, 7, 2.5);
    put_varint_field(&h, 15, T0 + 3);
    put_message(&series, 4, &h);
    put_message(&body, 1, &series);
    put_series(&body, "__name__=plain,a=1", T0, 1);
    int status = send(f, &body);
    if (status != 204) fail_msg("%s", (char *)f->reply.body.data);
    const char *text = dump(f, "hist");
    const char *one =
        "{\"schema\":3,\"float\":false,\"reset\":\"no\",\"count\":11,\"sum\":18.4,\"zero_threshold\":0.001,"
        "\"zero_count\":2,\"positive\":{\"spans\":[[0,2],[4,1]],\"counts\":[3,4,2]}}";
    const char *found = strstr(text, one);
    if (found == NULL) fail_msg("%s", text);
    assert_non_null(strstr(found + 1, one));
    assert_non_null(strstr(text, "\"values\":[5]"));
    assert_non_null(strstr(text, "\"float\":true,\"reset\":\"unknown\",\"count\":2.5,\"sum\":1"));
    assert_non_null(strstr(dump(f, "plain"), "\"values\":[1]"));
}

static void test_bad_histograms(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, series = {0}, h = {0};
    put_labels(&series, "__name__=badhist,a=1");
    put_hist(&series, T0, 11, true);
    put_span(&h, 11, 0, 5); /* five buckets announced, none sent */
    put_varint_field(&h, 15, T0 + 1);
    put_message(&series, 4, &h);
    put_bytes(&series, 4, STR("\x5a\x01")); /* cut */
    put_message(&body, 1, &series);
    assert_int_equal(send(f, &body), 400);
    assert_reply_has(f, "\"accepted\":1,\"rejected\":2");
    assert_reply_has(f, "series badhist{a=\\\"1\\\"}: ");
}

/* ---- the rest ----------------------------------------------------------------------------------- */

static bool keep_metadata(void *arg, const struct metric_metadata *m)
{
    buf_printf(arg, "%.*s|%.*s|%.*s|%.*s\n", STR_ARG(m->metric), STR_ARG(m->type), STR_ARG(m->help), STR_ARG(m->unit));
    return true;
}

static void test_metadata(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, md = {0}, seen = {0};
    put_varint_field(&md, 1, 1);
    put_bytes(&md, 2, STR("md_total"));
    put_bytes(&md, 4, STR("Help it."));
    put_bytes(&md, 5, STR("bytes"));
    put_message(&body, 3, &md);
    put_varint_field(&md, 1, 77);
    put_bytes(&md, 2, STR("md_odd"));
    put_message(&body, 3, &md);
    assert_int_equal(send(f, &body), 204);
    storage_metadata_each(f->db, STR("md_total"), keep_metadata, &seen);
    storage_metadata_each(f->db, STR("md_odd"), keep_metadata, &seen);
    assert_true(str_eq(buf_as_str(&seen), STR("md_total|counter|Help it.|bytes\nmd_odd|unknown||\n")));
    buf_deinit(&seen);
}

static void test_headers(void **state)
{
    struct fixture *f = *state;
    static const struct {
        const char *type, *encoding;
        int status;
    } table[] = {
        {"", "identity", 204},
        {"application/x-protobuf", "identity", 204},
        {"Application/X-Protobuf; proto=prometheus.WriteRequest", "identity", 204},
        {"application/x-protobuf;proto=\"prometheus.WriteRequest\"", "identity", 204},
        {"application/x-protobuf;proto=io.prometheus.write.v2.Request", "identity", 400}, /* but the body is 1.0 */
        {"application/x-protobuf;proto=io.prometheus.write.v9", "identity", 415},
        {"application/json", "identity", 415},
        {"text/plain", "snappy", 415},
        {"", "br", 415},
        {"", "snappy", 400},
        {"", "", 400}, /* absent: snappy, which this body is not */
        {"", "zstd", 400},
        {"", "gzip", 415},
    };
    struct buf body = {0};
    put_series(&body, "__name__=headers,a=1", T0, 1);
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct ingest_request rq = {.format = INGEST_REMOTE_WRITE,
                                    .content_type = str_of(table[i].type),
                                    .content_encoding = str_of(table[i].encoding),
                                    .body = buf_as_str(&body)};
        int status = post_full(f, &rq);
        if (status != table[i].status) fail_msg("row %zu gave %d", i, status);
        if (status == 415) assert_reply_has(f, "is not accepted");
    }
    struct label args[] = {{STR("extra_label"), STR("dc=eu")}, {STR("extra_label"), STR("a=9")}};
    struct ingest_request rq = {.format = INGEST_REMOTE_WRITE,
                                .content_encoding = STR("identity"),
                                .body = buf_as_str(&body),
                                .args = args,
                                .n_args = 2};
    assert_int_equal(post_full(f, &rq), 204);
    assert_non_null(strstr(dump(f, "headers"), "{\"__name__\":\"headers\",\"a\":\"9\",\"dc\":\"eu\"}"));
    args[1].value = STR("nothing");
    assert_int_equal(post_full(f, &rq), 400);
    buf_deinit(&body);
}

/* Empty bodies and header values without a pointer, in every format. */
static void test_nothing(void **state)
{
    struct fixture *f = *state;
    assert_int_equal(post(f, INGEST_REMOTE_WRITE, (str){0}), 204);
    assert_int_equal(post(f, INGEST_EXPOSITION, (str){0}), 204);
    assert_int_equal(post(f, INGEST_JSON_LINES, (str){0}), 204);
    struct ingest_request rq = {.format = INGEST_REMOTE_WRITE}; /* snappy by default: no length */
    assert_int_equal(post_full(f, &rq), 400);
}

static void test_time_window(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 86400000, 3600000, 0);
    int64_t now = (int64_t)time(NULL) * 1000;
    struct buf body = {0};
    put_series(&body, "__name__=w,a=1", now, 1);
    put_series(&body, "__name__=w,a=2", now - 2 * 86400000, 1);
    put_series(&body, "__name__=w,a=3", now + 2 * 3600000, 1);
    put_series(&body, "__name__=w,a=4", INT64_MAX, 1);
    put_series(&body, "__name__=w,a=5", INT64_MIN, 1);
    assert_int_equal(send(&f, &body), 400);
    assert_reply_has(&f, "\"accepted\":1,\"rejected\":4");
    assert_reply_has(&f, "series w{a=\\\"2\\\"}: ");
    assert_reply_has(&f, "older than the retention");
    fixture_close(&f);
}

/* Random label sets in random orders and forms against a plain list of what was sent last. */
static void test_random(void **state)
{
    struct fixture *f = *state;
    struct rng rng;
    test_seed(&rng);
    enum { SERIES = 40, TIMES = 20 };
    static double expected[SERIES][TIMES];
    memset(expected, 0, sizeof expected);
    for (int round = 0; round < 60; round++) {
        struct buf body = {0};
        for (int k = 0; k < 20; k++) {
            uint64_t s = rng_below(&rng, SERIES), t = rng_below(&rng, TIMES);
            double v = 1 + (double)rng_below(&rng, 1000000) / 8;
            struct buf series = {0};
            char name[16];
            snprintf(name, sizeof name, "%d", (int)s);
            bool sample_first = rng_chance(&rng, 0.2), name_last = rng_chance(&rng, 0.5);
            if (sample_first) put_sample(&series, T0 + (int64_t)t, v);
            if (!name_last) put_label(&series, "__name__", "random");
            put_label(&series, "s", name);
            if (name_last) put_label(&series, "__name__", "random");
            if (!sample_first) put_sample(&series, T0 + (int64_t)t, v);
            put_message(&body, 1, &series);
            expected[s][t] = v;
        }
        assert_int_equal(send(f, &body), 204);
    }
    struct buf text = {0};
    for (int s = 0; s < SERIES; s++) {
        bool any = false;
        buf_clear(&text);
        for (int t = 0; t < TIMES; t++)
            if (expected[s][t] != 0) any = true, buf_printf(&text, "%d:%.17g ", t, expected[s][t]);
        struct matcher m[2];
        char name[16];
        snprintf(name, sizeof name, "%d", s);
        assert_null(matcher_init(&m[0], MATCH_EQ, LABEL_NAME, STR("random")));
        assert_null(matcher_init(&m[1], MATCH_EQ, STR("s"), str_of(name)));
        struct select_options o = {.t_min = T0, .t_max = T0 + TIMES};
        struct selection *sel;
        assert_null(storage_select(f->db, m, 2, &o, &sel));
        assert_int_equal(selection_count(sel), any);
        struct buf got = {0};
        struct reader *r = reader_create(sel);
        if (any) {
            struct samples samples;
            assert_null(reader_samples(r, 0, T0, T0 + TIMES, &samples));
            for (size_t i = 0; i < samples.n; i++)
                buf_printf(&got, "%d:%.17g ", (int)(samples.t[i] - T0), samples.v[i]);
        }
        assert_true(str_eq(buf_as_str(&got), buf_as_str(&text)));
        buf_deinit(&got);
        reader_destroy(r);
        selection_destroy(sel);
        matcher_deinit(&m[0]);
        matcher_deinit(&m[1]);
    }
    buf_deinit(&text);
}

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

/* "trace_id=x" */
static void put_exemplar(struct buf *series, const char *labels, double v, int64_t t)
{
    struct buf exemplar = {0};
    put_labels(&exemplar, labels);
    put_double(&exemplar, 2, v);
    if (t != 0) put_varint_field(&exemplar, 3, (uint64_t)t);
    put_message(series, 3, &exemplar);
}

/* Beside samples, before them, or in a series of their own, as Prometheus sends them; those that are not taken cost
 * nothing in 1.0. */
static void test_exemplars(void **state)
{
    struct fixture *f = *state;
    struct buf body = {0}, series = {0};
    put_exemplar(&series, "trace_id=a", 1, T0);
    put_labels(&series, "__name__=ex,job=x");
    put_sample(&series, T0, 1);
    put_exemplar(&series, "z=1,trace_id=b", 2, T0 + 1);
    put_exemplar(&series, "trace_id=late", 2, T0);
    put_message(&body, 1, &series);
    put_labels(&series, "__name__=ex,job=nobody");
    put_exemplar(&series, "trace_id=a", 1, T0);
    put_message(&body, 1, &series);
    put_labels(&series, "__name__=ex,job=x");
    put_exemplar(&series, "trace_id=c", 3, T0 + 2);
    put_exemplar(&series, "trace_id=c", 3, T0 + 2);
    put_exemplar(&series, "trace_id=\xff", 4, T0 + 3);
    put_message(&body, 1, &series);
    assert_int_equal(send(f, &body), 204);
    assert_int_equal(f->reply.samples_written, 1);
    assert_int_equal(f->reply.exemplars_written, 4);
    assert_string_equal(dump_exemplars(f, "ex"),
                        "ex{job=\"x\"} {trace_id=\"a\"}1@0 {trace_id=\"b\", z=\"1\"}2@1 {trace_id=\"c\"}3@2;");
    put_labels(&series, "__name__=ex,job=x");
    put_bytes(&series, 3, STR("\x0a\x7f"));
    put_message(&body, 1, &series);
    assert_int_equal(send(f, &body), 400);
    assert_reply_has(f, "malformed exemplar");
}

/* More than one batch holds, and labels that take much memory when read. */
static void test_many_exemplars(void **state)
{
    enum { MANY = 70000 };
    struct fixture *f = *state;
    struct buf body = {0}, series = {0};
    put_labels(&series, "__name__=many_ex");
    put_sample(&series, T0, 1);
    for (int i = 0; i < MANY; i++)
        put_exemplar(&series, i % 1000 == 0 ? "a=,b=,c=,d=,e=,f=,g=,h=,i=,j=,k=,l=,m=,n=,o=,p=" : "", i, T0 + i);
    put_message(&body, 1, &series);
    assert_int_equal(send(f, &body), 204);
    assert_int_equal(f->reply.exemplars_written, MANY);
    struct storage_stats stats;
    storage_stats(f->db, &stats);
    assert_int_equal(stats.exemplars.exemplars, 1000);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples),        cmocka_unit_test(test_orders),
        cmocka_unit_test(test_bad_series),     cmocka_unit_test(test_malformed_stores_nothing),
        cmocka_unit_test(test_large_bodies),   cmocka_unit_test(test_histograms),
        cmocka_unit_test(test_bad_histograms), cmocka_unit_test(test_metadata),
        cmocka_unit_test(test_headers),        cmocka_unit_test(test_nothing),
        cmocka_unit_test(test_exemplars),      cmocka_unit_test(test_many_exemplars),
        cmocka_unit_test(test_time_window),    cmocka_unit_test(test_random),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
