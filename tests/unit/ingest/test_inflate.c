/* test_inflate.c: content encodings: right bodies expand, cut, damaged, padded and giant ones are refused. */
#include <zlib.h>
#include <zstd.h>

#include "ingest/inflate.h"
#include "tests/unit/ingest/fixture.h"

/* bits as zlib takes them: 31 gzip, 15 zlib, -15 bare. */
static str deflated(const void *p, size_t n, int bits)
{
    z_stream z = {0};
    assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY), Z_OK);
    size_t max = deflateBound(&z, n) + 64;
    uint8_t *out = mem_alloc(max);
    z.next_in = (Bytef *)(uintptr_t)p;
    z.avail_in = (unsigned)n;
    z.next_out = out;
    z.avail_out = (unsigned)max;
    assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
    deflateEnd(&z);
    return (str){(char *)out, max - z.avail_out};
}

static void expands(enum encoding encoding, str body, str expected, size_t cap)
{
    struct buf out = {.max = cap};
    char *exact = mem_dup(body.p, body.n);
    str raw;
    err e = body_expand(encoding, (str){exact, body.n}, &out, &raw);
    if (e) fail_msg("encoding %d: %s", encoding, err_message(e));
    assert_true(str_eq(raw, expected));
    mem_free(exact);
    buf_deinit(&out);
}

static void refused(enum encoding encoding, str body, size_t cap, enum err_code code)
{
    struct buf out = {.max = cap};
    str raw;
    err e = body_expand(encoding, body, &out, &raw);
    if (err_code(e) != code) fail_msg("encoding %d gave %s: %s", encoding, err_code_name(err_code(e)), err_message(e));
    assert_true(out.cap <= cap + 64);
    err_free(e);
    buf_deinit(&out);
}

static void test_names(void **state)
{
    (void)state;
    static const struct {
        const char *header;
        int encoding; /* -1: refused */
    } table[] = {
        {"", ENCODING_SNAPPY},
        {"gzip", ENCODING_GZIP},
        {"GZip", ENCODING_GZIP},
        {" zstd ", ENCODING_ZSTD},
        {"x-gzip", ENCODING_GZIP},
        {"identity", ENCODING_IDENTITY},
        {"deflate", ENCODING_DEFLATE},
        {"snappy", ENCODING_SNAPPY},
        {"br", -1},
        {"gzip, gzip", -1},
        {"gzipx", -1},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        enum encoding got;
        err e = encoding_parse(str_of(table[i].header), ENCODING_SNAPPY, &got);
        if (table[i].encoding < 0)
            assert_int_equal(err_code(e), ERR_UNSUPPORTED);
        else
            assert_int_equal(got, table[i].encoding);
        err_free(e);
    }
}

static void test_zlib_kinds(void **state)
{
    (void)state;
    static const struct {
        enum encoding encoding;
        int bits;
    } kinds[] = {{ENCODING_GZIP, 31}, {ENCODING_DEFLATE, 15}, {ENCODING_DEFLATE, -15}};
    struct rng rng;
    test_seed(&rng);
    size_t n = 300000;
    char *raw = mem_alloc(n);
    for (size_t i = 0; i < n; i++)
        raw[i] = "abc\n"[rng_below(&rng, 4)];
    for (size_t k = 0; k < ARRAY_LEN(kinds); k++) {
        for (size_t part = 1; part <= n; part = part * 7 + 1) {
            str body = deflated(raw, part, kinds[k].bits);
            expands(kinds[k].encoding, body, (str){raw, part}, 1 << 20);
            expands(kinds[k].encoding, body, (str){raw, part}, part); /* exactly the cap */
            if (part > 1) refused(kinds[k].encoding, body, part - 1, ERR_TOO_LARGE);
            refused(kinds[k].encoding, (str){body.p, body.n - 1}, 1 << 20, ERR_INVALID);
            refused(kinds[k].encoding, (str){body.p, body.n / 2}, 1 << 20, ERR_INVALID);
            if (kinds[k].bits == 31) { /* the trailer is looked at */
                ((char *)(uintptr_t)body.p)[body.n - 6] ^= 1;
                refused(ENCODING_GZIP, body, 1 << 20, ERR_INVALID);
            }
            mem_free((void *)(uintptr_t)body.p);
        }
    }
    mem_free(raw);
}

static void test_gzip_members(void **state)
{
    (void)state;
    str a = deflated("one ", 4, 31), b = deflated("two", 3, 31);
    struct buf both = {0};
    buf_str(&both, a);
    buf_str(&both, b);
    expands(ENCODING_GZIP, buf_as_str(&both), STR("one two"), 100);
    buf_u8(&both, 'x');
    refused(ENCODING_GZIP, buf_as_str(&both), 100, ERR_INVALID);
    buf_deinit(&both);
    mem_free((void *)(uintptr_t)a.p);
    mem_free((void *)(uintptr_t)b.p);
    refused(ENCODING_GZIP, STR(""), 100, ERR_INVALID);
    refused(ENCODING_GZIP, STR("plain text"), 100, ERR_INVALID);
    refused(ENCODING_DEFLATE, STR(""), 100, ERR_INVALID);
}

static void test_bombs(void **state)
{
    (void)state;
    size_t n = 20 << 20, cap = 100000;
    char *zeros = mem_zalloc(n);
    str gzip = deflated(zeros, n, 31), zlib = deflated(zeros, n, 15);
    refused(ENCODING_GZIP, gzip, cap, ERR_TOO_LARGE);
    refused(ENCODING_DEFLATE, zlib, cap, ERR_TOO_LARGE);
    size_t max = ZSTD_compressBound(n);
    char *packed = mem_alloc(max);
    size_t size = ZSTD_compress(packed, max, zeros, n, 3);
    refused(ENCODING_ZSTD, (str){packed, size}, cap, ERR_TOO_LARGE);
    refused(ENCODING_IDENTITY, (str){zeros, n}, cap, ERR_TOO_LARGE);
    size = ZSTD_compress(packed, max, "hello", 5, 3);
    expands(ENCODING_ZSTD, (str){packed, size}, STR("hello"), cap);
    refused(ENCODING_ZSTD, (str){packed, size - 1}, cap, ERR_INVALID);
    expands(ENCODING_SNAPPY,
            (str){"\x03\x08"
                  "abc",
                  5},
            STR("abc"), cap);
    expands(ENCODING_IDENTITY, STR("abc"), STR("abc"), cap);
    mem_free(packed);
    mem_free(zeros);
    mem_free((void *)(uintptr_t)gzip.p);
    mem_free((void *)(uintptr_t)zlib.p);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_zlib_kinds),
        cmocka_unit_test(test_gzip_members),
        cmocka_unit_test(test_bombs),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
