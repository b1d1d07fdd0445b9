/* test_creations.c: what counts as new in the last hour: the filter of known series, the ring of slots. */
#include "storage/base/rng.h"
#include "storage/creations.h"
#include "tests/unit/testing.h"

#define MINUTE INT64_C(60000)
#define T0 INT64_C(1700000100000) /* the start of a five minutes' slot */

static struct hash_key key;

static struct hash128 id_of(uint64_t i)
{
    return hash128(&key, &i, sizeof i);
}

static void add(struct creations *c, uint64_t from, uint64_t n, const char *metric, int64_t t)
{
    for (uint64_t i = 0; i < n; i++)
        creations_add(c, id_of(from + i), str_of(metric), t);
}

static void test_hour(void **state)
{
    (void)state;
    struct creations *c = creations_create(&key);
    add(c, 0, 10, "early", T0 - MINUTE);
    assert_int_equal(creations_of(c, STR("early"), T0), 0); /* counting had not begun */
    creations_begin(c, T0);
    assert_int_equal(creations_since(c), T0);
    add(c, 100, 10, "a", T0);
    add(c, 200, 5, "a", T0 + 10 * MINUTE);
    add(c, 300, 1, "b", T0 + 59 * MINUTE);
    assert_int_equal(creations_of(c, STR("a"), T0 + 59 * MINUTE), 15);
    assert_int_equal(creations_of(c, STR("a"), T0 + 60 * MINUTE), 5);
    assert_int_equal(creations_of(c, STR("a"), T0 + 70 * MINUTE), 0);
    assert_int_equal(creations_of(c, STR("b"), T0 + 60 * MINUTE), 1);
    assert_int_equal(creations_of(c, STR("c"), T0), 0);
    add(c, 400, 2, "a", T0 + 200 * MINUTE); /* the ring went round: old slots are empty */
    assert_int_equal(creations_of(c, STR("a"), T0 + 200 * MINUTE), 2);
    add(c, 500, 3, "a", T0 + 100 * MINUTE); /* a clock that was set back */
    assert_int_equal(creations_of(c, STR("a"), T0 + 200 * MINUTE), 5);
    creations_destroy(c);
}

/* Registries come and go: the living are no news, the new are. The filter may err for one in a hundred. */
static void test_turn_over(void **state)
{
    (void)state;
    enum { N = 50000 };
    struct creations *c = creations_create(&key);
    creations_begin(c, 0);
    add(c, 0, N, "m", T0);
    assert_int_equal(creations_of(c, STR("m"), T0), N);
    for (int round = 1; round <= 3; round++) {
        creations_turn_over(c);
        add(c, 0, N / 2, "m", T0); /* half of them register again */
        assert_int_equal(creations_of(c, STR("m"), T0), N);
    }
    creations_turn_over(c);
    add(c, N, N, "m", T0);
    uint64_t n = creations_of(c, STR("m"), T0);
    assert_true(n <= 2 * N && n >= 2 * N - N / 50);
    creations_destroy(c);
}

struct sum {
    uint64_t n, names, nameless;
};

static void add_up(void *arg, str metric, uint64_t n)
{
    struct sum *sum = arg;
    sum->n += n;
    sum->names++;
    if (metric.n == 0) sum->nameless = n;
}

/* However many names there are, memory is bounded and nothing is lost; silent names make room. */
static void test_many_names(void **state)
{
    (void)state;
    enum { N = 25000 };
    struct creations *c = creations_create(&key);
    struct sum sum = {0};
    char name[32];
    creations_begin(c, 0);
    for (int i = 0; i < N; i++) {
        snprintf(name, sizeof name, "metric_%d", i);
        creations_add(c, id_of((uint64_t)i), str_of(name), T0);
    }
    creations_each(c, T0, add_up, &sum);
    assert_int_equal(sum.n, N);
    assert_int_equal(sum.names, 20001);
    assert_int_equal(sum.nameless, N - 20000);
    creations_add(c, id_of(N), STR("later"), T0 + 90 * MINUTE);
    assert_int_equal(creations_of(c, STR("later"), T0 + 90 * MINUTE), 1);
    creations_destroy(c);
}

int main(void)
{
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (size_t i = 0; i < sizeof key.secret; i++)
        key.secret[i] = (uint8_t)rng_next(&rng);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_hour),
        cmocka_unit_test(test_turn_over),
        cmocka_unit_test(test_many_names),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
