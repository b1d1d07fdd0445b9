/*
 * merge.c: several parts of one partition become one.
 *
 * Each input has a cursor that stands at one series, whose labels are mapped to numbers of the merged symbols
 * (merge_symbols.c). A heap yields the inputs by series in storage order, equal series together, oldest input
 * first; merge_samples.c settles their samples. The output is written front to back by a part writer,
 * which removes its file unless it was finished. Whatever goes wrong, inputs are untouched.
 */
#include "storage/merge.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/limits.h"
#include "storage/merge_internal.h"

/* What storage order compares before the labels themselves: metric name, job, instance. */
#define LEADING 3
static const str leading_names[LEADING] = {{"__name__", 8}, {"job", 3}, {"instance", 8}};

#define PROGRESS_BYTES (256u << 10)
#define NO_SYMBOL UINT32_MAX

struct input {
    struct part_cursor *c;
    const uint32_t *map; /* symbols → merged symbols; part_series vouches for the numbers */
    uint32_t id, n;      /* the series it stands at; of how many */
    struct part_series series;
    uint32_t leading[LEADING]; /* merged symbol + 1 of its value, 0 if absent */
    uint32_t pairs[2 * LIMIT_LABELS];
    struct time_ranges deletes; /* of this series */
    double bytes_a_series;
};

struct merge {
    const struct merge_options *o;
    struct input *inputs;
    struct part_cursor **cursors;
    size_t n;
    struct merge_symbols symbols;
    uint32_t leading[LEADING]; /* merged symbols of the leading names */
    struct merge_heap heap;
    struct part_writer *w;
    struct merge_samples *samples;
    struct label labels[LIMIT_LABELS]; /* of the current series, for the deletes callback */
    double consumed;                   /* bytes of input not yet told to progress */
};

/* ---- order of series ---------------------------------------------------------------------------------------- */

static int compare(const struct input *a, const struct input *b)
{
    for (size_t i = 0; i < LEADING; i++)
        if (a->leading[i] != b->leading[i]) return a->leading[i] < b->leading[i] ? -1 : 1;
    uint32_t n = a->series.n_pairs < b->series.n_pairs ? a->series.n_pairs : b->series.n_pairs;
    for (uint32_t i = 0; i < 2 * n; i++)
        if (a->pairs[i] != b->pairs[i]) return a->pairs[i] < b->pairs[i] ? -1 : 1;
    return (a->series.n_pairs > b->series.n_pairs) - (a->series.n_pairs < b->series.n_pairs);
}

static bool input_before(const void *arg, uint32_t a, uint32_t b)
{
    const struct input *inputs = arg;
    int c = compare(&inputs[a], &inputs[b]);
    return c != 0 ? c < 0 : a < b;
}

/* Moves an input to series `id` and into the heap; beyond the last it stays out. */
static err stand_at(struct merge *m, uint32_t input, uint32_t id)
{
    struct input *in = &m->inputs[input];
    in->id = id;
    if (id == in->n) return NULL;
    TRY(part_series(in->c, id, &in->series));
    memset(in->leading, 0, sizeof in->leading);
    for (uint32_t i = 0; i < 2 * in->series.n_pairs; i += 2) {
        in->pairs[i] = in->map[in->series.pairs[i]];
        in->pairs[i + 1] = in->map[in->series.pairs[i + 1]];
        for (size_t k = 0; k < LEADING; k++)
            if (in->pairs[i] == m->leading[k]) in->leading[k] = in->pairs[i + 1] + 1;
    }
    merge_heap_push(&m->heap, input);
    return NULL;
}

/* ---- one series --------------------------------------------------------------------------------------------- */

static err load_deletes(struct merge *m, uint32_t input)
{
    struct input *in = &m->inputs[input];
    in->deletes.n = 0;
    if (m->o->deletes == NULL) return NULL;
    struct labels ls = {m->labels, in->series.n_pairs};
    for (uint32_t i = 0; i < ls.n; i++)
        ls.v[i] = (struct label){m->symbols.v[in->pairs[2 * i]], m->symbols.v[in->pairs[2 * i + 1]]};
    return m->o->deletes(m->o->deletes_arg, &ls, input, &in->deletes);
}

static err add_input(struct merge *m, uint32_t input)
{
    struct input *in = &m->inputs[input];
    TRY(load_deletes(m, input));
    merge_samples_add(m->samples, input, &in->series, &in->deletes);
    return NULL;
}

static void tell_progress(struct merge *m, const struct input *in)
{
    m->consumed += in->bytes_a_series;
    if (m->consumed < PROGRESS_BYTES || m->o->progress == NULL) return;
    m->o->progress(m->o->progress_arg, (uint64_t)m->consumed);
    m->consumed = 0;
}

