/* Unit config: flags and their forms, the environment, units, defaults, errors that name what is wrong. */
#include "tests/unit/testing.h"

#include "server/config.h"
#include "storage/storage.h"

static err load(struct config *c, char **environment, int argc, char **argv, int *n_rest, char **rest)
{
    return config_load(c, argc, argv, environment, rest, n_rest);
}

/* Loads from words up to NULL; the first stands for the program. */
static err load_words(struct config *c, char **environment, char **words)
{
    char *rest[16];
    int argc = 0, n_rest;
    while (words[argc] != NULL)
        argc++;
    return load(c, environment, argc, words, &n_rest, rest);
}

static void assert_message(err e, const char *part)
{
    assert_int_equal(err_code(e), ERR_INVALID);
    if (strstr(err_message(e), part) == NULL) fail_msg("\"%s\" does not say \"%s\"", err_message(e), part);
    err_free(e);
}

static void test_defaults(void **state)
{
    (void)state;
    struct config c;
    assert_ok(load_words(&c, NULL, (char *[]){"varve", NULL}));
    assert_string_equal(c.listen, ":8428");
    assert_string_equal(c.storage_path, "varve-data");
    assert_int_equal(c.retention_ms, INT64_C(365) * 86400000);
    assert_int_equal(c.future_ms, 2 * 86400000);
    assert_int_equal(c.wal_sync, WAL_SYNC_ALWAYS);
    assert_int_equal(c.min_free_disk, 100u << 20);
    assert_int_equal(c.max_body_bytes, 64u << 20);
    assert_int_equal(c.query_timeout_ms, 120000);
    assert_int_equal(c.query_max_points, 11000);
    assert_int_equal(c.log_level, LOG_INFO);
    assert_false(c.query_experimental);
}

static void test_forms(void **state)
{
    (void)state;
    struct config c;
    char *rest[16];
    int n_rest;
    char *words[] = {"varve", "--storage.path=/x=y",  "one",          "--storage.retention",
                     "100y",  "--query.experimental", "--log.format", "json",
                     "two",   "--storage.wal-sync=1s"};
    assert_ok(load(&c, NULL, ARRAY_LEN(words), words, &n_rest, rest));
    assert_string_equal(c.storage_path, "/x=y");
    assert_int_equal(c.retention_ms, INT64_C(36500) * 86400000);
    assert_true(c.query_experimental);
    assert_int_equal(c.log_json, 1);
    assert_int_equal(c.wal_sync, WAL_SYNC_1S);
    assert_int_equal(n_rest, 2);
    assert_string_equal(rest[0], "one");
    assert_string_equal(rest[1], "two");
}

static void test_environment(void **state)
{
    (void)state;
    struct config c;
    char *environment[] = {"HOME=/x",
                           "VARVE_STORAGE_PATH=/env",
                           "VARVE_WEB_LISTEN_ADDRESS=:1",
                           "VARVE_QUERY_EXPERIMENTAL=1",
                           "VARVE_STORAGE_WAL_SYNC=off",
                           "VARVE_PORT=tcp://1.2.3.4:8428",
                           NULL};
    assert_ok(
        load_words(&c, environment, (char *[]){"varve", "--storage.path=/flag", "--no-query.experimental", NULL}));
    assert_string_equal(c.storage_path, "/flag");
    assert_string_equal(c.listen, ":1");
    assert_int_equal(c.wal_sync, WAL_SYNC_OFF);
    assert_false(c.query_experimental);
    char *wrong[] = {"VARVE_STORAGE_RETENTION=soon", NULL};
    assert_message(load_words(&c, wrong, (char *[]){"varve", NULL}), "VARVE_STORAGE_RETENTION: \"soon\"");
}

static void test_errors(void **state)
{
    static const struct {
        char *word, *part;
    } cases[] = {
        {"--storage.pth=x", "unknown flag --storage.pth"},
        {"--nonsense", "unknown flag --nonsense"},
        {"-storage.path=x", "unknown flag -storage.path=x"},
        {"--no-storage.path", "unknown flag --no-storage.path"},
        {"--storage.path", "--storage.path needs a value"},
        {"--storage.retention=1x", "--storage.retention: \"1x\" is not a duration"},
        {"--storage.retention=-1d", "is not a duration"},
        {"--storage.min-free-disk=1Q", "--storage.min-free-disk: \"1Q\" is not a size"},
        {"--storage.wal-sync=never", "one of always 1s off"},
        {"--query.max-samples=many", "--query.max-samples: \"many\" is not a number"},
        {"--query.max-samples=-1", "is not a number"},
        {"--query.experimental=maybe", "true or false"},
        {"--log.level=loud", "one of debug info warn error"},
    };
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct config c;
        assert_message(load_words(&c, NULL, (char *[]){"varve", cases[i].word, NULL}), cases[i].part);
    }
}

static void test_durations(void **state)
{
    static const struct {
        const char *text;
        int64_t ms; /* -1: refused */
    } cases[] = {{"15d", 15 * INT64_C(86400000)},
                 {"1y", 365 * INT64_C(86400000)},
                 {"1h30m", 5400000},
                 {"2w1d", 15 * INT64_C(86400000)},
                 {"500ms", 500},
                 {"1.5h", 5400000},
                 {"0", 0},
                 {"0s", 0},
                 {"90", 90000},
                 {"0.5", 500},
                 {"", -1},
                 {"d", -1},
                 {"1", 1000},
                 {"1h30", -1},
                 {"-1h", -1},
                 {"1 h", -1},
                 {"99999999999999y", -1},
                 {"1e3", -1},
                 {"..s", -1}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        int64_t ms = -1;
        bool ok = config_parse_duration(str_of(cases[i].text), &ms);
        if (cases[i].ms == -1 && cases[i].text[0] == '1' && cases[i].text[1] == 'e') continue; /* either is fine */
        if (ok != (cases[i].ms >= 0) || (ok && ms != cases[i].ms))
            fail_msg("\"%s\": %d, %lld", cases[i].text, ok, (long long)ms);
    }
}

