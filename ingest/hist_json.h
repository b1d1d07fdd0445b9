/*
 * hist_json.h: native histograms as JSON, for export and import; private to the ingest room.
 *
 *   {"schema":3,"float":false,"reset":"unknown","count":12,"sum":18.4,"zero_threshold":0.001,"zero_count":2,
 *    "positive":{"spans":[[0,2],[1,1]],"counts":[3,4,3]},"negative":{...},"custom":[...]}
 *
 * counts are absolute; numbers that JSON lacks are strings, as in values. Absent members are 0, empty,
 * false, "unknown".
 */
#ifndef VARVE_INGEST_HIST_JSON_H
#define VARVE_INGEST_HIST_JSON_H

#include "storage/base/json.h"
#include "storage/storage.h"

/* Validated; arrays in the arena. ERR_INVALID says what is wrong. */
err hist_json_parse(str text, struct arena *a, struct hist *h) __attribute__((warn_unused_result));
void hist_json_print(const struct hist *h, struct json *j);
/* A double as export writes it: a number, or a string for NaN, infinities and the stale marker. */
void hist_json_double(double v, struct json *j);

#endif
