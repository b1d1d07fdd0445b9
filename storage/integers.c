/*
 * integers.c: a column of 64-bit integers.
 *
 *   u8      bits 0-3 width w of the planes, 0..8; bits 4-6 predictor; bit 7: a second byte follows
 *   [u8]    bits 0-5 shift s; bit 6: a patch list follows; bit 7 zero
 *   zigzag varint          anchor
 *   [zigzag varint]        parameter (predictors *)
 *   [varint count >= 1     patches: count times (varint gap from the last position + 1), then count
 *    gaps, numbers]        times varint u
 *   w * m bytes            planes of u, most significant first
 *
 * All arithmetic is modulo 2^64. With d[i] = the i-th difference, shifted left by s before it is used:
 *
 *   0 PLAIN_OFFSET     m = n      k[i] = anchor + u[i]
 *   1 PLAIN_ZIGZAG     m = n      k[i] = anchor + unzigzag(u[i])
 *   2 DELTA_OFFSET *   m = n - 1  k[0] = anchor, k[i] = k[i-1] + parameter + u[i-1]
 *   3 DELTA_ZIGZAG     m = n - 1  k[0] = anchor, k[i] = k[i-1] + unzigzag(u[i-1])
 *   4 DELTA2_ZIGZAG *  m = n - 2  k[0] = anchor, step = parameter, k[1] = k[0] + step;
 *                                 step += unzigzag(u[i-2]), k[i] = k[i-1] + step
 *   5 LINEAR_OFFSET *  m = n      k[i] = anchor + i * parameter + u[i]
 *   6 XOR              m = n - 1  k[0] = anchor, k[i] = k[i-1] ^ u[i-1]
 *
 * The shift drops trailing zero bits that all differences share (bytes counted in pages, floats of 24
 * bits). A patched number stands in the list whole and as 0 in the planes.
 *
 * The choice rests on an estimate of what zstd leaves: the entropy of the numbers' bit lengths plus the
 * bits below the leading one, which no compressor can save. Any thread; no memory of its own.
 */
#include "storage/integers.h"

#include "storage/base/assert.h"
#include "storage/base/varint.h"
#include "storage/kernels.h"

enum predictor { PLAIN_OFFSET, PLAIN_ZIGZAG, DELTA_OFFSET, DELTA_ZIGZAG, DELTA2_ZIGZAG, LINEAR_OFFSET, XOR };

#define WIDTH_MASK 0x0f
#define PREDICTOR_SHIFT 4
#define HAS_EXTRA 0x80
#define SHIFT_MASK 0x3f
#define HAS_PATCHES 0x40

/* One way to write a column. */
struct plan {
    enum predictor predictor;
    unsigned shift, width;
    uint64_t anchor, parameter;
    size_t patches;
    uint64_t cost; /* 1/256 bits */
};

static bool has_parameter(enum predictor p)
{
    return p == DELTA_OFFSET || p == DELTA2_ZIGZAG || p == LINEAR_OFFSET;
}

/* How many numbers a predictor leaves of n. */
static size_t residual_count(enum predictor p, size_t n)
{
    size_t order = p == DELTA2_ZIGZAG ? 2 : p == DELTA_OFFSET || p == DELTA_ZIGZAG || p == XOR ? 1 : 0;
    return n > order ? n - order : 0;
}

/* ---- estimating */

static unsigned bit_length(uint64_t u)
{
    return u == 0 ? 0 : 64 - (unsigned)__builtin_clzll(u);
}

/* log2 in 1/256, good to 0.09. */
static uint64_t log2_q8(uint64_t x)
{
    unsigned e = bit_length(x | 1) - 1;
    return e * 256 + (((x << 8) >> e) & 255);
}

