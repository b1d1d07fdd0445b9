/*
 * kernels_sse42.c: the tight loops with what amd64 has since 2008: byte shuffles. One lane, so planes are in order.
 */
#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("sse4.2"))), apply_to = function)
#else
#pragma GCC target("sse4.2")
#endif

#define VEC_BYTES 16
#include "storage/kernels_vec.h"

#include <immintrin.h>

typedef __m128i vec;
#define V(operation) _mm_##operation

static inline vec repeat(__m128i x)
{
    return x;
}

static inline vec arrange(vec plane)
{
    return plane;
}

static inline vec collect(vec plane)
{
    return plane;
}

#include "storage/kernels_x86.h"

#define VARIANT kernels_sse42
#define VARIANT_NAME "sse4.2"
#include "storage/kernels_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
