/* What the tests of the executor share: a database in a temporary folder, series in short notation, queries in and JSON
 * out. */
#ifndef VARVE_TESTS_QUERY_DB_H
#define VARVE_TESTS_QUERY_DB_H

#include "tests/unit/testing.h"

#include <stdlib.h>
#include <unistd.h>

#include "query/parser.h"
#include "query/query.h"
#include "storage/base/alloc.h"
#include "storage/base/num.h"

struct query_db {
    char dir[64];
    struct db *db;
    struct query_engine *engine;
    struct query_notes notes; /* of the last query */
};

static inline void query_db_ok(err e)
{
    if (e != NULL) fail_msg("%s", err_message(e));
}

static inline void query_db_open(struct query_db *q, const struct query_options *options)
{
    *q = (struct query_db){0};
    snprintf(q->dir, sizeof q->dir, "/tmp/varve-test-query-XXXXXX");
    assert_non_null(mkdtemp(q->dir));
    query_db_ok(storage_open(&(struct storage_options){.path = q->dir,
                                                       .wal_sync = WAL_SYNC_OFF,
                                                       .retention_ms = INT64_C(100) * 365 * 86400000,
                                                       .future_ms = INT64_C(86400000)},
                             &q->db));
    struct query_options o = options ? *options : (struct query_options){0};
    o.db = q->db;
    o.experimental = true;
    q->engine = query_create(&o);
}

static inline void query_db_close(struct query_db *q)
{
    query_notes_deinit(&q->notes);
    query_destroy(q->engine);
    query_db_ok(storage_close(q->db));
    char command[128];
    snprintf(command, sizeof command, "rm -rf %s", q->dir);
    assert_int_equal(system(command), 0);
}

struct query_db_series {
    struct matcher *m;
    uint32_t n;
};

/* The series' text is a selector of equalities. */
static inline err query_db_labels(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    const struct query_db_series *s = arg;
    (void)i;
    out->v = arena_alloc(a, (s->n + 1) * sizeof *out->v);
    out->n = s->n;
    for (uint32_t k = 0; k < s->n; k++)
        out->v[k] = (struct label){arena_str(a, s->m[k].name), arena_str(a, s->m[k].value)};
    return NULL;
}

static inline void query_db_append_started(struct query_db *q, const char *series, const int64_t *t, const double *v,
                                           const str *hist, const int64_t *start, uint32_t n)
{
    struct arena a = {0};
    struct query_db_series s;
    query_db_ok(promql_parse_selector(str_of(series), &a, &s.m, &s.n));
    struct batch_series row = {.raw = series,
                               .raw_bytes = (uint32_t)strlen(series),
                               .alias = hash128(storage_hash_key(q->db), series, strlen(series)),
                               .n = n};
    struct batch b = {.series = &row,
                      .n_series = 1,
                      .t = t,
                      .v = v,
                      .hist = hist,
                      .start = start,
                      .n_samples = n,
                      .resolve = query_db_labels,
                      .resolve_arg = &s};
    struct append_result r;
    query_db_ok(storage_append(q->db, &b, &r));
    assert_int_equal(r.accepted, n);
    for (uint32_t k = 0; k < s.n; k++)
        matcher_deinit(&s.m[k]);
    arena_deinit(&a);
}

static inline void query_db_append(struct query_db *q, const char *series, const int64_t *t, const double *v,
                                   const str *hist, uint32_t n)
{
    query_db_append_started(q, series, t, v, hist, NULL, n);
}

/* values: "1 _ 2 stale 0+10x3" (0 10 20 30), one a step of step_ms from 0 on. */
static inline void query_db_load(struct query_db *q, int64_t step_ms, const char *series, const char *values)
{
    int64_t t[512];
    double v[512];
    uint32_t n = 0, at = 0;
    char *copy = mem_dup_str(str_of(values)), *save = NULL;
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
        double first = 0, grow = 0;
        int repeat = 0;
        bool stale = strcmp(word, "stale") == 0, gap = strcmp(word, "_") == 0;
        if (!stale && !gap && sscanf(word, "%lf%lfx%d", &first, &grow, &repeat) < 3) {
            repeat = 0;
            grow = 0;
            assert_true(num_parse_double(str_of(word), &first));
        }
        for (int k = 0; k <= repeat; k++, at++) {
            if (gap) continue;
            assert_true(n < 512);
            t[n] = at * step_ms;
            v[n++] = stale ? f64_from_bits(STALE_NAN_BITS) : (k ? first + k * grow : first);
        }
    }
    mem_free(copy);
    query_db_append(q, series, t, v, NULL, n);
}

/* Result, or "error <code>: <message>"; times in seconds; free with mem_free. step 0: instant at `start`. */
static inline char *query_db_run(struct query_db *q, const char *text, double start, double end, double step)
{
    struct query_request rq = {.text = str_of(text),
                               .start_ms = (int64_t)(start * 1000),
                               .end_ms = (int64_t)(end * 1000),
                               .step_ms = (int64_t)(step * 1000)};
    struct buf out = {0};
    query_notes_deinit(&q->notes);
    err e = query_run(q->engine, &rq, &out, &q->notes);
    if (e) {
        buf_clear(&out);
        buf_printf(&out, "error %s: %s", err_code_name(err_code(e)), err_message(e));
        err_free(e);
    }
    char *result = mem_dup_str(buf_as_str(&out));
    buf_deinit(&out);
    return result;
}

static inline void query_db_expect(struct query_db *q, const char *text, double start, double end, double step,
                                   const char *want)
{
    char *got = query_db_run(q, text, start, end, step);
    if (strcmp(got, want) != 0) fail_msg("query: %s\ngot:  %s\nwant: %s", text, got, want);
    mem_free(got);
}

/* The `result` member of an instant query. */
static inline void expect_at(struct query_db *q, double at, const char *text, const char *want)
{
    char *got = query_db_run(q, text, at, at, 0);
    const char *result = strstr(got, "\"result\":");
    size_t n = result ? strlen(result + 9) - 1 : 0; /* without the closing brace */
    if (!result || n != strlen(want) || memcmp(result + 9, want, n) != 0)
        fail_msg("query: %s\ngot:  %s\nwant: %s", text, got, want);
    mem_free(got);
}

/* The query fails with this code, and the message contains `part`. */
static inline void expect_failure(struct query_db *q, double at, const char *text, const char *code, const char *part)
{
    char *got = query_db_run(q, text, at, at, 0);
    char head[64];
    snprintf(head, sizeof head, "error %s: ", code);
    if (strncmp(got, head, strlen(head)) != 0 || !strstr(got, part))
        fail_msg("query: %s\ngot:  %s\nwant: %s...%s", text, got, head, part);
    mem_free(got);
}

#endif
