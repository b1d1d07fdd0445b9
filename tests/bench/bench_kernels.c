/*
 * bench_kernels.c: the hot loops one at a time over fixed data, so that their instructions can be counted.
 *
 *   bench_kernels              time each
 *   bench_kernels NAME N       run one N times; the checksum it prints depends on every result
 *
 * tests/bench/count_instructions runs it under callgrind and qemu: the difference between two N is the loop alone.
 * VARVE_CPU chooses the variant of the kernels as it does for the server.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "query/rollup.h"
#include "storage/base/alloc.h"
#include "storage/base/hash.h"
#include "storage/base/snappy.h"
#include "storage/column_value.h"
#include "storage/kernels.h"
#include "storage/kernels_choice.h"

enum { BLOCK = 240, SERIES = 240, STEPS = 241, LABELS = 12, LABEL_BYTES = 24, TEXT = 16384 };
enum { SCRAPE_MS = 15000, RANGE_MS = 300000, BATCH_US = 5000 };
static const int64_t first_ms = 1767225600000;

struct data {
    double v[BLOCK + COLUMN_VALUE_PAD], decimals[BLOCK], out[BLOCK + COLUMN_VALUE_PAD];
    int64_t t[SERIES], k[BLOCK], r[BLOCK];
    uint8_t bad[BLOCK], planes[3 * BLOCK];
    uint32_t lo[STEPS], hi[STEPS];
    double rates[STEPS];
    struct rollup_scratch scratch;
    struct column_scratch *columns;
    struct buf counter, gauge, packed, text;
    struct hash_key key;
    char labels[LABELS][LABEL_BYTES];
};

static uint64_t checksum;

static void mix(uint64_t x)
{
    checksum = (checksum ^ x) * UINT64_C(0x9e3779b97f4a7c15);
}

static uint32_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(*state >> 33);
}

/* What a node exporter's request looks like to a compressor: names and labels that repeat, numbers that do not. */
static void make_text(struct data *d, uint64_t *state)
{
    while (d->text.n < TEXT)
        buf_printf(&d->text, "node_cpu_seconds_total{cpu=\"%u\",mode=\"idle\",instance=\"host-%u:9100\"} %u\n",
                   next_random(state) % 64, next_random(state) % 1000, next_random(state));
    d->packed.max = SNAPPY_PACKED_MAX(d->text.n);
    snappy_pack(d->text.data, d->text.n, &d->packed);
}

static struct data *make_data(void)
{
    struct data *d = mem_zalloc(sizeof *d);
    uint64_t state = 7;
    double counter = 0;
    d->columns = column_scratch_create();
    for (size_t i = 0; i < BLOCK; i++) {
        counter += next_random(&state) % 2000;
        d->v[i] = counter;
        d->decimals[i] = (double)(next_random(&state) % 1000000) / 100;
        d->t[i] = first_ms + (int64_t)i * SCRAPE_MS;
    }
    column_value_encode(d->columns, d->v, BLOCK, NULL, &d->counter);
    column_value_encode(d->columns, d->decimals, BLOCK, NULL, &d->gauge);
    make_text(d, &state);
    for (size_t i = 0; i < sizeof d->key; i++)
        d->key.secret[i] = (uint8_t)next_random(&state);
    for (size_t i = 0; i < LABELS; i++)
        snprintf(d->labels[i], LABEL_BYTES, "label_%zu=value-%u", i, next_random(&state) % 100000);
    return d;
}

static void free_data(struct data *d)
{
    struct buf *bufs[] = {&d->counter, &d->gauge, &d->packed, &d->text};
    for (size_t i = 0; i < ARRAY_LEN(bufs); i++)
        buf_deinit(bufs[i]);
    rollup_scratch_deinit(&d->scratch);
    column_scratch_destroy(d->columns);
    mem_free(d);
}

/* ---- the loops; each does its work once */

static void stop_on(err e)
{
    if (e == NULL) return;
    fprintf(stderr, "bench_kernels: %s\n", err_message(e));
    exit(1);
}

static void decode(struct data *d, const struct buf *column)
{
    stop_on(column_value_decode(d->columns, column->data, column->n, BLOCK, d->out));
    mix((uint64_t)d->out[BLOCK - 1]);
}

static void run_decode_counter(struct data *d)
{
    decode(d, &d->counter);
}

static void run_decode_gauge(struct data *d)
{
    decode(d, &d->gauge);
}

static void run_encode_gauge(struct data *d)
{
    struct column_hint hint = {0};
    d->gauge.n = 0;
    column_value_encode(d->columns, d->decimals, BLOCK, &hint, &d->gauge);
    mix(d->gauge.n);
}

