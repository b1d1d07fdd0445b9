/*
 * column_value.c: a column of doubles.
 *
 *   u8   bits 0-4: 0..18 decimal exponent e; 30 ordered bits; 31 one repeated value
 *        bit 5: a residual column follows (decimals only); bit 6: exceptions follow; bit 7 zero
 *
 *   repeated value:   0..8 bytes: the value's bits, most significant byte first, zero bytes at the end left out
 *   otherwise:        integer column (integers.c) of k
 *                     [integer column of the residuals r]
 *                     [exceptions: varint count >= 1, count times varint (gap from the last position + 1),
 *                      then the exceptions' bits as 8 byte planes, most significant first]
 *
 *   decimal:          v = (double)k / 10^e correctly rounded, then r added to its bits (ulps)
 *   ordered bits:     k = the bits, negative values with the lower 63 bits inverted: the order of the
 *                     integers is the order of the numbers
 *   exceptions        replace v at their positions: NaN, Inf, -0, and what is no near decimal
 *
 * The encoder verifies each value against the decoder's own formula, so a wrong guess of the exponent
 * can cost bytes but never bits. Scratch belongs to the calling thread; nothing else is kept.
 */
#include "storage/column_value.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/decimal.h"
#include "storage/integers.h"
#include "storage/kernels.h"

#define CODE_MASK 0x1f
#define CODE_BITS 30
#define CODE_CONSTANT 31
#define HAS_RESIDUALS 0x20
#define HAS_EXCEPTIONS 0x40

#define CHOICE_EXCEPTIONS 2 /* an exponent may leave one value in so many as exceptions, */
#define HINT_EXCEPTIONS 16  /* a remembered one, one in so many before it is questioned */

/*
 * The hint: valid counts the blocks since the choice (at HINT_BLOCKS all is chosen anew); encoding holds the
 * predictors of the integers (low half) and of the residuals (high half), flags the integers' cost; exponent is the
 * exponent or HINT_BITS, with HINT_RESIDUALS if it was chosen although it left residuals.
 */
#define HINT_BLOCKS 16
#define HINT_EXPONENT 0x1f
#define HINT_BITS 0x1f
#define HINT_RESIDUALS 0x20
#define HINT_NO_PREDICTORS 0xff

/* How one block is written. */
struct choice {
    unsigned exponent; /* or HINT_BITS */
    size_t exceptions;
    bool residuals;
    struct integers_hint hint, residual_hint;
};

struct column_scratch {
    int64_t k[LIMIT_BLOCK_SAMPLES], r[LIMIT_BLOCK_SAMPLES];
    uint8_t bad[LIMIT_BLOCK_SAMPLES];
    struct integers_scratch integers;
};

struct column_scratch *column_scratch_create(void)
{
    return mem_zalloc(sizeof(struct column_scratch));
}

void column_scratch_destroy(struct column_scratch *s)
{
    mem_free(s);
}

/* ---- one repeated value */

static bool is_repeated(const double *v, size_t n)
{
    uint64_t first = f64_bits(v[0]);
    for (size_t i = 1; i < n; i++)
        if (f64_bits(v[i]) != first) return false;
    return true;
}

static void put_repeated(double v, struct buf *out)
{
    buf_u8(out, CODE_CONSTANT);
    for (uint64_t bits = f64_bits(v); bits != 0; bits <<= 8)
        buf_u8(out, (uint8_t)(bits >> 56));
}

bool column_value_is_constant(const void *p, size_t bytes, double *v)
{
    const uint8_t *at = p;
    if (bytes < 1 || bytes > 9 || at[0] != CODE_CONSTANT || at[bytes - 1] == 0) return false;
    uint64_t bits = 0;
    for (size_t i = 1; i < bytes; i++)
        bits |= (uint64_t)at[i] << (64 - 8 * i);
    *v = f64_from_bits(bits);
    return true;
}

/* ---- encoding */

static void put_exceptions(const struct column_scratch *s, const double *v, size_t n, size_t count, struct buf *out)
{
    uint64_t bits[LIMIT_BLOCK_SAMPLES];
    size_t found = 0, next = 0;
    buf_varint(out, count);
    for (size_t i = 0; i < n; i++) {
        if (!s->bad[i]) continue;
        bits[found++] = f64_bits(v[i]);
        buf_varint(out, i - next);
        next = i + 1;
    }
    check(found == count);
    uint8_t *planes = buf_reserve(out, 8 * count);
    if (planes == NULL) return;
    kernels_split(bits, count, 8, planes);
    out->n += 8 * count;
}

/* Gives exceptions the integers of their neighbours, which cost least. */
static void bridge_exceptions(struct column_scratch *s, size_t n)
{
    size_t good = 0;
    while (s->bad[good])
        good++;
    for (size_t i = 0; i < n; i++) {
        if (!s->bad[i]) good = i;
        s->k[i] = s->k[good];
        s->r[i] = s->bad[i] ? 0 : s->r[i];
    }
}

static void scale(struct column_scratch *s, const double *v, size_t n, struct choice *c)
{
    c->exceptions = kernels_scale(v, n, c->exponent, s->k, s->r, s->bad, &c->residuals);
}

static void put_bits(struct column_scratch *s, const double *v, size_t n, struct integers_hint *hint, struct buf *out)
{
    buf_u8(out, CODE_BITS);
    kernels_order(v, n, s->k);
    integers_encode(s->k, n, hint, &s->integers, out);
}

