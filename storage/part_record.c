/*
 * part_record.c: the record of one series, written against the record before it in its group.
 *
 * Neighbours in storage order have the same label names, differ in a value or two, and share time
 * columns, so most of a record is "as before". Before a group's first record everything "before" is zero.
 *
 *   varint   blocks << 1 | same        same: the label names are those of the record before
 *   same:    (pairs + 7) / 8 bytes     bit i (byte i/8, bit i%8): the value of pair i differs
 *            zigzag each               of those values, minus the value before
 *   else:    varint pairs
 *            per pair: varint          name - previous name of this record - 1 (the first: the name)
 *                      varint          value
 *   per block:
 *     u8       flags: 1 histogram, 2 constant, 4 placed, 8 aggregates, 16 starts (not with 2 or 8)
 *     zigzag   time column - expected: block k expects the column of block k before, or, past those,
 *              the column of the block before it in this record + 1 (the first: 0)
 *     constant:  number, the value of every sample
 *     else:      placed: zigzag value frame - expected frame, varint offset in it
 *                varint bytes of the value column, if starts: varint bytes of the start column, which lies right
 *                behind it. Expected is the byte behind the last of these columns.
 *     aggregates:
 *       u8       bits 0-1 min, 2-3 max, each 0 given, 1 as first, 2 as last; 16: last as first; 32: no resets
 *       numbers  first, [last], [min], [max], sum, [resets]
 *
 *   number:  varint zigzag(k) << 4 | e + 1  for k / 10^e, 0 <= e <= 12, |k| <= 2^53, if that gives the
 *            same double, bit for bit; else varint 0 and the double's 8 bytes
 *
 * A record is a scratch of its owner, one thread. Decoding checks every byte and allocates no more than
 * the bytes at hand account for.
 */
#include <math.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/varint.h"
#include "storage/part_format.h"

enum { FLAG_HIST = 1, FLAG_CONSTANT = 2, FLAG_PLACED = 4, FLAG_AGGREGATES = 8, FLAG_STARTS = 16, FLAGS_ALL = 31 };
enum { AGG_MIN_SHIFT = 0, AGG_MAX_SHIFT = 2, AGG_LAST_AS_FIRST = 16, AGG_NO_RESETS = 32, AGG_ALL = 63 };
enum { AS_GIVEN, AS_FIRST, AS_LAST };

#define EXPONENT_MAX 12
#define MANTISSA_MAX 9007199254740992.0 /* 2^53 */
#define BLOCK_BYTES_MIN 3               /* no block takes fewer */

static const double powers[EXPONENT_MAX + 1] = {1, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11, 1e12};

void part_record_deinit(struct part_record *r)
{
    mem_free(r->blocks);
    mem_free(r->columns);
}

void part_record_reset(struct part_record *r)
{
    r->n_pairs = 0;
    r->n_blocks = 0;
    r->value_frame = 0;
    r->value_offset = 0;
}

void part_record_reserve(struct part_record *r, size_t n)
{
    r->blocks = mem_grow(r->blocks, &r->cap_blocks, n, sizeof *r->blocks);
    r->columns = mem_grow(r->columns, &r->cap_columns, n, sizeof *r->columns);
}

/* ---- numbers ------------------------------------------------------------------------------------------------ */

void part_record_put_number(double v, struct buf *out)
{
    for (unsigned e = 0; e <= EXPONENT_MAX && isfinite(v); e++) {
        double scaled = nearbyint(v * powers[e]);
        if (fabs(scaled) > MANTISSA_MAX) break;
        if (f64_bits(scaled / powers[e]) != f64_bits(v)) continue;
        if (scaled == 0 && signbit(v)) break; /* an integer has no -0 */
        buf_varint(out, zigzag((int64_t)scaled) << 4 | (e + 1));
        return;
    }
    buf_varint(out, 0);
    buf_u64(out, f64_bits(v));
}

double part_record_get_number(struct cursor *c)
{
    uint64_t x = cursor_varint(c);
    if (x == 0) return f64_from_bits(cursor_u64(c));
    unsigned code = x & 15;
    if (code == 0 || code > EXPONENT_MAX + 1) {
        c->failed = true;
        return 0;
    }
    return (double)unzigzag(x >> 4) / powers[code - 1];
}

/* ---- aggregates --------------------------------------------------------------------------------------------- */

static bool same_bits(double a, double b)
{
    return f64_bits(a) == f64_bits(b);
}

static unsigned relation(double v, const struct block_aggregates *a)
{
    return same_bits(v, a->first) ? AS_FIRST : same_bits(v, a->last) ? AS_LAST : AS_GIVEN;
}

static void put_aggregates(const struct block_aggregates *a, struct buf *out)
{
    unsigned low = relation(a->min, a), high = relation(a->max, a);
    unsigned flags = low << AGG_MIN_SHIFT | high << AGG_MAX_SHIFT;
    bool last_as_first = same_bits(a->last, a->first), no_resets = same_bits(a->resets, 0);
    if (last_as_first) flags |= AGG_LAST_AS_FIRST;
    if (no_resets) flags |= AGG_NO_RESETS;
    buf_u8(out, (uint8_t)flags);
    part_record_put_number(a->first, out);
    if (!last_as_first) part_record_put_number(a->last, out);
    if (low == AS_GIVEN) part_record_put_number(a->min, out);
    if (high == AS_GIVEN) part_record_put_number(a->max, out);
    part_record_put_number(a->sum, out);
    if (!no_resets) part_record_put_number(a->resets, out);
}

