/*
 * read_samples.c: the answer of remote read in one piece.
 *
 *   ReadResponse  1 QueryResult, one a query, in their order
 *   QueryResult   1 TimeSeries, repeated
 *   TimeSeries    1 Label, repeated        2 Sample, repeated        4 Histogram, repeated
 *   Sample        1 value double           2 timestamp int64 ms
 *   Histogram     as remote write has it: ingest/remote_hist.c draws it
 * Source: prompb/remote.proto and types.proto of Prometheus. The whole is one snappy block, which says first how
 * long it is: so it can't be streamed, and its size counts against the query's memory. Zeros are written too: a
 * missing value would read as +0 where -0 was meant.
 *
 * Series come by labels, samples raw: stale markers are among them. Any thread; one call, one thread.
 */
#include "query/engine.h"
#include "query/read_series.h"
#include "storage/base/protobuf.h"
#include "storage/base/snappy.h"
#include "storage/base/varint.h"

struct answer_samples {
    struct budget *budget;
    struct buf raw;
    size_t held; /* bytes told to the budget */
    struct arena scratch;
    uint64_t n; /* samples so far, of all series */
};

#define SAMPLE_MAX (2 + 9 + 1 + VARINT_MAX) /* bytes of one Sample within a series */

static uint8_t *put_sample(uint8_t *to, int64_t t, double v)
{
    uint8_t *p = to + 2;
    uint64_t bits = f64_bits(v);
    *p++ = 1 << 3 | PB_FIXED64;
    memcpy(p, &bits, sizeof bits);
    p += sizeof bits;
    *p++ = 2 << 3 | PB_VARINT;
    p = varint_put(p, (uint64_t)t);
    to[0] = 2 << 3 | PB_BYTES;
    to[1] = (uint8_t)(p - to - 2);
    return p;
}

/* The floats from i on, up to the next histogram, which is returned. */
static size_t put_floats(struct buf *out, const struct samples *s, size_t i)
{
    uint8_t *start = buf_reserve(out, (s->n - i) * SAMPLE_MAX), *p = start;
    if (start == NULL) return s->n;
    for (; i < s->n && (s->hist == NULL || s->hist[i].n == 0); i++)
        p = put_sample(p, s->t[i], s->v[i]);
    out->n += (size_t)(p - start);
    return i;
}

static void put_spans(struct buf *out, uint32_t number, const struct hist_span *spans, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++) {
        size_t start = pb_begin(out, number);
        pb_put_sint(out, 1, spans[i].offset);
        pb_put_u64(out, 2, spans[i].length);
        pb_end(out, start);
    }
}

static void put_doubles(struct buf *out, uint32_t number, const double *v, uint32_t n)
{
    if (n > 0) pb_put_bytes(out, number, (str){(const char *)v, n * sizeof *v});
}

/* Differences of neighbours, packed. */
static void put_deltas(struct buf *out, uint32_t number, const double *counts, uint32_t n)
{
    int64_t before = 0;
    if (n == 0) return;
    size_t start = pb_begin(out, number);
    for (uint32_t i = 0; i < n; i++) {
        buf_zigzag(out, (int64_t)counts[i] - before);
        before = (int64_t)counts[i];
    }
    pb_end(out, start);
}

static void put_counts(struct buf *out, const struct hist *h)
{
    if (h->is_float) {
        pb_put_double(out, 2, h->count);
        pb_put_double(out, 7, h->zero_count);
        put_doubles(out, 10, h->negative, h->n_negative);
        put_doubles(out, 13, h->positive, h->n_positive);
        return;
    }
    pb_put_u64(out, 1, (uint64_t)h->count);
    pb_put_u64(out, 6, (uint64_t)h->zero_count);
    put_deltas(out, 9, h->negative, h->n_negative);
    put_deltas(out, 12, h->positive, h->n_positive);
}

static void put_hist(struct buf *out, int64_t t, const struct hist *h)
{
    size_t start = pb_begin(out, 4);
    put_counts(out, h);
    pb_put_double(out, 3, h->sum);
    pb_put_sint(out, 4, h->schema);
    pb_put_double(out, 5, h->zero_threshold);
    put_spans(out, 8, h->negative_spans, h->n_negative_spans);
    put_spans(out, 11, h->positive_spans, h->n_positive_spans);
    pb_put_u64(out, 14, h->reset_hint);
    pb_put_u64(out, 15, (uint64_t)t);
    put_doubles(out, 16, h->custom, h->n_custom);
    pb_end(out, start);
}

/* Samples are held until the answer is sent, and so is the memory of their bytes. */
static err hold(struct answer_samples *a, uint64_t samples)
{
    size_t more = a->raw.cap - a->held;
    a->held += more;
    a->n += samples;
    return budget_hold(a->budget, samples, more);
}

static err add_samples(void *arg, const struct samples *s)
{
    struct answer_samples *a = arg;
    for (size_t i = 0; i < s->n; i++) {
        i = put_floats(&a->raw, s, i);
        if (i == s->n) break;
        struct hist h;
        arena_reset(&a->scratch);
        TRY(hist_decode(s->hist[i], &a->scratch, &h));
        put_hist(&a->raw, s->t[i], &h);
        TRY(hold(a, 0)); /* they are big */
    }
    return hold(a, s->n);
}

/* One series, unless it has no samples in the range. */
static err add_series(struct answer_samples *a, struct read_series *s, size_t k)
{
    size_t before = a->raw.n;
    uint64_t samples = a->n;
    size_t start = pb_begin(&a->raw, 1);
    read_series_put_labels(&s->v[k].labels, &a->raw);
    TRY(read_series_samples(s, k, add_samples, a));
    if (a->n == samples)
        a->raw.n = before;
    else
        pb_end(&a->raw, start);
    return NULL;
}

static err add_query(struct answer_samples *a, struct db *db, const struct read_query *q)
{
    struct read_series s;
    err e = read_series_open(db, q, a->budget, &s);
    size_t start = pb_begin(&a->raw, 1);
    for (size_t k = 0; k < s.n && e == NULL; k++)
        e = add_series(a, &s, k);
    pb_end(&a->raw, start);
    read_series_deinit(&s);
    return e;
}

static err pack(struct answer_samples *a, struct buf *out)
{
    if (a->raw.n > UINT32_MAX) return err_new(ERR_LIMIT, "remote read: the answer is longer than 4 GiB; ask for less");
    TRY(budget_hold(a->budget, 0, SNAPPY_PACKED_MAX(a->raw.n)));
    snappy_pack(a->raw.data, a->raw.n, out);
    return buf_status(out, "the answer");
}

err query_read_samples(struct query_engine *q, const struct read_request *rq, const atomic_bool *canceled,
                       struct buf *out)
{
    struct budget budget;
    struct answer_samples a = {.budget = &budget};
    err e = NULL;
    budget_init(&budget, q->o.timeout_ms, q->o.max_samples, q->o.max_memory, canceled);
    for (uint32_t i = 0; i < rq->n && e == NULL; i++)
        e = add_query(&a, q->o.db, &rq->queries[i]);
    if (e == NULL) e = pack(&a, out);
    buf_deinit(&a.raw);
    arena_deinit(&a.scratch);
    counter_inc(q->reads);
    counter_add(q->samples, atomic_load(&budget.read));
    return e;
}