/* From the counts of bit lengths: plane width, number of patches, cost. */
static void judge(struct plan *p, const uint32_t *lengths, size_t m)
{
    size_t beyond = m;
    unsigned width = 0, bit = 0;
    for (;; width++) {
        for (; bit <= 8 * width; bit++)
            beyond -= lengths[bit];
        if (beyond * 16 <= m) break;
    }
    uint64_t cost = 0, planes = m - beyond;
    for (bit = 0; bit <= 64; bit++) {
        uint64_t h = lengths[bit];
        if (h == 0) continue;
        if (bit > 8 * width)
            cost += h * (16 + bit) * 256;
        else
            cost += h * (log2_q8(planes) - log2_q8(h)) + h * (bit > 1 ? bit - 1 : 0) * 256;
    }
    p->width = width;
    p->patches = beyond;
    p->cost = cost + (uint64_t)256 * (bit_length(zigzag((int64_t)p->anchor)) + 2);
    if (has_parameter(p->predictor)) p->cost += (uint64_t)256 * (bit_length(zigzag((int64_t)p->parameter)) + 2);
    if (beyond != 0) p->cost += 256 * 8;
}

static void judge_plain(struct plan *p, const uint64_t *u, size_t m)
{
    uint32_t lengths[65] = {0};
    for (size_t i = 0; i < m; i++)
        lengths[bit_length(u[i])]++;
    judge(p, lengths, m);
}

static void judge_zigzag(struct plan *p, const uint64_t *d, size_t m)
{
    uint32_t lengths[65] = {0};
    for (size_t i = 0; i < m; i++)
        lengths[bit_length(zigzag((int64_t)d[i]))]++;
    judge(p, lengths, m);
}

static void judge_offset(struct plan *p, const uint64_t *d, size_t m, uint64_t base)
{
    uint32_t lengths[65] = {0};
    for (size_t i = 0; i < m; i++)
        lengths[bit_length(d[i] - base)]++;
    judge(p, lengths, m);
}

/* The least number but for outliers far below the bulk, which would widen every offset. */
static int64_t robust_minimum(const int64_t *d, size_t m)
{
    int64_t sample[16] = {d[0]};
    size_t count = 0, step = m / ARRAY_LEN(sample) + 1;
    for (size_t i = 0; i < m; i += step) {
        size_t at = count++;
        for (; at > 0 && sample[at - 1] > d[i]; at--)
            sample[at] = sample[at - 1];
        sample[at] = d[i];
    }
    int64_t low = sample[count > 4], high = sample[count > 4 ? count - 2 : count - 1];
    uint64_t slack = 4 * ((uint64_t)high - (uint64_t)low) + 64;
    int64_t bottom = (uint64_t)low - (uint64_t)INT64_MIN < slack ? INT64_MIN : (int64_t)((uint64_t)low - slack);
    int64_t minimum = INT64_MAX;
    for (size_t i = 0; i < m; i++)
        minimum = d[i] >= bottom && d[i] < minimum ? d[i] : minimum;
    return minimum;
}

/* ---- predicting */

/* Trailing zero bits that all differences have; 0 if there is no difference. */
static unsigned common_shift(const int64_t *k, size_t n)
{
    uint64_t any = 0;
    for (size_t i = 1; i < n; i++)
        any |= (uint64_t)k[i] ^ (uint64_t)k[0];
    return any == 0 ? 0 : (unsigned)__builtin_ctzll(any);
}

static uint64_t shift_down(uint64_t d, unsigned shift)
{
    return (uint64_t)((int64_t)d >> shift);
}

