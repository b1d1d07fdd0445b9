/*
 * sim_verify.c: reads everything the engine offers and holds it against the model.
 *
 * A read that fails because of an injected fault proves nothing and is passed over; a read that
 * succeeds must be right whatever happened before. Corruption is never excused: a fault or a crash
 * must not turn into "corrupt".
 */
#include "tests/sim/sim_world.h"

#include "storage/base/alloc.h"

#include <stdio.h>
#include <stdlib.h>

#define ALL_TIME_MIN (-(INT64_C(1) << 52))
#define ALL_TIME_MAX (INT64_C(1) << 52)

/* One verification: a selection of db compared with m. */
struct check {
    struct sim_world *w;
    struct db *db;
    struct sim_model *m;
    bool observe;
    bool blind; /* some series' labels could not be read: no series can be said to be missing */
    int64_t t_min, t_max;
    int64_t edge;   /* samples before it may have been dropped by retention */
    uint8_t *seen;  /* by series number */
    struct arena a; /* of one series */
};

static void describe(str to, struct sim_value v)
{
    if (!v.present)
        snprintf((char *)to.p, to.n, "absent");
    else
        snprintf((char *)to.p, to.n, "%s%u %016llx@%lld", v.hist ? "hist " : "float ", v.hist,
                 (unsigned long long)v.bits, (long long)v.start);
}

static bool fail_cell(struct check *c, uint32_t id, int64_t t, struct sim_value got, const struct sim_cell *cell)
{
    char text[64], want[256] = "";
    describe((str){text, sizeof text}, got);
    for (size_t i = 0, at = 0; cell != NULL && i < cell->n_settled + cell->n_writes && at + 72 < sizeof want; i++) {
        bool settled = i < cell->n_settled;
        const struct sim_write *wr = settled ? NULL : &cell->writes[i - cell->n_settled];
        char one[64];
        describe((str){one, sizeof one}, settled ? cell->settled[i] : wr->value);
        at += (size_t)snprintf(want + at, sizeof want - at, " %s%s",
                               settled   ? ""
                               : wr->seq ? "pending "
                                         : "maybe ",
                               one);
    }
    return sim_fail(c->w, "series %u at %lld reads %s, allowed:%s", id, (long long)t, text,
                    cell ? want : " nothing, it was never written");
}

/* One cell read as v (absent if the read skipped it). */
static bool check_cell(struct check *c, uint32_t id, struct sim_cell *cell, struct sim_value v)
{
    bool by_retention = !v.present && cell->t < c->edge;
    if (!by_retention && !sim_cell_allows(cell, v)) return fail_cell(c, id, cell->t, v, cell);
    if (c->observe) sim_cell_observe(cell, v);
    return true;
}

static bool check_samples(struct check *c, uint32_t id, const struct samples *s, int64_t t_min, int64_t t_max)
{
    struct sim_series *want = &c->m->series[id];
    size_t k = sim_model_find(want, t_min);
    struct sim_value absent = {0};
    for (size_t i = 0; i < s->n; i++) {
        bool hist = s->hist != NULL && s->hist[i].n > 0;
        struct sim_value v = {true, hist ? sim_feed_hist_number(c->w, s->hist[i]) : 0, f64_bits(s->v[i]),
                              s->start != NULL ? s->start[i] : 0};
        if (i > 0 && s->t[i] <= s->t[i - 1]) return sim_fail(c->w, "series %u: times do not increase", id);
        if (s->t[i] < t_min || s->t[i] > t_max) return sim_fail(c->w, "series %u: a sample outside the range", id);
        if (hist && v.hist == 0) return sim_fail(c->w, "series %u: a histogram nobody wrote", id);
        for (; k < want->n && want->cells[k].t < s->t[i]; k++)
            if (!check_cell(c, id, &want->cells[k], absent)) return false;
        if (k == want->n || want->cells[k].t != s->t[i]) return fail_cell(c, id, s->t[i], v, NULL);
        if (!check_cell(c, id, &want->cells[k++], v)) return false;
    }
    for (; k < want->n && want->cells[k].t <= t_max; k++)
        if (!check_cell(c, id, &want->cells[k], absent)) return false;
    c->w->report->read_samples += s->n;
    return true;
}

/* The series' number, if its labels are exactly those of that number. */
static bool identify(struct check *c, const struct labels *ls, uint32_t *id)
{
    str text = labels_get(ls, STR("id"));
    char copy[16] = {0};
    struct labels want;
    if (text.n > 0 && text.n < sizeof copy) memcpy(copy, text.p, text.n);
    *id = (uint32_t)strtoul(copy, NULL, 10);
    bool same = text.n > 0 && *id < c->m->n;
    if (same) sim_feed_labels(*id, false, &c->a, &want);
    same = same && want.n == ls->n;
    for (uint32_t i = 0; same && i < want.n; i++)
        same = str_eq(want.v[i].name, ls->v[i].name) && str_eq(want.v[i].value, ls->v[i].value);
    if (same && c->m->series[*id].attempted) return true;
    return sim_fail(c->w, "a series nobody wrote: %u labels, id '%s'", ls->n, copy);
}

