/*
 * partition.h: UTC months as numbers: (year - 1970) * 12 + month, January = 0. Negative before 1970.
 * Calendar arithmetic on the proleptic Gregorian calendar, as in ISO 8601.
 */
#ifndef VARVE_STORAGE_PARTITION_H
#define VARVE_STORAGE_PARTITION_H

#include "storage/base/types.h"

int32_t partition_of(int64_t ms);
int64_t partition_start(int32_t partition); /* first millisecond of the month */
/* "2026-11"; out: 32 bytes. */
void partition_name(int32_t partition, char out[32]);

#endif
