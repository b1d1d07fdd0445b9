/*
 * fuzz_column_hist.c: histogram columns and blobs from outside.
 *
 * Input: u16 n, then the column's bytes. Blobs that decode must come back from a new column, and histograms that
 * decode from a new blob. The bytes are also tried as one blob.
 */
#include <stdlib.h>

#include "storage/base/limits.h"
#include "storage/column_hist.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void try_blob(str blob, struct arena *a)
{
    struct hist h, again;
    struct buf once = {0}, twice = {0};
    err e = hist_decode(blob, a, &h);
    if (e != NULL) {
        err_free(e);
        return;
    }
    hist_encode(&h, &once);
    e = hist_decode(buf_as_str(&once), a, &again);
    if (e != NULL) abort();
    hist_encode(&again, &twice);
    if (!str_eq(buf_as_str(&once), buf_as_str(&twice))) abort();
    buf_deinit(&once);
    buf_deinit(&twice);
}

static void must_come_back(const str *blobs, size_t n, struct arena *a)
{
    static str back[LIMIT_BLOCK_SAMPLES];
    struct buf out = {0};
    column_hist_encode(blobs, n, &out);
    err e = column_hist_decode(out.data, out.n, n, a, back);
    if (e != NULL) abort();
    for (size_t i = 0; i < n; i++)
        if (!str_eq(blobs[i], back[i])) abort();
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static str blobs[LIMIT_BLOCK_SAMPLES];
    if (size < 2) return 0;
    struct arena a = {0};
    size_t n = 1 + (data[0] | (size_t)data[1] << 8) % LIMIT_BLOCK_SAMPLES;
    try_blob((str){(const char *)data + 2, size - 2}, &a);
    err e = column_hist_decode(data + 2, size - 2, n, &a, blobs);
    if (e == NULL) {
        must_come_back(blobs, n, &a);
        try_blob(blobs[0], &a);
    }
    err_free(e);
    arena_deinit(&a);
    return 0;
}
