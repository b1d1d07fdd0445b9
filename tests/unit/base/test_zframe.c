/* Unit zframe: frames round-trip, every flipped bit is found, outside bodies expand within their cap. */
#include "tests/unit/testing.h"

#include "storage/base/alloc.h"
#include "storage/base/rng.h"
#include "storage/base/zframe.h"

#include <zstd.h>

static struct zctx *z;

static int make_zctx(void **state)
{
    (void)state;
    z = zctx_create();
    return 0;
}

static int drop_zctx(void **state)
{
    (void)state;
    zctx_destroy(z);
    return 0;
}

/* Bytes that compress somewhat (`letters` different values) or not at all (256). */
static uint8_t *random_bytes(struct rng *r, size_t n, uint64_t letters)
{
    uint8_t *p = mem_alloc(n);
    for (size_t i = 0; i < n; i++)
        p[i] = (uint8_t)rng_below(r, letters);
    return p;
}

static void check_round_trip(const uint8_t *p, size_t n, struct buf *out)
{
    size_t disk, raw, at = out->n;
    zframe_put(z, p, n, 1, out);
    assert_ok(zframe_sizes(out->data + at, n, &disk, &raw));
    assert_int_equal(raw, n);
    assert_int_equal(disk, out->n - at);
    assert_true(disk <= n + ZFRAME_HEADER);
    uint8_t *back = mem_alloc(n);
    assert_ok(zframe_get(z, out->data + at, disk, back, raw));
    assert_memory_equal(back, p, n);
    mem_free(back);
}

static void test_round_trip(void **state)
{
    (void)state;
    struct rng r;
    struct buf out = {0};
    rng_seed(&r, test_seed());
    static const size_t sizes[] = {0, 1, 2, 15, 100, 4096, 16384, 300000};
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (uint64_t letters = 1; letters <= 256; letters *= 4) {
            uint8_t *p = random_bytes(&r, sizes[i], letters);
            check_round_trip(p, sizes[i], &out);
            mem_free(p);
        }
    }
    buf_deinit(&out);
}

static void test_incompressible_is_stored(void **state)
{
    (void)state;
    struct rng r;
    struct buf out = {0};
    rng_seed(&r, test_seed());
    uint8_t *p = random_bytes(&r, 1000, 256);
    zframe_put(z, p, 1000, 1, &out);
    assert_int_equal(out.n, 1000 + ZFRAME_HEADER);
    assert_memory_equal(out.data + ZFRAME_HEADER, p, 1000);
    mem_free(p);
    buf_deinit(&out);
}

static void test_cap_of_the_output(void **state)
{
    (void)state;
    struct buf out = {.max = 50};
    uint8_t zeros[100] = {0};
    zframe_put(z, zeros, sizeof zeros, 1, &out);
    assert_true(out.failed);
    buf_deinit(&out);
}

