/*
 * remote_write2.c: Prometheus remote write 2.0: bytes of a Request to rows.
 *
 *   Request      4 symbols (strings; the first is empty)   5 timeseries      (1..3 belong to 1.0: nothing here)
 *   TimeSeries   1 labels_refs (packed uint32: name, value, name, value ...)   2 samples   3 histograms
 *                4 exemplars   5 metadata   6 created timestamp (of earlier drafts: the start of all its samples)
 *   Sample       1 value (double)   2 timestamp (ms)   3 start timestamp (ms)
 *   Exemplar     1 labels_refs   2 value (double)   3 timestamp (ms; 0: none)
 *   Metadata     1 type   3 help_ref   4 unit_ref
 * Source: the remote write 2.0 specification and its proto.
 *
 * A symbol has another number in every request, so the bytes of a series identify nothing. But each
 * symbol is hashed once a request, and the sum of the pairs' hashes is the identity that storage keeps
 * for a series anyway (labels_id): a known series costs a few multiplications and no look at its labels.
 * With extra_label arguments the request's tag is mixed in, as the labels then are others.
 *
 * Rows point at `struct series_refs` in the request's arena, which stays until the last flush.
 * Stateless; one request, one thread.
 */
#include "ingest/remote_write2.h"

#include "ingest/remote_hist.h"
#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/protobuf.h"

#define SYMBOLS_MAX (4u << 20)

struct symbols_table {
    str *v;
    struct hash128 *hashes;
    uint32_t n;
};

/* What a row remembers of its series: enough to spell out its labels. */
struct series_refs {
    const struct symbols_table *symbols;
    const uint32_t *refs; /* 2 * n_pairs */
    uint32_t n_pairs;
};

struct decoding2 {
    struct admit *a;
    struct symbols_table symbols;
    const uint8_t *start; /* of the body */
    uint32_t *refs;       /* of the series at hand */
    size_t refs_cap;
};

static void malformed(struct decoding2 *d, const void *at, const char *what)
{
    if (d->a->failure == NULL)
        d->a->failure = err_new(ERR_INVALID, "remote write 2.0: malformed %s at byte %zu", what,
                                (size_t)((const uint8_t *)at - d->start));
}

err remote_write2_labels(str raw, struct arena *a, struct labels *out)
{
    struct series_refs s;
    memcpy(&s, raw.p, sizeof s);
    *out = (struct labels){arena_alloc(a, s.n_pairs * sizeof out->v[0] + 1), s.n_pairs};
    for (uint32_t i = 0; i < s.n_pairs; i++)
        out->v[i] = (struct label){s.symbols->v[s.refs[2 * i]], s.symbols->v[s.refs[2 * i + 1]]};
    return NULL;
}

/* ---- symbols ------------------------------------------------------------------------------------ */

static uint32_t count_symbols(str body)
{
    struct pb m = pb_of(body);
    struct pb_field f;
    uint32_t n = 0;
    while (pb_next(&m, &f))
        n += f.number == 4 && f.wire == PB_BYTES;
    return n;
}

/* All symbols with their hashes. False after a failure. */
static bool read_symbols(struct decoding2 *d, str body)
{
    struct symbols_table *t = &d->symbols;
    uint32_t n = count_symbols(body);
    if (n > SYMBOLS_MAX) {
        d->a->failure = err_new(ERR_TOO_LARGE, "remote write 2.0: %u symbols, the limit is %u", n, SYMBOLS_MAX);
        return false;
    }
    t->v = arena_alloc(d->a->arena, n * sizeof t->v[0] + 1);
    t->hashes = arena_alloc(d->a->arena, n * sizeof t->hashes[0] + 1);
    struct pb m = pb_of(body);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        if (f.number != 4 || f.wire != PB_BYTES) continue;
        t->v[t->n] = f.bytes;
        t->hashes[t->n++] = hash128(d->a->key, f.bytes.p, f.bytes.n);
    }
    if (m.bad)
        malformed(d, m.p, "field");
    else if (t->n > 0 && t->v[0].n > 0)
        d->a->failure = err_new(ERR_INVALID, "remote write 2.0: the first symbol must be the empty string");
    return d->a->failure == NULL;
}

/* ---- series ------------------------------------------------------------------------------------- */

static bool push_ref(struct decoding2 *d, uint32_t *n, uint64_t ref)
{
    if (*n == d->refs_cap) d->refs = mem_grow(d->refs, &d->refs_cap, *n + 1u, sizeof d->refs[0]);
    if (ref >= d->symbols.n) return false;
    d->refs[(*n)++] = (uint32_t)ref;
    return true;
}