/* As decimals, already scaled, unless exceptions and residuals make that larger than the bits. */
static void put_decimals(struct column_scratch *s, const double *v, size_t n, struct choice *c, struct buf *out)
{
    size_t start = out->n;
    unsigned flags = (c->residuals ? HAS_RESIDUALS : 0) | (c->exceptions != 0 ? HAS_EXCEPTIONS : 0);
    buf_u8(out, (uint8_t)(c->exponent | flags));
    if (c->exceptions != 0) bridge_exceptions(s, n);
    integers_encode(s->k, n, &c->hint, &s->integers, out);
    if (c->residuals) integers_encode(s->r, n, &c->residual_hint, &s->integers, out);
    if (c->exceptions != 0) put_exceptions(s, v, n, c->exceptions, out);
    if (out->n - start <= 8 * n + 16) return;
    out->n = start;
    put_bits(s, v, n, NULL, out);
}

/* True if the hint's exponent still serves; the block is scaled with it then. */
static bool hint_serves(struct column_scratch *s, const double *v, size_t n, const struct column_hint *hint,
                        struct choice *c)
{
    if (hint->valid == 0 || hint->valid > HINT_BLOCKS) return false;
    c->exponent = hint->exponent & HINT_EXPONENT;
    if (c->exponent == HINT_BITS) return true;
    if (c->exponent > DECIMAL_EXPONENT_MAX) return false;
    scale(s, v, n, c);
    if (c->exceptions * HINT_EXCEPTIONS > n) return false;
    if (c->residuals) return hint->exponent & HINT_RESIDUALS;
    return c->exponent == 0 || decimal_is_tight(s->k, n);
}

/* Chooses the exponent by trying, and scales with it. */
static void choose(struct column_scratch *s, const double *v, size_t n, struct choice *c)
{
    *c = (struct choice){.exponent = decimal_choose(v, n)};
    if (c->exponent <= DECIMAL_EXPONENT_MAX) scale(s, v, n, c);
    if (c->exponent > DECIMAL_EXPONENT_MAX || c->exceptions * CHOICE_EXCEPTIONS > n) c->exponent = HINT_BITS;
}

static void encode_varying(struct column_scratch *s, const double *v, size_t n, struct column_hint *hint,
                           struct buf *out)
{
    struct choice c = {0};
    if (hint_serves(s, v, n, hint, &c)) {
        hint->valid++;
    } else {
        choose(s, v, n, &c);
        *hint = (struct column_hint){.valid = 1, .encoding = HINT_NO_PREDICTORS};
        hint->exponent = (uint8_t)(c.exponent | (c.residuals ? HINT_RESIDUALS : 0));
    }
    c.hint = (struct integers_hint){true, hint->encoding & 15, hint->flags};
    c.residual_hint = (struct integers_hint){true, hint->encoding >> 4, UINT8_MAX};
    if (c.exponent == HINT_BITS)
        put_bits(s, v, n, &c.hint, out);
    else
        put_decimals(s, v, n, &c, out);
    hint->encoding = (uint8_t)(c.hint.predictor | c.residual_hint.predictor << 4);
    hint->flags = c.hint.cost;
}

void column_value_encode(struct column_scratch *s, const double *v, size_t n, struct column_hint *hint, struct buf *out)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    struct column_hint none = {0};
    if (is_repeated(v, n))
        put_repeated(v[0], out);
    else
        encode_varying(s, v, n, hint ? hint : &none, out);
}

/* ---- decoding */

static err read_exceptions(struct cursor *c, size_t n, double *v)
{
    uint16_t at[LIMIT_BLOCK_SAMPLES];
    uint64_t bits[LIMIT_BLOCK_SAMPLES], count = cursor_varint(c);
    if (count == 0 || count > n) return err_corrupt("value column: exceptions of %zu", n);
    uint64_t next = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t gap = cursor_varint(c);
        if (next >= n || gap >= n - next) return err_corrupt("value column: exception outside of %zu", n);
        at[i] = (uint16_t)(next + gap);
        next += gap + 1;
    }
    const uint8_t *planes = cursor_bytes(c, 8 * count);
    if (planes == NULL) return err_corrupt("value column: exceptions cut off");
    kernels_join(planes, count, 8, bits);
    for (size_t i = 0; i < count; i++)
        v[at[i]] = f64_from_bits(bits[i]);
    return NULL;
}

static err decode_numbers(struct column_scratch *s, struct cursor *c, uint8_t head, size_t n, double *v)
{
    unsigned code = head & CODE_MASK;
    bool decimal = code <= DECIMAL_EXPONENT_MAX;
    if (!decimal && (code != CODE_BITS || head & HAS_RESIDUALS)) return err_corrupt("value column: head %#x", head);
    if (head & 0x80) return err_corrupt("value column: head %#x", head);
    TRY(integers_decode(c, n, s->k));
    if (decimal)
        kernels_unscale(s->k, n, code, v);
    else
        kernels_unorder(s->k, n, v);
    if (head & HAS_RESIDUALS) {
        TRY(integers_decode(c, n, s->r));
        kernels_add_ulps(v, s->r, n);
    }
    return head & HAS_EXCEPTIONS ? read_exceptions(c, n, v) : NULL;
}

err column_value_decode(struct column_scratch *s, const void *p, size_t bytes, size_t n, double *v)
{
    check(n >= 1 && n <= LIMIT_BLOCK_SAMPLES);
    double repeated;
    if (column_value_is_constant(p, bytes, &repeated)) {
        for (size_t i = 0; i < n; i++)
            v[i] = repeated;
        return NULL;
    }
    struct cursor c = cursor_of(p, bytes);
    uint8_t head = cursor_u8(&c);
    TRY(decode_numbers(s, &c, head, n, v));
    if (c.failed || cursor_left(&c) != 0) return err_corrupt("value column: %zu bytes left over", cursor_left(&c));
    return NULL;
}
