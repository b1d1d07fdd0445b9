/*
 * test_snappy.c: our snappy against hand-made blocks and, where it is installed, against Google's library: what
 * either compresses both expand, what that one refuses we refuse.
 */
#include <dlfcn.h>

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/base/snappy.h"
#include "tests/unit/testing.h"

typedef int (*compress_fn)(const char *in, size_t n, char *out, size_t *out_n);
typedef int (*uncompress_fn)(const char *in, size_t n, char *out, size_t *out_n);

static struct {
    compress_fn compress;
    uncompress_fn uncompress;
} google;

static void load_google(void)
{
    void *lib = dlopen("libsnappy.so.1", RTLD_NOW);
    if (lib == NULL) return;
    void *compress = dlsym(lib, "snappy_compress"), *uncompress = dlsym(lib, "snappy_uncompress");
    memcpy(&google.compress, &compress, sizeof compress);
    memcpy(&google.uncompress, &uncompress, sizeof uncompress);
}

static void test_blocks(void **state)
{
    (void)state;
    static const struct {
        str packed, raw;
    } table[] = {
        {{"\x00", 1}, {"", 0}},
        {{"\x03\x08"
          "abc",
          5},
         {"abc", 3}},
        {{"\x06\x08"
          "abc\x0e\x03\x00",
          8},
         {NULL, 0}}, /* a copy of 4: one too many */
        {{"\x07\x08"
          "abc\x0e\x03\x00",
          8},
         {"abcabca", 7}},
        {{"\x08\x00"
          "a\x0d\x01",
          5},
         {"aaaaaaaa", 8}}, /* copy with 1-byte offset, length 7 */
        {{"\x0a\x04"
          "ab\x1e\x02\x00",
          7},
         {"ababababab", 10}},
        {{"\x0a\x04"
          "ab\x1f\x02\x00\x00\x00",
          9},
         {"ababababab", 10}}, /* 4-byte offset */
        {{"\x02\xf0\x01"
          "ab",
          5},
         {"ab", 2}}, /* literal with a length byte */
        {{"\x02\xf4\x01\x00"
          "ab",
          6},
         {"ab", 2}},
        {{"\x02\xf8\x01\x00\x00"
          "ab",
          7},
         {"ab", 2}},
        {{"\x02\xfc\x01\x00\x00\x00"
          "ab",
          8},
         {"ab", 2}},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct buf out = {.max = 1000};
        err e = snappy_expand(table[i].packed.p, table[i].packed.n, &out);
        if ((e == NULL) != (table[i].raw.p != NULL)) fail_msg("row %zu: %s", i, err_message(e));
        if (e == NULL) assert_true(str_eq(buf_as_str(&out), table[i].raw));
        err_free(e);
        buf_deinit(&out);
    }
}

static void refused(str packed, enum err_code code)
{
    struct buf out = {.max = 1000};
    buf_str(&out, STR("kept"));
    err e = snappy_expand(packed.p, packed.n, &out);
    assert_int_equal(err_code(e), code);
    assert_true(str_eq(buf_as_str(&out), STR("kept")));
    err_free(e);
    buf_deinit(&out);
}

static void test_refusals(void **state)
{
    (void)state;
    refused((str){"", 0}, ERR_INVALID);
    refused((str){"\x80", 1}, ERR_INVALID);                     /* length cut off */
    refused((str){"\xff\xff\xff\xff\xff\x01", 6}, ERR_INVALID); /* length over 32 bits */
    refused((str){"\x05\x08"
                  "ab",
                  4},
            ERR_INVALID); /* literal cut off */
    refused((str){"\x05\x08"
                  "abc",
                  5},
            ERR_INVALID); /* ends early */
    refused((str){"\x02\x08"
                  "abc",
                  5},
            ERR_INVALID);                           /* goes on too long */
    refused((str){"\x05\x01\x00", 3}, ERR_INVALID); /* copy from nowhere */
    refused((str){"\x05\x00"
                  "a\x01\x00",
                  5},
            ERR_INVALID); /* offset 0 */
    refused((str){"\x05\x00"
                  "a\x01\x02",
                  5},
            ERR_INVALID); /* offset before the start */
    refused((str){"\x05\x00"
                  "a\x02",
                  4},
            ERR_INVALID); /* offset cut off */
    refused((str){"\x00\x00"
                  "a",
                  3},
            ERR_INVALID); /* content after nothing */
    refused((str){"\x84\x07\x08"
                  "abc",
                  6},
            ERR_INVALID);                                                          /* promises more than can be */
    refused((str){"\x96\xc9\xb5\x89\x0a\xf4\xe0\xa9\x12\x3b", 10}, ERR_TOO_LARGE); /* 2,704,094,487 bytes */
}

