/* Units url and client_reader: addresses people write, and HTTP answers in any pieces. */
#include "tests/unit/testing.h"

#include "server/client.h"
#include "server/url.h"

static void test_urls(void **state)
{
    static const struct {
        const char *text, *host, *port, *prefix, *userinfo, *shown;
    } cases[] = {
        {"http://localhost:8428", "localhost", "8428", "", NULL, "http://localhost:8428"},
        {"localhost:8428", "localhost", "8428", "", NULL, "http://localhost:8428"},
        {"localhost", "localhost", "80", "", NULL, "http://localhost:80"},
        {"http://h/", "h", "80", "", NULL, "http://h:80"},
        {"http://h:1/a/b//", "h", "1", "/a/b", NULL, "http://h:1/a/b"},
        {"http://u:p@h:1", "h", "1", "", "u:p", "http://h:1"},
        {"http://u%40x:p%3a%2f@h", "h", "80", "", "u@x:p:/", "http://h:80"},
        {"u:a@b@h:9", "h", "9", "", "u:a@b", "http://h:9"},
        {"http://[::1]:9090/x", "::1", "9090", "/x", NULL, "http://[::1]:9090/x"},
        {"[fe80::1]", "fe80::1", "80", "", NULL, "http://[fe80::1]:80"},
    };
    (void)state;
    struct arena a = {0};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct url u;
        assert_ok(url_parse(str_of(cases[i].text), &a, &u));
        assert_string_equal(u.host, cases[i].host);
        assert_string_equal(u.port, cases[i].port);
        assert_string_equal(u.prefix, cases[i].prefix);
        assert_string_equal(u.shown, cases[i].shown);
        if (cases[i].userinfo == NULL)
            assert_null(u.userinfo);
        else
            assert_string_equal(u.userinfo, cases[i].userinfo);
    }
    arena_deinit(&a);
}

static void test_bad_urls(void **state)
{
    static const char *const bad[] = {"",           "http://",       "http://:80",  "ftp://h",     "http://h:",
                                      "http://h:0", "http://h:x",    "http://h:+1", "h:65536",     "http://h:1:2",
                                      "http://[::", "http://[::1]x", "h/a?b",       "h#x",         "http://a b",
                                      "h\r\nX: y",  "http://u%4@h",  "http://u@",   "http://[]:1", "h:8428x"};
    (void)state;
    struct arena a = {0};
    struct url u;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err e = url_parse(str_of(bad[i]), &a, &u);
        if (e == NULL) fail_msg("\"%s\" is taken", bad[i]);
        assert_err(e, ERR_INVALID);
    }
    assert_err(url_parse(STR("https://h"), &a, &u), ERR_UNSUPPORTED);
    err e = url_parse(STR("http://user:secret@h:x"), &a, &u);
    assert_null(strstr(err_message(e), "secret"));
    err_free(e);
    arena_deinit(&a);
}

static void test_escape(void **state)
{
    (void)state;
    struct buf out = {0};
    url_escape(&out, STR("aZ09-_.~ /+&=\xc3\xa9%"));
    buf_u8(&out, '\0');
    assert_string_equal((char *)out.data, "aZ09-_.~%20%2F%2B%26%3D%C3%A9%25");
    buf_deinit(&out);
}

/* ---- answers ------------------------------------------------------------------------------------------------- */

static err read_in_pieces(const char *text, size_t piece, bool end, struct client_answer *a, bool *done)
{
    struct client_reader *r = client_reader_create();
    size_t n = strlen(text);
    err e = NULL;
    client_reader_begin(r, a, NULL, NULL);
    *done = false;
    for (size_t at = 0; at < n && e == NULL && !*done; at += piece)
        e = client_reader_feed(r, text + at, n - at < piece ? n - at : piece, done);
    if (end && e == NULL && !*done) e = client_reader_feed(r, "", 0, done);
    client_reader_destroy(r);
    return e;
}

