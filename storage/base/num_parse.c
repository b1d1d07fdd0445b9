/*
 * num_parse.c: text → numbers, correctly rounded. Line protocols and expositions read every value
 * here, so the common cases avoid the library:
 *
 *   1. up to 19 digits below 2^53 and a power of ten up to 10^22: both are exact doubles, so one
 *      multiplication or division rounds once (Clinger);
 *   2. else the product with a 128-bit power of ten, for a lower and an upper bound of the value:
 *      when both round to the same double, that is the answer;
 *   3. else strtod, on a bounded copy that has no decimal point, so the locale can't matter.
 *
 * Digits beyond the 19th (rule 2) and 800th (rule 3) are not stored, only whether one is not zero: a
 * midpoint between doubles has at most 767 digits. A value that overflows is no number (Go's ParseFloat
 * reports an error there too); one that underflows is 0. No state; any thread.
 */
#include "storage/base/num.h"

#include "storage/base/num_pow10.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define COPY_DIGITS 800
#define WORD_DIGITS 19 /* what fits 64 bits */
#define EXPONENT_CAP INT64_C(1000000000000)

/* A decimal or hexadecimal number taken apart: digits * base^exponent (2^exponent when hexadecimal). */
struct scan {
    str body;         /* the digits with their point, no sign, prefix or exponent */
    uint64_t word;    /* the first WORD_DIGITS significant digits (decimal only) */
    int64_t exponent; /* of `word`'s last digit (decimal) */
    bool cut;         /* a digit other than 0 lies beyond `word` */
};

static int digit_of(char c)
{
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    if (c >= 'A' && c <= 'F') return c - 'A' + 10;
    return 99;
}

static bool is_word(str s, const char *lower)
{
    if (s.n != strlen(lower)) return false;
    for (size_t i = 0; i < s.n; i++)
        if ((s.p[i] | 0x20) != lower[i]) return false;
    return true;
}

/* The exponent part behind its letter: [+-]digits, to the end. Capped, so sums can't overflow. */
static bool parse_exponent(str s, int64_t *out)
{
    bool negative = s.n && s.p[0] == '-';
    size_t i = s.n && (s.p[0] == '-' || s.p[0] == '+') ? 1 : 0;
    int64_t v = 0;
    if (i == s.n) return false;
    for (; i < s.n; i++) {
        if (s.p[i] < '0' || s.p[i] > '9') return false;
        if (v < EXPONENT_CAP) v = v * 10 + (s.p[i] - '0');
    }
    *out = negative ? -v : v;
    return true;
}

/* ---- rule 3: the library, on a normalized copy */

/* Writes "<digits><letter><exponent>" without a point and lets strtod read it. */
static double by_library(str body, int base, int64_t exponent)
{
    char copy[COPY_DIGITS + 40];
    size_t n = base == 16 ? 2 : 0, digits = 0;
    int64_t per_digit = base == 16 ? 4 : 1;
    bool point = false, cut = false;
    memcpy(copy, "0x", 2);
    for (size_t i = 0; i < body.n; i++) {
        if (body.p[i] == '.') {
            point = true;
            continue;
        }
        bool kept = digits < COPY_DIGITS;
        if (kept && (digits || body.p[i] != '0')) copy[n + digits++] = body.p[i];
        if (!kept && body.p[i] != '0') cut = true;
        if (kept && point) exponent -= per_digit;
        if (!kept && !point) exponent += per_digit;
    }
    n += digits;
    if (digits == 0) copy[n++] = '0';
    if (cut) { /* anything beyond a tie makes it more than a tie */
        copy[n++] = '1';
        exponent -= per_digit;
    }
    if (exponent > 1000000) exponent = 1000000;
    if (exponent < -1000000) exponent = -1000000;
    snprintf(copy + n, sizeof copy - n, "%c%lld", base == 16 ? 'p' : 'e', (long long)exponent);
    return strtod(copy, NULL);
}

/* ---- rules 1 and 2 */

