/* Unit answer: envelopes, error codes, gzip and when it is used. */
#include "tests/unit/testing.h"

#include "server/answer.h"
#include "server/gzip.h"

#include <zlib.h>

static void assert_body(const struct answer *a, const char *expected)
{
    if (a->body.n != strlen(expected) || memcmp(a->body.data, expected, a->body.n) != 0)
        fail_msg("got %.*s", (int)a->body.n, (const char *)a->body.data);
}

static void test_envelope(void **state)
{
    (void)state;
    struct answer a = {0};
    char *warnings[] = {"first", "a \"quoted\" one"}, *infos[] = {"info"};
    struct query_notes notes = {.warnings = warnings, .n_warnings = 2, .infos = infos, .n_infos = 1};
    answer_data_begin(&a);
    buf_str(&a.body, STR("[1]"));
    answer_data_end(&a, &notes);
    assert_int_equal(a.status, 200);
    assert_body(&a, "{\"status\":\"success\",\"data\":[1],\"warnings\":[\"first\",\"a \\\"quoted\\\" one\"],"
                    "\"infos\":[\"info\"]}\n");
    answer_data_begin(&a);
    buf_str(&a.body, STR("[]"));
    answer_data_end(&a, NULL);
    assert_body(&a, "{\"status\":\"success\",\"data\":[]}\n");
    answer_deinit(&a);
}

/* An error replaces what was written before it. */
static void test_errors(void **state)
{
    static const struct {
        enum err_code code;
        int status;
        const char *type;
        bool retry;
    } cases[] = {{ERR_INVALID, 400, "bad_data", false},     {ERR_LIMIT, 422, "execution", false},
                 {ERR_TIMEOUT, 503, "timeout", false},      {ERR_CANCELED, 499, "canceled", false},
                 {ERR_READ_ONLY, 503, "unavailable", true}, {ERR_CORRUPT, 500, "internal", false},
                 {ERR_TOO_LARGE, 413, "too_large", false}};
    (void)state;
    struct answer a = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char expected[128];
        answer_data_begin(&a);
        answer_err(&a, err_new(cases[i].code, "it's \"%d\"", 5));
        assert_int_equal(a.status, cases[i].status);
        assert_int_equal(a.retry_after_s > 0, cases[i].retry);
        snprintf(expected, sizeof expected,
                 "{\"status\":\"error\",\"errorType\":\"%s\",\"error\":\"it's \\\"5\\\"\"}\n", cases[i].type);
        assert_body(&a, expected);
    }
    answer_deinit(&a);
}

static void fill(struct answer *a, size_t n)
{
    answer_text(a, 200, "");
    for (size_t i = 0; i < n; i++)
        buf_u8(&a->body, (uint8_t)('a' + i * i % 17));
}

static void test_gzip(void **state)
{
    (void)state;
    struct answer a = {0};
    fill(&a, 100000);
    answer_compress(&a, STR("deflate, gzip;q=0.5"));
    assert_true(a.gzipped);
    assert_true(a.body.n < 50000);
    unsigned char *plain = malloc(100001);
    z_stream z = {.next_in = a.body.data, .avail_in = (unsigned)a.body.n, .next_out = plain, .avail_out = 100001};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, 100000);
    for (size_t i = 0; i < 100000; i++)
        assert_int_equal(plain[i], 'a' + i * i % 17);
    inflateEnd(&z);
    free(plain);
    answer_deinit(&a);
}

static void test_gzip_not_asked(void **state)
{
    static const struct {
        const char *header;
        size_t n;
        bool gzipped;
    } cases[] = {{"", 5000, false},
                 {"br", 5000, false},
                 {"gzip;q=0", 5000, false},
                 {"gzipped", 5000, false},
                 {"gzip; q=0.0", 5000, false},
                 {"gzip", 100, false},
                 {"br,GZIP", 5000, true},
                 {"*", 5000, true},
                 {"gzip;q=0.001", 5000, true},
                 {"identity , gzip", 5000, true}};
    (void)state;
    struct answer a = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        fill(&a, cases[i].n);
        answer_compress(&a, str_of(cases[i].header));
        if (a.gzipped != cases[i].gzipped) fail_msg("\"%s\"", cases[i].header);
    }
    answer_deinit(&a);
}

