/* Unit route: which path and method finds which handler, what an unknown one answers; heads on the wire. */
#include "tests/unit/testing.h"

#include "server/handlers.h"
#include "server/route.h"
#include "server/wire.h"

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
    assert_ok(cors_init(&w->server.cors, "https?://(a|b)\\.example"));
    w->x = exchange_create(&w->server, NULL);
    *state = w;
    return 0;
}

static int teardown(void **state)
{
    struct world *w = *state;
    exchange_destroy(w->x);
    cors_deinit(&w->server.cors);
    free(w);
    return 0;
}

static void resolve(struct world *w, enum http_verb verb, const char *target)
{
    exchange_reset(w->x);
    w->x->in.verb = verb;
    w->x->in.target = (struct http_text){(char *)target, (uint32_t)strlen(target), 0};
    route_resolve(w->x);
}

static void test_found(void **state)
{
    struct world *w = *state;
    static const struct {
        enum http_verb verb;
        const char *target;
        void (*handle)(struct server *s, struct exchange *x);
        const char *arg;
    } cases[] = {
        {VERB_GET, "/api/v1/query?query=up", h_query_instant, ""},
        {VERB_POST, "/api/v1/query", h_query_instant, ""},
        {VERB_HEAD, "/api/v1/query", h_query_instant, ""},
        {VERB_GET, "//api//v1/query_range/", h_query_range, ""},
        {VERB_POST, "/prometheus/api/v1/write", h_remote_write, ""},
        {VERB_POST, "/api/v1/push", h_remote_write, ""},
        {VERB_GET, "/api/v1/label/job/values", h_meta_label_values, "job"},
        {VERB_POST, "/prometheus/api/v1/label/__name__/values?x", h_meta_label_values, "__name__"},
        {VERB_GET, "/api/v1/label/a%2Fb/values", h_meta_label_values, "a/b"},
        {VERB_POST, "/api/v1/import/prometheus", h_import_text, ""},
        {VERB_GET, "/-/ready", h_status_ready, ""},
        {VERB_GET, "/", h_page_index, ""},
        {VERB_HEAD, "//?g0.expr=up", h_page_index, ""},
        {VERB_GET, "/graph?g0.expr=up", h_page_index, ""},
        {VERB_GET, "/assets/app-x.js", h_page_asset, "app-x.js"},
        {VERB_PUT, "/api/v1/admin/tsdb/snapshot", h_admin_snapshot, ""},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        resolve(w, cases[i].verb, cases[i].target);
        if (w->x->route == NULL || w->x->route->handle != cases[i].handle) fail_msg("%s", cases[i].target);
        assert_int_equal(w->x->out.status, 0);
        assert_true(str_eq(w->x->path_arg, str_of(cases[i].arg)));
    }
}

static void test_not_found(void **state)
{
    struct world *w = *state;
    static const char *const targets[] = {"/index.html",
                                          "/assets",
                                          "/assets/a/b",
                                          "/api/v1/",
                                          "/api/v1/queryx",
                                          "/api/v1/label//values",
                                          "/api/v1/label/a/b/values",
                                          "/api/v1/label/values",
                                          "/prometheus/-/ready",
                                          "/prometheus",
                                          "/rules/test/test",
                                          "/api/v1/search/metric_names",
                                          "*"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        resolve(w, VERB_GET, targets[i]);
        if (w->x->route != NULL || w->x->out.status != 404) fail_msg("%s: %d", targets[i], w->x->out.status);
    }
    resolve(w, VERB_GET, "/api/v1/label/%zz/values");
    assert_null(w->x->route);
    assert_int_equal(w->x->out.status, 400);
}

