/*
 * mapfn.h: functions of one value: maths, clamping, rounding, parts of histograms, parts of dates.
 */
#ifndef VARVE_QUERY_MAPFN_H
#define VARVE_QUERY_MAPFN_H

#include "query/functions.h"
#include "query/value.h"

/* v[i] = f(v[i], params...) for the samples of a column, in place. param: columns or NULL where not given. */
void mapfn_floats(enum map_code code, double *v, uint32_t n, const double *const param[2]);
/* True for functions of histogram samples: floats have no value there, and the other way round. */
bool mapfn_takes_hists(enum map_code code);
double mapfn_hist(enum map_code code, const struct hist *h, struct arena *a);
/* A part of the date that seconds since the epoch stand for, UTC. */
double datefn(enum date_code code, double seconds);

/* Go's math.Min and math.Max: NaN wins over numbers, infinity over NaN. */
double go_min(double a, double b);
double go_max(double a, double b);

#endif
