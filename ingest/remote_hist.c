/*
 * remote_hist.c: native histograms as remote write carries them.
 *
 *   1 count_int uint64 | 2 count_float double      8 negative_spans    11 positive_spans
 *   3 sum double          4 schema sint32           9 negative_deltas   12 positive_deltas   sint64
 *   5 zero_threshold      6 zero_count_int         10 negative_counts  13 positive_counts   double
 *   7 zero_count_float   14 reset_hint enum        15 timestamp int64  16 custom_values     double
 *   span: 1 offset sint32, 2 length uint32
 * Source: prompb/types.proto of Prometheus, message Histogram.
 *
 * Integer histograms send the first bucket and then differences; both kinds become absolute counts.
 * Arrays are in the caller's arena; a message has at most as many elements as bytes, and its bytes
 * are bounded before anything is allocated. Stateless; any thread.
 */
#include "ingest/remote_hist.h"

#include "storage/base/limits.h"
#include "storage/base/protobuf.h"

#define MESSAGE_MAX (2u * LIMIT_HIST_BLOB)

/* One side's buckets while they are read. */
struct side {
    struct hist_span *spans;
    int64_t *deltas;
    double *counts;
    uint32_t n_spans, n_deltas, n_counts;
};

static bool take_span(const struct pb_field *f, struct side *s, uint32_t max)
{
    struct pb m = pb_of(f->bytes);
    struct pb_field field;
    struct hist_span span = {0};
    if (f->wire != PB_BYTES || s->n_spans == max) return false;
    while (pb_next(&m, &field)) {
        if (field.wire != PB_VARINT) continue;
        if (field.number == 1) span.offset = (int32_t)unzigzag(field.u);
        if (field.number == 2) span.length = (uint32_t)field.u;
    }
    s->spans[s->n_spans++] = span;
    return !m.bad;
}

static void side_init(struct side *s, struct arena *a, size_t max)
{
    *s = (struct side){
        .spans = arena_alloc(a, max * sizeof s->spans[0]),
        .deltas = arena_alloc(a, max * sizeof s->deltas[0]),
        .counts = arena_alloc(a, max * sizeof s->counts[0]),
    };
}

/* What the buckets hold in absolute numbers: given so, or the running sum of the differences. */
static void side_finish(struct side *s, bool is_float)
{
    if (is_float) return;
    int64_t sum = 0;
    s->n_counts = s->n_deltas;
    for (uint32_t i = 0; i < s->n_deltas; i++) {
        sum = (int64_t)((uint64_t)sum + (uint64_t)s->deltas[i]); /* hostile sums wrap, then fail validation */
        s->counts[i] = (double)sum;
    }
}

struct reading {
    struct hist *h;
    struct side negative, positive;
    uint32_t max;
    int64_t t;
};

/* Scalars. False if the field is none of them. */
static bool take_scalar(struct reading *r, const struct pb_field *f)
{
    struct hist *h = r->h;
    bool varint = f->wire == PB_VARINT, fixed = f->wire == PB_FIXED64;
    double d = f64_from_bits(f->u);
    switch (f->number) {
    case 1:
        if (varint) h->count = (double)f->u;
        return true;
    case 2:
        if (fixed) h->count = d;
        h->is_float = true;
        return true;
    case 3:
        if (fixed) h->sum = d;
        return true;
    case 4:
        if (varint) h->schema = (int32_t)unzigzag(f->u);
        return true;
    case 5:
        if (fixed) h->zero_threshold = d;
        return true;
    case 6:
        if (varint) h->zero_count = (double)f->u;
        return true;
    case 7:
        if (fixed) h->zero_count = d;
        return true;
    case 14:
        h->reset_hint = varint && f->u <= HIST_RESET_GAUGE ? (uint8_t)f->u : HIST_RESET_UNKNOWN;
        return true;
    case 15:
        r->t = (int64_t)f->u;
        return true;
    default:
        return false;
    }
}

/* Spans, deltas and counts. False if malformed. */
static bool take_array(struct reading *r, const struct pb_field *f)
{
    struct side *negative = &r->negative, *positive = &r->positive;
    switch (f->number) {
    case 8:
        return take_span(f, negative, r->max);
    case 9:
        return pb_sint64s(f, negative->deltas, r->max, &negative->n_deltas);
    case 10:
        return pb_doubles(f, negative->counts, r->max, &negative->n_counts);
    case 11:
        return take_span(f, positive, r->max);
    case 12:
        return pb_sint64s(f, positive->deltas, r->max, &positive->n_deltas);
    case 13:
        return pb_doubles(f, positive->counts, r->max, &positive->n_counts);
    case 16:
        return pb_doubles(f, r->h->custom, r->max, &r->h->n_custom);
    default:
        return true; /* newer fields */
    }
}

/* Whole numbers add up, or the sender has a fault; observations of NaN are in no bucket. Floats may be off by rounding.
 */
static err check_count(const struct hist *h)
{
    double in_buckets = h->zero_count;
    for (uint32_t i = 0; i < h->n_negative; i++)
        in_buckets += h->negative[i];
    for (uint32_t i = 0; i < h->n_positive; i++)
        in_buckets += h->positive[i];
    bool adds_up = h->sum != h->sum ? in_buckets <= h->count : in_buckets == h->count;
    if (h->is_float || adds_up || is_stale_nan(h->sum)) return NULL;
    return err_new(ERR_INVALID, "native histogram has %.0f observations in its buckets but a count of %.0f", in_buckets,
                   h->count);
}

err remote_hist_parse(str bytes, struct arena *a, struct hist *h, int64_t *t)
{
    if (bytes.n > MESSAGE_MAX)
        return err_new(ERR_INVALID, "native histogram of %zu bytes, the limit is %u", bytes.n, MESSAGE_MAX);
    struct reading r = {.h = h, .max = (uint32_t)bytes.n};
    *h = (struct hist){.custom = arena_alloc(a, r.max * sizeof h->custom[0])};
    side_init(&r.negative, a, r.max);
    side_init(&r.positive, a, r.max);
    struct pb m = pb_of(bytes);
    struct pb_field f;
    while (pb_next(&m, &f))
        if (!take_scalar(&r, &f) && !take_array(&r, &f)) m.bad = true;
    *t = r.t;
    if (m.bad) return err_new(ERR_INVALID, "native histogram is malformed");
    side_finish(&r.negative, h->is_float);
    side_finish(&r.positive, h->is_float);
    h->negative_spans = r.negative.spans;
    h->n_negative_spans = r.negative.n_spans;
    h->negative = r.negative.counts;
    h->n_negative = r.negative.n_counts;
    h->positive_spans = r.positive.spans;
    h->n_positive_spans = r.positive.n_spans;
    h->positive = r.positive.counts;
    h->n_positive = r.positive.n_counts;
    TRY(hist_validate(h));
    return check_count(h);
}
