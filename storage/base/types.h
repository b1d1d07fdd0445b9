/*
 * types.h: the few value types that every room uses.
 *
 * A `str` is a borrowed byte range, never NUL-terminated by contract and never owned: whoever made
 * the bytes frees them. Passed by value.
 */
#ifndef VARVE_STORAGE_BASE_TYPES_H
#define VARVE_STORAGE_BASE_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct str {
    const char *p;
    size_t n;
} str;

/* A str over a string literal, without its NUL. */
#define STR(literal) ((str){(literal), sizeof(literal) - 1})

/* printf("%.*s", STR_ARG(s)) */
#define STR_ARG(s) (int)(s).n, (s).p

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

static inline str str_of(const char *z)
{
    return (str){z, strlen(z)};
}

static inline bool str_eq(str a, str b)
{
    return a.n == b.n && (a.n == 0 || memcmp(a.p, b.p, a.n) == 0);
}

/* Byte order, shorter first on a common prefix. */
static inline int str_cmp(str a, str b)
{
    size_t n = a.n < b.n ? a.n : b.n;
    int c = n ? memcmp(a.p, b.p, n) : 0;
    return c ? c : (a.n > b.n) - (a.n < b.n);
}

static inline bool str_starts_with(str s, str prefix)
{
    return s.n >= prefix.n && (prefix.n == 0 || memcmp(s.p, prefix.p, prefix.n) == 0);
}

/* The bits of a double and back. Values are compared and stored by their bits, NaN payloads too. */
static inline uint64_t f64_bits(double v)
{
    uint64_t u;
    memcpy(&u, &v, sizeof u);
    return u;
}

static inline double f64_from_bits(uint64_t u)
{
    double v;
    memcpy(&v, &u, sizeof v);
    return v;
}

/* Prometheus's stale marker: a NaN with this payload says "the series ended here".
 * Source: prometheus model/value, StaleNaN. */
#define STALE_NAN_BITS UINT64_C(0x7ff0000000000002)

static inline bool is_stale_nan(double v)
{
    return f64_bits(v) == STALE_NAN_BITS;
}

#endif
