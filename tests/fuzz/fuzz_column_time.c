/*
 * fuzz_column_time.c: timestamp columns from outside. Input: u16 n, then the column's bytes. What decodes must come
 * back from a new encoding.
 */
#include <stdlib.h>

#include "storage/base/limits.h"
#include "storage/column_time.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int64_t t[LIMIT_BLOCK_SAMPLES], back[LIMIT_BLOCK_SAMPLES];
    if (size < 2) return 0;
    size_t n = 1 + (data[0] | (size_t)data[1] << 8) % LIMIT_BLOCK_SAMPLES;
    err e = column_time_decode(data + 2, size - 2, n, t);
    if (e != NULL) {
        err_free(e);
        return 0;
    }
    struct buf out = {0};
    column_time_encode(t, n, &out);
    e = column_time_decode(out.data, out.n, n, back);
    if (e != NULL || memcmp(t, back, n * sizeof *t) != 0) abort();
    buf_deinit(&out);
    return 0;
}
