/*
 * sim_feed.c: what the workload writes: series, times, values, histograms, batches.
 *
 * Series are numbers; a series' labels follow from its number, and its label "id" is that number, so
 * that what is read back can be traced and compared whole. Each series has two spellings on the
 * wire (canonical, and careless: unsorted with an empty label), which are two aliases of one series.
 */
#include "tests/sim/sim_world.h"

#include "storage/base/alloc.h"

#include <stdio.h>

#define HOUR_MS INT64_C(3600000)
#define BAD UINT32_MAX /* the number of a run whose labels are wrong */

struct run {
    uint32_t id;
    bool careless;
    char raw[24];
};

/* One batch under construction. Arrays are the caller's arena's. */
struct feed {
    struct sim_world *w;
    struct run *runs;
    struct batch_series *series;
    int64_t *t;
    double *v;
    str *hist;
    int64_t *start;
    uint32_t n_runs, n;
    uint32_t too_old, too_new, bad;
    bool has_starts; /* the run at hand */
};

/* ---- series ------------------------------------------------------------------------------------------------- */

static void put_label(struct labels *ls, const char *name, str value)
{
    ls->v[ls->n++] = (struct label){str_of(name), value};
}

void sim_feed_labels(uint32_t id, bool careless, struct arena *a, struct labels *out)
{
    *out = (struct labels){arena_alloc(a, 8 * sizeof *out->v), 0};
    if (careless) put_label(out, "zero", STR(""));
    put_label(out, "__name__", arena_printf(a, "m%u", id % 7));
    put_label(out, "id", arena_printf(a, "%u", id));
    if (id % 2) put_label(out, "instance", arena_printf(a, "10.0.0.%u:9100", id % 13));
    put_label(out, "job", arena_printf(a, "j%u", id % 3));
    if (id % 11 == 0) put_label(out, "long", arena_printf(a, "%0300u", id));
    if (id % 5 == 0) put_label(out, "\xc3\xbcn\xc3\xaf", arena_printf(a, "\xe6\xb9\x96%u", id % 2));
    for (uint32_t i = 0; careless && i < out->n / 2; i++) {
        struct label l = out->v[i];
        out->v[i] = out->v[out->n - 1 - i];
        out->v[out->n - 1 - i] = l;
    }
}

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    struct feed *f = arg;
    const struct run *run = &f->runs[i];
    if (run->id != BAD) {
        sim_feed_labels(run->id, run->careless, a, out);
        return NULL;
    }
    if (run->careless) return err_new(ERR_INVALID, "no labels to be made of this");
    *out = (struct labels){arena_alloc(a, 4 * sizeof *out->v), 0};
    put_label(out, "__name__", STR("bad"));
    put_label(out, "twice", STR("1"));
    put_label(out, "twice", STR("2"));
    return NULL;
}

/* ---- histograms --------------------------------------------------------------------------------------------- */

void sim_feed_init(struct sim_world *w)
{
    for (unsigned i = 0; i < SIM_HISTS; i++) {
        struct hist_span span[2] = {{(int32_t)i - 3, 2}, {3, 1}};
        double counts[3] = {1.0 + i, 2, 3};
        struct hist h = {
            .schema = (int32_t)(i % 9) - 4,
            .reset_hint = (uint8_t)(i % 4),
            .is_float = i % 2,
            .zero_threshold = 1e-128,
            .zero_count = i,
            .count = 6.0 + 2 * i,
            .sum = i == 5 ? f64_from_bits(STALE_NAN_BITS) : 10.5 * i,
            .n_positive_spans = 2,
            .n_positive = 3,
            .positive_spans = span,
            .positive = counts,
        };
        hist_encode(&h, &w->hist[i]);
        w->hist_sum[i] = h.sum;
    }
}

void sim_feed_deinit(struct sim_world *w)
{
    for (unsigned i = 0; i < SIM_HISTS; i++)
        buf_deinit(&w->hist[i]);
}

uint32_t sim_feed_hist_number(const struct sim_world *w, str blob)
{
    for (uint32_t i = 0; i < SIM_HISTS; i++)
        if (str_eq(blob, buf_as_str(&w->hist[i]))) return i + 1;
    return 0;
}

/* ---- times and values --------------------------------------------------------------------------------------- */

