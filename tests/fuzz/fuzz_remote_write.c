/* fuzz_remote_write.c: any bytes as a remote write 1.0 request, through admission into a real database. */
#include "tests/fuzz/fuzz_ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_ingest_post(INGEST_REMOTE_WRITE, data, size);
    return 0;
}
