/*
 * fuzz_column_value.c: value columns from outside, and doubles from outside through the encoder.
 *
 * Input: u16 n, then bytes. They are decoded as a column of n values; what decodes is encoded again and must come
 * back. They are also taken as doubles, encoded with the hint the first bytes make, and must come back.
 */
#include <stdlib.h>

#include "storage/base/limits.h"
#include "storage/column_value.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void must_come_back(struct column_scratch *s, const double *v, size_t n, struct column_hint *hint)
{
    static double back[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    struct buf out = {0};
    column_value_encode(s, v, n, hint, &out);
    err e = column_value_decode(s, out.data, out.n, n, back);
    if (e != NULL || memcmp(v, back, n * sizeof *v) != 0) abort();
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    if (size < 6) return 0;
    struct column_scratch *s = column_scratch_create();
    size_t n = 1 + (data[0] | (size_t)data[1] << 8) % LIMIT_BLOCK_SAMPLES;
    err e = column_value_decode(s, data + 2, size - 2, n, v);
    if (e == NULL) must_come_back(s, v, n, NULL);
    err_free(e);
    struct column_hint hint;
    memcpy(&hint, data + 2, sizeof hint);
    n = (size - 6) / sizeof *v;
    if (n > LIMIT_BLOCK_SAMPLES) n = LIMIT_BLOCK_SAMPLES;
    if (n > 0) {
        memcpy(v, data + 6, n * sizeof *v);
        must_come_back(s, v, n, &hint);
    }
    column_scratch_destroy(s);
    return 0;
}