/* The next series of all inputs that have it. `same`: scratch for n inputs. */
static err merge_next_series(struct merge *m, uint32_t *same)
{
    size_t n_same = 0;
    merge_samples_begin(m->samples);
    do {
        same[n_same] = merge_heap_pop(&m->heap);
        TRY(add_input(m, same[n_same++]));
    } while (m->heap.n > 0 && compare(&m->inputs[m->heap.v[0]], &m->inputs[same[0]]) == 0);
    const struct input *in = &m->inputs[same[0]];
    TRY(part_writer_series(m->w, in->pairs, in->series.n_pairs));
    TRY(merge_samples_write(m->samples));
    for (size_t i = 0; i < n_same; i++) {
        tell_progress(m, &m->inputs[same[i]]);
        TRY(stand_at(m, same[i], m->inputs[same[i]].id + 1));
    }
    return NULL;
}

static err merge_all_series(struct merge *m)
{
    uint32_t *same = mem_alloc(m->n * sizeof *same);
    err e = NULL;
    for (uint32_t i = 0; i < m->n; i++)
        TRY_OUT(stand_at(m, i, 0));
    while (m->heap.n > 0) {
        if (m->o->cancel != NULL && atomic_load_explicit(m->o->cancel, memory_order_relaxed)) {
            e = err_new(ERR_CANCELED, "merge was cancelled");
            goto out;
        }
        TRY_OUT(merge_next_series(m, same));
    }
out:
    mem_free(same);
    return e;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

static uint32_t find_symbol(const struct merge_symbols *s, str name)
{
    uint32_t low = 0, high = s->n;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (str_cmp(s->v[middle], name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low < s->n && str_eq(s->v[low], name) ? low : NO_SYMBOL;
}

static err open_inputs(struct merge *m, struct part *const *parts)
{
    TRY(merge_symbols_load(&m->symbols, parts, m->n));
    for (size_t k = 0; k < LEADING; k++)
        m->leading[k] = find_symbol(&m->symbols, leading_names[k]);
    for (size_t i = 0; i < m->n; i++) {
        const struct part_meta *meta = part_meta(parts[i]);
        struct input *in = &m->inputs[i];
        in->c = m->cursors[i] = part_cursor_create(parts[i]);
        in->map = m->symbols.map[i];
        in->n = (uint32_t)meta->series;
        in->bytes_a_series = (double)meta->bytes / (double)meta->series;
    }
    return NULL;
}

/* What the output's meta takes over from the inputs. */
static void inherit(struct part_meta *meta, struct part *const *parts, size_t n)
{
    uint64_t id = meta->id;
    *meta = *part_meta(parts[0]);
    meta->id = id;
    for (size_t i = 0; i < n; i++) {
        const struct part_meta *in = part_meta(parts[i]);
        check(in->partition == meta->partition);
        if (in->level > meta->level) meta->level = in->level;
        if (in->seq_min < meta->seq_min) meta->seq_min = in->seq_min;
        if (in->seq_max > meta->seq_max) meta->seq_max = in->seq_max;
    }
    meta->level++;
}

static err finish(struct merge *m, struct part_meta *meta)
{
    if (part_writer_samples(m->w) > 0) return part_writer_finish(m->w, meta);
    meta->samples = meta->series = meta->blocks = meta->bytes = 0;
    return NULL; /* destroying the writer removes its file */
}

static void merge_deinit(struct merge *m)
{
    merge_samples_destroy(m->samples);
    part_writer_destroy(m->w);
    merge_heap_deinit(&m->heap);
    merge_symbols_deinit(&m->symbols);
    for (size_t i = 0; i < m->n; i++) {
        part_cursor_destroy(m->inputs[i].c);
        time_ranges_deinit(&m->inputs[i].deletes);
    }
    mem_free(m->inputs);
    mem_free(m->cursors);
    mem_free(m);
}

err merge_parts(struct env *env, const struct hash_key *key, struct part *const *parts, size_t n, const char *path,
                struct part_meta *meta, const struct merge_options *o)
{
    (void)key; /* inputs know it */
    check(n > 0);
    struct merge *m = mem_zalloc(sizeof *m);
    err e = NULL;
    m->o = o;
    m->n = n;
    m->inputs = mem_zalloc(n * sizeof *m->inputs);
    m->cursors = mem_zalloc(n * sizeof(struct part_cursor *));
    merge_heap_init(&m->heap, n, input_before, m->inputs);
    inherit(meta, parts, n);
    TRY_OUT(open_inputs(m, parts));
    TRY_OUT(part_writer_create(env, path, meta, m->symbols.v, m->symbols.n, &m->w));
    m->samples = merge_samples_create(m->cursors, n, m->w, o);
    TRY_OUT(merge_all_series(m));
    e = finish(m, meta);
out:
    merge_deinit(m);
    return e;
}
