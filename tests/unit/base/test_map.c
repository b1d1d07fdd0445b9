/* Units map, hash and rng: tables against a plain array as oracle, hashes against published vectors. */
#include "tests/unit/testing.h"

#include "storage/base/alloc.h"
#include "storage/base/map.h"
#include "storage/base/rng.h"

enum { KEYS = 400 };

/* A small key space, so that probing runs are long and removals shift; `spread` 0 makes all homes equal. */
static struct hash128 key_of(uint64_t i, uint64_t spread)
{
    return (struct hash128){i * spread, i << 40};
}

static void churn_map(struct rng *r, uint64_t spread)
{
    struct map m = {0};
    bool present[KEYS] = {false};
    uint64_t values[KEYS] = {0};
    size_t n = 0;
    for (int step = 0; step < 20000; step++) {
        uint64_t i = rng_below(r, KEYS);
        bool added, grow = rng_chance(r, step / 4000 % 2 ? 0.3 : 0.7);
        if (grow) {
            uint64_t *v = map_put(&m, key_of(i, spread), (uint64_t)step, &added);
            assert_int_equal(added, !present[i]);
            if (added) values[i] = (uint64_t)step;
            assert_true(*v == values[i]);
            n += added;
            present[i] = true;
        } else {
            assert_int_equal(map_remove(&m, key_of(i, spread)), present[i]);
            n -= present[i];
            present[i] = false;
        }
        assert_int_equal(m.n, n);
        uint64_t probe = rng_below(r, KEYS);
        uint64_t *found = map_get(&m, key_of(probe, spread));
        assert_int_equal(found != NULL, present[probe]);
        if (found) assert_true(*found == values[probe]);
    }
    for (uint64_t i = 0; i < KEYS; i++)
        assert_int_equal(map_get(&m, key_of(i, spread)) != NULL, present[i]);
    map_clear(&m);
    assert_null(map_get(&m, key_of(1, spread)));
    map_deinit(&m);
}

static void test_map_against_array(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    churn_map(&r, UINT64_C(0x9e3779b97f4a7c15));
    churn_map(&r, 1);
    churn_map(&r, 0);
}

static void test_empty_map(void **state)
{
    (void)state;
    struct map m = {0};
    assert_null(map_get(&m, (struct hash128){1, 2}));
    assert_false(map_remove(&m, (struct hash128){1, 2}));
    map_clear(&m);
    assert_int_equal(*map_put(&m, (struct hash128){0, 0}, 5, NULL), 5); /* a zero key is a key */
    assert_int_equal(*map_get(&m, (struct hash128){0, 0}), 5);
    map_deinit(&m);
}

static void churn_strmap(struct rng *r, const struct hash_key *key)
{
    struct strmap *m = strmap_create(key);
    uintptr_t values[KEYS] = {0}; /* 0 = absent */
    for (uintptr_t step = 1; step < 10000; step++) {
        char text[24];
        uint64_t i = rng_below(r, KEYS);
        str k = {text, (size_t)snprintf(text, sizeof text, "key-%llu", (unsigned long long)i)};
        bool added;
        if (rng_chance(r, 0.6)) {
            void **v = strmap_put(m, k, (void *)step, &added);
            assert_int_equal(added, values[i] == 0);
            if (added) values[i] = step;
            assert_int_equal((uintptr_t)*v, values[i]);
        } else {
            assert_int_equal(strmap_remove(m, k), values[i] != 0);
            values[i] = 0;
        }
        void **found = strmap_get(m, k);
        assert_int_equal(found ? (uintptr_t)*found : 0, values[i]);
    }
    size_t present = 0, seen = 0, at = 0;
    str k;
    void *v;
    for (int i = 0; i < KEYS; i++)
        present += values[i] != 0;
    while (strmap_next(m, &at, &k, &v)) {
        assert_true(k.n > 4);
        assert_int_equal((uintptr_t)v, values[atoi(k.p + 4)]);
        seen++;
    }
    assert_int_equal(seen, present);
    assert_int_equal(strmap_count(m), present);
    strmap_destroy(m);
}