static void test_gzip_expand(void **state)
{
    (void)state;
    struct answer a = {0};
    struct buf packed = {0}, plain = {0};
    fill(&a, 50000);
    assert_true(gzip_whole(&a.body, &packed));
    assert_true(gzip_expand(buf_as_str(&packed), 50000, &plain));
    assert_int_equal(plain.n, 50000);
    assert_memory_equal(plain.data, a.body.data, 50000);
    buf_clear(&plain);
    assert_false(gzip_expand(buf_as_str(&packed), 49999, &plain));
    buf_clear(&plain);
    assert_false(gzip_expand(buf_as_str(&packed), 50001, &plain));
    buf_clear(&plain);
    packed.data[packed.n - 5] ^= 1; /* the checksum */
    assert_false(gzip_expand(buf_as_str(&packed), 50000, &plain));
    buf_deinit(&plain);
    buf_deinit(&packed);
    answer_deinit(&a);
}

/* ---- piece by piece */

struct sink {
    struct buf all;
    size_t max; /* says stop from here on */
};

static bool sink_emit(void *arg, str bytes)
{
    struct sink *s = arg;
    buf_str(&s->all, bytes);
    return s->all.n < s->max;
}

static void test_gzip_pieces(void **state)
{
    (void)state;
    struct sink sink = {.max = SIZE_MAX};
    struct gzip *g = gzip_create(sink_emit, &sink);
    size_t total = 0;
    char *text = malloc(100000);
    for (size_t i = 0; i < 100000; i++)
        text[i] = (char)(i * 2654435761u >> 20);
    static const size_t sizes[] = {1, 0, 100, 50000, 100000, 7};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        assert_true(gzip_write(g, (str){text, sizes[i]}));
        total += sizes[i];
    }
    assert_true(gzip_finish(g));
    gzip_destroy(g);
    unsigned char *plain = malloc(total);
    z_stream z = {
        .next_in = sink.all.data, .avail_in = (unsigned)sink.all.n, .next_out = plain, .avail_out = (unsigned)total};
    assert_int_equal(inflateInit2(&z, 15 + 16), Z_OK);
    assert_int_equal(inflate(&z, Z_FINISH), Z_STREAM_END);
    assert_int_equal(z.total_out, total);
    size_t at = 0;
    for (size_t i = 0; i < ARRAY_LEN(sizes); at += sizes[i++])
        assert_memory_equal(plain + at, text, sizes[i]);
    inflateEnd(&z);
    free(plain);
    free(text);
    buf_deinit(&sink.all);
}

static void test_gzip_stopped(void **state)
{
    (void)state;
    struct sink sink = {.max = 1000};
    struct gzip *g = gzip_create(sink_emit, &sink);
    uint64_t noise = 88172645463325252u;
    bool go_on = true;
    for (size_t i = 0; i < 1000 && go_on; i++) {
        char text[4096];
        for (size_t k = 0; k < sizeof text; k++) {
            noise ^= noise << 13, noise ^= noise >> 7, noise ^= noise << 17;
            text[k] = (char)noise;
        }
        go_on = gzip_write(g, (str){text, sizeof text});
    }
    assert_false(go_on);
    size_t had = sink.all.n;
    assert_false(gzip_finish(g));
    assert_int_equal(sink.all.n, had);
    gzip_destroy(g);
    buf_deinit(&sink.all);
}

static void test_large_buffers_are_given_back(void **state)
{
    (void)state;
    struct answer a = {0};
    fill(&a, 1000000);
    answer_reset(&a);
    assert_int_equal(a.body.cap, 0);
    fill(&a, 1000);
    size_t cap = a.body.cap;
    answer_reset(&a);
    assert_int_equal(a.body.cap, cap);
    answer_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope),     cmocka_unit_test(test_errors),
        cmocka_unit_test(test_gzip),         cmocka_unit_test(test_gzip_not_asked),
        cmocka_unit_test(test_gzip_expand),  cmocka_unit_test(test_gzip_pieces),
        cmocka_unit_test(test_gzip_stopped), cmocka_unit_test(test_large_buffers_are_given_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