/* ---- runs of blocks ----------------------------------------------------------------------------------------- */

static bool check_covered(struct check *c, uint32_t id, const struct sample_run *run, const struct samples *s,
                          size_t at)
{
    double resets = 0, min = s->v[at], max = s->v[at];
    if (at + run->n > s->n) return sim_fail(c->w, "series %u: a run counts more samples than there are", id);
    for (size_t i = at; i < at + run->n; i++) {
        if (i > at && s->v[i] < s->v[i - 1]) resets += s->v[i - 1];
        if (s->v[i] < min) min = s->v[i];
        if (s->v[i] > max) max = s->v[i];
    }
    bool same = s->t[at] == run->t_min && s->t[at + run->n - 1] == run->t_max &&
                f64_bits(s->v[at]) == f64_bits(run->first) && f64_bits(s->v[at + run->n - 1]) == f64_bits(run->last) &&
                min == run->min && max == run->max && (resets == run->resets || resets - run->resets < 1e-6 * resets);
    return same ||
           sim_fail(c->w, "series %u: a covered run at %lld differs from its samples", id, (long long)run->t_min);
}

/* Samples that runs without a covered block claim must be in their range; together they are all samples. */
static bool check_runs(struct check *c, struct reader *r, size_t i, uint32_t id)
{
    struct samples got;
    const struct sample_run *borrowed;
    size_t n_runs = 0, at = 0;
    err e = reader_samples(r, i, c->t_min, c->t_max, &got);
    if (e != NULL) return sim_expect(c->w, e, "reading samples again");
    struct samples s = {
        .t = arena_dup(&c->a, got.t, got.n * sizeof *got.t),
        .v = arena_dup(&c->a, got.v, got.n * sizeof *got.v),
        .n = got.n,
    };
    e = reader_runs(r, i, c->t_min, c->t_max, &borrowed, &n_runs);
    if (e != NULL) return sim_expect(c->w, e, "reading runs");
    for (size_t k = 0; k < n_runs; k++) {
        const struct sample_run *run = &borrowed[k];
        if (k > 0 && run->t_min <= borrowed[k - 1].t_max) return sim_fail(c->w, "series %u: runs overlap", id);
        if (at < s.n && s.t[at] < run->t_min) return sim_fail(c->w, "series %u: runs skip a sample", id);
        if (run->covered && !check_covered(c, id, run, &s, at)) return false;
        while (at < s.n && s.t[at] <= run->t_max)
            at++;
    }
    return at == s.n || sim_fail(c->w, "series %u: runs end before the samples do", id);
}

/* ---- selections --------------------------------------------------------------------------------------------- */

static bool check_series(struct check *c, struct reader *r, size_t i, const struct matcher *m)
{
    struct labels ls;
    struct samples s;
    uint32_t id;
    err e = reader_labels(r, i, &c->a, &ls);
    if (e != NULL) {
        c->blind = true;
        return sim_expect(c->w, e, "reading labels");
    }
    if (!identify(c, &ls, &id)) return false;
    if (c->seen[id]++) return sim_fail(c->w, "series %u is selected twice", id);
    if (m != NULL && !sim_verify_matches(m, id)) return sim_fail(c->w, "series %u does not match", id);
    e = reader_samples(r, i, c->t_min, c->t_max, &s);
    if (e != NULL) {
        c->seen[id] = 2; /* not known: no claim about it */
        return sim_expect(c->w, e, "reading samples");
    }
    if (!check_samples(c, id, &s, c->t_min, c->t_max)) return false;
    return !rng_chance(&c->w->rng, 0.3) || check_runs(c, r, i, id);
}

static bool check_unseen(struct check *c, const struct matcher *m)
{
    struct samples none = {0};
    for (uint32_t id = 0; id < c->m->n; id++) {
        if (c->seen[id] || (m != NULL && !sim_verify_matches(m, id))) continue;
        if (!check_samples(c, id, &none, c->t_min, c->t_max)) return false;
    }
    return true;
}

static bool check_selection(struct check *c, const struct matcher *m)
{
    struct select_options o = {.t_min = c->t_min, .t_max = c->t_max};
    struct selection *sel = NULL;
    bool ok = true;
    err e = storage_select(c->db, m, m ? 1 : 0, &o, &sel);
    if (e != NULL) return sim_expect(c->w, e, "select");
    c->seen = mem_zalloc(c->m->n);
    c->edge = c->w->env->ops->now_ms(c->w->env) - c->w->plan.options.retention_ms + SIM_SLACK_MS;
    struct reader *r = reader_create(sel);
    for (size_t i = 0; i < selection_count(sel) && ok; i++) {
        ok = check_series(c, r, i, m);
        arena_reset(&c->a);
    }
    ok = ok && (c->blind || check_unseen(c, m));
    reader_destroy(r);
    selection_destroy(sel);
    mem_free(c->seen);
    arena_deinit(&c->a);
    return ok;
}

