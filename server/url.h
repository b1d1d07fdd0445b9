/*
 * url.h: the address of a server, as people write it on a command line.
 *
 * http://[user:password@]host[:port][/prefix]; the scheme may be left out ("localhost:8428").
 */
#ifndef VARVE_SERVER_URL_H
#define VARVE_SERVER_URL_H

#include "storage/base/arena.h"
#include "storage/base/err.h"

/* NUL-terminated strings in the arena that url_parse was given. */
struct url {
    const char *host;     /* without the brackets of an IPv6 address */
    const char *port;     /* decimal; "80" if the text has none */
    const char *prefix;   /* path that all requests go under: "" or "/x/y", no slash at its end */
    const char *userinfo; /* "user:password", unescaped; NULL: none */
    const char *shown;    /* for messages: without the password */
};

/* Takes `text` apart. ERR_INVALID says what is wrong with it, ERR_UNSUPPORTED that it is https. A password is never
 * part of a message. */
err url_parse(str text, struct arena *a, struct url *out) __attribute__((warn_unused_result));

/* Appends s with everything but letters, digits, '-', '_', '.' and '~' as %XX: a form value or a path segment. */
struct buf;
void url_escape(struct buf *out, str s);

#endif
