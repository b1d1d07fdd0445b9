/*
 * test_db.c: the database as its callers see it: append, read back, reopen, flush, delete, label queries, snapshots.
 * Real files in a temporary folder. The simulator (test_sim.c) covers crashes and failing disks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "storage/storage.h"

#define T0 INT64_C(1767225600000) /* 2026-01-01T00:00:00Z */

struct fixture {
    char dir[64];
    struct db *db;
};

static void ok(err e)
{
    if (e != NULL) fail_msg("%s", err_message(e));
}

static void open_db(struct fixture *f)
{
    ok(storage_open(&(struct storage_options){.path = f->dir, .wal_sync = WAL_SYNC_ALWAYS}, &f->db));
}

static int setup(void **state)
{
    struct fixture *f = mem_zalloc(sizeof *f);
    snprintf(f->dir, sizeof f->dir, "/tmp/varve-test-db-XXXXXX");
    assert_non_null(mkdtemp(f->dir));
    open_db(f);
    *state = f;
    return 0;
}

static int teardown(void **state)
{
    struct fixture *f = *state;
    if (f->db != NULL) ok(storage_close(f->db));
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", f->dir);
    int rc = system(command);
    mem_free(f);
    return rc;
}

/* One series of a batch: labels as "name=value,name=value". */
static err resolve_text(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    const struct batch_series *series = arg;
    str text = {series[i].raw, series[i].raw_bytes};
    out->v = arena_alloc(a, 32 * sizeof *out->v);
    out->n = 0;
    while (text.n > 0) {
        const char *comma = memchr(text.p, ',', text.n);
        size_t n = comma == NULL ? text.n : (size_t)(comma - text.p);
        const char *equal = memchr(text.p, '=', n);
        out->v[out->n++] =
            (struct label){{text.p, (size_t)(equal - text.p)}, {equal + 1, n - (size_t)(equal - text.p) - 1}};
        text.p += n + (comma != NULL);
        text.n -= n + (comma != NULL);
    }
    return NULL;
}

static struct append_result append_started(struct db *db, const char *labels, const int64_t *t, const double *v,
                                           const str *hist, const int64_t *start, uint32_t n)
{
    struct batch_series series = {.raw = labels, .raw_bytes = (uint32_t)strlen(labels), .n = n};
    series.alias = hash128(storage_hash_key(db), labels, strlen(labels));
    struct batch b = {.series = &series,
                      .n_series = 1,
                      .t = t,
                      .v = v,
                      .hist = hist,
                      .start = start,
                      .n_samples = n,
                      .resolve = resolve_text,
                      .resolve_arg = &series,
                      .require_name = true};
    struct append_result r;
    ok(storage_append(db, &b, &r));
    ok(storage_wait(db, r.seq));
    return r;
}

static struct append_result append(struct db *db, const char *labels, const int64_t *t, const double *v,
                                   const str *hist, uint32_t n)
{
    return append_started(db, labels, t, v, hist, NULL, n);
}

static void put(struct db *db, const char *labels, int64_t t, double v)
{
    struct append_result r = append(db, labels, &t, &v, NULL, 1);
    assert_null(r.first);
    assert_int_equal(r.accepted, 1);
}

struct answer {
    size_t n_series, n;
    int64_t t[4096];
    double v[4096];
    int64_t start[4096];
    char labels[4096];
};

