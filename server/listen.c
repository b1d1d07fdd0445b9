/*
 * listen.c: binding.
 *
 * Each event loop has its own socket on the same address (SO_REUSEPORT), so the kernel spreads
 * connections. That option would also let a second server of the same user share the port unnoticed,
 * so the address is first bound once without it: that fails if anyone listens there. No host means
 * all interfaces, IPv4 and IPv6 through one socket; where IPv6 is switched off, IPv4 alone.
 */
#include "server/listen.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "storage/base/assert.h"

struct endpoint {
    struct sockaddr_storage address;
    socklen_t n;
};

/* "[::1]:80" → "::1", "80". False if there is no port. */
static bool split(str text, char *host, size_t host_max, char *port, size_t port_max)
{
    const char *colon = memrchr(text.p, ':', text.n);
    if (colon == NULL) return false;
    str h = {text.p, (size_t)(colon - text.p)};
    str p = {colon + 1, text.n - h.n - 1};
    bool brackets = h.n >= 2 && h.p[0] == '[' && h.p[h.n - 1] == ']';
    if (brackets) h = (str){h.p + 1, h.n - 2};
    if (!brackets && memchr(h.p, ':', h.n) != NULL) return false;
    if (p.n == 0 || h.n >= host_max || p.n >= port_max) return false;
    snprintf(host, host_max, "%.*s", STR_ARG(h));
    snprintf(port, port_max, "%.*s", STR_ARG(p));
    char *end;
    unsigned long number = strtoul(port, &end, 10);
    return *end == '\0' && number < 65536;
}

static err resolve(const char *host, const char *port, struct endpoint *out)
{
    struct addrinfo hints = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_PASSIVE | AI_NUMERICSERV};
    struct addrinfo *found = NULL;
    int rc = getaddrinfo(host, port, &hints, &found);
    if (rc != 0) return err_new(ERR_INVALID, "%s: %s", host, gai_strerror(rc));
    memcpy(&out->address, found->ai_addr, found->ai_addrlen);
    out->n = found->ai_addrlen;
    freeaddrinfo(found);
    return NULL;
}

static void any_address(const char *port, bool v6, struct endpoint *out)
{
    in_port_t number = htons((uint16_t)strtoul(port, NULL, 10));
    *out = (struct endpoint){0};
    if (v6) {
        struct sockaddr_in6 a = {.sin6_family = AF_INET6, .sin6_port = number, .sin6_addr = IN6ADDR_ANY_INIT};
        memcpy(&out->address, &a, sizeof a);
        out->n = sizeof a;
    } else {
        struct sockaddr_in a = {.sin_family = AF_INET, .sin_port = number};
        memcpy(&out->address, &a, sizeof a);
        out->n = sizeof a;
    }
}

/* One socket bound to it; the errno, or 0. */
static int bind_one(const struct endpoint *e, bool shared, int *out)
{
    int on = 1, off = 0;
    int fd = socket(e->address.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (fd < 0) return errno;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (shared) setsockopt(fd, SOL_SOCKET, SO_REUSEPORT, &on, sizeof on);
    if (e->address.ss_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off);
    if (bind(fd, (const struct sockaddr *)&e->address, e->n) == 0) {
        *out = fd;
        return 0;
    }
    int code = errno;
    close(fd);
    return code;
}

/* Nobody else may have the address: a socket that does not share it must be able to listen. */
static int probe(const struct endpoint *e)
{
    int fd = -1;
    int code = bind_one(e, false, &fd);
    if (code != 0) return code;
    if (listen(fd, 1) != 0) code = errno;
    close(fd);
    return code;
}

static void describe(int fd, struct endpoint *e, char *text, size_t n)
{
    char host[64], port[16];
    e->n = sizeof e->address;
    check(getsockname(fd, (struct sockaddr *)&e->address, &e->n) == 0);
    getnameinfo((const struct sockaddr *)&e->address, e->n, host, sizeof host, port, sizeof port,
                NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(text, n, e->address.ss_family == AF_INET6 ? "[%s]:%s" : "%s:%s", host, port);
}

/* The first socket settles the port if it was 0; the others follow. */
static int bind_all(struct endpoint *e, unsigned n, struct listen_address *out)
{
    for (unsigned i = 0; i < n; i++) {
        int code = bind_one(e, true, &out->fds[i]);
        if (code != 0) {
            while (i > 0)
                close(out->fds[--i]);
            return code;
        }
        if (i == 0) describe(out->fds[0], e, out->text, sizeof out->text);
    }
    return 0;
}

err listen_bind(str address, unsigned n, struct listen_address *out)
{
    char host[64], port[16];
    struct endpoint e = {0};
    check(n > 0 && n <= ARRAY_LEN(out->fds));
    if (!split(address, host, sizeof host, port, sizeof port))
        return err_new(ERR_INVALID, "--web.listen-address: \"%.*s\" is not host:port", STR_ARG(address));
    if (host[0] == '\0')
        any_address(port, true, &e);
    else
        TRY(err_wrap(resolve(host, port, &e), "--web.listen-address"));
    int code = probe(&e);
    if (host[0] == '\0' && (code == EAFNOSUPPORT || code == EADDRNOTAVAIL)) {
        any_address(port, false, &e);
        code = probe(&e);
    }
    if (code == 0) code = bind_all(&e, n, out);
    if (code == 0) return NULL;
    return err_new(ERR_IO, "can't listen on %.*s: %s", STR_ARG(address), strerror(code));
}
