/* Unit h_page: the page's files by name, coding and tag. */
#include "tests/unit/testing.h"

#include "server/handlers.h"
#include "server/page_assets.h"

struct world {
    struct config config;
    struct server server;
    struct exchange *x;
};

static int setup(void **state)
{
    struct world *w = calloc(1, sizeof *w);
    char *argv[] = {"varve"}, *rest[1];
    int n_rest;
    assert_ok(config_load(&w->config, 1, argv, NULL, rest, &n_rest));
    w->server.config = &w->config;
    w->x = exchange_create(&w->server, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    exchange_destroy(w->x);
    free(w);
    return 0;
}

static void set(struct world *w, enum http_header h, const char *text)
{
    w->x->in.headers[h] = (struct http_text){(char *)text, (uint32_t)strlen(text), 0};
}

/* Asks for a file; "" is the page. NULL: the header is not sent. */
static void ask(struct world *w, const char *name, const char *accept, const char *tag)
{
    exchange_reset(w->x);
    if (accept != NULL) set(w, HEADER_ACCEPT_ENCODING, accept);
    if (tag != NULL) set(w, HEADER_IF_NONE_MATCH, tag);
    w->x->path_arg = str_of(name);
    if (name[0] == '\0')
        h_page_index(&w->server, w->x);
    else
        h_page_asset(&w->server, w->x);
}

static void test_codings(void **state)
{
    struct world *w = *state;
    const struct answer *a = &w->x->out;
    assert_true(page_assets_n >= 4);
    assert_string_equal(page_assets[0].name, "");
    for (size_t i = 0; i < page_assets_n; i++) {
        const struct page_asset *p = &page_assets[i];
        ask(w, p->name, "gzip", NULL);
        assert_int_equal(a->status, 200);
        assert_true(a->gzipped);
        assert_int_equal(a->body.n, p->gzip_n);
        assert_string_equal(a->content_type, p->type);
        assert_true(p->gzip[4] == 0 && p->gzip[5] == 0 && p->gzip[6] == 0 && p->gzip[7] == 0); /* no time */
        ask(w, p->name, i % 2 == 0 ? NULL : "br, gzip;q=0", NULL);
        assert_int_equal(a->status, 200);
        assert_false(a->gzipped);
        assert_int_equal(a->body.n, p->n);
    }
    w->config.compression = COMPRESSION_OFF;
    ask(w, "", "gzip", NULL);
    assert_false(a->gzipped);
}

static void test_tags(void **state)
{
    struct world *w = *state;
    const struct answer *a = &w->x->out;
    char list[128];
    const char *etag = page_assets[1].etag;
    assert_true(strncmp(etag, "W/\"", 3) == 0);
    snprintf(list, sizeof list, "\"a\" , %s", etag + 2); /* compared weakly */
    const char *same[] = {etag, etag + 2, "*", list}, *other[] = {"", "W/\"\"", "\"", "W/\"000000000000\"", "**"};
    for (size_t i = 0; i < ARRAY_LEN(same); i++) {
        ask(w, page_assets[1].name, "gzip", same[i]);
        if (a->status != 304 || a->body.n != 0 || a->gzipped || a->etag != etag) fail_msg("%s", same[i]);
    }
    for (size_t i = 0; i < ARRAY_LEN(other); i++) {
        ask(w, page_assets[1].name, "gzip", other[i]);
        if (a->status != 200 || a->body.n == 0) fail_msg("%s", other[i]);
    }
}

static void test_headers(void **state)
{
    struct world *w = *state;
    const struct answer *a = &w->x->out;
    ask(w, "", "gzip", NULL);
    assert_non_null(strstr(a->headers, "Content-Security-Policy: default-src 'none'; script-src 'self'"));
    assert_null(strstr(a->headers, "unsafe"));
    assert_non_null(strstr(a->headers, "Cache-Control: no-cache\r\n"));
    ask(w, page_assets[1].name, "gzip", NULL);
    assert_non_null(strstr(a->headers, "immutable\r\n"));
}

static void test_unknown(void **state)
{
    struct world *w = *state;
    static const char *const names[] = {"app.js", "app-000000000000.js", "../h_page.c", "x"};
    for (size_t i = 0; i < ARRAY_LEN(names); i++) {
        ask(w, names[i], "gzip", NULL);
        assert_int_equal(w->x->out.status, 404);
        assert_null(w->x->out.headers);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_codings, setup, teardown),
        cmocka_unit_test_setup_teardown(test_tags, setup, teardown),
        cmocka_unit_test_setup_teardown(test_headers, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
