/*
 * kernels_avx2.c: the tight loops with AVX2: 32 bytes a register, in two lanes.
 */
#if defined(__x86_64__)

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx2"))), apply_to = function)
#else
#pragma GCC target("avx2")
#endif

#define VEC_BYTES 32
#include "storage/kernels_vec.h"

#include <immintrin.h>

typedef __m256i vec;
#define V(operation) _mm256_##operation
#define SWAP_MIDDLE 0xd8 /* quadwords 0, 2, 1, 3 */

static inline vec repeat(__m128i x)
{
    return _mm256_broadcastsi128_si256(x);
}

/* Even pairs into the first lane, odd ones into the second. */
static inline vec arrange(vec plane)
{
    const vec even_odd = repeat(_mm_setr_epi8(0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15));
    return _mm256_permute4x64_epi64(_mm256_shuffle_epi8(plane, even_odd), SWAP_MIDDLE);
}

static inline vec collect(vec plane)
{
    const vec alternate = repeat(_mm_setr_epi8(0, 1, 8, 9, 2, 3, 10, 11, 4, 5, 12, 13, 6, 7, 14, 15));
    return _mm256_shuffle_epi8(_mm256_permute4x64_epi64(plane, SWAP_MIDDLE), alternate);
}

#include "storage/kernels_x86.h"

#define VARIANT kernels_avx2
#define VARIANT_NAME "avx2"
#include "storage/kernels_impl.h"

#if defined(__clang__)
#pragma clang attribute pop
#endif

#endif
