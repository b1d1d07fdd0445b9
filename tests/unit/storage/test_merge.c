/*
 * test_merge.c: merges of random overlapping parts against a plain model: equal times, both kinds of samples,
 * retention, deletes, dedup, whole blocks copied, cancelling, damage.
 */
#include "tests/unit/storage/part_model.h"

#include "storage/merge.h"
#include "tests/sim/sim_env.h"

#include <errno.h>

#define PARTS_MAX 5

struct fixture {
    struct model_room room;
    struct rng r;
    size_t n;
    struct model m[PARTS_MAX];
    struct part *p[PARTS_MAX];
    struct part_meta meta[PARTS_MAX];
};

/* Each model gets a part of a common set of label sets, so that series meet. */
static void make_models(struct fixture *f, size_t n_series, size_t max_samples, bool hists)
{
    struct model base;
    model_random(&base, &f->r, n_series, 1, false, MODEL_T0, MODEL_T1);
    for (size_t i = 0; i < f->n; i++) {
        struct model *m = &f->m[i];
        int64_t from = MODEL_T0 + (int64_t)rng_below(&f->r, 3) * 86400000, to = from + 2 * 86400000;
        *m = (struct model){0};
        m->series = arena_zalloc(&m->arena, (base.n + 1) * sizeof *m->series);
        for (size_t s = 0; s < base.n; s++) {
            if (rng_chance(&f->r, 0.4) && !(m->n == 0 && s == base.n - 1)) continue;
            struct model_series *to_fill = &m->series[m->n++];
            to_fill->ls = labels_copy(&m->arena, &base.series[s].ls);
            model_fill(&f->r, &m->arena, to_fill, max_samples, hists, from, to);
            m->samples += to_fill->n;
        }
    }
    model_free(&base);
}

static void write_models(struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++) {
        char path[512];
        snprintf(path, sizeof path, "%s/in%zu.part", f->room.dir, i);
        f->meta[i] = (struct part_meta){.id = i + 1, .partition = MODEL_MONTH, .level = (uint32_t)i};
        f->meta[i].seq_min = 100 * i;
        f->meta[i].seq_max = 100 * i + 99;
        model_write(&f->m[i], f->room.env, path, &f->meta[i]);
        assert_ok(part_open(f->room.env, path, &f->room.key, f->room.cache, &f->p[i]));
    }
}

static void open_fixture(struct fixture *f, uint64_t seed, size_t n, size_t n_series, size_t max_samples, bool hists)
{
    *f = (struct fixture){.n = n};
    rng_seed(&f->r, seed);
    room_open(&f->room, 1 << 20);
    make_models(f, n_series, max_samples, hists);
    write_models(f);
}

static void close_fixture(struct fixture *f)
{
    for (size_t i = 0; i < f->n; i++) {
        part_unref(f->p[i]);
        model_free(&f->m[i]);
    }
    room_close(&f->room);
}

/* ---- the plain way ------------------------------------------------------------------------------------------ */

struct plain_delete {
    uint64_t every;    /* concerns series whose identity is divisible by it; 0 = no deletes */
    size_t last_input; /* and inputs up to this one */
    int64_t t_min, t_max;
};

struct plain {
    struct fixture *f;
    struct merge_options o;
    struct plain_delete d;
};

static bool is_concerned(const struct plain *p, const struct labels *ls, size_t input)
{
    return p->d.every != 0 && input <= p->d.last_input && labels_id(&p->f->room.key, ls).lo % p->d.every == 0;
}

static err deletes(void *arg, const struct labels *ls, size_t input, struct time_ranges *out)
{
    const struct plain *p = arg;
    if (is_concerned(p, ls, input)) time_ranges_add(out, p->d.t_min, p->d.t_max);
    return NULL;
}

struct plain_sample {
    int64_t t;
    size_t input;
    double v;
    str hist;
    int64_t start;
};

static int plain_order(const void *a, const void *b)
{
    const struct plain_sample *x = a, *y = b;
    if (x->t != y->t) return x->t < y->t ? -1 : 1;
    return (x->input > y->input) - (x->input < y->input);
}

