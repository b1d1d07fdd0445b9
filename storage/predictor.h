/*
 * predictor.h: how a column of integers is predicted, and which predictor leaves least.
 *
 * The formulas stand in integers.c, with the byte layout. Private to the integer columns.
 */
#ifndef VARVE_STORAGE_PREDICTOR_H
#define VARVE_STORAGE_PREDICTOR_H

#include "storage/base/types.h"

/* The numbers are part of the file format. */
enum predictor { PLAIN_OFFSET, PLAIN_ZIGZAG, DELTA_OFFSET, DELTA_ZIGZAG, DELTA2_ZIGZAG, LINEAR_OFFSET, PREDICTORS };

/* One way to write a column. */
struct plan {
    enum predictor predictor;
    unsigned shift;             /* all differences are multiples of 2^shift */
    uint64_t anchor, parameter; /* parameter: of predictors that have one, else 0 */
    uint64_t cost;              /* bits that zstd may leave, estimated */
};

bool predictor_has_parameter(enum predictor p);
/* How many numbers stand for n integers; n less the count come from anchor and parameter alone. */
size_t predictor_count(enum predictor p, size_t n);

/* The best plan for k[0..n), n >= 1. */
struct plan predictor_choose(const int64_t *k, size_t n);
/* The best plan with the given predictor (any, if n is too small for it). */
struct plan predictor_plan(enum predictor p, const int64_t *k, size_t n);
/* Writes the plan's predictor_count numbers for k[0..n). */
void predictor_apply(const struct plan *p, const int64_t *k, size_t n, uint64_t *u);
/* The inverse. The numbers stand at the end of k[0..n): k[n - count] is the first. Any plan is harmless. */
void predictor_restore(const struct plan *p, int64_t *k, size_t n);

#endif