/* The differences before offset or zigzag; returns their number. */
static size_t predict(const struct plan *p, const int64_t *values, size_t n, uint64_t *d)
{
    const uint64_t *k = (const uint64_t *)values;
    unsigned shift = p->shift;
    switch (p->predictor) {
    case PLAIN_OFFSET:
    case PLAIN_ZIGZAG:
        for (size_t i = 0; i < n; i++)
            d[i] = shift_down(k[i] - p->anchor, shift);
        return n;
    case DELTA_OFFSET:
    case DELTA_ZIGZAG:
        for (size_t i = 1; i < n; i++)
            d[i - 1] = shift_down(k[i] - k[i - 1], shift);
        return n - 1;
    case DELTA2_ZIGZAG:
        for (size_t i = 2; i < n; i++)
            d[i - 2] = shift_down(k[i] - 2 * k[i - 1] + k[i - 2], shift);
        return n - 2;
    case LINEAR_OFFSET:
        for (size_t i = 0; i < n; i++)
            d[i] = shift_down(k[i] - p->anchor - i * (p->parameter << shift), shift);
        return n;
    case XOR:
    default:
        for (size_t i = 1; i < n; i++)
            d[i - 1] = (k[i] ^ k[i - 1]) >> shift;
        return n - 1;
    }
}

static void keep_better(struct plan *best, const struct plan *p)
{
    if (p->cost < best->cost) *best = *p;
}

/* Tries zigzag (if it has a name of its own) and offset of one family of predictors. */
static void try_plain(const int64_t *k, size_t n, unsigned shift, uint64_t *d, struct plan *best)
{
    struct plan p = {.predictor = PLAIN_ZIGZAG, .shift = shift};
    p.anchor = (uint64_t)k[0] & ((UINT64_C(1) << shift) - 1);
    predict(&p, k, n, d);
    judge_zigzag(&p, d, n);
    keep_better(best, &p);
    p.predictor = PLAIN_OFFSET;
    uint64_t least = (uint64_t)robust_minimum((const int64_t *)d, n);
    p.anchor += least << shift;
    judge_offset(&p, d, n, least);
    keep_better(best, &p);
}

static void try_delta(const int64_t *k, size_t n, unsigned shift, uint64_t *d, struct plan *best)
{
    struct plan p = {.predictor = DELTA_ZIGZAG, .shift = shift, .anchor = (uint64_t)k[0]};
    size_t m = predict(&p, k, n, d);
    judge_zigzag(&p, d, m);
    keep_better(best, &p);
    p.predictor = DELTA_OFFSET;
    p.parameter = (uint64_t)robust_minimum((const int64_t *)d, m);
    judge_offset(&p, d, m, p.parameter);
    keep_better(best, &p);
}

static void try_delta2(const int64_t *k, size_t n, unsigned shift, uint64_t *d, struct plan *best)
{
    struct plan p = {.predictor = DELTA2_ZIGZAG, .shift = shift, .anchor = (uint64_t)k[0]};
    p.parameter = shift_down((uint64_t)k[1] - (uint64_t)k[0], shift);
    judge_zigzag(&p, d, predict(&p, k, n, d));
    keep_better(best, &p);
}

static void try_linear(const int64_t *k, size_t n, unsigned shift, uint64_t *d, struct plan *best)
{
    struct plan p = {.predictor = LINEAR_OFFSET, .shift = shift, .anchor = (uint64_t)k[0]};
    int64_t whole = (int64_t)shift_down((uint64_t)k[n - 1] - (uint64_t)k[0], shift), steps = (int64_t)n - 1;
    int64_t step = whole / steps, rest = whole % steps;
    p.parameter = (uint64_t)(step + (2 * rest >= steps) - (2 * rest <= -steps));
    predict(&p, k, n, d);
    uint64_t least = (uint64_t)robust_minimum((const int64_t *)d, n);
    p.anchor += least << shift;
    judge_offset(&p, d, n, least);
    keep_better(best, &p);
}

static void try_xor(const int64_t *k, size_t n, unsigned shift, uint64_t *d, struct plan *best)
{
    struct plan p = {.predictor = XOR, .shift = shift, .anchor = (uint64_t)k[0]};
    judge_plain(&p, d, predict(&p, k, n, d));
    keep_better(best, &p);
}

