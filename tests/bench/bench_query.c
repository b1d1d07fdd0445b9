/*
 * bench_query.c: what range functions and folds cost per series: 240 samples (1 h at 15 s), 241 steps, and long
 * windows.
 *
 *   make build/rel/bench/bench_query && build/rel/bench/bench_query
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "query/rollup.h"

#define SAMPLES 5760 /* a day at 15 s */
#define STEPS 241

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec * 1e6 + (double)t.tv_nsec / 1e3;
}

struct bench {
    int64_t t[SAMPLES];
    double v[SAMPLES];
    uint32_t lo[STEPS], hi[STEPS];
    double param[STEPS], out[STEPS];
    struct rollup_scratch scratch;
};

static struct rollup_in prepare(struct bench *b, size_t n, int64_t range)
{
    double v = 0;
    for (size_t i = 0; i < n; i++) {
        v = i % 997 == 996 ? 0 : v + (double)(rand() % 100);
        b->t[i] = 1767225600000 + (int64_t)i * 15000;
        b->v[i] = v;
    }
    int64_t span = b->t[n - 1] - b->t[0], step = span / (STEPS - 1);
    struct rollup_in in = {.t = b->t,
                           .v = b->v,
                           .n = n,
                           .lo = b->lo,
                           .hi = b->hi,
                           .n_steps = STEPS,
                           .end = b->t[0] + 7000,
                           .end_step = step,
                           .range = range,
                           .grid = {b->t[0] + 7000, step, STEPS},
                           .param = {b->param, b->param},
                           .scratch = &b->scratch};
    return in;
}

static void run(struct bench *b, const char *name, enum rollup_code code, size_t n, int64_t range)
{
    struct rollup_in in = prepare(b, n, range);
    int rounds = n > 1000 ? 20 : 200;
    double sum = 0, windows = 1e9, each = 1e9; /* the best of ten: other work on the machine only adds */
    for (int batch = 0; batch < 10; batch++) {
        double began = now_us();
        for (int i = 0; i < rounds; i++)
            rollup_windows(b->t, n, in.end, in.end_step, range, 0, STEPS, b->lo, b->hi);
        double took = (now_us() - began) / rounds;
        if (took < windows) windows = took;
        began = now_us();
        for (int i = 0; i < rounds; i++) {
            rollup_function(code)(&in, b->out);
            sum += b->out[STEPS - 1];
        }
        took = (now_us() - began) / rounds;
        if (took < each) each = took;
    }
    static struct rate_time times[STEPS];
    double shared = 1e9;
    for (int batch = 0; batch < 10 && code == ROLLUP_RATE; batch++) {
        rollup_rate_times(&in, true, times);
        in.times = times;
        double began = now_us();
        for (int i = 0; i < rounds; i++)
            rollup_function(code)(&in, b->out);
        double took = (now_us() - began) / rounds;
        if (took < shared) shared = took;
    }
    if (code == ROLLUP_RATE)
        printf("%-18s %5zu samples %6.0f min window: %8.2f us a series\n", "rate, same times", n, (double)range / 60000,
               shared);
    printf("%-18s %5zu samples %6.0f min window: %8.2f us a series (windows %.2f us)%s\n", name, n,
           (double)range / 60000, each, windows, sum == 0.5 ? "!" : "");
}

int main(void)
{
    static const struct {
        const char *name;
        enum rollup_code code;
    } FUNCTIONS[] = {
        {"rate", ROLLUP_RATE},         {"delta", ROLLUP_DELTA},       {"irate", ROLLUP_IRATE},
        {"sum_over_time", ROLLUP_SUM}, {"avg_over_time", ROLLUP_AVG}, {"max_over_time", ROLLUP_MAX},
        {"changes", ROLLUP_CHANGES},   {"quantile", ROLLUP_QUANTILE}, {"stddev_over_time", ROLLUP_STDDEV},
        {"deriv", ROLLUP_DERIV},
    };
    static struct bench b;
    for (size_t i = 0; i < STEPS; i++)
        b.param[i] = 0.9;
    for (size_t i = 0; i < ARRAY_LEN(FUNCTIONS); i++) {
        run(&b, FUNCTIONS[i].name, FUNCTIONS[i].code, 240, 300000);
        run(&b, FUNCTIONS[i].name, FUNCTIONS[i].code, SAMPLES, 6 * 3600000);
    }
    rollup_scratch_deinit(&b.scratch);
    return 0;
}