/* A time the model has in this series, or the newest. */
static int64_t known_time(struct sim_world *w, uint32_t id)
{
    const struct sim_series *s = &w->model->series[id];
    return s->n ? s->cells[rng_below(&w->rng, s->n)].t : w->last_t[id];
}

static int64_t draw_time(struct sim_world *w, uint32_t id, enum sim_time kind)
{
    const struct storage_options *o = &w->plan.options;
    struct rng *r = &w->rng;
    int64_t now = w->env->ops->now_ms(w->env), span = o->retention_ms - 2 * SIM_SLACK_MS;
    switch (kind) {
    case TIME_NEAR:
        return w->last_t[id] - (int64_t)rng_below(r, HOUR_MS);
    case TIME_SAME:
        return known_time(w, id);
    case TIME_MONTHS:
        return now -
               (int64_t)rng_below(r, (uint64_t)(rng_chance(r, 0.5) && span > 2400 * HOUR_MS ? 2400 * HOUR_MS : span));
    case TIME_TOO_OLD:
        return now - o->retention_ms - SIM_SLACK_MS - (int64_t)rng_below(r, 1000 * HOUR_MS);
    case TIME_TOO_NEW:
        return now + o->future_ms + SIM_SLACK_MS + (int64_t)rng_below(r, 1000 * HOUR_MS);
    default:
        return w->last_t[id] + (rng_chance(r, 0.8) ? 15000 : (int64_t)(1 + rng_below(r, 60000)));
    }
}

/* Keeps a drawn time off the edges, where the engine's clock decides; moves the world's clock for new samples. */
static int64_t draw_good_time(struct sim_world *w, uint32_t id)
{
    enum sim_time kind = (enum sim_time)sim_plan_pick(&w->rng, w->plan.time_weight, TIME_COUNT);
    int64_t t = draw_time(w, id, kind), now = w->env->ops->now_ms(w->env);
    if (kind == TIME_TOO_OLD || kind == TIME_TOO_NEW) return t;
    if (t < now - w->plan.options.retention_ms + SIM_SLACK_MS) t = now;
    if (t > now) sim_env_advance(w->sim, t - now);
    if (t > w->last_t[id]) w->last_t[id] = t;
    return t;
}

static double draw_value(struct sim_world *w)
{
    static const uint64_t special[] = {
        STALE_NAN_BITS,
        UINT64_C(0x7ff8000000000001),
        UINT64_C(0xfff8dead00000042),
        UINT64_C(0x8000000000000000),
        UINT64_C(0x7ff0000000000000),
        UINT64_C(0xfff0000000000000),
        1,
        UINT64_C(0x7fefffffffffffff),
    };
    struct rng *r = &w->rng;
    if (rng_chance(r, w->plan.special_values)) return f64_from_bits(special[rng_below(r, ARRAY_LEN(special))]);
    switch (rng_below(r, 4)) {
    case 0:
        return f64_from_bits(rng_next(r));
    case 1:
        return (double)rng_below(r, 100000) / 100;
    default:
        return (double)rng_below(r, 1000);
    }
}

/* ---- batches ------------------------------------------------------------------------------------------------ */

/* Some hour's beginning, a moment before, or nonsense that has to be kept all the same. */
static int64_t draw_start(struct sim_world *w, int64_t t)
{
    switch (rng_below(&w->rng, 4)) {
    case 0:
        return t - (int64_t)rng_below(&w->rng, 60000);
    case 1:
        return (int64_t)rng_next(&w->rng);
    default:
        return t - t % 3600000;
    }
}

static void add_sample(struct feed *f, uint32_t id, bool hist)
{
    struct sim_world *w = f->w;
    uint32_t at = f->n++;
    uint64_t h = rng_below(&w->rng, SIM_HISTS);
    f->t[at] = id == BAD ? w->env->ops->now_ms(w->env) : draw_good_time(w, id);
    f->v[at] = hist ? 0 : draw_value(w);
    f->hist[at] = hist ? buf_as_str(&w->hist[h]) : (str){NULL, 0};
    f->start[at] = f->has_starts && rng_chance(&w->rng, 0.9) ? draw_start(w, f->t[at]) : 0;
}

