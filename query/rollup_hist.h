/*
 * rollup_hist.h: range functions over series that hold native histograms, alone or beside floats.
 */
#ifndef VARVE_QUERY_ROLLUP_HIST_H
#define VARVE_QUERY_ROLLUP_HIST_H

#include "query/rollup.h"
#include "query/source.h"

/* What a window function may need to say: where it stands in the query and whose samples these are. */
struct rollup_notes {
    struct notes *notes;
    uint32_t at;        /* offset of the range vector in the query */
    struct row *labels; /* for the metric name */
};

/* All steps of one series. in has windows and parameters; its v is not read where s->h is set. Results go to out and
 * hists (n_steps each); histograms that are made live in the arena. */
err rollup_mixed(enum rollup_code code, const struct rollup_in *in, const struct series *s,
                 const struct rollup_notes *notes, struct arena *a, double *out, struct hist **hists)
    __attribute__((warn_unused_result));

#endif