static void test_strmap_against_array(void **state)
{
    (void)state;
    struct rng r;
    struct hash_key key;
    rng_seed(&r, test_seed());
    for (size_t i = 0; i < HASH_KEY_SIZE; i++)
        key.secret[i] = (uint8_t)rng_next(&r);
    churn_strmap(&r, &key);
    churn_strmap(&r, NULL);
    strmap_destroy(NULL);
}

static void test_strmap_takes_any_bytes(void **state)
{
    (void)state;
    struct strmap *m = strmap_create(NULL);
    strmap_put(m, (str){NULL, 0}, (void *)1, NULL);
    strmap_put(m, (str){"a\0b", 3}, (void *)2, NULL);
    strmap_put(m, (str){"a\0c", 3}, (void *)3, NULL);
    assert_int_equal((uintptr_t)*strmap_get(m, STR("")), 1);
    assert_int_equal((uintptr_t)*strmap_get(m, (str){"a\0b", 3}), 2);
    assert_null(strmap_get(m, STR("a")));
    strmap_destroy(m);
}

/* XXH3-64 of the specification: empty input, seed 0. */
static void test_checksum_is_xxh3(void **state)
{
    (void)state;
    assert_true(checksum64("", 0) == UINT64_C(0x2d06800538d394c2));
    assert_true(checksum64(NULL, 0) == checksum64("", 0));
}

static void test_two_ranges_hash_as_one(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static uint8_t bytes[3000];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rng_next(&r);
    for (int i = 0; i < 2000; i++) {
        size_t n = rng_below(&r, sizeof bytes), cut = rng_below(&r, n + 1);
        assert_true(checksum64_two(bytes, cut, bytes + cut, n - cut) == checksum64(bytes, n));
    }
}

static void test_keyed_hashes(void **state)
{
    (void)state;
    struct rng r;
    struct hash_key a, b;
    rng_seed(&r, 1);
    for (size_t i = 0; i < HASH_KEY_SIZE; i++) {
        a.secret[i] = (uint8_t)rng_next(&r);
        b.secret[i] = (uint8_t)rng_next(&r);
    }
    assert_true(hash128_eq(hash128(&a, "up", 2), hash128(&a, "up", 2)));
    assert_false(hash128_eq(hash128(&a, "up", 2), hash128(&b, "up", 2)));
    assert_true(hash64(&a, "up", 2) != hash64(&b, "up", 2));
    struct hash128 x = hash128(&a, "x", 1), y = hash128(&a, "y", 1);
    assert_true(hash128_eq(hash128_add(x, y), hash128_add(y, x)));
    assert_false(hash128_eq(hash128_pair(x, y), hash128_pair(y, x)));
}

static void test_rng(void **state)
{
    (void)state;
    struct rng a, b;
    rng_seed(&a, 0);
    rng_seed(&b, 0);
    uint64_t buckets[10] = {0};
    double sum = 0;
    for (int i = 0; i < 100000; i++) {
        uint64_t v = rng_below(&a, 10);
        assert_true(v == rng_below(&b, 10));
        buckets[v]++;
        double u = rng_unit(&a);
        rng_unit(&b);
        assert_true(u >= 0 && u < 1);
        sum += u;
    }
    for (int i = 0; i < 10; i++)
        assert_in_range(buckets[i], 9500, 10500);
    assert_true(sum > 49000 && sum < 51000);
    assert_false(rng_chance(&a, 0));
    assert_true(rng_chance(&a, 1));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_map_against_array),    cmocka_unit_test(test_empty_map),
        cmocka_unit_test(test_strmap_against_array), cmocka_unit_test(test_strmap_takes_any_bytes),
        cmocka_unit_test(test_checksum_is_xxh3),     cmocka_unit_test(test_two_ranges_hash_as_one),
        cmocka_unit_test(test_keyed_hashes),         cmocka_unit_test(test_rng),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
