/*
 * remote_hist.h: native histograms as remote write carries them; private to the ingest room.
 */
#ifndef VARVE_INGEST_REMOTE_HIST_H
#define VARVE_INGEST_REMOTE_HIST_H

#include "storage/storage.h"

/* One prompb Histogram, validated; arrays live in the arena. ERR_INVALID names what is wrong with it. */
err remote_hist_parse(str bytes, struct arena *a, struct hist *h, int64_t *t) __attribute__((warn_unused_result));

#endif
