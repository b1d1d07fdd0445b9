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

static const double powers_of_ten[KERNELS_EXPONENT_MAX + 1] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                                               1e8,  1e9,  1e10, 1e11, 1e12, 1e13, 1e14, 1e15,
                                                               1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static const double magic = 6755399441055744.0; /* 1.5 * 2^52 */
#define MAGIC_BITS UINT64_C(0x4338000000000000)

/* ---- byte planes */

void kernels_split(const uint64_t *u, size_t n, unsigned width, uint8_t *planes)
{
    for (unsigned plane = 0; plane < width; plane++) {
        unsigned shift = 8 * (width - 1 - plane);
        for (size_t i = 0; i < n; i++)
            planes[i] = (uint8_t)(u[i] >> shift);
        planes += n;
    }
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

/* ---- decimals */

static inline double integer_to_double(int64_t k)
{
    return f64_from_bits((uint64_t)k + MAGIC_BITS) - magic;
}

void kernels_unscale(const int64_t *k, size_t n, unsigned exponent, double *v)
{
    check(exponent <= KERNELS_EXPONENT_MAX);
    if (exponent == 0) {
        for (size_t i = 0; i < n; i++)
            v[i] = integer_to_double(k[i]);
        return;
    }
    double power = powers_of_ten[exponent];
    for (size_t i = 0; i < n; i++)
        v[i] = integer_to_double(k[i]) / power;
}

void kernels_add_ulps(double *v, const int64_t *r, size_t n)
{
    for (size_t i = 0; i < n; i++)
        v[i] = f64_from_bits(f64_bits(v[i]) + (uint64_t)r[i]);
}

size_t kernels_scale(const double *v, size_t n, unsigned exponent, int64_t *k, int64_t *r, uint8_t *bad,
                     bool *any_residual)
{
    check(exponent <= KERNELS_EXPONENT_MAX);
    double power = powers_of_ten[exponent];
    size_t n_bad = 0;
    uint64_t residuals = 0;
    for (size_t i = 0; i < n; i++) {
        double shifted = v[i] * power + magic;
        uint64_t integer = f64_bits(shifted) - MAGIC_BITS;
        uint64_t residual = f64_bits(v[i]) - f64_bits((shifted - magic) / power);
        bool fits = integer + KERNELS_DECIMAL_MAX <= 2 * (uint64_t)KERNELS_DECIMAL_MAX &&
                    residual + KERNELS_RESIDUAL_MAX <= 2 * (uint64_t)KERNELS_RESIDUAL_MAX;
        k[i] = (int64_t)integer;
        r[i] = (int64_t)residual;
        bad[i] = !fits;
        n_bad += !fits;
        residuals |= fits ? residual : 0;
    }
    *any_residual = residuals != 0;
    return n_bad;
}

/* ---- float bits in numeric order */

void kernels_order(const double *v, size_t n, int64_t *k)
{
    for (size_t i = 0; i < n; i++) {
        int64_t bits = (int64_t)f64_bits(v[i]);
        k[i] = bits ^ (bits >> 63 & INT64_MAX);
    }
}

void kernels_unorder(const int64_t *k, size_t n, double *v)
{
    for (size_t i = 0; i < n; i++)
        v[i] = f64_from_bits((uint64_t)(k[i] ^ (k[i] >> 63 & INT64_MAX)));
}