static double get_related(struct cursor *c, unsigned how, const struct block_aggregates *a)
{
    if (how == AS_FIRST) return a->first;
    if (how == AS_LAST) return a->last;
    return part_record_get_number(c);
}

static bool get_aggregates(struct cursor *c, struct block_aggregates *a)
{
    unsigned flags = cursor_u8(c);
    unsigned low = flags >> AGG_MIN_SHIFT & 3, high = flags >> AGG_MAX_SHIFT & 3;
    if (flags & ~(unsigned)AGG_ALL || low > AS_LAST || high > AS_LAST) return false;
    a->first = part_record_get_number(c);
    a->last = flags & AGG_LAST_AS_FIRST ? a->first : part_record_get_number(c);
    a->min = get_related(c, low, a);
    a->max = get_related(c, high, a);
    a->sum = part_record_get_number(c);
    a->resets = flags & AGG_NO_RESETS ? 0 : part_record_get_number(c);
    return !c->failed;
}

/* ---- labels ------------------------------------------------------------------------------------------------- */

static bool same_names(const struct part_record *a, const struct part_record *b)
{
    if (a->n_pairs != b->n_pairs) return false;
    for (uint32_t i = 0; i < a->n_pairs; i++)
        if (a->pairs[2 * i] != b->pairs[2 * i]) return false;
    return true;
}

static void put_values(const struct part_record *last, const struct part_record *r, struct buf *out)
{
    uint8_t mask[(LIMIT_LABELS + 7) / 8] = {0};
    for (uint32_t i = 0; i < r->n_pairs; i++)
        if (r->pairs[2 * i + 1] != last->pairs[2 * i + 1]) mask[i / 8] |= (uint8_t)(1u << (i % 8));
    buf_put(out, mask, (r->n_pairs + 7) / 8);
    for (uint32_t i = 0; i < r->n_pairs; i++)
        if (mask[i / 8] >> (i % 8) & 1) buf_zigzag(out, (int64_t)r->pairs[2 * i + 1] - (int64_t)last->pairs[2 * i + 1]);
}

static void put_pairs(const struct part_record *r, struct buf *out)
{
    buf_varint(out, r->n_pairs);
    uint32_t next = 0;
    for (uint32_t i = 0; i < r->n_pairs; i++) {
        buf_varint(out, r->pairs[2 * i] - next);
        buf_varint(out, r->pairs[2 * i + 1]);
        next = r->pairs[2 * i] + 1;
    }
}

static bool get_values(struct part_record *r, struct cursor *c)
{
    const uint8_t *mask = cursor_bytes(c, (r->n_pairs + 7) / 8);
    if (mask == NULL) return false;
    for (uint32_t i = 0; i < r->n_pairs; i++) {
        if (!(mask[i / 8] >> (i % 8) & 1)) continue;
        int64_t delta = cursor_zigzag(c), value = (int64_t)r->pairs[2 * i + 1];
        if (delta < -(int64_t)UINT32_MAX || delta > (int64_t)UINT32_MAX) return false;
        value += delta;
        if (value < 0 || value > UINT32_MAX) return false;
        r->pairs[2 * i + 1] = (uint32_t)value;
        r->fresh[i] = 0;
    }
    return true;
}

static bool get_pairs(struct part_record *r, struct cursor *c)
{
    uint64_t n = cursor_varint(c), next = 0;
    if (n > LIMIT_LABELS) return false;
    for (uint64_t i = 0; i < n; i++) {
        uint64_t gap = cursor_varint(c), value = cursor_varint(c);
        if (gap > UINT32_MAX || next + gap > UINT32_MAX || value > UINT32_MAX) return false;
        r->pairs[2 * i] = (uint32_t)(next + gap);
        r->pairs[2 * i + 1] = (uint32_t)value;
        next += gap + 1;
    }
    r->n_pairs = (uint32_t)n;
    memset(r->fresh, 0, n);
    return true;
}

/* ---- blocks ------------------------------------------------------------------------------------------------- */

static uint32_t expected_column(const struct part_record *r, uint32_t k, uint32_t n_before)
{
    if (k < n_before) return r->columns[k];
    return k > 0 ? r->columns[k - 1] + 1 : 0;
}

static void put_value_place(struct part_record *last, const struct part_block *b, bool placed, struct buf *out)
{
    if (placed) {
        buf_zigzag(out, (int64_t)b->value_frame - (int64_t)last->value_frame);
        buf_varint(out, b->value_offset);
    }
    buf_varint(out, b->value_bytes);
    if (b->start_bytes > 0) buf_varint(out, b->start_bytes);
    last->value_frame = b->value_frame;
    last->value_offset = b->value_offset + b->value_bytes + b->start_bytes;
}