static struct plan choose(const int64_t *k, size_t n, uint64_t *d)
{
    struct plan best = {.cost = UINT64_MAX};
    unsigned shift = common_shift(k, n);
    try_plain(k, n, shift, d, &best);
    if (n < 2) return best;
    try_delta(k, n, shift, d, &best);
    try_linear(k, n, shift, d, &best);
    try_xor(k, n, shift, d, &best);
    if (n > 2) try_delta2(k, n, shift, d, &best);
    return best;
}

/* ---- writing */

/* Differences to unsigned numbers, as the predictor's name says. */
static void fold(const struct plan *p, const uint64_t *d, size_t m, uint64_t *u)
{
    switch (p->predictor) {
    case PLAIN_ZIGZAG:
    case DELTA_ZIGZAG:
    case DELTA2_ZIGZAG:
        for (size_t i = 0; i < m; i++)
            u[i] = zigzag((int64_t)d[i]);
        return;
    default:
        break;
    }
    uint64_t base = p->predictor == DELTA_OFFSET ? p->parameter : 0;
    for (size_t i = 0; i < m; i++)
        u[i] = d[i] - base;
}

/* Moves the numbers that exceed the planes to the list. */
static void put_patches(uint64_t *u, size_t m, unsigned width, size_t patches, struct buf *out)
{
    uint64_t moved[LIMIT_BLOCK_SAMPLES / 16 + 1];
    size_t count = 0, next = 0;
    check(patches < ARRAY_LEN(moved));
    buf_varint(out, patches);
    for (size_t i = 0; i < m; i++) {
        if (bit_length(u[i]) <= 8 * width) continue;
        check(count < patches);
        moved[count++] = u[i];
        u[i] = 0;
        buf_varint(out, i - next);
        next = i + 1;
    }
    check(count == patches);
    for (size_t i = 0; i < count; i++)
        buf_varint(out, moved[i]);
}

void integers_encode(const int64_t *k, size_t n, struct integers_scratch *s, struct buf *out)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct plan p = choose(k, n, s->d);
    size_t m = predict(&p, k, n, s->d);
    fold(&p, s->d, m, s->u);
    bool extra = p.shift != 0 || p.patches != 0;
    buf_u8(out, (uint8_t)(p.width | (unsigned)p.predictor << PREDICTOR_SHIFT | (extra ? HAS_EXTRA : 0)));
    if (extra) buf_u8(out, (uint8_t)(p.shift | (p.patches != 0 ? HAS_PATCHES : 0)));
    buf_zigzag(out, (int64_t)p.anchor);
    if (has_parameter(p.predictor)) buf_zigzag(out, (int64_t)p.parameter);
    if (p.patches != 0) put_patches(s->u, m, p.width, p.patches, out);
    uint8_t *planes = buf_reserve(out, p.width * m);
    if (planes == NULL) return;
    kernels_split(s->u, m, p.width, planes);
    out->n += p.width * m;
}

/* ---- reading */

static err read_patches(struct cursor *c, size_t m, uint16_t *at, size_t *count)
{
    uint64_t patches = cursor_varint(c);
    if (patches == 0 || patches > m) return err_corrupt("integer column: %zu numbers, more patches", m);
    size_t next = 0;
    for (size_t i = 0; i < patches; i++) {
        uint64_t gap = cursor_varint(c);
        if (gap >= m - next) return err_corrupt("integer column: patch outside of %zu numbers", m);
        at[i] = (uint16_t)(next + gap);
        next += gap + 1;
        if (next == m && i + 1 < patches) return err_corrupt("integer column: patch outside of %zu numbers", m);
    }
    *count = patches;
    return NULL;
}

static void restore_plain(const struct plan *p, uint64_t *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        k[i] = p->anchor + (k[i] << p->shift);
}

static void restore_plain_zigzag(const struct plan *p, uint64_t *k, size_t n)
{
    for (size_t i = 0; i < n; i++)
        k[i] = p->anchor + ((uint64_t)unzigzag(k[i]) << p->shift);
}

static void restore_delta(const struct plan *p, uint64_t *k, size_t n)
{
    uint64_t last = p->anchor, step = p->parameter;
    k[0] = last;
    for (size_t i = 1; i < n; i++)
        k[i] = last += (k[i] + step) << p->shift;
}

