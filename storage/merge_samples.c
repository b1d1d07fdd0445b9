/*
 * merge_samples.c: the samples of one series from several parts, in order of time, each time once.
 *
 * An input yields up to two streams: its float blocks and its histogram blocks, each in order and without
 * overlap. The stream with the earliest next sample goes first:
 *
 *   - At equal times the stream of the later input wins; the others skip that sample.
 *   - A large block that ends before any other stream's next sample and loses nothing to filters is copied
 *     as it is encoded.
 *   - Otherwise the stream is decoded, block by block, and gives the run of samples before any other's next.
 *
 * Runs pass the filters (retention, deletes, dedup) and reach the writer in pieces. Memory: one decoded block
 * a stream, whatever the length of the series. One thread; owned by its merge.
 */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/limits.h"
#include "storage/column_value.h"
#include "storage/merge_internal.h"

#define COPY_MIN (LIMIT_BLOCK_SAMPLES / 2) /* blocks from this size on are copied rather than joined with others */

struct stream {
    struct part_cursor *c;
    enum block_kind kind;
    const struct time_ranges *deletes;
    const struct part_block *blocks; /* of both kinds */
    uint32_t n_blocks, block;        /* the current one; n_blocks at the end */
    bool decoded;                    /* the current block is in t and v or blobs */
    uint32_t at;                     /* next sample of it */
    int64_t next_t;                  /* time of the next sample; INT64_MAX at the end */
    int64_t *t;                      /* kept from series to series */
    double *v;
    int64_t *start; /* room for them; of the current block if it has starts */
    str *blobs;
    struct arena arena; /* bytes of the blobs */
};

/* A sample that waits to see whether its dedup interval has a later one. */
struct held {
    bool is;
    int64_t t, start;
    enum block_kind kind;
    double v;
    struct buf blob;
};

struct merge_samples {
    struct part_cursor *const *inputs;
    struct part_writer *w;
    const struct merge_options *o;
    struct stream *streams; /* two an input: floats, histograms */
    struct stream **live;   /* those with samples left, oldest input first */
    size_t n_inputs, n_live;
    struct held held;
};

struct merge_samples *merge_samples_create(struct part_cursor *const *inputs, size_t n, struct part_writer *w,
                                           const struct merge_options *o)
{
    struct merge_samples *m = mem_zalloc(sizeof *m);
    m->inputs = inputs;
    m->n_inputs = n;
    m->w = w;
    m->o = o;
    m->streams = mem_zalloc(2 * n * sizeof *m->streams);
    m->live = mem_zalloc(2 * n * sizeof(struct stream *));
    return m;
}

void merge_samples_destroy(struct merge_samples *m)
{
    if (m == NULL) return;
    for (size_t i = 0; i < 2 * m->n_inputs; i++) {
        mem_free(m->streams[i].t);
        mem_free(m->streams[i].v);
        mem_free(m->streams[i].start);
        mem_free(m->streams[i].blobs);
        arena_deinit(&m->streams[i].arena);
    }
    buf_deinit(&m->held.blob);
    mem_free(m->streams);
    mem_free(m->live);
    mem_free(m);
}

void merge_samples_begin(struct merge_samples *m)
{
    m->n_live = 0;
    m->held.is = false;
}

/* ---- streams ------------------------------------------------------------------------------------------------ */

/* Stands at the first block of its kind from `block` on. */
static void stream_settle(struct stream *s)
{
    while (s->block < s->n_blocks && s->blocks[s->block].kind != s->kind)
        s->block++;
    s->decoded = false;
    s->at = 0;
    s->next_t = s->block < s->n_blocks ? s->blocks[s->block].t_min : INT64_MAX;
}

