/*
 * test_sim.c: thousands of random lives of a database on the simulated machine (tests/sim/sim_workload.c).
 *
 *   VARVE_SEED=n         the first seed (else by the clock)
 *   VARVE_SEEDS=n        how many (1 with VARVE_SEED alone)
 *   VARVE_SIM_FOREVER=1  until one fails
 *   VARVE_SIM_SECONDS=n  at most so long (default 75)
 *   VARVE_SIM_TRACE=1    steps and changing calls on stderr
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "storage/base/env.h"
#include "tests/sim/sim_workload.h"

#include <stdio.h>
#include <stdlib.h>

/* Under ASan: little quarantine, short stacks, memory kept; else mapping it takes most of the time. */
const char *__asan_default_options(void);
const char *__asan_default_options(void)
{
    return "quarantine_size_mb=4:malloc_context_size=8:allocator_release_to_os_interval_ms=-1";
}

#define DEFAULT_SEEDS 2000
#define DEFAULT_SECONDS 75
#define CANARY_SEEDS 40

static uint64_t number_from(const char *variable, uint64_t otherwise)
{
    const char *text = getenv(variable);
    return text && *text ? strtoull(text, NULL, 10) : otherwise;
}

static bool seed_is_given(void)
{
    return number_from("VARVE_SEED", UINT64_MAX) != UINT64_MAX;
}

static uint64_t seconds(void)
{
    return env_posix()->ops->mono_ns(env_posix()) / 1000000000u;
}

static void print_report(uint64_t runs, const struct sim_report *r)
{
    printf("sim: %llu lives, %llu batches, %llu samples, %llu crashes, %llu kills, %llu starts, %llu failed calls, "
           "%llu deletes, %llu flushes, %llu merges, %llu snapshots, %llu samples read back\n",
           (unsigned long long)runs, (unsigned long long)r->batches, (unsigned long long)r->samples,
           (unsigned long long)r->crashes, (unsigned long long)r->kills, (unsigned long long)r->starts,
           (unsigned long long)r->failed_calls, (unsigned long long)r->deletes, (unsigned long long)r->flushes,
           (unsigned long long)r->merges, (unsigned long long)r->snapshots, (unsigned long long)r->read_samples);
}

static void test_lives(void **state)
{
    (void)state;
    bool forever = number_from("VARVE_SIM_FOREVER", 0) != 0, trace = number_from("VARVE_SIM_TRACE", 0) != 0;
    uint64_t start = seconds(), limit = number_from("VARVE_SIM_SECONDS", DEFAULT_SECONDS);
    uint64_t first = number_from("VARVE_SEED", env_posix()->ops->mono_ns(env_posix()) / 1000 % 1000000000);
    uint64_t seeds = number_from("VARVE_SEEDS", seed_is_given() ? 1 : DEFAULT_SEEDS), runs = 0;
    struct sim_report report = {0};
    printf("sim: first seed %llu\n", (unsigned long long)first);
    while (forever || (runs < seeds && seconds() - start < limit)) {
        struct sim_options o = {.seed = first + runs++, .trace = trace};
        if (!sim_workload_run(&o, &report))
            fail_msg("seed %llu, step %u: %s\nrepeat: VARVE_SEED=%llu %s", (unsigned long long)o.seed,
                     report.failed_step, report.message, (unsigned long long)o.seed,
                     "build/asan/tests/storage/test_sim");
    }
    print_report(runs, &report);
}

/* A disk whose syncs do nothing must be found out, else the lives above prove nothing. */
static void test_canary(void **state)
{
    (void)state;
    unsigned caught = 0;
    if (seed_is_given()) skip(); /* one life is to be repeated */
    for (uint64_t seed = 1; seed <= CANARY_SEEDS; seed++) {
        struct sim_report report = {0};
        struct sim_options o = {.seed = seed, .lying_disk = true};
        caught += !sim_workload_run(&o, &report);
    }
    printf("sim: %u of %u lives on a lying disk noticed\n", caught, CANARY_SEEDS);
    assert_true(caught > CANARY_SEEDS / 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_canary),
        cmocka_unit_test(test_lives),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
