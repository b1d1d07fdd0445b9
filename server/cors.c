/*
 * cors.c: origins against a pattern, with the same linear-time regular expressions as label matchers.
 */
#include "server/cors.h"

err cors_init(struct cors *c, const char *pattern)
{
    *c = (struct cors){.active = pattern[0] != '\0', .any = strcmp(pattern, ".*") == 0 || strcmp(pattern, "*") == 0};
    if (!c->active || c->any) return NULL;
    return err_wrap(matcher_init(&c->matcher, MATCH_RE, STR("origin"), str_of(pattern)), "--web.cors.origin");
}

void cors_deinit(struct cors *c)
{
    if (c->active && !c->any) matcher_deinit(&c->matcher);
}

str cors_allow(const struct cors *c, str origin)
{
    str none = {0};
    if (!c->active || origin.n == 0) return none;
    if (c->any) return origin;
    bool matched = false;
    err e = matcher_match(&c->matcher, origin, &matched);
    bool allowed = e == NULL && matched;
    err_free(e);
    return allowed ? origin : none;
}