void merge_samples_add(struct merge_samples *m, size_t input, const struct part_series *series,
                       const struct time_ranges *deletes)
{
    for (size_t kind = BLOCK_FLOAT; kind <= BLOCK_HIST; kind++) {
        struct stream *s = &m->streams[2 * input + kind];
        s->c = m->inputs[input];
        s->kind = (enum block_kind)kind;
        s->deletes = deletes;
        s->blocks = series->blocks;
        s->n_blocks = series->n_blocks;
        s->block = 0;
        stream_settle(s);
        if (s->next_t != INT64_MAX) m->live[m->n_live++] = s;
    }
}

static err stream_decode(struct stream *s)
{
    if (s->decoded) return NULL;
    const struct part_block *b = &s->blocks[s->block];
    size_t room = LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD;
    if (s->t == NULL) s->t = mem_alloc(room * sizeof *s->t);
    if (s->kind == BLOCK_FLOAT) {
        if (s->v == NULL) s->v = mem_alloc(room * sizeof *s->v);
        TRY(part_read_floats(s->c, b, s->t, s->v));
    } else {
        if (s->blobs == NULL) s->blobs = mem_alloc(room * sizeof *s->blobs);
        arena_reset(&s->arena);
        TRY(part_read_hists(s->c, b, s->t, s->blobs, &s->arena));
    }
    if (b->start_bytes > 0) {
        if (s->start == NULL) s->start = mem_alloc(room * sizeof *s->start);
        TRY(part_read_starts(s->c, b, s->start));
    }
    s->decoded = true;
    return NULL;
}

/* Goes on by n samples of the decoded block. */
static void stream_advance(struct stream *s, uint32_t n)
{
    s->at += n;
    if (s->at < s->blocks[s->block].n) {
        s->next_t = s->t[s->at];
        return;
    }
    s->block++;
    stream_settle(s);
}

/* ---- filters and output ------------------------------------------------------------------------------------- */

/* Start timestamps of the decoded block from a sample on; NULL if it has none. */
static const int64_t *starts_from(const struct stream *s, uint32_t from)
{
    return s->blocks[s->block].start_bytes > 0 ? s->start + from : NULL;
}

static err put(struct merge_samples *m, const struct stream *s, uint32_t from, uint32_t n)
{
    const int64_t *start = starts_from(s, from);
    if (s->kind == BLOCK_FLOAT) return part_writer_floats_started(m->w, s->t + from, s->v + from, start, n);
    return part_writer_hists_started(m->w, s->t + from, s->blobs + from, start, n);
}

static err put_held(struct merge_samples *m)
{
    struct held *h = &m->held;
    if (!h->is) return NULL;
    h->is = false;
    const int64_t *start = h->start != 0 ? &h->start : NULL;
    if (h->kind == BLOCK_FLOAT) return part_writer_floats_started(m->w, &h->t, &h->v, start, 1);
    str blob = buf_as_str(&h->blob);
    return part_writer_hists_started(m->w, &h->t, &blob, start, 1);
}

/* The interval that a time belongs to: (k - 1) * ms < t <= k * ms. */
static int64_t interval_of(int64_t t, int64_t ms)
{
    return t / ms + (t % ms > 0);
}

/* Keeps the last sample of each interval. */
static err put_deduplicated(struct merge_samples *m, const struct stream *s, uint32_t i)
{
    struct held *h = &m->held;
    int64_t ms = m->o->dedup_ms;
    if (h->is && interval_of(h->t, ms) != interval_of(s->t[i], ms)) TRY(put_held(m));
    h->is = true;
    const int64_t *start = starts_from(s, i);
    h->t = s->t[i];
    h->start = start != NULL ? *start : 0;
    h->kind = s->kind;
    if (s->kind == BLOCK_FLOAT) {
        h->v = s->v[i];
        return NULL;
    }
    buf_clear(&h->blob);
    buf_str(&h->blob, s->blobs[i]);
    return NULL;
}

static bool is_kept(const struct merge_samples *m, const struct stream *s, int64_t t)
{
    return t >= m->o->t_keep_min && (s->deletes == NULL || !time_ranges_touch(s->deletes, t, t));
}

