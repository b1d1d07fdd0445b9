/*
 * part_write.c: series and samples into blocks, columns and records; part_seal.c writes what comes after.
 *
 *   samples ──► pending ──► block: value column ──► value frame ──► file
 *                              └─ time column, if new ──► time frame ──► file, row ──► column frame ──► file
 *   series  ──► record (labels, blocks) ──► series frame ──► file;  pairs ──► part_gather
 *
 * Invariants:
 *   1. Samples of the current series wait in `floats` or `hists` until LIMIT_BLOCK_SAMPLES are there or
 *      the series ends; they become one block. Blocks of one kind never overlap.
 *   2. A value or time column lies whole in one frame; a frame is closed after the column that fills it.
 *   3. Every block of the current series is in `now`; the record is written when the series ends, if it
 *      has any. Nothing of a series without samples is kept.
 *   4. Memory is bounded by one block, one frame of each kind, the table of time columns and the gathered
 *      postings: frames go to the file as they fill, in whatever order.
 *
 * After an error the writer is good for part_writer_destroy only. The caller's promises (order of series
 * and samples, symbol numbers) are checked and breaches are ERR_INVALID: a part that breaks them could
 * not be read. One thread.
 */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/column_start.h"
#include "storage/column_time.h"
#include "storage/part_format.h"
#include "storage/partition.h"

#define HIST_BLOCK_BYTES (LIMIT_BLOCK_RAW / 2) /* blobs in one block; leaves room for the encoding's own */
#define NO_SYMBOL UINT32_MAX

/* What storage order compares first: metric name, job, instance; 0 = absent, else value + 1. */
#define LEADING 3

struct pending_floats {
    int64_t t[LIMIT_BLOCK_SAMPLES];
    double v[LIMIT_BLOCK_SAMPLES];
    int64_t start[LIMIT_BLOCK_SAMPLES]; /* of the samples, if has_starts */
    bool has_starts;
    size_t n;
    int64_t t_last; /* of the current series */
};

struct pending_hists {
    int64_t t[LIMIT_BLOCK_SAMPLES];
    size_t at[LIMIT_BLOCK_SAMPLES + 1]; /* of each blob in bytes */
    struct buf bytes;
    int64_t start[LIMIT_BLOCK_SAMPLES];
    bool has_starts;
    size_t n;
    int64_t t_last;
};

struct part_writer {
    struct env *env;
    char *path;
    struct part_sink sink;
    struct part_footer footer; /* meta grows as samples come */
    const str *symbols;        /* borrowed */
    uint32_t leading[LEADING]; /* symbols of __name__, job, instance; NO_SYMBOL if absent */
    struct hash_key key;       /* random, for time columns */
    struct column_scratch *scratch;
    struct column_hint hint; /* of the last float block: neighbours are alike */
    struct column_start_hint start_hint;
    struct part_column_table *columns;
    struct part_gather *gather;
    bool has_days; /* the gather's masks hold all days so far */
    int32_t mask_day;
    struct buf values, times, rows; /* open frames */
    struct part_pack series;
    uint32_t *series_first;
    size_t n_series_first, cap_series_first;
    struct part_record now, last; /* the current series; the one before it in the pack's group */
    uint32_t previous[LEADING];   /* leading values of the last series written */
    bool started, finished;
    uint64_t days; /* mask of the current series */
    struct pending_floats floats;
    struct pending_hists hists;
};

/* ---- creation ----------------------------------------------------------------------------------------------- */

