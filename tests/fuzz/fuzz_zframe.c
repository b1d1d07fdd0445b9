/* Fuzzes zframe_get with the checksum made right, so that what lies behind it is reached: a frame of any bytes either
 * expands to exactly the promised size or is an error. */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/hash.h"
#include "storage/base/limits.h"
#include "storage/base/zframe.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t disk, raw;
    if (n < ZFRAME_HEADER) return 0;
    uint8_t *frame = mem_dup(data, n);
    uint32_t payload = (uint32_t)(n - ZFRAME_HEADER);
    memcpy(frame, &payload, sizeof payload);
    uint64_t sum = checksum64_two(frame, 8, frame + ZFRAME_HEADER, payload);
    memcpy(frame + 8, &sum, sizeof sum);
    err e = zframe_sizes(frame, LIMIT_FRAME_RAW, &disk, &raw);
    if (!e) {
        check(disk == n);
        struct zctx *z = zctx_create();
        uint8_t *out = mem_alloc(raw);
        e = zframe_get(z, frame, n, out, raw);
        mem_free(out);
        zctx_destroy(z);
    }
    err_free(e);
    mem_free(frame);
    return 0;
}
