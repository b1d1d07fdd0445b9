/*
 * fuzz_snappy.c: any bytes as a snappy block: ends, stays in bounds, keeps to the cap; and a plain
 * byte-by-byte decoder, written for this test alone, agrees on what comes out. The same bytes packed
 * come back from both decoders as they were.
 */
#include <stdlib.h>

#include "storage/base/snappy.h"
#include "storage/base/varint.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#define CAP 65536

/* The format said once more, slowly. False if malformed or over the cap. */
static bool plain(const uint8_t *p, size_t n, uint8_t *out, size_t *out_n)
{
    uint64_t raw;
    const uint8_t *end = p + n;
    p = n ? varint_get(p, end, &raw) : NULL;
    if (p == NULL || raw > CAP) return false;
    size_t at = 0;
    while (p < end) {
        uint32_t tag = *p++, kind = tag & 3;
        size_t bytes = kind == 3 ? 4 : kind, length = (tag >> 2) + 1, number = 0;
        if (kind == 0 && length > 60) bytes = length - 60;
        if ((size_t)(end - p) < bytes) return false;
        for (size_t i = 0; i < bytes; i++)
            number |= (size_t)*p++ << (8 * i);
        if (kind == 0 && length > 60) length = number + 1;
        if (kind == 1) {
            length = ((tag >> 2) & 7) + 4;
            number |= (size_t)(tag >> 5) << 8;
        }
        if (length > raw - at || (kind == 0 && length > (size_t)(end - p))) return false;
        if (kind != 0 && (number == 0 || number > at)) return false;
        for (; length > 0; length--, at++)
            out[at] = kind == 0 ? *p++ : out[at - number];
    }
    *out_n = at;
    return at == raw;
}

static void pack(const uint8_t *data, size_t size)
{
    static uint8_t back[CAP];
    size_t n = 0;
    struct buf packed = {0}, out = {.max = size + 1};
    snappy_pack(data, size, &packed);
    if (snappy_expand(packed.data, packed.n, &out) != NULL) abort();
    if (!str_eq(buf_as_str(&out), (str){(const char *)data, size})) abort();
    if (size <= CAP && (!plain(packed.data, packed.n, back, &n) || n != size)) abort();
    buf_deinit(&packed);
    buf_deinit(&out);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static uint8_t expected[CAP];
    size_t n = 0;
    struct buf out = {.max = CAP};
    err e = snappy_expand(data, size, &out);
    bool good = plain(data, size, expected, &n);
    if (good != (e == NULL)) abort();
    if (good && !str_eq(buf_as_str(&out), (str){(const char *)expected, n})) abort();
    if (out.cap > CAP + 64) abort();
    err_free(e);
    buf_deinit(&out);
    pack(data, size);
    return 0;
}
