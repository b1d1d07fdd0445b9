/* test_fcache_tsan.c: several threads share one small cache, under ThreadSanitizer. */
#include "tests/unit/storage/fcache_tests.h"

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_threads)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
