/*
 * Unit conn: two loops behind one port and many clients at once, before the storage is there; settling
 * numbers from another thread meanwhile; then a stop. Run under ThreadSanitizer too.
 */
#include "tests/unit/testing.h"

#include "server/conn_internal.h"
#include "server/http.h"
#include "server/listen.h"
#include "server/self.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

/*
 * libuv closes descriptors by bare system calls, which ThreadSanitizer does not see: a number that is used again looks
 * like a race on it. What this test is about, memory handed between threads, goes through our own locks.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
    return "called_from_lib:libuv.so\nrace:count_files\n";
}

#define LOOPS 2
#define CLIENTS 4
#define REQUESTS 150

struct world {
    struct config config;
    struct server server;
    struct loop *loops[LOOPS];
    struct conns *conns[LOOPS];
    uint16_t port;
    atomic_bool settle;
};

static void world_start(struct world *w)
{
    char *argv[] = {"varve"}, *rest[1];
    int n_rest;
    struct listen_address bound;
    assert_ok(config_load(&w->config, 1, argv, NULL, rest, &n_rest));
    http_setup();
    w->server.config = &w->config;
    w->server.env = env_posix();
    w->server.metrics = metrics_create();
    w->server.self = self_create(&w->server);
    w->server.body_bytes_max = 1u << 30;
    assert_ok(cors_init(&w->server.cors, ".*"));
    assert_ok(listen_bind(STR("127.0.0.1:0"), LOOPS, &bound));
    w->port = (uint16_t)atoi(strrchr(bound.text, ':') + 1);
    for (unsigned i = 0; i < LOOPS; i++) {
        w->loops[i] = loop_create(i);
        w->conns[i] = conns_create(&w->server, w->loops[i]);
        conns_share(w->conns[i], w->conns, LOOPS);
        assert_ok(conns_listen(w->conns[i], bound.fds[i]));
    }
    for (unsigned i = 0; i < LOOPS; i++)
        assert_ok(loop_start(w->loops[i]));
}

static void world_stop(struct world *w)
{
    for (unsigned i = 0; i < LOOPS; i++)
        conns_stop(w->conns[i]);
    for (unsigned i = 0; i < LOOPS; i++)
        loop_join(w->loops[i]);
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_destroy(w->loops[i]);
        conns_destroy(w->conns[i]);
    }
    assert_int_equal(atomic_load(&w->server.connections), 0);
    assert_int_equal(atomic_load(&w->server.body_bytes), 0);
    self_destroy(w->server.self);
    metrics_destroy(w->server.metrics);
    cors_deinit(&w->server.cors);
}

static int dial(const struct world *w)
{
    struct sockaddr_in to = {
        .sin_family = AF_INET, .sin_port = htons(w->port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    check(connect(fd, (struct sockaddr *)&to, sizeof to) == 0);
    return fd;
}

static void say(int fd, const char *text)
{
    size_t n = strlen(text), at = 0;
    while (at < n) {
        ssize_t sent = send(fd, text + at, n - at, MSG_NOSIGNAL);
        check(sent > 0);
        at += (size_t)sent;
    }
}

/* Reads one answer with a length; its status. */
static int hear(int fd)
{
    char text[4096];
    size_t n = 0;
    for (;;) {
        ssize_t got = recv(fd, text + n, 1, 0);
        if (got <= 0) return -1;
        n += (size_t)got;
        check(n < sizeof text - 1);
        text[n] = '\0';
        if (n >= 4 && strcmp(text + n - 4, "\r\n\r\n") == 0) break;
    }
    const char *length = strstr(text, "Content-Length: ");
    for (long left = length ? atol(length + 16) : 0; left > 0;) {
        char body[1024];
        ssize_t got = recv(fd, body, (size_t)left < sizeof body ? (size_t)left : sizeof body, 0);
        if (got <= 0) return -1;
        left -= got;
    }
    return atoi(text + 9);
}

