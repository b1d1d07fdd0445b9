/*
 * kernels_impl.h: the body of every variant; included once, at the end of each kernels_NAME.c, never elsewhere.
 *
 * The file gives before: VEC_BYTES and the types of kernels_vec.h, BLOCK (the numbers that its planes treat at once),
 * split_block and join_block (u or planes of BLOCK numbers; `last` points into the least significant plane, the
 * others lie `stride` before each other; width is 1..8), SHORT_SPLIT and SHORT_JOIN (less than BLOCK numbers), and
 * VARIANT and VARIANT_NAME for the table.
 *
 * The last block of planes overlaps the one before instead of leaving a tail. Everything else goes through the same
 * formulas at the end, in a vector that is filled up with zeros.
 *
 * Decimal scaling rounds by adding 1.5 * 2^52: in [2^52, 2^53) a double's last bit is worth one, so the sum's
 * mantissa is the rounded integer, and subtracting the same number gives it back as a double. That holds for
 * |k| <= 2^51, the bound of every decimal. The rounding mode is the default, to nearest; -ffast-math must never
 * reach this file, nor may a product and a sum become one instruction (kernels_vec.h): every variant gives the
 * same bits.
 */
#ifndef VARVE_STORAGE_KERNELS_IMPL_H
#define VARVE_STORAGE_KERNELS_IMPL_H

/* ---- byte planes */

static void split(const uint64_t *u, size_t n, unsigned width, uint8_t *planes)
{
    if (n < BLOCK) {
        SHORT_SPLIT(u, n, width, planes);
        return;
    }
    uint8_t *last = planes + (width - 1) * n;
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        split_block(u + i, n, width, last + i);
    if (i < n) split_block(u + n - BLOCK, n, width, last + n - BLOCK);
}

/* One copy of the loop a width: absent planes are zeros that the compiler folds away. */
static inline __attribute__((always_inline)) void join_width(const uint8_t *planes, size_t n, const unsigned width,
                                                             uint64_t *u)
{
    if (n < BLOCK) {
        SHORT_JOIN(planes, n, width, u);
        return;
    }
    const uint8_t *last = planes + (width - 1) * n;
    size_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK)
        join_block(last + i, n, width, u + i);
    if (i < n) join_block(last + n - BLOCK, n, width, u + n - BLOCK);
}

static void join(const uint8_t *planes, size_t n, unsigned width, uint64_t *u)
{
    switch (width) {
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
        join_width(planes, n, 8, u);
    }
}

/* ---- several numbers at a time */

#define LANES (VEC_BYTES / 8)

static inline vec64 load(const void *p)
{
    vec64 x;
    memcpy(&x, p, sizeof x);
    return x;
}

static inline void store(void *p, vec64 x)
{
    memcpy(p, &x, sizeof x);
}

/* The first count < LANES numbers; the others are 0. */
static inline vec64 load_rest(const void *p, size_t count)
{
    uint64_t x[LANES] = {0};
    for (size_t i = 0; i < count; i++)
        memcpy(&x[i], (const uint8_t *)p + 8 * i, 8);
    return load(x);
}

static inline void store_rest(void *p, vec64 v, size_t count)
{
    uint64_t x[LANES];
    store(x, v);
    for (size_t i = 0; i < count; i++)
        memcpy((uint8_t *)p + 8 * i, &x[i], 8);
}

static inline uint64_t or_lanes(vec64 x)
{
    uint64_t all = 0;
    for (size_t i = 0; i < LANES; i++)
        all |= x[i];
    return all;
}

/* ---- decimals */

#define MAGIC 6755399441055744.0 /* 1.5 * 2^52 */
#define MAGIC_BITS UINT64_C(0x4338000000000000)

static inline vec64 integers_to_doubles(vec64 k)
{
    return (vec64)((vecf)(k + MAGIC_BITS) - MAGIC);
}

static inline vec64 unscale_vec(vec64 k, double power)
{
    return (vec64)((vecf)integers_to_doubles(k) / power);
}