/* All samples of all series that match name op value, series after series. */
static void query(struct db *db, enum match_op op, const char *name, const char *value, int64_t t_min, int64_t t_max,
                  struct answer *out)
{
    *out = (struct answer){0};
    struct matcher m;
    ok(matcher_init(&m, op, str_of(name), str_of(value)));
    struct selection *s;
    ok(storage_select(db, &m, 1, &(struct select_options){.t_min = t_min, .t_max = t_max}, &s));
    struct reader *r = reader_create(s);
    struct arena a = {0};
    struct buf text = {0};
    out->n_series = selection_count(s);
    for (size_t i = 0; i < out->n_series; i++) {
        struct labels ls;
        struct samples samples;
        ok(reader_labels(r, i, &a, &ls));
        labels_print(&ls, &text);
        buf_str(&text, STR(";"));
        ok(reader_samples(r, i, t_min, t_max, &samples));
        for (size_t k = 0; k < samples.n; k++, out->n++) {
            out->t[out->n] = samples.t[k];
            out->v[out->n] = samples.v[k];
            out->start[out->n] = samples.start != NULL ? samples.start[k] : 0;
        }
    }
    buf_u8(&text, 0);
    snprintf(out->labels, sizeof out->labels, "%s", (char *)text.data);
    buf_deinit(&text);
    arena_deinit(&a);
    reader_destroy(r);
    selection_destroy(s);
    matcher_deinit(&m);
}

static void query_all(struct db *db, const char *metric, struct answer *out)
{
    query(db, MATCH_EQ, "__name__", metric, INT64_MIN, INT64_MAX, out);
}

static void reopen(struct fixture *f, bool crash)
{
    if (crash)
        storage_abandon(f->db);
    else
        ok(storage_close(f->db));
    open_db(f);
}

static void test_read_your_writes(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    put(f->db, "__name__=up,job=a,instance=h1", T0, 1);
    put(f->db, "instance=h1,job=a,__name__=up", T0 + 1000, 0); /* another order, the same series */
    put(f->db, "__name__=up,job=a,instance=h2", T0, 5);
    query_all(f->db, "up", &a);
    assert_int_equal(a.n_series, 2);
    assert_int_equal(a.n, 3);
    assert_string_equal(a.labels, "up{instance=\"h1\", job=\"a\"};up{instance=\"h2\", job=\"a\"};");
    query(f->db, MATCH_RE, "instance", "h[2-9]", T0, T0, &a);
    assert_int_equal(a.n_series, 1);
    assert_true(a.v[0] == 5);
    query(f->db, MATCH_NE, "instance", "h2", T0, T0 + 999, &a);
    assert_int_equal(a.n, 1);
    query(f->db, MATCH_EQ, "instance", "", T0, T0, &a);
    assert_int_equal(a.n_series, 0);
    query(f->db, MATCH_EQ, "absent", "", T0, T0, &a);
    assert_int_equal(a.n_series, 2);
}

static void test_survives_reopen_and_crash(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    static const uint64_t bits[] = {STALE_NAN_BITS,
                                    UINT64_C(0x7ff8000000000001),
                                    UINT64_C(0x8000000000000000),
                                    UINT64_C(0x7ff0000000000000),
                                    1,
                                    UINT64_C(0x4340000000000001)};
    for (size_t i = 0; i < ARRAY_LEN(bits); i++)
        put(f->db, "__name__=odd", T0 + (int64_t)i, f64_from_bits(bits[i]));
    for (int round = 0; round < 4; round++) {
        reopen(f, round % 2 == 0); /* a crash first: from the log; then a close: from a part; and both once more */
        query_all(f->db, "odd", &a);
        assert_int_equal(a.n, ARRAY_LEN(bits));
        for (size_t i = 0; i < ARRAY_LEN(bits); i++)
            assert_true(f64_bits(a.v[i]) == bits[i]);
    }
}

static void test_last_write_wins(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    const char *series = "__name__=x";
    put(f->db, series, T0, 1);
    put(f->db, series, T0 + 10, 1);
    ok(storage_flush(f->db));
    put(f->db, series, T0, 2); /* over a part */
    query_all(f->db, "x", &a);
    assert_int_equal(a.n, 2);
    assert_true(a.v[0] == 2);
    ok(storage_flush(f->db)); /* part over part */
    put(f->db, series, T0 + 5, 7);
    put(f->db, series, T0 + 5, 8); /* within the head */
    query_all(f->db, "x", &a);
    assert_int_equal(a.n, 3);
    assert_true(a.v[0] == 2 && a.v[1] == 8 && a.v[2] == 1);
    ok(storage_flush(f->db));
    ok(storage_merge(f->db, -1));
    query_all(f->db, "x", &a);
    assert_int_equal(a.n, 3);
    assert_true(a.v[0] == 2 && a.v[1] == 8 && a.v[2] == 1);
    struct storage_stats stats;
    storage_stats(f->db, &stats);
    assert_int_equal(stats.parts, 1);
}

