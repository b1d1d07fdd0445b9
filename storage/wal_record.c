/*
 * wal_record.c: records of the log as bytes and back; the layout is in wal_record.h.
 *
 * Encoding a batch is a hot path: about ten bytes and as many instructions a sample. Decoding trusts
 * nothing: the bytes come from a disk, so counts are checked against what is left before anything is
 * allocated. Stateless; what is decoded lives in the caller's arena.
 */
#include "storage/wal_record.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/hash.h"
#include "storage/base/limits.h"
#include "storage/base/varint.h"

static const char SEGMENT_MAGIC[8] = "VRVWAL01";
#define RECORD_MAGIC 0x43455256u /* "VREC" */

void wal_segment_header(struct buf *out, uint32_t generation)
{
    size_t at = out->n;
    buf_put(out, SEGMENT_MAGIC, sizeof SEGMENT_MAGIC);
    buf_u32(out, WAL_VERSION);
    buf_u32(out, generation);
    buf_u64(out, checksum64(out->data + at, 16));
}

err wal_segment_parse(const uint8_t *p, uint32_t *generation)
{
    struct cursor c = cursor_of(p, WAL_SEGMENT_HEADER);
    if (memcmp(cursor_bytes(&c, 8), SEGMENT_MAGIC, 8) != 0) return err_corrupt("not a log segment");
    uint32_t version = cursor_u32(&c);
    *generation = cursor_u32(&c);
    if (cursor_u64(&c) != checksum64(p, 16)) return err_corrupt("damaged header of a log segment");
    if (version != WAL_VERSION)
        return err_new(ERR_UNSUPPORTED, "log segment of version %u, this server knows %d", version, WAL_VERSION);
    return NULL;
}

size_t wal_record_begin(struct buf *out)
{
    size_t at = out->n;
    uint8_t *p = buf_reserve(out, WAL_RECORD_HEADER);
    check(p != NULL);
    out->n += WAL_RECORD_HEADER;
    return at;
}

void wal_record_end(struct buf *out, size_t at, enum wal_type type, uint64_t seq)
{
    size_t bytes = out->n - at - WAL_RECORD_HEADER;
    check(bytes <= LIMIT_WAL_RECORD);
    uint8_t *p = out->data + at;
    buf_set_u32(out, at, RECORD_MAGIC);
    buf_set_u32(out, at + 4, (uint32_t)bytes);
    buf_set_u64(out, at + 8, seq);
    buf_set_u64(out, at + 16, checksum64(p + WAL_RECORD_HEADER, bytes));
    buf_set_u32(out, at + 24, type);
    buf_set_u32(out, at + 28, (uint32_t)checksum64(p, 28));
}

bool wal_record_parse(const uint8_t *p, struct wal_record *out)
{
    struct cursor c = cursor_of(p, WAL_RECORD_HEADER);
    if (cursor_u32(&c) != RECORD_MAGIC) return false;
    out->bytes = cursor_u32(&c);
    out->seq = cursor_u64(&c);
    out->checksum = cursor_u64(&c);
    out->type = cursor_u32(&c);
    return cursor_u32(&c) == (uint32_t)checksum64(p, 28) && out->bytes <= LIMIT_WAL_RECORD;
}

bool wal_record_payload_ok(const struct wal_record *r, const uint8_t *payload)
{
    return checksum64(payload, r->bytes) == r->checksum;
}

/* ---- definitions ------------------------------------------------------------------------------------------------ */

void wal_defs_symbol(struct wal_defs *d, uint32_t number, str text)
{
    buf_varint(&d->symbols, number);
    buf_lenstr(&d->symbols, text);
    d->n_symbols++;
}

void wal_defs_series(struct wal_defs *d, uint32_t handle, const uint32_t *pairs, uint32_t n_pairs)
{
    buf_varint(&d->series, handle);
    buf_varint(&d->series, n_pairs);
    for (uint32_t i = 0; i < 2 * n_pairs; i++)
        buf_varint(&d->series, pairs[i]);
    d->n_series++;
}

void wal_defs_clear(struct wal_defs *d)
{
    buf_clear(&d->symbols);
    buf_clear(&d->series);
    d->n_symbols = d->n_series = 0;
}

void wal_defs_deinit(struct wal_defs *d)
{
    buf_deinit(&d->symbols);
    buf_deinit(&d->series);
}

/* ---- batches ---------------------------------------------------------------------------------------------------- */

