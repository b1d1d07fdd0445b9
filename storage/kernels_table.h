/*
 * kernels_table.h: a variant of the tight loops: what kernels.c calls, and what each kernels_NAME.c gives.
 *
 * The functions do what those of the same name in kernels.h do, for arguments that are checked already.
 */
#ifndef VARVE_STORAGE_KERNELS_TABLE_H
#define VARVE_STORAGE_KERNELS_TABLE_H

#include "storage/kernels.h"

struct kernels {
    const char *name;                                                            /* for VARVE_CPU */
    void (*split)(const uint64_t *u, size_t n, unsigned width, uint8_t *planes); /* width > 0 */
    void (*join)(const uint8_t *planes, size_t n, unsigned width, uint64_t *u);  /* width > 0 */
    void (*unscale)(const int64_t *k, size_t n, double power, double *v);        /* power of ten, >= 1 */
    void (*add_ulps)(double *v, const int64_t *r, size_t n);
    size_t (*scale)(const double *v, size_t n, double power, int64_t *k, int64_t *r, uint8_t *bad, bool *any_residual);
    void (*flip)(const void *from, size_t n, void *to); /* kernels_order and kernels_unorder are the same */
};

/* Only the first exists everywhere. */
extern const struct kernels kernels_portable, kernels_sse42, kernels_avx2, kernels_avx512, kernels_neon;

#endif
