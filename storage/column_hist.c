/*
 * column_hist.c: a column of histogram blobs.
 *
 * Neighbouring samples of one series mostly share their layout (hist.c), so a run of such blobs is
 * transposed: the layout once, then each count's history as a column of its own.
 *
 *   column   groups until n blobs are there; each: varint (blobs << 1 | transposed), then
 *     plain        per blob: varint length, bytes
 *     transposed   varint length of the layout, its bytes
 *                  integers: per count an integer column (integers.c); buckets absolute, not differences
 *                  floats:   per count varint length and a value column (column_value.c)
 *                  the sums: varint length and a value column
 *
 * A run is transposed only if it gives its blobs back byte for byte (varints as short as can be) and if
 * the blobs of all transposed runs can't take more than EXPANDED_MAX bytes; that bounds what a reader
 * must provide for a few hostile bytes. Everything else stays plain. Memory: a column_scratch a call,
 * results in the caller's arena. Any thread.
 */
#include "storage/hist.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/limits.h"
#include "storage/base/varint.h"
#include "storage/column_value.h"
#include "storage/integers.h"

#define EXPANDED_MAX (4 * (size_t)LIMIT_BLOCK_RAW)
#define RUN_MIN 2 /* a shorter one stays plain */
#define TRANSPOSED 1

/* The most bytes a blob of this layout can take. */
static size_t blob_bound(const struct hist_layout *l)
{
    return l->bytes + hist_layout_numbers(l) * VARINT_MAX + 8;
}

/* True for numbers whose differences the blob holds: all but the first of each sign. */
static bool is_difference(const struct hist_layout *l, size_t number)
{
    return number > 2 && number != (size_t)2 + l->positive;
}

/* ---- encoding */

struct encoder {
    const str *blobs;
    size_t n, expanded;
    struct column_scratch *values; /* NULL until needed */
    struct integers_scratch integers;
    struct cursor at[LIMIT_BLOCK_SAMPLES]; /* what is not yet written of each blob of the run */
    int64_t k[LIMIT_BLOCK_SAMPLES];
    double v[LIMIT_BLOCK_SAMPLES];
    struct buf column;
};

static size_t varint_length(uint64_t v)
{
    size_t n = 1;
    for (; v >= 0x80; v >>= 7)
        n++;
    return n;
}

/* True if the blob holds exactly what its layout says, in the shortest varints. */
static bool is_regular(str blob, const struct hist_layout *l)
{
    size_t numbers = hist_layout_numbers(l);
    if (l->is_float) return blob.n == l->bytes + 8 * numbers + 8;
    struct cursor c = cursor_of(blob.p + l->bytes, blob.n - l->bytes);
    size_t length = 0;
    for (size_t i = 0; i < numbers; i++)
        length += varint_length(cursor_varint(&c));
    return !c.failed && length + cursor_left(&c) == blob.n - l->bytes && cursor_left(&c) == 8;
}

static bool same_layout(str blob, str first, const struct hist_layout *l)
{
    return blob.n >= l->bytes && memcmp(blob.p, first.p, l->bytes) == 0 && is_regular(blob, l);
}

/* The length of the transposable run that starts at blob `from`; 0 if there is none. */
static size_t find_run(const struct encoder *e, size_t from, struct hist_layout *l)
{
    str first = e->blobs[from];
    struct cursor c = cursor_of(first.p, first.n);
    if (!hist_layout_read(&c, l) || !is_regular(first, l)) return 0;
    size_t most = (EXPANDED_MAX - e->expanded) / blob_bound(l), end = from + 1;
    while (end < e->n && end - from < most && same_layout(e->blobs[end], first, l))
        end++;
    return end - from < RUN_MIN || most < RUN_MIN ? 0 : end - from;
}

static void put_value_column(struct encoder *e, size_t run, struct buf *out)
{
    if (e->values == NULL) e->values = column_scratch_create();
    for (size_t i = 0; i < run; i++)
        e->v[i] = f64_from_bits(cursor_u64(&e->at[i]));
    buf_clear(&e->column);
    column_value_encode(e->values, e->v, run, NULL, &e->column);
    buf_lenstr(out, buf_as_str(&e->column));
}

static void put_integer_column(struct encoder *e, size_t run, bool difference, bool zigzagged, struct buf *out)
{
    for (size_t i = 0; i < run; i++) {
        uint64_t u = cursor_varint(&e->at[i]);
        uint64_t number = zigzagged ? (uint64_t)unzigzag(u) : u;
        e->k[i] = (int64_t)(number + (difference ? (uint64_t)e->k[i] : 0));
    }
    integers_encode(e->k, run, NULL, &e->integers, out);
}

static void put_transposed(struct encoder *e, size_t from, size_t run, const struct hist_layout *l, struct buf *out)
{
    buf_varint(out, run << 1 | TRANSPOSED);
    buf_lenstr(out, (str){e->blobs[from].p, l->bytes});
    for (size_t i = 0; i < run; i++)
        e->at[i] = cursor_of(e->blobs[from + i].p + l->bytes, e->blobs[from + i].n - l->bytes);
    for (size_t number = 0; number < hist_layout_numbers(l); number++) {
        if (l->is_float)
            put_value_column(e, run, out);
        else
            put_integer_column(e, run, is_difference(l, number), number >= 2, out);
    }
    put_value_column(e, run, out);
    e->expanded += run * blob_bound(l);
}

