/*
 * part_verify.c: everything that can be wrong with a part file, looked for and reported.
 *
 * First all frames are read and their checksums verified. Then the contents are read through the reader's own
 * code and held against each other: series are in order, every block decodes, stored aggregates are what
 * the samples give, postings and alive sets say what the series say (compared by a sum of hashes), counts
 * and ranges are those of the footer. What a damaged frame makes unreadable is counted once, not again for
 * each series. Read-only; one thread; nothing is shared with open databases.
 */
#include "storage/base/alloc.h"
#include "storage/labels.h"
#include "storage/part_format.h"

#define CACHE_BYTES ((size_t)8 << 20)

/* Sums of hashes over (series, what): order does not matter, so they compare two ways of saying the same. */
struct sums {
    uint64_t pairs, days;
};

struct verify {
    struct part *p;
    struct part_cursor *c;
    part_fault_fn report;
    void *arg;
    uint64_t faults;
    bool frames_bad; /* reported already */
    uint64_t lost;   /* series that can't be read whole because of them */
    struct part_meta seen;
    struct sums from_series, from_sets;
    struct arena arena;
    struct part_record before; /* labels of the last series */
};

static void fault(struct verify *v, uint64_t offset, const char *what)
{
    v->faults++;
    if (v->report != NULL) v->report(v->arg, offset, what);
}

/* Reports an error and ends it. The messages of the reader name the place themselves. */
static void fault_err(struct verify *v, uint64_t offset, err e)
{
    if (e == NULL) return;
    fault(v, offset, err_message(e));
    err_free(e);
}

/* Reports what the reader said about contents, unless a bad frame explains it. */
static void fault_content(struct verify *v, err e)
{
    if (e == NULL) return;
    if (v->frames_bad)
        err_free(e);
    else
        fault_err(v, 0, e);
}

static uint64_t mix(uint64_t a, uint64_t b, uint64_t c)
{
    uint64_t x = (a * UINT64_C(0x9e3779b97f4a7c15)) ^ (b * UINT64_C(0xd6e8feb86659fd93)) ^ (c + 1);
    x = (x ^ (x >> 32)) * UINT64_C(0xbf58476d1ce4e5b9);
    return x ^ (x >> 29);
}

/* ---- bytes -------------------------------------------------------------------------------------------------- */

static void verify_frames(struct verify *v, const struct part_index *ix)
{
    struct zctx *z = zctx_create();
    struct buf disk = {0};
    uint64_t bytes = PART_HEADER_SIZE + PART_FOOTER_SIZE + PART_TAIL_SIZE;
    for (size_t i = 0; i < PART_SECTIONS; i++)
        bytes += v->p->footer.sections[i].size;
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++) {
        for (size_t i = 0; i < ix->frames[kind].n; i++) {
            uint8_t *data = NULL;
            size_t n;
            const struct part_frame *f = &ix->frames[kind].v[i];
            err e = part_read_frame(v->p, z, &disk, f, &data, &n);
            mem_free(data);
            bytes += f->disk;
            if (e == NULL) continue;
            v->frames_bad = true;
            fault_err(v, f->offset, e);
        }
    }
    if (bytes != v->p->footer.meta.bytes) fault(v, 0, "frames and sections don't fill the file");
    buf_deinit(&disk);
    zctx_destroy(z);
}

static void verify_header(struct verify *v)
{
    uint8_t header[PART_HEADER_SIZE];
    err e = v->p->env->ops->file_read(v->p->file, header, sizeof header, 0);
    if (e == NULL) e = part_footer_check_header(header, v->p->footer.meta.id);
    fault_err(v, 0, e);
}

/* ---- series ------------------------------------------------------------------------------------------------- */

static bool same_aggregates(const struct block_aggregates *a, const struct block_aggregates *b)
{
    return f64_bits(a->first) == f64_bits(b->first) && f64_bits(a->last) == f64_bits(b->last) && a->min == b->min &&
           a->max == b->max && a->sum == b->sum && a->resets == b->resets;
}

