/*
 * sample_set.h: samples of one series gathered from several places, oldest write first, then settled:
 * sorted by time, the last write of equal timestamps kept. One thread. {0} is an empty set.
 */
#ifndef VARVE_STORAGE_SAMPLE_SET_H
#define VARVE_STORAGE_SAMPLE_SET_H

#include "storage/base/alloc.h"
#include "storage/base/types.h"

#define SAMPLE_SET_PAD 32 /* room beyond n that block decoders may write to */

struct sample_set {
    int64_t *t;
    double *v;      /* for a histogram: its sum */
    str *hist;      /* NULL until the first histogram; then blob or n = 0 per sample. Bytes are borrowed */
    int64_t *start; /* NULL until the first start timestamp; then one per sample, 0 = none */
    size_t n, cap;
    bool unsorted; /* some sample is not later than the one before it */
};

void sample_set_deinit(struct sample_set *s);
void sample_set_clear(struct sample_set *s);
/* Room for n more samples and the pad. */
void sample_set_reserve(struct sample_set *s, size_t n);

static inline void sample_set_push(struct sample_set *s, int64_t t, double v)
{
    if (s->n == s->cap) sample_set_reserve(s, 1);
    if (s->n > 0 && t <= s->t[s->n - 1]) s->unsorted = true;
    s->t[s->n] = t;
    s->v[s->n] = v;
    if (s->hist != NULL) s->hist[s->n] = (str){0};
    if (s->start != NULL) s->start[s->n] = 0;
    s->n++;
}
void sample_set_push_hist(struct sample_set *s, int64_t t, double sum, str blob);
/* Gives the sample pushed last a start timestamp. */
void sample_set_mark_start(struct sample_set *s, int64_t start);
/* Makes sure of the column of start timestamps, 0 for the samples so far. */
void sample_set_need_starts(struct sample_set *s);
/* Counts k samples that a decoder wrote at t + n, v + n, increasing among themselves; keeps those in [t_min, t_max].
 * has_start: it wrote start + n too, which sample_set_need_starts made; otherwise they have no start. */
void sample_set_accept(struct sample_set *s, size_t k, bool has_start, int64_t t_min, int64_t t_max);
/* Sorts by time (stable), keeps the last of equal times. Nothing to do for a set in order. */
void sample_set_settle(struct sample_set *s);
/* Removes the samples in [t_min, t_max]. */
void sample_set_cut(struct sample_set *s, size_t from, int64_t t_min, int64_t t_max);

#endif