static void test_wrong_method(void **state)
{
    struct world *w = *state;
    resolve(w, VERB_GET, "/api/v1/write");
    assert_int_equal(w->x->out.status, 405);
    assert_int_equal(w->x->out.allow, VERB_POST | VERB_OPTIONS);
    resolve(w, VERB_DELETE, "/api/v1/series");
    assert_int_equal(w->x->out.status, 405);
    assert_int_equal(w->x->out.allow, VERB_GET | VERB_HEAD | VERB_POST | VERB_OPTIONS);
    resolve(w, VERB_OTHER, "/-/ready");
    assert_int_equal(w->x->out.status, 405);
    resolve(w, VERB_GET, "/api/v1/admin/tsdb/delete_series");
    assert_int_equal(w->x->out.status, 405);
}

/* What the operator has to allow is refused otherwise, before anything else is looked at. */
static void test_switched_off(void **state)
{
    struct world *w = *state;
    static const char *const targets[] = {"/api/v1/admin/tsdb/delete_series?match[]=x",
                                          "/api/v1/admin/tsdb/clean_tombstones", "/-/quit", "/-/reload"};
    for (size_t i = 0; i < ARRAY_LEN(targets); i++) {
        resolve(w, VERB_POST, targets[i]);
        assert_true(route_run(w->x));
        assert_int_equal(w->x->out.status, 403);
    }
    w->config.lifecycle = true;
    resolve(w, VERB_POST, "/-/reload");
    assert_true(route_run(w->x));
    assert_int_equal(w->x->out.status, 200);
}

static void test_options(void **state)
{
    struct world *w = *state;
    resolve(w, VERB_OPTIONS, "/api/v1/query");
    assert_int_equal(w->x->out.status, 204);
    assert_true(w->x->out.preflight);
    resolve(w, VERB_OPTIONS, "*");
    assert_int_equal(w->x->out.status, 204);
    resolve(w, VERB_OPTIONS, "/nothing");
    assert_int_equal(w->x->out.status, 404);
}

static void test_body_limits(void **state)
{
    struct world *w = *state;
    resolve(w, VERB_POST, "/api/v1/write");
    assert_int_equal(route_body_max(w->x), w->config.max_body_bytes);
    resolve(w, VERB_POST, "/api/v1/query");
    assert_true(route_body_max(w->x) < w->config.max_body_bytes);
    resolve(w, VERB_POST, "/nothing");
    assert_true(route_body_max(w->x) < w->config.max_body_bytes);
}

/* Each path of the table is reachable and has a handler. */
static void test_table(void **state)
{
    struct world *w = *state;
    for (size_t i = 0; i < route_count(); i++) {
        const struct route *r = route_at(i);
        char target[128];
        const char *hole = strstr(r->path, "<>");
        snprintf(target, sizeof target, "%.*s%s%s", (int)(hole ? hole - r->path : (long)strlen(r->path)), r->path,
                 hole ? "x" : "", hole ? hole + 2 : "");
        assert_non_null(r->handle);
        resolve(w, r->verbs & VERB_GET ? VERB_GET : VERB_POST, target);
        assert_ptr_equal(w->x->route, r);
        assert_int_equal(route_index(r), i);
    }
}

/* ---- heads --------------------------------------------------------------------------------------------------- */

static const char *head(struct world *w, bool close, bool chunked, char *text)
{
    struct wire_options o = {.date = "D", .close = close, .chunked = chunked};
    size_t n = wire_head(w->x, &o, text);
    text[n] = '\0';
    return text;
}

static void set_origin(struct world *w, const char *origin)
{
    w->x->in.headers[HEADER_ORIGIN] = (struct http_text){(char *)origin, (uint32_t)strlen(origin), 0};
}

static void set_asked(struct world *w, const char *names)
{
    w->x->in.headers[HEADER_ACCESS_CONTROL_REQUEST_HEADERS] =
        (struct http_text){(char *)names, (uint32_t)strlen(names), 0};
}

