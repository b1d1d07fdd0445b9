/* Fuzzes the cursor: the first bytes are a program of reads, the rest is what it reads; no read leaves the range, and
 * after a failure all are zero. */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/buf.h"

static uint64_t read_one(struct cursor *c, uint8_t op)
{
    const uint8_t *p;
    switch (op % 8) {
    case 0:
        return cursor_u8(c);
    case 1:
        return cursor_u16(c);
    case 2:
        return cursor_u32(c);
    case 3:
        return cursor_u64(c);
    case 4:
        return cursor_varint(c);
    case 5:
        return (uint64_t)cursor_zigzag(c);
    case 6:
        p = cursor_bytes(c, op / 8u);
        return p && op >= 8 ? (uint64_t)p[op / 8u - 1] : 0;
    default: {
        str s = cursor_lenstr(c);
        return s.n ? (uint64_t)(uint8_t)s.p[s.n - 1] : 0;
    }
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    size_t program = n < 32 ? n / 2 : 16;
    uint8_t *bytes = mem_dup(data + program, n - program); /* exact size: ASan sees a step beyond */
    struct cursor c = cursor_of(bytes, n - program);
    for (size_t i = 0; i < program; i++) {
        bool failed = c.failed;
        uint64_t v = read_one(&c, data[i]);
        check(!c.failed || cursor_left(&c) == 0);
        check(!failed || (c.failed && v == 0));
    }
    mem_free(bytes);
    return 0;
}
