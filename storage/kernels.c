/*
 * kernels.c: the tight loops under the columns.
 *
 * Byte planes are joined by three levels of byte, word and doubleword interleaving, 16 numbers a
 * turn, with absent planes as zero vectors (the compiler folds them away: the width is a constant in
 * each copy of the loop). The last turn overlaps the one before instead of handling a tail.
 *
 * Decimal scaling rounds by adding 1.5 * 2^52: in [2^52, 2^53) a double's last bit is worth one, so
 * the sum's mantissa is the rounded integer, and subtracting the same number gives it back as a
 * double. That holds for |k| <= 2^51, the bound of every decimal. The rounding mode is the default,
 * to nearest; -ffast-math must never reach this file.
 */
#include "storage/kernels.h"

#include "storage/base/assert.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "interleaving assumes a little-endian machine"
#endif

typedef uint8_t u8x16 __attribute__((vector_size(16)));
typedef uint16_t u16x8 __attribute__((vector_size(16)));
typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef uint64_t u64x2 __attribute__((vector_size(16)));
typedef double f64x2 __attribute__((vector_size(16)));

static const double powers_of_ten[KERNELS_EXPONENT_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
#define MAGIC_BITS UINT64_C(0x4338000000000000)

/* ---- byte planes */

/* Numbers first, first + 1, .. of the planes, one by one. */
static void split_short(const uint64_t *u, size_t first, size_t n, unsigned width, uint8_t *planes)
{
    for (unsigned plane = 0; plane < width; plane++) {
        unsigned shift = 8 * (width - 1 - plane);
        for (size_t i = first; i < n; i++)
            planes[plane * n + i] = (uint8_t)(u[i] >> shift);
    }
}

static inline u32x4 load32(const uint64_t *u)
{
    u32x4 x;
    memcpy(&x, u, sizeof x);
    return x;
}

static inline void store_plane(uint8_t *p, u8x16 x)
{
    memcpy(p, &x, sizeof x);
}

/* Even and odd elements of two vectors. */
static inline u32x4 even32(u32x4 a, u32x4 b)
{
    return __builtin_shufflevector(a, b, 0, 2, 4, 6);
}
static inline u32x4 odd32(u32x4 a, u32x4 b)
{
    return __builtin_shufflevector(a, b, 1, 3, 5, 7);
}
static inline u16x8 even16(u32x4 a, u32x4 b)
{
    return __builtin_shufflevector((u16x8)a, (u16x8)b, 0, 2, 4, 6, 8, 10, 12, 14);
}
static inline u16x8 odd16(u32x4 a, u32x4 b)
{
    return __builtin_shufflevector((u16x8)a, (u16x8)b, 1, 3, 5, 7, 9, 11, 13, 15);
}
static inline u8x16 even8(u16x8 a, u16x8 b)
{
    return __builtin_shufflevector((u8x16)a, (u8x16)b, 0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
}
static inline u8x16 odd8(u16x8 a, u16x8 b)
{
    return __builtin_shufflevector((u8x16)a, (u8x16)b, 1, 3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25, 27, 29, 31);
}

/* Up to four planes of 16 numbers of 32 bits; `last` points into the least significant of them. */
static inline void split32(const u32x4 x[4], size_t stride, unsigned width, uint8_t *last)
{
    u16x8 low[2] = {even16(x[0], x[1]), even16(x[2], x[3])};
    store_plane(last, even8(low[0], low[1]));
    if (width > 1) store_plane(last - stride, odd8(low[0], low[1]));
    if (width <= 2) return;
    u16x8 high[2] = {odd16(x[0], x[1]), odd16(x[2], x[3])};
    store_plane(last - 2 * stride, even8(high[0], high[1]));
    if (width > 3) store_plane(last - 3 * stride, odd8(high[0], high[1]));
}

/* 16 numbers; `last` points into the least significant plane. */
static inline void split16(const uint64_t *u, size_t stride, unsigned width, uint8_t *last)
{
    u32x4 half[4];
    for (unsigned i = 0; i < 4; i++)
        half[i] = even32(load32(u + 4 * i), load32(u + 4 * i + 2));
    split32(half, stride, width, last);
    if (width <= 4) return;
    for (unsigned i = 0; i < 4; i++)
        half[i] = odd32(load32(u + 4 * i), load32(u + 4 * i + 2));
    split32(half, stride, width - 4, last - 4 * stride);
}

void kernels_split(const uint64_t *u, size_t n, unsigned width, uint8_t *planes)
{
    check(width <= 8);
    if (width == 0) return;
    uint8_t *last = planes + (width - 1) * n;
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        split16(u + i, n, width, last + i);
    split_short(u, i, n, width, planes);
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

static inline u8x16 load16(const uint8_t *p)
{
    u8x16 x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline u16x8 zip8_low(u8x16 a, u8x16 b)
{
    return (u16x8)__builtin_shufflevector(a, b, 0, 16, 1, 17, 2, 18, 3, 19, 4, 20, 5, 21, 6, 22, 7, 23);
}
static inline u16x8 zip8_high(u8x16 a, u8x16 b)
{
    return (u16x8)__builtin_shufflevector(a, b, 8, 24, 9, 25, 10, 26, 11, 27, 12, 28, 13, 29, 14, 30, 15, 31);
}
static inline u32x4 zip16_low(u16x8 a, u16x8 b)
{
    return (u32x4)__builtin_shufflevector(a, b, 0, 8, 1, 9, 2, 10, 3, 11);
}
static inline u32x4 zip16_high(u16x8 a, u16x8 b)
{
    return (u32x4)__builtin_shufflevector(a, b, 4, 12, 5, 13, 6, 14, 7, 15);
}

static inline void store32(u32x4 low, u32x4 high, uint64_t *u)
{
    u32x4 first = __builtin_shufflevector(low, high, 0, 4, 1, 5);
    u32x4 second = __builtin_shufflevector(low, high, 2, 6, 3, 7);
    memcpy(u, &first, sizeof first);
    memcpy(u + 2, &second, sizeof second);
}

/* 8 numbers from words 0..3 of each (least significant first). */
static inline void store16(u16x8 w0, u16x8 w1, u16x8 w2, u16x8 w3, uint64_t *u)
{
    store32(zip16_low(w0, w1), zip16_low(w2, w3), u);
    store32(zip16_high(w0, w1), zip16_high(w2, w3), u + 4);
}

/* 16 numbers; `last` points into the least significant plane. */
static inline void join16(const uint8_t *last, size_t stride, const unsigned width, uint64_t *u)
{
    u8x16 b[8];
    for (unsigned i = 0; i < 8; i++)
        b[i] = i < width ? load16(last - i * stride) : (u8x16){0};
    store16(zip8_low(b[0], b[1]), zip8_low(b[2], b[3]), zip8_low(b[4], b[5]), zip8_low(b[6], b[7]), u);
    store16(zip8_high(b[0], b[1]), zip8_high(b[2], b[3]), zip8_high(b[4], b[5]), zip8_high(b[6], b[7]), u + 8);
}

static inline __attribute__((always_inline)) void join_width(const uint8_t *planes, size_t n, const unsigned width,
                                                             uint64_t *u)
{
    if (n < 16) {
        join_short(planes, n, width, u);
        return;
    }
    const uint8_t *last = planes + (width - 1) * n;
    size_t i = 0;
    for (; i + 16 <= n; i += 16)
        join16(last + i, n, width, u + i);
    if (i < n) join16(last + n - 16, n, width, u + n - 16);
}

void kernels_join(const uint8_t *planes, size_t n, unsigned width, uint64_t *u)
{
    switch (width) {
    case 0:
        memset(u, 0, n * sizeof *u);
        return;
    case 1:
        join_width(planes, n, 1, u);
        return;
    case 2:
        join_width(planes, n, 2, u);
        return;
    case 3:
        join_width(planes, n, 3, u);
        return;
    case 4:
        join_width(planes, n, 4, u);
        return;
    case 5:
        join_width(planes, n, 5, u);
        return;
    case 6:
        join_width(planes, n, 6, u);
        return;
    case 7:
        join_width(planes, n, 7, u);
        return;
    default:
        check(width == 8);
        join_width(planes, n, 8, u);
    }
}

/* ---- two numbers at a time; the odd last one runs beside a 0 through the same formulas */

static inline u64x2 load_two(const void *p)
{
    u64x2 x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void store_two(void *p, u64x2 x)
{
    memcpy(p, &x, sizeof x);
}

static inline u64x2 load_last(const void *p)
{
    uint64_t x;
    memcpy(&x, p, sizeof x);
    return (u64x2){x, 0};
}

static inline void store_last(void *p, u64x2 x)
{
    uint64_t first = x[0];
    memcpy(p, &first, sizeof first);
}

/* ---- decimals */

static inline u64x2 integers_to_doubles(u64x2 k)
{
    return (u64x2)((f64x2)(k + MAGIC_BITS) - magic);
}

static inline u64x2 unscale(u64x2 k, double power)
{
    return (u64x2)((f64x2)integers_to_doubles(k) / power);
}

void kernels_unscale(const int64_t *k, size_t n, unsigned exponent, double *v)
{
    check(exponent <= KERNELS_EXPONENT_MAX);
    double power = powers_of_ten[exponent];
    size_t i = 0;
    if (exponent == 0)
        for (; i + 2 <= n; i += 2)
            store_two(v + i, integers_to_doubles(load_two(k + i)));
    else
        for (; i + 2 <= n; i += 2)
            store_two(v + i, unscale(load_two(k + i), power));
    if (i < n) store_last(v + i, unscale(load_last(k + i), power));
}

void kernels_add_ulps(double *v, const int64_t *r, size_t n)
{
    size_t i = 0;
    for (; i + 2 <= n; i += 2)
        store_two(v + i, load_two(v + i) + load_two(r + i));
    if (i < n) store_last(v + i, load_last(v + i) + load_last(r + i));
}

/* Integers k of values with these bits, and the residuals. */
static inline u64x2 scale(u64x2 bits, double power, u64x2 *residual)
{
    f64x2 shifted = (f64x2)bits * power + magic;
    *residual = bits - (u64x2)((shifted - magic) / power);
    return (u64x2)shifted - MAGIC_BITS;
}

/* Not 0 for what is outside of the bounds: k of [-2^51, 2^51), residuals of [-2^15, 2^15). */
static inline u64x2 excess(u64x2 k, u64x2 residual)
{
    return (k + KERNELS_DECIMAL_MAX) >> 52 | (residual + KERNELS_RESIDUAL_MAX) >> 16;
}

/* Marks what does not fit. */
static size_t mark_bad(const int64_t *k, const int64_t *r, size_t n, uint8_t *bad, bool *any_residual)
{
    size_t n_bad = 0;
    uint64_t residuals = 0;
    for (size_t i = 0; i < n; i++) {
        bad[i] = excess(load_last(k + i), load_last(r + i))[0] != 0;
        n_bad += bad[i];
        residuals |= bad[i] ? 0 : (uint64_t)r[i];
    }
    *any_residual = residuals != 0;
    return n_bad;
}

size_t kernels_scale(const double *v, size_t n, unsigned exponent, int64_t *k, int64_t *r, uint8_t *bad,
                     bool *any_residual)
{
    check(exponent <= KERNELS_EXPONENT_MAX);
    double power = powers_of_ten[exponent];
    u64x2 beyond = {0}, residuals = {0}, residual;
    size_t i = 0;
    for (; i + 2 <= n; i += 2) {
        u64x2 integer = scale(load_two(v + i), power, &residual);
        beyond |= excess(integer, residual);
        residuals |= residual;
        store_two(k + i, integer);
        store_two(r + i, residual);
    }
    if (i < n) {
        u64x2 integer = scale(load_last(v + i), power, &residual);
        beyond |= excess(integer, residual);
        residuals |= residual;
        store_last(k + i, integer);
        store_last(r + i, residual);
    }
    if ((beyond[0] | beyond[1]) != 0) return mark_bad(k, r, n, bad, any_residual);
    memset(bad, 0, n);
    *any_residual = (residuals[0] | residuals[1]) != 0;
    return 0;
}

/* ---- float bits in numeric order */

static inline u64x2 flip(u64x2 x)
{
    return x ^ (-(x >> 63) >> 1);
}

static void flip_negative(const void *from, size_t n, void *to)
{
    const uint8_t *p = from;
    uint8_t *q = to;
    size_t i = 0, bytes = 8 * n;
    for (; i + 16 <= bytes; i += 16)
        store_two(q + i, flip(load_two(p + i)));
    if (i < bytes) store_last(q + i, flip(load_last(p + i)));
}

void kernels_order(const double *v, size_t n, int64_t *k)
{
    flip_negative(v, n, k);
}

void kernels_unorder(const int64_t *k, size_t n, double *v)
{
    flip_negative(k, n, v);
}
