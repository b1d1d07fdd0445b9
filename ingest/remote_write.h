/*
 * remote_write.h: Prometheus remote write 1.0; private to the ingest room.
 */
#ifndef VARVE_INGEST_REMOTE_WRITE_H
#define VARVE_INGEST_REMOTE_WRITE_H

#include "ingest/admit.h"

/* Pushes the samples of an uncompressed WriteRequest; the last batch of them is left to the caller to flush. A
 * malformed body sets a->failure. */
void remote_write_decode(struct admit *a, str body);

/* The labels of a series from its label fields as received: an admit_parse_fn. */
err remote_write_labels(str raw, struct arena *a, struct labels *out) __attribute__((warn_unused_result));

#endif
