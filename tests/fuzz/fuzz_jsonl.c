/* fuzz_jsonl.c: any bytes as JSON lines, through admission into a real database. */
#include "tests/fuzz/fuzz_ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz_ingest f;
    fuzz_ingest_post(&f, INGEST_JSON_LINES, data, size);
    return 0;
}
