/*
 * test_read.c: remote read from request bytes to answer bytes: both answers say the same, and what was stored; ranges,
 * hints, matchers, order, several queries; what is refused; limits.
 */
#include "tests/unit/query/query_db.h"
#include "tests/unit/query/read_client.h"

#include "query/read_request.h"
#include "storage/base/limits.h"

static struct query_db q;
static struct told told[2];

static struct hist hist_of(uint32_t i, bool is_float)
{
    static struct hist_span spans[2];
    static double counts[3];
    spans[0] = (struct hist_span){-1, 2};
    spans[1] = (struct hist_span){3, 1};
    counts[0] = i;
    counts[1] = 2 * i + 1;
    counts[2] = is_float ? 0.25 : 7;
    struct hist h = {.is_float = is_float,
                     .schema = 3,
                     .zero_threshold = 0x1p-128,
                     .zero_count = 1,
                     .sum = i * 1.5,
                     .n_positive_spans = 2,
                     .n_positive = 3,
                     .positive_spans = spans,
                     .positive = counts};
    h.count = counts[0] + counts[1] + counts[2] + 1;
    return h;
}

/* Integers, floats and stale markers of both, from 0 on, a minute apart; every seventh is a plain float. */
static void load_hists(const char *series, uint32_t n)
{
    struct arena a = {0};
    int64_t *t = arena_zalloc(&a, n * sizeof *t);
    double *v = arena_zalloc(&a, n * sizeof *v);
    str *blobs = arena_zalloc(&a, n * sizeof *blobs);
    for (uint32_t i = 0; i < n; i++) {
        struct hist h = hist_of(i % 50, i > n / 2); /* with resets */
        struct buf blob = {0};
        if (i % 31 == 30) h = (struct hist){.is_float = h.is_float, .sum = f64_from_bits(STALE_NAN_BITS)};
        t[i] = (int64_t)i * 60000;
        v[i] = i;
        if (i % 7 == 6) continue;
        hist_encode(&h, &blob);
        blobs[i] = (str){arena_dup(&a, blob.data, blob.n), blob.n};
        v[i] = h.sum;
        buf_deinit(&blob);
    }
    query_db_append(&q, series, t, v, blobs, n);
    arena_deinit(&a);
}

static int setup(void **state)
{
    (void)state;
    query_db_open(&q, NULL);
    query_db_load(&q, 1000, "up{job=\"a\",i=\"1\"}", "1 _ 2 stale -0.0 NaN 3");
    query_db_load(&q, 1000, "up{job=\"a\",i=\"2\",zone=\"x\"}", "5 6");
    query_db_load(&q, 1000, "up{job=\"b\",i=\"1\"}", "7");
    query_db_load(&q, 1000, "down{job=\"b\",Z=\"1\"}", "8");
    query_db_load(&q, 15000, "long{n=\"1\"}", "0+1.5x200 4+0.0x50 0+3x100");
    query_db_ok(storage_flush(q.db));
    query_db_load(&q, 1000, "up{job=\"b\",i=\"1\"}", "_ 9 10");
    load_hists("hist{n=\"1\"}", 300);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    told_clear(&told[0]);
    told_clear(&told[1]);
    query_db_close(&q);
    return 0;
}

/* Asks for both answers, which must be the same text; *a is used up. */
static const char *read_both(struct ask *a)
{
    for (int type = 0; type < 2; type++) {
        struct ask copy = {.query = a->query};
        struct buf out = {0};
        err e;
        buf_str(&copy.message, buf_as_str(&a->message));
        struct read_request *rq = ask_done(&copy, type, &e);
        query_db_ok(e);
        assert_int_equal(query_read_type(rq), type);
        told_clear(&told[type]);
        if (type == 0) {
            query_db_ok(query_read_samples(q.engine, rq, NULL, &out));
            told_samples(&told[0], buf_as_str(&out));
        } else {
            query_db_ok(query_read_chunks(q.engine, rq, NULL, told_frame, &told[1]));
        }
        buf_u8(&told[type].text, 0);
        buf_deinit(&out);
        query_read_destroy(rq);
    }
    buf_deinit(&a->message);
    *a = (struct ask){0};
    assert_string_equal((char *)told[0].text.data, (char *)told[1].text.data);
    return (const char *)told[0].text.data;
}

