/*
 * kernels_neon.c: the tight loops with NEON, which every arm64 has: loads and stores interleave words by themselves.
 */
#if defined(__aarch64__)

#define VEC_BYTES 16
#include "storage/kernels_vec.h"

#include <arm_neon.h>

#define BLOCK 16
#define SHORT_SPLIT kernels_portable.split
#define SHORT_JOIN kernels_portable.join

/* 16 numbers: two loads deal words 0..3 out to four registers each. */
static inline void split_block(const uint64_t *u, size_t stride, unsigned width, uint8_t *last)
{
    uint16x8x4_t low = vld4q_u16((const uint16_t *)u), high = vld4q_u16((const uint16_t *)(u + 8));
    for (unsigned k = 0; 2 * k < width; k++) {
        uint8x16_t a = vreinterpretq_u8_u16(low.val[k]), b = vreinterpretq_u8_u16(high.val[k]);
        vst1q_u8(last - 2 * k * stride, vuzp1q_u8(a, b));
        if (2 * k + 1 < width) vst1q_u8(last - (2 * k + 1) * stride, vuzp2q_u8(a, b));
    }
}

static inline void join_block(const uint8_t *last, size_t stride, const unsigned width, uint64_t *u)
{
    uint8x16_t b[8];
    for (unsigned i = 0; i < 8; i++)
        b[i] = i < width ? vld1q_u8(last - i * stride) : vdupq_n_u8(0);
    uint16x8x4_t low, high;
    for (unsigned k = 0; k < 4; k++) {
        low.val[k] = vreinterpretq_u16_u8(vzip1q_u8(b[2 * k], b[2 * k + 1]));
        high.val[k] = vreinterpretq_u16_u8(vzip2q_u8(b[2 * k], b[2 * k + 1]));
    }
    vst4q_u16((uint16_t *)u, low);
    vst4q_u16((uint16_t *)(u + 8), high);
}

#define VARIANT kernels_neon
#define VARIANT_NAME "neon"
#include "storage/kernels_impl.h"

#endif
