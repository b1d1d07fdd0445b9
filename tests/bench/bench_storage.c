/*
 * bench_storage.c: the storage engine alone: CPU of appends, flushes and merges, memory and bytes on disk.
 *
 *   bench_storage DIR [hosts=100] [series per host=1104] [scrapes=240] [batch=5000]
 *
 * Makes a fleet as the bench's load generator does in shape: each host's series share timestamps with some
 * jitter, 56 % of them constant, the others counters and decimals. Prints one line per phase.
 */
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/storage.h"

#define T0 INT64_C(1767225600000)

static double cpu_seconds(void)
{
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    return (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) + (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
}

static double wall_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void ok(err e)
{
    if (e == NULL) return;
    fprintf(stderr, "bench_storage: %s\n", err_message(e));
    exit(1);
}

struct fleet {
    uint32_t hosts, per_host;
    struct batch_series *series;
    double *value;
    char *text; /* 128 bytes a series: its label bytes */
};

/* "metric\0host": the fixed labels are added. */
static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    const struct batch_series *s = (const struct batch_series *)arg + i;
    const char *metric = s->raw, *host = metric + strlen(metric) + 1, *mode = host + strlen(host) + 1;
    out->v = arena_alloc(a, 5 * sizeof *out->v);
    out->v[0] = (struct label){LABEL_NAME, str_of(metric)};
    out->v[1] = (struct label){STR("instance"), str_of(host)};
    out->v[2] = (struct label){STR("job"), STR("node")};
    out->v[3] = (struct label){STR("mode"), str_of(mode)};
    out->v[4] = (struct label){STR("dc"), STR("east")};
    out->n = 5;
    return NULL;
}

static void make_fleet(struct fleet *f, struct db *db)
{
    size_t n = (size_t)f->hosts * f->per_host;
    f->series = mem_zalloc(n * sizeof *f->series);
    f->value = mem_zalloc(n * sizeof *f->value);
    f->text = mem_zalloc(n * 128);
    for (size_t i = 0; i < n; i++) {
        char *at = f->text + i * 128;
        uint32_t k = (uint32_t)(i % f->per_host);
        int len = snprintf(at, 64, "node_some_metric_%u_total", k / 8) + 1;
        len += snprintf(at + len, 32, "host-%05u:9100", (unsigned)(i / f->per_host)) + 1;
        len += snprintf(at + len, 16, "mode%u", k % 8) + 1;
        f->series[i] = (struct batch_series){.raw = at, .raw_bytes = (uint32_t)len, .n = 1};
        f->series[i].alias = hash128(storage_hash_key(db), at, (size_t)len);
        f->value[i] = (double)(i % 977);
    }
}

/* The next value of a series: constant, counter or decimal by its number. */
static double next_value(struct fleet *f, struct rng *r, size_t i)
{
    uint32_t kind = (uint32_t)(i % 100);
    if (kind >= 56 && kind < 80) f->value[i] += (double)rng_below(r, 200);
    if (kind >= 80) f->value[i] = (double)rng_below(r, 100000) / 100;
    return f->value[i];
}

int main(int argc, char **argv)
{
    if (argc < 2) {
        fprintf(stderr, "usage: bench_storage DIR [hosts] [series per host] [scrapes] [batch]\n");
        return 2;
    }
    struct fleet f = {.hosts = argc > 2 ? (uint32_t)atoi(argv[2]) : 100,
                      .per_host = argc > 3 ? (uint32_t)atoi(argv[3]) : 1104};
    uint32_t scrapes = argc > 4 ? (uint32_t)atoi(argv[4]) : 240, batch = argc > 5 ? (uint32_t)atoi(argv[5]) : 5000;
    struct db *db;
    ok(storage_open(&(struct storage_options){.path = argv[1], .wal_sync = WAL_SYNC_ALWAYS}, &db));
    make_fleet(&f, db);
    size_t n = (size_t)f.hosts * f.per_host;
    int64_t *t = mem_alloc(batch * sizeof *t);
    double *v = mem_alloc(batch * sizeof *v);
    struct rng rng;
    rng_seed(&rng, 1);
    double slowest = 0;
    uint64_t samples = 0, last = 0;
    double cpu0 = cpu_seconds(), wall0 = wall_seconds(), generate = 0;
    for (uint32_t s = 0; s < scrapes; s++) {
        for (size_t at = 0; at < n; at += batch) {
            uint32_t m = (uint32_t)(n - at < batch ? n - at : batch);
            double g0 = cpu_seconds();
            for (uint32_t i = 0; i < m; i++) {
                uint64_t host = (at + i) / f.per_host;
                t[i] = T0 + (int64_t)s * 15000 + (int64_t)host * 100 + (int64_t)((host * 7 + s * 13) % 5);
                v[i] = next_value(&f, &rng, at + i);
            }
            generate += cpu_seconds() - g0;
            struct batch b = {.series = f.series + at,
                              .n_series = m,
                              .t = t,
                              .v = v,
                              .n_samples = m,
                              .resolve = resolve,
                              .resolve_arg = f.series + at,
                              .require_name = true};
            struct append_result r;
            double w0 = wall_seconds();
            ok(storage_append(db, &b, &r));
            double took = wall_seconds() - w0;
            if (took > slowest) slowest = took;
            samples += r.accepted;
            last = r.seq;
        }
        if (s == 0)
            printf("new series: %zu, %.2f CPU s per M, slowest append %.1f ms\n", n,
                   (cpu_seconds() - cpu0 - generate) / (double)n * 1e6, slowest * 1e3),
                slowest = 0;
    }
    ok(storage_wait(db, last));
    double cpu1 = cpu_seconds() - generate;
    printf("ingest: %llu samples, %.1f ns CPU a sample, %.2f s, slowest append %.1f ms\n", (unsigned long long)samples,
           (cpu1 - cpu0) / (double)samples * 1e9, wall_seconds() - wall0, slowest * 1e3);
    ok(storage_flush(db));
    printf("flush of the rest: %.1f ns CPU a sample in total\n",
           (cpu_seconds() - generate - cpu0) / (double)samples * 1e9);
    ok(storage_merge(db, -1));
    struct storage_stats st;
    storage_stats(db, &st);
    printf("merge: %.1f ns CPU a sample in total; %llu parts, %.3f bytes a sample\n",
           (cpu_seconds() - generate - cpu0) / (double)samples * 1e9, (unsigned long long)st.parts,
           (double)st.part_bytes / (double)st.part_samples);
    struct rusage u;
    getrusage(RUSAGE_SELF, &u);
    printf("peak RSS %ld MiB, heap now %zu MiB\n", u.ru_maxrss / 1024, mem_in_use() >> 20);
    ok(storage_close(db));
    return 0;
}
