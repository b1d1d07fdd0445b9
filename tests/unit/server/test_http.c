/*
 * Unit http: requests in any pieces, pipelining, where bodies lie, limits, what is refused.
 */
#include "tests/unit/testing.h"

#include "server/http.h"
#include "storage/base/rng.h"

#include <stdlib.h>

#define BODY_MAX 1000

struct one {
    struct http_reader reader;
    struct http_request rq;
};

static int setup(void **state)
{
    http_setup();
    struct one *t = calloc(1, sizeof *t);
    http_reader_init(&t->reader);
    http_reader_begin(&t->reader, &t->rq, BODY_MAX);
    *state = t;
    return 0;
}

static int teardown(void **state)
{
    struct one *t = *state;
    http_request_deinit(&t->rq);
    free(t);
    return 0;
}

/* Feeds all of text in pieces of `piece` bytes; stops at DONE or BAD. Returns the bytes used. */
static size_t feed(struct one *t, const char *text, size_t n, size_t piece, enum http_read_event *last)
{
    size_t at = 0;
    *last = READ_MORE;
    while (at < n && *last != READ_DONE && *last != READ_BAD) {
        size_t used = 0, now = n - at < piece ? n - at : piece;
        char *exact = malloc(now); /* so that ASan sees a read beyond */
        memcpy(exact, text + at, now);
        *last = http_read(&t->reader, exact, now, &used);
        assert_true(used <= now);
        if (*last == READ_DONE && t->rq.body.n > 0 && t->rq.body_buf.n == 0) { /* borrowed: keep it readable */
            buf_put(&t->rq.body_buf, t->rq.body.p, t->rq.body.n);
            t->rq.body = buf_as_str(&t->rq.body_buf);
        }
        free(exact);
        at += used;
    }
    return at;
}

static enum http_read_event feed_all(struct one *t, const char *text)
{
    enum http_read_event last;
    feed(t, text, strlen(text), SIZE_MAX, &last);
    return last;
}

static void assert_str(str got, const char *expected)
{
    assert_int_equal(got.n, strlen(expected));
    if (got.n > 0) assert_memory_equal(got.p, expected, got.n);
}

static void test_request_in_pieces(void **state)
{
    struct one *t = *state;
    static const char text[] = "POST /api/v1/write?a=b HTTP/1.1\r\nHost: x\r\nContent-Type: application/x-protobuf\r\n"
                               "X-Other-Header-That-Is-Longer-Than-Any-Wanted-One: 1\r\nContent-Encoding: snappy\r\n"
                               "Accept-Encoding: gzip\r\nAccept-Encoding: br\r\nContent-Length: 11\r\n\r\nhello world";
    for (size_t piece = 1; piece < sizeof text + 2; piece++) {
        enum http_read_event last;
        http_request_reset(&t->rq);
        http_reader_begin(&t->reader, &t->rq, BODY_MAX);
        assert_int_equal(feed(t, text, sizeof text - 1, piece, &last), sizeof text - 1);
        assert_int_equal(last, READ_DONE);
        assert_int_equal(t->rq.verb, VERB_POST);
        assert_str((str){t->rq.target.p, t->rq.target.n}, "/api/v1/write?a=b");
        assert_str(http_header(&t->rq, HEADER_CONTENT_TYPE), "application/x-protobuf");
        assert_str(http_header(&t->rq, HEADER_CONTENT_ENCODING), "snappy");
        assert_str(http_header(&t->rq, HEADER_ACCEPT_ENCODING), "gzip, br");
        assert_str(http_header(&t->rq, HEADER_ORIGIN), "");
        assert_str(t->rq.body, "hello world");
        assert_true(t->rq.keep_alive && t->rq.http11 && t->rq.has_length && !t->rq.chunked);
    }
}

static void test_pipelined(void **state)
{
    struct one *t = *state;
    static const char text[] =
        "GET /1 HTTP/1.1\r\n\r\nPOST /2 HTTP/1.1\r\nContent-Length: 3\r\n\r\nabcGET /3 HTTP/1.0\r\n\r\n";
    size_t n = sizeof text - 1, at = 0;
    static const char *const targets[] = {"/1", "/2", "/3"}, *const bodies[] = {"", "abc", ""};
    for (int i = 0; i < 3; i++) {
        enum http_read_event last;
        http_request_reset(&t->rq);
        http_reader_begin(&t->reader, &t->rq, BODY_MAX);
        at += feed(t, text + at, n - at, SIZE_MAX, &last);
        assert_int_equal(last, READ_DONE);
        assert_str((str){t->rq.target.p, t->rq.target.n}, targets[i]);
        assert_str(t->rq.body, bodies[i]);
        assert_int_equal(t->rq.keep_alive, i < 2);
    }
    assert_int_equal(at, n);
}