static void test_any_year(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    const int64_t times[] = {
        0, 1, INT64_C(86400000) * 365 * 10, T0, T0 - INT64_C(86400000) * 31, T0 + INT64_C(86400000) * 400};
    for (size_t i = 0; i < ARRAY_LEN(times); i++)
        put(f->db, "__name__=old", times[i], (double)i);
    for (int round = 0; round < 2; round++) {
        query_all(f->db, "old", &a);
        assert_int_equal(a.n, ARRAY_LEN(times));
        assert_true(a.t[0] == 0 && a.v[5] == 5 && a.v[3] == 4);
        ok(storage_flush(f->db));
    }
    struct storage_stats stats;
    storage_stats(f->db, &stats);
    assert_int_equal(stats.parts, 5); /* months: 1970-01, 1979-12, 2025-12, 2026-01, 2027-02 */
}

static void test_time_window(void **state)
{
    struct fixture *f = *state;
    ok(storage_close(f->db));
    struct storage_options o = {.path = f->dir, .retention_ms = 86400000, .future_ms = 3600000};
    ok(storage_open(&o, &f->db));
    int64_t now = env_posix()->ops->now_ms(env_posix());
    int64_t t[] = {now - 2 * 86400000, now, now + 2 * 3600000};
    double v[] = {1, 2, 3};
    struct append_result r = append(f->db, "__name__=w", t, v, NULL, 3);
    assert_int_equal(r.accepted, 1);
    assert_int_equal(r.too_old, 1);
    assert_int_equal(r.too_new, 1);
    assert_non_null(strstr(err_message(r.first), "retention"));
    err_free(r.first);
}

static void test_rejects_bad_labels(void **state)
{
    struct fixture *f = *state;
    static const char *bad[] = {"job=a", "__name__=a,x=1,x=2", "__name__=a,=v", "__name__=a,b=\xff"};
    int64_t t = T0;
    double v = 1;
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        struct append_result r = append(f->db, bad[i], &t, &v, NULL, 1);
        assert_int_equal(r.accepted, 0);
        assert_int_equal(r.bad_labels, 1);
        assert_non_null(r.first);
        assert_true(r.seq == 0);
        err_free(r.first);
    }
}

static bool collect(void *arg, str s)
{
    strncat(arg, s.p, s.n);
    strcat(arg, " ");
    return true;
}

static const char *values_of(struct db *db, const char *name, const char *metric, int64_t t_min, int64_t t_max)
{
    static char text[4096];
    text[0] = '\0';
    struct select_options o = {.t_min = t_min, .t_max = t_max};
    struct matcher m;
    ok(matcher_init(&m, MATCH_EQ, LABEL_NAME, str_of(metric == NULL ? "" : metric)));
    size_t n = metric != NULL;
    ok(name == NULL ? storage_label_names(db, &m, n, &o, collect, text)
                    : storage_label_values(db, str_of(name), &m, n, &o, collect, text));
    matcher_deinit(&m);
    return text;
}