static void put_block(struct part_record *last, const struct part_block *b, int64_t column_delta, struct buf *out)
{
    bool placed = b->value_frame != last->value_frame || b->value_offset != last->value_offset;
    unsigned flags = b->kind == BLOCK_HIST ? FLAG_HIST : 0;
    if (b->constant) {
        flags |= FLAG_CONSTANT;
    } else {
        if (placed) flags |= FLAG_PLACED;
        if (b->has_aggregates) flags |= FLAG_AGGREGATES;
        if (b->start_bytes > 0) flags |= FLAG_STARTS;
    }
    buf_u8(out, (uint8_t)flags);
    buf_zigzag(out, column_delta);
    if (b->constant) {
        part_record_put_number(b->agg.first, out);
        return;
    }
    put_value_place(last, b, placed, out);
    if (b->has_aggregates) put_aggregates(&b->agg, out);
}

static bool get_value_place(struct part_record *r, struct part_block *b, unsigned flags, struct cursor *c)
{
    int64_t frame = r->value_frame;
    uint64_t offset = r->value_offset;
    if (flags & FLAG_PLACED) {
        int64_t delta = cursor_zigzag(c);
        if (delta < -(int64_t)UINT32_MAX || delta > (int64_t)UINT32_MAX) return false;
        frame += delta;
        offset = cursor_varint(c);
    }
    uint64_t bytes = cursor_varint(c), start_bytes = flags & FLAG_STARTS ? cursor_varint(c) : 0;
    if ((flags & FLAG_STARTS && start_bytes == 0) || start_bytes > LIMIT_FRAME_RAW) return false;
    if (frame < 0 || frame > UINT32_MAX || offset > LIMIT_FRAME_RAW || bytes > LIMIT_FRAME_RAW) return false;
    b->value_frame = (uint32_t)frame;
    b->value_offset = (uint32_t)offset;
    b->value_bytes = (uint32_t)bytes;
    b->start_bytes = (uint32_t)start_bytes;
    r->value_frame = b->value_frame;
    r->value_offset = b->value_offset + b->value_bytes + b->start_bytes;
    return true;
}

static bool get_block(struct part_record *r, uint32_t k, uint32_t n_before, struct cursor *c)
{
    struct part_block *b = &r->blocks[k];
    unsigned flags = cursor_u8(c);
    int64_t delta = cursor_zigzag(c), column = expected_column(r, k, n_before);
    if (flags & ~(unsigned)FLAGS_ALL || (flags & FLAG_CONSTANT && flags != FLAG_CONSTANT)) return false;
    if (flags & FLAG_STARTS && flags & FLAG_AGGREGATES) return false;
    if (delta < -(int64_t)UINT32_MAX || delta > (int64_t)UINT32_MAX) return false;
    column += delta;
    if (column < 0 || column > UINT32_MAX) return false;
    r->columns[k] = (uint32_t)column;
    *b = (struct part_block){.kind = flags & FLAG_HIST ? BLOCK_HIST : BLOCK_FLOAT};
    if (flags & FLAG_CONSTANT) {
        b->constant = true;
        b->agg.first = part_record_get_number(c);
        return !c->failed;
    }
    if (!get_value_place(r, b, flags, c)) return false;
    if (!(flags & FLAG_AGGREGATES)) return !c->failed;
    b->has_aggregates = true;
    return b->kind == BLOCK_FLOAT && get_aggregates(c, &b->agg);
}

/* ---- whole records ------------------------------------------------------------------------------------------ */

static void put_blocks(struct part_record *last, const struct part_record *r, struct buf *out)
{
    uint32_t n_before = last->n_blocks;
    part_record_reserve(last, r->n_blocks);
    for (uint32_t k = 0; k < r->n_blocks; k++) {
        int64_t delta = (int64_t)r->columns[k] - (int64_t)expected_column(last, k, n_before);
        put_block(last, &r->blocks[k], delta, out);
        last->columns[k] = r->columns[k];
    }
    last->n_blocks = r->n_blocks;
}

void part_record_encode(struct part_record *last, const struct part_record *r, struct buf *out)
{
    bool same = same_names(last, r);
    buf_varint(out, (uint64_t)r->n_blocks << 1 | same);
    if (same)
        put_values(last, r, out);
    else
        put_pairs(r, out);
    last->n_pairs = r->n_pairs;
    memcpy(last->pairs, r->pairs, 2 * r->n_pairs * sizeof *r->pairs);
    put_blocks(last, r, out);
}

bool part_record_decode(struct part_record *r, struct cursor *c)
{
    uint64_t head = cursor_varint(c), n_blocks = head >> 1;
    if (!(head & 1 ? get_values(r, c) : get_pairs(r, c))) return false;
    if (n_blocks == 0 || n_blocks > cursor_left(c) / BLOCK_BYTES_MIN) return false;
    uint32_t n_before = r->n_blocks;
    part_record_reserve(r, n_blocks);
    for (uint32_t k = 0; k < n_blocks; k++)
        if (!get_block(r, k, n_before, c)) return false;
    r->n_blocks = (uint32_t)n_blocks;
    return !c->failed;
}