static void test_answers(void **state)
{
    static const struct {
        const char *text, *body;
        int status, retry_after;
        bool end; /* the connection's end is part of it */
    } cases[] = {
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello", "hello", 200, -1, false},
        {"HTTP/1.1 204 No Content\r\n\r\n", "", 204, -1, false},
        {"HTTP/1.1 503 x\r\nretry-after:  7\r\nContent-Length: 1\r\n\r\nx", "x", 503, 7, false},
        {"HTTP/1.1 503 x\r\nRetry-After: -7\r\nContent-Length: 0\r\n\r\n", "", 503, -1, false},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n", "abcde", 200, -1,
         false},
        {"HTTP/1.0 200 OK\r\n\r\nto the end", "to the end", 200, -1, true},
        {"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok", "ok", 200, -1, false},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t piece = 1; piece < 40; piece += 3) {
            struct client_answer a = {.body.max = 1000};
            bool done;
            assert_ok(read_in_pieces(cases[i].text, piece, cases[i].end, &a, &done));
            assert_true(done);
            assert_int_equal(a.status, cases[i].status);
            assert_int_equal(a.retry_after_s, cases[i].retry_after);
            assert_true(str_eq(buf_as_str(&a.body), str_of(cases[i].body)));
            client_answer_deinit(&a);
        }
}

static void test_bad_answers(void **state)
{
    static const struct {
        const char *text;
        enum err_code code;
    } cases[] = {
        {"SSH-2.0-OpenSSH\r\n", ERR_IO},
        {"", ERR_IO},
        {"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhell", ERR_IO},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n", ERR_IO},
        {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nabc\r\n", ERR_IO},
        {"HTTP/1.1 200 OK\r\nContent-Length: 40\r\n\r\n0123456789012345678901234567890123456789", ERR_TOO_LARGE},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++)
        for (size_t piece = 1; piece < 60; piece += 7) {
            struct client_answer a = {.body.max = 30};
            bool done;
            assert_err(read_in_pieces(cases[i].text, piece, true, &a, &done), cases[i].code);
            client_answer_deinit(&a);
        }
}

static err refuse(void *arg, str piece)
{
    *(size_t *)arg += piece.n;
    return *(size_t *)arg > 3 ? err_new(ERR_NO_SPACE, "full") : NULL;
}

static void test_body_function(void **state)
{
    (void)state;
    static const char text[] = "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello";
    static const char bad[] = "HTTP/1.1 400 x\r\nContent-Length: 5\r\n\r\nhello";
    struct client_reader *r = client_reader_create();
    struct client_answer a = {.body.max = 100};
    bool done;
    size_t n = 0;
    client_reader_begin(r, &a, refuse, &n);
    assert_err(client_reader_feed(r, text, sizeof text - 1, &done), ERR_NO_SPACE);
    assert_int_equal(a.body.n, 0);
    n = 0;
    client_reader_begin(r, &a, refuse, &n);
    assert_ok(client_reader_feed(r, bad, sizeof bad - 1, &done));
    assert_true(done && client_reader_reusable(r));
    assert_int_equal(n, 0); /* the body of an error is kept, not passed on */
    assert_int_equal(a.body.n, 5);
    client_answer_deinit(&a);
    client_reader_destroy(r);
}

static void test_tokens(void **state)
{
    (void)state;
    struct client *c;
    assert_err(client_create(&(struct client_options){.url = "h", .bearer = "a\r\nX: y"}, &c), ERR_INVALID);
    assert_ok(client_create(&(struct client_options){.url = "h", .bearer = "abc", .timeout_ms = 10}, &c));
    assert_string_equal(client_url(c), "http://h:80");
    client_destroy(c);
    client_destroy(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_urls),    cmocka_unit_test(test_bad_urls),    cmocka_unit_test(test_escape),
        cmocka_unit_test(test_answers), cmocka_unit_test(test_bad_answers), cmocka_unit_test(test_body_function),
        cmocka_unit_test(test_tokens),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
