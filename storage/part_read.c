/*
 * part_read.c: samples of one block, decoded.
 *
 * Time columns are shared by many series, so a cursor keeps those it decoded last. Values are decoded
 * straight into the caller's memory. Both columns' places come from disk and are checked against the
 * frames they point into.
 */
#include "storage/base/alloc.h"
#include "storage/column_start.h"
#include "storage/column_time.h"
#include "storage/part_format.h"
#include "storage/scratch.h"

/* Bytes of a column within a frame; they are borrowed from the pinned frame. */
static err column_bytes(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, uint32_t offset,
                        uint32_t bytes, str *out)
{
    const struct fcache_entry *e;
    TRY(part_cursor_index(c));
    TRY(part_cursor_frame(c, kind, frame, &e));
    if (offset > e->n || bytes > e->n - offset)
        return part_cursor_corrupt(c, kind, frame, "column reaches beyond its frame");
    *out = (str){(const char *)e->data + offset, bytes};
    return NULL;
}

static err decode_time(struct part_cursor *c, const struct part_block *b, struct part_time *slot)
{
    str bytes;
    slot->n = 0;
    TRY(column_bytes(c, PART_FRAME_TIME, b->time_frame, b->time_offset, b->time_bytes, &bytes));
    slot->t = mem_grow(slot->t, &slot->cap, b->n, sizeof *slot->t);
    TRY(part_cursor_blame(c, PART_FRAME_TIME, b->time_frame, column_time_decode(bytes.p, bytes.n, b->n, slot->t)));
    if (slot->t[0] != b->t_min || slot->t[b->n - 1] != b->t_max)
        return part_cursor_corrupt(c, PART_FRAME_TIME, b->time_frame, "time column with another range");
    slot->frame = b->time_frame;
    slot->offset = b->time_offset;
    slot->n = b->n;
    return NULL;
}

err part_read_times(struct part_cursor *c, const struct part_block *b, const int64_t **t)
{
    for (size_t i = 0; i < PART_TIME_COLUMNS; i++) {
        struct part_time *slot = &c->times[i];
        if (slot->n != b->n || slot->frame != b->time_frame || slot->offset != b->time_offset) continue;
        *t = slot->t;
        return NULL;
    }
    struct part_time *slot = &c->times[c->time_at];
    c->time_at = (c->time_at + 1) % PART_TIME_COLUMNS;
    TRY(decode_time(c, b, slot));
    *t = slot->t;
    return NULL;
}

err part_read_encoded(struct part_cursor *c, const struct part_block *b, str *values)
{
    *values = (str){0};
    if (b->constant) return NULL;
    return column_bytes(c, PART_FRAME_VALUE, b->value_frame, b->value_offset, b->value_bytes + b->start_bytes, values);
}

static err value_bytes(struct part_cursor *c, const struct part_block *b, str *out)
{
    return column_bytes(c, PART_FRAME_VALUE, b->value_frame, b->value_offset, b->value_bytes, out);
}

err part_read_starts(struct part_cursor *c, const struct part_block *b, int64_t *start)
{
    const int64_t *t;
    str bytes;
    TRY(part_read_times(c, b, &t));
    TRY(column_bytes(c, PART_FRAME_VALUE, b->value_frame, b->value_offset + b->value_bytes, b->start_bytes, &bytes));
    return part_cursor_blame(c, PART_FRAME_VALUE, b->value_frame,
                             column_start_decode(bytes.p, bytes.n, t, b->n, start));
}

err part_read_floats(struct part_cursor *c, const struct part_block *b, int64_t *t, double *v)
{
    const int64_t *times;
    str bytes;
    TRY(part_read_times(c, b, &times));
    memcpy(t, times, b->n * sizeof *t);
    if (b->constant) {
        for (uint32_t i = 0; i < b->n; i++)
            v[i] = b->agg.first;
        return NULL;
    }
    TRY(value_bytes(c, b, &bytes));
    struct scratch_pool *pool = fcache_scratch(c->p->cache);
    struct scratch *scratch = scratch_take(pool);
    err e = column_value_decode(scratch->columns, bytes.p, bytes.n, b->n, v);
    scratch_give(pool, scratch);
    return part_cursor_blame(c, PART_FRAME_VALUE, b->value_frame, e);
}

err part_read_hists(struct part_cursor *c, const struct part_block *b, int64_t *t, str *blobs, struct arena *a)
{
    const int64_t *times;
    str bytes;
    TRY(part_read_times(c, b, &times));
    memcpy(t, times, b->n * sizeof *t);
    TRY(value_bytes(c, b, &bytes));
    return part_cursor_blame(c, PART_FRAME_VALUE, b->value_frame, column_hist_decode(bytes.p, bytes.n, b->n, a, blobs));
}