static void test_heads(void **state)
{
    struct world *w = *state;
    char text[WIRE_HEAD_MAX + 1];
    resolve(w, VERB_GET, "/nothing");
    w->x->in.http11 = true;
    w->x->out.body.n = 5;
    w->x->out.retry_after_s = 7;
    assert_string_equal(head(w, true, false, text),
                        "HTTP/1.1 404 Not Found\r\nDate: D\r\nContent-Type: application/json\r\nContent-Length: 5\r\n"
                        "Vary: Accept-Encoding\r\nRetry-After: 7\r\nConnection: close\r\n\r\n");
    assert_non_null(strstr(head(w, false, true, text), "Transfer-Encoding: chunked\r\n"));
    assert_null(strstr(text, "Content-Length"));
    assert_null(strstr(text, "Connection"));
    w->x->in.http11 = false;
    assert_non_null(strstr(head(w, false, false, text), "Connection: keep-alive\r\n"));
    w->x->out.status = 204;
    assert_null(strstr(head(w, false, false, text), "Content-"));
    assert_null(strstr(text, "-Written"));
    w->x->out.status = 304;
    w->x->out.etag = "W/\"x\"";
    w->x->out.headers = "A: b\r\n";
    assert_null(strstr(head(w, false, false, text), "Content-"));
    assert_non_null(strstr(text, "\r\nA: b\r\nETag: W/\"x\"\r\n"));
    w->x->out.written_counts = true;
    w->x->out.samples_written = 3;
    w->x->out.exemplars_written = UINT64_MAX;
    assert_non_null(strstr(head(w, false, false, text), "X-Prometheus-Remote-Write-Samples-Written: 3\r\n"));
    assert_non_null(strstr(text, "X-Prometheus-Remote-Write-Histograms-Written: 0\r\n"));
    assert_non_null(strstr(text, "X-Prometheus-Remote-Write-Exemplars-Written: 18446744073709551615\r\n"));
}

static void test_cors(void **state)
{
    struct world *w = *state;
    char text[WIRE_HEAD_MAX + 1];
    resolve(w, VERB_OPTIONS, "/api/v1/query");
    assert_null(strstr(head(w, false, false, text), "Access-Control"));
    set_origin(w, "http://c.example");
    assert_null(strstr(head(w, false, false, text), "Access-Control"));
    set_origin(w, "http://a.example.evil");
    assert_null(strstr(head(w, false, false, text), "Access-Control"));
    set_origin(w, "https://a.example");
    assert_non_null(strstr(head(w, false, false, text), "Access-Control-Allow-Origin: https://a.example\r\n"));
    assert_non_null(strstr(text, "Vary: Origin"));
    assert_non_null(strstr(text, "Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS\r\n"));
    assert_non_null(strstr(text, "Content-Type, Origin\r\n"));
    set_asked(w, "content-type,x-panel-id");
    assert_non_null(strstr(head(w, false, false, text), "Content-Type, Origin, content-type,x-panel-id\r\n"));
    set_asked(w, "x\"y");
    assert_non_null(strstr(head(w, false, false, text), "Content-Type, Origin\r\n"));
    char *huge = malloc(5000);
    memset(huge, 'x', 4999);
    huge[4999] = '\0';
    set_asked(w, huge);
    assert_non_null(strstr(head(w, false, false, text), "Content-Type, Origin\r\n"));
    set_origin(w, huge);
    assert_null(strstr(head(w, false, false, text), "Access-Control"));
    free(huge);
}

static void test_date(void **state)
{
    (void)state;
    char text[32];
    wire_date(INT64_C(1796046076000), text);
    assert_string_equal(text, "Mon, 30 Nov 2026 13:41:16 GMT");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_not_found, setup, teardown),
        cmocka_unit_test_setup_teardown(test_wrong_method, setup, teardown),
        cmocka_unit_test_setup_teardown(test_switched_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_options, setup, teardown),
        cmocka_unit_test_setup_teardown(test_body_limits, setup, teardown),
        cmocka_unit_test_setup_teardown(test_table, setup, teardown),
        cmocka_unit_test_setup_teardown(test_heads, setup, teardown),
        cmocka_unit_test_setup_teardown(test_cors, setup, teardown),
        cmocka_unit_test(test_date),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
