/*
 * crc32c.c: eight bytes a step by eight tables ("slicing by 8"). table[k][b] is what byte b contributes when k
 * more bytes follow it in the step. The polynomial 0x1EDC6F41 is written with its bits reversed.
 */
#include "storage/base/crc32c.h"

#define POLYNOMIAL UINT32_C(0x82f63b78)

void crc32c_init(struct crc32c *c)
{
    for (uint32_t b = 0; b < 256; b++) {
        uint32_t crc = b;
        for (int bit = 0; bit < 8; bit++)
            crc = crc >> 1 ^ (crc & 1 ? POLYNOMIAL : 0);
        c->table[0][b] = crc;
    }
    for (uint32_t k = 1; k < 8; k++)
        for (uint32_t b = 0; b < 256; b++)
            c->table[k][b] = c->table[k - 1][b] >> 8 ^ c->table[0][c->table[k - 1][b] & 0xff];
}

uint32_t crc32c_of(const struct crc32c *c, const void *p, size_t n)
{
    const uint8_t *at = p, *end = at + n;
    uint32_t crc = UINT32_MAX;
    for (; end - at >= 8; at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        word ^= crc;
        crc = 0;
        for (uint32_t k = 0; k < 8; k++)
            crc ^= c->table[7 - k][word >> (8 * k) & 0xff];
    }
    for (; at < end; at++)
        crc = crc >> 8 ^ c->table[0][(crc ^ *at) & 0xff];
    return ~crc;
}
