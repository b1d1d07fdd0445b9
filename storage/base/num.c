/*
 * num.c: numbers → text. Query results print millions of doubles, so this is a hot path
 * (tests/bench/bench_num.c): integers take a short way, the rest Schubfach, which finds the shortest
 * decimal with three 64x128-bit products and no loop over digits.
 *
 * A double is c * 2^q. Every decimal between its two neighbours' midpoints reads back as it. With
 * 10^k the largest power of ten not wider than that interval, one of four candidates is the answer:
 * the multiples of 10^(k+1) and of 10^k on either side of the value; the wider grid wins if it hits
 * the interval at all, and within a grid the candidate closer to the value.
 * Source: Raffaello Giulietti, "The Schubfach way to render doubles" (2021).
 *
 * Output never depends on the locale. No state; any thread.
 */
#include "storage/base/num.h"

#include "storage/base/num_pow10.h"

#include <math.h>

#define MANTISSA_BITS 52
#define EXPONENT_BIAS 1075 /* of c * 2^q with an integer c */

/* ---- digits */

static const char pairs[200] = "00010203040506070809"
                               "10111213141516171819"
                               "20212223242526272829"
                               "30313233343536373839"
                               "40414243444546474849"
                               "50515253545556575859"
                               "60616263646566676869"
                               "70717273747576777879"
                               "80818283848586878889"
                               "90919293949596979899";

static int digit_count(uint64_t v)
{
    static const uint64_t pow10[20] = {0,
                                       UINT64_C(10),
                                       UINT64_C(100),
                                       UINT64_C(1000),
                                       UINT64_C(10000),
                                       UINT64_C(100000),
                                       UINT64_C(1000000),
                                       UINT64_C(10000000),
                                       UINT64_C(100000000),
                                       UINT64_C(1000000000),
                                       UINT64_C(10000000000),
                                       UINT64_C(100000000000),
                                       UINT64_C(1000000000000),
                                       UINT64_C(10000000000000),
                                       UINT64_C(100000000000000),
                                       UINT64_C(1000000000000000),
                                       UINT64_C(10000000000000000),
                                       UINT64_C(100000000000000000),
                                       UINT64_C(1000000000000000000),
                                       UINT64_C(10000000000000000000)};
    int bits = 64 - __builtin_clzll(v | 1);
    int guess = (bits * 1233) >> 12; /* log10(2) * bits, one too low at most */
    return guess + (v >= pow10[guess]);
}

/* Eight digits as bytes, the first in the lowest: halves, quarters and eighths of v are split off side by side. */
static uint64_t eight_digits(uint32_t v)
{
    uint64_t four = (uint64_t)(v % 10000) << 32 | v / 10000;
    uint64_t high = (four * 5243 >> 19) & UINT64_C(0x7f0000007f); /* x / 100 for x < 10000 */
    uint64_t two = (four - 100 * high) << 16 | high;
    high = (two * 103 >> 10) & UINT64_C(0x000f000f000f000f); /* x / 10 for x < 100 */
    return ((two - 10 * high) << 8 | high) + UINT64_C(0x3030303030303030);
}

/* Writes exactly n <= 20 digits of v at out, which has room for eight at least: what is behind fewer is overwritten. */
static void put_digits(uint64_t v, int n, char *out)
{
    uint32_t low[2];
    int whole = 0; /* groups of eight behind the first digits */
    for (; n > 8; n -= 8) {
        low[whole++] = (uint32_t)(v % 100000000);
        v /= 100000000;
    }
    uint64_t text = eight_digits((uint32_t)v) >> (64 - 8 * n);
    memcpy(out, &text, 8);
    for (out += n; whole > 0; out += 8) {
        text = eight_digits(low[--whole]);
        memcpy(out, &text, 8);
    }
}

void num_put_4(unsigned v, char *out)
{
    memcpy(out, pairs + 2 * (v / 100), 2);
    memcpy(out + 2, pairs + 2 * (v % 100), 2);
}

size_t num_format_u64(uint64_t v, char *out)
{
    int n = digit_count(v);
    put_digits(v, n, out);
    return (size_t)n;
}

size_t num_format_i64(int64_t v, char *out)
{
    if (v >= 0) return num_format_u64((uint64_t)v, out);
    out[0] = '-';
    return 1 + num_format_u64(-(uint64_t)v, out + 1);
}

size_t num_format_ms(int64_t ms, char *out)
{
    char *at = out;
    uint64_t u = ms < 0 ? -(uint64_t)ms : (uint64_t)ms;
    if (ms < 0) *at++ = '-';
    at += num_format_u64(u / 1000, at);
    uint64_t rest = u % 1000;
    if (rest == 0) return (size_t)(at - out);
    *at++ = '.';
    *at = (char)('0' + rest / 100);
    memcpy(at + 1, pairs + 2 * (rest % 100), 2);
    at += rest % 100 == 0 ? 1 : rest % 10 == 0 ? 2 : 3;
    return (size_t)(at - out);
}

/* ---- Schubfach */

struct decimal {
    uint64_t digits; /* no trailing zero */
    int exponent;    /* value = digits * 10^exponent */
};

/* The high 64 bits of the product of a power's 128 and c's 64 bits, the lowest made 1 if anything
 * but zeros was cut off ("round to odd"): enough to compare exactly. */
static uint64_t scale(const struct num_pow10 *g, uint64_t c)
{
    unsigned __int128 low = (unsigned __int128)g->lo * c;
    unsigned __int128 sum = (unsigned __int128)g->hi * c + (uint64_t)(low >> 64);
    return (uint64_t)(sum >> 64) | ((uint64_t)sum > 1);
}

