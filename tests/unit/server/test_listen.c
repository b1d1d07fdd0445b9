/* Unit listen: forms of addresses, one port for all loops, a port that is taken. */
#include "tests/unit/testing.h"

#include "server/listen.h"

#include <sys/socket.h>
#include <unistd.h>

static void close_all(const struct listen_address *a, unsigned n)
{
    for (unsigned i = 0; i < n; i++)
        close(a->fds[i]);
}

static void test_forms(void **state)
{
    static const struct {
        const char *text, *begins; /* NULL: refused */
    } cases[] = {{":0", "["},         {"127.0.0.1:0", "127.0.0.1:"},
                 {"localhost:0", ""}, {"0.0.0.0:0", "0.0.0.0:"},
                 {"8428", NULL},      {"127.0.0.1:", NULL},
                 {":x", NULL},        {":99999", NULL},
                 {"::1:80", NULL},    {"", NULL},
                 {":80x", NULL},      {"[::1:80", NULL}};
    (void)state;
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        struct listen_address a;
        err e = listen_bind(str_of(cases[i].text), 1, &a);
        if (cases[i].begins == NULL) {
            assert_err(e, ERR_INVALID);
            continue;
        }
        assert_ok(e);
        bool v4_only = i == 0 && a.text[0] == '0'; /* a machine without IPv6 */
        if (!v4_only && strncmp(a.text, cases[i].begins, strlen(cases[i].begins)) != 0) fail_msg("%s", a.text);
        close_all(&a, 1);
    }
}

static void test_shared_among_loops_only(void **state)
{
    (void)state;
    struct listen_address a, b;
    assert_ok(listen_bind(STR("127.0.0.1:0"), 3, &a));
    for (int i = 0; i < 3; i++)
        assert_int_equal(listen(a.fds[i], 1), 0);
    err e = listen_bind(str_of(a.text), 3, &b);
    assert_int_equal(err_code(e), ERR_IO);
    assert_non_null(strstr(err_message(e), a.text));
    assert_non_null(strstr(err_message(e), "in use"));
    err_free(e);
    close_all(&a, 3);
    assert_ok(listen_bind(str_of(a.text), 1, &b));
    close_all(&b, 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_forms),
        cmocka_unit_test(test_shared_among_loops_only),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
