/*
 * column_time.c: a column of strictly increasing timestamps.
 *
 * The layout is one integer column (integers.c) over the milliseconds, nothing else: a constant step
 * is a straight line with planes of width 0, jitter around a step leaves one byte a sample, a gap goes
 * to the patch list. Reads and writes only what it is given; any thread.
 */
#include "storage/column_time.h"

#include "storage/integers.h"

void column_time_encode(const int64_t *t, size_t n, struct buf *out)
{
    struct integers_scratch scratch;
    integers_encode(t, n, NULL, &scratch, out);
}

static bool increases(const int64_t *t, size_t n)
{
    unsigned bad = 0;
    for (size_t i = 1; i < n; i++)
        bad |= t[i] <= t[i - 1];
    return bad == 0;
}

err column_time_decode(const void *p, size_t bytes, size_t n, int64_t *t)
{
    struct cursor c = cursor_of(p, bytes);
    TRY(integers_decode(&c, n, t));
    if (cursor_left(&c) != 0) return err_corrupt("time column: %zu bytes left over", cursor_left(&c));
    if (!increases(t, n)) return err_corrupt("time column: timestamps do not increase");
    return NULL;
}