/* Integer division by constants is a product: eight, four, two, one zeros at a time. */
static struct decimal strip_zeros(uint64_t digits, int exponent)
{
    while (digits % 100000000 == 0) {
        digits /= 100000000;
        exponent += 8;
    }
    if (digits % 10000 == 0) {
        digits /= 10000;
        exponent += 4;
    }
    if (digits % 100 == 0) {
        digits /= 100;
        exponent += 2;
    }
    if (digits % 10 == 0) {
        digits /= 10;
        exponent += 1;
    }
    return (struct decimal){digits, exponent};
}

/* bits: of a finite, positive double. */
static struct decimal shortest(uint64_t bits)
{
    uint64_t fraction = bits & ((UINT64_C(1) << MANTISSA_BITS) - 1);
    int biased = (int)(bits >> MANTISSA_BITS);
    uint64_t c = biased ? fraction | UINT64_C(1) << MANTISSA_BITS : fraction;
    int q = (biased ? biased : 1) - EXPONENT_BIAS;

    /* everything is in quarters, so that the midpoints are whole; below a power of two the interval
     * is half as wide; an even c owns its midpoints, as reading rounds to even */
    bool odd = c & 1, closer_below = fraction == 0 && biased > 1;
    int k = (q * 1262611 - (closer_below ? 524031 : 0)) >> 22; /* floor(log10(2^q)), or of 3/4 of it */
    int shift = q + num_log2_pow10(-k) + 1;
    const struct num_pow10 *g = num_pow10_of(-k);
    uint64_t low = scale(g, (4 * c - 2 + closer_below) << shift) + odd;
    uint64_t middle = scale(g, (4 * c) << shift);
    uint64_t high = scale(g, (4 * c + 2) << shift) - odd;

    uint64_t s = middle / 4;
    if (s >= 10) {
        uint64_t tens = s / 10;
        bool down = low <= 40 * tens, up = 40 * tens + 40 <= high;
        if (down != up) return strip_zeros(tens + up, k + 1);
    }
    bool down = low <= 4 * s, up = 4 * s + 4 <= high;
    if (down != up) return strip_zeros(s + up, k);
    uint64_t half = 4 * s + 2;
    bool round_up = middle > half || (middle == half && (s & 1));
    return strip_zeros(s + round_up, k);
}

/* ---- doubles */

static size_t put_plain(struct decimal d, char *out)
{
    if (d.exponent >= 0) {
        size_t n = num_format_u64(d.digits, out);
        memset(out + n, '0', (size_t)d.exponent);
        return n + (size_t)d.exponent;
    }
    int n = digit_count(d.digits), whole = n + d.exponent;
    if (whole > 0) {
        put_digits(d.digits, n, out);
        memmove(out + whole + 1, out + whole, (size_t)(n - whole));
        out[whole] = '.';
        return (size_t)n + 1;
    }
    memcpy(out, "0.", 2);
    memset(out + 2, '0', (size_t)-whole);
    put_digits(d.digits, n, out + 2 - whole);
    return 2 + (size_t)-whole + (size_t)n;
}

/* d.ddde±XX, two exponent digits at least, as Go writes it. */
static size_t put_scientific(struct decimal d, char *out)
{
    int n = digit_count(d.digits), exponent = d.exponent + n - 1;
    char *at = out + 1;
    put_digits(d.digits, n, at);
    out[0] = at[0];
    if (n > 1) {
        at[0] = '.';
        at += n;
    }
    *at++ = 'e';
    *at++ = exponent < 0 ? '-' : '+';
    unsigned magnitude = (unsigned)(exponent < 0 ? -exponent : exponent);
    if (magnitude >= 100) *at++ = (char)('0' + magnitude / 100);
    memcpy(at, pairs + 2 * (magnitude % 100), 2);
    return (size_t)(at + 2 - out);
}

/* Up to three decimals and fifteen digits: no other decimal of so few digits reads back as the same double, so it is
 * the shortest. 0 if it is no such number. */
static size_t put_thousandths(double v, char *out)
{
    if (fabs(v) >= 1e12) return 0;
    int64_t k = (int64_t)(v * 1000 + (v < 0 ? -0.5 : 0.5));
    return (double)k / 1000 == v ? num_format_ms(k, out) : 0;
}

/* What both forms write alike: NaN, infinities, integers that a double holds one by one, and numbers of few decimals.
 * 0 if it is none of these. */
static size_t put_special(double v, char *out)
{
    if (isnan(v)) {
        memcpy(out, "NaN", 3);
        return 3;
    }
    if (isinf(v)) {
        memcpy(out, v < 0 ? "-Inf" : "+Inf", 4);
        return 4;
    }
    if (fabs(v) >= 0x1p53) return 0;
    int64_t whole = (int64_t)v;
    if ((double)whole != v) return put_thousandths(v, out);
    size_t sign = signbit(v) ? 1 : 0;
    out[0] = '-';
    return sign + num_format_u64((uint64_t)(whole < 0 ? -whole : whole), out + sign);
}

size_t num_format_double(double v, char *out)
{
    size_t n = put_special(v, out);
    if (n) return n;
    size_t sign = signbit(v) ? 1 : 0;
    out[0] = '-';
    return sign + put_plain(shortest(f64_bits(fabs(v))), out + sign);
}

size_t num_format_double_short(double v, char *out)
{
    size_t n = put_special(v, out);
    if (n) return n;
    size_t sign = signbit(v) ? 1 : 0;
    out[0] = '-';
    struct decimal d = shortest(f64_bits(fabs(v)));
    int exponent = d.exponent + digit_count(d.digits) - 1;
    bool scientific = exponent < -4 || exponent >= 21;
    return sign + (scientific ? put_scientific(d, out + sign) : put_plain(d, out + sign));
}