static bool by_exact_product(const struct scan *s, double *v)
{
    static const double pow10[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (s->cut || s->word > UINT64_C(1) << 53) return false;
    if (s->exponent < -22 || s->exponent > 22) return false;
    double w = (double)s->word;
    *v = s->exponent < 0 ? w / pow10[-s->exponent] : w * pow10[s->exponent];
    return true;
}

/* Rounds high:low * 2^exponent to a double, ties to even; high has its bit 63 or one above it set.
 * False if the result is not a normal number. */
static bool round_bits(unsigned __int128 high, uint64_t low, int exponent, uint64_t *bits)
{
    int zeros = __builtin_clzll((uint64_t)(high >> 64) | 1);
    if (!(high >> 64)) zeros = 64;
    int drop = 128 - zeros - 53;
    unsigned __int128 rest = high & (((unsigned __int128)1 << drop) - 1);
    unsigned __int128 half = (unsigned __int128)1 << (drop - 1);
    uint64_t m = (uint64_t)(high >> drop);
    bool above = rest > half || (rest == half && low), tie = rest == half && !low;
    if (above || (tie && (m & 1))) m++; /* 2^53 carries into the exponent below, as it should */
    int biased = exponent + 64 + drop + 1075;
    if (biased < 1 || biased > 2045) return false;
    *bits = ((uint64_t)biased << 52) + (m - (UINT64_C(1) << 52));
    return true;
}

static void subtract(unsigned __int128 *high, uint64_t *low, unsigned __int128 amount)
{
    bool borrow = *low < (uint64_t)amount;
    *low -= (uint64_t)amount;
    *high -= (uint64_t)(amount >> 64) + (unsigned)borrow;
}

static bool by_bounds(const struct scan *s, double *v)
{
    if (s->exponent < NUM_POW10_MIN || s->exponent > NUM_POW10_MAX) return false;
    int k = (int)s->exponent;
    const struct num_pow10 *g = num_pow10_of(k);
    int exponent = num_log2_pow10(k) - 127;
    uint64_t w = s->word + s->cut; /* the upper bound; 19 digits leave room */
    unsigned __int128 low = (unsigned __int128)g->lo * w;
    unsigned __int128 high = (unsigned __int128)g->hi * w + (uint64_t)(low >> 64);
    uint64_t low_word = (uint64_t)low, above, below;
    if (!round_bits(high, low_word, exponent, &above)) return false;

    /* the lower bound: the word as it stands, and the power one less where its entry was rounded up */
    if (s->cut) subtract(&high, &low_word, ((unsigned __int128)g->hi << 64) | g->lo);
    if (k < 0 || k > NUM_POW10_EXACT) subtract(&high, &low_word, w);
    if (!round_bits(high, low_word, exponent, &below) || above != below) return false;
    *v = f64_from_bits(above);
    return true;
}

/* ---- grammar */

/* Takes [digits][.digits] off the front of s; false if there is no digit. */
static bool scan_decimal(str *s, struct scan *out)
{
    size_t i = 0, digits = 0;
    int kept = 0;
    bool point = false;
    *out = (struct scan){0};
    for (; i < s->n; i++) {
        unsigned d = (unsigned)(uint8_t)s->p[i] - '0';
        if (d > 9) {
            if (s->p[i] != '.' || point) break;
            point = true;
            continue;
        }
        digits++;
        if (kept < WORD_DIGITS) {
            out->word = out->word * 10 + d;
            kept += out->word != 0; /* leading zeros don't count */
            out->exponent -= point;
        } else {
            out->cut |= d != 0;
            out->exponent += !point;
        }
    }
    out->body = (str){s->p, i};
    *s = (str){s->p + i, s->n - i};
    return digits > 0;
}

static bool parse_decimal(str s, double *v)
{
    struct scan scan;
    int64_t explicit_exponent = 0;
    if (!scan_decimal(&s, &scan)) return false;
    if (s.n) {
        if ((s.p[0] | 0x20) != 'e') return false;
        if (!parse_exponent((str){s.p + 1, s.n - 1}, &explicit_exponent)) return false;
    }
    scan.exponent += explicit_exponent;
    if (scan.word == 0) {
        *v = 0;
        return true;
    }
    if (by_exact_product(&scan, v)) return true;
    if (by_bounds(&scan, v)) return true;
    *v = by_library(scan.body, 10, explicit_exponent);
    return isfinite(*v);
}

/* Behind "0x": hexadecimal digits with an optional point, then an optional p exponent. */
static bool parse_hex(str s, double *v)
{
    size_t i = 0, digits = 0;
    bool point = false;
    int64_t exponent = 0;
    for (; i < s.n; i++) {
        if (s.p[i] == '.' && !point)
            point = true;
        else if (digit_of(s.p[i]) < 16)
            digits++;
        else
            break;
    }
    if (digits == 0) return false;
    if (i < s.n) {
        if ((s.p[i] | 0x20) != 'p') return false;
        if (!parse_exponent((str){s.p + i + 1, s.n - i - 1}, &exponent)) return false;
    }
    *v = by_library((str){s.p, i}, 16, exponent);
    return isfinite(*v);
}

bool num_parse_double(str s, double *v)
{
    if (s.n == 0) return false;
    bool sign = s.p[0] == '+' || s.p[0] == '-', negative = s.p[0] == '-';
    str body = {s.p + sign, s.n - sign};
    if (is_word(body, "inf") || is_word(body, "infinity")) {
        *v = negative ? -INFINITY : INFINITY;
        return true;
    }
    if (!sign && is_word(body, "nan")) {
        *v = f64_from_bits(UINT64_C(0x7ff8000000000001)); /* the NaN of Prometheus and Go */
        return true;
    }
    bool hex = body.n > 2 && body.p[0] == '0' && (body.p[1] | 0x20) == 'x';
    double magnitude = 0;
    if (!(hex ? parse_hex((str){body.p + 2, body.n - 2}, &magnitude) : parse_decimal(body, &magnitude))) return false;
    *v = negative ? -magnitude : magnitude;
    return true;
}

bool num_parse_i64(str s, int64_t *v)
{
    bool sign = s.n && (s.p[0] == '+' || s.p[0] == '-'), negative = s.n && s.p[0] == '-';
    if (s.n == (size_t)sign) return false;
    uint64_t u = 0, limit = (uint64_t)INT64_MAX + negative;
    for (size_t i = sign; i < s.n; i++) {
        unsigned d = (unsigned)(uint8_t)s.p[i] - '0';
        if (d > 9 || u > (limit - d) / 10) return false;
        u = u * 10 + d;
    }
    *v = negative ? (int64_t)-u : (int64_t)u;
    return true;
}