static void expect_read(struct ask *a, const char *want)
{
    assert_string_equal(read_both(a), want);
}

static void test_values(void **state)
{
    (void)state;
    struct ask a = {0};
    ask_query(&a, 0, 10000);
    ask_matcher(&a, MATCH_EQ, "__name__", "up");
    ask_matcher(&a, MATCH_EQ, "job", "a");
    ask_matcher(&a, MATCH_NE, "i", "2");
    expect_read(&a, "query 0\nup{i=\"1\", job=\"a\"}\n0 3ff0000000000000\n2000 4000000000000000\n"
                    "3000 7ff0000000000002\n4000 8000000000000000\n5000 7ff8000000000001\n6000 4008000000000000\n");
}

static void test_order_and_range(void **state)
{
    (void)state;
    struct ask a = {0};
    ask_query(&a, 1000, 1500);
    ask_matcher(&a, MATCH_RE, "__name__", "up|down");
    ask_query(&a, 5, 4); /* empty */
    ask_matcher(&a, MATCH_RE, "__name__", ".+");
    ask_query(&a, INT64_MIN, INT64_MAX);
    ask_matcher(&a, MATCH_NRE, "__name__", "up|long|hist");
    ask_query(&a, 0, 0);
    ask_matcher(&a, MATCH_NE, "job", "a");
    ask_matcher(&a, MATCH_NRE, "__name__", "long|hist");
    expect_read(&a,
                "query 0\nup{i=\"1\", job=\"b\"}\n1000 4022000000000000\n"
                "up{i=\"2\", job=\"a\", zone=\"x\"}\n1000 4018000000000000\nquery 1\n"
                "query 2\ndown{Z=\"1\", job=\"b\"}\n0 4020000000000000\n"
                "query 3\ndown{Z=\"1\", job=\"b\"}\n0 4020000000000000\nup{i=\"1\", job=\"b\"}\n0 401c000000000000\n");
}

static void test_hints(void **state)
{
    (void)state;
    struct ask a = {0};
    ask_query(&a, 0, 6000);
    ask_matcher(&a, MATCH_EQ, "zone", "x");
    ask_hints(&a, 1, 100000); /* no more than the query's range */
    ask_query(&a, 1000, 6000);
    ask_matcher(&a, MATCH_EQ, "zone", "x");
    ask_hints(&a, 0, 0); /* none */
    ask_query(&a, 1000, 6000);
    ask_matcher(&a, MATCH_EQ, "zone", "x");
    ask_hints(&a, -5, 6);
    expect_read(&a, "query 0\nup{i=\"2\", job=\"a\", zone=\"x\"}\n1000 4018000000000000\n"
                    "query 1\nup{i=\"2\", job=\"a\", zone=\"x\"}\n1000 4018000000000000\n");
}

static void test_long_series(void **state)
{
    (void)state;
    struct ask a = {0};
    ask_query(&a, 0, LIMIT_TIME_MAX);
    ask_matcher(&a, MATCH_EQ, "__name__", "long");
    const char *text = read_both(&a);
    size_t lines = 0;
    for (const char *p = text; *p; p++)
        lines += *p == '\n';
    assert_int_equal(lines, 2 + 201 + 51 + 101);
    assert_int_equal(told[1].chunks, 3);
    assert_int_equal(told[1].frames, 1);
}

static void test_histograms(void **state)
{
    (void)state;
    struct ask a = {0};
    ask_query(&a, 0, LIMIT_TIME_MAX);
    ask_matcher(&a, MATCH_EQ, "__name__", "hist");
    const char *text = read_both(&a);
    size_t hists = 0;
    for (const char *p = text; (p = strstr(p, " hist ")) != NULL; p++)
        hists++;
    assert_int_equal(hists, 300 - 42);
    assert_true(told[1].chunks > 80);
}

