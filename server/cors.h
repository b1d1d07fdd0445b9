/*
 * cors.h: which web pages of other origins may read answers.
 *
 * Made once from --web.cors.origin, an anchored regular expression. Read-only afterwards.
 */
#ifndef VARVE_SERVER_CORS_H
#define VARVE_SERVER_CORS_H

#include "storage/storage.h"

struct cors {
    bool any;    /* the pattern is .*: all may */
    bool active; /* false: no origin may */
    struct matcher matcher;
};

err cors_init(struct cors *c, const char *pattern) __attribute__((warn_unused_result));
void cors_deinit(struct cors *c);
/* What Access-Control-Allow-Origin should say to a request from `origin`: the origin itself, or nothing (n = 0).
 * Never `*`: caches keep answers apart by Vary, and a narrower pattern later changes nothing for those allowed. */
str cors_allow(const struct cors *c, str origin);

#endif
