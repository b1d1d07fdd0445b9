/*
 * rows.c: the batch being built.
 *
 * Invariants: the samples of series i follow those of series i - 1; the sum of all series[i].n is
 * n_samples; n_samples <= ROWS_SAMPLES_MAX. Arrays grow up to that and stay for the next batch; only
 * histogram blobs, in the arena, go with each. `hist` is kept up only once a batch has a histogram,
 * so that plain samples pay nothing for it. Owned by one thread's ingest_scratch.
 */
#include "ingest/rows.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

void rows_deinit(struct rows *r)
{
    mem_free(r->series);
    mem_free(r->places);
    mem_free(r->t);
    mem_free(r->v);
    mem_free(r->hist);
    mem_free(r->start);
    mem_free(r->exemplars);
    arena_deinit(&r->arena);
    *r = (struct rows){0};
}

void rows_clear(struct rows *r)
{
    r->n_series = 0;
    r->n_samples = 0;
    r->n_exemplars = 0;
    r->has_hist = r->has_start = false;
    arena_reset(&r->arena);
}

bool rows_room(struct rows *r, size_t n)
{
    check(n <= ROWS_SAMPLES_MAX);
    size_t need = r->n_samples + n;
    if (need > ROWS_SAMPLES_MAX) return false;
    if (__builtin_expect(need > r->cap_samples, 0)) {
        size_t cap = r->cap_samples;
        r->t = mem_grow(r->t, &cap, need, sizeof r->t[0]);
        r->v = mem_grow(r->v, &r->cap_samples, need, sizeof r->v[0]);
    }
    if (__builtin_expect(r->has_hist && need > r->cap_hist, 0))
        r->hist = mem_grow(r->hist, &r->cap_hist, need, sizeof r->hist[0]);
    if (__builtin_expect(r->has_start && need > r->cap_start, 0))
        r->start = mem_grow(r->start, &r->cap_start, need, sizeof r->start[0]);
    return true;
}

struct batch_series *rows_series(struct rows *r, struct hash128 alias, str raw, uint32_t place)
{
    if (__builtin_expect(r->n_series == r->cap_series, 0)) {
        r->series = mem_grow(r->series, &r->cap_series, r->n_series + 1u, sizeof r->series[0]);
        r->places = mem_grow(r->places, &r->cap_places, r->cap_series, sizeof r->places[0]);
    }
    r->places[r->n_series] = place;
    struct batch_series *s = &r->series[r->n_series++];
    *s = (struct batch_series){.alias = alias, .raw = raw.p, .raw_bytes = (uint32_t)raw.n};
    return s;
}

void rows_hist(struct rows *r, int64_t t, double sum, str blob)
{
    if (!r->has_hist) { /* the first of the batch: those before it were plain samples */
        r->hist = mem_grow(r->hist, &r->cap_hist, r->cap_samples, sizeof r->hist[0]);
        memset(r->hist, 0, r->n_samples * sizeof r->hist[0]);
        r->has_hist = true;
    }
    uint32_t at = r->n_samples;
    rows_sample(r, t, sum);
    r->hist[at] = (str){arena_dup(&r->arena, blob.p, blob.n), blob.n};
}

void rows_start(struct rows *r, int64_t start)
{
    if (start == 0) return;
    if (!r->has_start) { /* the first of the batch: those before it have none */
        r->start = mem_grow(r->start, &r->cap_start, r->cap_samples, sizeof r->start[0]);
        memset(r->start, 0, r->n_samples * sizeof r->start[0]);
        r->has_start = true;
    }
    r->start[r->n_samples - 1] = start;
}

bool rows_exemplar_room(const struct rows *r)
{
    return r->n_exemplars < ROWS_EXEMPLARS_MAX && r->arena.bytes < ROWS_EXEMPLAR_BYTES;
}

void rows_exemplar(struct rows *r, struct hash128 alias, str raw, const struct exemplar *x)
{
    r->exemplars = mem_grow(r->exemplars, &r->cap_exemplars, r->n_exemplars + 1u, sizeof r->exemplars[0]);
    r->exemplars[r->n_exemplars++] =
        (struct batch_exemplar){.alias = alias, .raw = raw.p, .raw_bytes = (uint32_t)raw.n, .x = *x};
}

struct batch rows_batch(const struct rows *r)
{
    return (struct batch){
        .series = r->series,
        .n_series = r->n_series,
        .t = r->t,
        .v = r->v,
        .hist = r->has_hist ? r->hist : NULL,
        .start = r->has_start ? r->start : NULL,
        .n_samples = r->n_samples,
        .exemplars = r->exemplars,
        .n_exemplars = r->n_exemplars,
    };
}
