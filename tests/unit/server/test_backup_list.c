/* Unit backup_list: what is printed is read back, anything else is refused. */
#include "tests/unit/testing.h"

#include "server/backup_list.h"
#include "storage/base/hash.h"

static struct backup_file files[] = {
    {STR("IDENTITY"), 0x0123456789abcdef, 212, INT64_C(1764520248123456789), 12345, 2049},
    {STR("parts/a b.part"), UINT64_MAX, UINT64_MAX, -1, UINT64_MAX, 0},
    {STR("parts/c.part"), 0, 0, 0, 0, 0},
};

static void test_round_trip(void **state)
{
    (void)state;
    struct arena a = {0};
    struct buf text = {0};
    struct backup_list list = {files, ARRAY_LEN(files)}, got;
    backup_list_print(&list, &text);
    assert_ok(backup_list_parse(buf_as_str(&text), &a, &got));
    assert_int_equal(got.n, list.n);
    for (size_t i = 0; i < list.n; i++) {
        const struct backup_file *f = backup_list_find(&got, files[i].path);
        assert_non_null(f);
        assert_true(f->sum == files[i].sum && f->bytes == files[i].bytes && f->mtime_ns == files[i].mtime_ns);
        assert_true(f->inode == files[i].inode && f->device == files[i].device);
    }
    assert_null(backup_list_find(&got, STR("parts")));
    buf_clear(&text);
    backup_list_print(&(struct backup_list){NULL, 0}, &text);
    assert_ok(backup_list_parse(buf_as_str(&text), &a, &got));
    assert_int_equal(got.n, 0);
    assert_null(backup_list_find(&got, STR("x")));
    buf_deinit(&text);
    arena_deinit(&a);
}

static void test_every_cut_and_flip(void **state)
{
    (void)state;
    struct arena a = {0};
    struct buf text = {0};
    struct backup_list list = {files, ARRAY_LEN(files)}, got;
    backup_list_print(&list, &text);
    for (size_t n = 0; n < text.n; n++)
        assert_err(backup_list_parse((str){(char *)text.data, n}, &a, &got), ERR_CORRUPT);
    for (size_t i = 0; i < text.n; i++) {
        text.data[i] ^= 1;
        assert_err(backup_list_parse(buf_as_str(&text), &a, &got), ERR_CORRUPT);
        text.data[i] ^= 1;
    }
    buf_deinit(&text);
    arena_deinit(&a);
}

/* Lines with a good checksum under them. */
static err parse_lines(const char *lines, struct arena *a)
{
    struct buf text = {0};
    struct backup_list got;
    buf_printf(&text, "varve backup 1\n%s", lines);
    buf_printf(&text, "end %016llx\n", (unsigned long long)checksum64(text.data, text.n));
    err e = backup_list_parse(buf_as_str(&text), a, &got);
    buf_deinit(&text);
    return e;
}

static void test_bad_lines(void **state)
{
    static const char *const bad[] = {"file 0000000000000000 1 2 3 4 ../x\n",
                                      "file 0000000000000000 1 2 3 4 /x\n",
                                      "file 0000000000000000 1 2 3 4 a//b\n",
                                      "file 0000000000000000 1 2 3 4 a/./b\n",
                                      "file 0000000000000000 1 2 3 4 a/\n",
                                      "file 0000000000000000 1 2 3 4 \n",
                                      "file 0000000000000000 1 2 3 4\n",
                                      "file 000000000000000 1 2 3 4 x\n",
                                      "file 000000000000000G 1 2 3 4 x\n",
                                      "file 0000000000000000 -1 2 3 4 x\n",
                                      "file 0000000000000000 18446744073709551616 2 3 4 x\n",
                                      "file 0000000000000000 1 2 3 4 x\ty\n",
                                      "folder 0000000000000000 1 2 3 4 x\n",
                                      "\n",
                                      "x",
                                      "file 0000000000000000 1 2 3 4 b\nfile 0000000000000000 1 2 3 4 a\n",
                                      "file 0000000000000000 1 2 3 4 a\nfile 0000000000000000 1 2 3 4 a\n"};
    (void)state;
    struct arena a = {0};
    assert_ok(parse_lines("file 0000000000000000 1 2 3 4 a..b\nfile 0000000000000000 1 2 3 4 b/.x\n", &a));
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        err e = parse_lines(bad[i], &a);
        if (e == NULL) fail_msg("taken: %s", bad[i]);
        assert_err(e, ERR_CORRUPT);
    }
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trip),
        cmocka_unit_test(test_every_cut_and_flip),
        cmocka_unit_test(test_bad_lines),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
