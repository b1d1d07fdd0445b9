/* partition.c: see partition.h. Days are counted in 400-year eras of 146,097 days that begin on March 1st. */
#include "storage/partition.h"

#include <stdio.h>

#define MS_PER_DAY INT64_C(86400000)
#define DAYS_PER_ERA 146097
#define DAYS_TO_1970 719468 /* from 0000-03-01 */

static int64_t floor_div(int64_t a, int64_t b)
{
    return a / b - (a % b != 0 && (a < 0) != (b < 0));
}

int32_t partition_of(int64_t ms)
{
    int64_t days = floor_div(ms, MS_PER_DAY) + DAYS_TO_1970;
    int64_t era = floor_div(days, DAYS_PER_ERA);
    int64_t day = days - era * DAYS_PER_ERA;                                      /* 0 .. 146096 */
    int64_t year = (day - day / 1460 + day / 36524 - day / 146096) / 365;         /* 0 .. 399, from March */
    int64_t month = (5 * (day - (365 * year + year / 4 - year / 100)) + 2) / 153; /* 0 = March */
    int64_t civil_year = era * 400 + year + (month >= 10);
    return (int32_t)((civil_year - 1970) * 12 + (month + 2) % 12);
}

int64_t partition_start(int32_t partition)
{
    int64_t year = floor_div(partition, 12) + 1970, month = partition - floor_div(partition, 12) * 12;
    int64_t from_march = (month + 10) % 12;
    if (month < 2) year--;
    int64_t era = floor_div(year, 400), of_era = year - era * 400;
    int64_t day = of_era * 365 + of_era / 4 - of_era / 100 + (153 * from_march + 2) / 5;
    return (era * DAYS_PER_ERA + day - DAYS_TO_1970) * MS_PER_DAY;
}

void partition_name(int32_t partition, char out[32])
{
    int64_t year = floor_div(partition, 12);
    snprintf(out, 32, "%04d-%02d", (int)(year + 1970), (int)(partition - year * 12) + 1);
}
