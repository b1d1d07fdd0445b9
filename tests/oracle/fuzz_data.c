/*
 * fuzz_data.c: one random data set, in memory and in a database.
 *
 * Counters with resets, gauges in quarters (so that sums are exact in any order), classic histograms, NaN and
 * infinities, gaps, stale markers, jitter, series that begin late or end early. See fuzz.h.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "storage/base/alloc.h"
#include "tests/oracle/fuzz.h"

#define SERIES_MAX 64
#define SAMPLES_MAX (FUZZ_SPAN / 1000 + 2)
#define RUN_MAX 700 /* a sixth of a series, and then some */

enum kind { COUNTER, GAUGE, BUCKET, ODD };

/* ---- in memory --------------------------------------------------------------------------------------------- */

static struct oracle_series *add_series(struct fuzz_world *w, const char *const *pairs, size_t n_pairs)
{
    struct oracle_series *s = &w->data.series[w->data.n++];
    *s = (struct oracle_series){.t = arena_alloc(&w->arena, SAMPLES_MAX * sizeof *s->t),
                                .v = arena_alloc(&w->arena, SAMPLES_MAX * sizeof *s->v)};
    s->labels.v = arena_alloc(&w->arena, n_pairs * sizeof *s->labels.v);
    for (size_t i = 0; i < n_pairs; i++)
        s->labels.v[s->labels.n++] =
            (struct label){arena_str(&w->arena, str_of(pairs[2 * i])), arena_str(&w->arena, str_of(pairs[2 * i + 1]))};
    err_free(labels_canonicalize(&s->labels));
    return s;
}

static double next_value(struct rng *rng, enum kind kind, double before, double pace)
{
    switch (kind) {
    case COUNTER:
        return rng_chance(rng, 0.03) ? (double)rng_below(rng, 3) : before + (double)rng_below(rng, 8) * pace;
    case BUCKET:
        return before + pace;
    case GAUGE:
        return rng_chance(rng, 0.3) ? before : before + ((double)rng_below(rng, 17) - 8) / 4;
    case ODD:
        break;
    }
    switch (rng_below(rng, 8)) {
    case 0:
        return NAN;
    case 1:
        return INFINITY;
    case 2:
        return -INFINITY;
    case 3:
        return 0;
    default:
        return (double)rng_below(rng, 10) - 4;
    }
}

/* dense: enough samples for several blocks of a part, so that windows cover whole ones. */
static void fill(struct rng *rng, struct oracle_series *s, enum kind kind, bool dense)
{
    static const int64_t INTERVALS[] = {15000, 15000, 30000, 60000};
    int64_t interval = INTERVALS[rng_below(rng, ARRAY_LEN(INTERVALS))];
    if (dense) interval = rng_chance(rng, 0.5) ? 1000 : 5000;
    int64_t jitter = rng_chance(rng, 0.3) ? interval / 4 : 0;
    int64_t from = rng_chance(rng, 0.2) ? (int64_t)rng_below(rng, FUZZ_SPAN) : 0;
    int64_t to = rng_chance(rng, 0.2) ? (int64_t)rng_below(rng, FUZZ_SPAN) : FUZZ_SPAN;
    int64_t phase = rng_chance(rng, 0.5) ? 0 : (int64_t)rng_below(rng, (uint64_t)interval);
    double v = kind == COUNTER || kind == BUCKET ? 0 : (double)rng_below(rng, 40) - 10;
    double pace = rng_chance(rng, 0.2) ? 0 : (double)(1 + rng_below(rng, 4));
    bool gap = false;
    for (int64_t t = phase; t < FUZZ_SPAN; t += interval) {
        v = next_value(rng, kind, v, pace);
        if (kind == ODD && isfinite(v) && rng_chance(rng, 0.1)) v = -0.0;
        if (t < from || t > to) continue;
        int64_t at = FUZZ_T0 + t + (jitter > 0 ? (int64_t)rng_below(rng, (uint64_t)jitter) : 0);
        bool was_gap = gap;
        gap = gap ? rng_chance(rng, 0.8) : rng_chance(rng, 0.02);
        if (gap && was_gap) continue;
        s->t[s->n] = at;
        s->v[s->n++] = gap && rng_chance(rng, 0.5) ? f64_from_bits(STALE_NAN_BITS) : v;
    }
}

static void make_series(struct fuzz_world *w, struct rng *rng)
{
    bool dense = rng_chance(rng, 0.1);
    static const char *const JOBS[] = {"a", "b"}, *const INSTANCES[] = {"0", "1", "2"};
    static const char *const BOUNDS[] = {"0.1", "0.5", "1", "5", "+Inf"};
    static const struct {
        const char *name;
        enum kind kind;
    } METRICS[] = {{"requests_total", COUNTER}, {"errors_total", COUNTER}, {"temp", GAUGE}, {"load", GAUGE}};
    for (size_t m = 0; m < ARRAY_LEN(METRICS); m++)
        for (size_t j = 0; j < ARRAY_LEN(JOBS); j++)
            for (size_t i = 0; i < ARRAY_LEN(INSTANCES); i++) {
                if (rng_chance(rng, 0.15)) continue;
                const char *pairs[] = {"__name__", METRICS[m].name, "job",  JOBS[j],
                                       "instance", INSTANCES[i],    "zone", i == 2 ? "east" : "west"};
                fill(rng, add_series(w, pairs, METRICS[m].kind == COUNTER ? 4 : 3), METRICS[m].kind, dense);
            }
    for (size_t j = 0; j < ARRAY_LEN(JOBS); j++) {
        for (size_t b = 0; b < ARRAY_LEN(BOUNDS); b++) {
            const char *pairs[] = {"__name__", "latency_bucket", "job", JOBS[j], "le", BOUNDS[b]};
            fill(rng, add_series(w, pairs, 3), BUCKET, dense);
        }
        const char *odd[] = {"__name__", "odd", "job", JOBS[j], "kind", j == 0 ? "x" : "y"};
        fill(rng, add_series(w, odd, 3), ODD, dense);
        const char *limit[] = {"__name__", "limit", "job", JOBS[j], "team", j == 0 ? "red" : "blue"};
        fill(rng, add_series(w, limit, 3), GAUGE, dense);
    }
    const char *lone[] = {"__name__", "lone"};
    fill(rng, add_series(w, lone, 1), GAUGE, dense);
}