static void encode_runs(struct buf *out, const struct wal_batch *b)
{
    buf_varint(out, b->n_runs);
    uint8_t *start = buf_reserve(out, (size_t)b->n_runs * VARINT_MAX), *p = start;
    int64_t before = 0;
    bool ones = true;
    for (uint32_t i = 0; i < b->n_runs; i++) {
        p = varint_put(p, zigzag((int64_t)b->handles[i] - before));
        before = b->handles[i];
        ones &= b->counts[i] == 1;
    }
    out->n += (size_t)(p - start);
    buf_u8(out, ones);
    for (uint32_t i = 0; !ones && i < b->n_runs; i++)
        buf_varint(out, b->counts[i]);
}

static void encode_samples(struct buf *out, const struct wal_batch *b)
{
    buf_varint(out, b->n_samples);
    uint8_t *start = buf_reserve(out, (size_t)b->n_samples * (VARINT_MAX + sizeof(double))), *p = start;
    int64_t before = 0;
    for (uint32_t i = 0; i < b->n_samples; i++) {
        p = varint_put(p, zigzag((int64_t)((uint64_t)b->t[i] - (uint64_t)before)));
        before = b->t[i];
    }
    if (b->n_samples > 0) memcpy(p, b->v, b->n_samples * sizeof(double));
    out->n += (size_t)(p - start) + b->n_samples * sizeof(double);
}

static void encode_hists(struct buf *out, const struct wal_batch *b)
{
    uint32_t n = 0;
    for (uint32_t i = 0; b->hist != NULL && i < b->n_samples; i++)
        n += b->hist[i].n > 0;
    buf_varint(out, n);
    for (uint32_t i = 0; n > 0 && i < b->n_samples; i++) {
        if (b->hist[i].n == 0) continue;
        buf_varint(out, i);
        buf_lenstr(out, b->hist[i]);
    }
}

/* Sparse, since series with start timestamps may share a batch with others. Returns how many there were. */
static uint32_t encode_starts(struct buf *out, const struct wal_batch *b)
{
    uint32_t n = 0, before = 0;
    for (uint32_t i = 0; b->start != NULL && i < b->n_samples; i++)
        n += b->start[i] != 0;
    if (n == 0) return 0;
    buf_varint(out, n);
    for (uint32_t i = 0; i < b->n_samples; i++) {
        if (b->start[i] == 0) continue;
        buf_varint(out, i - before);
        buf_zigzag(out, (int64_t)((uint64_t)b->t[i] - (uint64_t)b->start[i]));
        before = i;
    }
    return n;
}

static void encode_defs(struct buf *out, const struct wal_defs *defs)
{
    buf_varint(out, defs->n_symbols);
    buf_put(out, defs->symbols.data, defs->symbols.n);
    buf_varint(out, defs->n_series);
    buf_put(out, defs->series.data, defs->series.n);
}

enum wal_type wal_batch_encode(struct buf *out, const struct wal_defs *defs, const struct wal_batch *b)
{
    encode_defs(out, defs);
    encode_runs(out, b);
    encode_samples(out, b);
    encode_hists(out, b);
    return encode_starts(out, b) > 0 ? WAL_BATCH_STARTS : WAL_BATCH;
}

/* A count of things that take at least `bytes` bytes each; 0 and failed if so many can't follow. */
static uint32_t read_count(struct cursor *c, size_t bytes)
{
    uint64_t n = cursor_varint(c);
    if (n > cursor_left(c) / bytes) c->failed = true;
    return c->failed ? 0 : (uint32_t)n;
}

static void decode_defs(struct cursor *c, struct arena *a, struct wal_batch *b)
{
    b->n_symbols = read_count(c, 2);
    b->symbols = arena_alloc(a, b->n_symbols * sizeof *b->symbols + 1);
    for (uint32_t i = 0; i < b->n_symbols; i++) {
        b->symbols[i].number = (uint32_t)cursor_varint(c);
        b->symbols[i].text = cursor_lenstr(c);
    }
    b->n_series = read_count(c, 2);
    b->series = arena_alloc(a, b->n_series * sizeof *b->series + 1);
    for (uint32_t i = 0; i < b->n_series; i++) {
        struct wal_series *s = &b->series[i];
        s->handle = (uint32_t)cursor_varint(c);
        s->n_pairs = read_count(c, 2);
        if (s->n_pairs > LIMIT_LABELS) c->failed = true;
        if (c->failed) s->n_pairs = 0;
        s->symbols = arena_alloc(a, 2 * s->n_pairs * sizeof *s->symbols + 1);
        for (uint32_t k = 0; k < 2 * s->n_pairs; k++)
            s->symbols[k] = (uint32_t)cursor_varint(c);
    }
}

