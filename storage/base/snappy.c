/*
 * snappy.c: the snappy block format, decoding (snappy_pack.c encodes).
 *
 *   varint  raw length
 *   then elements, each led by a tag byte whose low 2 bits say what it is:
 *     00  literal   length - 1 in the upper 6 bits; 60..63: in the next 1..4 bytes; then the bytes
 *     01  copy      length - 4 in bits 2-4, offset 11 bits: bits 5-7 and the next byte
 *     10  copy      length - 1 in the upper 6 bits, offset in the next 2 bytes
 *     11  copy      the same with an offset of 4 bytes
 * Source: the format description of google/snappy (format_description.txt).
 *
 * Remote write bodies are mostly copies of 64 bytes, so the main loop moves 64 bytes by four
 * unaligned vector moves without looking at the length, as long as both ends have room for that
 * (SLOP); the last bytes go through a careful loop. A copy whose offset is shorter than a vector
 * repeats itself: its first bytes are laid out one by one until they are a multiple of the period.
 *
 * Every read is checked against the input's end, every copy against the output's start and end.
 * Stateless; any thread.
 */
#include "storage/base/snappy.h"

#include "storage/base/varint.h"

#define SLOP 64u      /* bytes past the declared end that the fast loop may write on */
#define INPUT_SLOP 24 /* bytes an element of the fast loop may look ahead */

struct unpack {
    const uint8_t *in, *in_end;
    uint8_t *out, *out_start, *out_end;
};

static inline void move16(uint8_t *to, const uint8_t *from)
{
    uint8_t block[16];
    memcpy(block, from, 16);
    memcpy(to, block, 16);
}

/* 64 bytes; those after the first 16 only if they are needed, which a predictor learns soon. */
static inline void move64(uint8_t *to, const uint8_t *from, size_t n)
{
    move16(to, from);
    if (n <= 16) return;
    move16(to + 16, from + 16);
    if (n <= 32) return;
    move16(to + 32, from + 32);
    move16(to + 48, from + 48);
}

/* A copy that overlaps itself: offset < 16. May write up to SLOP bytes past its end. */
static inline void repeat(uint8_t *to, size_t offset, size_t n)
{
    const uint8_t *from = to - offset;
    uint8_t *end = to + n;
    size_t period = offset;
    while (period < 16)
        period += offset; /* a multiple of offset, at least a vector long */
    for (size_t i = 0; i < period && i < n; i++)
        to[i] = from[i];
    for (uint8_t *p = to + period; p < end; p += 16)
        move16(p, p - period);
}

/* Elements while there is room to move carelessly at both ends. False on malformed input. */
static bool unpack_fast(struct unpack *u)
{
    const uint8_t *in = u->in, *in_end = u->in_end;
    uint8_t *out = u->out, *out_end = u->out_end;
    bool good = true;
    while (in_end - in > INPUT_SLOP && out < out_end) {
        uint32_t tag = *in++;
        size_t n = (tag >> 2) + 1, offset;
        if ((tag & 3) == 0) {
            if (n > 16) { /* long or near the end: the careful way takes over for this one */
                if (n > 60 || (size_t)(in_end - in) < n + INPUT_SLOP || (size_t)(out_end - out) < n) {
                    in--;
                    break;
                }
                memcpy(out, in, n);
            } else {
                move16(out, in); /* INPUT_SLOP covers it; out has SLOP behind its end */
                if ((size_t)(out_end - out) < n) goto bad;
            }
            in += n;
            out += n;
            continue;
        }
        if ((tag & 3) == 2) {
            offset = (size_t)in[0] | (size_t)in[1] << 8;
            in += 2;
        } else if ((tag & 3) == 1) {
            n = ((tag >> 2) & 7) + 4;
            offset = (size_t)(tag & 0xe0) << 3 | in[0];
            in += 1;
        } else {
            uint32_t wide;
            memcpy(&wide, in, 4);
            offset = wide;
            in += 4;
        }
        if (offset == 0 || offset > (size_t)(out - u->out_start) || n > (size_t)(out_end - out)) goto bad;
        if (__builtin_expect(offset >= 16, 1))
            move64(out, out - offset, n);
        else
            repeat(out, offset, n);
        out += n;
    }
    goto done;
bad:
    good = false;
done:
    u->in = in;
    u->out = out;
    return good;
}

