/*
 * remote_write.c: Prometheus remote write 1.0: bytes of a WriteRequest to rows.
 *
 *   WriteRequest   1 timeseries   3 metadata
 *   TimeSeries     1 labels   2 samples   3 exemplars   4 histograms
 *   Label          1 name     2 value
 *   Sample         1 value (double)   2 timestamp (int64, ms)
 *   Exemplar       1 labels   2 value (double)   3 timestamp (int64, ms; 0: none)
 *   MetricMetadata 1 type   2 metric family name   4 help   5 unit
 * Source: prompb/remote.proto and types.proto of Prometheus.
 *
 * The hot path never looks into a label: senders write the labels of a series first and in the same
 * order each time, so the hash of those bytes, as they are, is the series' alias, and only storage
 * asking for it (remote_write_labels) has them parsed. A series in any other order (labels after
 * samples, histograms, exemplars, unknown fields) goes the general way: its label fields are gathered
 * in the request's arena, which gives them the same alias as if they had come first.
 *
 * Rows point into the body: it stays until the last flush. Stateless; one request, one thread.
 */
#include "ingest/remote_write.h"

#include "ingest/remote_hist.h"
#include "storage/base/limits.h"
#include "storage/base/protobuf.h"

enum {
    TAG_SERIES = 1 << 3 | PB_BYTES,
    TAG_LABEL = 1 << 3 | PB_BYTES,
    TAG_SAMPLE = 2 << 3 | PB_BYTES,
    TAG_VALUE = 1 << 3 | PB_FIXED64,
    TAG_TIME = 2 << 3, /* a varint: wire type 0 */
};

struct decoding {
    struct admit *a;
    const uint8_t *start, *end; /* the body */
};

/* ---- failure ------------------------------------------------------------------------------------ */

static void malformed(struct decoding *d, const uint8_t *at, const char *what)
{
    if (d->a->failure == NULL)
        d->a->failure = err_new(ERR_INVALID, "remote write: malformed %s at byte %zu of %zu", what,
                                (size_t)(at - d->start), (size_t)(d->end - d->start));
}

/* ---- labels ------------------------------------------------------------------------------------- */

static err parse_label(str bytes, struct label *l)
{
    struct pb m = pb_of(bytes);
    struct pb_field f;
    *l = (struct label){STR(""), STR("")};
    while (pb_next(&m, &f)) {
        if (f.wire != PB_BYTES) continue;
        if (f.number == 1) l->name = f.bytes;
        if (f.number == 2) l->value = f.bytes;
    }
    return m.bad ? err_new(ERR_INVALID, "remote write: malformed label") : NULL;
}

err remote_write_labels(str raw, struct arena *a, struct labels *out)
{
    enum { PAIRS_MAX = 4 * LIMIT_LABELS }; /* more than storage takes; empty values don't count there */
    struct pb m = pb_of(raw);
    struct pb_field f;
    uint32_t n = 0, max = 0;
    while (max < PAIRS_MAX && pb_next(&m, &f))
        max++;
    if (max == PAIRS_MAX) return err_new(ERR_INVALID, "series has %d labels or more", PAIRS_MAX);
    struct label *v = arena_alloc(a, max * sizeof v[0]);
    m = pb_of(raw);
    while (pb_next(&m, &f)) {
        if (f.number != 1 || f.wire != PB_BYTES) return err_new(ERR_INVALID, "remote write: malformed labels");
        TRY(parse_label(f.bytes, &v[n++]));
    }
    if (m.bad) return err_new(ERR_INVALID, "remote write: malformed labels");
    *out = (struct labels){v, n};
    return NULL;
}

/* ---- the hot path ------------------------------------------------------------------------------- */

/* A varint of at most 8 bytes, all at once: gathers its 7-bit groups pairwise. NULL: longer, or the body ends. */
static inline const uint8_t *wide_varint(const uint8_t *p, const uint8_t *body_end, uint64_t *v)
{
    uint64_t w;
    if (body_end - p < 8) return NULL;
    memcpy(&w, p, 8);
    uint64_t stops = ~w & UINT64_C(0x8080808080808080);
    if (stops == 0) return NULL;
    w &= stops ^ (stops - 1); /* up to and with the byte that ends it */
    w = (w & UINT64_C(0x007f007f007f007f)) | (w & UINT64_C(0x7f007f007f007f00)) >> 1;
    w = (w & UINT64_C(0x00003fff00003fff)) | (w & UINT64_C(0x3fff00003fff0000)) >> 2;
    *v = (w & UINT64_C(0x0fffffff)) | (w & UINT64_C(0x0fffffff00000000)) >> 4;
    return p + (__builtin_ctzll(stops) >> 3) + 1;
}

