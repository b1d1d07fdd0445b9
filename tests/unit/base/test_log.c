/* Unit log: both formats, levels, hostile field values, cutting. Lines are read back through a pipe. */
#include "tests/unit/testing.h"

#include "storage/base/log.h"

#include <fcntl.h>
#include <unistd.h>

static char text[1 << 17];
static int ends[2];

static int open_pipe(void **state)
{
    (void)state;
    return pipe2(ends, O_NONBLOCK);
}

static int close_pipe(void **state)
{
    (void)state;
    close(ends[0]);
    close(ends[1]);
    return 0;
}

/* The line just written, behind its time stamp, whose form is checked here. */
static const char *line(const char *before_time)
{
    ssize_t n = read(ends[0], text, sizeof text - 1);
    text[n < 0 ? 0 : n] = '\0';
    size_t skip = strlen(before_time);
    if (n < 0) return "";
    assert_memory_equal(text, before_time, skip);
    int year, month, day, hour, minute, second, ms, used = 0;
    sscanf(text + skip, "%d-%d-%dT%d:%d:%d.%3dZ%n", &year, &month, &day, &hour, &minute, &second, &ms, &used);
    assert_int_equal(used, 24);
    assert_true(year >= 2024 && month <= 12 && day <= 31 && hour < 24 && minute < 60);
    return text + skip + used;
}

static void test_logfmt(void **state)
{
    (void)state;
    struct log *l = log_create(ends[1], LOG_INFO, false);
    log_info(l, "part written", "path=%s rows=%d", "a/b", 12);
    assert_string_equal(line("ts="), " level=info msg=\"part written\" path=a/b rows=12\n");
    log_error(l, "say \"no\"", "why=\"%s\"", "line\nbreak\x1b");
    assert_string_equal(line("ts="), " level=error msg=\"say \\\"no\\\"\" why=\"line\\nbreak\\x1b\"\n");
    log_warn(l, "bare", "%s", "");
    assert_string_equal(line("ts="), " level=warn msg=\"bare\"\n");
    log_destroy(l);
}

static void test_json(void **state)
{
    (void)state;
    struct log *l = log_create(ends[1], LOG_DEBUG, true);
    log_debug(l, "m", "path=a/b rows=12 took=0.5s text=\"two words\" last=-7");
    assert_string_equal(line("{\"ts\":\""), "\",\"level\":\"debug\",\"msg\":\"m\",\"path\":\"a/b\",\"rows\":12,"
                                            "\"took\":\"0.5s\",\"text\":\"two words\",\"last\":-7}\n");
    log_info(l, "m", "q=\"a \"b\" c\" zero=007 open=\"never closed");
    assert_string_equal(line("{\"ts\":\""),
                        "\",\"level\":\"info\",\"msg\":\"m\",\"q\":\"a \\\"b\",\"c\\\" zero\":\"007\","
                        "\"open\":\"never closed\"}\n");
    log_info(l, "m", "just words =");
    line("{\"ts\":\"");
    log_destroy(l);
}

static void test_levels(void **state)
{
    (void)state;
    struct log *l = log_create(ends[1], LOG_WARN, false);
    log_debug(l, "m", "a=1");
    log_info(l, "m", "a=1");
    assert_string_equal(line("ts="), "");
    log_warn(l, "m", "a=1");
    log_error(l, "m", "a=1");
    assert_int_equal(log_count(l, LOG_INFO), 0);
    assert_int_equal(log_count(l, LOG_WARN), 1);
    assert_int_equal(log_count(l, LOG_ERROR), 1);
    log_destroy(l);
    log_error(NULL, "m", "a=1");
    assert_int_equal(log_count(NULL, LOG_ERROR), 0);
    log_destroy(NULL);
}

static void test_level_names(void **state)
{
    (void)state;
    enum log_level level;
    assert_true(log_level_parse(STR("debug"), &level) && level == LOG_DEBUG);
    assert_true(log_level_parse(STR("error"), &level) && level == LOG_ERROR);
    assert_false(log_level_parse(STR("loud"), &level));
    assert_false(log_level_parse(STR(""), &level));
}

static void test_long_fields_are_cut(void **state)
{
    (void)state;
    static char big[20000];
    memset(big, 1, sizeof big - 1);
    for (int json = 0; json < 2; json++) {
        struct log *l = log_create(ends[1], LOG_INFO, json);
        log_info(l, "m", "a=%s", big);
        const char *rest = line(json ? "{\"ts\":\"" : "ts=");
        assert_true(strlen(rest) > 8000);
        assert_ptr_equal(strchr(rest, '\n'), rest + strlen(rest) - 1);
        log_destroy(l);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_logfmt, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_json, open_pipe, close_pipe),
        cmocka_unit_test_setup_teardown(test_levels, open_pipe, close_pipe),
        cmocka_unit_test(test_level_names),
        cmocka_unit_test_setup_teardown(test_long_fields_are_cut, open_pipe, close_pipe),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
