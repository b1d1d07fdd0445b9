/*
 * test_exemplars.c: the ring of exemplars against a naive model, its rules one by one, its file and damage to it, and
 * what the database makes of it: log, flush, snapshot, series nobody knows.
 */
#include "tests/unit/testing.h"

#include <math.h>
#include <unistd.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/storage.h"
#include "storage/wal.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

static const struct hash_key KEY = {{7, 1, 3}};

struct room {
    char dir[64];
    struct arena arena; /* of the test's labels and answers */
};

static int setup(void **state)
{
    struct room *r = mem_zalloc(sizeof *r);
    snprintf(r->dir, sizeof r->dir, "/tmp/varve-test-exemplars-XXXXXX");
    assert_non_null(mkdtemp(r->dir));
    *state = r;
    return 0;
}

static int teardown(void **state)
{
    struct room *r = *state;
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", r->dir);
    arena_deinit(&r->arena);
    mem_free(r);
    return system(command);
}

/* "a=1,b=2"; canonical if written so. */
static struct labels labels_of(struct room *r, const char *text)
{
    struct labels ls = {arena_alloc(&r->arena, 64 * sizeof(struct label)), 0};
    while (*text != '\0') {
        const char *equals = strchr(text, '='), *end = strchrnul(equals, ',');
        ls.v[ls.n++] = (struct label){{text, (size_t)(equals - text)}, {equals + 1, (size_t)(end - equals - 1)}};
        text = *end == ',' ? end + 1 : end;
    }
    return ls;
}

static struct exemplar exemplar_of(struct room *r, const char *labels, double v, int64_t t)
{
    return (struct exemplar){.labels = labels_of(r, labels), .v = v, .t = t, .has_t = true};
}

static enum exemplar_fate add(struct room *r, struct exemplars *e, const char *series, const char *labels, double v,
                              int64_t t)
{
    struct labels ls = labels_of(r, series);
    struct exemplar x = exemplar_of(r, labels, v, t);
    return exemplars_add(e, &ls, &x, 1);
}

/* An answer as text: series # labels value@time ... ; */
static const char *print(struct room *r, const struct exemplar_series *s, size_t n)
{
    struct buf out = {0};
    for (size_t i = 0; i < n; i++) {
        labels_print(&s[i].labels, &out);
        for (size_t k = 0; k < s[i].n; k++) {
            buf_str(&out, STR(" "));
            labels_print(&s[i].v[k].labels, &out);
            buf_printf(&out, "%g@%lld", s[i].v[k].v, (long long)(s[i].v[k].t - T0));
        }
        buf_str(&out, STR(";"));
    }
    str text = arena_str(&r->arena, buf_as_str(&out));
    buf_deinit(&out);
    return text.p;
}

static const char *ask(struct room *r, struct exemplars *e, str pattern, int64_t from, int64_t to)
{
    struct matcher m;
    struct exemplar_series *s;
    size_t n;
    assert_ok(matcher_init(&m, MATCH_RE, LABEL_NAME, pattern));
    struct exemplar_selector selector = {&m, 1};
    assert_ok(exemplars_select(e, &selector, 1, T0 + from, T0 + to, &r->arena, &s, &n));
    matcher_deinit(&m);
    return print(r, s, n);
}

/* ---- rules -------------------------------------------------------------------------------------- */

static void test_rules(void **state)
{
    struct room *r = *state;
    struct exemplars *e = exemplars_create(&KEY, 10);
    assert_int_equal(add(r, e, "__name__=a", "id=1", 5, T0), EXEMPLAR_STORED);
    assert_int_equal(add(r, e, "__name__=a", "id=1", 5, T0), EXEMPLAR_REPEATED);
    assert_int_equal(add(r, e, "__name__=a", "id=1", 4, T0), EXEMPLAR_OUT_OF_ORDER);
    assert_int_equal(add(r, e, "__name__=a", "id=1", 9, T0 - 1), EXEMPLAR_OUT_OF_ORDER);
    assert_int_equal(add(r, e, "__name__=a", "id=1", 6, T0), EXEMPLAR_STORED);
    assert_int_equal(add(r, e, "__name__=b", "id=1", 4, T0 - 1), EXEMPLAR_STORED);
    assert_int_equal(add(r, e, "__name__=a", "", 6, T0 + 1), EXEMPLAR_STORED);
    assert_int_equal(add(r, e, "__name__=a", "id=2", NAN, T0 + 1), EXEMPLAR_STORED);
    assert_string_equal(ask(r, e, STR(".*"), -10, 10),
                        "a {id=\"1\"}5@0 {id=\"1\"}6@0 {}6@1 {id=\"2\"}nan@1;b {id=\"1\"}4@-1;");
    assert_string_equal(ask(r, e, STR(".*"), 0, 0), "a {id=\"1\"}5@0 {id=\"1\"}6@0;");
    assert_string_equal(ask(r, e, STR("b|c"), -1, -1), "b {id=\"1\"}4@-1;");
    assert_string_equal(ask(r, e, STR("c"), -10, 10), "");
    exemplars_destroy(e);
}

