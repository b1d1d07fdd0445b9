/*
 * test_oracle.c: the engine against the naive evaluator of tests/oracle, on random data and random queries.
 *
 * VARVE_SEED repeats a run, VARVE_QUERIES sets the number of queries, VARVE_FOREVER goes on until a difference shows
 * (make fuzz-promql SEED=). A difference is shrunk and printed with both answers; VARVE_DATA=1 prints the data too.
 */
#include "tests/unit/testing.h"

#include "tests/oracle/fuzz.h"

#define QUERIES 20000
#define QUERIES_A_WORLD 500
#define DIFFERENCES_MAX 8 /* shown before the run ends */

struct totals {
    size_t queries, verdicts[FUZZ_VERDICTS];
};

static struct fuzz_times random_times(struct rng *rng)
{
    static const int64_t STEPS[] = {15000, 30000, 60000, 7000, 61500, 300000, 1000};
    int64_t start = FUZZ_T0 - 300000 + (int64_t)rng_below(rng, FUZZ_SPAN + 600000);
    if (rng_chance(rng, 0.7)) start = start / 15000 * 15000;
    if (rng_chance(rng, 0.4)) return (struct fuzz_times){start, 0, 1};
    return (struct fuzz_times){start, STEPS[rng_below(rng, ARRAY_LEN(STEPS))], 1 + rng_below(rng, 25)};
}

static void show(struct fuzz_world *w, struct fuzz_node *query, struct fuzz_times times, uint64_t world_seed)
{
    struct arena a = {0};
    struct buf report = {0};
    str whole = fuzz_text(query, &a);
    printf("DIFFERENT, world seed %llu, start %lld, step %lld, %zu steps\n  query:  %.*s\n",
           (unsigned long long)world_seed, (long long)times.start, (long long)times.step, times.n, STR_ARG(whole));
    fuzz_shrink(w, query, times);
    str small = fuzz_text(query, &a);
    printf("  shrunk: %.*s\n", STR_ARG(small));
    fuzz_compare(w, small, times, &report);
    if (getenv("VARVE_DATA") != NULL) fuzz_world_print(w, &report);
    printf("%.*s\n", (int)report.n, (const char *)report.data);
    buf_deinit(&report);
    arena_deinit(&a);
}

/* One data set and its queries; both follow from the seed. */
static void run_world(uint64_t seed, size_t n_queries, struct totals *totals)
{
    struct rng rng;
    rng_seed(&rng, seed);
    struct fuzz_world w;
    assert_ok(fuzz_world_init(&w, &rng));
    for (size_t i = 0; i < n_queries && totals->verdicts[FUZZ_DIFFERENT] < DIFFERENCES_MAX; i++) {
        struct arena a = {0};
        struct fuzz_node *query = fuzz_query(&rng, &a);
        struct fuzz_times times = random_times(&rng);
        if (query->type == TYPE_MATRIX) times = (struct fuzz_times){times.start, 0, 1};
        enum fuzz_verdict verdict = fuzz_compare(&w, fuzz_text(query, &a), times, NULL);
        totals->queries++;
        totals->verdicts[verdict]++;
        if (verdict == FUZZ_DIFFERENT) show(&w, query, times, seed);
        arena_deinit(&a);
    }
    assert_ok(fuzz_world_deinit(&w));
}

static void test_engine_equals_oracle(void **state)
{
    (void)state;
    const char *limit = getenv("VARVE_QUERIES");
    bool forever = getenv("VARVE_FOREVER") != NULL;
    size_t queries = limit != NULL ? (size_t)strtoull(limit, NULL, 0) : QUERIES;
    struct totals totals = {0};
    for (uint64_t seed = test_seed();
         (forever || totals.queries < queries) && totals.verdicts[FUZZ_DIFFERENT] < DIFFERENCES_MAX; seed++) {
        size_t left = forever ? QUERIES_A_WORLD : queries - totals.queries;
        run_world(seed, left < QUERIES_A_WORLD ? left : QUERIES_A_WORLD, &totals);
    }
    const size_t *v = totals.verdicts;
    printf("%zu queries: %zu the same, %zu empty, %zu errors, %zu open, %zu different\n", totals.queries, v[FUZZ_SAME],
           v[FUZZ_EMPTY], v[FUZZ_FAILED], v[FUZZ_OPEN], v[FUZZ_DIFFERENT]);
    assert_int_equal(v[FUZZ_DIFFERENT], 0);
    assert_true(v[FUZZ_SAME] > totals.queries / 3); /* else the queries prove little */
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_engine_equals_oracle)};
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
