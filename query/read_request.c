/*
 * read_request.c: remote read requests out of bytes.
 *
 *   ReadRequest   1 Query, repeated      2 accepted response types, repeated enum: 0 samples, 1 XOR chunks
 *   Query         1 start int64 ms       2 end int64 ms       3 LabelMatcher, repeated       4 ReadHints
 *   LabelMatcher  1 type enum: 0 =  1 !=  2 =~  3 !~          2 name           3 value
 *   ReadHints     3 start int64 ms       4 end int64 ms       others: step, function, grouping, range
 * Source: prompb/remote.proto and types.proto of Prometheus.
 *
 * Of the hints only the time range is used: it is what the asking selector needs of a query's range, and a
 * range outside the query's is cut to it. All others leave the answer what it would be without them.
 *
 * The whole request is in its arena and `raw`; counts are bounded before anything is allocated for them.
 */
#include "query/read_request.h"

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/protobuf.h"
#include "storage/base/snappy.h"

#define RAW_MAX (16u << 20)

static err malformed(const char *what)
{
    return err_new(ERR_INVALID, "remote read: malformed %s", what);
}

static uint32_t count_fields(str message, uint32_t number)
{
    struct pb m = pb_of(message);
    struct pb_field f;
    uint32_t n = 0;
    while (pb_next(&m, &f))
        n += f.number == number && f.wire == PB_BYTES;
    return n;
}

/* ---- matchers ------------------------------------------------------------------------------------------------ */

static err parse_matcher(struct read_request *rq, str bytes, struct matcher *out)
{
    struct pb m = pb_of(bytes);
    struct pb_field f;
    uint64_t type = 0;
    str name = STR(""), value = STR("");
    while (pb_next(&m, &f)) {
        if (f.number == 1 && f.wire == PB_VARINT) type = f.u;
        if (f.number == 2 && f.wire == PB_BYTES) name = f.bytes;
        if (f.number == 3 && f.wire == PB_BYTES) value = f.bytes;
    }
    if (m.bad) return malformed("LabelMatcher");
    if (type > MATCH_NRE)
        return err_new(ERR_INVALID, "remote read: unknown matcher type %llu; 0 to 3 are =, !=, =~, !~",
                       (unsigned long long)type);
    if (name.n == 0 || !utf8_valid(name) || !utf8_valid(value))
        return err_new(ERR_INVALID, "remote read: a matcher's label name is empty, or its name or value is not UTF-8");
    rq->n_regexes += type >= MATCH_RE;
    if (rq->n_regexes > READ_REGEXES_MAX)
        return err_new(ERR_INVALID, "remote read: more than %d regular expressions in one request", READ_REGEXES_MAX);
    return err_wrap(matcher_init(out, (enum match_op)type, name, value), "remote read: matcher of \"%.*s\"",
                    (int)(name.n < 100 ? name.n : 100), name.p);
}

static err parse_matchers(struct read_request *rq, str query, struct read_query *q)
{
    uint32_t n = count_fields(query, 3);
    if (n == 0)
        return err_new(ERR_INVALID, "remote read: query without matchers; {__name__=~\".+\"} selects everything");
    rq->n_matchers += n;
    if (n > READ_MATCHERS_MAX || rq->n_matchers > READ_MATCHERS_MAX)
        return err_new(ERR_INVALID, "remote read: more than %d matchers in one request", READ_MATCHERS_MAX);
    q->m = arena_zalloc(&rq->arena, n * sizeof *q->m);
    struct pb m = pb_of(query);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        if (f.number != 3 || f.wire != PB_BYTES) continue;
        TRY(parse_matcher(rq, f.bytes, &q->m[q->n]));
        q->n++;
    }
    return NULL;
}

/* ---- queries ------------------------------------------------------------------------------------------------- */

struct range {
    int64_t start, end;
};

/* Fields `first` and `first + 1`: start and end. */
static err parse_range(str message, uint32_t first, struct range *out)
{
    struct pb m = pb_of(message);
    struct pb_field f;
    *out = (struct range){0};
    while (pb_next(&m, &f)) {
        if (f.number == first && f.wire == PB_VARINT) out->start = (int64_t)f.u;
        if (f.number == first + 1 && f.wire == PB_VARINT) out->end = (int64_t)f.u;
    }
    return m.bad ? malformed("Query or ReadHints") : NULL;
}