/* One without a time of its own repeats the newest whatever the time of its sample; with one it does not. */
static void test_without_time(void **state)
{
    struct room *r = *state;
    struct exemplars *e = exemplars_create(&KEY, 10);
    struct labels series = labels_of(r, "__name__=a");
    struct exemplar x = exemplar_of(r, "id=1", 5, T0);
    x.has_t = false;
    assert_int_equal(exemplars_add(e, &series, &x, 1), EXEMPLAR_STORED);
    x.t += 1000;
    assert_int_equal(exemplars_add(e, &series, &x, 1), EXEMPLAR_REPEATED);
    x.has_t = true;
    assert_int_equal(exemplars_add(e, &series, &x, 1), EXEMPLAR_STORED);
    exemplars_destroy(e);
}

/* 128 characters, not bytes. */
static void test_length(void **state)
{
    struct room *r = *state;
    struct exemplars *e = exemplars_create(&KEY, 10);
    char text[600] = "id=";
    for (int i = 0; i < 126; i++)
        memcpy(text + 3 + (size_t)i * 4, "\xf0\x9f\xa6\x86", 5);
    assert_int_equal(add(r, e, "__name__=a", text, 1, T0), EXEMPLAR_STORED);
    size_t n = strlen(text);
    memcpy(text + n, "x", 2);
    assert_int_equal(add(r, e, "__name__=a", text, 1, T0), EXEMPLAR_TOO_LONG);
    memcpy(text + n, ",y=\x80\x80", 6); /* bytes that count as no character are bounded all the same */
    assert_int_equal(add(r, e, "__name__=a", text, 1, T0 + 1), EXEMPLAR_TOO_LONG);
    exemplars_destroy(e);
}

/* Equal in time and value: the hash of the labels decides. */
static void test_order_of_equals(void **state)
{
    struct room *r = *state;
    struct exemplar a = exemplar_of(r, "trace_id=aaa", 1, T0), b = exemplar_of(r, "trace_id=bbb", 1, T0);
    assert_int_equal(exemplar_before(&a, &b), !exemplar_before(&b, &a));
    assert_false(exemplar_before(&a, &a));
    assert_int_equal(hash_xxh64("\x08trace_id\x03"
                                "aaa",
                                13) < hash_xxh64("\x08trace_id\x03"
                                                 "bbb",
                                                 13),
                     exemplar_before(&a, &b));
}

/* ---- against a model ---------------------------------------------------------------------------- */

struct model_entry {
    uint32_t series;
    double v;
    int64_t t;
};

/* The whole of what should be there, by series, as the ring prints it. */
static const char *model_print(struct room *r, const struct model_entry *v, size_t n, uint32_t series_max)
{
    struct buf out = {0};
    for (uint32_t s = 0; s < series_max; s++) {
        bool any = false;
        for (size_t i = 0; i < n; i++) {
            if (v[i].series != s) continue;
            if (!any) buf_printf(&out, "m%03u", s);
            any = true;
            buf_printf(&out, " {id=\"%u\"}%g@%lld", s, v[i].v, (long long)(v[i].t - T0));
        }
        if (any) buf_str(&out, STR(";"));
    }
    str text = arena_str(&r->arena, buf_as_str(&out));
    buf_deinit(&out);
    return text.p;
}