/* The fields of a sample in their usual order, each of which may be left out. False if it is not that. */
static inline bool plain_sample(const uint8_t *p, const uint8_t *end, const uint8_t *body_end, int64_t *t, double *v)
{
    uint64_t u = 0;
    *v = 0;
    if (end - p >= 9 && *p == TAG_VALUE) {
        memcpy(v, p + 1, 8);
        p += 9;
    }
    if (p < end && *p == TAG_TIME) {
        const uint8_t *after = wide_varint(p + 1, body_end, &u);
        if (after == NULL) after = varint_get(p + 1, end, &u);
        if (after == NULL) return false;
        p = after;
    }
    *t = (int64_t)u;
    return p == end;
}

/* A series of labels, then samples, and nothing else. False, with nothing pushed, if it is not that. */
static bool plain_series(struct decoding *d, const uint8_t *p, const uint8_t *end)
{
    const uint8_t *raw = p;
    uint64_t n;
    while (p < end && *p == TAG_LABEL) {
        p = varint_get(p + 1, end, &n);
        if (p == NULL || n > (uint64_t)(end - p)) return false;
        p += n;
    }
    size_t samples_max = (size_t)(end - p) / 2; /* an empty sample takes two bytes */
    if (p == end || samples_max > ROWS_SAMPLES_MAX || !admit_room(d->a, samples_max)) return false;
    struct rows *rows = d->a->rows;
    uint32_t first = rows->n_samples;
    size_t raw_bytes = (size_t)(p - raw);
    rows_series(rows, admit_alias(d->a, raw, raw_bytes), (str){(const char *)raw, raw_bytes}, 0);
    while (p < end && *p == TAG_SAMPLE) {
        int64_t t;
        double v;
        p = varint_get(p + 1, end, &n);
        if (p == NULL || n > (uint64_t)(end - p) || !plain_sample(p, p + n, d->end, &t, &v)) break;
        rows_sample(rows, t, v);
        p += n;
    }
    if (__builtin_expect(p == end, 1)) return true;
    rows->n_samples = first;
    rows->n_series--;
    return false;
}

/* ---- the general way ---------------------------------------------------------------------------- */

/* The label fields of a series, tags and all, one after the other: as they are if nothing is between them. */
static bool gather_labels(struct decoding *d, str series, str *raw)
{
    struct pb m = pb_of(series);
    struct pb_field f;
    const uint8_t *first = NULL, *last = NULL;
    size_t bytes = 0;
    for (const uint8_t *from = m.p; pb_next(&m, &f); from = m.p) {
        if (f.number != 1) continue;
        if (first == NULL) first = from;
        last = m.p;
        bytes += (size_t)(m.p - from);
    }
    if (m.bad) {
        malformed(d, m.p, "time series");
        return false;
    }
    *raw = bytes ? (str){(const char *)first, bytes} : STR("");
    if (bytes == 0 || bytes == (size_t)(last - first)) return true;
    char *to = arena_alloc(d->a->arena, bytes);
    raw->p = to;
    m = pb_of(series);
    for (const uint8_t *from = m.p; pb_next(&m, &f); from = m.p) {
        if (f.number != 1) continue;
        memcpy(to, from, (size_t)(m.p - from));
        to += m.p - from;
    }
    return true;
}

static bool general_sample(struct decoding *d, str bytes, int64_t *t, double *v)
{
    struct pb m = pb_of(bytes);
    struct pb_field f;
    *t = 0;
    *v = 0;
    while (pb_next(&m, &f)) {
        if (f.number == 1 && f.wire == PB_FIXED64) *v = f64_from_bits(f.u);
        if (f.number == 2 && f.wire == PB_VARINT) *t = (int64_t)f.u;
    }
    if (m.bad) malformed(d, m.p, "sample");
    return !m.bad;
}

/* A refused histogram is counted and named; the series goes on. */
static void push_hist(struct decoding *d, str raw, str bytes)
{
    struct admit *a = d->a;
    struct arena_mark mark = arena_mark(a->arena);
    struct buf blob = {0};
    struct hist h;
    int64_t t;
    err e = remote_hist_parse(bytes, a->arena, &h, &t);
    if (e == NULL) {
        hist_encode(&h, &blob);
        rows_hist(a->rows, t, h.sum, buf_as_str(&blob));
    }
    buf_deinit(&blob);
    arena_rewind(a->arena, mark);
    if (e == NULL) return;
    str series = a->n_errors < ADMIT_ERRORS_SHOWN ? admit_series_text(a, raw) : STR("");
    admit_reject(a, REJECT_HISTOGRAM, 1, 0, "series %.*s: %s", STR_ARG(series), err_message(e));
    err_free(e);
}

