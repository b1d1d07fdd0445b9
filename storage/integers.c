/*
 * integers.c: a column of 64-bit integers.
 *
 *   u8      bits 0-3 width w of the planes, 0..8; bits 4-6 predictor; bit 7: a second byte follows
 *   [u8]    bits 0-5 shift s; bit 6: a patch list follows; bit 7 zero
 *   zigzag varint          anchor
 *   [zigzag varint]        parameter (predictors with *)
 *   [varint count >= 1     patches: count times (varint gap from the last position + 1), then count
 *    gaps, numbers]        times varint u
 *   w * m bytes            planes of the numbers u, most significant first
 *
 * All arithmetic is modulo 2^64; << s is the shift:
 *
 *   0 PLAIN_OFFSET     m = n      k[i] = anchor + (u[i] << s)
 *   1 PLAIN_ZIGZAG     m = n      k[i] = anchor + (unzigzag(u[i]) << s)
 *   2 DELTA_OFFSET *   m = n - 1  k[0] = anchor, k[i] = k[i-1] + ((u[i-1] + parameter) << s)
 *   3 DELTA_ZIGZAG     m = n - 1  k[0] = anchor, k[i] = k[i-1] + (unzigzag(u[i-1]) << s)
 *   4 DELTA2_ZIGZAG *  m = n - 2  k[0] = anchor, step = parameter << s, k[1] = k[0] + step;
 *                                 step += unzigzag(u[i-2]) << s, k[i] = k[i-1] + step
 *   5 LINEAR_OFFSET *  m = n      k[i] = anchor + i * (parameter << s) + (u[i] << s)
 *
 * The shift drops trailing zero bits that all differences share (bytes counted in pages, floats of 24
 * bits). A patched number stands in the list whole and as 0 in the planes. m is 0 where n is too small.
 *
 * Memory is the caller's; any thread.
 */
#include "storage/integers.h"

#include "storage/base/assert.h"
#include "storage/kernels.h"
#include "storage/predictor.h"

#define WIDTH_MASK 0x0f
#define PREDICTOR_SHIFT 4
#define HAS_EXTRA 0x80
#define SHIFT_MASK 0x3f
#define HAS_PATCHES 0x40

#define PATCHED_AT_MOST 10 /* one number in so many may go to the patch list */

/* ---- writing */

static unsigned byte_length(uint64_t u)
{
    return (71 - (unsigned)__builtin_clzll(u | 1)) / 8 - (u == 0);
}

/* The width that leaves few numbers, and how many those are. */
static unsigned choose_width(const uint64_t *u, size_t m, size_t *patches)
{
    *patches = 0;
    uint64_t any = 0;
    for (size_t i = 0; i < m; i++)
        any |= u[i];
    unsigned widest = byte_length(any);
    if (widest == 0) return 0;
    uint32_t lengths[9] = {0};
    for (size_t i = 0; i < m; i++)
        lengths[byte_length(u[i])]++;
    unsigned width = widest;
    for (size_t beyond = lengths[width]; beyond * PATCHED_AT_MOST <= m; beyond += lengths[width]) {
        *patches = beyond;
        width--;
    }
    return width;
}

