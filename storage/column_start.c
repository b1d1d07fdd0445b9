/*
 * column_start.c: start timestamps as bytes and back; see column_start.h.
 *
 *   u8                 0: integers are the start timestamps   1: time minus start timestamp, modulo 2^64
 *   integer column     (integers.c)
 *
 * A cumulative series keeps its start for long: a constant in the first way. A series of deltas starts each sample
 * where the last one ended, or a fixed time before itself: a constant in the second. Both ways are tried and the
 * shorter kept; every 64-bit number comes back as it was, whatever it means. Any thread.
 */
#include "storage/column_start.h"

enum { WAY_ABSOLUTE, WAY_RELATIVE };

/* Modulo 2^64, which undoes itself. */
static int64_t distance(int64_t t, int64_t x)
{
    return (int64_t)((uint64_t)t - (uint64_t)x);
}

void column_start_encode(const int64_t *t, const int64_t *start, size_t n, struct column_start_hint *hint,
                         struct buf *out)
{
    int64_t relative[LIMIT_BLOCK_SAMPLES];
    struct integers_scratch scratch;
    for (size_t i = 0; i < n; i++)
        relative[i] = distance(t[i], start[i]);
    size_t at = out->n;
    buf_u8(out, WAY_ABSOLUTE);
    integers_encode(start, n, &hint->absolute, &scratch, out);
    size_t absolute_bytes = out->n - at;
    buf_u8(out, WAY_RELATIVE);
    integers_encode(relative, n, &hint->relative, &scratch, out);
    if (out->failed) return;
    size_t relative_bytes = out->n - at - absolute_bytes;
    if (relative_bytes < absolute_bytes) {
        memmove(out->data + at, out->data + at + absolute_bytes, relative_bytes);
        absolute_bytes = relative_bytes;
    }
    out->n = at + absolute_bytes;
}

err column_start_decode(const void *p, size_t bytes, const int64_t *t, size_t n, int64_t *start)
{
    struct cursor c = cursor_of(p, bytes);
    unsigned way = cursor_u8(&c);
    if (c.failed || way > WAY_RELATIVE) return err_corrupt("start timestamps written in an unknown way");
    TRY(integers_decode(&c, n, start));
    if (cursor_left(&c) != 0) return err_corrupt("bytes left behind a column of start timestamps");
    for (size_t i = 0; way == WAY_RELATIVE && i < n; i++)
        start[i] = distance(t[i], start[i]);
    return NULL;
}
