/*
 * peer.h: the address of a connection's other end, as a value that outlives the connection.
 */
#ifndef VARVE_SERVER_PEER_H
#define VARVE_SERVER_PEER_H

#include <netinet/in.h>

#include "storage/base/types.h"

#define PEER_TEXT_MAX 64

struct peer {
    union {
        struct sockaddr any; /* sa_family 0: not known */
        struct sockaddr_in v4;
        struct sockaddr_in6 v6;
    };
};

void peer_of_socket(int fd, struct peer *out);
/* "1.2.3.4:567", "[::1]:567"; empty if not known. IPv4 that came in over IPv6 is shown as what it is. */
void peer_print(const struct peer *p, char out[PEER_TEXT_MAX]);

#endif