/* Reads a little-endian number of `bytes` bytes; false at the end of the input. */
static bool take_number(struct unpack *u, size_t bytes, size_t *v)
{
    if ((size_t)(u->in_end - u->in) < bytes) return false;
    *v = 0;
    for (size_t i = 0; i < bytes; i++)
        *v |= (size_t)u->in[i] << (8 * i);
    u->in += bytes;
    return true;
}

static bool unpack_literal(struct unpack *u, uint32_t tag)
{
    size_t n = tag >> 2;
    if (n >= 60 && !take_number(u, n - 59, &n)) return false;
    n++;
    if (n > (size_t)(u->in_end - u->in) || n > (size_t)(u->out_end - u->out)) return false;
    memcpy(u->out, u->in, n);
    u->in += n;
    u->out += n;
    return true;
}

/* One element, byte by byte. False on malformed input. */
static bool unpack_one(struct unpack *u)
{
    uint32_t tag = *u->in++;
    size_t n = (tag >> 2) + 1, offset;
    if ((tag & 3) == 0) return unpack_literal(u, tag);
    if ((tag & 3) == 1) {
        n = ((tag >> 2) & 7) + 4;
        if (!take_number(u, 1, &offset)) return false;
        offset |= (size_t)(tag & 0xe0) << 3;
    } else if (!take_number(u, (tag & 3) == 2 ? 2 : 4, &offset)) {
        return false;
    }
    if (offset == 0 || offset > (size_t)(u->out - u->out_start) || n > (size_t)(u->out_end - u->out)) return false;
    for (; n > 0; n--, u->out++)
        *u->out = *(u->out - offset);
    return true;
}

static err malformed(const struct unpack *u, const uint8_t *start)
{
    return err_new(ERR_INVALID, "snappy: malformed block at byte %zu", (size_t)(u->in - start));
}

err snappy_expand(const void *p, size_t n, struct buf *out)
{
    const uint8_t *start = p, *end = start + n;
    uint64_t raw = 0;
    const uint8_t *in = n ? varint_get(start, end, &raw) : NULL;
    if (in == NULL || in - start > 5 || raw > UINT32_MAX) return err_new(ERR_INVALID, "snappy: no length at the start");
    if (out->max && raw > out->max - out->n)
        return err_new(ERR_TOO_LARGE, "snappy: body expands to %llu bytes, the limit is %zu", (unsigned long long)raw,
                       out->max);
    /* The densest element makes 64 bytes of 3, so a short body that promises much is a lie: no memory for it. */
    if (raw > (uint64_t)(end - in) * 64 / 3 + 64)
        return err_new(ERR_INVALID, "snappy: %zu bytes can't expand to %llu", n, (unsigned long long)raw);
    size_t max = out->max;
    if (max) out->max += SLOP; /* the slop is scratch, not content */
    uint8_t *to = buf_reserve(out, raw + SLOP);
    out->max = max;
    if (to == NULL) return buf_status(out, "snappy");
    struct unpack u = {in, end, to, to, to + raw};
    while (u.in < u.in_end) {
        if (!unpack_fast(&u)) return malformed(&u, start);
        if (u.in < u.in_end && !unpack_one(&u)) return malformed(&u, start);
    }
    if (u.out != u.out_end)
        return err_new(ERR_INVALID, "snappy: block ends after %zu bytes of %llu", (size_t)(u.out - to),
                       (unsigned long long)raw);
    out->n += raw;
    return NULL;
}