bool sim_verify_all(struct sim_world *w, struct db *db, struct sim_model *m, bool observe)
{
    struct check c = {.w = w, .db = db, .m = m, .observe = observe, .t_min = ALL_TIME_MIN, .t_max = ALL_TIME_MAX};
    return check_selection(&c, NULL);
}

bool sim_verify_matches(const struct matcher *m, uint32_t id)
{
    struct arena a = {0};
    struct labels ls;
    bool matched = false;
    sim_feed_labels(id, false, &a, &ls);
    err_free(matchers_match(m, 1, &ls, &matched));
    arena_deinit(&a);
    return matched;
}

void sim_verify_matcher(struct sim_world *w, struct arena *a, struct matcher *m)
{
    unsigned id = (unsigned)rng_below(&w->rng, w->plan.series);
    err e;
    switch (rng_below(&w->rng, 5)) {
    case 0:
        e = matcher_init(m, MATCH_EQ, LABEL_NAME, arena_printf(a, "m%u", id % 7));
        break;
    case 1:
        e = matcher_init(m, MATCH_RE, STR("job"), STR("j0|j2"));
        break;
    case 2:
        e = matcher_init(m, MATCH_NE, STR("instance"), STR(""));
        break;
    default:
        e = matcher_init(m, MATCH_EQ, STR("id"), arena_printf(a, "%u", id));
        break;
    }
    if (e != NULL) sim_expect(w, e, "matcher");
}

bool sim_verify_some(struct sim_world *w)
{
    struct check c = {.w = w, .db = w->db, .m = w->model, .t_min = ALL_TIME_MIN, .t_max = ALL_TIME_MAX};
    struct arena a = {0};
    struct matcher m;
    sim_verify_matcher(w, &a, &m);
    if (rng_chance(&w->rng, 0.7)) {
        const struct sim_series *s = &w->model->series[rng_below(&w->rng, w->plan.series)];
        int64_t middle = s->n ? s->cells[rng_below(&w->rng, s->n)].t : w->env->ops->now_ms(w->env);
        c.t_min = middle - (int64_t)rng_below(&w->rng, 1 << rng_below(&w->rng, 30));
        c.t_max = middle + (int64_t)rng_below(&w->rng, 1 << rng_below(&w->rng, 30));
    }
    bool ok = check_selection(&c, &m);
    matcher_deinit(&m);
    arena_deinit(&a);
    return ok;
}

/* ---- names and values of labels ----------------------------------------------------------------------------- */

struct strings {
    struct sim_world *w;
    uint8_t *ids; /* seen, by series number */
    char last[512];
    size_t n;
    bool ok;
};

static void check_order(struct strings *s, str text)
{
    if (s->n++ > 0 && str_cmp(str_of(s->last), text) >= 0)
        s->ok = sim_fail(s->w, "label strings out of order or twice: %.*s", STR_ARG(text));
    snprintf(s->last, sizeof s->last, "%.*s", STR_ARG(text));
}

static bool on_id(void *arg, str text)
{
    struct strings *s = arg;
    check_order(s, text);
    char *end = NULL;
    unsigned long id = strtoul(s->last, &end, 10);
    if (text.n == 0 || *end != '\0' || id >= s->w->model->n || !s->w->model->series[id].attempted)
        s->ok = sim_fail(s->w, "label value id=\"%s\" was never written", s->last);
    else
        s->ids[id] = 1;
    return s->ok;
}

static bool on_name(void *arg, str text)
{
    static const char *const names[] = {"__name__", "id", "instance", "job", "long", "\xc3\xbcn\xc3\xaf"};
    struct strings *s = arg;
    bool known = false;
    check_order(s, text);
    for (size_t i = 0; i < ARRAY_LEN(names); i++)
        known = known || str_eq(text, str_of(names[i]));
    if (!known) s->ok = sim_fail(s->w, "label name '%s' was never written", s->last);
    return s->ok;
}

bool sim_verify_labels(struct sim_world *w)
{
    struct select_options o = {.t_min = ALL_TIME_MIN, .t_max = ALL_TIME_MAX};
    struct strings names = {.w = w, .ok = true};
    struct strings ids = {.w = w, .ok = true, .ids = mem_zalloc(w->model->n)};
    int64_t edge = w->env->ops->now_ms(w->env) - w->plan.options.retention_ms + SIM_SLACK_MS;
    bool ok = true;
    err e = storage_label_names(w->db, NULL, 0, &o, on_name, &names);
    if (e == NULL) e = storage_label_values(w->db, STR("id"), NULL, 0, &o, on_id, &ids);
    bool known = e == NULL;
    ok = sim_expect(w, e, "label names and values") && names.ok && ids.ok;
    for (uint32_t id = 0; known && ok && id < w->model->n; id++)
        if (!ids.ids[id] && sim_series_must_exist(&w->model->series[id], edge, ALL_TIME_MAX))
            ok = sim_fail(w, "label value id=\"%u\" is missing", id);
    mem_free(ids.ids);
    return ok;
}
