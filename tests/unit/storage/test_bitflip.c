/*
 * test_bitflip.c: damage done behind the engine's back, on the simulated disk.
 *
 * A database with two months of parts, a delete and samples that are in the log only. Then one bit of
 * one file is flipped, all over every file:
 *   - storage_verify must report a fault and name the file (no byte is covered by no checksum); of the log's last
 *     record it can't know whether a crash cut it short, so there it names the file in a note;
 *   - the database must open, and each series must read right, or fail with an error that names the
 *     part. What was in a damaged log record may be missing; nothing may be wrong.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "storage/storage.h"
#include "tests/sim/sim_env.h"

#include <stdio.h>
#include <stdlib.h>

#define SERIES 40
#define SAMPLES 60
#define STEP_MS 15000
#define DELETED_ID 7 /* of this one a few samples are deleted */
#define FILES_MAX 64
#define VERIFY_FLIPS 40 /* random offsets a file, beside its first and last bytes */
#define OPEN_FLIPS 150

struct fixture {
    struct sim_env *sim;
    struct env *env;
    int64_t start[3]; /* of the batches: an old month, this month, the log */
    char files[FILES_MAX][256];
    size_t n_files;
    uint32_t ids[SERIES];
};

static void assert_ok(err e)
{
    if (e != NULL) fail_msg("%s", err_message(e));
}

/* ---- the database ------------------------------------------------------------------------------------------- */

static double value_of(uint32_t id, int64_t t)
{
    return (double)(id * 1000) + (double)(t / STEP_MS % 997) * (id % 3 ? 0.25 : 1);
}

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    (void)arg;
    *out = (struct labels){arena_alloc(a, 3 * sizeof *out->v), 3};
    out->v[0] = (struct label){LABEL_NAME, i % 2 ? STR("odd") : STR("even")};
    out->v[1] = (struct label){STR("id"), arena_printf(a, "%u", i)};
    out->v[2] = (struct label){STR("job"), STR("flip")};
    return NULL;
}

static err open_db(struct fixture *f, struct db **db)
{
    struct storage_options o = {
        .env = f->env, .path = "data", .retention_ms = INT64_C(400) * 86400000, .cache_bytes = 1 << 16};
    return storage_open(&o, db);
}

/* Samples [from, to) of the run that begins at start, of every series, as one record of the log. */
static void append(struct fixture *f, struct db *db, int64_t start, uint32_t from, uint32_t to)
{
    uint32_t n = to - from;
    struct batch_series series[SERIES];
    int64_t t[SERIES * SAMPLES];
    double v[SERIES * SAMPLES];
    for (uint32_t i = 0; i < SERIES; i++) {
        f->ids[i] = i;
        series[i] = (struct batch_series){
            .alias = hash128(storage_hash_key(db), &f->ids[i], 4), .raw = &f->ids[i], .raw_bytes = 4, .n = n};
        for (uint32_t k = 0; k < n; k++) {
            t[i * n + k] = start + (from + k) * STEP_MS;
            v[i * n + k] = value_of(i, t[i * n + k]);
        }
    }
    struct batch b = {
        .series = series, .n_series = SERIES, .t = t, .v = v, .n_samples = SERIES * n, .resolve = resolve};
    struct append_result res;
    assert_ok(storage_append(db, &b, &res));
    assert_int_equal(res.accepted, SERIES * n);
    assert_ok(storage_wait(db, res.seq));
}

struct walk {
    struct fixture *f;
    const char *dir;
};

static void on_entry(void *arg, str name, bool is_dir)
{
    struct walk *w = arg;
    struct fixture *f = w->f;
    char path[256];
    snprintf(path, sizeof path, "%s/%.*s", w->dir, STR_ARG(name));
    if (is_dir) {
        struct walk inner = {f, path};
        assert_ok(f->env->ops->dir_list(f->env, path, on_entry, &inner));
        return;
    }
    if (str_eq(name, STR("LOCK")) || str_eq(name, STR("MANIFEST.prev"))) return;
    assert_true(f->n_files < FILES_MAX);
    snprintf(f->files[f->n_files++], sizeof f->files[0], "%s", path);
}