static void test_model(void **state)
{
    enum { SERIES = 40, STEPS = 3000 };
    struct room *r = *state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct exemplars *e = exemplars_create(&KEY, 1 + (uint32_t)rng_below(&rng, 300));
    struct exemplars_stats stats;
    struct model_entry *v = mem_alloc(STEPS * sizeof *v);
    size_t n = 0, first = 0, max = 0;
    int64_t newest[SERIES] = {0};
    exemplars_stats(e, &stats);
    for (int i = 0; i < STEPS; i++) {
        char series[32], labels[32];
        uint32_t s = (uint32_t)rng_below(&rng, 1 + rng_below(&rng, SERIES));
        struct model_entry entry = {s, (double)i, T0 + i - (int64_t)rng_below(&rng, 60)};
        snprintf(series, sizeof series, "__name__=m%03u", s);
        snprintf(labels, sizeof labels, "id=%u", s);
        uint64_t before = stats.exemplars;
        bool alive = false;
        for (size_t k = first; k < n; k++)
            alive |= v[k].series == s;
        enum exemplar_fate fate = add(r, e, series, labels, entry.v, entry.t);
        bool late = alive && entry.t < newest[s];
        assert_int_equal(fate, late ? EXEMPLAR_OUT_OF_ORDER : EXEMPLAR_STORED);
        exemplars_stats(e, &stats);
        if (late) continue;
        newest[s] = entry.t;
        v[n++] = entry;
        if (stats.exemplars == before && max == 0) max = before; /* full */
        if (max > 0) first = n - max;
        assert_int_equal(stats.exemplars, n - first);
        if (i % 100 != 0) continue;
        assert_string_equal(ask(r, e, STR(".*"), -100, STEPS), model_print(r, v + first, n - first, SERIES));
        assert_ok(exemplars_save(e, env_posix(), r->dir, true));
        struct exemplars *again = exemplars_create(&KEY, 300);
        assert_ok(exemplars_load(again, env_posix(), r->dir));
        assert_string_equal(ask(r, again, STR(".*"), -100, STEPS), model_print(r, v + first, n - first, SERIES));
        exemplars_destroy(again);
        arena_reset(&r->arena);
    }
    mem_free(v);
    exemplars_destroy(e);
}

/* Labels of series as long as may be: fewer exemplars are kept. */
static void test_bytes_are_bounded(void **state)
{
    struct room *r = *state;
    struct exemplars *e = exemplars_create(&KEY, 1000);
    struct exemplars_stats stats;
    char *text = mem_alloc(40000);
    for (int i = 0; i < 300; i++) {
        int n = snprintf(text, 40000, "__name__=a%d,b=", i);
        memset(text + n, 'x', 30000);
        text[n + 30000] = '\0';
        assert_int_equal(add(r, e, text, "id=1", 1, T0 + i), EXEMPLAR_STORED);
        arena_reset(&r->arena);
    }
    exemplars_stats(e, &stats);
    assert_in_range(stats.bytes, 1500000, 2300000);
    assert_in_range(stats.exemplars, 50, 75);
    assert_int_equal(stats.series, stats.exemplars);
    mem_free(text);
    exemplars_destroy(e);
}

/* ---- the file ----------------------------------------------------------------------------------- */

static void test_damage(void **state)
{
    struct room *r = *state;
    char path[128];
    uint8_t bytes[4096];
    struct exemplars *e = exemplars_create(&KEY, 10);
    add(r, e, "__name__=a,b=c", "id=1", 5, T0);
    add(r, e, "__name__=d", "", 6, T0);
    assert_ok(exemplars_save(e, env_posix(), r->dir, false));
    exemplars_destroy(e);
    snprintf(path, sizeof path, "%s/%s", r->dir, EXEMPLARS_FILE);
    FILE *f = fopen(path, "rb");
    size_t n = fread(bytes, 1, sizeof bytes, f);
    fclose(f);
    for (size_t cut = 0; cut < 2 * n; cut++) { /* each byte changed, then each length short of all */
        size_t length = cut < n ? n : cut - n;
        if (cut < n) bytes[cut] ^= 0x10;
        f = fopen(path, "wb");
        assert_int_equal(fwrite(bytes, 1, length, f), length);
        fclose(f);
        e = exemplars_create(&KEY, 10);
        assert_err(exemplars_load(e, env_posix(), r->dir), ERR_CORRUPT);
        assert_int_equal(exemplars_seq(e), 0);
        exemplars_destroy(e);
        if (cut < n) bytes[cut] ^= 0x10;
    }
    unlink(path);
    e = exemplars_create(&KEY, 10);
    assert_ok(exemplars_load(e, env_posix(), r->dir));
    exemplars_destroy(e);
}

