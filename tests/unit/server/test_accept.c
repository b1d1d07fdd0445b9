/* test_accept.c: the format that an Accept header asks for. */
#include "server/accept.h"
#include "tests/unit/testing.h"

#define PROTO "application/vnd.google.protobuf;proto=io.prometheus.client.MetricFamily;encoding=delimited"

static void test_formats(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        bool protobuf, utf8;
    } cases[] = {
        {"", false, false},
        {"*/*", false, false},
        {"text/html, */*;q=0.1", false, false},
        {"text/plain", false, false},
        {"text/plain;version=1.0.0;escaping=allow-utf-8", false, true},
        {"text/plain;version=0.0.4;escaping=allow-utf-8", false, false},
        {"text/plain;version=1.0.0;escaping=underscores", false, false},
        {PROTO, true, false},
        {PROTO ";escaping=allow-utf-8 , text/plain", true, true},
        {"application/vnd.google.protobuf", false, false},
        {"application/vnd.google.protobuf;proto=x;encoding=delimited", false, false},
        {PROTO ";q=0.2,text/plain;q=0.3", false, false},
        {PROTO ";q=0.6,text/plain;version=1.0.0;escaping=allow-utf-8;q=0.5", true, false},
        {PROTO ";q=0", false, false},
        {PROTO ";q=x", false, false},
        {"TEXT/PLAIN ; Version=1.0.0 ; Escaping=Allow-UTF-8", false, true},
        {"application/openmetrics-text;version=1.0.0;escaping=allow-utf-8;q=0.5,"
         "text/plain;version=1.0.0;escaping=allow-utf-8;q=0.3,text/plain;version=0.0.4;q=0.2,*/*;q=0.1",
         false, true},
        {",,;;=;q=,", false, false},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct accept a = accept_exposition(str_of(cases[i].header));
        if (a.protobuf != cases[i].protobuf || a.utf8 != cases[i].utf8)
            fail_msg("%s: protobuf %d, utf8 %d", cases[i].header, a.protobuf, a.utf8);
    }
}

static void test_content_types(void **state)
{
    (void)state;
    assert_string_equal(accept_content_type((struct accept){0}),
                        "text/plain; version=0.0.4; charset=utf-8; escaping=underscores");
    assert_string_equal(accept_content_type((struct accept){.utf8 = true}),
                        "text/plain; version=1.0.0; charset=utf-8; escaping=allow-utf-8");
    assert_non_null(strstr(accept_content_type((struct accept){.protobuf = true}), "encoding=delimited; escaping=u"));
    assert_non_null(strstr(accept_content_type((struct accept){true, true}), "escaping=allow-utf-8"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_formats), cmocka_unit_test(test_content_types)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