static err many_labels(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    (void)arg;
    (void)i;
    char *value = arena_alloc(a, 60000);
    memset(value, 'x', 60000);
    out->n = 3;
    out->v = arena_alloc(a, 3 * sizeof *out->v);
    out->v[0] = (struct label){STR("__name__"), STR("big")};
    out->v[1] = (struct label){STR("a"), {value, 60000}};
    out->v[2] = (struct label){STR("b"), {value, 60000}};
    return NULL;
}

/* A series whose labels and histograms are as big as they may be: frames keep their bound. */
static void test_frames_are_bounded(void **state)
{
    (void)state;
    enum { N = 40, BUCKETS = 7800 };
    struct arena a = {0};
    int64_t t[N];
    double v[N], *counts = arena_zalloc(&a, BUCKETS * sizeof *counts);
    str blobs[N];
    struct hist_span span = {0, BUCKETS};
    for (int i = 0; i < N; i++) {
        struct buf blob = {0};
        double sum = 0;
        for (int k = 0; k < BUCKETS; k++)
            sum += counts[k] = (double)((i * 31 + k * 17) % 101) * 1e-7;
        struct hist h = {.is_float = true,
                         .count = sum,
                         .sum = i,
                         .n_positive_spans = 1,
                         .n_positive = BUCKETS,
                         .positive_spans = &span,
                         .positive = counts};
        hist_encode(&h, &blob);
        t[i] = i;
        v[i] = i;
        blobs[i] = (str){arena_dup(&a, blob.data, blob.n), blob.n};
        buf_deinit(&blob);
    }
    struct batch_series row = {.raw = "big", .raw_bytes = 3, .alias = {.hi = 1, .lo = 2}, .n = N};
    struct batch b = {
        .series = &row, .n_series = 1, .t = t, .v = v, .hist = blobs, .n_samples = N, .resolve = many_labels};
    struct append_result r;
    query_db_ok(storage_append(q.db, &b, &r));
    assert_int_equal(r.accepted, N);
    struct ask ask = {0};
    ask_query(&ask, 0, 100);
    ask_matcher(&ask, MATCH_EQ, "__name__", "big");
    read_both(&ask);
    assert_true(told[1].frames > 1);
    assert_true(told[1].longest_frame <= 1u << 20);
    arena_deinit(&a);
}

/* ---- refusals ------------------------------------------------------------------------------------------------- */

static void refused(struct ask *a, int type, const char *part)
{
    err e;
    assert_null(ask_done(a, type, &e));
    assert_int_equal(err_code(e), ERR_INVALID);
    if (strstr(err_message(e), part) == NULL) fail_msg("%s, expected ...%s...", err_message(e), part);
    err_free(e);
}

static void test_refusals(void **state)
{
    (void)state;
    struct ask a = {0};
    err e;
    struct read_request *rq = NULL;
    e = query_read_parse(STR("\x05\x08"), &rq);
    assert_err(e, ERR_INVALID);
    buf_str(&a.message, STR("\x0a\x05\x01"));
    refused(&a, -1, "malformed ReadRequest");
    ask_query(&a, 0, 1);
    refused(&a, -1, "query without matchers");
    ask_query(&a, 0, 1);
    ask_matcher(&a, 4, "a", "b");
    refused(&a, 0, "unknown matcher type 4");
    ask_query(&a, 0, 1);
    ask_matcher(&a, MATCH_EQ, "", "b");
    refused(&a, 0, "label name is empty");
    ask_query(&a, 0, 1);
    ask_matcher(&a, MATCH_EQ, "a", "\xff");
    refused(&a, 0, "not UTF-8");
    ask_query(&a, 0, 1);
    ask_matcher(&a, MATCH_RE, "job", "(");
    refused(&a, 0, "matcher of \"job\"");
    ask_query(&a, 0, 1);
    ask_matcher(&a, MATCH_EQ, "a", "b");
    refused(&a, 7, "none of the response types");
    ask_query(&a, 0, 1);
    for (int i = 0; i <= READ_MATCHERS_MAX; i++)
        ask_matcher(&a, MATCH_EQ, "a", "b");
    refused(&a, 0, "more than 4096 matchers");
    ask_query(&a, 0, 1);
    for (int i = 0; i <= READ_REGEXES_MAX; i++)
        ask_matcher(&a, MATCH_NRE, "a", "b");
    refused(&a, 0, "more than 1024 regular expressions");
    for (int i = 0; i <= READ_QUERIES_MAX; i++)
        ask_query(&a, 0, 1);
    refused(&a, 0, "1025 queries in one request");
}