static void restore_delta_zigzag(const struct plan *p, uint64_t *k, size_t n)
{
    uint64_t last = p->anchor;
    k[0] = last;
    for (size_t i = 1; i < n; i++)
        k[i] = last += (uint64_t)unzigzag(k[i]) << p->shift;
}

static void restore_delta2(const struct plan *p, uint64_t *k, size_t n)
{
    uint64_t last = p->anchor, step = p->parameter << p->shift;
    k[0] = last;
    k[1] = last += step;
    for (size_t i = 2; i < n; i++) {
        step += (uint64_t)unzigzag(k[i]) << p->shift;
        k[i] = last += step;
    }
}

static void restore_linear(const struct plan *p, uint64_t *k, size_t n)
{
    uint64_t line = p->anchor, step = p->parameter << p->shift;
    for (size_t i = 0; i < n; i++, line += step)
        k[i] = line + (k[i] << p->shift);
}

static void restore_xor(const struct plan *p, uint64_t *k, size_t n)
{
    uint64_t last = p->anchor;
    k[0] = last;
    for (size_t i = 1; i < n; i++)
        k[i] = last ^= k[i] << p->shift;
}

static void restore(const struct plan *p, uint64_t *k, size_t n)
{
    switch (p->predictor) {
    case PLAIN_OFFSET:
        restore_plain(p, k, n);
        return;
    case PLAIN_ZIGZAG:
        restore_plain_zigzag(p, k, n);
        return;
    case DELTA_OFFSET:
        restore_delta(p, k, n);
        return;
    case DELTA_ZIGZAG:
        restore_delta_zigzag(p, k, n);
        return;
    case DELTA2_ZIGZAG:
        restore_delta2(p, k, n);
        return;
    case LINEAR_OFFSET:
        restore_linear(p, k, n);
        return;
    case XOR:
        restore_xor(p, k, n);
    }
}

/* Reads what stands before the patches. */
static err read_head(struct cursor *c, size_t n, struct plan *p, bool *patched)
{
    uint8_t head = cursor_u8(c);
    p->width = head & WIDTH_MASK;
    p->predictor = (enum predictor)(head >> PREDICTOR_SHIFT & 7);
    if (p->width > 8 || p->predictor > XOR) return err_corrupt("integer column: head byte %#x", head);
    if (p->predictor == DELTA2_ZIGZAG && n < 2) return err_corrupt("integer column: second difference of one number");
    uint8_t extra = head & HAS_EXTRA ? cursor_u8(c) : 0;
    if (extra & 0x80) return err_corrupt("integer column: second byte %#x", extra);
    p->shift = extra & SHIFT_MASK;
    *patched = extra & HAS_PATCHES;
    p->anchor = (uint64_t)cursor_zigzag(c);
    p->parameter = has_parameter(p->predictor) ? (uint64_t)cursor_zigzag(c) : 0;
    return NULL;
}

err integers_decode(struct cursor *c, size_t n, int64_t *k)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct plan p = {0};
    bool patched = false;
    TRY(read_head(c, n, &p, &patched));
    size_t m = residual_count(p.predictor, n), patches = 0;
    uint64_t *u = (uint64_t *)k + (n - m);
    uint16_t at[LIMIT_BLOCK_SAMPLES];
    if (patched) TRY(read_patches(c, m, at, &patches));
    struct cursor numbers = *c;
    for (size_t i = 0; i < patches; i++)
        cursor_varint(c);
    const uint8_t *planes = cursor_bytes(c, p.width * m);
    if (c->failed) return err_corrupt("integer column: cut off");
    kernels_join(planes, m, p.width, u);
    for (size_t i = 0; i < patches; i++)
        u[at[i]] = cursor_varint(&numbers);
    restore(&p, (uint64_t *)k, n);
    return NULL;
}
