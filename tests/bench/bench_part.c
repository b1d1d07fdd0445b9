/*
 * bench_part.c: what part files cost: bytes a sample, and CPU to write, find, read and merge.
 *
 *   bench_part [hosts [samples [parts]]]    default 100 240 4
 *
 * A synthetic fleet: each host has 1,104 series of 7 labels with 15 s between samples, some milliseconds of
 * jitter, the same for all series of a host. 56 % of the series are constant, the others are counters and
 * decimals. `parts` such parts follow each other in time and are merged in the end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/rng.h"
#include "storage/column_value.h"
#include "storage/merge.h"
#include "storage/part.h"

#define METRICS 138 /* each has 8 series a host */
#define COMBINATIONS 8
#define PAIRS 7
#define MONTH 646 /* November 2023 */
#define T0 INT64_C(1698796800000)
#define STEP_MS 15000
#define CACHE_BYTES ((size_t)32 << 20)

static const char *const names[PAIRS] = {"__name__", "cpu", "instance", "job", "mode", "rack", "region"};

struct fleet {
    unsigned hosts, samples, parts;
    struct arena arena;
    str *symbols;
    uint32_t n_symbols;
    int64_t **t; /* of each host */
    double *v;   /* of each series: its last value */
};

static double cpu_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

static void give_up(err e)
{
    if (e == NULL) return;
    fprintf(stderr, "bench_part: %s\n", err_message(e));
    exit(1);
}

/* ---- the fleet ---------------------------------------------------------------------------------------------- */

static str label_value(struct fleet *f, int pair, unsigned metric, unsigned host, unsigned combination)
{
    switch (pair) {
    case 0:
        return arena_printf(&f->arena, "node_metric_%03u_total", metric);
    case 1:
        return arena_printf(&f->arena, "%u", combination / 4);
    case 2:
        return arena_printf(&f->arena, "host-%04u.example.net:9100", host);
    case 3:
        return STR("node");
    case 4:
        return arena_printf(&f->arena, "mode-%u", combination % 4);
    case 5:
        return arena_printf(&f->arena, "rack-%u", host / 8);
    default:
        return arena_printf(&f->arena, "region-%u", host % 3);
    }
}

static int compare_strings(const void *a, const void *b)
{
    return str_cmp(*(const str *)a, *(const str *)b);
}

static void make_symbols(struct fleet *f)
{
    if (f->hosts == 0) return;
    size_t n = 0, cap = 0;
    str *all = NULL;
    for (unsigned i = 0; i < f->hosts || i < METRICS; i++) {
        for (int k = 0; k < PAIRS; k++) {
            all = mem_grow(all, &cap, n + 2, sizeof *all);
            all[n++] = str_of(names[k]);
            all[n++] = label_value(f, k, i % METRICS, i % f->hosts, i % COMBINATIONS);
        }
    }
    qsort(all, n, sizeof *all, compare_strings);
    for (size_t i = 0; i < n; i++)
        if (f->n_symbols == 0 || !str_eq(all[f->n_symbols - 1], all[i])) all[f->n_symbols++] = all[i];
    f->symbols = all;
}

static uint32_t symbol(const struct fleet *f, str s)
{
    const str *found = bsearch(&s, f->symbols, f->n_symbols, sizeof s, compare_strings);
    return (uint32_t)(found - f->symbols);
}

static void make_times(struct fleet *f, unsigned part, struct rng *r)
{
    for (unsigned h = 0; h < f->hosts; h++) {
        int64_t phase = (int64_t)(h * 7919 % STEP_MS);
        for (unsigned i = 0; i < f->samples; i++)
            f->t[h][i] = T0 + phase + ((int64_t)part * f->samples + i) * STEP_MS + (int64_t)rng_below(r, 4);
    }
}