/* ---- the database ------------------------------------------------------------------------------- */

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    (void)i;
    *out = labels_copy(a, arg);
    return NULL;
}

/* One batch: a sample if `sample`, and an exemplar. */
static struct append_result append(struct room *r, struct db *db, const char *series, bool sample, const char *labels,
                                   int64_t t)
{
    struct labels ls = labels_of(r, series);
    struct hash128 alias = hash128(storage_hash_key(db), series, strlen(series));
    struct batch_series s = {.alias = alias, .raw = series, .raw_bytes = (uint32_t)strlen(series), .n = 1};
    struct batch_exemplar x = {
        .alias = alias, .raw = series, .raw_bytes = s.raw_bytes, .x = exemplar_of(r, labels, 1, t)};
    struct batch b = {.series = &s,
                      .n_series = sample,
                      .t = &t,
                      .v = &(double){1},
                      .n_samples = sample,
                      .exemplars = &x,
                      .n_exemplars = 1,
                      .resolve = resolve,
                      .resolve_arg = &ls};
    struct append_result result;
    assert_ok(storage_append(db, &b, &result));
    assert_ok(storage_wait(db, result.seq));
    return result;
}

static const char *ask_db(struct room *r, struct db *db)
{
    struct matcher m;
    struct exemplar_series *s;
    size_t n;
    assert_ok(matcher_init(&m, MATCH_NE, LABEL_NAME, STR("")));
    struct exemplar_selector selector = {&m, 1};
    assert_ok(storage_exemplars(db, &selector, 1, INT64_MIN, INT64_MAX, &r->arena, &s, &n));
    matcher_deinit(&m);
    return print(r, s, n);
}

static struct db *open_db(const char *dir, uint32_t max_exemplars)
{
    struct db *db;
    assert_ok(storage_open(
        &(struct storage_options){
            .path = dir, .wal_sync = WAL_SYNC_ALWAYS, .max_exemplars = max_exemplars, .wal_max_bytes = 20000},
        &db));
    return db;
}

static void test_crash_and_flush(void **state)
{
    struct room *r = *state;
    struct db *db = open_db(r->dir, 100);
    assert_int_equal(append(r, db, "__name__=a", true, "id=1", T0).exemplars, 1);
    const char *expected = "a {id=\"1\"}1@0;";
    for (int round = 0; round < 6; round++) {
        storage_abandon(db);
        db = open_db(r->dir, 100);
        assert_string_equal(ask_db(r, db), expected);
        if (round == 1) assert_ok(storage_flush(db));
        if (round != 3) continue;
        /* a log that is replayed over a file: nothing comes twice, the new one comes after */
        assert_int_equal(append(r, db, "__name__=a", true, "id=1", T0).exemplars, 1);
        assert_int_equal(append(r, db, "__name__=a", true, "id=2", T0 + 1).exemplars, 1);
        struct append_result late = append(r, db, "__name__=a", true, "id=3", T0);
        assert_int_equal(late.exemplars, 0);
        assert_int_equal(late.exemplars_late, 1);
        expected = "a {id=\"1\"}1@0 {id=\"2\"}1@1;";
    }
    struct buf out = {0};
    uint64_t faults;
    assert_ok(storage_close(db));
    assert_ok(storage_verify(NULL, r->dir, &out, &faults));
    assert_int_equal(faults, 0);
    buf_deinit(&out);
}

