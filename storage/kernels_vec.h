/*
 * kernels_vec.h: the vectors of a variant, VEC_BYTES long, and the rule that floats are never contracted.
 *
 * Included by each kernels_NAME.c after it has said which instructions it may use. A product and a sum that become
 * one instruction round once instead of twice, and arm64 and AVX-512 have such instructions.
 */
#ifndef VARVE_STORAGE_KERNELS_VEC_H
#define VARVE_STORAGE_KERNELS_VEC_H

#if defined(__clang__)
#pragma clang fp contract(off)
#else
#pragma GCC optimize("fp-contract=off")
#endif

#include "storage/kernels_table.h"

#if __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "byte planes assume a little-endian machine"
#endif

typedef uint8_t vec8 __attribute__((vector_size(VEC_BYTES)));
typedef uint16_t vec16 __attribute__((vector_size(VEC_BYTES)));
typedef uint32_t vec32 __attribute__((vector_size(VEC_BYTES)));
typedef uint64_t vec64 __attribute__((vector_size(VEC_BYTES)));
typedef double vecf __attribute__((vector_size(VEC_BYTES)));

#endif
