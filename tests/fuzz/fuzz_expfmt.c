/* fuzz_expfmt.c: any bytes as a text exposition, through admission into a real database. */
#include "tests/fuzz/fuzz_ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_ingest_post(INGEST_EXPOSITION, data, size);
    return 0;
}