/* Any single wrong bit, and any wrong length, is an error and never a wrong answer. */
static void check_damage(struct buf *frame, size_t raw)
{
    uint8_t *back = mem_alloc(raw);
    for (size_t bit = 0; bit < frame->n * 8; bit++) {
        frame->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_err(zframe_get(z, frame->data, frame->n, back, raw), ERR_CORRUPT);
        frame->data[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t n = 0; n < frame->n; n++) {
        uint8_t *cut = mem_dup(frame->data, n); /* exact size: reading beyond is seen by ASan */
        assert_err(zframe_get(z, cut, n, back, raw), ERR_CORRUPT);
        mem_free(cut);
    }
    assert_ok(zframe_get(z, frame->data, frame->n, back, raw));
    mem_free(back);
}

static void test_damage(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    for (uint64_t letters = 2; letters <= 256; letters *= 128) {
        struct buf out = {0};
        uint8_t *p = random_bytes(&r, 200, letters);
        zframe_put(z, p, 200, 1, &out);
        check_damage(&out, 200);
        mem_free(p);
        buf_deinit(&out);
    }
}

static void test_sizes_are_capped(void **state)
{
    (void)state;
    struct buf out = {0};
    uint8_t zeros[5000] = {0};
    size_t disk, raw;
    zframe_put(z, zeros, sizeof zeros, 1, &out);
    assert_err(zframe_sizes(out.data, 4999, &disk, &raw), ERR_CORRUPT);
    assert_ok(zframe_sizes(out.data, 5000, &disk, &raw));
    uint8_t absurd[ZFRAME_HEADER] = {0xff, 0xff, 0, 0, 10};
    assert_err(zframe_sizes(absurd, 1 << 20, &disk, &raw), ERR_CORRUPT);
    buf_deinit(&out);
}

/* ---- zstd_expand */

static size_t compressed(const void *p, size_t n, bool with_size, uint8_t *to, size_t room)
{
    ZSTD_CCtx *c = ZSTD_createCCtx();
    ZSTD_CCtx_setParameter(c, ZSTD_c_contentSizeFlag, with_size);
    ZSTD_CCtx_setParameter(c, ZSTD_c_checksumFlag, 1);
    size_t got = ZSTD_compress2(c, to, room, p, n);
    ZSTD_freeCCtx(c);
    assert_false(ZSTD_isError(got));
    return got;
}

static void test_expand(void **state)
{
    (void)state;
    struct rng r;
    rng_seed(&r, test_seed());
    static const size_t sizes[] = {0, 1, 1000, 131072, 131073, 700000};
    size_t room = ZSTD_compressBound(700000) * 2;
    uint8_t *body = mem_alloc(room);
    for (size_t i = 0; i < ARRAY_LEN(sizes); i++) {
        for (int with_size = 0; with_size < 2; with_size++) {
            uint8_t *p = random_bytes(&r, sizes[i], 4);
            size_t n = compressed(p, sizes[i], with_size, body, room);
            size_t twice = n + compressed(p, sizes[i], !with_size, body + n, room - n);
            struct buf out = {.max = 2 * sizes[i] + 1};
            assert_ok(zstd_expand(body, twice, &out)); /* two frames, one with a size and one without */
            assert_int_equal(out.n, 2 * sizes[i]);
            assert_memory_equal(out.data, p, sizes[i]);
            assert_memory_equal(out.data + sizes[i], p, sizes[i]);
            buf_clear(&out);
            for (size_t cut = 1; cut < n && cut < 20; cut++) {
                assert_err(zstd_expand(body, n - cut, &out), ERR_INVALID);
                buf_clear(&out);
            }
            buf_deinit(&out);
            mem_free(p);
        }
    }
    mem_free(body);
}

static void test_expand_respects_the_cap(void **state)
{
    (void)state;
    enum { N = 50 << 20 };
    uint8_t *zeros = mem_zalloc(N), *body = mem_alloc(1 << 20);
    for (int with_size = 0; with_size < 2; with_size++) {
        size_t n = compressed(zeros, N, with_size, body, 1 << 20);
        struct buf out = {.max = 1 << 20};
        assert_err(zstd_expand(body, n, &out), ERR_TOO_LARGE);
        assert_true(out.cap <= 1 << 20);
        buf_deinit(&out);
        out = (struct buf){.max = N};
        assert_ok(zstd_expand(body, n, &out));
        assert_int_equal(out.n, N);
        buf_deinit(&out);
    }
    mem_free(zeros);
    mem_free(body);
}

static void test_expand_rejects_garbage(void **state)
{
    (void)state;
    struct buf out = {.max = 1 << 20};
    assert_err(zstd_expand("", 0, &out), ERR_INVALID);
    assert_err(zstd_expand("garbage", 7, &out), ERR_INVALID);
    /* a header that claims 2^40 bytes (single segment, 8-byte size) and nothing behind it */
    static const uint8_t liar[] = {0x28, 0xb5, 0x2f, 0xfd, 0xe0, 0, 0, 0, 0, 0, 1, 0, 0};
    buf_clear(&out);
    assert_err(zstd_expand(liar, sizeof liar, &out), ERR_INVALID);
    assert_true(out.cap <= 1 << 18);
    buf_deinit(&out);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_incompressible_is_stored),
        cmocka_unit_test(test_cap_of_the_output),
        cmocka_unit_test(test_damage),
        cmocka_unit_test(test_sizes_are_capped),
        cmocka_unit_test(test_expand),
        cmocka_unit_test(test_expand_respects_the_cap),
        cmocka_unit_test(test_expand_rejects_garbage),
    };
    return cmocka_run_group_tests(tests, make_zctx, drop_zctx);
}
