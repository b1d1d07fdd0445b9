/* Fuzzes the reading of Accept headers; whatever they say, the answer has one of four content types. */
#include "server/accept.h"
#include "storage/base/assert.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct accept a = accept_exposition((str){(const char *)data, n});
    check(strlen(accept_content_type(a)) > 0);
    return 0;
}
