/*
 * part_model.h: a plain model of a part's contents for tests: series in an array, samples in arrays.
 *
 * model_random makes one, model_write writes it as a part file, model_compare holds a part against it,
 * sample by sample and bit by bit. Included by test_part.c and test_merge.c.
 */
#ifndef VARVE_TESTS_PART_MODEL_H
#define VARVE_TESTS_PART_MODEL_H

#include "tests/unit/testing.h"

#include <ftw.h>
#include <unistd.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/column_value.h"
#include "storage/part.h"

#define MODEL_MONTH 646                              /* November 2023 */
#define MODEL_T0 INT64_C(1698796800000)              /* its first millisecond */
#define MODEL_T1 (MODEL_T0 + 30 * INT64_C(86400000)) /* the first after it */

struct model_series {
    struct labels ls;
    size_t n;
    int64_t *t;
    double *v;
    str *hist;      /* n = 0: a float */
    int64_t *start; /* NULL: no start timestamps */
};

struct model {
    struct arena arena;
    struct model_series *series; /* in storage order */
    size_t n;
    uint64_t samples;
};

/* A temporary folder with a path for files in it. */
struct model_room {
    struct env *env;
    struct hash_key key;
    struct fcache *cache;
    char dir[256], path[512];
};

static inline void room_open(struct model_room *r, size_t cache_bytes)
{
    const char *tmp = getenv("TMPDIR");
    r->env = env_posix();
    r->env->ops->random(r->env, &r->key, sizeof r->key);
    r->cache = fcache_create(cache_bytes, NULL);
    snprintf(r->dir, sizeof r->dir, "%s/varve-part-XXXXXX", tmp ? tmp : "/tmp");
    assert_non_null(mkdtemp(r->dir));
    snprintf(r->path, sizeof r->path, "%s/a.part", r->dir);
}

static inline int room_remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static inline void room_close(struct model_room *r)
{
    fcache_destroy(r->cache);
    nftw(r->dir, room_remove_entry, 16, FTW_DEPTH | FTW_PHYS);
}

/* ---- making one --------------------------------------------------------------------------------------------- */

static inline str model_pick(struct rng *r, struct arena *a, const char *prefix, uint64_t n)
{
    return arena_printf(a, "%s%llu", prefix, (unsigned long long)rng_below(r, n));
}

static inline void model_label(struct labels *ls, str name, str value)
{
    ls->v[ls->n++] = (struct label){name, value};
}

static inline struct labels model_labels(struct rng *r, struct arena *a)
{
    struct labels ls = {arena_alloc(a, 16 * sizeof(struct label)), 0};
    if (!rng_chance(r, 0.02)) model_label(&ls, STR("__name__"), model_pick(r, a, "metric_", 6));
    if (!rng_chance(r, 0.1)) model_label(&ls, STR("job"), model_pick(r, a, "job", 3));
    if (!rng_chance(r, 0.1)) model_label(&ls, STR("instance"), model_pick(r, a, "host-", 12));
    if (rng_chance(r, 0.5)) model_label(&ls, STR("cpu"), model_pick(r, a, "", 8));
    if (rng_chance(r, 0.3)) model_label(&ls, STR("mode"), model_pick(r, a, "mode ü ", 4));
    if (rng_chance(r, 0.2)) model_label(&ls, STR("Zone"), model_pick(r, a, "", 2));
    if (rng_chance(r, 0.1)) model_label(&ls, STR("id"), model_pick(r, a, "unique-", 1000000));
    if (rng_chance(r, 0.1)) { /* long and unlike each other: symbols fill several frames */
        uint64_t x = rng_next(r);
        model_label(&ls, STR("path"),
                    arena_printf(a, "%016llx/%016llx/%016llx", (unsigned long long)x, (unsigned long long)(x * x),
                                 (unsigned long long)(x * x * x)));
    }
    assert_ok(labels_canonicalize(&ls));
    return ls;
}

static inline int model_order(const void *a, const void *b)
{
    return labels_cmp_storage(&((const struct model_series *)a)->ls, &((const struct model_series *)b)->ls);
}