static void add_run(struct feed *f, uint32_t id, uint32_t n)
{
    struct sim_world *w = f->w;
    if (rng_chance(&w->rng, w->plan.bad_labels)) id = BAD;
    struct run *run = &f->runs[f->n_runs];
    bool hist = rng_chance(&w->rng, w->plan.histograms);
    f->has_starts = rng_chance(&w->rng, w->plan.starts);
    *run = (struct run){.id = id, .careless = rng_chance(&w->rng, 0.2)};
    int raw_n = snprintf(run->raw, sizeof run->raw, "%d:%d", (int)run->id, run->careless);
    f->series[f->n_runs++] = (struct batch_series){
        .alias = hash128(storage_hash_key(w->db), run->raw, (size_t)raw_n),
        .raw = run->raw,
        .raw_bytes = (uint32_t)raw_n,
        .n = n,
    };
    for (uint32_t i = 0; i < n; i++)
        add_sample(f, id, hist);
}

/* Three shapes: one scrape of neighbours, one series' history, anything. */
static void fill(struct feed *f)
{
    struct sim_world *w = f->w;
    struct rng *r = &w->rng;
    uint32_t want = 1 + (uint32_t)rng_below(r, w->plan.batch_max), series = w->plan.series;
    uint32_t first = (uint32_t)rng_below(r, series);
    switch (rng_below(r, 3)) {
    case 0:
        for (uint32_t i = 0; i < want && i < series; i++)
            add_run(f, (first + i) % series, 1);
        break;
    case 1:
        add_run(f, first, want);
        break;
    default:
        while (f->n < want) {
            uint32_t n = 1 + (uint32_t)rng_below(r, 5);
            add_run(f, (uint32_t)rng_below(r, series), n < want - f->n ? n : want - f->n);
        }
        break;
    }
}

static void feed_init(struct feed *f, struct sim_world *w, struct arena *a)
{
    size_t n = w->plan.batch_max;
    *f = (struct feed){.w = w};
    f->runs = arena_zalloc(a, n * sizeof *f->runs);
    f->series = arena_zalloc(a, n * sizeof *f->series);
    f->t = arena_zalloc(a, n * sizeof *f->t);
    f->v = arena_zalloc(a, n * sizeof *f->v);
    f->hist = arena_zalloc(a, n * sizeof *f->hist);
    f->start = arena_zalloc(a, n * sizeof *f->start);
}

enum fate { FATE_GOOD, FATE_OLD, FATE_NEW };

static enum fate fate_of(struct sim_world *w, int64_t t)
{
    int64_t now = w->env->ops->now_ms(w->env);
    if (t < now - w->plan.options.retention_ms) return FATE_OLD;
    return t > now + w->plan.options.future_ms ? FATE_NEW : FATE_GOOD;
}

/* Building the batch moved the clock: moves samples away from the retention's edge, then counts what must be refused.
 */
static void settle_fates(struct feed *f)
{
    struct sim_world *w = f->w;
    int64_t now = w->env->ops->now_ms(w->env), edge = now - w->plan.options.retention_ms;
    for (uint32_t i = 0, at = 0; i < f->n_runs; i++) {
        for (uint32_t end = at + f->series[i].n; at < end; at++) {
            if (f->t[at] > edge - SIM_SLACK_MS && f->t[at] < edge + SIM_SLACK_MS) f->t[at] = now;
            enum fate fate = fate_of(w, f->t[at]);
            if (f->runs[i].id == BAD)
                f->bad++;
            else if (fate == FATE_OLD)
                f->too_old++;
            else if (fate == FATE_NEW)
                f->too_new++;
        }
    }
}

static struct sim_value value_at(const struct feed *f, uint32_t at)
{
    if (f->hist[at].n == 0) return (struct sim_value){true, 0, f64_bits(f->v[at]), f->start[at]};
    uint32_t number = sim_feed_hist_number(f->w, f->hist[at]);
    return (struct sim_value){true, number, f64_bits(f->w->hist_sum[number - 1]), f->start[at]};
}

/* Tells the model about every sample that had to be taken; seq 0: perhaps. */
static void record(const struct feed *f, uint64_t seq)
{
    for (uint32_t i = 0, at = 0; i < f->n_runs; i++)
        for (uint32_t end = at + f->series[i].n; at < end; at++)
            if (f->runs[i].id != BAD && fate_of(f->w, f->t[at]) == FATE_GOOD)
                sim_model_write(f->w->model, f->runs[i].id, f->t[at], value_at(f, at), seq);
}

