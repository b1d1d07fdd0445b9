/*
 * bench_num.c: nanoseconds to print and read doubles of three kinds, against printf and strtod.
 */
#include "storage/base/env.h"
#include "storage/base/num.h"
#include "storage/base/rng.h"

#include <stdio.h>
#include <stdlib.h>

enum { N = 1000, ROUNDS = 500 };

static double values[N];
static char texts[N][NUM_DOUBLE_MAX + 1];
static volatile size_t sink; /* keeps the work from being thrown away */

static uint64_t now_ns(void)
{
    return env_posix()->ops->mono_ns(env_posix());
}

static void print_ours(void)
{
    char text[NUM_DOUBLE_MAX];
    for (int i = 0; i < N; i++)
        sink += num_format_double(values[i], text);
}

static void print_libc(void)
{
    char text[NUM_DOUBLE_MAX];
    for (int i = 0; i < N; i++)
        sink += (size_t)snprintf(text, sizeof text, "%.17g", values[i]);
}

static void read_ours(void)
{
    double v;
    for (int i = 0; i < N; i++)
        sink += num_parse_double(str_of(texts[i]), &v);
}

static void read_libc(void)
{
    for (int i = 0; i < N; i++)
        sink += strtod(texts[i], NULL) > 0;
}

static double cost(void (*work)(void))
{
    uint64_t start = now_ns();
    for (int i = 0; i < ROUNDS; i++)
        work();
    return (double)(now_ns() - start) / N / ROUNDS;
}

int main(void)
{
    static const char *const kinds[] = {"integers", "three decimals", "full precision"};
    struct rng r;
    rng_seed(&r, 1);
    printf("%-16s %10s %10s %10s %10s  (ns a value)\n", "", "print", "%.17g", "read", "strtod");
    for (int kind = 0; kind < 3; kind++) {
        for (int i = 0; i < N; i++) {
            uint64_t whole = rng_below(&r, 1000000000);
            values[i] = kind == 0 ? (double)whole : kind == 1 ? (double)whole / 1000 : rng_unit(&r) * 1000;
            texts[i][num_format_double(values[i], texts[i])] = '\0';
        }
        printf("%-16s %10.1f %10.1f %10.1f %10.1f\n", kinds[kind], cost(print_ours), cost(print_libc), cost(read_ours),
               cost(read_libc));
    }
    return 0;
}
