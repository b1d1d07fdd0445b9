/*
 * fuzz_column_start.c: columns of start timestamps from outside. Input: u16 n, then the column's bytes. What decodes
 * must come back from a new encoding.
 */
#include <stdlib.h>

#include "storage/column_start.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static int64_t t[LIMIT_BLOCK_SAMPLES], start[LIMIT_BLOCK_SAMPLES], back[LIMIT_BLOCK_SAMPLES];
    if (size < 2) return 0;
    size_t n = 1 + (data[0] | (size_t)data[1] << 8) % LIMIT_BLOCK_SAMPLES;
    for (size_t i = 0; i < n; i++)
        t[i] = INT64_C(1796034208352) + (int64_t)(i * i % 97) + (int64_t)i * 15000;
    err e = column_start_decode(data + 2, size - 2, t, n, start);
    if (e != NULL) {
        err_free(e);
        return 0;
    }
    struct buf out = {0};
    struct column_start_hint hint = {0};
    column_start_encode(t, start, n, &hint, &out);
    e = column_start_decode(out.data, out.n, t, n, back);
    if (e != NULL || memcmp(start, back, n * sizeof *start) != 0) abort();
    buf_deinit(&out);
    return 0;
}