static void test_label_queries(void **state)
{
    struct fixture *f = *state;
    put(f->db, "__name__=b,job=z,zone=1", T0, 1);
    put(f->db, "__name__=a,job=y", T0 + 1000, 1);
    for (int round = 0; round < 3; round++) { /* head; part; part and head */
        assert_string_equal(values_of(f->db, "__name__", NULL, INT64_MIN, INT64_MAX), "a b ");
        assert_string_equal(values_of(f->db, "job", NULL, INT64_MIN, INT64_MAX), "y z ");
        assert_string_equal(values_of(f->db, "job", "a", INT64_MIN, INT64_MAX), "y ");
        assert_string_equal(values_of(f->db, NULL, NULL, INT64_MIN, INT64_MAX), "__name__ job zone ");
        assert_string_equal(values_of(f->db, NULL, "a", INT64_MIN, INT64_MAX), "__name__ job ");
        assert_string_equal(values_of(f->db, "job", NULL, T0 + 100000000, INT64_MAX), "");
        assert_string_equal(values_of(f->db, "nothing", NULL, INT64_MIN, INT64_MAX), "");
        if (round == 0) ok(storage_flush(f->db));
        if (round == 1) put(f->db, "__name__=a,job=y", T0 + 2000, 1);
    }
}

/* So many that lists are walked rather than series. */
static void test_label_queries_of_many_series(void **state)
{
    struct fixture *f = *state;
    char labels[64];
    for (int i = 0; i < 9000; i++) {
        snprintf(labels, sizeof labels, "__name__=many,g=%c,i=%d", 'a' + i % 3, i);
        put(f->db, labels, T0, 1);
    }
    put(f->db, "__name__=few,g=d,other=1", T0, 1);
    put(f->db, "__name__=many,g=e,late=1", T0 + 60000, 1);
    for (int round = 0; round < 2; round++) { /* head; part, the second time as it was remembered */
        for (int again = 0; again < 2; again++) {
            assert_string_equal(values_of(f->db, "g", "many", INT64_MIN, INT64_MAX), "a b c e ");
            assert_string_equal(values_of(f->db, "g", "few", INT64_MIN, INT64_MAX), "d ");
            assert_string_equal(values_of(f->db, NULL, "many", INT64_MIN, INT64_MAX), "__name__ g i late ");
            assert_string_equal(values_of(f->db, "other", "many", INT64_MIN, INT64_MAX), "");
        }
        if (round == 0) assert_string_equal(values_of(f->db, "g", "many", INT64_MIN, T0), "a b c ");
        if (round == 0) ok(storage_flush(f->db));
    }
}

static void test_delete(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    for (int i = 0; i < 10; i++) {
        put(f->db, "__name__=d,k=1", T0 + i, i);
        put(f->db, "__name__=d,k=2", T0 + i, i);
    }
    struct matcher m;
    ok(matcher_init(&m, MATCH_EQ, STR("k"), STR("1")));
    ok(storage_delete(f->db, &m, 1, T0 + 3, T0 + 5));
    for (int round = 0; round < 3; round++) {
        query(f->db, MATCH_EQ, "k", "1", INT64_MIN, INT64_MAX, &a);
        assert_int_equal(a.n, 7);
        query(f->db, MATCH_EQ, "k", "2", INT64_MIN, INT64_MAX, &a);
        assert_int_equal(a.n, 10);
        if (round == 0) reopen(f, true);
        if (round == 1) ok(storage_merge(f->db, -1));
    }
    put(f->db, "__name__=d,k=1", T0 + 4, 44); /* written after the delete: it stays */
    query(f->db, MATCH_EQ, "k", "1", T0 + 4, T0 + 4, &a);
    assert_int_equal(a.n, 1);
    ok(storage_delete(f->db, &m, 1, INT64_MIN, INT64_MAX));
    query(f->db, MATCH_EQ, "k", "1", INT64_MIN, INT64_MAX, &a);
    assert_int_equal(a.n_series, 0);
    assert_string_equal(values_of(f->db, "k", NULL, INT64_MIN, INT64_MAX), "2 ");
    ok(storage_merge(f->db, -1));
    assert_string_equal(values_of(f->db, "k", NULL, INT64_MIN, INT64_MAX), "2 ");
    matcher_deinit(&m);
}

