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

/* name=value → a label. */
static err parse_label(str text, struct label *out)
{
    const char *equals = text.n > 0 ? memchr(text.p, '=', text.n) : NULL;
    if (equals == NULL || equals == text.p)
        return err_new(ERR_INVALID, "invalid parameter \"extra_label\": \"%.*s\" is not name=value",
                       (int)(text.n < 100 ? text.n : 100), text.p);
    size_t n = (size_t)(equals - text.p);
    *out = (struct label){{text.p, n}, {equals + 1, text.n - n - 1}};
    return NULL;
}

/* Those of the query string if it has some, else the form's. */
static err extra_filters(struct exchange *x, struct match_extra *extra)
{
    str name = STR("extra_filters[]"), alias = STR("extra_filters");
    struct params url = {0};
    TRY(params_parse(&url, x->query, &x->in.arena));
    extra->filters = params_all(&url, name, alias, &x->in.arena, &extra->n_filters);
    if (extra->n_filters == 0) extra->filters = params_all(&x->params, name, alias, &x->in.arena, &extra->n_filters);
    return NULL;
}

static bool has_extra(const struct exchange *x)
{
    return args_text(x, "extra_label").n > 0 || args_text(x, "extra_filters[]").n > 0 ||
           args_text(x, "extra_filters").n > 0;
}

static err read_extra(struct exchange *x, struct match_extra *extra)
{
    *extra = (struct match_extra){0};
    if (!has_extra(x)) return NULL;
    uint32_t n;
    str *texts = params_all(&x->params, STR("extra_label"), STR("extra_label"), &x->in.arena, &n);
    struct label *labels = arena_alloc(&x->in.arena, (n + 1) * sizeof *labels);
    for (uint32_t i = 0; i < n; i++)
        TRY(parse_label(texts[i], &labels[i]));
    extra->labels = labels;
    extra->n_labels = n;
    return extra_filters(x, extra);
}

err args_extra(struct exchange *x, struct match_sets *out)
{
    struct match_extra extra;
    *out = (struct match_sets){0};
    TRY(read_extra(x, &extra));
    return extra.n_labels + extra.n_filters > 0 ? match_sets_parse_confined(NULL, 0, &extra, out) : NULL;
}

err args_no_extra(const struct exchange *x)
{
    if (!has_extra(x)) return NULL;
    return err_new(ERR_INVALID, "this path can't be confined by extra_label or extra_filters[]");
}

err args_match(struct exchange *x, bool needed, struct match_sets *out)
{
    *out = (struct match_sets){0};
    struct match_extra extra;
    uint32_t n;
    str *texts = params_all(&x->params, STR("match[]"), STR("match"), &x->in.arena, &n);
    if (needed && n == 0) return err_new(ERR_INVALID, "no match[] parameter provided");
    TRY(read_extra(x, &extra));
    return match_sets_parse_confined(texts, n, &extra, out);
}
