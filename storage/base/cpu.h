/*
 * cpu.h: what the processor can do that not all of its architecture can.
 */
#ifndef VARVE_STORAGE_BASE_CPU_H
#define VARVE_STORAGE_BASE_CPU_H

#include "storage/base/types.h"

/* One bit a feature; those of the other architecture are never set. */
enum cpu_feature {
    /* amd64 */
    CPU_SSE42 = 1 << 0,
    CPU_POPCNT = 1 << 1,
    CPU_PCLMUL = 1 << 2,
    CPU_AVX2 = 1 << 3,
    CPU_BMI2 = 1 << 4,
    CPU_AVX512 = 1 << 5, /* F, BW, VL and DQ together */
    /* arm64 */
    CPU_NEON = 1 << 8,
    CPU_CRC32 = 1 << 9,
    CPU_LSE = 1 << 10, /* atomics in one instruction */
    CPU_SVE = 1 << 11,
};

/* The features of the processor that this runs on, as far as the kernel lets programs use them. Any thread. */
uint32_t cpu_features(void);

/* The names of the features, one after the other: calls `each` with every one that is set. */
void cpu_features_each(uint32_t features, void (*each)(void *context, const char *name), void *context);

#endif