static void test_unknown_series(void **state)
{
    struct room *r = *state;
    struct db *db = open_db(r->dir, 100);
    struct append_result got = append(r, db, "__name__=a", false, "id=1", T0);
    assert_int_equal(got.exemplars + got.seq, 0);
    append(r, db, "__name__=a", true, "id=2", T0 + 1);
    assert_int_equal(append(r, db, "__name__=a", false, "id=3", T0 + 2).exemplars, 1);
    /* known by its labels, though not under the bytes of this sender */
    struct labels ls = labels_of(r, "__name__=a");
    struct batch_exemplar x = {.alias = {1, 2}, .x = exemplar_of(r, "id=4", 1, T0 + 3)};
    struct batch b = {.exemplars = &x, .n_exemplars = 1, .resolve = resolve, .resolve_arg = &ls};
    assert_ok(storage_append(db, &b, &got));
    assert_int_equal(got.exemplars, 1);
    assert_string_equal(ask_db(r, db), "a {id=\"2\"}1@1 {id=\"3\"}1@2 {id=\"4\"}1@3;");
    assert_ok(storage_close(db));
}

static size_t log_segments(const struct room *r)
{
    char dir[128];
    uint32_t *generations;
    size_t n;
    snprintf(dir, sizeof dir, "%s/wal", r->dir);
    assert_ok(wal_list(env_posix(), dir, &generations, &n));
    mem_free(generations);
    return n;
}

/* A log of nothing but exemplars is bounded, too: they go to the file. */
static void test_log_of_exemplars_only(void **state)
{
    struct room *r = *state;
    struct db *db = open_db(r->dir, 50);
    append(r, db, "__name__=a", true, "id=1", T0);
    assert_ok(storage_flush(db));
    for (int i = 0; i < 400; i++) {
        assert_int_equal(append(r, db, "__name__=a", false, "id=1", T0 + 1 + i).exemplars, 1);
        arena_reset(&r->arena);
    }
    assert_ok(storage_tick(db));
    struct storage_stats stats;
    storage_stats(db, &stats);
    assert_in_range(stats.wal_bytes, 0, 20000);
    const char *before = ask_db(r, db);
    storage_abandon(db);
    assert_in_range(log_segments(r), 0, 1); /* one if the flusher was at it in between */
    db = open_db(r->dir, 50);
    assert_string_equal(ask_db(r, db), before);
    storage_stats(db, &stats);
    assert_int_equal(stats.exemplars.exemplars, 50);
    assert_ok(storage_close(db));
}

static void test_off(void **state)
{
    struct room *r = *state;
    struct db *db = open_db(r->dir, 0);
    struct append_result got = append(r, db, "__name__=a", true, "id=1", T0);
    assert_int_equal(got.accepted, 1);
    assert_int_equal(got.exemplars, 0);
    assert_string_equal(ask_db(r, db), "");
    assert_ok(storage_close(db));
}

static void test_snapshot(void **state)
{
    struct room *r = *state;
    char dir[256], *name;
    struct db *db = open_db(r->dir, 100);
    append(r, db, "__name__=a", true, "id=1", T0);
    assert_ok(storage_snapshot(db, "s", &name));
    snprintf(dir, sizeof dir, "%s/snapshots/%s", r->dir, name);
    mem_free(name);
    append(r, db, "__name__=a", true, "id=2", T0 + 1);
    struct db *copy = open_db(dir, 100);
    assert_string_equal(ask_db(r, copy), "a {id=\"1\"}1@0;");
    assert_int_equal(append(r, copy, "__name__=a", true, "id=7", T0 + 9).exemplars, 1);
    storage_abandon(copy);
    copy = open_db(dir, 100);
    assert_string_equal(ask_db(r, copy), "a {id=\"1\"}1@0 {id=\"7\"}1@9;");
    assert_ok(storage_close(copy));
    assert_string_equal(ask_db(r, db), "a {id=\"1\"}1@0 {id=\"2\"}1@1;");
    assert_ok(storage_close(db));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_rules, setup, teardown),
        cmocka_unit_test_setup_teardown(test_without_time, setup, teardown),
        cmocka_unit_test_setup_teardown(test_length, setup, teardown),
        cmocka_unit_test_setup_teardown(test_order_of_equals, setup, teardown),
        cmocka_unit_test_setup_teardown(test_model, setup, teardown),
        cmocka_unit_test_setup_teardown(test_bytes_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(test_damage, setup, teardown),
        cmocka_unit_test_setup_teardown(test_crash_and_flush, setup, teardown),
        cmocka_unit_test_setup_teardown(test_unknown_series, setup, teardown),
        cmocka_unit_test_setup_teardown(test_log_of_exemplars_only, setup, teardown),
        cmocka_unit_test_setup_teardown(test_off, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshot, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
