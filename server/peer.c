/*
 * peer.c: addresses of clients as text (peer.h). Any thread; nothing is resolved.
 */
#include "server/peer.h"

#include <arpa/inet.h>
#include <stdio.h>

void peer_of_socket(int fd, struct peer *out)
{
    socklen_t n = sizeof *out;
    *out = (struct peer){0};
    bool known = getpeername(fd, &out->any, &n) == 0;
    bool internet = out->any.sa_family == AF_INET || out->any.sa_family == AF_INET6;
    if (!known || !internet) *out = (struct peer){0};
}

static void print_v4(const void *address, in_port_t port, char out[PEER_TEXT_MAX])
{
    char host[INET_ADDRSTRLEN];
    inet_ntop(AF_INET, address, host, sizeof host);
    snprintf(out, PEER_TEXT_MAX, "%s:%u", host, ntohs(port));
}

void peer_print(const struct peer *p, char out[PEER_TEXT_MAX])
{
    char host[INET6_ADDRSTRLEN];
    out[0] = '\0';
    if (p->any.sa_family == AF_INET) {
        print_v4(&p->v4.sin_addr, p->v4.sin_port, out);
    } else if (p->any.sa_family == AF_INET6 && IN6_IS_ADDR_V4MAPPED(&p->v6.sin6_addr)) {
        print_v4(p->v6.sin6_addr.s6_addr + 12, p->v6.sin6_port, out);
    } else if (p->any.sa_family == AF_INET6) {
        inet_ntop(AF_INET6, &p->v6.sin6_addr, host, sizeof host);
        snprintf(out, PEER_TEXT_MAX, "[%s]:%u", host, ntohs(p->v6.sin6_port));
    }
}