static void put_plain(const struct encoder *e, size_t from, size_t count, struct buf *out)
{
    if (count == 0) return;
    buf_varint(out, count << 1);
    for (size_t i = 0; i < count; i++)
        buf_lenstr(out, e->blobs[from + i]);
}

void column_hist_encode(const str *blobs, size_t n, struct buf *out)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct encoder *e = mem_alloc(sizeof *e);
    e->blobs = blobs;
    e->n = n;
    e->expanded = 0;
    e->values = NULL;
    e->column = (struct buf){0};
    size_t plain = 0; /* blobs before i that are not yet written */
    for (size_t i = 0; i < n;) {
        struct hist_layout l;
        size_t run = find_run(e, i, &l);
        if (run == 0) {
            plain++;
            i++;
            continue;
        }
        put_plain(e, i - plain, plain, out);
        plain = 0;
        put_transposed(e, i, run, &l, out);
        i += run;
    }
    put_plain(e, n - plain, plain, out);
    buf_deinit(&e->column);
    column_scratch_destroy(e->values);
    mem_free(e);
}

/* ---- decoding */

struct decoder {
    struct cursor c;
    struct arena *arena;
    size_t expanded;
    struct column_scratch *values;
    double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
};

/* A value column's bits into row[0..run). */
static err get_value_column(struct decoder *d, size_t run, uint64_t *row)
{
    str column = cursor_lenstr(&d->c);
    if (d->c.failed) return err_corrupt("histogram column: cut off");
    TRY(column_value_decode(d->values, column.p, column.n, run, d->v));
    memcpy(row, d->v, run * sizeof *row);
    return NULL;
}

/* Numbers of one run, a row of `run` for each count and one for the sums, as the blobs hold them. */
static err get_rows(struct decoder *d, const struct hist_layout *l, size_t run, uint64_t *rows)
{
    size_t numbers = hist_layout_numbers(l);
    for (size_t number = 0; number < numbers; number++) {
        uint64_t *row = rows + number * run;
        if (l->is_float)
            TRY(get_value_column(d, run, row));
        else
            TRY(integers_decode(&d->c, run, (int64_t *)row));
    }
    return get_value_column(d, run, rows + numbers * run);
}

/* Writes the numbers of blob i of a run at p, returns their end. */
static uint8_t *put_numbers(const struct hist_layout *l, const uint64_t *rows, size_t run, size_t i, uint8_t *p)
{
    size_t numbers = hist_layout_numbers(l);
    for (size_t number = 0; number < numbers; number++) {
        uint64_t x = rows[number * run + i];
        if (l->is_float) {
            memcpy(p, &x, sizeof x);
            p += sizeof x;
            continue;
        }
        if (is_difference(l, number)) x -= rows[(number - 1) * run + i];
        p = varint_put(p, number >= 2 ? zigzag((int64_t)x) : x);
    }
    memcpy(p, &rows[numbers * run + i], sizeof *rows);
    return p + sizeof *rows;
}

static err get_transposed(struct decoder *d, size_t run, str *blobs)
{
    str layout = cursor_lenstr(&d->c);
    struct cursor c = cursor_of(layout.p, layout.n);
    struct hist_layout l;
    if (d->c.failed || !hist_layout_read(&c, &l) || cursor_left(&c) != 0)
        return err_corrupt("histogram column: malformed layout");
    size_t bound = blob_bound(&l);
    if (bound > (EXPANDED_MAX - d->expanded) / run) return err_corrupt("histogram column: expands too far");
    d->expanded += run * bound;
    uint64_t *rows = mem_alloc((hist_layout_numbers(&l) + 1) * run * sizeof *rows);
    uint8_t *blob = mem_alloc(bound);
    err e = get_rows(d, &l, run, rows);
    if (e == NULL) {
        memcpy(blob, layout.p, layout.n);
        for (size_t i = 0; i < run; i++) {
            size_t n = (size_t)(put_numbers(&l, rows, run, i, blob + layout.n) - blob);
            blobs[i] = (str){arena_dup(d->arena, blob, n), n};
        }
    }
    mem_free(blob);
    mem_free(rows);
    return e;
}

static err get_plain(struct decoder *d, size_t count, str *blobs)
{
    for (size_t i = 0; i < count; i++) {
        str blob = cursor_lenstr(&d->c);
        if (d->c.failed) return err_corrupt("histogram column: cut off");
        blobs[i] = (str){arena_dup(d->arena, blob.p, blob.n), blob.n};
    }
    return NULL;
}

static err get_groups(struct decoder *d, size_t n, str *blobs)
{
    for (size_t i = 0; i < n;) {
        uint64_t head = cursor_varint(&d->c), count = head >> 1;
        if (d->c.failed || count == 0 || count > n - i) return err_corrupt("histogram column: group of %zu blobs", n);
        TRY(head & TRANSPOSED ? get_transposed(d, count, blobs + i) : get_plain(d, count, blobs + i));
        i += count;
    }
    if (cursor_left(&d->c) != 0) return err_corrupt("histogram column: %zu bytes left over", cursor_left(&d->c));
    return NULL;
}

err column_hist_decode(const void *p, size_t bytes, size_t n, struct arena *a, str *blobs)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct decoder *d = mem_alloc(sizeof *d);
    d->c = cursor_of(p, bytes);
    d->arena = a;
    d->expanded = 0;
    d->values = column_scratch_create();
    err e = get_groups(d, n, blobs);
    column_scratch_destroy(d->values);
    mem_free(d);
    return e;
}
