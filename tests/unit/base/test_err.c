/* Unit err (and assert): codes, messages, wrapping, errno mapping, the macros, the abort of a broken check. */
#include "tests/unit/testing.h"

#include "storage/base/assert.h"

#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

static void test_message(void **state)
{
    (void)state;
    err e = err_new(ERR_LIMIT, "%d samples in %s", 7, "a query");
    assert_int_equal(err_code(e), ERR_LIMIT);
    assert_string_equal(err_message(e), "7 samples in a query");
    e = err_wrap(e, "part %u", 3u);
    assert_int_equal(err_code(e), ERR_LIMIT);
    assert_string_equal(err_message(e), "part 3: 7 samples in a query");
    err_free(e);
}

static void test_ok(void **state)
{
    (void)state;
    assert_int_equal(err_code(NULL), ERR_OK);
    assert_string_equal(err_message(NULL), "ok");
    assert_null(err_wrap(NULL, "context"));
    err_free(NULL);
}

static void test_empty_and_long_messages(void **state)
{
    (void)state;
    err e = err_new(ERR_IO, "%s", "");
    assert_string_equal(err_message(e), "");
    for (int i = 0; i < 300; i++)
        e = err_wrap(e, "level %d", i);
    assert_true(strlen(err_message(e)) > 2000);
    assert_memory_equal(err_message(e), "level 299: level 298: ", 22);
    err_free(e);
}

static void test_errno(void **state)
{
    (void)state;
    static const struct {
        int number;
        enum err_code code;
    } cases[] = {
        {ENOSPC, ERR_NO_SPACE}, {EDQUOT, ERR_NO_SPACE}, {ENOENT, ERR_NOT_FOUND}, {EIO, ERR_IO}, {EACCES, ERR_IO}};
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        err e = err_errno(cases[i].number, "open %s", "x");
        assert_int_equal(err_code(e), cases[i].code);
        char expected[128];
        snprintf(expected, sizeof expected, "open x: %s", strerror(cases[i].number));
        assert_string_equal(err_message(e), expected);
        err_free(e);
    }
}

static void test_corrupt_is_counted(void **state)
{
    (void)state;
    uint64_t before = err_corrupt_count();
    err e = err_corrupt("frame %d", 1);
    assert_int_equal(err_code(e), ERR_CORRUPT);
    assert_int_equal(err_corrupt_count(), before + 1);
    err_free(e);
}

static void test_every_code_has_a_name(void **state)
{
    (void)state;
    for (int code = ERR_OK; code <= ERR_INTERNAL; code++) {
        assert_non_null(err_code_name((enum err_code)code));
        assert_string_not_equal(err_code_name((enum err_code)code), "unknown");
    }
    assert_string_equal(err_code_name((enum err_code)999), "unknown");
}

static err try_it(bool fails, int *reached)
{
    TRY(fails ? err_new(ERR_BUSY, "first") : NULL);
    ++*reached;
    return NULL;
}

static err out_it(int *cleaned)
{
    err e = NULL;
    TRY_OUT(err_new(ERR_BUSY, "first"));
out:
    ++*cleaned;
    KEEP_FIRST(err_new(ERR_IO, "second"));
    return e;
}

static err keep_second(void)
{
    err e = NULL;
    KEEP_FIRST(err_new(ERR_IO, "second"));
    return e;
}

static void test_macros(void **state)
{
    (void)state;
    int n = 0;
    assert_err(try_it(true, &n), ERR_BUSY);
    assert_int_equal(n, 0);
    assert_ok(try_it(false, &n));
    assert_int_equal(n, 1);
    assert_err(out_it(&n), ERR_BUSY);
    assert_int_equal(n, 2);
    assert_err(keep_second(), ERR_IO);
}

static void test_check_aborts_with_its_text(void **state)
{
    (void)state;
    int ends[2];
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        signal(SIGABRT, SIG_DFL);
        dup2(ends[1], STDERR_FILENO);
        check(1 + 1 == 3);
        _exit(0);
    }
    close(ends[1]);
    char text[256] = {0};
    ssize_t n = read(ends[0], text, sizeof text - 1);
    close(ends[0]);
    int status = 0;
    waitpid(child, &status, 0);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGABRT);
    assert_true(n > 0);
    assert_non_null(strstr(text, "check failed: 1 + 1 == 3"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_message),
        cmocka_unit_test(test_ok),
        cmocka_unit_test(test_empty_and_long_messages),
        cmocka_unit_test(test_errno),
        cmocka_unit_test(test_corrupt_is_counted),
        cmocka_unit_test(test_every_code_has_a_name),
        cmocka_unit_test(test_macros),
        cmocka_unit_test(test_check_aborts_with_its_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