static int64_t interval_of(int64_t t, int64_t ms)
{
    int64_t k = t / ms;
    while (k * ms < t)
        k++;
    return k;
}

/* Settles the samples of one series that all inputs have, into `to`. */
static void settle(const struct plain *p, struct plain_sample *all, size_t n, struct model *out,
                   struct model_series *to)
{
    qsort(all, n, sizeof *all, plain_order);
    to->t = arena_alloc(&out->arena, (n + 1) * sizeof *to->t);
    to->v = arena_alloc(&out->arena, (n + 1) * sizeof *to->v);
    to->hist = arena_zalloc(&out->arena, (n + 1) * sizeof *to->hist);
    to->start = arena_zalloc(&out->arena, (n + 1) * sizeof *to->start);
    int64_t ms = p->o.dedup_ms;
    for (size_t i = 0; i < n; i++) {
        if (i + 1 < n && all[i + 1].t == all[i].t) continue;
        if (all[i].t < p->o.t_keep_min) continue;
        if (is_concerned(p, &to->ls, all[i].input) && all[i].t >= p->d.t_min && all[i].t <= p->d.t_max) continue;
        if (ms > 0 && to->n > 0 && interval_of(to->t[to->n - 1], ms) == interval_of(all[i].t, ms)) to->n--;
        to->t[to->n] = all[i].t;
        to->v[to->n] = all[i].v;
        to->start[to->n] = all[i].start;
        to->hist[to->n++] = all[i].hist;
    }
}

static void plain_merge(const struct plain *p, struct model *out)
{
    struct fixture *f = p->f;
    size_t at[PARTS_MAX] = {0}, cap = 1;
    *out = (struct model){0};
    for (size_t i = 0; i < f->n; i++)
        cap += f->m[i].n;
    out->series = arena_zalloc(&out->arena, cap * sizeof *out->series);
    for (;;) {
        const struct model_series *least = NULL;
        for (size_t i = 0; i < f->n; i++)
            if (at[i] < f->m[i].n && (least == NULL || model_order(&f->m[i].series[at[i]], least) < 0))
                least = &f->m[i].series[at[i]];
        if (least == NULL) return;
        struct model_series *to = &out->series[out->n];
        *to = (struct model_series){.ls = least->ls};
        struct plain_sample *all = NULL;
        size_t n = 0, cap_all = 0;
        for (size_t i = 0; i < f->n; i++) {
            if (at[i] == f->m[i].n || !labels_eq(&f->m[i].series[at[i]].ls, &to->ls)) continue;
            const struct model_series *s = &f->m[i].series[at[i]++];
            all = mem_grow(all, &cap_all, n + s->n, sizeof *all);
            for (size_t k = 0; k < s->n; k++)
                all[n++] = (struct plain_sample){s->t[k], i, s->v[k], s->hist[k], model_start(s, k)};
        }
        settle(p, all, n, out, to);
        mem_free(all);
        out->samples += to->n;
        out->n += to->n > 0;
    }
}

/* ---- comparing ---------------------------------------------------------------------------------------------- */

static void check_meta(const struct fixture *f, const struct part_meta *meta)
{
    assert_int_equal(meta->id, 77);
    assert_int_equal(meta->partition, MODEL_MONTH);
    assert_int_equal(meta->level, f->n);
    assert_int_equal(meta->seq_min, 0);
    assert_int_equal(meta->seq_max, 100 * f->n - 1);
}

static void run(struct plain *p)
{
    struct fixture *f = p->f;
    struct part_meta meta = {.id = 77};
    struct model want;
    p->o.deletes = p->d.every != 0 ? deletes : NULL;
    p->o.deletes_arg = p;
    plain_merge(p, &want);
    assert_ok(merge_parts(f->room.env, &f->room.key, f->p, f->n, f->room.path, &meta, &p->o));
    check_meta(f, &meta);
    assert_int_equal(meta.samples, want.samples);
    if (want.samples == 0) {
        assert_int_equal(access(f->room.path, F_OK), -1);
    } else {
        struct part *out;
        uint64_t faults = 1;
        assert_ok(part_open(f->room.env, f->room.path, &f->room.key, f->room.cache, &out));
        model_compare(&want, out, &f->room.key);
        part_delete_on_unref(out);
        assert_ok(part_verify(f->room.env, f->room.path, NULL, NULL, &faults));
        assert_int_equal(faults, 0);
        part_unref(out);
    }
    model_free(&want);
}