static void test_histograms(void **state)
{
    struct fixture *f = *state;
    struct hist_span span = {0, 2};
    double counts[] = {3, 4};
    struct hist h = {.schema = 2,
                     .count = 7,
                     .sum = 12.5,
                     .n_positive_spans = 1,
                     .positive_spans = &span,
                     .n_positive = 2,
                     .positive = counts};
    ok(hist_validate(&h));
    struct buf blob = {0};
    hist_encode(&h, &blob);
    int64_t t[] = {T0, T0 + 1, T0 + 2};
    double v[] = {1, 0, 3};
    str hist[] = {{0}, buf_as_str(&blob), {0}};
    append(f->db, "__name__=h", t, v, hist, 3);
    for (int round = 0; round < 3; round++) {
        struct matcher m;
        ok(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("h")));
        struct selection *s;
        ok(storage_select(f->db, &m, 1, &(struct select_options){.t_min = T0, .t_max = T0 + 9}, &s));
        struct reader *r = reader_create(s);
        struct samples out;
        ok(reader_samples(r, 0, T0, T0 + 9, &out));
        assert_int_equal(out.n, 3);
        assert_non_null(out.hist);
        assert_true(out.v[0] == 1 && out.v[1] == 12.5 && out.v[2] == 3);
        assert_true(str_eq(out.hist[1], buf_as_str(&blob)));
        assert_true(out.hist[0].n == 0 && out.hist[2].n == 0);
        reader_destroy(r);
        selection_destroy(s);
        matcher_deinit(&m);
        reopen(f, round == 0);
    }
    buf_deinit(&blob);
}

static void test_snapshot(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    put(f->db, "__name__=s", T0, 1);
    char *name;
    ok(storage_snapshot(f->db, "one", &name));
    assert_string_equal(name, "one");
    mem_free(name);
    put(f->db, "__name__=s", T0 + 1, 2);
    char path[256];
    snprintf(path, sizeof path, "%s/snapshots/one", f->dir);
    struct db *copy;
    ok(storage_open(&(struct storage_options){.path = path}, &copy));
    query_all(copy, "s", &a);
    assert_int_equal(a.n, 1);
    storage_abandon(copy);
    err e = storage_snapshot(f->db, "one", &name);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
    e = storage_snapshot(f->db, "../x", &name);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
}

static void count_names(void *arg, str name)
{
    assert_true(name.n > 0);
    ++*(size_t *)arg;
}

static void test_snapshots_expire(void **state)
{
    struct fixture *f = *state;
    static const char *const given[] = {"20200229235959-0000000000000001", "20200301000000-0000000000000002", "mine",
                                        "2020022923595x-00", "20200229235959"};
    char *name;
    size_t removed, n = 0;
    put(f->db, "__name__=s", T0, 1);
    for (size_t i = 0; i < ARRAY_LEN(given); i++) {
        ok(storage_snapshot(f->db, given[i], &name));
        mem_free(name);
    }
    int64_t now = env_posix()->ops->now_ms(env_posix());
    ok(storage_snapshot(f->db, NULL, &name));
    assert_int_equal(strlen(name), 31);
    ok(storage_snapshots_remove(f->db, now - 1000, &removed)); /* the new one's name says when it was taken */
    assert_int_equal(removed, 2);
    ok(storage_snapshots_remove(f->db, now + 1000, &removed));
    assert_int_equal(removed, 1);
    mem_free(name);
    ok(storage_snapshot_list(f->db, count_names, &n)); /* names that someone chose tell no time */
    assert_int_equal(n, 3);
    ok(storage_snapshot(f->db, given[1], &name));
    mem_free(name);
    ok(storage_snapshots_remove(f->db, INT64_C(1583020800000), &removed)); /* 2020-03-01T00:00:00Z */
    assert_int_equal(removed, 0);
    ok(storage_snapshots_remove(f->db, INT64_C(1583020800001), &removed));
    assert_int_equal(removed, 1);
    ok(storage_snapshots_remove(f->db, INT64_MAX, &removed));
    assert_int_equal(removed, 3);
}

