/*
 * test_changes.c: versions, what was touched since, and that old ones are forgotten rather than answered wrongly.
 */
#include "tests/unit/testing.h"

#include "storage/base/rng.h"
#include "storage/changes.h"

#define MANY 3000

static void test_untouched(void **state)
{
    (void)state;
    struct changes *c = changes_create();
    uint64_t version = changes_version(c);
    assert_int_equal(changes_since(c, version), INT64_MAX);
    assert_int_equal(changes_version(c), version); /* nothing happened: the same moment */
    assert_int_equal(changes_since(c, version + 1), INT64_MIN);
    assert_int_equal(changes_since(c, 0), INT64_MIN);
    changes_destroy(c);
}

static void test_oldest_touched(void **state)
{
    (void)state;
    struct changes *c = changes_create();
    changes_note(c, -5); /* before anybody asked */
    uint64_t first = changes_version(c);
    changes_note(c, 100);
    changes_note(c, 120);
    uint64_t second = changes_version(c);
    assert_true(second > first);
    assert_int_equal(changes_since(c, first), 100);
    assert_int_equal(changes_since(c, second), INT64_MAX);
    changes_note(c, 130);
    assert_int_equal(changes_since(c, first), 100);
    assert_int_equal(changes_since(c, second), 130);
    changes_note(c, INT64_MIN + 1);
    assert_int_equal(changes_since(c, first), INT64_MIN + 1);
    assert_int_equal(changes_since(c, second), INT64_MIN + 1);
    changes_destroy(c);
}

/* Against the plain way: the smallest of all that came after. */
static void test_model(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    struct changes *c = changes_create();
    static int64_t noted[MANY];
    static uint64_t version[MANY];
    for (int i = 0; i < MANY; i++) {
        version[i] = changes_version(c);
        noted[i] = i - (int64_t)rng_below(&rng, rng_below(&rng, 10) == 0 ? 1000 : 5);
        changes_note(c, noted[i]);
    }
    int64_t oldest = INT64_MAX;
    int known = 0;
    for (int i = MANY - 1; i >= 0; i--) {
        if (noted[i] < oldest) oldest = noted[i];
        int64_t since = changes_since(c, version[i]);
        if (since == INT64_MIN) break;
        assert_int_equal(since, oldest);
        known++;
    }
    assert_true(known >= 200 && known < MANY);
    for (int i = 0; i < MANY - known; i++)
        assert_int_equal(changes_since(c, version[i]), INT64_MIN);
    changes_destroy(c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_untouched),
        cmocka_unit_test(test_oldest_touched),
        cmocka_unit_test(test_model),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
