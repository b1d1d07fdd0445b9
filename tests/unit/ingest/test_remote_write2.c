/*
 * test_remote_write2.c: remote write 2.0 requests, made by a small encoder here: samples, histograms, start
 * timestamps and metadata arrive; faults cost their own series; the counts of the reply are true.
 */
#include "tests/unit/ingest/fixture.h"

static const char *const V2 = "application/x-protobuf;proto=io.prometheus.write.v2.Request";

struct request2 {
    struct buf symbols, series;
    const char *known[64];
    uint32_t n;
};

static void field_bytes(struct buf *b, uint32_t field, str bytes)
{
    buf_varint(b, field << 3 | 2);
    buf_lenstr(b, bytes);
}

static void field_varint(struct buf *b, uint32_t field, uint64_t v)
{
    buf_varint(b, field << 3);
    buf_varint(b, v);
}

static uint32_t ref(struct request2 *r, const char *text)
{
    for (uint32_t i = 0; i < r->n; i++)
        if (strcmp(r->known[i], text) == 0) return i;
    r->known[r->n] = text;
    field_bytes(&r->symbols, 4, str_of(text));
    return r->n++;
}

static void put_refs(struct request2 *r, struct buf *series, const char *const *labels)
{
    struct buf refs = {0};
    for (size_t i = 0; labels[i]; i++)
        buf_varint(&refs, ref(r, labels[i]));
    field_bytes(series, 1, buf_as_str(&refs));
    buf_deinit(&refs);
}

static void put_sample(struct buf *series, int64_t t, double v, int64_t start)
{
    struct buf sample = {0};
    buf_varint(&sample, 1 << 3 | 1);
    buf_u64(&sample, f64_bits(v));
    field_varint(&sample, 2, (uint64_t)t);
    if (start) field_varint(&sample, 3, (uint64_t)start);
    field_bytes(series, 2, buf_as_str(&sample));
    buf_deinit(&sample);
}

static void close_series(struct request2 *r, struct buf *series)
{
    field_bytes(&r->series, 5, buf_as_str(series));
    buf_deinit(series);
    *series = (struct buf){0};
}

static struct request2 begin(void)
{
    struct request2 r = {0};
    ref(&r, "");
    return r;
}

static int send(struct fixture *f, struct request2 *r)
{
    struct buf body = {0};
    buf_put(&body, r->symbols.data, r->symbols.n);
    buf_put(&body, r->series.data, r->series.n);
    struct ingest_request rq = {.format = INGEST_REMOTE_WRITE,
                                .content_type = str_of(V2),
                                .content_encoding = STR("identity"),
                                .body = buf_as_str(&body)};
    int status = post_full(f, &rq);
    assert_true(f->reply.written_counts);
    buf_deinit(&body);
    buf_deinit(&r->symbols);
    buf_deinit(&r->series);
    return status;
}

static void test_samples_and_counts(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 0, 0, 0);
    for (int round = 0; round < 3; round++) { /* other numbers for the same symbols each time: the same series */
        struct request2 r = begin();
        struct buf s = {0};
        if (round == 1) ref(&r, "something else");
        put_refs(&r, &s, (const char *const[]){"__name__", "up", "job", "a", NULL});
        put_sample(&s, T0 + round * 1000, round, 0);
        close_series(&r, &s);
        put_refs(&r, &s, (const char *const[]){"__name__", "up", "job", "b", NULL});
        put_sample(&s, T0 + round * 1000, 7, T0 - 1000);
        close_series(&r, &s);
        assert_int_equal(send(&f, &r), 204);
        assert_int_equal(f.reply.samples_written, 2);
        assert_int_equal(f.reply.histograms_written, 0);
    }
    struct storage_stats stats;
    storage_stats(f.db, &stats);
    assert_int_equal(stats.head_series, 2);
    assert_int_equal(stats.head_samples, 6);
    fixture_close(&f);
}

static void test_good_part_is_kept(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 0, 0, 0);
    struct request2 r = begin();
    struct buf s = {0};
    put_refs(&r, &s, (const char *const[]){"job", "a", NULL}); /* no name */
    put_sample(&s, T0, 1, 0);
    close_series(&r, &s);
    put_refs(&r, &s, (const char *const[]){"__name__", "fine", NULL});
    put_sample(&s, T0, 2, 0);
    close_series(&r, &s);
    put_refs(&r, &s, (const char *const[]){"__name__", "empty", NULL}); /* neither samples nor histograms */
    close_series(&r, &s);
    buf_varint(&s, 1 << 3 | 2); /* a reference past the symbols */
    buf_lenstr(&s, STR("\x01\x63"));
    put_sample(&s, T0, 3, 0);
    close_series(&r, &s);
    assert_int_equal(send(&f, &r), 400);
    assert_int_equal(f.reply.samples_written, 1);
    assert_non_null(strstr((const char *)f.reply.body.data, "no metric name"));
    assert_non_null(strstr((const char *)f.reply.body.data, "neither samples nor histograms"));
    assert_non_null(strstr((const char *)f.reply.body.data, "point past"));
    fixture_close(&f);
}