/* Moves the numbers that exceed the planes to the list. */
static void put_patches(uint64_t *u, size_t m, unsigned width, size_t patches, struct buf *out)
{
    uint64_t moved[LIMIT_BLOCK_SAMPLES / PATCHED_AT_MOST + 1];
    size_t count = 0, next = 0;
    check(patches < ARRAY_LEN(moved));
    buf_varint(out, patches);
    for (size_t i = 0; i < m; i++) {
        if (byte_length(u[i]) <= width) continue;
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

static uint8_t cost_class(const struct plan *p, size_t n)
{
    uint64_t quarter_bits = 4 * p->cost / n;
    return quarter_bits > UINT8_MAX ? UINT8_MAX : (uint8_t)quarter_bits;
}

/* The hint's predictor while it costs about what it did, else the best. */
static struct plan choose(const int64_t *k, size_t n, struct integers_hint *hint)
{
    if (hint != NULL && hint->valid && hint->predictor < PREDICTORS) {
        struct plan p = predictor_plan((enum predictor)hint->predictor, k, n);
        if (cost_class(&p, n) <= hint->cost + hint->cost / 4 + 2) return p;
    }
    struct plan best = predictor_choose(k, n);
    if (hint != NULL) *hint = (struct integers_hint){true, (uint8_t)best.predictor, cost_class(&best, n)};
    return best;
}

void integers_encode(const int64_t *k, size_t n, struct integers_hint *hint, struct integers_scratch *s,
                     struct buf *out)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct plan p = choose(k, n, hint);
    size_t m = predictor_count(p.predictor, n), patches;
    predictor_apply(&p, k, n, s->u);
    unsigned width = choose_width(s->u, m, &patches);
    bool extra = p.shift != 0 || patches != 0;
    buf_u8(out, (uint8_t)(width | (unsigned)p.predictor << PREDICTOR_SHIFT | (extra ? HAS_EXTRA : 0)));
    if (extra) buf_u8(out, (uint8_t)(p.shift | (patches != 0 ? HAS_PATCHES : 0)));
    buf_zigzag(out, (int64_t)p.anchor);
    if (predictor_has_parameter(p.predictor)) buf_zigzag(out, (int64_t)p.parameter);
    if (patches != 0) put_patches(s->u, m, width, patches, out);
    uint8_t *planes = buf_reserve(out, width * m);
    if (planes == NULL) return;
    kernels_split(s->u, m, width, planes);
    out->n += width * m;
}

/* ---- reading */

static err read_positions(struct cursor *c, size_t m, uint16_t *at, size_t *count)
{
    uint64_t patches = cursor_varint(c), next = 0;
    if (patches == 0 || patches > m) return err_corrupt("integer column: number of patches among %zu", m);
    for (size_t i = 0; i < patches; i++) {
        uint64_t gap = cursor_varint(c);
        if (next >= m || gap >= m - next) return err_corrupt("integer column: patch outside of %zu numbers", m);
        at[i] = (uint16_t)(next + gap);
        next += gap + 1;
    }
    *count = patches;
    return NULL;
}

/* Reads what stands before the patches. */
static err read_head(struct cursor *c, struct plan *p, unsigned *width, bool *patched)
{
    uint8_t head = cursor_u8(c);
    *width = head & WIDTH_MASK;
    p->predictor = (enum predictor)(head >> PREDICTOR_SHIFT & 7);
    if (*width > 8 || p->predictor >= PREDICTORS) return err_corrupt("integer column: head byte %#x", head);
    uint8_t extra = head & HAS_EXTRA ? cursor_u8(c) : 0;
    if (extra & 0x80) return err_corrupt("integer column: second byte %#x", extra);
    p->shift = extra & SHIFT_MASK;
    *patched = extra & HAS_PATCHES;
    p->anchor = (uint64_t)cursor_zigzag(c);
    p->parameter = predictor_has_parameter(p->predictor) ? (uint64_t)cursor_zigzag(c) : 0;
    return NULL;
}

/* Skips the patches' numbers and gives a cursor onto them. */
static struct cursor skip_numbers(struct cursor *c, size_t count)
{
    struct cursor numbers = *c;
    for (size_t i = 0; i < count; i++)
        cursor_varint(c);
    return numbers;
}

err integers_decode(struct cursor *c, size_t n, int64_t *k)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct plan p = {0};
    unsigned width = 0;
    bool patched = false;
    TRY(read_head(c, &p, &width, &patched));
    size_t m = predictor_count(p.predictor, n), patches = 0;
    uint64_t *u = (uint64_t *)k + (n - m);
    uint16_t at[LIMIT_BLOCK_SAMPLES];
    if (patched) TRY(read_positions(c, m, at, &patches));
    struct cursor numbers = skip_numbers(c, patches);
    const uint8_t *planes = cursor_bytes(c, width * m);
    if (c->failed) return err_corrupt("integer column: cut off");
    kernels_join(planes, m, width, u);
    for (size_t i = 0; i < patches; i++)
        u[at[i]] = cursor_varint(&numbers);
    predictor_restore(&p, k, n);
    return NULL;
}