static void test_chunked(void **state)
{
    struct one *t = *state;
    static const char text[] = "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n"
                               "5;ext=1\r\nhello\r\n6\r\n world\r\n0\r\nTrailer: x\r\n\r\n";
    for (size_t piece = 1; piece < sizeof text; piece += 3) {
        enum http_read_event last;
        http_request_reset(&t->rq);
        http_reader_begin(&t->reader, &t->rq, BODY_MAX);
        feed(t, text, sizeof text - 1, piece, &last);
        assert_int_equal(last, READ_DONE);
        assert_true(t->rq.chunked && !t->rq.has_length);
        assert_str(t->rq.body, "hello world");
    }
}

/* A body that comes with its head is not copied. */
static void test_borrowed_body(void **state)
{
    struct one *t = *state;
    static const char text[] = "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello";
    size_t used;
    assert_int_equal(http_read(&t->reader, text, sizeof text - 1, &used), READ_HEAD);
    const char *rest = text + used;
    assert_int_equal(http_read(&t->reader, rest, sizeof text - 1 - used, &used), READ_DONE);
    assert_ptr_equal(t->rq.body.p, text + sizeof text - 1 - 5);
    assert_int_equal(t->rq.body_buf.cap, 0);
}

/* A long body goes from the socket to its place. */
static void test_body_in_place(void **state)
{
    struct one *t = *state;
    enum http_read_event last;
    static const char head[] = "POST / HTTP/1.1\r\nContent-Length: 300000\r\n\r\n0123456789";
    http_reader_begin(&t->reader, &t->rq, 1u << 20);
    feed(t, head, sizeof head - 1, SIZE_MAX, &last);
    size_t have = 10;
    while (last == READ_MORE) {
        size_t room = 0, used;
        uint8_t *tail = http_body_tail(&t->reader, &room);
        if (tail == NULL) { /* little is left: through another buffer */
            char rest[70000];
            size_t n = 300000 - have;
            assert_true(n < sizeof rest);
            for (size_t i = 0; i < n; i++)
                rest[i] = (char)('0' + (have + i) % 10);
            last = http_read(&t->reader, rest, n, &used);
            have += used;
            continue;
        }
        assert_true(room > 0 && have + room <= 300000);
        size_t n = room > 50000 ? 50000 : room; /* the socket had less */
        for (size_t i = 0; i < n; i++)
            tail[i] = (uint8_t)('0' + (have + i) % 10);
        last = http_read(&t->reader, (const char *)tail, n, &used);
        have += used;
    }
    assert_int_equal(last, READ_DONE);
    assert_int_equal(t->rq.body.n, 300000);
    for (size_t i = 0; i < t->rq.body.n; i++)
        assert_int_equal(t->rq.body.p[i], '0' + (int)(i % 10));
}

/* What the client says about the length does not take memory by itself. */
static void test_claimed_length(void **state)
{
    struct one *t = *state;
    http_reader_begin(&t->reader, &t->rq, UINT64_MAX);
    assert_int_equal(feed_all(t, "POST / HTTP/1.1\r\nContent-Length: 60000000000\r\n\r\nx"), READ_MORE);
    size_t room = 0;
    assert_non_null(http_body_tail(&t->reader, &room));
    assert_true(room <= 65536 && t->rq.body_buf.cap < 300000);
}

static void test_body_limit(void **state)
{
    struct one *t = *state;
    char text[2000];
    int n = snprintf(text, sizeof text,
                     "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n3e9\r\n%01001d\r\n0\r\n\r\n", 7);
    enum http_read_event last;
    feed(t, text, (size_t)n, 100, &last);
    assert_int_equal(last, READ_BAD);
    assert_int_equal(t->reader.status, 413);
}

static void test_body_discarded(void **state)
{
    struct one *t = *state;
    static const char head[] = "POST / HTTP/1.1\r\nContent-Length: 900\r\n\r\n";
    size_t used;
    assert_int_equal(http_read(&t->reader, head, sizeof head - 1, &used), READ_HEAD);
    t->reader.discard = true;
    assert_int_equal(http_read(&t->reader, head + used, sizeof head - 1 - used, &used), READ_MORE);
    char body[900] = {0};
    assert_int_equal(http_read(&t->reader, body, sizeof body, &used), READ_DONE);
    assert_int_equal(t->rq.body.n, 0);
    assert_int_equal(t->rq.body_buf.cap, 0);
}

