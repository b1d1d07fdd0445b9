/* Units cli_call, cli_ask (the mark under a query), cli_progress: arguments, times, what is shown. */
#include "tests/unit/testing.h"

#include "server/cli_call.h"
#include "server/cli_progress.h"
#include "storage/base/types.h"

#define NOW_MS INT64_C(1700000000123)

static const struct cli_flag flags[] = {
    {"match", "SELECTOR", NULL, NULL, "which"},
    {"format", "FORMAT", "table", NULL, "form"},
    {"step", "DURATION", "1m", "VARVE_STEP", "distance"},
    {"deep", NULL, NULL, NULL, "a switch"},
};
static const struct cli_command command = {
    .name = "try",
    .words = "EXPR",
    .help = "helps",
    .min_words = 1,
    .max_words = 2,
    .asks_server = true,
    .flags = flags,
    .n_flags = ARRAY_LEN(flags),
};

static err parse(struct cli_call *call, char **argv, char **environment)
{
    int n = 0;
    while (argv[n] != NULL)
        n++;
    return cli_call_parse(call, &command, n, argv, environment);
}

static void test_arguments(void **state)
{
    (void)state;
    char *argv[] = {"-up", "--match=a", "--match", "b", "--deep", "--url=x", "--", "--word", NULL};
    char *environment[] = {"VARVE_STEP=5m", "VARVE_URL=other", "VARVE_BEARER_TOKEN=", NULL};
    struct cli_call call;
    int64_t ms;
    assert_ok(parse(&call, argv, environment));
    assert_int_equal(call.n_words, 2);
    assert_string_equal(call.words[0], "-up");
    assert_string_equal(call.words[1], "--word");
    assert_string_equal(cli_nth(&call, "match", 0), "a");
    assert_string_equal(cli_nth(&call, "match", 1), "b");
    assert_null(cli_nth(&call, "match", 2));
    assert_string_equal(cli_get(&call, "match"), "b");
    assert_true(cli_has(&call, "deep"));
    assert_false(cli_has(&call, "step"));
    assert_string_equal(cli_get(&call, "url"), "x");
    assert_string_equal(cli_get(&call, "step"), "5m");
    assert_string_equal(cli_get(&call, "format"), "table");
    assert_null(cli_get(&call, "bearer-token"));
    assert_ok(cli_get_duration(&call, "step", &ms));
    assert_int_equal(ms, 300000);
    assert_ok(cli_get_duration(&call, "timeout", &ms));
    assert_int_equal(ms, 120000);
    cli_call_deinit(&call);
}

static void test_bad_arguments(void **state)
{
    (void)state;
    char *cases[][5] = {
        {NULL},
        {"a", "b", "c", NULL},
        {"a", "--nope", NULL},
        {"a", "--match", NULL},
        {"a", "--deep=1", NULL},
        {"a", "--matc=x", NULL},
        {"a", "--=x", NULL},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct cli_call call;
        assert_err(parse(&call, cases[i], NULL), ERR_INVALID);
        cli_call_deinit(&call);
    }
}

static void test_bad_values(void **state)
{
    (void)state;
    char *argv[] = {"a", "--format=xml", "--step=x", NULL};
    struct cli_call call;
    enum cli_format format;
    int64_t ms;
    uint64_t n;
    assert_ok(parse(&call, argv, NULL));
    assert_err(cli_get_format(&call, &format), ERR_INVALID);
    assert_err(cli_get_duration(&call, "step", &ms), ERR_INVALID);
    assert_err(cli_get_count(&call, "step", &n), ERR_INVALID);
    assert_err(cli_get_count(&call, "match", &n), ERR_INVALID);
    cli_call_deinit(&call);
}

static void test_times(void **state)
{
    static const struct {
        const char *text, *expected; /* NULL: an error */
    } cases[] = {
        {"now", "1700000000.123"},
        {"now-1h", "1699996400.123"},
        {"-1h30m", "1699994600.123"},
        {"now+90s", "1700000090.123"},
        {"1700000000.5", "1700000000.5"},
        {"-5", "-5"},
        {"2023-11-14T22:13:20Z", "2023-11-14T22:13:20Z"},
        {"later", "later"}, /* the server says what is wrong with it */
        {"now-", NULL},
        {"now1h", NULL},
        {"-1x", NULL},
        {"now-1x", NULL},
    };
    (void)state;
    struct cli_call call = {.command = &command};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        str got;
        err e = cli_time(&call, cases[i].text, NOW_MS, &got);
        if (cases[i].expected == NULL) {
            assert_err(e, ERR_INVALID);
            continue;
        }
        assert_ok(e);
        if (!str_eq(got, str_of(cases[i].expected))) fail_msg("%s: %.*s", cases[i].text, STR_ARG(got));
    }
    cli_call_deinit(&call);
}

static void assert_text(struct buf *b, const char *expected)
{
    buf_u8(b, '\0');
    assert_string_equal((char *)b->data, expected);
    buf_clear(b);
}

static void test_marks(void **state)
{
    (void)state;
    struct buf out = {0};
    cli_mark_place(STR("sum(x"), STR("1:6: parse error: x"), false, &out);
    assert_text(&out, "  sum(x\n       ^\n");
    cli_mark_place(STR("a +\n\tb @"), STR("invalid parameter \"query\": 2:4: parse error"), false, &out);
    assert_text(&out, "  \tb @\n  \t  ^\n");
    cli_mark_place(STR("\xc3\xa9 @"), STR("1:4: x"), true, &out);
    assert_text(&out, "  \xc3\xa9 @\n    \033[1;31m^\033[0m\n");
    static const char *const none[] = {"", "no place", "1:2 parse", "3:1: beyond", "1:99: beyond", "0:1: x", "x1:2: y"};
    for (size_t i = 0; i < ARRAY_LEN(none); i++)
        cli_mark_place(STR("sum(x"), str_of(none[i]), false, &out);
    assert_int_equal(out.n, 0);
    buf_deinit(&out);
}

static void test_progress(void **state)
{
    (void)state;
    struct buf out = {0};
    struct progress p = {.rows = "samples", .bytes = 512 << 10, .total = 2 << 20, .n = 1000000};
    progress_line(&p, 10, &out);
    assert_text(&out, "25%  512.0 KiB of 2.0 MiB  100k samples/s  ETA 30s");
    p.bar = true;
    progress_line(&p, 10, &out);
    assert_text(&out, "[=======>                    ]  25%  512.0 KiB of 2.0 MiB  100k samples/s  ETA 30s");
    p = (struct progress){.rows = "samples", .bytes = 100, .n = 5};
    progress_line(&p, 2, &out);
    assert_text(&out, "100 B  2 samples/s");
    p = (struct progress){.bytes = 1, .total = 100000};
    progress_line(&p, 2, &out);
    assert_text(&out, "0%  1 B of 97.7 KiB  ETA 55h33m");
    buf_deinit(&out);
}

static void test_help(void **state)
{
    (void)state;
    struct buf out = {0};
    cli_help_command(&command, &out);
    buf_u8(&out, '\0');
    static const char *const parts[] = {"varve try EXPR", "--match=SELECTOR", "(1m); also VARVE_STEP",
                                        "--deep\n",       "--url=URL",        "--timeout=DURATION"};
    for (size_t i = 0; i < ARRAY_LEN(parts); i++)
        assert_non_null(strstr((char *)out.data, parts[i]));
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_arguments), cmocka_unit_test(test_bad_arguments), cmocka_unit_test(test_bad_values),
        cmocka_unit_test(test_times),     cmocka_unit_test(test_marks),         cmocka_unit_test(test_progress),
        cmocka_unit_test(test_help),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