static void test_random(void **state)
{
    (void)state;
    uint64_t seed = test_seed();
    static const struct {
        size_t parts, series, samples;
        bool hists;
    } sizes[] = {{1, 20, 50, true}, {2, 60, 100, true}, {5, 40, 60, true}, {3, 4, 9000, false}, {4, 300, 5, false}};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        struct fixture f;
        open_fixture(&f, seed + i, sizes[i].parts, sizes[i].series, sizes[i].samples, sizes[i].hists);
        struct plain p = {.f = &f, .o = {.t_keep_min = INT64_MIN}};
        run(&p);
        p.o.t_keep_min = MODEL_T0 + 86400000 + (int64_t)rng_below(&f.r, 86400000);
        run(&p);
        p.d = (struct plain_delete){3, f.n / 2, p.o.t_keep_min + 3600000, p.o.t_keep_min + 36000000};
        run(&p);
        p.o.dedup_ms = 1 + (int64_t)rng_below(&f.r, 7200000);
        run(&p);
        p.o.dedup_ms = 2 + (int64_t)rng_below(&f.r, 4); /* every second sample lies on an edge */
        run(&p);
        p.o.dedup_ms = 0;
        p.o.t_keep_min = f.m[0].series[0].t[f.m[0].series[0].n / 2]; /* the first to be kept */
        p.d.t_min = f.m[0].series[0].t[f.m[0].series[0].n - 1];
        p.d.every = 1;
        run(&p);
        p.o.t_keep_min = INT64_MIN;
        p.d = (struct plain_delete){1, f.n, INT64_MIN, INT64_MAX};
        run(&p);
        close_fixture(&f);
    }
}

/* Parts one after another in time, with large blocks: they are copied, and stay what they were. */
static void test_copies_blocks(void **state)
{
    (void)state;
    struct fixture f = {.n = 3};
    room_open(&f.room, 1 << 20);
    size_t n = 2 * LIMIT_BLOCK_SAMPLES;
    for (size_t i = 0; i < f.n; i++) {
        struct model *m = &f.m[i];
        m->series = arena_zalloc(&m->arena, sizeof *m->series);
        struct model_series *s = m->series;
        s->ls = (struct labels){arena_alloc(&m->arena, sizeof(struct label)), 1};
        s->ls.v[0] = (struct label){LABEL_NAME, STR("x")};
        s->n = m->samples = n;
        s->t = arena_alloc(&m->arena, n * sizeof *s->t);
        s->v = arena_alloc(&m->arena, n * sizeof *s->v);
        s->hist = arena_zalloc(&m->arena, n * sizeof *s->hist);
        for (size_t k = 0; k < n; k++) {
            s->t[k] = MODEL_T0 + (int64_t)(i * n + k) * 1000;
            s->v[k] = i == 1 ? 5 : (double)(k * k % 1000) / 8;
        }
        if (i == 2) { /* a start column is copied with its block */
            s->start = arena_zalloc(&m->arena, n * sizeof *s->start);
            for (size_t k = 0; k < n; k += 3)
                s->start[k] = s->t[k] - 7;
        }
        m->n = 1;
    }
    write_models(&f);
    struct plain p = {.f = &f, .o = {.t_keep_min = INT64_MIN}};
    struct part_meta meta = {.id = 77};
    assert_ok(merge_parts(f.room.env, &f.room.key, f.p, f.n, f.room.path, &meta, &p.o));
    assert_int_equal(meta.blocks, 6);
    run(&p);
    close_fixture(&f);
}

static void count_bytes(void *arg, uint64_t bytes)
{
    *(uint64_t *)arg += bytes;
}