static void run_rollup(struct data *d)
{
    struct rollup_in in = {.t = d->t,
                           .v = d->v,
                           .n = SERIES,
                           .lo = d->lo,
                           .hi = d->hi,
                           .n_steps = STEPS,
                           .end = first_ms + 7000,
                           .end_step = SCRAPE_MS,
                           .range = RANGE_MS,
                           .grid = {first_ms + 7000, SCRAPE_MS, STEPS},
                           .scratch = &d->scratch};
    rollup_windows(d->t, SERIES, in.end, in.end_step, RANGE_MS, 0, STEPS, d->lo, d->hi);
    rollup_function(ROLLUP_RATE)(&in, d->rates);
    mix((uint64_t)d->rates[STEPS / 2]);
}

static void run_snappy(struct data *d)
{
    d->text.n = 0;
    stop_on(snappy_expand(d->packed.data, d->packed.n, &d->text));
    mix(d->text.data[TEXT / 2]);
}

/* As series are recognised: each pair's hash, and their sum. */
static void run_hash(struct data *d)
{
    struct hash128 sum = {0};
    for (size_t i = 0; i < LABELS; i++) {
        struct hash128 name = hash128(&d->key, d->labels[i], 7), value = hash128(&d->key, d->labels[i] + 8, 11);
        sum = hash128_add(sum, hash128_pair(name, value));
    }
    mix(sum.lo);
}

static void run_checksum(struct data *d)
{
    mix(checksum64(d->text.data, TEXT));
}

static void run_join(struct data *d)
{
    kernels_join(d->planes, BLOCK, 3, (uint64_t *)d->k);
    mix((uint64_t)d->k[BLOCK - 1]);
}

static void run_split(struct data *d)
{
    kernels_split((const uint64_t *)d->t, BLOCK, 3, d->planes);
    mix(d->planes[BLOCK]);
}

static void run_scale(struct data *d)
{
    bool any_residual;
    mix(kernels_scale(d->decimals, BLOCK, 2, d->k, d->r, d->bad, &any_residual));
    mix((uint64_t)d->k[BLOCK - 1]);
}

static void run_unscale(struct data *d)
{
    kernels_unscale(d->t, BLOCK, 2, d->out);
    mix((uint64_t)d->out[BLOCK - 1]);
}

static const struct loop {
    const char *name;
    void (*run)(struct data *d);
    const char *what;
} loops[] = {
    {"decode-counter", run_decode_counter, "a block of 240 integers of a counter"},
    {"decode-gauge", run_decode_gauge, "a block of 240 decimals"},
    {"encode-gauge", run_encode_gauge, "the same, the other way"},
    {"rollup", run_rollup, "windows and rates of 240 samples at 241 steps"},
    {"snappy", run_snappy, "a snappy block of 16 KiB of text"},
    {"hash", run_hash, "12 labels hashed and summed up"},
    {"checksum", run_checksum, "XXH3-64 of 16 KiB"},
    {"join", run_join, "3 byte planes of 240 numbers"},
    {"split", run_split, "the same, the other way"},
    {"scale", run_scale, "240 doubles to decimals"},
    {"unscale", run_unscale, "240 decimals to doubles"},
};

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

/* The best of ten batches: other work on the machine only adds. */
static void time_loop(const struct loop *loop, struct data *d)
{
    double best = 1e9;
    for (int batch = 0; batch < 10; batch++) {
        int rounds = 0;
        double began = now_us(), took;
        do {
            for (int i = 0; i < 20; i++, rounds++)
                loop->run(d);
            took = now_us() - began;
        } while (took < BATCH_US);
        if (took / rounds < best) best = took / rounds;
    }
    printf("%-15s %9.3f us  %s\n", loop->name, best, loop->what);
}

static int run_named(const char *name, long times, struct data *d)
{
    for (size_t i = 0; i < ARRAY_LEN(loops); i++) {
        if (strcmp(name, loops[i].name) != 0) continue;
        for (long n = 0; n < times; n++)
            loops[i].run(d);
        printf("%s %s %016llx\n", name, kernels_chosen(), (unsigned long long)checksum);
        return 0;
    }
    fprintf(stderr, "bench_kernels: no loop %s\n", name);
    return 2;
}

int main(int argc, char **argv)
{
    stop_on(kernels_choose(getenv("VARVE_CPU")));
    struct data *d = make_data();
    int code = 0;
    if (argc == 3) {
        code = run_named(argv[1], strtol(argv[2], NULL, 10), d);
    } else {
        printf("kernels: %s\n", kernels_chosen());
        for (size_t i = 0; i < ARRAY_LEN(loops); i++)
            time_loop(&loops[i], d);
    }
    free_data(d);
    return code;
}