/* Bytes with long and short repeats, so that all kinds of elements come up. */
static size_t make_raw(struct rng *rng, uint8_t *raw, size_t max)
{
    size_t n = 0, target = rng_below(rng, max);
    while (n < target) {
        size_t run = 1 + rng_below(rng, rng_chance(rng, 0.3) ? 200 : 20);
        if (run > target - n) run = target - n;
        size_t back = n ? 1 + rng_below(rng, rng_chance(rng, 0.5) && n > 20 ? 20 : n) : 0;
        bool copy = back > 0 && rng_chance(rng, 0.7);
        for (size_t i = 0; i < run; i++, n++)
            raw[n] = copy ? raw[n - back] : (uint8_t)rng_next(rng);
    }
    return n;
}

static void compare(const char *packed, size_t n, char *theirs, size_t room)
{
    struct buf out = {.max = room};
    size_t their_n = room;
    err e = snappy_expand(packed, n, &out);
    bool they_take_it = google.uncompress(packed, n, theirs, &their_n) == 0;
    if (they_take_it != (e == NULL)) fail_msg("they %d, we: %s", they_take_it, err_message(e));
    if (e == NULL) assert_true(str_eq(buf_as_str(&out), (str){theirs, their_n}));
    err_free(e);
    buf_deinit(&out);
}

static void test_against_google(void **state)
{
    (void)state;
    enum { MAX = 100000, PACKED_MAX = MAX + MAX / 6 + 64 };
    if (google.compress == NULL) skip();
    struct rng rng;
    rng_seed(&rng, test_seed());
    uint8_t *raw = mem_alloc(MAX);
    char *packed = mem_alloc(PACKED_MAX), *theirs = mem_alloc(MAX);
    for (int round = 0; round < 400; round++) {
        size_t n = make_raw(&rng, raw, round % 20 == 0 ? MAX : 600), size = PACKED_MAX;
        assert_int_equal(google.compress((const char *)raw, n, packed, &size), 0);
        char *exact = mem_dup(packed, size); /* so that a read past the end shows */
        compare(exact, size, theirs, MAX);
        for (int k = 0; k < 10 && size > 0; k++) {
            char kept = exact[0];
            size_t at = rng_below(&rng, size);
            kept = exact[at];
            exact[at] = (char)(exact[at] ^ (1 << rng_below(&rng, 8)));
            size_t cut = rng_chance(&rng, 0.3) ? rng_below(&rng, size) : size;
            compare(exact, cut, theirs, MAX);
            exact[at] = kept;
        }
        mem_free(exact);
    }
    mem_free(raw);
    mem_free(packed);
    mem_free(theirs);
}

/* Packs, expands with ours and theirs, and tells the packed size. */
static size_t round_trip(const uint8_t *raw, size_t n)
{
    struct buf packed = {0}, out = {.max = n + 1};
    char *exact = mem_dup(n ? (const void *)raw : "", n); /* so that a read past the end shows */
    snappy_pack(exact, n, &packed);
    assert_true(packed.n <= SNAPPY_PACKED_MAX(n));
    err e = snappy_expand(packed.data, packed.n, &out);
    if (e) fail_msg("%zu bytes: %s", n, err_message(e));
    assert_int_equal(out.n, n);
    if (n) assert_memory_equal(out.data, raw, n);
    if (google.uncompress != NULL) {
        char *theirs = mem_alloc(n + 1);
        size_t their_n = n;
        assert_int_equal(google.uncompress((const char *)packed.data, packed.n, theirs, &their_n), 0);
        assert_true(str_eq((str){theirs, their_n}, buf_as_str(&out)));
        mem_free(theirs);
    }
    size_t size = packed.n;
    mem_free(exact);
    buf_deinit(&packed);
    buf_deinit(&out);
    return size;
}

static void test_pack(void **state)
{
    (void)state;
    enum { MAX = 200000 };
    struct rng rng;
    rng_seed(&rng, test_seed());
    uint8_t *raw = mem_alloc(MAX);
    for (int round = 0; round < 600; round++)
        round_trip(raw, make_raw(&rng, raw, round % 20 == 0 ? MAX : 600));
    for (size_t n = 0; n < 200; n++) { /* every length of literal and copy around the margins */
        memset(raw, 'x', n);
        round_trip(raw, n);
        for (size_t i = 0; i < n; i++)
            raw[i] = (uint8_t)rng_next(&rng);
        round_trip(raw, n);
    }
    memset(raw, 0, MAX);
    assert_true(round_trip(raw, MAX) < MAX / 20);
    for (size_t i = 0; i < MAX; i++)
        raw[i] = (uint8_t)rng_next(&rng);
    assert_true(round_trip(raw, MAX) < MAX + MAX / 1000);
    mem_free(raw);
}

static void test_pack_keeps_the_cap(void **state)
{
    (void)state;
    struct buf out = {.max = 100};
    snappy_pack("aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", 70, &out);
    assert_true(out.failed);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_blocks), cmocka_unit_test(test_refusals),           cmocka_unit_test(test_against_google),
        cmocka_unit_test(test_pack),   cmocka_unit_test(test_pack_keeps_the_cap),
    };
    load_google();
    return cmocka_run_group_tests(tests, NULL, NULL);
}