static inline double model_value(struct rng *r, unsigned style, double before)
{
    static const uint64_t odd[] = {STALE_NAN_BITS,
                                   UINT64_C(0x7ff8000000000001),
                                   UINT64_C(0x8000000000000000),
                                   UINT64_C(0x7ff0000000000000),
                                   UINT64_C(0xfff0000000000000),
                                   1};
    switch (style) {
    case 0: /* constant */
        return before;
    case 1: /* counter with resets */
        return rng_chance(r, 0.02) ? (double)rng_below(r, 5) : before + (double)rng_below(r, 1000);
    case 2: /* decimals */
        return (double)((int64_t)rng_below(r, 20000) - 10000) / 100;
    case 3: /* floats with oddities */
        return rng_chance(r, 0.1) ? f64_from_bits(odd[rng_below(r, ARRAY_LEN(odd))]) : rng_unit(r) * 1e6;
    default: /* any bits */
        return f64_from_bits(rng_next(r));
    }
}

static inline str model_hist(struct rng *r, struct arena *a)
{
    struct hist_span span = {(int32_t)rng_below(r, 10), 1 + (uint32_t)rng_below(r, 3)};
    double counts[3] = {(double)rng_below(r, 100), (double)rng_below(r, 100), (double)rng_below(r, 100)}, sum = 0;
    for (uint32_t i = 0; i < span.length; i++)
        sum += counts[i];
    struct hist h = {.schema = 3,
                     .zero_threshold = 0.001,
                     .count = sum,
                     .sum = rng_unit(r) * 100,
                     .n_positive_spans = 1,
                     .n_positive = span.length,
                     .positive_spans = &span,
                     .positive = counts};
    struct buf b = {0};
    assert_ok(hist_validate(&h));
    hist_encode(&h, &b);
    str s = arena_str(a, buf_as_str(&b));
    buf_deinit(&b);
    return s;
}

/* Timestamps: of a scrape target (the same for the same seed), or private ones. */
static inline void model_times(struct model_series *s, uint64_t seed, int64_t from, int64_t to)
{
    struct rng r;
    rng_seed(&r, seed);
    int64_t step = (to - from) / (int64_t)(s->n + 1), t = from;
    for (size_t i = 0; i < s->n; i++) {
        t += 1 + (int64_t)rng_below(&r, (uint64_t)step);
        s->t[i] = t;
    }
}

/* Start timestamps: of a counter that is reset now and then, of deltas, or any number; some samples have none. */
static inline void model_starts(struct rng *r, struct arena *a, struct model_series *s)
{
    unsigned style = (unsigned)rng_below(r, 3);
    double none = rng_chance(r, 0.5) ? 0 : rng_unit(r);
    int64_t start = s->t[0] - 1;
    s->start = arena_zalloc(a, (s->n + 1) * sizeof *s->start);
    for (size_t i = 0; i < s->n; i++) {
        if (rng_chance(r, none)) continue;
        if (style == 0 && rng_chance(r, 0.05)) start = s->t[i] - (int64_t)rng_below(r, 1000);
        if (style == 1) start = i > 0 ? s->t[i - 1] : 0;
        if (style == 2) start = (int64_t)rng_next(r);
        s->start[i] = start;
    }
}

static inline int64_t model_start(const struct model_series *s, size_t i)
{
    return s->start != NULL ? s->start[i] : 0;
}

static inline void model_fill(struct rng *r, struct arena *a, struct model_series *s, size_t max_samples, bool hists,
                              int64_t from, int64_t to)
{
    unsigned style = (unsigned)rng_below(r, 5);
    uint64_t target = rng_below(r, 8);
    s->n = rng_chance(r, 0.1) ? 1 + rng_below(r, 4) : target == 0 ? 1 + rng_below(r, max_samples) : 1 + max_samples / 2;
    s->t = arena_alloc(a, (s->n + 1) * sizeof *s->t);
    s->v = arena_alloc(a, (s->n + 1) * sizeof *s->v);
    s->hist = arena_zalloc(a, (s->n + 1) * sizeof *s->hist);
    model_times(s, target == 0 ? rng_next(r) : target, from, to);
    bool hist = hists && rng_chance(r, 0.1);
    double v = (double)rng_below(r, 1000);
    for (size_t i = 0; i < s->n; i++) {
        v = model_value(r, style, v);
        s->v[i] = v;
        if (hist && rng_chance(r, 0.8)) s->hist[i] = model_hist(r, a);
    }
    if (rng_chance(r, 0.2)) model_starts(r, a, s);
}