/* Pairs as labels have them: field 1 of an exemplar, too. */
static bool parse_exemplar(struct decoding *d, str bytes, struct exemplar *x)
{
    struct pb m = pb_of(bytes);
    struct pb_field f;
    uint32_t n = 0;
    while (pb_next(&m, &f))
        n += f.number == 1;
    *x = (struct exemplar){.labels.v = arena_alloc(&d->a->rows->arena, n * sizeof x->labels.v[0] + 1)};
    for (struct pb again = pb_of(bytes); !m.bad && pb_next(&again, &f);) {
        if (f.number == 2 && f.wire == PB_FIXED64) x->v = f64_from_bits(f.u);
        if (f.number == 3 && f.wire == PB_VARINT) x->t = (int64_t)f.u;
        if (f.number != 1 || f.wire != PB_BYTES) continue;
        err e = parse_label(f.bytes, &x->labels.v[x->labels.n++]);
        m.bad = e != NULL;
        err_free(e);
    }
    x->has_t = x->t != 0;
    if (m.bad) malformed(d, (const uint8_t *)bytes.p, "exemplar");
    return !m.bad;
}

/* After the samples: only a series that is known may have exemplars. */
static void push_exemplars(struct decoding *d, str series, str raw)
{
    struct pb m = pb_of(series);
    struct pb_field f;
    struct exemplar x;
    while (pb_next(&m, &f)) {
        if (f.number != 3 || f.wire != PB_BYTES) continue;
        if (!admit_exemplar_room(d->a) || !parse_exemplar(d, f.bytes, &x)) return;
        rows_exemplar(d->a->rows, admit_alias(d->a, raw.p, raw.n), raw, &x);
    }
}

static void general_series(struct decoding *d, str series)
{
    struct admit *a = d->a;
    str raw;
    if (!gather_labels(d, series, &raw) || !admit_room(a, 1)) return;
    rows_series(a->rows, admit_alias(a, raw.p, raw.n), raw, 0);
    struct pb m = pb_of(series);
    struct pb_field f;
    bool has_exemplars = false;
    while (pb_next(&m, &f)) {
        int64_t t;
        double v;
        if (f.wire != PB_BYTES) continue;
        has_exemplars |= f.number == 3;
        if (f.number != 2 && f.number != 4) continue;
        if (!admit_room_within(a)) return;
        if (f.number == 4)
            push_hist(d, raw, f.bytes);
        else if (general_sample(d, f.bytes, &t, &v))
            rows_sample(a->rows, t, v);
        else
            return;
    }
    if (a->rows->series[a->rows->n_series - 1].n == 0) a->rows->n_series--; /* nothing to store, nothing to check */
    if (has_exemplars) push_exemplars(d, series, raw);
}

static str type_name(uint64_t type)
{
    static const char *const names[] = {"unknown",        "counter", "gauge", "histogram",
                                        "gaugehistogram", "summary", "info",  "stateset"};
    return str_of(names[type < ARRAY_LEN(names) ? type : 0]);
}

static void metadata(struct decoding *d, str bytes)
{
    struct metric_metadata md = {.type = type_name(0)};
    struct pb m = pb_of(bytes);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        if (f.number == 1 && f.wire == PB_VARINT) md.type = type_name(f.u);
        if (f.wire != PB_BYTES) continue;
        if (f.number == 2) md.metric = f.bytes;
        if (f.number == 4) md.help = f.bytes;
        if (f.number == 5) md.unit = f.bytes;
    }
    if (m.bad) {
        malformed(d, m.p, "metadata");
        return;
    }
    /* Metadata is a courtesy: what can't be shown as JSON later is left out without failing the samples. */
    if (md.metric.n == 0 || !utf8_valid(md.metric) || !utf8_valid(md.help) || !utf8_valid(md.unit)) return;
    storage_metadata_put(d->a->db, &md);
}

/* A field of the request, at its tag. Returns the byte after it; NULL after a failure. */
static const uint8_t *general_field(struct decoding *d, const uint8_t *p)
{
    struct pb m = {p, d->end, false};
    struct pb_field f;
    if (!pb_next(&m, &f)) {
        malformed(d, p, "field");
        return NULL;
    }
    if (f.number == 1 && f.wire == PB_BYTES) general_series(d, f.bytes);
    if (f.number == 3 && f.wire == PB_BYTES) metadata(d, f.bytes);
    return d->a->failure ? NULL : m.p;
}

void remote_write_decode(struct admit *a, str body)
{
    struct pb m = pb_of(body);
    struct decoding d = {a, m.p, m.end};
    const uint8_t *p = d.start;
    while (p != NULL && p < d.end) {
        uint64_t n;
        const uint8_t *inside = *p == TAG_SERIES ? varint_get(p + 1, d.end, &n) : NULL;
        if (inside != NULL && n <= (uint64_t)(d.end - inside) && plain_series(&d, inside, inside + n))
            p = inside + n;
        else
            p = a->failure ? NULL : general_field(&d, p);
    }
}
