/*
 * reader.c: labels and samples of the series of a selection, one thread a reader.
 *
 * Samples of a series are gathered source by source, oldest writes first, and settled only if they
 * overlap: in the common case blocks and head chunks follow each other in time and are decoded
 * straight into one column.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/select_internal.h"

#define TEXTS_MAX 64u /* names and values; the labels of nearly all series */

/* Texts of the series whose labels were asked for last: the next one has most of them at the same places. */
struct last_texts {
    uint32_t part; /* + 1 */
    uint32_t n;
    uint32_t symbols[TEXTS_MAX];
    str texts[TEXTS_MAX];
};

struct reader {
    struct selection *s;
    struct part_cursor **cursors; /* one a part, made at first use */
    struct sample_set set;
    struct arena hist_arena; /* blobs of the current samples */
    struct arena scratch;
    struct time_ranges deletes;
    int64_t *hist_times;
    str *hist_blobs;
    size_t hist_times_cap, hist_blobs_cap;
    int64_t *hist_starts;
    size_t hist_starts_cap;
    struct sample_run *runs;
    size_t n_runs, runs_cap;
    uint64_t samples, bytes;
    struct last_texts last;
};

struct reader *reader_create(struct selection *s)
{
    struct reader *r = mem_zalloc(sizeof *r);
    r->s = s;
    r->cursors = mem_zalloc(s->view->n_parts * sizeof(struct part_cursor *) + 1);
    return r;
}

void reader_destroy(struct reader *r)
{
    if (r == NULL) return;
    for (size_t i = 0; i < r->s->view->n_parts; i++)
        part_cursor_destroy(r->cursors[i]);
    mem_free(r->cursors);
    sample_set_deinit(&r->set);
    arena_deinit(&r->hist_arena);
    arena_deinit(&r->scratch);
    time_ranges_deinit(&r->deletes);
    mem_free(r->hist_times);
    mem_free(r->hist_blobs);
    mem_free(r->hist_starts);
    mem_free(r->runs);
    mem_free(r);
}

void reader_stats(const struct reader *r, uint64_t *samples, uint64_t *bytes)
{
    *samples = r->samples;
    *bytes = r->bytes;
}

static struct part_cursor *cursor_for(struct reader *r, uint32_t part)
{
    if (r->cursors[part] == NULL) r->cursors[part] = part_cursor_create(r->s->view->parts[part].part);
    return r->cursors[part];
}

/* The head of a source, NULL if the source is a part. */
static const struct head *head_of(const struct reader *r, const struct source *at)
{
    const struct view *v = r->s->view;
    return at->where >= v->n_parts ? v->heads[at->where - v->n_parts] : NULL;
}

/* The text of a symbol that is not where the series before had it. */
static err new_text(struct last_texts *last, struct part_cursor *c, uint32_t place, uint32_t symbol, str *out)
{
    TRY(part_symbol(c, symbol, out));
    if (place >= TEXTS_MAX) return NULL;
    last->symbols[place] = symbol;
    last->texts[place] = *out;
    if (place == last->n) last->n++;
    return NULL;
}

static err part_labels_shared(struct reader *r, const struct source *at, struct arena *a, struct labels *out)
{
    const uint32_t *pairs;
    uint32_t n_pairs;
    struct part_cursor *c = cursor_for(r, at->where);
    TRY(part_series_pairs(c, at->id, &pairs, &n_pairs));
    *out = (struct labels){arena_alloc(a, n_pairs * sizeof(struct label) + 1), n_pairs};
    struct last_texts *last = &r->last;
    if (last->part != at->where + 1) last->n = 0;
    last->part = at->where + 1;
    for (uint32_t k = 0; k < 2 * n_pairs; k++) {
        str *text = k % 2 == 0 ? &out->v[k / 2].name : &out->v[k / 2].value;
        if (k < last->n && last->symbols[k] == pairs[k])
            *text = last->texts[k];
        else
            TRY(new_text(last, c, k, pairs[k], text));
    }
    return NULL;
}

err reader_labels_shared(struct reader *r, size_t i, struct arena *a, struct labels *out)
{
    check(i < r->s->n);
    const struct source *at = &r->s->sources[r->s->first[i]];
    const struct head *h = head_of(r, at);
    if (h != NULL) {
        *out = registry_labels(h->registry, at->id, a);
        return NULL;
    }
    return part_labels_shared(r, at, a, out);
}