static err verify_block(struct verify *v, const struct part_block *b)
{
    int64_t t[LIMIT_BLOCK_SAMPLES], start[LIMIT_BLOCK_SAMPLES];
    double values[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    if (b->start_bytes > 0) TRY(part_read_starts(v->c, b, start));
    if (b->start_bytes > 0 && !(v->p->footer.features & PART_FEATURE_STARTS))
        return part_cursor_corrupt(v->c, PART_FRAME_SERIES, v->c->place.frame,
                                   "start timestamps that the footer denies");
    if (b->kind == BLOCK_HIST) {
        str blobs[LIMIT_BLOCK_SAMPLES];
        arena_reset(&v->arena);
        return part_read_hists(v->c, b, t, blobs, &v->arena);
    }
    TRY(part_read_floats(v->c, b, t, values));
    struct block_aggregates a;
    if (!b->has_aggregates || b->constant) return NULL;
    if (!part_aggregate(values, b->n, &a) || !same_aggregates(&a, &b->agg))
        return part_cursor_corrupt(v->c, PART_FRAME_SERIES, v->c->place.frame,
                                   "aggregates that its samples don't give");
    return NULL;
}

static void note_block(struct verify *v, uint32_t id, const struct part_block *b, uint64_t *days)
{
    v->seen.samples += b->n;
    v->seen.blocks++;
    if (b->t_min < v->seen.t_min) v->seen.t_min = b->t_min;
    if (b->t_max > v->seen.t_max) v->seen.t_max = b->t_max;
    const struct part_footer *f = &v->p->footer;
    if (f->n_frames[PART_FRAME_ALIVE] == 0) return;
    int64_t base = f->alive_first_day * PART_DAY_MS;
    for (int64_t day = (b->t_min - base) / PART_DAY_MS; day <= (b->t_max - base) / PART_DAY_MS; day++) {
        if (day < 0 || day >= PART_DAYS_MAX || *days >> day & 1) continue;
        *days |= UINT64_C(1) << day;
        v->from_series.days += mix(id, (uint64_t)day, 0);
    }
}

static err spell_labels(struct verify *v, uint32_t n_pairs, const uint32_t *pairs, struct labels *ls)
{
    ls->v = arena_alloc(&v->arena, (n_pairs + 1) * sizeof *ls->v);
    ls->n = n_pairs;
    for (uint32_t i = 0; i < n_pairs; i++) {
        TRY(part_symbol(v->c, pairs[2 * i], &ls->v[i].name));
        TRY(part_symbol(v->c, pairs[2 * i + 1], &ls->v[i].value));
    }
    return NULL;
}

static err verify_order(struct verify *v, const struct part_series *s)
{
    struct labels now, before;
    arena_reset(&v->arena);
    TRY(spell_labels(v, s->n_pairs, s->pairs, &now));
    TRY(spell_labels(v, v->before.n_pairs, v->before.pairs, &before));
    bool ok = v->seen.series == 0 || labels_cmp_storage(&before, &now) < 0;
    v->before.n_pairs = s->n_pairs;
    memcpy(v->before.pairs, s->pairs, 2 * s->n_pairs * sizeof *s->pairs);
    return ok ? NULL : part_cursor_corrupt(v->c, PART_FRAME_SERIES, v->c->place.frame, "series out of order");
}

static err verify_contents(struct verify *v, uint32_t id, const struct part_series *s)
{
    uint64_t days = 0;
    TRY(verify_order(v, s));
    for (uint32_t i = 0; i < s->n_pairs; i++)
        v->from_series.pairs += mix(id, s->pairs[2 * i], s->pairs[2 * i + 1]);
    for (uint32_t k = 0; k < s->n_blocks; k++)
        note_block(v, id, &s->blocks[k], &days);
    v->seen.series++;
    for (uint32_t k = 0; k < s->n_blocks; k++)
        TRY(verify_block(v, &s->blocks[k]));
    return NULL;
}

/* Series [from, to) of one frame; what comes after a record that can't be read is lost with it. */
static void verify_series_frame(struct verify *v, uint32_t from, uint32_t to)
{
    for (uint32_t id = from; id < to; id++) {
        struct part_series s;
        err e = part_series(v->c, id, &s);
        if (e != NULL) {
            fault_content(v, e);
            v->lost += to - id;
            return;
        }
        e = verify_contents(v, id, &s);
        if (e != NULL) v->lost++;
        fault_content(v, e);
    }
}

static void verify_series(struct verify *v)
{
    const struct part_index *ix = v->c->ix;
    size_t n = ix->frames[PART_FRAME_SERIES].n;
    for (size_t f = 0; f < n; f++)
        verify_series_frame(v, ix->series_first[f],
                            f + 1 < n ? ix->series_first[f + 1] : (uint32_t)v->p->footer.meta.series);
}

/* ---- symbols and sets --------------------------------------------------------------------------------------- */

static err verify_symbols(struct verify *v)
{
    const struct part_index *ix = v->c->ix;
    str last = {0}, s;
    for (uint32_t f = 0; f < ix->frames[PART_FRAME_SYMBOL].n; f++) {
        uint32_t first = ix->symbol_first[f];
        TRY(part_symbol(v->c, first, &s));
        if (!str_eq(s, ix->symbol_string[f]) || (f > 0 && str_cmp(last, s) >= 0))
            return part_cursor_corrupt(v->c, PART_FRAME_SYMBOL, f, "symbols out of order");
        uint32_t end = f + 1 < ix->frames[PART_FRAME_SYMBOL].n ? ix->symbol_first[f + 1] : v->p->footer.n_symbols;
        TRY(part_symbol(v->c, end - 1, &last));
    }
    return NULL;
}

/* Adds a set's members to one of the sums. */
static err sum_set(struct verify *v, str set, uint64_t a, uint64_t b, uint64_t *sum)
{
    struct postings *p;
    TRY(postings_decode(set, (uint32_t)v->p->footer.meta.series, &p));
    size_t n = postings_count(p);
    uint32_t *ids = mem_alloc((n + 1) * sizeof *ids);
    postings_list(p, ids, n);
    for (size_t i = 0; i < n; i++)
        *sum += mix(ids[i], a, b);
    mem_free(ids);
    postings_destroy(p);
    return NULL;
}

static err verify_postings(struct verify *v)
{
    struct part_entry it = {0};
    struct part_key before = {0};
    bool first = true;
    err e = NULL;
    TRY_OUT(part_entry_seek(v->c, (struct part_key){0, 0}, &it));
    while (!it.end) {
        bool in_order = it.key.name > before.name || (it.key.name == before.name && it.key.value > before.value);
        if (!first && !in_order) {
            e = part_cursor_corrupt(v->c, PART_FRAME_POSTINGS, it.frame, "postings out of order");
            goto out;
        }
        TRY_OUT(part_cursor_blame(v->c, PART_FRAME_POSTINGS, it.frame,
                                  sum_set(v, it.set, it.key.name, it.key.value, &v->from_sets.pairs)));
        before = it.key;
        first = false;
        TRY_OUT(part_entry_next(&it));
    }
out:
    part_entry_close(&it);
    return e;
}

static err verify_alive(struct verify *v)
{
    for (uint32_t day = 0; day < v->p->footer.n_frames[PART_FRAME_ALIVE]; day++) {
        const struct fcache_entry *e;
        TRY(part_cursor_hold(v->c, PART_FRAME_ALIVE, day, &e));
        err bad = sum_set(v, (str){(const char *)e->data, e->n}, day, 0, &v->from_sets.days);
        part_cursor_release(v->c, e);
        TRY(part_cursor_blame(v->c, PART_FRAME_ALIVE, day, bad));
    }
    return NULL;
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

static void verify_totals(struct verify *v)
{
    const struct part_meta *m = &v->p->footer.meta;
    if (v->lost > 0) return;
    if (v->seen.samples != m->samples || v->seen.blocks != m->blocks) fault(v, 0, "counts differ from the footer's");
    if (v->seen.t_min != m->t_min || v->seen.t_max != m->t_max) fault(v, 0, "time range differs from the footer's");
    if (v->frames_bad) return;
    if (v->from_sets.pairs != v->from_series.pairs) fault(v, 0, "postings differ from the labels of the series");
    if (v->from_sets.days != v->from_series.days) fault(v, 0, "alive sets differ from the times of the series");
}

static void verify_part(struct verify *v)
{
    verify_header(v);
    err e = part_cursor_index(v->c);
    if (e != NULL) {
        fault_err(v, 0, e);
        return;
    }
    verify_frames(v, v->c->ix);
    verify_series(v);
    fault_content(v, verify_symbols(v));
    fault_content(v, verify_postings(v));
    fault_content(v, verify_alive(v));
    verify_totals(v);
}

err part_verify(struct env *env, const char *path, part_fault_fn report, void *arg, uint64_t *faults)
{
    static const struct hash_key no_key; /* identities are not asked for */
    struct verify *v = mem_zalloc(sizeof *v);
    struct fcache *cache = fcache_create(CACHE_BYTES, NULL);
    v->report = report;
    v->arg = arg;
    v->seen.t_min = INT64_MAX;
    v->seen.t_max = INT64_MIN;
    err e = part_open(env, path, &no_key, cache, &v->p);
    if (err_code(e) == ERR_CORRUPT) {
        fault_err(v, 0, e);
        e = NULL;
    } else if (e == NULL) {
        v->c = part_cursor_create(v->p);
        verify_part(v);
        part_cursor_destroy(v->c);
        part_unref(v->p);
    }
    *faults = v->faults;
    arena_deinit(&v->arena);
    fcache_destroy(cache);
    mem_free(v);
    return e;
}