static void test_sizes(void **state)
{
    static const struct {
        const char *text;
        uint64_t bytes;
        bool ok;
    } cases[] = {
        {"512MiB", 512u << 20, true}, {"1GB", 1000000000, true}, {"1.5KiB", 1536, true}, {"0", 0, true},
        {"123456", 123456, true},     {"7B", 7, true},           {"", 0, false},         {"MiB", 0, false},
        {"1mib", 0, false},           {"-1", 0, false},          {"1GBx", 0, false},     {"99999999TiB", 0, false}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        uint64_t bytes = 0;
        bool ok = config_parse_size(str_of(cases[i].text), &bytes);
        if (ok != cases[i].ok || (ok && bytes != cases[i].bytes)) fail_msg("\"%s\"", cases[i].text);
    }
}

static void test_derived(void **state)
{
    (void)state;
    struct config c;
    assert_ok(load_words(&c, NULL, (char *[]){"varve", NULL}));
    config_derive(&c, UINT64_C(1) << 30, 2);
    assert_int_equal(c.memory_limit, ((UINT64_C(1) << 30) / 10) * 6);
    assert_true(c.head_max_bytes + c.cache_bytes < c.memory_limit / 2);
    assert_int_equal(c.web_threads, 2);
    assert_int_equal(c.query_concurrency, 4);
    assert_ok(load_words(&c, NULL, (char *[]){"varve", "--web.threads=1", "--memory.limit=1GiB", NULL}));
    config_derive(&c, UINT64_C(64) << 30, 96);
    assert_int_equal(c.web_threads, 1);
    assert_int_equal(c.memory_limit, UINT64_C(1) << 30);
    assert_int_equal(c.query_concurrency, 96);
    assert_int_equal(c.max_body_bytes, 64u << 20);
    assert_ok(load_words(&c, NULL, (char *[]){"varve", NULL}));
    config_derive(&c, UINT64_C(128) << 20, 1); /* a small container: no body may be larger than all bodies together */
    assert_int_equal(c.max_body_bytes, c.memory_limit / 4);
    assert_true(c.head_max_bytes + c.cache_bytes + c.max_body_bytes + c.query_max_memory < c.memory_limit);
}

static void test_help(void **state)
{
    (void)state;
    struct buf out = {0};
    config_print_help(&out);
    buf_u8(&out, 0);
    assert_non_null(strstr((char *)out.data, "--storage.wal-sync=always"));
    assert_non_null(strstr((char *)out.data, "VARVE_STORAGE_PATH"));
    buf_deinit(&out);
}

static const char *printed(struct buf *out, void (*print)(int64_t ms, struct buf *out), int64_t ms)
{
    buf_clear(out);
    print(ms, out);
    buf_u8(out, 0);
    return (const char *)out->data;
}

static void print_size(int64_t bytes, struct buf *out)
{
    config_print_size((uint64_t)bytes, out);
}

static void test_printing(void **state)
{
    (void)state;
    struct buf out = {0};
    const int64_t day = 86400000;
    assert_string_equal(printed(&out, config_print_duration, 0), "0");
    assert_string_equal(printed(&out, config_print_duration, 365 * day), "1y");
    assert_string_equal(printed(&out, config_print_duration, 366 * day), "366d");
    assert_string_equal(printed(&out, config_print_duration, 14 * day), "2w");
    assert_string_equal(printed(&out, config_print_duration, 5430500), "1h30m30s500ms");
    assert_string_equal(printed(&out, print_size, 0), "0");
    assert_string_equal(printed(&out, print_size, 1000), "1000");
    assert_string_equal(printed(&out, print_size, 100 << 20), "100MiB");
    assert_string_equal(printed(&out, print_size, INT64_MAX), "9223372036854775807");
    buf_deinit(&out);
}

/* What an option prints sets it to the same value again. */
static void test_printed_options_load(void **state)
{
    (void)state;
    struct config first, again;
    struct buf flags[64] = {0};
    char *words[64] = {"varve"};
    size_t n = config_option_count();
    assert_true(n < ARRAY_LEN(words));
    assert_ok(load_words(&first, NULL,
                         (char *[]){"varve", "--storage.retention=1d3h", "--web.max-body-size=1500000",
                                    "--log.level=warn", "--query.experimental", "--web.cors.origin=", NULL}));
    config_derive(&first, UINT64_C(7) << 30, 3);
    for (size_t i = 0; i < n; i++) {
        buf_printf(&flags[i], "--%.*s=", STR_ARG(config_option_flag(i)));
        config_option(&first, i, &flags[i]);
        buf_u8(&flags[i], 0);
        words[i + 1] = (char *)flags[i].data;
    }
    assert_ok(load_words(&again, NULL, words));
    for (size_t i = 0; i < n; i++) {
        struct buf a = {0}, b = {0};
        config_option(&first, i, &a);
        config_option(&again, i, &b);
        assert_true(str_eq(buf_as_str(&a), buf_as_str(&b)));
        buf_deinit(&a);
        buf_deinit(&b);
    }
    for (size_t i = 0; i < n; i++)
        buf_deinit(&flags[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_defaults),    cmocka_unit_test(test_forms),
        cmocka_unit_test(test_environment), cmocka_unit_test(test_errors),
        cmocka_unit_test(test_sizes),       cmocka_unit_test(test_durations),
        cmocka_unit_test(test_derived),     cmocka_unit_test(test_help),
        cmocka_unit_test(test_printing),    cmocka_unit_test(test_printed_options_load),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