static void unscale(const int64_t *k, size_t n, double power, double *v)
{
    size_t i = 0;
    if (power == 1)
        for (; i + LANES <= n; i += LANES)
            store(v + i, integers_to_doubles(load(k + i)));
    else
        for (; i + LANES <= n; i += LANES)
            store(v + i, unscale_vec(load(k + i), power));
    size_t rest = n % LANES;
    if (rest > 0) store_rest(v + i, unscale_vec(load_rest(k + i, rest), power), rest);
}

static void add_ulps(double *v, const int64_t *r, size_t n)
{
    size_t i = 0, rest = n % LANES;
    for (; i + LANES <= n; i += LANES)
        store(v + i, load(v + i) + load(r + i));
    if (rest > 0) store_rest(v + i, load_rest(v + i, rest) + load_rest(r + i, rest), rest);
}

/* Integers k of values with these bits, and the residuals. */
static inline vec64 scale_vec(vec64 bits, double power, vec64 *residual)
{
    vecf shifted = (vecf)bits * power + MAGIC;
    *residual = bits - (vec64)((shifted - MAGIC) / power);
    return (vec64)shifted - MAGIC_BITS;
}

/* Not 0 for what is outside of the bounds: k of [-2^51, 2^51), residuals of [-2^15, 2^15). */
static inline vec64 excess_vec(vec64 k, vec64 residual)
{
    return (k + KERNELS_DECIMAL_MAX) >> 52 | (residual + KERNELS_RESIDUAL_MAX) >> 16;
}

static inline bool is_excess(uint64_t k, uint64_t residual)
{
    return ((k + KERNELS_DECIMAL_MAX) >> 52 | (residual + KERNELS_RESIDUAL_MAX) >> 16) != 0;
}

/* Marks what does not fit. */
static size_t mark_bad(const int64_t *k, const int64_t *r, size_t n, uint8_t *bad, bool *any_residual)
{
    size_t n_bad = 0;
    uint64_t residuals = 0;
    for (size_t i = 0; i < n; i++) {
        bad[i] = is_excess((uint64_t)k[i], (uint64_t)r[i]);
        n_bad += bad[i];
        residuals |= bad[i] ? 0 : (uint64_t)r[i];
    }
    *any_residual = residuals != 0;
    return n_bad;
}

static size_t scale(const double *v, size_t n, double power, int64_t *k, int64_t *r, uint8_t *bad, bool *any_residual)
{
    vec64 beyond = {0}, residuals = {0}, residual;
    size_t i = 0, rest = n % LANES;
    for (; i + LANES <= n; i += LANES) {
        vec64 integer = scale_vec(load(v + i), power, &residual);
        beyond |= excess_vec(integer, residual);
        residuals |= residual;
        store(k + i, integer);
        store(r + i, residual);
    }
    if (rest > 0) {
        vec64 integer = scale_vec(load_rest(v + i, rest), power, &residual);
        beyond |= excess_vec(integer, residual);
        residuals |= residual;
        store_rest(k + i, integer, rest);
        store_rest(r + i, residual, rest);
    }
    if (or_lanes(beyond) != 0) return mark_bad(k, r, n, bad, any_residual);
    memset(bad, 0, n);
    *any_residual = or_lanes(residuals) != 0;
    return 0;
}

/* ---- float bits in numeric order */

static inline vec64 flip_vec(vec64 x)
{
    return x ^ (-(x >> 63) >> 1);
}

static void flip(const void *from, size_t n, void *to)
{
    const uint8_t *p = from;
    uint8_t *q = to;
    size_t i = 0, rest = n % LANES;
    for (; i + LANES <= n; i += LANES)
        store(q + 8 * i, flip_vec(load(p + 8 * i)));
    if (rest > 0) store_rest(q + 8 * i, flip_vec(load_rest(p + 8 * i, rest)), rest);
}

const struct kernels VARIANT = {VARIANT_NAME, split, join, unscale, add_ulps, scale, flip};

#endif