static void test_second_process_is_refused(void **state)
{
    struct fixture *f = *state;
    struct db *other;
    err e = storage_open(&(struct storage_options){.path = f->dir}, &other);
    assert_int_equal(err_code(e), ERR_LOCKED);
    assert_non_null(strstr(err_message(e), f->dir));
    err_free(e);
}

static void test_covered_runs(void **state)
{
    struct fixture *f = *state;
    enum { N = 3000 };
    static int64_t t[N];
    static double v[N];
    for (int i = 0; i < N; i++) {
        t[i] = T0 + i * 1000;
        v[i] = i % 1000;
    }
    append(f->db, "__name__=r", t, v, NULL, N);
    ok(storage_flush(f->db));
    put(f->db, "__name__=r", T0 + N * 1000, 5);
    struct matcher m;
    ok(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("r")));
    struct selection *s;
    ok(storage_select(f->db, &m, 1, &(struct select_options){.t_min = 0, .t_max = INT64_MAX}, &s));
    struct reader *r = reader_create(s);
    const struct sample_run *runs;
    size_t n, covered = 0, counted = 0;
    ok(reader_runs(r, 0, T0, INT64_MAX, &runs, &n));
    double increase = 0;
    for (size_t i = 0; i < n; i++) {
        covered += runs[i].covered;
        counted += runs[i].covered ? runs[i].n : 0;
        if (runs[i].covered) increase += runs[i].last - runs[i].first + runs[i].resets;
    }
    assert_true(covered >= 1);
    assert_int_equal(counted, N);
    assert_true(increase > 0);
    assert_false(runs[n - 1].covered);
    reader_destroy(r);
    selection_destroy(s);
    matcher_deinit(&m);
}

/* What the next test expects of its series at each stage. */
static void check_starts(struct db *db, const int64_t *t, const int64_t *start, size_t n)
{
    static struct answer a;
    query_all(db, "st", &a);
    assert_int_equal(a.n, n);
    for (size_t i = 0; i < n; i++) {
        assert_true(a.t[i] == t[i]);
        assert_true(a.start[i] == start[i]);
    }
    query(db, MATCH_EQ, "__name__", "st", t[2], t[n - 1], &a); /* a range cuts a block */
    assert_int_equal(a.n, n - 2);
    for (size_t i = 2; i < n; i++)
        assert_true(a.start[i - 2] == start[i]);
}

/* Start timestamps come back from the head, the log, a part and a merged part; the last write's counts. */
static void test_start_timestamps(void **state)
{
    struct fixture *f = *state;
    enum { N = 300 };
    int64_t t[N], start[N];
    double v[N];
    for (int i = 0; i < N; i++) {
        t[i] = T0 + i * 1000;
        v[i] = i;
        start[i] = i % 7 == 3 ? 0 : i % 50 == 0 ? t[i] : T0 - 5 + i / 40;
    }
    start[8] = INT64_MIN;
    start[9] = INT64_MAX;
    append_started(f->db, "__name__=st", t, v, NULL, start, N);
    check_starts(f->db, t, start, N);
    reopen(f, true);
    check_starts(f->db, t, start, N);
    reopen(f, false); /* in a part now */
    check_starts(f->db, t, start, N);
    struct append_result r = append(f->db, "__name__=st", t + 10, v + 10, NULL, 5); /* the later write has none */
    assert_null(r.first);
    memset(start + 10, 0, 5 * sizeof *start);
    check_starts(f->db, t, start, N);
    start[20] = 77;
    append_started(f->db, "__name__=st", t + 20, v + 20, NULL, start + 20, 1);
    check_starts(f->db, t, start, N);
    ok(storage_flush(f->db));
    check_starts(f->db, t, start, N);
    ok(storage_merge(f->db, -1));
    check_starts(f->db, t, start, N);
    reopen(f, true);
    check_starts(f->db, t, start, N);
    struct matcher m;
    ok(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("st")));
    ok(storage_delete(f->db, &m, 1, t[N - 100], INT64_MAX));
    matcher_deinit(&m);
    check_starts(f->db, t, start, N - 100);
    ok(storage_merge(f->db, -1));
    check_starts(f->db, t, start, N - 100);
}