/* Nothing in [t_min, t_max] is taken away. */
static bool is_untouched(const struct merge_samples *m, const struct stream *s, int64_t t_min, int64_t t_max)
{
    if (m->o->dedup_ms > 0 || t_min < m->o->t_keep_min) return false;
    return s->deletes == NULL || !time_ranges_touch(s->deletes, t_min, t_max);
}

/* Samples [at, end) of the decoded block, thinned to the last of each interval. */
static err put_thinned(struct merge_samples *m, const struct stream *s, uint32_t end)
{
    for (uint32_t i = s->at; i < end; i++)
        if (is_kept(m, s, s->t[i])) TRY(put_deduplicated(m, s, i));
    return NULL;
}

/* Samples [at, end) of the decoded block, through the filters. */
static err put_run(struct merge_samples *m, const struct stream *s, uint32_t end)
{
    if (m->o->dedup_ms > 0) return put_thinned(m, s, end);
    if (is_untouched(m, s, s->t[s->at], s->t[end - 1])) return put(m, s, s->at, end - s->at);
    uint32_t start = s->at; /* of a run of kept samples */
    for (uint32_t i = s->at; i < end; i++) {
        if (is_kept(m, s, s->t[i])) continue;
        if (i > start) TRY(put(m, s, start, i - start));
        start = i + 1;
    }
    return end > start ? put(m, s, start, end - start) : NULL;
}

/* ---- the merge ---------------------------------------------------------------------------------------------- */

/* The stream to go on with, and the time before which no other has a sample. Of streams at the same time the last
 * one wins; the others skip it. */
static err choose(struct merge_samples *m, struct stream **out, int64_t *limit)
{
    struct stream *first = m->live[0];
    for (size_t i = 1; i < m->n_live; i++)
        if (m->live[i]->next_t <= first->next_t) first = m->live[i];
    *limit = INT64_MAX;
    for (size_t i = 0; i < m->n_live; i++) {
        struct stream *s = m->live[i];
        if (s == first) continue;
        if (s->next_t == first->next_t) {
            TRY(stream_decode(s));
            stream_advance(s, 1);
        }
        if (s->next_t < *limit) *limit = s->next_t;
    }
    *out = first;
    return NULL;
}

static bool may_copy(const struct merge_samples *m, const struct stream *s, int64_t limit)
{
    const struct part_block *b = &s->blocks[s->block];
    return s->at == 0 && b->n >= COPY_MIN && b->t_max < limit && is_untouched(m, s, b->t_min, b->t_max);
}

static err copy_block(struct merge_samples *m, struct stream *s)
{
    const struct part_block *b = &s->blocks[s->block];
    const int64_t *t;
    str columns;
    TRY(part_read_times(s->c, b, &t));
    TRY(part_read_encoded(s->c, b, &columns));
    TRY(part_writer_copy_block(m->w, b, t, columns));
    s->block++;
    stream_settle(s);
    return NULL;
}

/* The samples of the current block before the limit; at least one. */
static err write_run(struct merge_samples *m, struct stream *s, int64_t limit)
{
    TRY(stream_decode(s));
    uint32_t n = s->blocks[s->block].n, end = s->at + 1;
    if (s->t[n - 1] < limit) end = n;
    while (end < n && s->t[end] < limit)
        end++;
    TRY(put_run(m, s, end));
    stream_advance(s, end - s->at);
    return NULL;
}

static void drop_finished(struct merge_samples *m)
{
    size_t kept = 0;
    for (size_t i = 0; i < m->n_live; i++)
        if (m->live[i]->next_t != INT64_MAX) m->live[kept++] = m->live[i];
    m->n_live = kept;
}

err merge_samples_write(struct merge_samples *m)
{
    while (m->n_live > 0) {
        struct stream *s;
        int64_t limit;
        TRY(choose(m, &s, &limit));
        TRY(may_copy(m, s, limit) ? copy_block(m, s) : write_run(m, s, limit));
        drop_finished(m);
    }
    return put_held(m);
}