static void test_first_symbol_must_be_empty(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 0, 0, 0);
    struct request2 r = {0};
    struct buf s = {0};
    put_refs(&r, &s, (const char *const[]){"__name__", "up", NULL});
    put_sample(&s, T0, 1, 0);
    close_series(&r, &s);
    assert_int_equal(send(&f, &r), 400);
    assert_int_equal(f.reply.samples_written, 0);
    fixture_close(&f);
}

static bool note_metadata(void *arg, const struct metric_metadata *m)
{
    snprintf(arg, 128, "%.*s %.*s %.*s", STR_ARG(m->type), STR_ARG(m->help), STR_ARG(m->unit));
    return true;
}

static void test_histograms_and_metadata(void **state)
{
    (void)state;
    struct fixture f;
    fixture_open(&f, 0, 0, 0);
    struct request2 r = begin();
    struct buf s = {0}, h = {0}, span = {0}, m = {0};
    put_refs(&r, &s, (const char *const[]){"__name__", "h", NULL});
    field_varint(&h, 1, 3); /* count */
    buf_varint(&h, 3 << 3 | 1);
    buf_u64(&h, f64_bits(4.5));
    field_varint(&span, 2, 2);
    field_bytes(&h, 11, buf_as_str(&span));
    field_bytes(&h, 12, STR("\x02\x02")); /* deltas 1, 1: counts 1, 2 */
    field_varint(&h, 15, (uint64_t)T0);
    field_bytes(&s, 3, buf_as_str(&h));
    field_varint(&m, 1, 3);
    field_varint(&m, 3, ref(&r, "What it is."));
    field_varint(&m, 4, ref(&r, "seconds"));
    field_bytes(&s, 5, buf_as_str(&m));
    close_series(&r, &s);
    assert_int_equal(send(&f, &r), 204);
    assert_int_equal(f.reply.histograms_written, 1);
    assert_int_equal(f.reply.samples_written, 0);
    char text[128] = "";
    storage_metadata_each(f.db, STR("h"), note_metadata, text);
    assert_string_equal(text, "histogram What it is. seconds");
    buf_deinit(&h);
    buf_deinit(&span);
    buf_deinit(&m);
    fixture_close(&f);
}

static void put_exemplar(struct request2 *r, struct buf *series, const char *const *labels, double v, int64_t t)
{
    struct buf exemplar = {0};
    put_refs(r, &exemplar, labels);
    buf_varint(&exemplar, 2 << 3 | 1);
    buf_u64(&exemplar, f64_bits(v));
    field_varint(&exemplar, 3, (uint64_t)t);
    field_bytes(series, 4, buf_as_str(&exemplar));
    buf_deinit(&exemplar);
}

/* The count is what is there afterwards; one out of order is an error, one too long or of an unknown series is not. */
static void test_exemplars(void **state)
{
    (void)state;
    static const char *const up[] = {"__name__", "up", NULL}, *const trace[] = {"trace_id", "a", NULL};
    static const char *const none[] = {NULL}, *const nobody[] = {"__name__", "nobody", NULL};
    char long_value[200];
    struct fixture f;
    fixture_open(&f, 0, 0, 0);
    struct request2 r = begin();
    struct buf s = {0};
    put_refs(&r, &s, up);
    put_exemplar(&r, &s, trace, 1, T0);
    put_sample(&s, T0, 1, 0);
    close_series(&r, &s);
    put_refs(&r, &s, up);
    put_exemplar(&r, &s, trace, 1, T0);
    put_exemplar(&r, &s, none, 2, T0 + 1);
    memset(long_value, 'x', 199);
    long_value[199] = 0;
    put_exemplar(&r, &s, (const char *const[]){"t", long_value, NULL}, 3, T0 + 2);
    close_series(&r, &s);
    put_refs(&r, &s, nobody);
    put_exemplar(&r, &s, trace, 1, T0);
    close_series(&r, &s);
    assert_int_equal(send(&f, &r), 204);
    assert_int_equal(f.reply.samples_written, 1);
    assert_int_equal(f.reply.exemplars_written, 3); /* one of them twice */
    r = begin();
    put_refs(&r, &s, up);
    put_exemplar(&r, &s, trace, 1, T0);
    put_exemplar(&r, &s, trace, 1, T0 + 5);
    field_bytes(&s, 4, STR("\x0a\x01\x63"));
    close_series(&r, &s);
    assert_int_equal(send(&f, &r), 400);
    assert_int_equal(f.reply.exemplars_written, 1);
    assert_reply_has(&f, "series up: 1 exemplars are out of order");
    assert_reply_has(&f, "point past the 5 symbols");
    assert_string_equal(dump_exemplars(&f, "up"), "up {trace_id=\"a\"}1@0 {}2@1 {trace_id=\"a\"}1@5;");
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_samples_and_counts),
        cmocka_unit_test(test_good_part_is_kept),
        cmocka_unit_test(test_first_symbol_must_be_empty),
        cmocka_unit_test(test_histograms_and_metadata),
        cmocka_unit_test(test_exemplars),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
