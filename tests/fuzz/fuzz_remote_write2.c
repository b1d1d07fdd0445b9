/* fuzz_remote_write2.c: any bytes as a remote write 2.0 request, through admission into a real database. */
#include "tests/fuzz/fuzz_ingest.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    str type = STR("application/x-protobuf;proto=io.prometheus.write.v2.Request");
    fuzz_ingest_send(INGEST_REMOTE_WRITE, type, data, size);
    return 0;
}
