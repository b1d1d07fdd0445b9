/* Units api_answer, table, cli_result: answers of the API taken apart, and shown. */
#include "tests/unit/testing.h"

#include "server/cli_result.h"
#include "server/table.h"

static void assert_text(struct buf *b, const char *expected)
{
    buf_u8(b, '\0');
    assert_string_equal((char *)b->data, expected);
    buf_clear(b);
}

static void test_envelope(void **state)
{
    (void)state;
    struct arena a = {0};
    struct api_answer r;
    assert_ok(
        api_answer_parse(STR("{\"status\":\"success\",\"data\":[1, 2],\"warnings\":[\"a\\n\",\"b\"],\"infos\":null,"
                             "\"other\":{\"x\":[]}}"),
                         &a, &r));
    assert_true(r.success);
    assert_true(str_eq(r.data, STR("[1, 2]")));
    assert_int_equal(r.n_warnings, 2);
    assert_true(str_eq(r.warnings[0], STR("a\n")));
    assert_ok(api_answer_parse(STR("{\"status\":\"error\",\"errorType\":\"bad_data\",\"error\":\"no\",\"accepted\":3,"
                                   "\"rejected\":4}"),
                               &a, &r));
    assert_false(r.success);
    assert_true(str_eq(r.error, STR("no")));
    assert_int_equal(r.accepted, 3);
    assert_int_equal(r.rejected, 4);
    arena_deinit(&a);
}

static void test_bad_answers(void **state)
{
    static const char *const answers[] = {
        "", "null", "[]", "{", "{}x", "{\"status\":1}", "{\"rejected\":-1}", "{\"warnings\":[1]}", "{\"data\":}"};
    static const char *const results[] = {"",
                                          "{}",
                                          "{\"resultType\":\"vector\"}",
                                          "{\"resultType\":\"thing\",\"result\":[]}",
                                          "{\"resultType\":\"scalar\",\"result\":[]}",
                                          "{\"resultType\":\"scalar\",\"result\":[\"1\",\"2\"]}",
                                          "{\"resultType\":\"vector\",\"result\":[{\"metric\":[]}]}",
                                          "{\"resultType\":\"vector\",\"result\":[{\"value\":[1,2]}]}",
                                          "{\"resultType\":\"matrix\",\"result\":[{\"values\":[1]}]}"};
    (void)state;
    struct arena a = {0};
    struct api_answer r;
    struct api_result q;
    str *v;
    size_t n;
    for (size_t i = 0; i < ARRAY_LEN(answers); i++)
        assert_err(api_answer_parse(str_of(answers[i]), &a, &r), ERR_INVALID);
    for (size_t i = 0; i < ARRAY_LEN(results); i++)
        assert_err(api_result_parse(str_of(results[i]), &a, &q), ERR_INVALID);
    assert_err(api_strings_parse(STR("[1]"), &a, &v, &n), ERR_INVALID);
    assert_err(api_strings_parse((str){0}, &a, &v, &n), ERR_INVALID);
    assert_err(api_series_parse(STR("[[]]"), &a, &q), ERR_INVALID);
    arena_deinit(&a);
}

static const char vector[] =
    "{\"resultType\":\"vector\",\"result\":["
    "{\"metric\":{\"zone\":\"eu\",\"__name__\":\"up\",\"job\":\"a,b\"},\"value\":[1700000000.5,\"1e-07\"]},"
    "{\"metric\":{\"__name__\":\"down\",\"job\":\"\\u001b[1m\\t\xc3\xa9\"},\"value\":[1700000000.5,\"NaN\"]},"
    "{\"metric\":{},\"histogram\":[1700000000,{\"count\":\"3\",\"sum\":\"4.5\",\"buckets\":[[1,\"0\",\"1\",\"3\"]]}]}]"
    "}";

static void test_vector(void **state)
{
    (void)state;
    struct arena a = {0};
    struct api_result r;
    struct buf out = {0};
    assert_ok(api_result_parse(str_of(vector), &a, &r));
    assert_ok(cli_result_table(&r, &a, false, &out));
    assert_text(&out, "__name__  job         zone               value\n"
                      "up        a,b         eu                 1e-07\n"
                      "down      \\x1b[1m\\t\xc3\xa9                       NaN\n"
                      "                            {count:3, sum:4.5}\n");
    assert_ok(cli_result_csv(&r, &a, &out));
    assert_text(&out, "__name__,job,zone,timestamp,value\r\n"
                      "up,\"a,b\",eu,1700000000.5,1e-07\r\n"
                      "down,\x1b[1m\t\xc3\xa9,,1700000000.5,NaN\r\n"
                      ",,,1700000000,\"{count:3, sum:4.5}\"\r\n");
    buf_deinit(&out);
    arena_deinit(&a);
}

