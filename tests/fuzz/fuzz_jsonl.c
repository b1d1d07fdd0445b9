/* fuzz_jsonl.c: any bytes as JSON lines, through admission into a real database. */
#include "tests/fuzz/fuzz_ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    fuzz_ingest_post(INGEST_JSON_LINES, data, size);
    return 0;
}