/* The runs; returns how many samples they have. */
static uint64_t decode_runs(struct cursor *c, struct arena *a, struct wal_batch *b)
{
    b->n_runs = read_count(c, 1);
    uint32_t *handles = arena_alloc(a, b->n_runs * sizeof *handles + 1);
    uint32_t *counts = arena_alloc(a, b->n_runs * sizeof *counts + 1);
    int64_t handle = 0;
    for (uint32_t i = 0; i < b->n_runs; i++) {
        handle = (int64_t)((uint64_t)handle + (uint64_t)cursor_zigzag(c));
        handles[i] = (uint32_t)handle;
    }
    bool ones = cursor_u8(c) == 1;
    uint64_t total = 0;
    for (uint32_t i = 0; i < b->n_runs; i++) {
        uint64_t n = ones ? 1 : cursor_varint(c);
        if (n > UINT32_MAX) c->failed = true;
        counts[i] = (uint32_t)n;
        total += n;
    }
    b->handles = handles;
    b->counts = counts;
    return total;
}

static void decode_samples(struct cursor *c, struct arena *a, struct wal_batch *b)
{
    b->n_samples = read_count(c, 1 + sizeof(double));
    int64_t *t = arena_alloc(a, b->n_samples * sizeof *t + 1);
    double *v = arena_alloc(a, b->n_samples * sizeof *v + 1);
    int64_t before = 0;
    for (uint32_t i = 0; i < b->n_samples; i++)
        before = t[i] = (int64_t)((uint64_t)before + (uint64_t)cursor_zigzag(c));
    const uint8_t *values = cursor_bytes(c, b->n_samples * sizeof *v);
    if (values != NULL && b->n_samples > 0) memcpy(v, values, b->n_samples * sizeof *v);
    b->t = t;
    b->v = v;
}

static void decode_hists(struct cursor *c, struct arena *a, struct wal_batch *b)
{
    uint32_t n = read_count(c, 3);
    if (n == 0) return;
    str *hist = arena_zalloc(a, b->n_samples * sizeof *hist + 1);
    for (uint32_t i = 0; i < n; i++) {
        uint64_t at = cursor_varint(c);
        str blob = cursor_lenstr(c);
        if (at >= b->n_samples) c->failed = true;
        if (!c->failed) hist[at] = blob;
    }
    b->hist = hist;
}

static void decode_starts(struct cursor *c, struct arena *a, struct wal_batch *b)
{
    if (c->failed || cursor_left(c) == 0) return;
    uint32_t n = read_count(c, 2);
    int64_t *start = arena_zalloc(a, b->n_samples * sizeof *start + 1);
    uint64_t at = 0;
    for (uint32_t i = 0; i < n && !c->failed; i++) {
        uint64_t gap = cursor_varint(c), age = (uint64_t)cursor_zigzag(c);
        if ((i > 0 && gap == 0) || gap >= b->n_samples - at) c->failed = true;
        if (c->failed) return;
        at += gap;
        start[at] = (int64_t)((uint64_t)b->t[at] - age);
    }
    b->start = start;
}

static void decode_batch(struct cursor *c, struct arena *a, struct wal_batch *b)
{
    uint64_t samples = decode_runs(c, a, b);
    decode_samples(c, a, b);
    decode_hists(c, a, b);
    decode_starts(c, a, b);
    if (samples != b->n_samples) c->failed = true;
}

/* ---- exemplars -------------------------------------------------------------------------------------------------- */

void wal_exemplar_encode(struct buf *out, uint32_t handle, const struct exemplar *x)
{
    buf_varint(out, handle);
    exemplar_encode(x, out);
}

void wal_exemplars_encode(struct buf *out, const struct wal_defs *defs, const struct buf *exemplars, uint32_t n)
{
    encode_defs(out, defs);
    buf_varint(out, n);
    buf_put(out, exemplars->data, exemplars->n);
}

static void decode_exemplars(struct cursor *c, struct arena *a, struct wal_content *out)
{
    uint32_t n = read_count(c, 1 + EXEMPLAR_BYTES_MIN);
    struct wal_exemplar *x = arena_alloc(a, n * sizeof *x + 1);
    for (uint32_t i = 0; i < n && !c->failed; i++) {
        x[i].handle = (uint32_t)cursor_varint(c);
        exemplar_decode(c, a, &x[i].x);
    }
    out->exemplars = x;
    out->n_exemplars = n;
}

err wal_record_decode(const struct wal_record *r, const uint8_t *payload, struct arena *a, struct wal_content *out)
{
    *out = (struct wal_content){0};
    if (r->type < WAL_BATCH || r->type > WAL_EXEMPLARS)
        return err_new(ERR_UNSUPPORTED, "log record of type %u, this server is too old for it", r->type);
    struct cursor c = cursor_of(payload, r->bytes);
    decode_defs(&c, a, &out->batch);
    if (r->type == WAL_EXEMPLARS)
        decode_exemplars(&c, a, out);
    else
        decode_batch(&c, a, &out->batch);
    if (c.failed || cursor_left(&c) != 0) return err_corrupt("malformed record in the log");
    return NULL;
}