/* Up to n_series series of up to max_samples samples each, within [from, to). */
static inline void model_random(struct model *m, struct rng *r, size_t n_series, size_t max_samples, bool hists,
                                int64_t from, int64_t to)
{
    *m = (struct model){0};
    m->series = arena_zalloc(&m->arena, (n_series + 1) * sizeof *m->series);
    for (size_t i = 0; i < n_series; i++)
        m->series[i].ls = model_labels(r, &m->arena);
    qsort(m->series, n_series, sizeof *m->series, model_order);
    for (size_t i = 0; i < n_series; i++) {
        if (m->n > 0 && labels_eq(&m->series[m->n - 1].ls, &m->series[i].ls)) continue;
        m->series[m->n] = m->series[i];
        model_fill(r, &m->arena, &m->series[m->n], max_samples, hists, from, to);
        m->samples += m->series[m->n++].n;
    }
}

static inline void model_free(struct model *m)
{
    arena_deinit(&m->arena);
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static inline int model_str_order(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

/* All strings of the model, sorted, unique; in its arena. */
static inline str *model_symbols(struct model *m, uint32_t *n_out)
{
    size_t n = 0, cap = 1;
    for (size_t i = 0; i < m->n; i++)
        cap += 2 * m->series[i].ls.n;
    str *all = arena_alloc(&m->arena, cap * sizeof *all);
    for (size_t i = 0; i < m->n; i++) {
        for (uint32_t k = 0; k < m->series[i].ls.n; k++) {
            all[n++] = m->series[i].ls.v[k].name;
            all[n++] = m->series[i].ls.v[k].value;
        }
    }
    qsort(all, n, sizeof *all, model_str_order);
    uint32_t kept = 0;
    for (size_t i = 0; i < n; i++)
        if (kept == 0 || !str_eq(all[kept - 1], all[i])) all[kept++] = all[i];
    *n_out = kept;
    return all;
}

static inline uint32_t model_symbol(const str *symbols, uint32_t n, str s)
{
    const str *found = bsearch(&s, symbols, n, sizeof *symbols, model_str_order);
    assert_non_null(found);
    return (uint32_t)(found - symbols);
}

/* Floats first, then histograms, in pieces. */
static inline void model_write_samples(struct part_writer *w, const struct model_series *s, struct arena *a)
{
    int64_t *t = arena_alloc(a, (s->n + 1) * sizeof *t);
    double *v = arena_alloc(a, (s->n + 1) * sizeof *v);
    str *h = arena_alloc(a, (s->n + 1) * sizeof *h);
    int64_t *start = s->start != NULL ? arena_alloc(a, (s->n + 1) * sizeof *start) : NULL;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->hist[i].n > 0) continue;
        if (start != NULL) start[n] = s->start[i];
        t[n] = s->t[i];
        v[n++] = s->v[i];
    }
    size_t first = n / 3;
    assert_ok(part_writer_floats_started(w, t, v, start, first));
    assert_ok(part_writer_floats_started(w, t + first, v + first, start != NULL ? start + first : NULL, n - first));
    n = 0;
    for (size_t i = 0; i < s->n; i++) {
        if (s->hist[i].n == 0) continue;
        if (start != NULL) start[n] = s->start[i];
        t[n] = s->t[i];
        h[n++] = s->hist[i];
    }
    assert_ok(part_writer_hists_started(w, t, h, start, n));
}

static inline void model_write(struct model *m, struct env *env, const char *path, struct part_meta *meta)
{
    uint32_t n_symbols;
    str *symbols = model_symbols(m, &n_symbols);
    struct arena scratch = {0};
    struct part_writer *w;
    assert_ok(part_writer_create(env, path, meta, symbols, n_symbols, &w));
    for (size_t i = 0; i < m->n; i++) {
        const struct model_series *s = &m->series[i];
        uint32_t pairs[2 * LIMIT_LABELS];
        for (uint32_t k = 0; k < s->ls.n; k++) {
            pairs[2 * k] = model_symbol(symbols, n_symbols, s->ls.v[k].name);
            pairs[2 * k + 1] = model_symbol(symbols, n_symbols, s->ls.v[k].value);
        }
        assert_ok(part_writer_series(w, pairs, s->ls.n));
        arena_reset(&scratch);
        model_write_samples(w, s, &scratch);
    }
    assert_int_equal(part_writer_samples(w), m->samples);
    assert_ok(part_writer_finish(w, meta));
    part_writer_destroy(w);
    arena_deinit(&scratch);
}

/* ---- comparing ---------------------------------------------------------------------------------------------- */