/* Histograms carry them too, beside floats; and no block with start timestamps is offered as covered. */
static void test_starts_of_histograms(void **state)
{
    struct fixture *f = *state;
    enum { N = 600 };
    static int64_t t[N], start[N];
    static double v[N];
    static str hist[N];
    struct hist h = {.schema = 1, .count = 0, .sum = 12.5};
    struct buf blob = {0};
    hist_encode(&h, &blob);
    for (int i = 0; i < N; i++) {
        t[i] = T0 + i * 1000;
        v[i] = i;
        start[i] = i % 4 == 0 ? 0 : t[i] - 999;
        hist[i] = i % 3 == 0 ? buf_as_str(&blob) : (str){0};
    }
    append_started(f->db, "__name__=st", t, v, hist, start, N);
    check_starts(f->db, t, start, N);
    reopen(f, true);
    check_starts(f->db, t, start, N);
    reopen(f, false);
    check_starts(f->db, t, start, N);
    struct matcher m;
    ok(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("st")));
    struct selection *s;
    ok(storage_select(f->db, &m, 1, &(struct select_options){.t_min = 0, .t_max = INT64_MAX}, &s));
    struct reader *r = reader_create(s);
    const struct sample_run *runs;
    size_t n;
    ok(reader_runs(r, 0, T0, INT64_MAX, &runs, &n));
    for (size_t i = 0; i < n; i++)
        assert_false(runs[i].covered);
    reader_destroy(r);
    selection_destroy(s);
    matcher_deinit(&m);
    buf_deinit(&blob);
}

/* The replay of a log writes a part because the head is too large; what is deleted then stays deleted, though the
 * delete is applied and forgotten before the log is read once more. */
static void test_delete_after_large_replay(void **state)
{
    struct fixture *f = *state;
    static struct answer a;
    put(f->db, "__name__=gone", T0, 1);
    storage_abandon(f->db);
    ok(storage_open(&(struct storage_options){.path = f->dir, .wal_sync = WAL_SYNC_ALWAYS, .head_max_bytes = 1},
                    &f->db));
    query_all(f->db, "gone", &a);
    assert_int_equal(a.n, 1);
    struct matcher m;
    ok(matcher_init(&m, MATCH_EQ, LABEL_NAME, STR("gone")));
    ok(storage_delete(f->db, &m, 1, INT64_MIN, INT64_MAX));
    matcher_deinit(&m);
    ok(storage_merge(f->db, -1));
    reopen(f, true);
    query_all(f->db, "gone", &a);
    assert_int_equal(a.n, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_read_your_writes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_survives_reopen_and_crash, setup, teardown),
        cmocka_unit_test_setup_teardown(test_last_write_wins, setup, teardown),
        cmocka_unit_test_setup_teardown(test_any_year, setup, teardown),
        cmocka_unit_test_setup_teardown(test_time_window, setup, teardown),
        cmocka_unit_test_setup_teardown(test_rejects_bad_labels, setup, teardown),
        cmocka_unit_test_setup_teardown(test_label_queries, setup, teardown),
        cmocka_unit_test_setup_teardown(test_label_queries_of_many_series, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete, setup, teardown),
        cmocka_unit_test_setup_teardown(test_histograms, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshot, setup, teardown),
        cmocka_unit_test_setup_teardown(test_snapshots_expire, setup, teardown),
        cmocka_unit_test_setup_teardown(test_second_process_is_refused, setup, teardown),
        cmocka_unit_test_setup_teardown(test_covered_runs, setup, teardown),
        cmocka_unit_test_setup_teardown(test_delete_after_large_replay, setup, teardown),
        cmocka_unit_test_setup_teardown(test_start_timestamps, setup, teardown),
        cmocka_unit_test_setup_teardown(test_starts_of_histograms, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
