/*
 * read_client.h: the client's side of remote read for the tests: requests out of parts, and both answers as one text,
 * so that they can be compared with each other and with what was expected:
 *
 *   query 0
 *   {__name__="up"}
 *   1000 3ff0000000000000        a float's bits
 *   2000 hist 00...              a histogram, as canonical bytes without its reset hint
 */
#ifndef VARVE_TESTS_QUERY_READ_CLIENT_H
#define VARVE_TESTS_QUERY_READ_CLIENT_H

#include <stdlib.h>

#include "ingest/remote_hist.h"
#include "query/query.h"
#include "storage/base/alloc.h"
#include "storage/base/crc32c.h"
#include "storage/base/protobuf.h"
#include "storage/base/snappy.h"
#include "tests/unit/query/chunk_reader.h"

/* ---- requests: ask_query, then its matchers and hints, ..., ask_done */

struct ask {
    struct buf message;
    size_t query; /* where the open one starts; 0 = none is */
};

static inline void ask_end(struct ask *a)
{
    if (a->query) pb_end(&a->message, a->query);
    a->query = 0;
}

static inline void ask_query(struct ask *a, int64_t start, int64_t end)
{
    ask_end(a);
    a->query = pb_begin(&a->message, 1);
    pb_put_u64(&a->message, 1, (uint64_t)start);
    pb_put_u64(&a->message, 2, (uint64_t)end);
}

static inline void ask_matcher(struct ask *a, unsigned type, const char *name, const char *value)
{
    size_t start = pb_begin(&a->message, 3);
    if (type) pb_put_u64(&a->message, 1, type);
    pb_put_bytes(&a->message, 2, str_of(name));
    pb_put_bytes(&a->message, 3, str_of(value));
    pb_end(&a->message, start);
}

static inline void ask_hints(struct ask *a, int64_t start, int64_t end)
{
    size_t hints = pb_begin(&a->message, 4);
    pb_put_bytes(&a->message, 2, STR("rate"));
    pb_put_u64(&a->message, 3, (uint64_t)start);
    pb_put_u64(&a->message, 4, (uint64_t)end);
    pb_end(&a->message, hints);
}

/* type < 0: none is named. Frees the parts; NULL with *e set if it is refused. */
static inline struct read_request *ask_done(struct ask *a, int type, err *e)
{
    struct read_request *rq = NULL;
    struct buf packed = {0};
    ask_end(a);
    if (type >= 0) pb_put_u64(&a->message, 2, (uint64_t)type);
    snappy_pack(a->message.data, a->message.n, &packed);
    *e = query_read_parse(buf_as_str(&packed), &rq);
    buf_deinit(&packed);
    buf_deinit(&a->message);
    *a = (struct ask){0};
    return rq;
}

/* ---- answers */

struct told {
    struct arena arena;
    struct buf text;
    int64_t query; /* the last one in the text */
    struct sample_line {
        int64_t t;
        char *text; /* in the arena */
    } lines[4096];
    uint32_t n;
    size_t frames, chunks, longest_frame;
    str series; /* labels of the last frame, in the arena */
};

static inline void told_float(struct told *o, int64_t t, double v)
{
    assert_true(o->n < ARRAY_LEN(o->lines));
    o->lines[o->n++] = (struct sample_line){
        t, (char *)arena_printf(&o->arena, "%lld %016llx\n", (long long)t, (unsigned long long)f64_bits(v)).p};
}

static inline void told_hist(struct told *o, int64_t t, struct hist h)
{
    struct buf blob = {0}, line = {0};
    if (is_stale_nan(h.sum)) h = (struct hist){.is_float = h.is_float, .sum = h.sum};
    h.reset_hint = 0;
    hist_encode(&h, &blob);
    buf_printf(&line, "%lld hist ", (long long)t);
    for (size_t i = 0; i < blob.n; i++)
        buf_printf(&line, "%02x", blob.data[i]);
    buf_printf(&line, "\n");
    assert_true(o->n < ARRAY_LEN(o->lines));
    o->lines[o->n++] = (struct sample_line){t, (char *)arena_str(&o->arena, buf_as_str(&line)).p};
    buf_deinit(&blob);
    buf_deinit(&line);
}

static inline int told_by_time(const void *a, const void *b)
{
    int64_t x = ((const struct sample_line *)a)->t, y = ((const struct sample_line *)b)->t;
    return (x > y) - (x < y);
}

static inline void told_lines(struct told *o)
{
    if (o->n) qsort(o->lines, o->n, sizeof o->lines[0], told_by_time);
    for (uint32_t i = 0; i < o->n; i++)
        buf_printf(&o->text, "%s", o->lines[i].text);
    o->n = 0;
}

static inline void told_query(struct told *o, int64_t query)
{
    for (; o->query < query; o->query++)
        buf_printf(&o->text, "query %lld\n", (long long)o->query + 1);
}

