/*
 * Unit top: what is counted, for how long it is remembered, who makes room when the table is full. Run under
 * ThreadSanitizer too.
 */
#include "tests/unit/testing.h"

#include "server/top.h"
#include "storage/base/alloc.h"

#include <pthread.h>

#define SECOND UINT64_C(1000000000)
#define MINUTE (60 * SECOND)
#define NOW (1000000 * SECOND)

static struct top_entry only(struct top *t, uint64_t lifetime_ns, uint64_t now_ns, struct arena *a)
{
    size_t n;
    struct top_entry *v = top_take(t, lifetime_ns, now_ns, a, &n);
    assert_int_equal(n, 1);
    return v[0];
}

static void counts_by_text_and_range(void **state)
{
    (void)state;
    struct arena a = {0};
    struct top *t = top_create();
    size_t n;
    for (int i = 0; i < 3; i++)
        top_note(t, STR("a"), 60999, 10, NOW);
    top_note(t, STR("a"), 120000, 500, NOW);
    top_note(t, STR("b"), 0, 40, NOW);
    top_note(t, STR("b"), 0, 60, NOW);
    struct top_entry *v = top_take(t, MINUTE, NOW, &a, &n);
    assert_int_equal(n, 3);
    top_sort(v, n, TOP_BY_COUNT);
    assert_true(str_eq(v[0].text, STR("a")) && v[0].range_s == 60 && v[0].count == 3 && v[0].ns == 30);
    assert_true(str_eq(v[1].text, STR("b")) && v[1].range_s == 0 && v[1].count == 2 && v[1].ns == 100);
    top_sort(v, n, TOP_BY_SUM);
    assert_int_equal(v[0].ns, 500);
    assert_int_equal(v[2].ns, 30);
    top_note(t, STR("c"), 0, 450, NOW);
    v = top_take(t, MINUTE, NOW, &a, &n);
    top_sort(v, n, TOP_BY_AVERAGE);
    assert_int_equal(v[1].ns, 450);
    assert_true(str_eq(v[3].text, STR("a")) && v[3].count == 3);
    top_note(NULL, STR("c"), 0, 450, NOW); /* no table: nothing to do */
    top_destroy(t);
    arena_deinit(&a);
}

static void forgets_what_is_old(void **state)
{
    (void)state;
    struct arena a = {0};
    struct top *t = top_create();
    size_t n;
    for (uint64_t minute = 0; minute < 120; minute++)
        top_note(t, STR("q"), 0, 1, NOW + minute * MINUTE);
    uint64_t now = NOW + 119 * MINUTE;
    /* Periods are of two minutes: a lifetime reaches back to the beginning of the period it falls into. */
    uint64_t ten = only(t, 10 * MINUTE, now, &a).count,
             all = only(t, (uint64_t)TOP_LIFETIME_MAX_MS * 1000000, now, &a).count;
    assert_in_range(ten, 11, 12);
    assert_in_range(all, 63, 64);
    assert_in_range(only(t, 1000 * MINUTE, now, &a).count, 63, 64); /* no more is kept */
    top_take(t, 10 * MINUTE, now + 13 * MINUTE, &a, &n);
    assert_int_equal(n, 0);
    top_destroy(t);
    arena_deinit(&a);
}

static void what_runs_stays(void **state)
{
    (void)state;
    struct arena a = {0};
    struct top *t = top_create();
    size_t n;
    char *text = mem_zalloc(5000);
    bool found = false;
    for (int i = 0; i < 20000; i++) { /* as many once-only queries as fit ten times */
        int length = snprintf(text, 5000, "once_%d", i);
        top_note(t, (str){text, (size_t)length}, 0, 1, NOW + 2 * (uint64_t)i);
        top_note(t, STR("often"), 0, 1, NOW + 2 * (uint64_t)i + 1);
    }
    struct top_entry *v = top_take(t, MINUTE, NOW + 40000, &a, &n);
    assert_true(n <= 2048);
    for (size_t i = 0; i < n; i++)
        found |= str_eq(v[i].text, STR("often")) && v[i].count == 20000;
    assert_true(found);
    for (int i = 0; i < 2500; i++) /* characters of two bytes; the cut is between two of them */
        memcpy(text + 2 * i, "\xc3\xa4", 2);
    struct top *other = top_create();
    top_note(other, (str){text + 1, 4999}, 0, 1, NOW);
    assert_int_equal(only(other, MINUTE, NOW, &a).text.n, 2047);
    top_destroy(other);
    top_destroy(t);
    mem_free(text);
    arena_deinit(&a);
}

#define THREADS 4
#define ROUNDS 3000

static void *note_many(void *arg)
{
    for (int i = 0; i < ROUNDS; i++) {
        char text[16];
        int n = snprintf(text, sizeof text, "q%d", i % 50);
        top_note(arg, (str){text, (size_t)n}, 0, 1, NOW);
    }
    return NULL;
}

static void many_at_once(void **state)
{
    (void)state;
    struct arena a = {0};
    struct top *t = top_create();
    pthread_t threads[THREADS];
    uint64_t sum = 0;
    size_t n;
    for (size_t i = 0; i < THREADS; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, note_many, t), 0);
    for (int i = 0; i < 20; i++)
        top_take(t, MINUTE, NOW, &a, &n);
    for (size_t i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    struct top_entry *v = top_take(t, MINUTE, NOW, &a, &n);
    assert_int_equal(n, 50);
    for (size_t i = 0; i < n; i++)
        sum += v[i].count;
    assert_int_equal(sum, THREADS * ROUNDS);
    top_destroy(t);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(counts_by_text_and_range),
        cmocka_unit_test(forgets_what_is_old),
        cmocka_unit_test(what_runs_stays),
        cmocka_unit_test(many_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
