/*
 * Unit active, peer: queries enter and leave from several threads while others list and end them; addresses as text.
 * Run under ThreadSanitizer too.
 */
#include "tests/unit/testing.h"

#include "server/active.h"

#include <arpa/inet.h>

#define THREADS 4
#define ROUNDS 2000

static void gather(void *arg, const struct active_query *q)
{
    buf_printf(arg, "%.*s;", STR_ARG(q->text));
}

static void assert_listed(struct active *a, const char *want)
{
    struct buf out = {0};
    active_each(a, gather, &out);
    buf_u8(&out, 0);
    assert_string_equal((const char *)out.data, want);
    buf_deinit(&out);
}

static void lists_in_order_and_ends_by_number(void **state)
{
    (void)state;
    struct active *a = active_create();
    atomic_bool stop[3] = {false, false, false};
    struct active_query q[3] = {{.text = STR("a"), .canceled = &stop[0]},
                                {.text = STR("b"), .canceled = &stop[1]},
                                {.text = STR("c"), .canceled = &stop[2]}};
    for (size_t i = 0; i < 3; i++)
        active_enter(a, &q[i], i);
    assert_listed(a, "a;b;c;");
    assert_true(active_cancel(a, q[1].id));
    assert_false(active_cancel(a, q[0].id - 1));
    assert_true(atomic_load(&stop[1]));
    assert_false(atomic_load(&stop[0]) || atomic_load(&stop[2]));
    active_leave(a, &q[1]);
    assert_true(q[1].ended);
    assert_listed(a, "a;c;");
    assert_false(active_cancel(a, q[1].id));
    active_leave(a, &q[2]);
    assert_listed(a, "a;");
    active_leave(a, &q[0]);
    assert_false(q[0].ended);
    assert_listed(a, "");
    assert_int_equal(active_count(a), 0);
    active_destroy(a);
}

struct crowd {
    struct active *a;
    atomic_uint ended;
};

static void *run_queries(void *arg)
{
    struct crowd *c = arg;
    for (int i = 0; i < ROUNDS; i++) {
        atomic_bool canceled = false;
        struct active_query q = {.text = STR("q"), .canceled = &canceled};
        active_enter(c->a, &q, 1);
        active_leave(c->a, &q);
        if (q.ended) atomic_fetch_add(&c->ended, 1);
        assert_int_equal(q.ended, atomic_load(&canceled));
    }
    return NULL;
}

static void take_id(void *arg, const struct active_query *q)
{
    *(uint64_t *)arg = q->id;
}

static void many_at_once(void **state)
{
    (void)state;
    struct crowd c = {.a = active_create()};
    pthread_t threads[THREADS];
    unsigned told = 0;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, run_queries, &c), 0);
    for (int i = 0; i < ROUNDS; i++) {
        uint64_t id = 0;
        active_each(c.a, take_id, &id);
        if (id != 0 && active_cancel(c.a, id)) told++;
    }
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    assert_true(atomic_load(&c.ended) <= told);
    assert_int_equal(active_count(c.a), 0);
    active_destroy(c.a);
}

static void peers_as_text(void **state)
{
    (void)state;
    char text[PEER_TEXT_MAX];
    struct peer p = {0};
    peer_print(&p, text);
    assert_string_equal(text, "");
    p.v4 = (struct sockaddr_in){.sin_family = AF_INET, .sin_port = htons(80)};
    assert_int_equal(inet_pton(AF_INET, "1.2.3.4", &p.v4.sin_addr), 1);
    peer_print(&p, text);
    assert_string_equal(text, "1.2.3.4:80");
    p.v6 = (struct sockaddr_in6){.sin6_family = AF_INET6, .sin6_port = htons(65535)};
    assert_int_equal(inet_pton(AF_INET6, "::ffff:10.0.0.1", &p.v6.sin6_addr), 1);
    peer_print(&p, text);
    assert_string_equal(text, "10.0.0.1:65535");
    assert_int_equal(inet_pton(AF_INET6, "fe80::1", &p.v6.sin6_addr), 1);
    peer_print(&p, text);
    assert_string_equal(text, "[fe80::1]:65535");
    peer_of_socket(-1, &p);
    peer_print(&p, text);
    assert_string_equal(text, "");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_in_order_and_ends_by_number),
        cmocka_unit_test(many_at_once),
        cmocka_unit_test(peers_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
