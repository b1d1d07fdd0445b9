/*
 * kernels_portable.c: the tight loops in GCC's portable vectors of 16 bytes: any processor, and the measure of the
 * other variants.
 *
 * Byte planes are joined by three levels of byte, word and doubleword interleaving, 16 numbers a turn, and split by
 * three levels of picking even and odd ones. Few numbers go one by one; the other variants leave those to this one.
 */
#define VEC_BYTES 16
#include "storage/kernels_vec.h"

#define BLOCK 16
#define SHORT_SPLIT split_short
#define SHORT_JOIN join_short

/* One by one. */
static void split_short(const uint64_t *u, size_t n, unsigned width, uint8_t *planes)
{
    for (unsigned plane = 0; plane < width; plane++) {
        unsigned shift = 8 * (width - 1 - plane);
        for (size_t i = 0; i < n; i++)
            planes[plane * n + i] = (uint8_t)(u[i] >> shift);
    }
}

static inline void store_plane(uint8_t *p, vec8 x)
{
    memcpy(p, &x, sizeof x);
}

static inline vec32 load32(const uint64_t *u)
{
    vec32 x;
    memcpy(&x, u, sizeof x);
    return x;
}

/* Even and odd elements of two vectors. */
static inline vec32 even32(vec32 a, vec32 b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
static inline vec32 odd32(vec32 a, vec32 b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}
static inline vec16 even16(vec32 a, vec32 b)
{
    return __builtin_shufflevector((vec16)a, (vec16)b, 0, 2, 4, 6, 8, 10, 12, 14);
}
static inline vec16 odd16(vec32 a, vec32 b)
{
    return __builtin_shufflevector((vec16)a, (vec16)b, 1, 3, 5, 7, 9, 11, 13, 15);
}
static inline vec8 even8(vec16 a, vec16 b)
{
    return __builtin_shufflevector((vec8)a, (vec8)b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
static inline vec8 odd8(vec16 a, vec16 b)
{
    return __builtin_shufflevector((vec8)a, (vec8)b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

/* Up to four planes of 16 numbers of 32 bits; `last` points into the least significant of them. */
static inline void split32(const vec32 x[4], size_t stride, unsigned width, uint8_t *last)
{
    vec16 low[2] = {even16(x[0], x[1]), even16(x[2], x[3])};
    store_plane(last, even8(low[0], low[1]));
    if (width > 1) store_plane(last - stride, odd8(low[0], low[1]));
    if (width <= 2) return;
    vec16 high[2] = {odd16(x[0], x[1]), odd16(x[2], x[3])};
    store_plane(last - 2 * stride, even8(high[0], high[1]));
    if (width > 3) store_plane(last - 3 * stride, odd8(high[0], high[1]));
}

/* 16 numbers; `last` points into the least significant plane. */
static inline void split_block(const uint64_t *u, size_t stride, unsigned width, uint8_t *last)
{
    const vec32 x[8] = {load32(u),     load32(u + 2),  load32(u + 4),  load32(u + 6),
                        load32(u + 8), load32(u + 10), load32(u + 12), load32(u + 14)};
    const vec32 low[4] = {even32(x[0], x[1]), even32(x[2], x[3]), even32(x[4], x[5]), even32(x[6], x[7])};
    split32(low, stride, width, last);
    if (width <= 4) return;
    const vec32 high[4] = {odd32(x[0], x[1]), odd32(x[2], x[3]), odd32(x[4], x[5]), odd32(x[6], x[7])};
    split32(high, stride, width - 4, last - 4 * stride);
}

static inline void join_short(const uint8_t *planes, size_t n, unsigned width, uint64_t *u)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t x = 0;
        for (unsigned plane = 0; plane < width; plane++)
            x = x << 8 | planes[plane * n + i];
        u[i] = x;
    }
}

static inline vec8 load_plane(const uint8_t *p)
{
    vec8 x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline vec16 zip8_low(vec8 a, vec8 b)
{
    return (vec16)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline vec16 zip8_high(vec8 a, vec8 b)
{
    return (vec16)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
static inline vec32 zip16_low(vec16 a, vec16 b)
{
    return (vec32)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
static inline vec32 zip16_high(vec16 a, vec16 b)
{
    return (vec32)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

static inline void store32(vec32 low, vec32 high, uint64_t *u)
{
    vec32 first = __builtin_shufflevector(low, high, 0, 4, 1, 5);
    vec32 second = __builtin_shufflevector(low, high, 2, 6, 3, 7);
    memcpy(u, &first, sizeof first);
    memcpy(u + 2, &second, sizeof second);
}

/* 8 numbers from words 0..3 of each (least significant first). */
static inline void store16(vec16 w0, vec16 w1, vec16 w2, vec16 w3, uint64_t *u)
{
    store32(zip16_low(w0, w1), zip16_low(w2, w3), u);
    store32(zip16_high(w0, w1), zip16_high(w2, w3), u + 4);
}

/* Plane i, 0 if it is absent. */
static inline vec8 plane_of(const uint8_t *last, size_t stride, const unsigned width, unsigned i)
{
    return i < width ? load_plane(last - i * stride) : (vec8){0};
}

/* 16 numbers; `last` points into the least significant plane. Written out: a loop over the planes would keep them in
 * memory, and the zeros would not fold away. */
static inline void join_block(const uint8_t *last, size_t stride, const unsigned width, uint64_t *u)
{
    const vec8 b[8] = {plane_of(last, stride, width, 0), plane_of(last, stride, width, 1),
                       plane_of(last, stride, width, 2), plane_of(last, stride, width, 3),
                       plane_of(last, stride, width, 4), plane_of(last, stride, width, 5),
                       plane_of(last, stride, width, 6), plane_of(last, stride, width, 7)};
    store16(zip8_low(b[0], b[1]), zip8_low(b[2], b[3]), zip8_low(b[4], b[5]), zip8_low(b[6], b[7]), u);
    store16(zip8_high(b[0], b[1]), zip8_high(b[2], b[3]), zip8_high(b[4], b[5]), zip8_high(b[6], b[7]), u + 8);
}

#define VARIANT kernels_portable
#define VARIANT_NAME "portable"
#include "storage/kernels_impl.h"