static inline void model_compare_labels(struct part_cursor *c, const struct part_series *s, const struct labels *ls)
{
    assert_int_equal(s->n_pairs, ls->n);
    for (uint32_t k = 0; k < ls->n; k++) {
        str name, value;
        assert_ok(part_symbol(c, s->pairs[2 * k], &name));
        assert_ok(part_symbol(c, s->pairs[2 * k + 1], &value));
        assert_true(str_eq(name, ls->v[k].name));
        assert_true(str_eq(value, ls->v[k].value));
    }
}

/* Index of the sample at time t. */
static inline size_t model_at(const struct model_series *s, int64_t t)
{
    size_t low = 0, high = s->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (s->t[middle] < t)
            low = middle + 1;
        else
            high = middle;
    }
    assert_true(low < s->n && s->t[low] == t);
    return low;
}

static inline void model_compare_aggregates(const struct part_block *b, const double *v)
{
    double low = v[0], high = v[0], sum = 0, size = 0, resets = 0;
    for (uint32_t i = 0; i < b->n; i++) {
        if (v[i] < low) low = v[i];
        if (v[i] > high) high = v[i];
        if (i > 0 && v[i] < v[i - 1]) resets += v[i - 1];
        sum += v[i];
        size += v[i] < 0 ? -v[i] : v[i];
    }
    assert_true(f64_bits(b->agg.first) == f64_bits(v[0]) && f64_bits(b->agg.last) == f64_bits(v[b->n - 1]));
    assert_true(b->agg.min == low && b->agg.max == high);
    double off = b->agg.sum - sum, off_resets = b->agg.resets - resets;
    assert_true(off <= size * 1e-12 && -off <= size * 1e-12);
    assert_true(off_resets <= size * 1e-12 && -off_resets <= size * 1e-12);
}

/* All blocks together hold exactly the samples of s. */
static inline void model_compare_series(struct part_cursor *c, uint32_t id, const struct model_series *s)
{
    struct part_series ps;
    struct arena a = {0};
    int64_t t[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD], last[2] = {INT64_MIN, INT64_MIN}, last_block = INT64_MIN;
    double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    int64_t start[LIMIT_BLOCK_SAMPLES];
    str blobs[LIMIT_BLOCK_SAMPLES];
    size_t seen = 0;
    assert_ok(part_series(c, id, &ps));
    model_compare_labels(c, &ps, &s->ls);
    for (uint32_t k = 0; k < ps.n_blocks; k++) {
        const struct part_block *b = &ps.blocks[k];
        if (b->kind == BLOCK_FLOAT)
            assert_ok(part_read_floats(c, b, t, v));
        else
            assert_ok(part_read_hists(c, b, t, blobs, &a));
        memset(start, 0, sizeof start);
        if (b->start_bytes > 0) assert_ok(part_read_starts(c, b, start));
        bool any_start = false;
        assert_true(t[0] == b->t_min && t[b->n - 1] == b->t_max && b->t_min >= last_block && t[0] > last[b->kind]);
        last_block = b->t_min;
        last[b->kind] = b->t_max;
        for (uint32_t i = 0; i < b->n; i++) {
            size_t at = model_at(s, t[i]);
            assert_int_equal(s->hist[at].n > 0, b->kind == BLOCK_HIST);
            assert_true(start[i] == model_start(s, at));
            any_start |= start[i] != 0;
            if (b->kind == BLOCK_HIST)
                assert_true(str_eq(s->hist[at], blobs[i]));
            else
                assert_true(f64_bits(s->v[at]) == f64_bits(v[i]));
        }
        assert_int_equal(any_start, b->start_bytes > 0);
        seen += b->n;
        if (b->has_aggregates) model_compare_aggregates(b, v);
    }
    assert_int_equal(seen, s->n);
    arena_deinit(&a);
}

static inline void model_compare(const struct model *m, struct part *p, const struct hash_key *key)
{
    const struct part_meta *meta = part_meta(p);
    assert_int_equal(meta->series, m->n);
    assert_int_equal(meta->samples, m->samples);
    struct part_cursor *c = part_cursor_create(p);
    for (size_t i = 0; i < m->n; i++) {
        struct part_series ps;
        struct hash128 id;
        model_compare_series(c, (uint32_t)i, &m->series[i]);
        assert_ok(part_series(c, (uint32_t)i, &ps));
        assert_ok(part_series_id(c, &ps, &id));
        assert_true(hash128_eq(id, labels_id(key, &m->series[i].ls)));
    }
    part_cursor_destroy(c);
    assert_false(part_damaged(p));
}

#endif