static uint32_t find_symbol(const str *symbols, uint32_t n, str s)
{
    uint32_t low = 0, high = n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        int c = str_cmp(symbols[middle], s);
        if (c == 0) return middle;
        if (c < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NO_SYMBOL;
}

err part_writer_create(struct env *env, const char *path, const struct part_meta *meta, const str *symbols,
                       uint32_t n_symbols, struct part_writer **out)
{
    struct part_writer *w = mem_zalloc(sizeof *w);
    w->env = env;
    w->path = mem_dup_str(str_of(path));
    err e = part_sink_open(&w->sink, env, path);
    if (e != NULL) {
        mem_free(w->path);
        mem_free(w);
        return e;
    }
    w->footer.meta = (struct part_meta){.id = meta->id,
                                        .partition = meta->partition,
                                        .level = meta->level,
                                        .seq_min = meta->seq_min,
                                        .seq_max = meta->seq_max,
                                        .t_min = INT64_MAX,
                                        .t_max = INT64_MIN};
    w->footer.n_symbols = n_symbols;
    w->symbols = symbols;
    w->leading[0] = find_symbol(symbols, n_symbols, STR("__name__"));
    w->leading[1] = find_symbol(symbols, n_symbols, STR("job"));
    w->leading[2] = find_symbol(symbols, n_symbols, STR("instance"));
    env->ops->random(env, w->key.secret, sizeof w->key.secret);
    w->scratch = column_scratch_create();
    w->columns = part_column_table_create();
    w->gather = part_gather_create();
    w->has_days = true;
    w->mask_day = (int32_t)(partition_start(meta->partition) / PART_DAY_MS);
    part_footer_encode_header(meta->id, &w->sink.pending);
    *out = w;
    return NULL;
}

void part_writer_destroy(struct part_writer *w)
{
    if (w == NULL) return;
    part_sink_close(&w->sink);
    if (!w->finished) err_free(w->env->ops->unlink(w->env, w->path)); /* the first error is what counts */
    column_scratch_destroy(w->scratch);
    part_column_table_destroy(w->columns);
    part_gather_destroy(w->gather);
    buf_deinit(&w->values);
    buf_deinit(&w->times);
    buf_deinit(&w->rows);
    buf_deinit(&w->hists.bytes);
    part_pack_deinit(&w->series);
    mem_free(w->series_first);
    part_record_deinit(&w->now);
    part_record_deinit(&w->last);
    mem_free(w->path);
    mem_free(w);
}

/* ---- blocks ------------------------------------------------------------------------------------------------- */

static err close_frame(struct part_writer *w, enum part_frame_kind kind, struct buf *raw)
{
    if (raw->n == 0) return NULL;
    err e = part_sink_frame(&w->sink, kind, raw);
    buf_clear(raw);
    return e;
}

/* Writes a time column that no series had so far. */
static err add_column(struct part_writer *w, const int64_t *t, size_t n)
{
    size_t start = w->times.n;
    column_time_encode(t, n, &w->times);
    struct part_column c = {.t_min = t[0],
                            .t_max = t[n - 1],
                            .frame = (uint32_t)w->sink.frames[PART_FRAME_TIME].n,
                            .offset = (uint32_t)start,
                            .bytes = (uint32_t)(w->times.n - start),
                            .n = (uint32_t)n};
    part_column_put(&c, &w->rows);
    w->footer.n_columns++;
    if (w->times.n >= LIMIT_FRAME_TARGET) TRY(close_frame(w, PART_FRAME_TIME, &w->times));
    if (w->rows.n >= PART_COLUMNS_PER_FRAME * PART_COLUMN_ROW) TRY(close_frame(w, PART_FRAME_COLUMN, &w->rows));
    return NULL;
}

static void note_days(struct part_writer *w, int64_t t_min, int64_t t_max)
{
    int64_t base = (int64_t)w->mask_day * PART_DAY_MS;
    if (t_min < base || t_max >= base + PART_DAYS_MAX * PART_DAY_MS) {
        w->has_days = false;
        return;
    }
    unsigned first = (unsigned)((t_min - base) / PART_DAY_MS), last = (unsigned)((t_max - base) / PART_DAY_MS);
    w->days |= (UINT64_MAX >> (63 - (last - first))) << first;
}

/* Adds a block of n samples at t to the current series; its values' place is the caller's to fill in. */
static err add_block(struct part_writer *w, enum block_kind kind, const int64_t *t, size_t n, struct part_block **out)
{
    struct part_record *r = &w->now;
    if (w->footer.n_columns == UINT32_MAX - 1) return err_new(ERR_TOO_LARGE, "too many time columns for one part");
    part_record_reserve(r, r->n_blocks + 1);
    uint32_t fresh = w->footer.n_columns;
    uint32_t column = part_column_intern(w->columns, hash128(&w->key, t, n * sizeof *t), fresh);
    if (column == fresh) TRY(add_column(w, t, n));
    r->columns[r->n_blocks] = column;
    *out = &r->blocks[r->n_blocks++];
    **out = (struct part_block){.kind = kind, .n = (uint32_t)n, .t_min = t[0], .t_max = t[n - 1]};
    (*out)->value_frame = (uint32_t)w->sink.frames[PART_FRAME_VALUE].n;
    (*out)->value_offset = (uint32_t)w->values.n;
    note_days(w, t[0], t[n - 1]);

    struct part_meta *m = &w->footer.meta;
    if (t[0] < m->t_min) m->t_min = t[0];
    if (t[n - 1] > m->t_max) m->t_max = t[n - 1];
    m->samples += n;
    m->blocks++;
    return NULL;
}

/* The block's value column was appended to the open frame; its start timestamps follow, NULL if it has none. */
static err end_block(struct part_writer *w, struct part_block *b, const int64_t *t, const int64_t *start)
{
    b->value_bytes = (uint32_t)(w->values.n - b->value_offset);
    if (start != NULL) {
        column_start_encode(t, start, b->n, &w->start_hint, &w->values);
        b->start_bytes = (uint32_t)(w->values.n - b->value_offset) - b->value_bytes;
        w->footer.features |= PART_FEATURE_STARTS;
    }
    TRY(buf_status(&w->values, "value frame"));
    return w->values.n >= LIMIT_FRAME_TARGET ? close_frame(w, PART_FRAME_VALUE, &w->values) : NULL;
}

static bool is_constant(const double *v, size_t n)
{
    uint64_t first = f64_bits(v[0]);
    for (size_t i = 1; i < n; i++)
        if (f64_bits(v[i]) != first) return false;
    return true;
}

static bool any_start(const int64_t *start, size_t n)
{
    for (size_t i = 0; start != NULL && i < n; i++)
        if (start[i] != 0) return true;
    return false;
}

static err put_floats(struct part_writer *w, const int64_t *t, const double *v, const int64_t *start, size_t n)
{
    if (!any_start(start, n)) start = NULL;
    struct part_block *b;
    TRY(add_block(w, BLOCK_FLOAT, t, n, &b));
    if (start == NULL && is_constant(v, n)) {
        b->constant = true;
        b->agg.first = v[0];
        return NULL;
    }
    column_value_encode(w->scratch, v, n, &w->hint, &w->values);
    b->has_aggregates = start == NULL && n >= PART_AGGREGATES_MIN && part_aggregate(v, n, &b->agg);
    return end_block(w, b, t, start);
}

static err flush_floats(struct part_writer *w)
{
    if (w->floats.n == 0) return NULL;
    size_t n = w->floats.n;
    w->floats.n = 0;
    const int64_t *start = w->floats.has_starts ? w->floats.start : NULL;
    w->floats.has_starts = false;
    return put_floats(w, w->floats.t, w->floats.v, start, n);
}

static err flush_hists(struct part_writer *w)
{
    struct pending_hists *h = &w->hists;
    if (h->n == 0) return NULL;
    TRY(buf_status(&h->bytes, "histograms"));
    str blobs[LIMIT_BLOCK_SAMPLES];
    for (size_t i = 0; i < h->n; i++)
        blobs[i] = (str){(const char *)h->bytes.data + h->at[i], h->at[i + 1] - h->at[i]};
    struct part_block *b;
    TRY(add_block(w, BLOCK_HIST, h->t, h->n, &b));
    column_hist_encode(blobs, h->n, &w->values);
    size_t n = h->n;
    const int64_t *start = h->has_starts && any_start(h->start, n) ? h->start : NULL;
    h->n = 0;
    h->has_starts = false;
    buf_clear(&h->bytes);
    return end_block(w, b, h->t, start);
}

/* ---- samples ------------------------------------------------------------------------------------------------ */

/* The caller's promise: increasing, after what the series has of that kind, in the range of all times. */
static err check_times(const struct part_writer *w, int64_t *t_last, const int64_t *t, size_t n)
{
    bool ok = w->started && t[0] > *t_last && t[0] >= LIMIT_TIME_MIN && t[n - 1] <= LIMIT_TIME_MAX;
    for (size_t i = 1; i < n; i++)
        ok &= t[i] > t[i - 1];
    if (!ok) return err_new(ERR_INVALID, "samples for a part do not increase in time");
    *t_last = t[n - 1];
    return NULL;
}

/* Adds start timestamps (NULL: none) behind the n that a column has, once a block has any. */
static void keep_starts(int64_t *column, bool *has, size_t n, const int64_t *start, size_t more)
{
    if (start == NULL && !*has) return;
    if (!*has) memset(column, 0, n * sizeof *column);
    *has = true;
    if (start == NULL)
        memset(column + n, 0, more * sizeof *column);
    else
        memcpy(column + n, start, more * sizeof *column);
}

err part_writer_floats_started(struct part_writer *w, const int64_t *t, const double *v, const int64_t *start, size_t n)
{
    struct pending_floats *f = &w->floats;
    if (n == 0) return NULL;
    TRY(check_times(w, &f->t_last, t, n));
    while (n > 0) {
        size_t take = LIMIT_BLOCK_SAMPLES - f->n;
        if (take > n) take = n;
        if (take == LIMIT_BLOCK_SAMPLES) { /* a whole block without a copy */
            TRY(put_floats(w, t, v, start, take));
        } else {
            memcpy(f->t + f->n, t, take * sizeof *t);
            memcpy(f->v + f->n, v, take * sizeof *v);
            keep_starts(f->start, &f->has_starts, f->n, start, take);
            f->n += take;
            if (f->n == LIMIT_BLOCK_SAMPLES) TRY(flush_floats(w));
        }
        t += take;
        v += take;
        if (start != NULL) start += take;
        n -= take;
    }
    return NULL;
}

err part_writer_hists_started(struct part_writer *w, const int64_t *t, const str *blobs, const int64_t *start, size_t n)
{
    struct pending_hists *h = &w->hists;
    if (n == 0) return NULL;
    TRY(check_times(w, &h->t_last, t, n));
    for (size_t i = 0; i < n; i++) {
        if (blobs[i].n > LIMIT_HIST_BLOB) return err_new(ERR_INVALID, "histogram of %zu bytes", blobs[i].n);
        if (h->n == LIMIT_BLOCK_SAMPLES || h->bytes.n + blobs[i].n > HIST_BLOCK_BYTES) TRY(flush_hists(w));
        keep_starts(h->start, &h->has_starts, h->n, start == NULL ? NULL : start + i, 1);
        h->t[h->n] = t[i];
        h->at[h->n++] = h->bytes.n;
        buf_str(&h->bytes, blobs[i]);
        h->at[h->n] = h->bytes.n;
    }
    return NULL;
}

err part_writer_floats(struct part_writer *w, const int64_t *t, const double *v, size_t n)
{
    return part_writer_floats_started(w, t, v, NULL, n);
}

err part_writer_hists(struct part_writer *w, const int64_t *t, const str *blobs, size_t n)
{
    return part_writer_hists_started(w, t, blobs, NULL, n);
}

err part_writer_copy_block(struct part_writer *w, const struct part_block *b, const int64_t *t, str columns)
{
    bool hist = b->kind == BLOCK_HIST;
    TRY(check_times(w, hist ? &w->hists.t_last : &w->floats.t_last, t, b->n));
    TRY(hist ? flush_hists(w) : flush_floats(w));
    struct part_block *copy;
    TRY(add_block(w, b->kind, t, b->n, &copy));
    copy->constant = b->constant;
    copy->agg = b->agg;
    if (b->constant) return NULL;
    copy->has_aggregates = b->has_aggregates;
    buf_str(&w->values, columns);
    TRY(end_block(w, copy, t, NULL));
    copy->start_bytes = b->start_bytes;
    copy->value_bytes -= b->start_bytes;
    if (b->start_bytes > 0) w->footer.features |= PART_FEATURE_STARTS;
    return NULL;
}

uint64_t part_writer_samples(const struct part_writer *w)
{
    return w->footer.meta.samples + w->floats.n + w->hists.n;
}

/* ---- series ------------------------------------------------------------------------------------------------- */

/* Blocks by time; a few, mostly in order already. */
static void sort_blocks(struct part_record *r)
{
    for (uint32_t i = 1; i < r->n_blocks; i++) {
        struct part_block b = r->blocks[i];
        uint32_t column = r->columns[i], j = i;
        for (; j > 0 && r->blocks[j - 1].t_min > b.t_min; j--) {
            r->blocks[j] = r->blocks[j - 1];
            r->columns[j] = r->columns[j - 1];
        }
        r->blocks[j] = b;
        r->columns[j] = column;
    }
}

static err close_series_frame(struct part_writer *w)
{
    if (w->series.n == 0) return NULL;
    part_pack_seal(&w->series);
    err e = part_sink_frame(&w->sink, PART_FRAME_SERIES, &w->series.bytes);
    part_pack_clear(&w->series);
    return e;
}

static err put_record(struct part_writer *w)
{
    uint32_t id = (uint32_t)w->footer.meta.series;
    if (w->series.n == 0) {
        w->series_first = mem_grow(w->series_first, &w->cap_series_first, w->n_series_first + 1, sizeof(uint32_t));
        w->series_first[w->n_series_first++] = id;
    }
    if (part_pack_next(&w->series, PART_GROUP_SERIES, PART_GROUP_BYTES)) part_record_reset(&w->last);
    part_record_encode(&w->last, &w->now, &w->series.bytes);
    part_gather_add(w->gather, id, w->now.pairs, w->now.n_pairs, w->days);
    w->footer.meta.series++;
    return w->series.bytes.n >= LIMIT_FRAME_TARGET ? close_series_frame(w) : NULL;
}

static void leading_values(const struct part_writer *w, const struct part_record *r, uint32_t out[LEADING])
{
    memset(out, 0, LEADING * sizeof *out);
    for (uint32_t i = 0; i < r->n_pairs; i++)
        for (size_t k = 0; k < LEADING; k++)
            if (r->pairs[2 * i] == w->leading[k]) out[k] = r->pairs[2 * i + 1] + 1;
}

/* labels_cmp by symbol numbers: pair by pair, fewer pairs first. */
static int compare_pairs(const struct part_record *a, const struct part_record *b)
{
    uint32_t n = 2 * (a->n_pairs < b->n_pairs ? a->n_pairs : b->n_pairs);
    for (uint32_t i = 0; i < n; i++)
        if (a->pairs[i] != b->pairs[i]) return a->pairs[i] < b->pairs[i] ? -1 : 1;
    return (a->n_pairs > b->n_pairs) - (a->n_pairs < b->n_pairs);
}

/* The caller's promise: series come in storage order. `last` holds the labels of the one before. */
static err check_order(struct part_writer *w)
{
    uint32_t leading[LEADING];
    leading_values(w, &w->now, leading);
    int c = 0;
    for (size_t k = 0; k < LEADING && c == 0; k++)
        c = (leading[k] > w->previous[k]) - (leading[k] < w->previous[k]);
    if (c == 0) c = compare_pairs(&w->now, &w->last);
    if (w->footer.meta.series > 0 && c <= 0) return err_new(ERR_INVALID, "series for a part are out of order");
    memcpy(w->previous, leading, sizeof leading);
    return NULL;
}

static err end_series(struct part_writer *w)
{
    TRY(flush_floats(w));
    TRY(flush_hists(w));
    if (w->now.n_blocks == 0) return NULL;
    if (w->footer.meta.series >= UINT32_MAX - 1) return err_new(ERR_TOO_LARGE, "too many series for one part");
    TRY(check_order(w));
    sort_blocks(&w->now);
    return put_record(w);
}

err part_writer_series(struct part_writer *w, const uint32_t *pairs, uint32_t n_pairs)
{
    TRY(end_series(w));
    if (n_pairs > LIMIT_LABELS) return err_new(ERR_INVALID, "series of %u labels", n_pairs);
    for (uint32_t i = 0; i < n_pairs; i++) {
        bool in_order = i == 0 || pairs[2 * i] > pairs[2 * i - 2];
        if (!in_order || pairs[2 * i] >= w->footer.n_symbols || pairs[2 * i + 1] >= w->footer.n_symbols)
            return err_new(ERR_INVALID, "labels of a series for a part are not sorted or unknown");
    }
    memcpy(w->now.pairs, pairs, 2 * n_pairs * sizeof *pairs);
    w->now.n_pairs = n_pairs;
    w->now.n_blocks = 0;
    w->started = true;
    w->floats.t_last = w->hists.t_last = INT64_MIN;
    w->days = 0;
    return NULL;
}

err part_writer_finish(struct part_writer *w, struct part_meta *meta)
{
    TRY(end_series(w));
    check(w->footer.meta.samples > 0);
    TRY(close_frame(w, PART_FRAME_VALUE, &w->values));
    TRY(close_frame(w, PART_FRAME_TIME, &w->times));
    TRY(close_frame(w, PART_FRAME_COLUMN, &w->rows));
    TRY(close_series_frame(w));
    struct part_seal seal = {.sink = &w->sink,
                             .symbols = w->symbols,
                             .gather = w->gather,
                             .series_first = w->series_first,
                             .has_days = w->has_days,
                             .mask_day = w->mask_day};
    TRY(part_seal_write(&seal, &w->footer));
    *meta = w->footer.meta;
    w->finished = true;
    return NULL;
}