static void test_cancel_and_progress(void **state)
{
    (void)state;
    struct fixture f;
    atomic_bool cancel = true;
    uint64_t bytes = 0;
    struct part_meta meta = {.id = 77};
    open_fixture(&f, 3, 3, 200, 3000, false);
    struct merge_options o = {
        .t_keep_min = INT64_MIN, .cancel = &cancel, .progress = count_bytes, .progress_arg = &bytes};
    assert_err(merge_parts(f.room.env, &f.room.key, f.p, f.n, f.room.path, &meta, &o), ERR_CANCELED);
    assert_int_equal(access(f.room.path, F_OK), -1);
    cancel = false;
    meta.id = 77;
    assert_ok(merge_parts(f.room.env, &f.room.key, f.p, f.n, f.room.path, &meta, &o));
    uint64_t all = 0;
    for (size_t i = 0; i < f.n; i++)
        all += f.meta[i].bytes;
    assert_true(bytes <= all && bytes + (512 << 10) > all);
    close_fixture(&f);
}

/* A byte of an input is not what was written: an error, the part is marked, no output. */
static void test_damaged_input(void **state)
{
    (void)state;
    struct fixture f;
    struct part_meta meta = {.id = 77};
    struct merge_options o = {.t_keep_min = INT64_MIN};
    open_fixture(&f, 4, 2, 50, 300, false);
    FILE *file = fopen(part_path(f.p[1]), "r+b");
    assert_non_null(file);
    fseek(file, 100, SEEK_SET);
    int was = fgetc(file);
    fseek(file, 100, SEEK_SET);
    fputc(was ^ 1, file);
    fclose(file);
    assert_err(merge_parts(f.room.env, &f.room.key, f.p, f.n, f.room.path, &meta, &o), ERR_CORRUPT);
    assert_true(part_damaged(f.p[1]));
    assert_false(part_damaged(f.p[0]));
    assert_int_equal(access(f.room.path, F_OK), -1);
    close_fixture(&f);
}

/* Each call of the machine fails once during a merge: an error, and no output stays. */
static void test_failing_calls(void **state)
{
    (void)state;
    struct fixture f;
    open_fixture(&f, 5, 2, 20, 10, true);
    for (size_t i = 0; i < f.n; i++)
        part_unref(f.p[i]);
    struct sim_env *sim = sim_env_create(test_seed());
    struct env *env = sim_env_env(sim);
    static const char *const paths[] = {"/0", "/1"};
    for (size_t i = 0; i < f.n; i++)
        model_write(&f.m[i], env, paths[i], &f.meta[i]);
    for (uint64_t nth = 1; nth > 0; nth++) {
        struct part_meta meta = {.id = 77};
        struct merge_options o = {.t_keep_min = INT64_MIN};
        struct fcache *cache = fcache_create(1 << 20, NULL);
        for (size_t i = 0; i < f.n; i++)
            assert_ok(part_open(env, paths[i], &f.room.key, cache, &f.p[i]));
        uint64_t before = sim_env_failures(sim), size;
        sim_env_fail(sim, SIM_CALLS, nth, 1, ENOSPC);
        err e = merge_parts(env, &f.room.key, f.p, f.n, "/out", &meta, &o);
        bool failed = sim_env_failures(sim) > before;
        sim_env_fail_never(sim);
        for (size_t i = 0; i < f.n; i++)
            part_unref(f.p[i]);
        fcache_destroy(cache);
        struct env_file *file;
        assert_int_equal(sim_env_open_handles(sim), 0);
        if (failed) {
            assert_err(e, ERR_NO_SPACE);
            assert_err(env->ops->file_open(env, "/out", ENV_READ, &file), ERR_NOT_FOUND);
            continue;
        }
        assert_ok(e);
        assert_ok(env->ops->file_open(env, "/out", ENV_READ, &file));
        assert_ok(env->ops->file_size(file, &size));
        assert_int_equal(size, meta.bytes);
        env->ops->file_close(file);
        assert_true(nth > 8);
        break;
    }
    sim_env_destroy(sim);
    f.n = 0;
    close_fixture(&f);
    for (size_t i = 0; i < 2; i++)
        model_free(&f.m[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_random),
        cmocka_unit_test(test_copies_blocks),
        cmocka_unit_test(test_cancel_and_progress),
        cmocka_unit_test(test_damaged_input),
        cmocka_unit_test(test_failing_calls),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