static struct fixture build(void)
{
    struct fixture f = {.sim = sim_env_create(11)};
    struct db *db = NULL;
    struct matcher m;
    f.env = sim_env_env(f.sim);
    int64_t now = f.env->ops->now_ms(f.env) / STEP_MS * STEP_MS;
    f.start[0] = now - INT64_C(40) * 86400000;
    f.start[1] = now - 2 * SAMPLES * STEP_MS;
    f.start[2] = now - SAMPLES * STEP_MS;
    assert_ok(open_db(&f, &db));
    append(&f, db, f.start[0], 0, SAMPLES);
    append(&f, db, f.start[1], 0, SAMPLES);
    assert_ok(storage_flush(db));
    assert_ok(matcher_init(&m, MATCH_EQ, STR("id"), STR("7"))); /* DELETED_ID */
    assert_ok(storage_delete(db, &m, 1, f.start[1], f.start[1] + 5 * STEP_MS));
    matcher_deinit(&m);
    for (uint32_t k = 0; k < SAMPLES; k += SAMPLES / 5)
        append(&f, db, f.start[2], k, k + SAMPLES / 5);
    storage_abandon(db);
    sim_env_restart(f.sim, SIM_CRASH_KEEP);
    struct walk w = {&f, "data"};
    assert_ok(f.env->ops->dir_list(f.env, "data", on_entry, &w));
    assert_true(f.n_files >= 4); /* IDENTITY, MANIFEST, parts, log */
    return f;
}

static uint64_t size_of(struct fixture *f, const char *path)
{
    return sim_node_view(sim_disk_find(sim_env_disk(f->sim), path)).n;
}

static bool is_log(const char *path)
{
    return strstr(path, "/wal/") != NULL;
}

/* ---- verify ------------------------------------------------------------------------------------------------- */

static bool verify_notices(struct fixture *f, const char *path)
{
    struct buf out = {0};
    uint64_t faults = 0;
    assert_ok(storage_verify(f->env, "data", &out, &faults));
    buf_u8(&out, 0);
    const char *text = (const char *)out.data;
    bool named = strstr(text, strrchr(path, '/') + 1) != NULL;
    bool noted = is_log(path) && strstr(text, "unfinished record") != NULL;
    buf_deinit(&out);
    return named && (faults > 0 || noted);
}

static uint64_t flip_offset(struct rng *r, uint64_t size, unsigned k)
{
    if (k < 8 && k < size) return k;
    if (k < 16 && k - 8 < size) return size - 1 - (k - 8);
    return rng_below(r, size);
}

