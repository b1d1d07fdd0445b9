/*
 * runs.c: one long window of a series from storage.
 *
 * Storage gives the runs a series consists of: blocks with aggregates, and stretches that must be
 * read (the edges of the window, the head, overlaps, blocks with NaN). Together they make a digest.
 * Worth it for a single step only: over many steps each sample is needed anyway.
 */
#include "query/runs.h"

#include <math.h>

#include "storage/base/alloc.h"

void runs_deinit(struct runs *r)
{
    mem_free(r->v);
    *r = (struct runs){0};
}

static err fetch(struct runs *r, struct reader *reader, size_t i, int64_t t_min, int64_t t_max, bool *any_covered)
{
    const struct sample_run *runs;
    TRY(reader_runs(reader, i, t_min, t_max, &runs, &r->n));
    if (r->n > r->cap) r->v = mem_grow(r->v, &r->cap, r->n, sizeof *r->v);
    if (r->n) memcpy(r->v, runs, r->n * sizeof *runs);
    *any_covered = false;
    for (size_t k = 0; k < r->n; k++)
        *any_covered = *any_covered || r->v[k].covered;
    return NULL;
}

/* Adds a stretch of samples; *plain false if it is not floats alone. */
static err add_stretch(struct runs *r, struct reader *reader, size_t i, int64_t t_min, int64_t t_max, bool *plain)
{
    struct samples s;
    TRY(reader_samples(reader, i, t_min, t_max, &s));
    TRY(budget_tick(r->budget, s.n));
    *plain = !s.hist && !s.start;
    for (size_t from = 0, to; *plain && from < s.n; from = to + 1) { /* between stale markers */
        for (to = from; to < s.n && !is_stale_nan(s.v[to]);)
            to++;
        digest_add_samples(&r->digest, s.t + from, s.v + from, to - from);
    }
    return NULL;
}

err runs_digest(struct runs *r, struct reader *reader, size_t i, int64_t t_min, int64_t t_max, bool *plain)
{
    r->digest = (struct digest){0};
    TRY(fetch(r, reader, i, t_min, t_max, plain));
    for (size_t k = 0; k < r->n && *plain; k++) {
        if (r->v[k].covered)
            digest_add_run(&r->digest, &r->v[k]);
        else
            TRY(add_stretch(r, reader, i, r->v[k].t_min, r->v[k].t_max, plain));
    }
    *plain = *plain && isfinite(r->digest.sum.sum); /* what overflows is averaged in another way */
    return NULL;
}
