/*
 * federate_protobuf.c: a federation answer as delimited protobuf, the one format that carries native histograms.
 *
 *   message       varint length, MetricFamily; one a family
 *   MetricFamily  1 name   3 type (3 untyped, 4 histogram, 5 gauge histogram)   4 Metric, repeated
 *   Metric        1 LabelPair {1 name, 2 value}   5 Untyped {1 double}   6 timestamp ms   7 Histogram
 *   Histogram     2 sum   4 count   5 schema   6 zero threshold   8 zero count
 *                 9 negative spans {1 offset, 2 length}   11 negative counts   12 and 14: positive
 * Source: metrics.proto of the Prometheus client model. Counts go as floats, as Prometheus federates them.
 * Histograms with custom bounds have no place in the message and are left out.
 */
#include "query/federate.h"
#include "storage/base/protobuf.h"

enum { TYPE_UNTYPED = 3, TYPE_HISTOGRAM = 4, TYPE_GAUGE_HISTOGRAM = 5 };

static void put_label(str name, str value, struct buf *out)
{
    size_t start = pb_begin(out, 1);
    pb_put_bytes(out, 1, name);
    pb_put_bytes(out, 2, value);
    pb_end(out, start);
}

static void put_labels(const struct labels *ls, bool utf8, struct arena *a, struct buf *out)
{
    for (uint32_t i = 0; i < ls->n; i++)
        if (!str_eq(ls->v[i].name, LABEL_NAME)) put_label(federate_name(ls->v[i].name, utf8, a), ls->v[i].value, out);
    if (labels_get(ls, STR("instance")).n == 0) put_label(STR("instance"), (str){"", 0}, out);
}

static void put_span(uint32_t number, struct hist_span span, struct buf *out)
{
    size_t start = pb_begin(out, number);
    pb_put_sint(out, 1, span.offset);
    pb_put_u64(out, 2, span.length);
    pb_end(out, start);
}

/* Without any span a reader could not tell it from a classic histogram: an empty one says so. */
static void put_hist(const struct hist *h, struct buf *out)
{
    size_t start = pb_begin(out, 7);
    pb_put_double(out, 2, h->sum);
    pb_put_double(out, 4, h->count);
    pb_put_sint(out, 5, h->schema);
    pb_put_double(out, 6, h->zero_threshold);
    pb_put_double(out, 8, h->zero_count);
    for (uint32_t i = 0; i < h->n_negative_spans; i++)
        put_span(9, h->negative_spans[i], out);
    for (uint32_t i = 0; i < h->n_negative; i++)
        pb_put_double(out, 11, h->negative[i]);
    for (uint32_t i = 0; i < h->n_positive_spans; i++)
        put_span(12, h->positive_spans[i], out);
    for (uint32_t i = 0; i < h->n_positive; i++)
        pb_put_double(out, 14, h->positive[i]);
    if (h->n_negative_spans + h->n_positive_spans == 0) put_span(12, (struct hist_span){0}, out);
    pb_end(out, start);
}

/* h: NULL for a float. */
static void put_metric(const struct federated *row, const struct hist *h, bool utf8, struct arena *a, struct buf *out)
{
    size_t start = pb_begin(out, 4);
    put_labels(&row->labels, utf8, a, out);
    if (h != NULL) {
        put_hist(h, out);
    } else {
        size_t untyped = pb_begin(out, 5);
        pb_put_double(out, 1, row->v);
        pb_end(out, untyped);
    }
    pb_put_u64(out, 6, (uint64_t)row->t);
    pb_end(out, start);
}

static err put_row(const struct federated *row, bool utf8, struct arena *a, uint64_t *type, struct buf *family)
{
    struct hist h;
    *type = TYPE_UNTYPED;
    if (row->hist.n == 0) {
        put_metric(row, NULL, utf8, a, family);
        return NULL;
    }
    TRY(hist_decode(row->hist, a, &h));
    *type = h.reset_hint == HIST_RESET_GAUGE ? TYPE_GAUGE_HISTOGRAM : TYPE_HISTOGRAM;
    if (h.schema != HIST_SCHEMA_CUSTOM) put_metric(row, &h, utf8, a, family);
    return NULL;
}

/* The rows of the family that begins at k; *next is the first that is no longer of it. */
static err put_family(const struct federated *rows, size_t n, size_t k, bool utf8, struct buf *family, size_t *next)
{
    struct arena arena = {0};
    uint64_t type = TYPE_UNTYPED;
    err e = NULL;
    pb_put_bytes(family, 1, federate_name(rows[k].name, utf8, &arena));
    size_t named = family->n;
    for (*next = k; *next < n && (*next == k || !federate_begins_family(rows, *next)) && e == NULL; ++*next) {
        arena_reset(&arena);
        e = put_row(&rows[*next], utf8, &arena, &type, family);
    }
    if (family->n == named)
        buf_clear(family); /* nothing of it could be written */
    else
        pb_put_u64(family, 3, type);
    arena_deinit(&arena);
    return e;
}

err federate_put_protobuf(const struct federated *rows, size_t n, bool utf8, struct buf *out)
{
    struct buf family = {0};
    err e = NULL;
    for (size_t k = 0; k < n && e == NULL;) {
        buf_clear(&family);
        e = put_family(rows, n, k, utf8, &family, &k);
        if (family.n == 0) continue;
        buf_varint(out, family.n);
        buf_put(out, family.data, family.n);
    }
    buf_deinit(&family);
    return e;
}
