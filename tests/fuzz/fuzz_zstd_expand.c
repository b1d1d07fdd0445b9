/* Fuzzes zstd_expand: bodies from outside stay within the cap and end in bytes or an error. */
#include "storage/base/assert.h"
#include "storage/base/zframe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct buf out = {.max = 1 << 20};
    err_free(zstd_expand(data, n, &out));
    check(out.n <= out.max);
    buf_deinit(&out);
    return 0;
}