/* The label references of a series, packed or one a field. False: a reference past the symbols, or an odd number. */
static bool read_refs(struct decoding2 *d, str series, uint32_t *n)
{
    struct pb m = pb_of(series);
    struct pb_field f;
    *n = 0;
    while (pb_next(&m, &f)) {
        if (f.number != 1) continue;
        if (f.wire == PB_VARINT && !push_ref(d, n, f.u)) return false;
        const uint8_t *p = (const uint8_t *)f.bytes.p, *end = p + f.bytes.n;
        while (f.wire == PB_BYTES && p < end) {
            uint64_t ref;
            p = varint_get(p, end, &ref);
            if (p == NULL || !push_ref(d, n, ref)) return false;
        }
    }
    return *n % 2 == 0;
}

static struct hash128 alias_of(const struct decoding2 *d, uint32_t n)
{
    struct hash128 id = {0, 0};
    for (uint32_t i = 0; i < n; i += 2)
        id = hash128_add(id, hash128_pair(d->symbols.hashes[d->refs[i]], d->symbols.hashes[d->refs[i + 1]]));
    return d->a->extra.n > 0 ? hash128_pair(id, d->a->tag) : id;
}

struct sample2 {
    double v;
    int64_t t, start;
};

static bool read_sample(str bytes, struct sample2 *s)
{
    struct pb m = pb_of(bytes);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        if (f.number == 1 && f.wire == PB_FIXED64) s->v = f64_from_bits(f.u);
        if (f.number == 2 && f.wire == PB_VARINT) s->t = (int64_t)f.u;
        if (f.number == 3 && f.wire == PB_VARINT) s->start = (int64_t)f.u;
    }
    return !m.bad;
}

/* The start timestamp of a histogram message (field 17), or what the series says. */
static int64_t hist_start(str bytes, int64_t created)
{
    struct pb m = pb_of(bytes);
    struct pb_field f;
    while (pb_next(&m, &f))
        if (f.number == 17 && f.wire == PB_VARINT) created = (int64_t)f.u;
    return created;
}

/* A refused histogram is counted and named; the series goes on. */
static void push_hist(struct decoding2 *d, str raw, str bytes, int64_t created)
{
    struct admit *a = d->a;
    struct buf blob = {0};
    struct hist h;
    int64_t t;
    err e = remote_hist_parse(bytes, a->arena, &h, &t);
    if (e == NULL) {
        hist_encode(&h, &blob);
        rows_hist(a->rows, t, h.sum, buf_as_str(&blob));
        rows_start(a->rows, hist_start(bytes, created));
    } else {
        str text = a->n_errors < ADMIT_ERRORS_SHOWN ? admit_series_text(a, raw) : STR("");
        admit_reject(a, REJECT_HISTOGRAM, 1, 0, "series %.*s: %s", STR_ARG(text), err_message(e));
        err_free(e);
    }
    buf_deinit(&blob);
}

static void read_metadata(struct decoding2 *d, str metric, str bytes)
{
    static const char *const types[] = {"unknown",        "counter", "gauge", "histogram",
                                        "gaugehistogram", "summary", "info",  "stateset"};
    struct pb m = pb_of(bytes);
    struct pb_field f;
    uint64_t type = 0, help = 0, unit = 0;
    while (pb_next(&m, &f)) {
        if (f.wire != PB_VARINT) continue;
        if (f.number == 1) type = f.u;
        if (f.number == 3) help = f.u;
        if (f.number == 4) unit = f.u;
    }
    if (m.bad || metric.n == 0 || help >= d->symbols.n || unit >= d->symbols.n) return;
    struct metric_metadata md = {.metric = metric,
                                 .type = str_of(types[type < ARRAY_LEN(types) ? type : 0]),
                                 .help = d->symbols.v[help],
                                 .unit = d->symbols.v[unit]};
    if (type == 0 && md.help.n == 0 && md.unit.n == 0) return; /* nothing said */
    /* Metadata is a courtesy: what can't be shown as JSON later is left out without failing the samples. */
    if (utf8_valid(md.metric) && utf8_valid(md.help) && utf8_valid(md.unit)) storage_metadata_put(d->a->db, &md);
}

static str metric_name(const struct decoding2 *d, uint32_t n)
{
    for (uint32_t i = 0; i < n; i += 2)
        if (str_eq(d->symbols.v[d->refs[i]], LABEL_NAME)) return d->symbols.v[d->refs[i + 1]];
    return (str){0};
}

/* What a series has besides samples and labels, found in a first walk over it. */
struct contents {
    uint64_t samples, histograms, exemplars;
    int64_t created;
    bool bad;
};

static struct contents look_over(str series)
{
    struct contents c = {0};
    struct pb m = pb_of(series);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        c.samples += f.number == 2;
        c.histograms += f.number == 3;
        c.exemplars += f.number == 4;
        if (f.number == 6 && f.wire == PB_VARINT) c.created = (int64_t)f.u;
        c.bad |= f.number >= 2 && f.number <= 5 && f.wire != PB_BYTES;
    }
    c.bad |= m.bad;
    return c;
}

