/*
 * str_sort.h: sorting many strings, which share long beginnings as a rule (metric names, hosts).
 */
#ifndef VARVE_STORAGE_BASE_STR_SORT_H
#define VARVE_STORAGE_BASE_STR_SORT_H

#include "storage/base/types.h"

/* Into the order of str_cmp, in place. */
void str_sort(str *v, size_t n);
/* The same; of equal ones one is left. How many are. */
size_t str_sort_unique(str *v, size_t n);

#endif