static void cut(struct read_query *q, struct range to)
{
    if (to.start > q->t_min) q->t_min = to.start;
    if (to.end < q->t_max) q->t_max = to.end;
}

static err use_hints(str query, struct read_query *q)
{
    struct pb m = pb_of(query);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        struct range hint;
        if (f.number != 4 || f.wire != PB_BYTES) continue;
        TRY(parse_range(f.bytes, 3, &hint));
        bool given = (hint.start != 0 || hint.end != 0) && hint.start <= hint.end;
        if (given) cut(q, hint);
    }
    return NULL;
}

static err parse_query(struct read_request *rq, str bytes, struct read_query *q)
{
    struct range range;
    TRY(parse_range(bytes, 1, &range));
    *q = (struct read_query){.t_min = LIMIT_TIME_MIN, .t_max = LIMIT_TIME_MAX};
    cut(q, range);
    TRY(use_hints(bytes, q));
    return parse_matchers(rq, bytes, q);
}

/* ---- response types ------------------------------------------------------------------------------------------ */

struct types {
    uint32_t n;
    bool found; /* the first that we know */
    enum query_read_type type;
};

static void take_type(struct types *t, uint64_t type)
{
    t->n++;
    if (t->found || type > QUERY_READ_CHUNKS) return;
    t->found = true;
    t->type = (enum query_read_type)type;
}

/* Repeated enums come packed or one a field. False if malformed. */
static bool take_types(struct types *t, const struct pb_field *f)
{
    if (f->wire == PB_VARINT) take_type(t, f->u);
    if (f->wire != PB_BYTES) return f->wire == PB_VARINT;
    const uint8_t *p = (const uint8_t *)f->bytes.p, *end = p + f->bytes.n;
    while (p < end) {
        uint64_t u;
        if ((p = varint_get(p, end, &u)) == NULL) return false;
        take_type(t, u);
    }
    return true;
}

static err parse_request(struct read_request *rq)
{
    str message = buf_as_str(&rq->raw);
    uint32_t n = count_fields(message, 1);
    if (n > READ_QUERIES_MAX)
        return err_new(ERR_INVALID, "remote read: %u queries in one request, the limit is %d", n, READ_QUERIES_MAX);
    rq->queries = arena_zalloc(&rq->arena, (n + 1) * sizeof *rq->queries);
    struct types types = {0};
    struct pb m = pb_of(message);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        if (f.number == 2 && !take_types(&types, &f)) return malformed("list of response types");
        if (f.number != 1 || f.wire != PB_BYTES) continue;
        TRY(parse_query(rq, f.bytes, &rq->queries[rq->n++]));
    }
    if (m.bad) return malformed("ReadRequest");
    if (types.n > 0 && !types.found)
        return err_new(ERR_INVALID, "remote read: none of the response types asked for is known here; known are 0 "
                                    "(SAMPLES) and 1 (STREAMED_XOR_CHUNKS)");
    rq->type = types.type;
    return NULL;
}

err query_read_parse(str body, struct read_request **out)
{
    struct read_request *rq = mem_zalloc(sizeof *rq);
    rq->raw.max = RAW_MAX;
    err e = err_wrap(snappy_expand(body.p, body.n, &rq->raw), "remote read");
    if (e == NULL) e = parse_request(rq);
    if (e != NULL) {
        query_read_destroy(rq);
        return e;
    }
    *out = rq;
    return NULL;
}

enum query_read_type query_read_type(const struct read_request *rq)
{
    return rq->type;
}

void query_read_destroy(struct read_request *rq)
{
    if (rq == NULL) return;
    for (uint32_t i = 0; i < rq->n; i++)
        for (uint32_t k = 0; k < rq->queries[i].n; k++)
            matcher_deinit(&rq->queries[i].m[k]);
    arena_deinit(&rq->arena);
    buf_deinit(&rq->raw);
    mem_free(rq);
}
