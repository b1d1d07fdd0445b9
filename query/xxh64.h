/*
 * xxh64.h: XXH64, the hash by which Prometheus picks series in limit_ratio.
 */
#ifndef VARVE_QUERY_XXH64_H
#define VARVE_QUERY_XXH64_H

#include "storage/base/types.h"

/* Seed 0. */
uint64_t xxh64(const void *p, size_t n);

#endif