/* Series of a refused batch may have been registered: their names may show. */
static void record_attempt(const struct feed *f)
{
    for (uint32_t i = 0; i < f->n_runs; i++)
        if (f->runs[i].id != BAD) f->w->model->series[f->runs[i].id].attempted = true;
}

static bool check_counts(const struct feed *f, const struct append_result *res)
{
    uint32_t accepted = f->n - f->bad - f->too_old - f->too_new;
    if (res->accepted == accepted && res->too_old == f->too_old && res->too_new == f->too_new &&
        res->bad_labels == f->bad)
        return true;
    return sim_fail(f->w, "append counted accepted %u old %u new %u bad %u, should be %u %u %u %u", res->accepted,
                    res->too_old, res->too_new, res->bad_labels, accepted, f->too_old, f->too_new, f->bad);
}

/* The batch's number may have been settled before append returned. */
static void record_taken(struct feed *f, uint64_t seq)
{
    struct sim_world *w = f->w;
    record(f, seq);
    w->last_seq = seq;
    if (w->failed_seq >= seq)
        sim_model_unsettle(w->model, seq);
    else if (w->settled_seq >= seq && w->plan.options.wal_sync == WAL_SYNC_ALWAYS)
        sim_model_settle(w->model, seq);
}

static bool append_feed(struct feed *f, uint64_t *seq)
{
    struct sim_world *w = f->w;
    struct append_result res = {0};
    struct batch batch = {
        .series = f->series,
        .n_series = f->n_runs,
        .t = f->t,
        .v = f->v,
        .hist = w->plan.histograms > 0 ? f->hist : NULL,
        .start = w->plan.starts > 0 ? f->start : NULL,
        .n_samples = f->n,
        .resolve = resolve,
        .resolve_arg = f,
        .require_name = true,
    };
    settle_fates(f);
    err e = storage_append(w->db, &batch, &res);
    err_free(res.first);
    if (e != NULL) {
        record_attempt(f);
        if (err_code(e) != ERR_READ_ONLY && err_code(e) != ERR_BUSY) record(f, 0);
        if (err_code(e) == ERR_BUSY) {
            err_free(e);
            return sim_expect(w, storage_tick(w->db), "tick of a busy database");
        }
        return sim_expect(w, e, "append");
    }
    w->report->batches++;
    w->report->samples += res.accepted;
    *seq = res.seq;
    if (!check_counts(f, &res)) return false;
    if (res.accepted > 0 && res.seq == 0) return sim_fail(w, "append took samples but gave no number");
    if (res.seq != 0) record_taken(f, res.seq);
    return true;
}

bool sim_feed_append(struct sim_world *w)
{
    struct arena a = {0};
    struct feed f;
    uint64_t seq = 0;
    feed_init(&f, w, &a);
    fill(&f);
    bool ok = append_feed(&f, &seq);
    arena_deinit(&a);
    return ok;
}

/* ---- a probe: is the database alive again? */

bool sim_feed_probe(struct sim_world *w)
{
    struct arena a = {0};
    struct feed f;
    struct append_result res = {0};
    feed_init(&f, w, &a);
    double bad = w->plan.bad_labels, hists = w->plan.histograms, starts = w->plan.starts;
    w->plan.bad_labels = w->plan.histograms = w->plan.starts = 0;
    add_run(&f, 0, 1);
    w->plan.bad_labels = bad, w->plan.histograms = hists, w->plan.starts = starts;
    f.t[0] = w->env->ops->now_ms(w->env);
    struct batch batch = {
        .series = f.series, .n_series = 1, .t = f.t, .v = f.v, .n_samples = 1, .resolve = resolve, .resolve_arg = &f};
    err e = storage_append(w->db, &batch, &res);
    err_free(res.first);
    bool ok = e == NULL;
    if (ok) {
        record_taken(&f, res.seq);
        e = storage_wait(w->db, res.seq);
        ok = e == NULL;
    } else {
        record(&f, 0);
    }
    err_free(e);
    arena_deinit(&a);
    return ok;
}