static void test_verify_sees_every_bit(void **state)
{
    (void)state;
    struct fixture f = build();
    struct rng r;
    unsigned missed = 0;
    rng_seed(&r, 5);
    struct buf out = {0};
    uint64_t faults = 0;
    assert_ok(storage_verify(f.env, "data", &out, &faults));
    if (faults != 0) fail_msg("faults without damage: %.*s", STR_ARG(buf_as_str(&out)));
    buf_deinit(&out);
    for (size_t i = 0; i < f.n_files; i++) {
        uint64_t size = size_of(&f, f.files[i]);
        for (unsigned k = 0; k < 16 + VERIFY_FLIPS && size > 0; k++) {
            uint64_t at = flip_offset(&r, size, k);
            uint8_t mask = (uint8_t)(1u << rng_below(&r, 8));
            assert_int_equal(sim_env_flip(f.sim, f.files[i], at, mask), 0);
            if (!verify_notices(&f, f.files[i])) {
                print_error("verify is silent: %s offset %llu of %llu mask %02x\n", f.files[i], (unsigned long long)at,
                            (unsigned long long)size, mask);
                missed++;
            }
            sim_env_flip(f.sim, f.files[i], at, mask);
        }
    }
    assert_int_equal(missed, 0);
    sim_env_destroy(f.sim);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

struct tally {
    unsigned right, failed, lost;
};

static bool is_deleted(const struct fixture *f, uint32_t id, int64_t t)
{
    return id == DELETED_ID && t >= f->start[1] && t <= f->start[1] + 5 * STEP_MS;
}

/* Every sample read is right; how many of a batch's are there. */
static void check_samples(const struct fixture *f, uint32_t id, const struct samples *s, const char *path,
                          unsigned found[3])
{
    for (size_t i = 0; i < s->n; i++) {
        int batch = s->t[i] >= f->start[2] ? 2 : s->t[i] >= f->start[1] ? 1 : 0;
        int64_t offset = s->t[i] - f->start[batch];
        if (offset < 0 || offset % STEP_MS != 0 || offset >= SAMPLES * STEP_MS || is_deleted(f, id, s->t[i]))
            fail_msg("%s: series %u: a sample at %lld that nobody wrote or that was deleted", path, id,
                     (long long)s->t[i]);
        if (f64_bits(s->v[i]) != f64_bits(value_of(id, s->t[i])))
            fail_msg("%s: series %u: a wrong value at %lld", path, id, (long long)s->t[i]);
        found[batch]++;
    }
}

/* An error of a read must be about corruption and name the damaged file. */
static void check_error(err e, const char *path)
{
    if (err_code(e) != ERR_CORRUPT) fail_msg("%s: %s", path, err_message(e));
    if (strstr(err_message(e), strrchr(path, '/') + 1) == NULL)
        fail_msg("error without the file's name: %s", err_message(e));
    err_free(e);
}

/* One series over all time: right, failed, or partly missing. */
static void read_series(struct fixture *f, struct db *db, uint32_t id, const char *path, struct tally *tally)
{
    struct matcher m;
    char text[16];
    unsigned found[3] = {0};
    struct selection *sel = NULL;
    struct samples s = {0};
    snprintf(text, sizeof text, "%u", id);
    assert_ok(matcher_init(&m, MATCH_EQ, STR("id"), str_of(text)));
    struct select_options o = {.t_min = f->start[0], .t_max = f->start[2] + SAMPLES * STEP_MS};
    err e = storage_select(db, &m, 1, &o, &sel);
    matcher_deinit(&m);
    if (e != NULL) {
        check_error(e, path);
        tally->failed++;
        return;
    }
    assert_true(selection_count(sel) <= 1);
    struct reader *r = reader_create(sel);
    if (selection_count(sel) == 1) e = reader_samples(r, 0, o.t_min, o.t_max, &s);
    if (e == NULL) check_samples(f, id, &s, path, found);
    reader_destroy(r);
    selection_destroy(sel);
    unsigned deleted = id == DELETED_ID ? 6 : 0;
    if (e != NULL) {
        check_error(e, path);
        tally->failed++;
    } else if (found[0] == SAMPLES && found[1] == SAMPLES - deleted && found[2] == SAMPLES) {
        tally->right++;
    } else {
        tally->lost++;
    }
}

/* Parts that open but are hurt inside fail reads; parts that don't open are lost whole, as are log records. */
static void check_after(struct fixture *f, const char *path, uint64_t at)
{
    struct db *db = NULL;
    struct tally tally = {0};
    err e = open_db(f, &db);
    if (e != NULL) fail_msg("%s flipped at %llu: %s", path, (unsigned long long)at, err_message(e));
    for (uint32_t id = 0; id < SERIES; id++)
        read_series(f, db, id, path, &tally);
    struct storage_stats stats;
    storage_stats(db, &stats);
    bool is_part = strstr(path, ".part") != NULL;
    if (tally.lost > 0 && !is_log(path) && !is_part)
        fail_msg("%s flipped at %llu: %u series lost samples in silence", path, (unsigned long long)at, tally.lost);
    if (tally.lost > 0 && is_part && err_corrupt_count() == 0) fail_msg("a part was lost in silence");
    storage_abandon(db);
}

static void test_reads_are_right_or_errors(void **state)
{
    (void)state;
    const char *seed = getenv("VARVE_SEED");
    struct rng r;
    uint64_t first = seed ? strtoull(seed, NULL, 10) : env_posix()->ops->mono_ns(env_posix()) % 1000000;
    printf("bitflip: seed %llu\n", (unsigned long long)first);
    rng_seed(&r, first);
    for (unsigned i = 0; i < OPEN_FLIPS; i++) {
        struct fixture f = build();
        const char *path = f.files[i % f.n_files];
        uint64_t size = size_of(&f, path);
        if (size > 0) {
            uint64_t at = flip_offset(&r, size, (unsigned)rng_below(&r, 60));
            sim_env_flip(f.sim, path, at, (uint8_t)(1u << rng_below(&r, 8)));
            check_after(&f, path, at);
        }
        assert_int_equal(sim_env_open_handles(f.sim), 0);
        sim_env_destroy(f.sim);
    }
}

/* Without a manifest the parts' own footers say what there is; of deletes the last one may be forgotten. */
static void test_lost_manifest(void **state)
{
    (void)state;
    struct fixture f = build();
    struct db *db = NULL;
    struct tally tally = {0};
    assert_ok(f.env->ops->unlink(f.env, "data/MANIFEST"));
    assert_ok(open_db(&f, &db));
    for (uint32_t id = 0; id < SERIES; id++)
        if (id != DELETED_ID) read_series(&f, db, id, "data/MANIFEST", &tally);
    assert_int_equal(tally.right, SERIES - 1);
    assert_ok(storage_close(db));
    assert_ok(open_db(&f, &db));
    for (uint32_t id = 0; id < SERIES; id++)
        if (id != DELETED_ID) read_series(&f, db, id, "data/MANIFEST", &tally);
    assert_int_equal(tally.right, 2 * (SERIES - 1));
    storage_abandon(db);
    sim_env_destroy(f.sim);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_verify_sees_every_bit),
        cmocka_unit_test(test_reads_are_right_or_errors),
        cmocka_unit_test(test_lost_manifest),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