err reader_labels(struct reader *r, size_t i, struct arena *a, struct labels *out)
{
    TRY(reader_labels_shared(r, i, a, out));
    if (head_of(r, &r->s->sources[r->s->first[i]]) != NULL) return NULL; /* the selection holds these */
    for (uint32_t k = 0; k < out->n; k++)
        out->v[k] = (struct label){arena_str(a, out->v[k].name), arena_str(a, out->v[k].value)};
    return NULL;
}

/* ---- samples ---------------------------------------------------------------------------------------------------- */

static err read_hist_block(struct reader *r, struct part_cursor *c, const struct part_block *b, int64_t t_min,
                           int64_t t_max)
{
    r->hist_times = mem_grow(r->hist_times, &r->hist_times_cap, b->n + SAMPLE_SET_PAD, sizeof *r->hist_times);
    r->hist_blobs = mem_grow(r->hist_blobs, &r->hist_blobs_cap, b->n + SAMPLE_SET_PAD, sizeof *r->hist_blobs);
    TRY(part_read_hists(c, b, r->hist_times, r->hist_blobs, &r->hist_arena));
    if (b->start_bytes > 0) {
        r->hist_starts = mem_grow(r->hist_starts, &r->hist_starts_cap, b->n, sizeof *r->hist_starts);
        TRY(part_read_starts(c, b, r->hist_starts));
    }
    for (uint32_t i = 0; i < b->n; i++) {
        if (r->hist_times[i] < t_min || r->hist_times[i] > t_max) continue;
        struct hist h;
        arena_reset(&r->scratch);
        TRY(hist_decode(r->hist_blobs[i], &r->scratch, &h));
        sample_set_push_hist(&r->set, r->hist_times[i], h.sum, r->hist_blobs[i]);
        if (b->start_bytes > 0) sample_set_mark_start(&r->set, r->hist_starts[i]);
    }
    return NULL;
}

static err read_block(struct reader *r, struct part_cursor *c, const struct part_block *b, int64_t t_min, int64_t t_max)
{
    r->samples += b->n;
    r->bytes += b->time_bytes + b->value_bytes + b->start_bytes;
    if (b->kind == BLOCK_HIST) return read_hist_block(r, c, b, t_min, t_max);
    sample_set_reserve(&r->set, b->n);
    TRY(part_read_floats(c, b, r->set.t + r->set.n, r->set.v + r->set.n));
    if (b->start_bytes > 0) {
        sample_set_need_starts(&r->set);
        TRY(part_read_starts(c, b, r->set.start + r->set.n));
    }
    sample_set_accept(&r->set, b->n, b->start_bytes > 0, t_min, t_max);
    return NULL;
}

/* Fills r->deletes for one series of a part; *any tells if there are some. */
static err find_deletes(struct reader *r, struct part_cursor *c, const struct part_series *s, uint32_t part,
                        int64_t t_min, int64_t t_max, bool *any)
{
    r->deletes.n = 0;
    *any = part_has_deletes(r->s->view, part, t_min, t_max);
    if (!*any) return NULL;
    struct labels ls;
    arena_reset(&r->scratch);
    TRY(part_labels(c, s->pairs, s->n_pairs, &r->scratch, &ls));
    TRY(part_deletes(r->s->view, part, &ls, &r->deletes));
    *any = r->deletes.n > 0;
    return NULL;
}

static err read_part(struct reader *r, const struct source *at, int64_t t_min, int64_t t_max)
{
    struct part_cursor *c = cursor_for(r, at->where);
    struct part_series s;
    bool deletes;
    TRY(part_series(c, at->id, &s));
    TRY(find_deletes(r, c, &s, at->where, t_min, t_max, &deletes));
    size_t from = r->set.n;
    for (uint32_t i = 0; i < s.n_blocks; i++) {
        const struct part_block *b = &s.blocks[i];
        if (b->t_min > t_max || b->t_max < t_min) continue;
        TRY(read_block(r, c, b, t_min, t_max));
    }
    for (size_t i = 0; deletes && i < r->deletes.n; i++)
        sample_set_cut(&r->set, from, r->deletes.v[i].t_min, r->deletes.v[i].t_max);
    return NULL;
}

err reader_samples(struct reader *r, size_t i, int64_t t_min, int64_t t_max, struct samples *out)
{
    struct selection *s = r->s;
    check(i < s->n);
    if (t_min < s->t_min) t_min = s->t_min;
    if (t_max > s->t_max) t_max = s->t_max;
    sample_set_clear(&r->set);
    arena_reset(&r->hist_arena);
    for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
        const struct source *at = &s->sources[k];
        const struct head *h = head_of(r, at);
        size_t before = r->set.n;
        if (h == NULL) {
            TRY(read_part(r, at, t_min, t_max));
        } else {
            head_read(h, at->id, t_min, t_max, &r->set);
            r->samples += r->set.n - before;
        }
    }
    sample_set_settle(&r->set);
    *out = (struct samples){.t = r->set.t, .v = r->set.v, .hist = r->set.hist, .start = r->set.start, .n = r->set.n};
    return NULL;
}

