/*
 * crc32c.h: CRC-32 with the Castagnoli polynomial, as the frames of Prometheus's remote read carry it.
 * For our own files hash.h is the checksum.
 */
#ifndef VARVE_STORAGE_BASE_CRC32C_H
#define VARVE_STORAGE_BASE_CRC32C_H

#include "storage/base/types.h"

/* Tables, 8 KiB: made once by whoever needs checksums; read-only then, for any thread. */
struct crc32c {
    uint32_t table[8][256];
};

void crc32c_init(struct crc32c *c);
uint32_t crc32c_of(const struct crc32c *c, const void *p, size_t n);

#endif