/* The labels in front of a series' other fields; they must be sorted. */
static inline str told_labels(struct told *o, str series)
{
    struct pb m = pb_of(series);
    struct pb_field f;
    struct label v[64];
    struct labels ls = {v, 0};
    while (pb_next(&m, &f)) {
        if (f.number != 1) continue;
        struct pb label = pb_of(f.bytes);
        struct pb_field part;
        while (pb_next(&label, &part))
            *(part.number == 1 ? &v[ls.n].name : &v[ls.n].value) = part.bytes;
        assert_true(ls.n == 0 || str_cmp(v[ls.n - 1].name, v[ls.n].name) < 0);
        ls.n++;
    }
    assert_false(m.bad);
    struct buf text = {0};
    labels_print(&ls, &text);
    str kept = arena_str(&o->arena, buf_as_str(&text));
    buf_deinit(&text);
    return kept;
}

static inline void told_time_series(struct told *o, str series)
{
    struct pb m = pb_of(series);
    struct pb_field f;
    buf_printf(&o->text, "%s\n", told_labels(o, series).p);
    while (pb_next(&m, &f)) {
        if (f.number == 2) {
            struct pb sample = pb_of(f.bytes);
            struct pb_field value = {0}, time = {0};
            assert_true(pb_next(&sample, &value) && value.number == 1 && value.wire == PB_FIXED64);
            assert_true(pb_next(&sample, &time) && time.number == 2 && time.wire == PB_VARINT);
            told_float(o, (int64_t)time.u, f64_from_bits(value.u));
        } else if (f.number == 4) {
            struct hist h;
            int64_t t;
            assert_ok(remote_hist_parse(f.bytes, &o->arena, &h, &t));
            told_hist(o, t, h);
        }
    }
    assert_false(m.bad);
    assert_true(o->n > 0);
    told_lines(o);
}

static inline void told_samples(struct told *o, str packed)
{
    struct buf raw = {.max = 64u << 20};
    assert_ok(snappy_expand(packed.p, packed.n, &raw));
    struct pb m = pb_of(buf_as_str(&raw));
    struct pb_field result, series;
    for (int64_t query = 0; pb_next(&m, &result); query++) {
        struct pb r = pb_of(result.bytes);
        while (pb_next(&r, &series)) {
            told_query(o, query);
            told_time_series(o, series.bytes);
        }
        assert_false(r.bad);
    }
    assert_false(m.bad);
    buf_deinit(&raw);
}

static inline void told_chunk(struct told *o, str bytes)
{
    struct pb m = pb_of(bytes);
    struct pb_field f[5] = {0}, field;
    while (pb_next(&m, &field))
        if (field.number < 5) f[field.number] = field;
    uint32_t before = o->n;
    const uint8_t *data = (const uint8_t *)f[4].bytes.p;
    if (f[3].u == 1) {
        int64_t t[120];
        double v[120];
        uint32_t n = read_xor_chunk(data, f[4].bytes.n, t, v, 120);
        for (uint32_t i = 0; i < n; i++)
            told_float(o, t[i], v[i]);
    } else {
        assert_true(f[3].u == 2 || f[3].u == 3);
        struct hist_chunk *c = calloc(1, sizeof *c);
        read_hist_chunk(data, f[4].bytes.n, f[3].u == 3, &o->arena, c);
        for (uint32_t i = 0; i < c->n; i++)
            told_hist(o, c->t[i], c->h[i]);
        free(c);
    }
    assert_true(o->n > before && (int64_t)f[1].u == o->lines[before].t && (int64_t)f[2].u == o->lines[o->n - 1].t);
    o->chunks++;
}

static inline bool told_frame(void *arg, str bytes)
{
    struct told *o = arg;
    struct crc32c crc;
    crc32c_init(&crc);
    uint64_t n;
    uint32_t sum;
    const uint8_t *p = varint_get((const uint8_t *)bytes.p, (const uint8_t *)bytes.p + bytes.n, &n);
    memcpy(&sum, p, 4);
    str message = {(const char *)p + 4, bytes.n - (size_t)(p - (const uint8_t *)bytes.p) - 4};
    assert_int_equal(n, message.n);
    assert_int_equal(__builtin_bswap32(sum), crc32c_of(&crc, message.p, message.n));
    struct pb m = pb_of(message);
    struct pb_field series, query, f;
    assert_true(pb_next(&m, &series) && series.number == 1 && pb_next(&m, &query) && query.number == 2);
    str labels = told_labels(o, series.bytes);
    bool goes_on = o->query == (int64_t)query.u && str_eq(labels, o->series);
    told_query(o, (int64_t)query.u);
    if (!goes_on) buf_printf(&o->text, "%s\n", labels.p);
    o->series = labels;
    struct pb s = pb_of(series.bytes);
    while (pb_next(&s, &f))
        if (f.number == 2) told_chunk(o, f.bytes);
    assert_true(o->n > 0);
    told_lines(o);
    if (n > o->longest_frame) o->longest_frame = n;
    o->frames++;
    return true;
}

static inline void told_clear(struct told *o)
{
    buf_deinit(&o->text);
    arena_deinit(&o->arena);
    *o = (struct told){.query = -1};
    buf_put(&o->text, "", 0);
}

#endif
