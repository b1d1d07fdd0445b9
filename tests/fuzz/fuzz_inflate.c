/* fuzz_inflate.c: the first byte picks an encoding, the rest is the body: ends, stays within the cap. */
#include <stdlib.h>

#include "ingest/inflate.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    enum { CAP = 1 << 20 };
    if (size == 0) return 0;
    struct buf out = {.max = CAP};
    str raw = {0};
    err e = body_expand((enum encoding)(data[0] % 5), (str){(const char *)data + 1, size - 1}, &out, &raw);
    if (e == NULL && raw.n > CAP) abort();
    if (e != NULL && err_code(e) != ERR_INVALID && err_code(e) != ERR_TOO_LARGE) abort();
    err_free(e);
    buf_deinit(&out);
    return 0;
}