/* ---- runs ------------------------------------------------------------------------------------------------------- */

static void add_run(struct reader *r, struct sample_run run)
{
    if (r->n_runs == r->runs_cap) r->runs = mem_grow(r->runs, &r->runs_cap, r->n_runs + 1, sizeof *r->runs);
    r->runs[r->n_runs++] = run;
}

static struct sample_run run_of_block(const struct part_block *b, int64_t t_min, int64_t t_max)
{
    struct sample_run run = {.t_min = b->t_min, .t_max = b->t_max, .n = b->n};
    run.covered = b->kind == BLOCK_FLOAT && b->has_aggregates && b->t_min >= t_min && b->t_max <= t_max;
    if (run.covered) {
        run.first = b->agg.first;
        run.last = b->agg.last;
        run.min = b->agg.min;
        run.max = b->agg.max;
        run.sum = b->agg.sum;
        run.resets = b->agg.resets;
    }
    if (run.t_min < t_min) run.t_min = t_min;
    if (run.t_max > t_max) run.t_max = t_max;
    return run;
}

static err add_part_runs(struct reader *r, const struct source *at, int64_t t_min, int64_t t_max)
{
    struct part_cursor *c = cursor_for(r, at->where);
    struct part_series s;
    bool deletes;
    TRY(part_series(c, at->id, &s));
    TRY(find_deletes(r, c, &s, at->where, t_min, t_max, &deletes));
    for (uint32_t i = 0; i < s.n_blocks; i++) {
        if (s.blocks[i].t_min > t_max || s.blocks[i].t_max < t_min) continue;
        struct sample_run run = run_of_block(&s.blocks[i], t_min, t_max);
        if (deletes && time_ranges_touch(&r->deletes, run.t_min, run.t_max)) run.covered = false;
        add_run(r, run);
    }
    return NULL;
}

/* The head's samples are one stretch to be read. */
static void add_head_run(struct reader *r, const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max)
{
    sample_set_clear(&r->set);
    head_read(h, handle, t_min, t_max, &r->set);
    if (r->set.n == 0) return;
    struct sample_run run = {.t_min = r->set.t[0], .t_max = r->set.t[0]};
    for (size_t i = 1; i < r->set.n; i++) {
        if (r->set.t[i] < run.t_min) run.t_min = r->set.t[i];
        if (r->set.t[i] > run.t_max) run.t_max = r->set.t[i];
    }
    add_run(r, run);
}

static int compare_runs(const void *a, const void *b)
{
    const struct sample_run *x = a, *y = b;
    return (x->t_min > y->t_min) - (x->t_min < y->t_min);
}

/* Runs that overlap become one that has to be read; so do neighbours that both have to be read. */
static void join_runs(struct reader *r)
{
    size_t kept = 0;
    for (size_t i = 0; i < r->n_runs; i++) {
        struct sample_run *last = kept > 0 ? &r->runs[kept - 1] : NULL;
        bool overlap = last != NULL && r->runs[i].t_min <= last->t_max;
        if (overlap || (last != NULL && !last->covered && !r->runs[i].covered)) {
            last->covered = false;
            if (r->runs[i].t_max > last->t_max) last->t_max = r->runs[i].t_max;
            continue;
        }
        r->runs[kept++] = r->runs[i];
    }
    r->n_runs = kept;
}

err reader_runs(struct reader *r, size_t i, int64_t t_min, int64_t t_max, const struct sample_run **out, size_t *n)
{
    struct selection *s = r->s;
    check(i < s->n);
    if (t_min < s->t_min) t_min = s->t_min;
    if (t_max > s->t_max) t_max = s->t_max;
    r->n_runs = 0;
    for (uint32_t k = s->first[i]; k < s->first[i + 1]; k++) {
        const struct head *h = head_of(r, &s->sources[k]);
        if (h == NULL)
            TRY(add_part_runs(r, &s->sources[k], t_min, t_max));
        else
            add_head_run(r, h, s->sources[k].id, t_min, t_max);
    }
    if (r->n_runs > 0) qsort(r->runs, r->n_runs, sizeof *r->runs, compare_runs);
    join_runs(r);
    *out = r->runs;
    *n = r->n_runs;
    return NULL;
}
