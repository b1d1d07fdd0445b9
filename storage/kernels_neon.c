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

/* Up to two planes of 16 numbers from one word of each. */
static inline void store_planes(uint16x8_t low, uint16x8_t high, size_t stride, unsigned width, uint8_t *last)
{
    uint8x16_t a = vreinterpretq_u8_u16(low), b = vreinterpretq_u8_u16(high);
    vst1q_u8(last, vuzp1q_u8(a, b));
    if (width > 1) vst1q_u8(last - stride, vuzp2q_u8(a, b));
}

/* Two loads deal words 0..3 of the numbers out to four registers each. */
static inline void split_block(const uint64_t *u, size_t stride, unsigned width, uint8_t *last)
{
    uint16x8x4_t low = vld4q_u16((const uint16_t *)u), high = vld4q_u16((const uint16_t *)(u + 8));
    store_planes(low.val[0], high.val[0], stride, width, last);
    if (width <= 2) return;
    store_planes(low.val[1], high.val[1], stride, width - 2, last - 2 * stride);
    if (width <= 4) return;
    store_planes(low.val[2], high.val[2], stride, width - 4, last - 4 * stride);
    if (width <= 6) return;
    store_planes(low.val[3], high.val[3], stride, width - 6, last - 6 * stride);
}

/* Plane i, 0 if it is absent. */
static inline uint8x16_t plane_of(const uint8_t *last, size_t stride, const unsigned width, unsigned i)
{
    return i < width ? vld1q_u8(last - i * stride) : vdupq_n_u8(0);
}

/* Words k of 16 numbers, the first 8 and the others. */
static inline uint16x8x2_t words_of(const uint8_t *last, size_t stride, const unsigned width, unsigned k)
{
    uint8x16_t a = plane_of(last, stride, width, 2 * k), b = plane_of(last, stride, width, 2 * k + 1);
    return (uint16x8x2_t){{vreinterpretq_u16_u8(vzip1q_u8(a, b)), vreinterpretq_u16_u8(vzip2q_u8(a, b))}};
}

static inline void join_block(const uint8_t *last, size_t stride, const unsigned width, uint64_t *u)
{
    const uint16x8x2_t w[4] = {words_of(last, stride, width, 0), words_of(last, stride, width, 1),
                               words_of(last, stride, width, 2), words_of(last, stride, width, 3)};
    vst4q_u16((uint16_t *)u, (uint16x8x4_t){{w[0].val[0], w[1].val[0], w[2].val[0], w[3].val[0]}});
    vst4q_u16((uint16_t *)(u + 8), (uint16x8x4_t){{w[0].val[1], w[1].val[1], w[2].val[1], w[3].val[1]}});
}

#define VARIANT kernels_neon
#define VARIANT_NAME "neon"
#include "storage/kernels_impl.h"

#endif
