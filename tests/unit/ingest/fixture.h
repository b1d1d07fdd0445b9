/*
 * fixture.h: a real database in a temp folder with the ingest room on top, for the tests of this folder.
 * Everything stored is looked at through ingest_export.
 */
#ifndef VARVE_TESTS_INGEST_FIXTURE_H
#define VARVE_TESTS_INGEST_FIXTURE_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

#include "ingest/ingest.h"
#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"

#define T0 INT64_C(1749999600000)

struct fixture {
    char path[64];
    struct db *db;
    struct ingest *in;
    struct ingest_scratch *scratch;
    struct ingest_reply reply; /* of the last post */
    struct buf dump;           /* of the last dump, NUL-terminated */
};

__attribute__((unused)) static void fixture_open(struct fixture *f, int64_t retention_ms, int64_t future_ms,
                                                 size_t max_body_raw)
{
    *f = (struct fixture){.path = "/tmp/varve-ingest-XXXXXX"};
    assert_non_null(mkdtemp(f->path));
    struct storage_options o = {.path = f->path,
                                .retention_ms = retention_ms,
                                .future_ms = future_ms,
                                .wal_sync = WAL_SYNC_OFF,
                                .max_exemplars = 1000};
    err e = storage_open(&o, &f->db);
    if (e) fail_msg("open: %s", err_message(e));
    struct ingest_options io = {.db = f->db, .max_body_raw = max_body_raw};
    f->in = ingest_create(&io);
    f->scratch = ingest_scratch_create(f->in);
}

__attribute__((unused)) static void fixture_close(struct fixture *f)
{
    char command[128];
    buf_deinit(&f->reply.body);
    buf_deinit(&f->dump);
    ingest_scratch_destroy(f->scratch);
    ingest_destroy(f->in);
    storage_abandon(f->db);
    snprintf(command, sizeof command, "rm -rf %s", f->path);
    assert_int_equal(system(command), 0);
}

/* Sends one request; the reply stays in the fixture, its body NUL-terminated. Returns the status. */
__attribute__((unused)) static int post_full(struct fixture *f, const struct ingest_request *rq)
{
    buf_deinit(&f->reply.body);
    ingest_handle(f->in, f->scratch, rq, &f->reply);
    buf_u8(&f->reply.body, 0);
    if (f->reply.status == 204) assert_int_equal(f->reply.body.n, 1);
    return f->reply.status;
}

__attribute__((unused)) static int post(struct fixture *f, enum ingest_format format, str body)
{
    struct ingest_request rq = {.format = format, .body = body};
    if (format == INGEST_REMOTE_WRITE) rq.content_encoding = STR("identity");
    return post_full(f, &rq);
}

__attribute__((unused)) static bool keep(void *arg, str bytes)
{
    buf_str(arg, bytes);
    return true;
}

/* All samples of a metric (all metrics: NULL), as JSON lines in storage's order. */
__attribute__((unused)) static const char *dump(struct fixture *f, const char *metric)
{
    struct matcher m;
    if (metric)
        assert_null(matcher_init(&m, MATCH_EQ, LABEL_NAME, str_of(metric)));
    else
        assert_null(matcher_init(&m, MATCH_RE, LABEL_NAME, STR(".+")));
    buf_clear(&f->dump);
    err e = ingest_export(
        f->db,
        &(struct ingest_export){
            .sets = &(struct match_set){&m, 1}, .n_sets = 1, .t_min = LIMIT_TIME_MIN, .t_max = LIMIT_TIME_MAX},
        keep, &f->dump);
    if (e) fail_msg("export: %s", err_message(e));
    matcher_deinit(&m);
    buf_u8(&f->dump, 0);
    return (const char *)f->dump.data;
}

/* The exemplars of a metric: series labels value@time (relative to T0, ? without a time of its own) ...; */
__attribute__((unused)) static const char *dump_exemplars(struct fixture *f, const char *metric)
{
    struct matcher m;
    struct arena a = {0};
    struct exemplar_series *s;
    size_t n;
    assert_null(matcher_init(&m, MATCH_EQ, LABEL_NAME, str_of(metric)));
    struct exemplar_selector selector = {&m, 1};
    assert_null(storage_exemplars(f->db, &selector, 1, INT64_MIN, INT64_MAX, &a, &s, &n));
    matcher_deinit(&m);
    buf_clear(&f->dump);
    for (size_t i = 0; i < n; i++) {
        labels_print(&s[i].labels, &f->dump);
        for (size_t k = 0; k < s[i].n; k++) {
            buf_str(&f->dump, STR(" "));
            labels_print(&s[i].v[k].labels, &f->dump);
            buf_printf(&f->dump, "%g@%lld%s", s[i].v[k].v, (long long)(s[i].v[k].t - T0), s[i].v[k].has_t ? "" : "?");
        }
        buf_str(&f->dump, STR(";"));
    }
    buf_u8(&f->dump, 0);
    arena_deinit(&a);
    return (const char *)f->dump.data;
}

/* How often the last dump has this text. (strstr in a loop is quadratic under ASan.) */
__attribute__((unused)) static size_t dump_count(const struct fixture *f, str text)
{
    size_t n = 0;
    const char *at = (const char *)f->dump.data, *end = at + f->dump.n;
    while ((at = memmem(at, (size_t)(end - at), text.p, text.n)) != NULL) {
        at += text.n;
        n++;
    }
    return n;
}

#define assert_reply_has(f, text)                                                                                      \
    do {                                                                                                               \
        if (strstr((const char *)(f)->reply.body.data, (text)) == NULL)                                                \
            fail_msg("`%s` is not in %s", (text), (const char *)(f)->reply.body.data);                                 \
    } while (0)

__attribute__((unused)) static uint64_t test_seed(struct rng *rng)
{
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    rng_seed(rng, seed);
    return seed;
}

#endif