static void test_types(void **state)
{
    (void)state;
    static const struct {
        str types; /* as bytes of the message */
        enum query_read_type want;
    } cases[] = {
        {{"", 0}, QUERY_READ_SAMPLES},
        {{"\x10\x01", 2}, QUERY_READ_CHUNKS},
        {{"\x12\x02\x01\x00", 4}, QUERY_READ_CHUNKS}, /* packed: the first that is known */
        {{"\x12\x03\x05\x00\x01", 5}, QUERY_READ_SAMPLES},
        {{"\x10\x09\x10\x01\x10\x00", 6}, QUERY_READ_CHUNKS},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct ask a = {0};
        err e;
        buf_str(&a.message, cases[i].types);
        struct read_request *rq = ask_done(&a, -1, &e);
        query_db_ok(e);
        assert_int_equal(query_read_type(rq), cases[i].want);
        query_read_destroy(rq);
    }
    struct ask a = {0};
    read_both(&a); /* no queries: empty answers */
    assert_int_equal(told[0].text.n, 1);
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

static struct read_request *ask_for_all(void)
{
    struct ask a = {0};
    err e;
    ask_query(&a, 0, LIMIT_TIME_MAX);
    ask_matcher(&a, MATCH_RE, "__name__", "long|up|hist");
    struct read_request *rq = ask_done(&a, 0, &e);
    query_db_ok(e);
    return rq;
}

static bool nobody_reads(void *arg, str bytes)
{
    ++*(int *)arg;
    return bytes.n == 0;
}

static bool takes_it(void *arg, str bytes)
{
    *(size_t *)arg += bytes.n;
    return true;
}

static void test_limits(void **state)
{
    (void)state;
    struct read_request *rq = ask_for_all();
    struct buf out = {0};
    atomic_bool canceled = true;
    int frames = 0;
    size_t bytes = 0;
    assert_err(query_read_samples(q.engine, rq, &canceled, &out), ERR_CANCELED);
    assert_err(query_read_chunks(q.engine, rq, &canceled, takes_it, &bytes), ERR_CANCELED);
    assert_err(query_read_chunks(q.engine, rq, NULL, nobody_reads, &frames), ERR_CANCELED);
    assert_int_equal(frames, 1);
    struct query_engine *few = query_create(&(struct query_options){.db = q.db, .max_samples = 400});
    assert_err(query_read_samples(few, rq, NULL, &out), ERR_LIMIT);
    query_db_ok(query_read_chunks(few, rq, NULL, takes_it, &bytes)); /* holds none of them */
    query_destroy(few);
    struct query_engine *small = query_create(&(struct query_options){.db = q.db, .max_memory = 10000});
    assert_err(query_read_samples(small, rq, NULL, &out), ERR_LIMIT);
    query_db_ok(query_read_chunks(small, rq, NULL, takes_it, &bytes));
    query_destroy(small);
    assert_int_equal(out.n, 0);
    buf_deinit(&out);
    query_read_destroy(rq);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_values),     cmocka_unit_test(test_order_and_range),
        cmocka_unit_test(test_hints),      cmocka_unit_test(test_long_series),
        cmocka_unit_test(test_histograms), cmocka_unit_test(test_frames_are_bounded),
        cmocka_unit_test(test_refusals),   cmocka_unit_test(test_types),
        cmocka_unit_test(test_limits),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