static void push_samples(struct decoding2 *d, str series, str raw, const struct contents *c)
{
    struct admit *a = d->a;
    struct pb m = pb_of(series);
    struct pb_field f;
    while (pb_next(&m, &f)) {
        if (f.number != 2 && f.number != 3) continue;
        if (!admit_room_within(a)) return;
        struct sample2 s = {.start = c->created};
        if (f.number == 3) {
            push_hist(d, raw, f.bytes, c->created);
        } else if (read_sample(f.bytes, &s)) {
            rows_sample(a->rows, s.t, s.v);
            rows_start(a->rows, s.start);
        } else {
            malformed(d, f.bytes.p, "sample");
            return;
        }
    }
}

/* False: malformed, or a reference past the symbols. */
static bool parse_exemplar(struct decoding2 *d, str bytes, struct exemplar *x)
{
    uint32_t n;
    struct pb m = pb_of(bytes);
    struct pb_field f;
    if (!read_refs(d, bytes, &n)) return false;
    *x = (struct exemplar){.labels = {arena_alloc(&d->a->rows->arena, n * sizeof(struct label) + 1), n / 2}};
    for (uint32_t i = 0; i < n / 2; i++)
        x->labels.v[i] = (struct label){d->symbols.v[d->refs[2 * i]], d->symbols.v[d->refs[2 * i + 1]]};
    while (pb_next(&m, &f)) {
        if (f.number == 2 && f.wire == PB_FIXED64) x->v = f64_from_bits(f.u);
        if (f.number == 3 && f.wire == PB_VARINT) x->t = (int64_t)f.u;
    }
    x->has_t = x->t != 0;
    return !m.bad;
}

/* After the samples: only a series that is known may have exemplars. */
static void push_exemplars(struct decoding2 *d, str series, str raw, struct hash128 alias)
{
    struct pb m = pb_of(series);
    struct pb_field f;
    struct exemplar x;
    while (pb_next(&m, &f)) {
        if (f.number != 4) continue;
        if (!admit_exemplar_room(d->a)) return;
        if (parse_exemplar(d, f.bytes, &x))
            rows_exemplar(d->a->rows, alias, raw, &x);
        else
            admit_reject(d->a, REJECT_MALFORMED, 0, 0,
                         "an exemplar is malformed, or its label references are odd in number or point past the %u "
                         "symbols",
                         d->symbols.n);
    }
}

static void take_series(struct decoding2 *d, str series)
{
    struct admit *a = d->a;
    struct contents c = look_over(series);
    uint32_t n;
    if (c.bad) {
        malformed(d, series.p, "time series");
        return;
    }
    if (!read_refs(d, series, &n)) {
        admit_reject(a, REJECT_LABELS, c.samples + c.histograms, 0,
                     "a series' label references are odd in number or point past the %u symbols", d->symbols.n);
        return;
    }
    struct series_refs *s = arena_alloc(a->arena, sizeof *s);
    *s = (struct series_refs){&d->symbols, arena_dup(a->arena, d->refs, n * sizeof d->refs[0]), n / 2};
    str raw = {(const char *)s, sizeof *s};
    if (c.samples + c.histograms + c.exemplars == 0) {
        str text = admit_series_text(a, raw);
        admit_reject(a, REJECT_MALFORMED, 1, 0, "series %.*s has neither samples nor histograms nor exemplars",
                     STR_ARG(text));
        return;
    }
    struct pb m = pb_of(series);
    struct pb_field f;
    while (pb_next(&m, &f))
        if (f.number == 5) read_metadata(d, metric_name(d, n), f.bytes);
    if (!admit_room(a, 1)) return;
    struct hash128 alias = alias_of(d, n);
    rows_series(a->rows, alias, raw, 0);
    push_samples(d, series, raw, &c);
    if (a->rows->n_series > 0 && a->rows->series[a->rows->n_series - 1].n == 0) a->rows->n_series--;
    if (a->failure == NULL && c.exemplars > 0) push_exemplars(d, series, raw, alias);
}

void remote_write2_decode(struct admit *a, str body)
{
    struct decoding2 d = {.a = a, .start = (const uint8_t *)body.p};
    struct pb m = pb_of(body);
    struct pb_field f;
    if (read_symbols(&d, body))
        while (a->failure == NULL && pb_next(&m, &f)) {
            if (f.number == 5 && f.wire == PB_BYTES) take_series(&d, f.bytes);
            if (f.number == 1) /* where 1.0 has its series: 204 would say that they were stored */
                a->failure = err_new(ERR_INVALID, "the body is a remote write 1.0 message, its Content-Type says 2.0");
        }
    /* The rows refer to the symbols here: they must not outlive this call. */
    if (a->failure == NULL) admit_flush(a);
    mem_free(d.refs);
}
