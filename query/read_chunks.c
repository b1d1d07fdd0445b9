/*
 * read_chunks.c: the answer of remote read as a stream of Prometheus chunks.
 *
 *   frame                varint length of the message; its CRC-32C, 4 bytes, high byte first; the message
 *   ChunkedReadResponse  1 ChunkedSeries, exactly one        2 number of the query int64
 *   ChunkedSeries        1 Label, repeated                   2 Chunk, repeated
 *   Chunk                1 first time int64   2 last time int64   3 type: 1 xor, 2 histograms, 3 float histograms
 *                        4 data
 * Source: prompb/remote.proto and types.proto of Prometheus, its documentation of the remote read API.
 *
 * A message has at most FRAME_MAX bytes; a longer series goes on in the next frame, with its labels again. What
 * a series' labels leave of that is always more than a chunk takes (static_assert below). Series come by labels,
 * query by query; samples are raw, stale markers among them. Memory: one frame, and the labels of one query.
 *
 * emit may block until a client has read; the time it takes counts against the query's timeout.
 */
#include <assert.h>

#include "query/chunk_hist.h"
#include "query/chunk_xor.h"
#include "query/engine.h"
#include "query/read_series.h"
#include "storage/base/crc32c.h"
#include "storage/base/limits.h"
#include "storage/base/protobuf.h"

#define FRAME_MAX ((size_t)1 << 20)
#define FRAME_EXTRA 64 /* around a series' fields, or a chunk's data */

/* A chunk closes at 32 KiB; its last sample takes at most 9 bytes for each byte of its blob. */
static_assert(FRAME_MAX > LIMIT_SERIES_BYTES + 16 * LIMIT_LABELS + (32u << 10) + 9 * LIMIT_HIST_BLOB + 2 * FRAME_EXTRA,
              "labels and any chunk fit one frame");

enum chunk_type { CHUNK_NONE, CHUNK_XOR, CHUNK_HIST, CHUNK_FLOAT_HIST };

struct answer_chunks {
    query_emit_fn emit;
    void *arg;
    struct crc32c crc;
    uint64_t query;
    struct buf series; /* the ChunkedSeries so far: labels, then chunks */
    size_t labels_n;   /* where the chunks begin */
    struct buf frame;  /* scratch: header and message */
    struct buf message;
    struct buf chunk; /* the one that is open */
    enum chunk_type type;
    int64_t t_min, t_max;
    struct chunk_xor floats;
    struct chunk_hist hists;
    struct arena scratch;
};

/* ---- frames -------------------------------------------------------------------------------------------------- */

static err send_frame(struct answer_chunks *a)
{
    buf_clear(&a->message);
    pb_put_bytes(&a->message, 1, buf_as_str(&a->series));
    pb_put_u64(&a->message, 2, a->query);
    buf_clear(&a->frame);
    buf_varint(&a->frame, a->message.n);
    buf_u32(&a->frame, __builtin_bswap32(crc32c_of(&a->crc, a->message.data, a->message.n)));
    buf_str(&a->frame, buf_as_str(&a->message));
    a->series.n = a->labels_n;
    return a->emit(a->arg, buf_as_str(&a->frame)) ? NULL : err_new(ERR_CANCELED, "the client went away");
}

/* ---- chunks -------------------------------------------------------------------------------------------------- */

/* Ends the open chunk and puts it into the frame, which leaves first if there is no room. */
static err close_chunk(struct answer_chunks *a)
{
    if (a->type == CHUNK_NONE) return NULL;
    if (a->type == CHUNK_XOR)
        chunk_xor_end(&a->floats);
    else
        chunk_hist_end(&a->hists);
    bool full = a->series.n + a->chunk.n + 2 * FRAME_EXTRA > FRAME_MAX;
    if (full && a->series.n > a->labels_n) TRY(send_frame(a));
    size_t start = pb_begin(&a->series, 2);
    pb_put_u64(&a->series, 1, (uint64_t)a->t_min);
    pb_put_u64(&a->series, 2, (uint64_t)a->t_max);
    pb_put_u64(&a->series, 3, a->type);
    pb_put_bytes(&a->series, 4, buf_as_str(&a->chunk));
    pb_end(&a->series, start);
    a->type = CHUNK_NONE;
    return NULL;
}

static void open_chunk(struct answer_chunks *a, enum chunk_type type, int64_t t)
{
    buf_clear(&a->chunk);
    a->type = type;
    a->t_min = t;
}

static err add_float(struct answer_chunks *a, int64_t t, double v)
{
    if (a->type != CHUNK_XOR || a->floats.n == CHUNK_SAMPLES_MAX) {
        TRY(close_chunk(a));
        open_chunk(a, CHUNK_XOR, t);
        chunk_xor_begin(&a->floats, &a->chunk);
    }
    chunk_xor_add(&a->floats, t, v);
    return NULL;
}

static err add_hist(struct answer_chunks *a, int64_t t, str blob)
{
    struct hist h;
    arena_reset(&a->scratch);
    TRY(hist_decode(blob, &a->scratch, &h));
    bool open = a->type == CHUNK_HIST || a->type == CHUNK_FLOAT_HIST;
    if (open && chunk_hist_fits(&a->hists, &h)) {
        chunk_hist_add(&a->hists, t, &h);
        return NULL;
    }
    TRY(close_chunk(a));
    open_chunk(a, h.is_float ? CHUNK_FLOAT_HIST : CHUNK_HIST, t);
    chunk_hist_begin(&a->hists, &a->chunk, t, &h);
    return NULL;
}

static err add_samples(void *arg, const struct samples *s)
{
    struct answer_chunks *a = arg;
    for (size_t i = 0; i < s->n; i++) {
        bool is_hist = s->hist != NULL && s->hist[i].n > 0;
        TRY(is_hist ? add_hist(a, s->t[i], s->hist[i]) : add_float(a, s->t[i], s->v[i]));
        a->t_max = s->t[i];
    }
    return NULL;
}

static err add_series(struct answer_chunks *a, struct read_series *s, size_t k)
{
    buf_clear(&a->series);
    read_series_put_labels(&s->v[k].labels, &a->series);
    a->labels_n = a->series.n;
    TRY(read_series_samples(s, k, add_samples, a));
    TRY(close_chunk(a));
    return a->series.n > a->labels_n ? send_frame(a) : NULL;
}

static err add_query(struct answer_chunks *a, struct db *db, const struct read_query *q, struct budget *b)
{
    struct read_series s;
    err e = read_series_open(db, q, b, &s);
    for (size_t k = 0; k < s.n && e == NULL; k++)
        e = add_series(a, &s, k);
    read_series_deinit(&s);
    return e;
}

err query_read_chunks(struct query_engine *q, const struct read_request *rq, const atomic_bool *canceled,
                      query_emit_fn emit, void *arg)
{
    struct budget budget;
    struct answer_chunks a = {.emit = emit, .arg = arg};
    err e = NULL;
    crc32c_init(&a.crc);
    budget_init(&budget, q->o.timeout_ms, q->o.max_samples, q->o.max_memory, canceled);
    for (; a.query < rq->n && e == NULL; a.query++)
        e = add_query(&a, q->o.db, &rq->queries[a.query], &budget);
    buf_deinit(&a.series);
    buf_deinit(&a.frame);
    buf_deinit(&a.message);
    buf_deinit(&a.chunk);
    chunk_hist_deinit(&a.hists);
    arena_deinit(&a.scratch);
    counter_inc(q->reads);
    counter_add(q->samples, atomic_load(&budget.read));
    return e;
}