static void make_values(struct fleet *f, unsigned metric, size_t series, struct rng *r, double *v)
{
    double last = f->v[series];
    uint64_t rate = 1 + rng_below(r, 400);
    for (unsigned i = 0; i < f->samples; i++) {
        if (metric % 9 < 2) last += (double)rng_below(r, rate);
        if (metric % 9 == 2 || metric % 9 == 3)
            last = (double)((int64_t)(last * 100) + (int64_t)rng_below(r, 41) - 20) / 100;
        v[i] = last;
    }
    f->v[series] = last;
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

/* CPU seconds of the writer alone. */
static double write_part(struct fleet *f, const char *path, unsigned part, struct part_meta *meta)
{
    struct rng r;
    struct part_writer *w;
    double *v = mem_alloc(f->samples * COMBINATIONS * sizeof *v), took = 0;
    uint32_t pairs[2 * PAIRS];
    rng_seed(&r, part + 1);
    make_times(f, part, &r);
    *meta = (struct part_meta){.id = part + 1, .partition = MONTH, .seq_min = part, .seq_max = part};
    give_up(part_writer_create(env_posix(), path, meta, f->symbols, f->n_symbols, &w));
    for (unsigned metric = 0; metric < METRICS; metric++) {
        for (unsigned h = 0; h < f->hosts; h++) {
            size_t series = ((size_t)metric * f->hosts + h) * COMBINATIONS;
            for (unsigned c = 0; c < COMBINATIONS; c++)
                make_values(f, metric, series + c, &r, v + c * f->samples);
            double start = cpu_seconds();
            for (unsigned c = 0; c < COMBINATIONS; c++) {
                for (int k = 0; k < PAIRS; k++) {
                    if (c > 0 && k != 1 && k != 4) continue;
                    struct arena_mark mark = arena_mark(&f->arena);
                    pairs[2 * k] = symbol(f, str_of(names[k]));
                    pairs[2 * k + 1] = symbol(f, label_value(f, k, metric, h, c));
                    arena_rewind(&f->arena, mark);
                }
                give_up(part_writer_series(w, pairs, PAIRS));
                give_up(part_writer_floats(w, f->t[h], v + c * f->samples, f->samples));
            }
            took += cpu_seconds() - start;
        }
    }
    double start = cpu_seconds();
    give_up(part_writer_finish(w, meta));
    took += cpu_seconds() - start;
    part_writer_destroy(w);
    mem_free(v);
    return took;
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

/* Finds and reads whole series, as a query would. */
static uint64_t read_series(struct part *p, const struct matcher *m, size_t n, uint32_t *series)
{
    struct part_cursor *c = part_cursor_create(p);
    struct postings *found;
    uint64_t samples = 0;
    static int64_t t[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    static double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    give_up(part_find(c, m, n, INT64_MIN, INT64_MAX, &found));
    size_t count = postings_count(found);
    uint32_t *ids = mem_alloc((count + 1) * sizeof *ids);
    postings_list(found, ids, count);
    for (size_t i = 0; i < count; i++) {
        struct part_series s;
        struct hash128 id;
        give_up(part_series(c, ids[i], &s));
        give_up(part_series_id(c, &s, &id));
        for (uint32_t k = 0; k < s.n_blocks; k++) {
            give_up(part_read_floats(c, &s.blocks[k], t, v));
            samples += s.blocks[k].n;
        }
    }
    *series = (uint32_t)count;
    mem_free(ids);
    postings_destroy(found);
    part_cursor_destroy(c);
    return samples;
}

static void measure_read(const char *what, const char *path, const struct hash_key *key, const struct matcher *m,
                         size_t n)
{
    struct fcache *cache = fcache_create(CACHE_BYTES, NULL);
    struct part *p;
    uint32_t series = 0;
    give_up(part_open(env_posix(), path, key, cache, &p));
    double start = cpu_seconds();
    uint64_t samples = read_series(p, m, n, &series);
    double cold = cpu_seconds() - start, warm = 0;
    int rounds = 0;
    for (start = cpu_seconds(); warm < 0.2 && rounds < 1000; warm = cpu_seconds() - start, rounds++)
        read_series(p, m, n, &series);
    warm /= rounds;
    printf("  %-34s %7u series %9llu samples   cold %9.1f us %6.2f ns/sample   again %9.1f us %6.2f ns/sample\n", what,
           series, (unsigned long long)samples, cold * 1e6, cold * 1e9 / (double)samples, warm * 1e6,
           warm * 1e9 / (double)samples);
    part_unref(p);
    fcache_destroy(cache);
}

static void measure_reads(const char *path, const struct hash_key *key)
{
    struct matcher metric, host, cpu, mode, range;
    give_up(matcher_init(&metric, MATCH_EQ, STR("__name__"), STR("node_metric_003_total")));
    give_up(matcher_init(&host, MATCH_EQ, STR("instance"), STR("host-0007.example.net:9100")));
    give_up(matcher_init(&cpu, MATCH_EQ, STR("cpu"), STR("1")));
    give_up(matcher_init(&mode, MATCH_EQ, STR("mode"), STR("mode-2")));
    give_up(matcher_init(&range, MATCH_RE, STR("__name__"), STR("node_metric_00[0-9].*")));
    measure_read("one series", path, key, (struct matcher[]){metric, host, cpu, mode}, 4);
    measure_read("80 series of one host", path, key, (struct matcher[]){range, host}, 2);
    measure_read("one metric", path, key, &metric, 1);
    measure_read("one host", path, key, &host, 1);
    measure_read("everything", path, key, NULL, 0);
    matcher_deinit(&range);
}

/* ---- the whole ---------------------------------------------------------------------------------------------- */

static void print_sizes(const char *what, const char *path, const struct part_meta *meta)
{
    struct buf text = {0};
    give_up(part_inspect(env_posix(), path, 0, &text));
    printf("%s: %llu series, %llu samples, %.4f bytes a sample\n%.*s", what, (unsigned long long)meta->series,
           (unsigned long long)meta->samples, (double)meta->bytes / (double)meta->samples, (int)text.n, text.data);
    buf_deinit(&text);
}

static void measure_merge(const struct fleet *f, char (*paths)[64], const struct hash_key *key)
{
    struct fcache *cache = fcache_create(CACHE_BYTES, NULL);
    struct part **parts = mem_alloc(f->parts * sizeof(struct part *));
    struct part_meta meta = {.id = 1000};
    struct merge_options o = {.t_keep_min = INT64_MIN};
    const char *out = "/tmp/bench_part_merged";
    for (unsigned i = 0; i < f->parts; i++)
        give_up(part_open(env_posix(), paths[i], key, cache, &parts[i]));
    double start = cpu_seconds();
    give_up(merge_parts(env_posix(), key, parts, f->parts, out, &meta, &o));
    double took = cpu_seconds() - start;
    print_sizes("merged", out, &meta);
    printf("merge: %.2f CPU s, %.1f ns/sample, %.2f us/series\n", took, took * 1e9 / (double)meta.samples,
           took * 1e6 / (double)meta.series);
    measure_reads(out, key);
    for (unsigned i = 0; i < f->parts; i++)
        part_unref(parts[i]);
    mem_free(parts);
    fcache_destroy(cache);
    give_up(env_posix()->ops->unlink(env_posix(), out));
}

int main(int argc, char **argv)
{
    struct fleet f = {.hosts = argc > 1 ? (unsigned)atoi(argv[1]) : 100,
                      .samples = argc > 2 ? (unsigned)atoi(argv[2]) : 240,
                      .parts = argc > 3 ? (unsigned)atoi(argv[3]) : 4};
    if (f.hosts == 0 || f.samples == 0 || f.parts == 0) return 1;
    struct hash_key key;
    struct part_meta meta;
    size_t n_series = (size_t)METRICS * f.hosts * COMBINATIONS;
    char(*paths)[64] = mem_alloc(f.parts * sizeof *paths);
    env_posix()->ops->random(env_posix(), &key, sizeof key);
    make_symbols(&f);
    f.t = mem_alloc(f.hosts * sizeof(int64_t *));
    for (unsigned h = 0; h < f.hosts; h++)
        f.t[h] = mem_alloc(f.samples * sizeof(int64_t));
    f.v = mem_alloc(n_series * sizeof *f.v);
    for (size_t i = 0; i < n_series; i++)
        f.v[i] = (double)(i % 977);
    for (unsigned i = 0; i < f.parts; i++) {
        snprintf(paths[i], sizeof paths[i], "/tmp/bench_part_%u", i);
        double took = write_part(&f, paths[i], i, &meta);
        if (i > 0) continue;
        print_sizes("written", paths[0], &meta);
        printf("write: %.2f CPU s, %.1f ns/sample, %.2f us/series\n", took, took * 1e9 / (double)meta.samples,
               took * 1e6 / (double)meta.series);
        measure_reads(paths[0], &key);
    }
    if (f.parts > 1) measure_merge(&f, paths, &key);
    for (unsigned i = 0; i < f.parts; i++)
        give_up(env_posix()->ops->unlink(env_posix(), paths[i]));
    for (unsigned h = 0; h < f.hosts; h++)
        mem_free(f.t[h]);
    mem_free(f.t);
    mem_free(f.v);
    mem_free(f.symbols);
    mem_free(paths);
    arena_deinit(&f.arena);
    return 0;
}
