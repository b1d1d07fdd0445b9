/*
 * kernels_avx512.c: the tight loops with AVX-512 (F, BW, VL, DQ): 64 bytes a register, in four lanes.
 */
#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq"))), apply_to = function)
#else
#pragma GCC target("avx512f,avx512bw,avx512vl,avx512dq")
#endif

#define VEC_BYTES 64
#include "storage/kernels_vec.h"

#include <immintrin.h>

typedef __m512i vec;
#define V(operation) _mm512_##operation

static inline vec repeat(__m128i x)
{
    return _mm512_broadcast_i32x4(x);
}

/* Place j of lane l takes pair 4 * j + l. */
static inline vec arrange(vec plane)
{
    static const uint16_t from[32] = {0, 4, 8,  12, 16, 20, 24, 28, 1, 5, 9,  13, 17, 21, 25, 29,
                                      2, 6, 10, 14, 18, 22, 26, 30, 3, 7, 11, 15, 19, 23, 27, 31};
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(from), plane);
}

static inline vec collect(vec plane)
{
    static const uint16_t from[32] = {0, 8,  16, 24, 1, 9,  17, 25, 2, 10, 18, 26, 3, 11, 19, 27,
                                      4, 12, 20, 28, 5, 13, 21, 29, 6, 14, 22, 30, 7, 15, 23, 31};
    return _mm512_permutexvar_epi16(_mm512_loadu_si512(from), plane);
}

#include "storage/kernels_x86.h"

#define VARIANT kernels_avx512
#define VARIANT_NAME "avx512"
#include "storage/kernels_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