static void test_head_limit(void **state)
{
    struct one *t = *state;
    char *text = malloc(HTTP_HEAD_MAX + 100);
    int n = sprintf(text, "GET /");
    memset(text + n, 'x', HTTP_HEAD_MAX);
    enum http_read_event last;
    feed(t, text, HTTP_HEAD_MAX + 50, 1000, &last);
    free(text);
    assert_int_equal(last, READ_BAD);
    assert_int_equal(t->reader.status, 431);
    assert_true(t->rq.arena.bytes < 8 * HTTP_HEAD_MAX);
}

/* A head that comes byte by byte costs a small multiple of its size. */
static void test_slow_head_memory(void **state)
{
    struct one *t = *state;
    enum http_read_event last;
    char *text = malloc(30000);
    memset(text, 'x', 30000);
    memcpy(text, "GET /", 5);
    feed(t, text, 30000, 1, &last);
    free(text);
    assert_int_equal(last, READ_MORE);
    assert_int_equal(t->rq.target.n, 30000 - 4);
    assert_true(t->rq.arena.bytes < 300000);
}

static void test_refused(void **state)
{
    static const struct {
        const char *text;
        int status;
    } cases[] = {
        {"FOO / HTTP/1.1\r\n\r\n", 501},
        {"GET / HTTP/2.0\r\n\r\n", 505},
        {"GET / HTTP/x\r\n\r\n", 505},
        {"GET /\r\n\r\n", 505},
        {"GET / HTTP/1.1\r\nbad header\r\n\r\n", 400},
        {"\x16\x03\x01\x02", 501},
        {"POST / HTTP/1.1\r\nContent-Length: x\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\nabcd", 400},
        {"POST / HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 400},
        {"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n", 400},
        {"POST / HTTP/1.1\r\nContent-Length: 99999999999999999999999\r\n\r\n", 400},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct one t = {0};
        http_reader_init(&t.reader);
        http_reader_begin(&t.reader, &t.rq, BODY_MAX);
        enum http_read_event last = feed_all(&t, cases[i].text);
        if (last != READ_BAD || t.reader.status != cases[i].status)
            fail_msg("case %zu: event %d status %d", i, last, t.reader.status);
        assert_true(t.reader.reason[0] != '\0');
        http_request_deinit(&t.rq);
    }
}

/* curl --http2 asks for an upgrade with every first request; it is answered as HTTP/1.1. */
static void test_upgrade_is_ignored(void **state)
{
    struct one *t = *state;
    static const char text[] = "POST /q HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\n"
                               "HTTP2-Settings: AAMAAABkAARAAAAAAAIAAAAA\r\nContent-Length: 2\r\n\r\nhi";
    assert_int_equal(feed_all(t, text), READ_DONE);
    assert_str(t->rq.body, "hi");
}

static void test_verbs(void **state)
{
    static const struct {
        const char *text;
        enum http_verb verb;
    } cases[] = {{"GET / HTTP/1.1\r\n\r\n", VERB_GET},         {"HEAD / HTTP/1.1\r\n\r\n", VERB_HEAD},
                 {"PUT / HTTP/1.1\r\n\r\n", VERB_PUT},         {"DELETE / HTTP/1.1\r\n\r\n", VERB_DELETE},
                 {"OPTIONS * HTTP/1.1\r\n\r\n", VERB_OPTIONS}, {"PATCH / HTTP/1.1\r\n\r\n", VERB_OTHER}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct one t = {0};
        http_reader_init(&t.reader);
        http_reader_begin(&t.reader, &t.rq, BODY_MAX);
        assert_int_equal(feed_all(&t, cases[i].text), READ_DONE);
        assert_int_equal(t.rq.verb, cases[i].verb);
        http_request_deinit(&t.rq);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_request_in_pieces, setup, teardown),
        cmocka_unit_test_setup_teardown(test_pipelined, setup, teardown),
        cmocka_unit_test_setup_teardown(test_chunked, setup, teardown),
        cmocka_unit_test_setup_teardown(test_borrowed_body, setup, teardown),
        cmocka_unit_test_setup_teardown(test_body_in_place, setup, teardown),
        cmocka_unit_test_setup_teardown(test_claimed_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_body_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_body_discarded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_head_limit, setup, teardown),
        cmocka_unit_test_setup_teardown(test_slow_head_memory, setup, teardown),
        cmocka_unit_test_setup_teardown(test_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_upgrade_is_ignored, setup, teardown),
        cmocka_unit_test_setup_teardown(test_verbs, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
