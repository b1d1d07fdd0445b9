/* num_pow10.h: the table of powers of ten that num.c and num_parse.c share (private to them; format: num_pow10.c). */
#ifndef VARVE_STORAGE_BASE_NUM_POW10_H
#define VARVE_STORAGE_BASE_NUM_POW10_H

#include "storage/base/types.h"

#define NUM_POW10_MIN (-292)
#define NUM_POW10_MAX 324
#define NUM_POW10_EXACT 55 /* entries 0 .. 55 are exact, all others rounded up */

struct num_pow10 {
    uint64_t hi, lo;
};

extern const struct num_pow10 num_pow10_table[NUM_POW10_MAX - NUM_POW10_MIN + 1];

static inline const struct num_pow10 *num_pow10_of(int k)
{
    return &num_pow10_table[k - NUM_POW10_MIN];
}

/* floor(log2(10^k)), exact for |k| <= 1233 */
static inline int num_log2_pow10(int k)
{
    return (k * 1741647) >> 19;
}

#endif