static void test_matrix(void **state)
{
    (void)state;
    struct arena a = {0};
    struct api_result r;
    struct buf out = {0};
    assert_ok(
        api_result_parse(STR("{\"resultType\":\"matrix\",\"result\":[{\"metric\":{\"__name__\":\"m\",\"x\":\"1\"},"
                             "\"values\":[[1700000000,\"1\"],[1700000015.25,\"-20\"]]}]}"),
                         &a, &r));
    assert_ok(cli_result_table(&r, &a, false, &out));
    assert_text(&out, "m{x=\"1\"}\n"
                      "  time                      value\n"
                      "  2023-11-14T22:13:20Z          1\n"
                      "  2023-11-14T22:13:35.250Z    -20\n");
    buf_deinit(&out);
    arena_deinit(&a);
}

static void test_single_values(void **state)
{
    (void)state;
    struct arena a = {0};
    struct api_result r;
    struct buf out = {0};
    assert_ok(api_result_parse(STR("{\"resultType\":\"scalar\",\"result\":[1,\"+Inf\"]}"), &a, &r));
    assert_ok(cli_result_table(&r, &a, true, &out));
    assert_text(&out, "+Inf\n");
    assert_ok(api_result_parse(STR("{\"result\":[1,\"a\\nb\"],\"resultType\":\"string\"}"), &a, &r));
    assert_ok(cli_result_table(&r, &a, true, &out));
    assert_text(&out, "a\\nb\n");
    assert_ok(api_result_parse(STR("{\"resultType\":\"vector\",\"result\":[]}"), &a, &r));
    assert_ok(cli_result_table(&r, &a, true, &out));
    assert_int_equal(out.n, 0);
    buf_deinit(&out);
    arena_deinit(&a);
}

static void test_series(void **state)
{
    (void)state;
    struct arena a = {0};
    struct api_result r;
    struct buf out = {0};
    assert_ok(api_series_parse(STR("[{\"__name__\":\"b\"},{\"__name__\":\"a.c\",\"x\":\"\\\"\"},{\"__name__\":\"a\"}]"),
                               &a, &r));
    cli_result_selectors(&r, &out);
    assert_text(&out, "a\n{\"a.c\", x=\"\\\"\"}\nb\n");
    assert_ok(cli_result_series_csv(&r, &a, &out));
    assert_text(&out, "__name__,x\r\nb,\r\na.c,\"\"\"\"\r\na,\r\n");
    buf_deinit(&out);
    arena_deinit(&a);
}

static void test_too_many_columns(void **state)
{
    (void)state;
    struct arena a = {0};
    struct api_result r;
    struct buf text = {0}, out = {0};
    buf_str(&text, STR("[{"));
    for (int i = 0; i < 1001; i++)
        buf_printf(&text, "%s\"l%d\":\"x\"", i > 0 ? "," : "", i);
    buf_str(&text, STR("}]"));
    assert_ok(api_series_parse(buf_as_str(&text), &a, &r));
    assert_err(cli_result_csv(&r, &a, &out), ERR_LIMIT);
    assert_err(cli_result_series_csv(&r, &a, &out), ERR_LIMIT);
    buf_deinit(&text);
    buf_deinit(&out);
    arena_deinit(&a);
}

static void test_empty_cells(void **state)
{
    (void)state;
    struct arena a = {0};
    struct table t;
    struct buf out = {0};
    table_init(&t, 2, &a);
    table_column(&t, 0, STR("name"), TABLE_LEFT);
    table_column(&t, 1, STR("n"), TABLE_RIGHT);
    table_row(&t);
    table_row(&t);
    table_cell(&t, STR("long name"));
    table_cell(&t, STR("1000"));
    assert_int_equal(table_rows(&t), 2);
    table_print(&t, true, &out);
    assert_text(&out, "\033[1mname          n\033[0m\n               \nlong name  1000\n");
    table_deinit(&t);
    buf_deinit(&out);
    arena_deinit(&a);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_envelope),         cmocka_unit_test(test_bad_answers),   cmocka_unit_test(test_vector),
        cmocka_unit_test(test_matrix),           cmocka_unit_test(test_single_values), cmocka_unit_test(test_series),
        cmocka_unit_test(test_too_many_columns), cmocka_unit_test(test_empty_cells),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