/* ---- into the database ------------------------------------------------------------------------------------- */

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    const struct oracle_series *s = arg;
    (void)i;
    *out = labels_copy(a, &s->labels);
    return NULL;
}

static err write_run(struct fuzz_world *w, const struct oracle_series *s, size_t from, uint32_t n, bool wrong)
{
    double lies[RUN_MAX];
    for (uint32_t i = 0; i < n; i++)
        lies[i] = 777;
    struct batch_series run = {.raw = s, .raw_bytes = 0, .n = n};
    struct buf text = {0};
    labels_print(&s->labels, &text);
    run.alias = hash128(storage_hash_key(w->db), text.data, text.n);
    buf_deinit(&text);
    struct batch b = {.series = &run,
                      .n_series = 1,
                      .t = s->t + from,
                      .v = wrong ? lies : s->v + from,
                      .n_samples = n,
                      .resolve = resolve,
                      .resolve_arg = (void *)(uintptr_t)s,
                      .require_name = true};
    struct append_result r;
    TRY(storage_append(w->db, &b, &r));
    if (r.first != NULL) return r.first;
    return r.accepted == n ? NULL : err_new(ERR_INTERNAL, "%u of %u samples accepted", r.accepted, n);
}

struct run {
    size_t series, from;
    uint32_t n;
    bool wrong;
};

/* All runs in random order; wrong values come before the right ones of the same series. */
static err write_all(struct fuzz_world *w, struct rng *rng)
{
    size_t n = 0, cap = 0;
    for (size_t k = 0; k < w->data.n; k++)
        cap += w->data.series[k].n + 2;
    struct run *runs = arena_alloc(&w->arena, cap * sizeof *runs);
    for (size_t k = 0; k < w->data.n; k++)
        for (size_t at = 0; at < w->data.series[k].n;) {
            size_t left = w->data.series[k].n - at, take = 1 + rng_below(rng, w->data.series[k].n / 6 + 1);
            runs[n] = (struct run){k, at, (uint32_t)(take < left ? take : left), false};
            at += runs[n++].n;
        }
    for (size_t i = n; i > 1; i--) {
        size_t other = rng_below(rng, i);
        struct run keep = runs[i - 1];
        runs[i - 1] = runs[other];
        runs[other] = keep;
    }
    double flush = rng_unit(rng) * 0.03;
    for (size_t i = 0; i < n; i++) {
        const struct oracle_series *s = &w->data.series[runs[i].series];
        if (rng_chance(rng, 0.1)) TRY(write_run(w, s, runs[i].from, runs[i].n, true));
        if (rng_chance(rng, flush)) TRY(storage_flush(w->db));
        TRY(write_run(w, s, runs[i].from, runs[i].n, false));
        if (rng_chance(rng, flush / 10)) TRY(storage_merge(w->db, -1));
    }
    return NULL;
}

err fuzz_world_init(struct fuzz_world *w, struct rng *rng)
{
    *w = (struct fuzz_world){0};
    w->data.series = arena_alloc(&w->arena, SERIES_MAX * sizeof *w->data.series);
    make_series(w, rng);
    snprintf(w->dir, sizeof w->dir, "/tmp/varve-fuzz-promql-XXXXXX");
    if (mkdtemp(w->dir) == NULL) return err_new(ERR_IO, "mkdtemp");
    const struct storage_options so = {.path = w->dir, .wal_sync = WAL_SYNC_OFF};
    TRY(storage_open(&so, &w->db));
    TRY(write_all(w, rng));
    const struct query_options qo = {.db = w->db, .experimental = true};
    w->engine = query_create(&qo);
    return NULL;
}

err fuzz_world_deinit(struct fuzz_world *w)
{
    err e = NULL;
    if (w->engine != NULL) query_destroy(w->engine);
    if (w->db != NULL) e = storage_close(w->db);
    if (w->dir[0] != 0) {
        char command[96];
        snprintf(command, sizeof command, "rm -rf '%s'", w->dir);
        if (system(command) != 0 && e == NULL) e = err_new(ERR_IO, "%s", command);
    }
    arena_deinit(&w->arena);
    return e;
}

void fuzz_world_print(const struct fuzz_world *w, struct buf *out)
{
    for (size_t k = 0; k < w->data.n; k++) {
        const struct oracle_series *s = &w->data.series[k];
        labels_print(&s->labels, out);
        for (size_t i = 0; i < s->n; i++) {
            if (is_stale_nan(s->v[i]))
                buf_printf(out, " stale@%lld", (long long)s->t[i]);
            else
                buf_printf(out, " %.17g@%lld", s->v[i], (long long)s->t[i]);
        }
        buf_str(out, STR("\n"));
    }
}
