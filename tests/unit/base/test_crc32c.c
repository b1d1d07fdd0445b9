/* test_crc32c.c: the checksum against the vectors of RFC 3720 (B.4), and at every alignment against one bit a step. */
#include "storage/base/crc32c.h"
#include "storage/base/rng.h"
#include "tests/unit/testing.h"

static struct crc32c crc;

static void test_known(void **state)
{
    (void)state;
    uint8_t bytes[32];
    assert_int_equal(crc32c_of(&crc, "", 0), 0);
    assert_int_equal(crc32c_of(&crc, "123456789", 9), 0xe3069283);
    memset(bytes, 0, sizeof bytes);
    assert_int_equal(crc32c_of(&crc, bytes, sizeof bytes), 0x8a9136aa);
    memset(bytes, 0xff, sizeof bytes);
    assert_int_equal(crc32c_of(&crc, bytes, sizeof bytes), 0x62a8ab43);
    for (uint8_t i = 0; i < 32; i++)
        bytes[i] = i;
    assert_int_equal(crc32c_of(&crc, bytes, sizeof bytes), 0x46dd794e);
}

static uint32_t slowly(const uint8_t *p, size_t n)
{
    uint32_t c = UINT32_MAX;
    for (size_t i = 0; i < n * 8; i++) {
        uint32_t bit = (c ^ (uint32_t)(p[i / 8] >> (i % 8))) & 1;
        c = c >> 1 ^ (bit ? UINT32_C(0x82f63b78) : 0);
    }
    return ~c;
}

static void test_all_lengths(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    uint8_t bytes[100];
    for (size_t i = 0; i < sizeof bytes; i++)
        bytes[i] = (uint8_t)rng_next(&rng);
    for (size_t from = 0; from < 9; from++)
        for (size_t n = 0; from + n <= sizeof bytes; n++)
            assert_int_equal(crc32c_of(&crc, bytes + from, n), slowly(bytes + from, n));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_known),
        cmocka_unit_test(test_all_lengths),
    };
    crc32c_init(&crc);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
