/*
 * read_series.c: the series of one query of a remote read.
 *
 * Storage orders series by name, job and instance; whoever merges our answer with others' needs them by
 * labels, so all labels of a query are read and sorted first. They count against the query's memory.
 * Samples come run by run (storage.h), so that a long series is never in memory whole. One thread.
 */
#include "query/read_series.h"

#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/protobuf.h"

static int compare_entries(const void *a, const void *b)
{
    return labels_cmp(&((const struct read_entry *)a)->labels, &((const struct read_entry *)b)->labels);
}

/* Tells the budget what the arena took since the last time. */
static err hold_arena(struct read_series *s)
{
    if (s->arena.bytes <= s->held) return NULL;
    size_t more = s->arena.bytes - s->held;
    s->held += more;
    return budget_hold(s->budget, 0, more);
}

err read_series_open(struct db *db, const struct read_query *q, struct budget *b, struct read_series *s)
{
    *s = (struct read_series){.budget = b, .query = q};
    if (q->t_max < q->t_min) return NULL;
    TRY(budget_check(b));
    struct select_options o = {.t_min = q->t_min, .t_max = q->t_max};
    TRY(storage_select(db, q->m, q->n, &o, &s->selection));
    s->reader = reader_create(s->selection);
    s->n = selection_count(s->selection);
    s->v = arena_alloc(&s->arena, s->n * sizeof *s->v);
    for (size_t i = 0; i < s->n; i++) {
        TRY(reader_labels(s->reader, i, &s->arena, &s->v[i].labels));
        s->v[i].i = i;
        TRY(budget_tick(b, 0));
        TRY(hold_arena(s));
    }
    if (s->n > 1) qsort(s->v, s->n, sizeof *s->v, compare_entries);
    return NULL;
}

void read_series_deinit(struct read_series *s)
{
    reader_destroy(s->reader);
    selection_destroy(s->selection);
    arena_deinit(&s->arena);
    arena_deinit(&s->runs);
    budget_release(s->budget, 0, s->held);
}

err read_series_samples(struct read_series *s, size_t k, read_samples_fn fn, void *arg)
{
    const struct sample_run *found;
    size_t n, i = s->v[k].i;
    TRY(reader_runs(s->reader, i, s->query->t_min, s->query->t_max, &found, &n));
    if (n == 0) return NULL;
    arena_reset(&s->runs);
    const struct sample_run *runs = arena_dup(&s->runs, found, n * sizeof *found); /* reading samples ends theirs */
    for (size_t r = 0; r < n; r++) {
        struct samples samples;
        TRY(reader_samples(s->reader, i, runs[r].t_min, runs[r].t_max, &samples));
        TRY(budget_tick(s->budget, samples.n));
        if (samples.n > 0) TRY(fn(arg, &samples));
    }
    return NULL;
}

void read_series_put_labels(const struct labels *ls, struct buf *out)
{
    for (uint32_t i = 0; i < ls->n; i++) {
        size_t start = pb_begin(out, 1);
        pb_put_bytes(out, 1, ls->v[i].name);
        pb_put_bytes(out, 2, ls->v[i].value);
        pb_end(out, start);
    }
}
