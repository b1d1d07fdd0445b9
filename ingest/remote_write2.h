/*
 * remote_write2.h: Prometheus remote write 2.0; private to the ingest room.
 */
#ifndef VARVE_INGEST_REMOTE_WRITE2_H
#define VARVE_INGEST_REMOTE_WRITE2_H

#include "ingest/admit.h"

/* Pushes the samples of an uncompressed io.prometheus.write.v2.Request; the last batch of them is left to the caller
 * to flush. A malformed body sets a->failure; a series with a fault of its own is refused, the others are taken. */
void remote_write2_decode(struct admit *a, str body);

/* The labels of a series: an admit_parse_fn over what remote_write2_decode gave as its raw bytes. */
err remote_write2_labels(str raw, struct arena *a, struct labels *out) __attribute__((warn_unused_result));

#endif
