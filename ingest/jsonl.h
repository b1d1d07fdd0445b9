/*
 * jsonl.h: JSON lines, one series a line; private to the ingest room.
 */
#ifndef VARVE_INGEST_JSONL_H
#define VARVE_INGEST_JSONL_H

#include "ingest/admit.h"

/* Pushes the samples of all good lines, the last batch of them left to the caller to flush; bad lines are counted and
 * named. */
void jsonl_decode(struct admit *a, str body);

/* The labels of a series from its "metric" object: an admit_parse_fn. */
err jsonl_labels(str raw, struct arena *a, struct labels *out) __attribute__((warn_unused_result));

#endif