static void *client(void *arg)
{
    static const struct {
        const char *text;
        int status;
    } kinds[] = {
        {"GET /-/healthy HTTP/1.1\r\n\r\n", 200},
        {"GET /-/ready HTTP/1.1\r\n\r\n", 503},
        {"POST /api/v1/write HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", 503},
        {"GET /api/v1/query?query=1 HTTP/1.1\r\n\r\n", 503},
        {"GET /nope HTTP/1.1\r\n\r\n", 404},
        {"GET /metrics HTTP/1.1\r\n\r\n", 200},
    };
    int fd = dial(arg);
    for (unsigned i = 0; i < REQUESTS; i++) {
        const char *text = kinds[i % ARRAY_LEN(kinds)].text;
        say(fd, text);
        check(hear(fd) == kinds[i % ARRAY_LEN(kinds)].status);
        if (i % 40 != 39) continue;
        if (i % 80 == 39) say(fd, "GET /-/healthy HTTP/1.1\r\n"); /* and leaves in the middle */
        close(fd);
        fd = dial(arg);
    }
    close(fd);
    return NULL;
}

static void *settler(void *arg)
{
    struct world *w = arg;
    for (uint64_t seq = 1; atomic_load(&w->settle); seq++) {
        for (unsigned i = 0; i < LOOPS; i++)
            conns_settled(w->conns[i], seq, NULL);
        usleep(200);
    }
    return NULL;
}

static void test_many_clients(void **state)
{
    (void)state;
    struct world *w = mem_zalloc(sizeof *w);
    pthread_t clients[CLIENTS], settling;
    atomic_store(&w->settle, true);
    world_start(w);
    assert_int_equal(pthread_create(&settling, NULL, settler, w), 0);
    for (int i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_create(&clients[i], NULL, client, w), 0);
    for (int i = 0; i < CLIENTS; i++)
        pthread_join(clients[i], NULL);
    atomic_store(&w->settle, false);
    pthread_join(settling, NULL);
    world_stop(w);
    mem_free(w);
}

/* Wherever the kernel's hash sends connections, the loops share them evenly. */
static void test_spread(void **state)
{
    (void)state;
    struct world *w = mem_zalloc(sizeof *w);
    int fds[21];
    world_start(w);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++) {
        fds[i] = dial(w);
        say(fds[i], "GET /-/healthy HTTP/1.1\r\n\r\n");
        assert_int_equal(hear(fds[i]), 200);
    }
    unsigned a = atomic_load(&w->conns[0]->load), b = atomic_load(&w->conns[1]->load);
    assert_int_equal(a + b, ARRAY_LEN(fds));
    assert_int_equal(a > b ? a - b : b - a, 1);
    for (size_t i = 0; i < ARRAY_LEN(fds); i++)
        close(fds[i]);
    world_stop(w);
    mem_free(w);
}

/* Idle connections are closed at once, a request that has begun is still answered. */
static void test_stop(void **state)
{
    (void)state;
    struct world *w = mem_zalloc(sizeof *w);
    world_start(w);
    int idle = dial(w), busy = dial(w);
    say(idle, "GET /-/healthy HTTP/1.1\r\n\r\n");
    assert_int_equal(hear(idle), 200);
    say(busy, "GET /-/healthy HTTP/1.1\r\n\r\nGET /-/healthy HT");
    assert_int_equal(hear(busy), 200);
    usleep(50000);
    for (unsigned i = 0; i < LOOPS; i++)
        conns_stop(w->conns[i]);
    assert_int_equal(hear(idle), -1);
    say(busy, "TP/1.1\r\n\r\n");
    assert_int_equal(hear(busy), 200);
    assert_int_equal(hear(busy), -1);
    close(idle);
    close(busy);
    for (unsigned i = 0; i < LOOPS; i++) {
        loop_join(w->loops[i]);
        loop_destroy(w->loops[i]);
        conns_destroy(w->conns[i]);
    }
    self_destroy(w->server.self);
    metrics_destroy(w->server.metrics);
    mem_free(w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_many_clients),
        cmocka_unit_test(test_spread),
        cmocka_unit_test(test_stop),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
