/*
 * expfmt.h: the Prometheus text exposition format and OpenMetrics; private to the ingest room.
 */
#ifndef VARVE_INGEST_EXPFMT_H
#define VARVE_INGEST_EXPFMT_H

#include "ingest/admit.h"

struct expfmt_options {
    int64_t now;       /* ms: the time of lines without one */
    bool open_metrics; /* the content type says so; a last line "# EOF" says it too */
};

/* Pushes the samples of all good lines, the last batch of them left to the caller to flush; bad lines are counted and
 * named. */
void expfmt_decode(struct admit *a, str body, const struct expfmt_options *o);

/* The labels of a series from its text: an admit_parse_fn. */
err expfmt_labels(str raw, struct arena *a, struct labels *out) __attribute__((warn_unused_result));

#endif
