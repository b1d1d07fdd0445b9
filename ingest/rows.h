/*
 * rows.h: the batch being built: series with their samples, in the order received; private to the
 * ingest room. One thread's; reused from batch to batch.
 */
#ifndef VARVE_INGEST_ROWS_H
#define VARVE_INGEST_ROWS_H

#include "storage/storage.h"

#define ROWS_SAMPLES_MAX 65536u   /* samples of one batch: bounds memory, whatever the size of the body */
#define ROWS_EXEMPLARS_MAX 65536u /* likewise, and of the bytes behind them: */
#define ROWS_EXEMPLAR_BYTES (16u << 20)

struct rows {
    struct batch_series *series;
    uint32_t *places; /* line number of each series; 0 in protocols without lines */
    int64_t *t;
    double *v;
    str *hist;      /* histogram blobs, in the arena; only valid if has_hist */
    int64_t *start; /* start timestamps, 0 = none; only valid if has_start */
    struct batch_exemplar *exemplars;
    struct arena arena; /* freed with the batch */
    uint32_t n_series, n_samples, n_exemplars;
    size_t cap_series, cap_places, cap_samples, cap_hist, cap_start, cap_exemplars;
    bool has_hist, has_start;
};

void rows_deinit(struct rows *r);
void rows_clear(struct rows *r);

/* True if the batch has room for n more samples, which is then allocated. n <= ROWS_SAMPLES_MAX. */
bool rows_room(struct rows *r, size_t n);

/* A new series without samples yet; the samples pushed next are its. There is room for its first sample. */
struct batch_series *rows_series(struct rows *r, struct hash128 alias, str raw, uint32_t place);

/* A sample of the newest series; rows_room has been asked. */
static inline void rows_sample(struct rows *r, int64_t t, double v)
{
    r->t[r->n_samples] = t;
    r->v[r->n_samples] = v;
    if (__builtin_expect(r->has_hist, 0)) r->hist[r->n_samples] = (str){0};
    if (__builtin_expect(r->has_start, 0)) r->start[r->n_samples] = 0;
    r->n_samples++;
    r->series[r->n_series - 1].n++;
}

/* A histogram sample of the newest series; the blob is copied. rows_room has been asked. */
void rows_hist(struct rows *r, int64_t t, double sum, str blob);

/* Gives the newest sample a start timestamp; 0 leaves it without. */
void rows_start(struct rows *r, int64_t start);

/* True if the batch has room for one more exemplar, with its labels in the arena. */
bool rows_exemplar_room(const struct rows *r);
/* An exemplar of the series with this alias; its labels' array is the arena's. rows_exemplar_room has been asked. */
void rows_exemplar(struct rows *r, struct hash128 alias, str raw, const struct exemplar *x);

/* The batch as storage takes it; the caller adds how labels are resolved. */
struct batch rows_batch(const struct rows *r);

#endif
