/*
 * args.c: the API's argument types.
 *
 * Times and durations are the query room's; here errors get the name of the argument before them, as
 * Prometheus words it, because the client sees only the text.
 */
#include "server/args.h"

#include "storage/base/limits.h"
#include "storage/base/num.h"

str args_text(const struct exchange *x, const char *name)
{
    return params_get(&x->params, str_of(name));
}

err args_time(const struct exchange *x, const char *name, int64_t *ms)
{
    str text = args_text(x, name);
    if (text.n == 0) return NULL;
    return err_wrap(query_parse_time(text, ms), "invalid parameter \"%s\"", name);
}

err args_duration(const struct exchange *x, const char *name, int64_t *ms)
{
    str text = args_text(x, name);
    if (text.n == 0) return NULL;
    return err_wrap(query_parse_duration(text, ms), "invalid parameter \"%s\"", name);
}

err args_count(const struct exchange *x, const char *name, uint64_t *n)
{
    str text = args_text(x, name);
    int64_t v;
    if (text.n == 0) return NULL;
    if (!num_parse_i64(text, &v))
        return err_new(ERR_INVALID, "invalid parameter \"%s\": \"%.*s\" is not a number", name,
                       (int)(text.n < 100 ? text.n : 100), text.p);
    if (v < 0) return err_new(ERR_INVALID, "invalid parameter \"%s\": it must not be negative", name);
    *n = (uint64_t)v;
    return NULL;
}

err args_range(const struct exchange *x, int64_t *start_ms, int64_t *end_ms)
{
    *start_ms = LIMIT_TIME_MIN;
    *end_ms = LIMIT_TIME_MAX;
    TRY(args_time(x, "start", start_ms));
    TRY(args_time(x, "end", end_ms));
    if (*end_ms < *start_ms)
        return err_new(ERR_INVALID, "invalid parameter \"end\": end timestamp must not be before start timestamp");
    return NULL;
}

err args_match(struct exchange *x, bool needed, struct match_sets *out)
{
    *out = (struct match_sets){0};
    uint32_t n;
    str *texts = params_all(&x->params, STR("match[]"), STR("match"), &x->in.arena, &n);
    if (needed && n == 0) return err_new(ERR_INVALID, "no match[] parameter provided");
    return err_wrap(match_sets_parse(texts, n, out), "invalid parameter \"match[]\"");
}
