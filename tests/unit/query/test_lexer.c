/* Units lexer, token, literal: tokens in their three states; numbers, durations and strings both ways. */
#include "tests/unit/query/query_text.h"

#include <math.h>

#include "query/lexer.h"
#include "query/literal.h"
#include "storage/base/rng.h"

/* The kinds of the tokens, as text: "name ( number )". */
static const char *const KIND_NAMES[] = {
    [TOKEN_EOF] = "end",
    [TOKEN_IDENTIFIER] = "name",
    [TOKEN_METRIC] = "metric",
    [TOKEN_NUMBER] = "number",
    [TOKEN_DURATION] = "duration",
    [TOKEN_STRING] = "string",
    [TOKEN_OPERATOR] = "op",
    [TOKEN_AGGREGATOR] = "agg",
    [TOKEN_LEFT_PAREN] = "(",
    [TOKEN_RIGHT_PAREN] = ")",
    [TOKEN_LEFT_BRACE] = "{",
    [TOKEN_RIGHT_BRACE] = "}",
    [TOKEN_LEFT_BRACKET] = "[",
    [TOKEN_RIGHT_BRACKET] = "]",
    [TOKEN_COMMA] = ",",
    [TOKEN_COLON] = ":",
    [TOKEN_EQUAL] = "=",
    [TOKEN_EQUAL_REGEX] = "=~",
    [TOKEN_NOT_REGEX] = "!~",
    [TOKEN_AT] = "@",
    [TOKEN_ANCHORED] = "anchored",
    [TOKEN_BOOL] = "bool",
    [TOKEN_BY] = "by",
    [TOKEN_FILL] = "fill",
    [TOKEN_FILL_LEFT] = "fill_l",
    [TOKEN_FILL_RIGHT] = "fill_r",
    [TOKEN_GROUP_LEFT] = "group_l",
    [TOKEN_GROUP_RIGHT] = "group_r",
    [TOKEN_IGNORING] = "ignoring",
    [TOKEN_OFFSET] = "offset",
    [TOKEN_ON] = "on",
    [TOKEN_SMOOTHED] = "smoothed",
    [TOKEN_WITHOUT] = "without",
    [TOKEN_END] = "end()",
    [TOKEN_MAX_OF] = "max_of",
    [TOKEN_MIN_OF] = "min_of",
    [TOKEN_RANGE] = "range",
    [TOKEN_START] = "start",
    [TOKEN_STEP] = "step",
};

static char *kinds(const char *text)
{
    struct buf out = {0};
    struct lexer l;
    struct token t;
    lexer_init(&l, str_of(text));
    for (;;) {
        if (!lexer_next(&l, &t)) {
            buf_printf(&out, "%serror: %s", out.n ? " " : "", l.error);
            break;
        }
        assert_true(t.start <= t.end && t.end <= strlen(text));
        if (t.kind == TOKEN_EOF) break;
        buf_printf(&out, "%s%s", out.n ? " " : "", KIND_NAMES[t.kind]);
    }
    char *s = mem_dup_str(buf_as_str(&out));
    buf_deinit(&out);
    return s;
}

static void test_tokens(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"", ""},
        {" \t\r\n# only a comment", ""},
        {"foo a:b :c _x1", "name metric metric name"},
        {"1 1.5 .5 5. 1e3 1E-3 0x1F 017 1_000 Inf nan",
         "number number number number number number number number number "
         "number number"},
        {"5m 1h30m 2y3w4d5h6m7s8ms 500ms", "duration duration duration duration"},
        {"+ - * / % ^ == != < > <= >= </ >/ and or unless atan2",
         "op op op op op op op op op op op op op op op op op op"},
        {"SUM By OFFSET oN", "agg by offset on"},
        {"sum avg min max count group stddev stdvar topk bottomk quantile count_values limitk limit_ratio",
         "agg agg agg agg agg agg agg agg agg agg agg agg agg agg"},
        {"a # comment\r b", "name name"},
        {"{sum=\"x\", by!=\"y\", on=~'z', x!~`w`}",
         "{ name = string , name op string , name =~ string , name !~ string }"},
        {"x[5m]", "name [ duration ]"},
        {"x[5m:1m]", "name [ duration : duration ]"},
        {"x[5m+step():max_of(1,min_of(2,3))]",
         "name [ duration op step ( ) : max_of ( number , min_of ( number , number ) ) ]"},
        {"x @ start()", "name @ start ( )"},
        {"fill + fill_left", "name op name"},
        {"fill(0) fill_left (1) fill_right\n(2)", "fill ( number ) fill_l ( number ) fill_r ( number )"},
        {"x anchored smoothed", "name anchored smoothed"},
        {"\"a\\n\" 'b' `c\\d\ne`", "string string string"},
        {"a=b", "name = name"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *got = kinds(cases[i][0]);
        assert_string_equal(got, cases[i][1]);
        mem_free(got);
    }
}

static void test_failures(void **state)
{
    (void)state;
    static const char *const cases[][2] = {
        {"\"abc", "unterminated quoted string"},
        {"\"a\nb\"", "unterminated quoted string"},
        {"`abc", "unterminated raw string"},
        {"'\\q'", "unknown escape sequence"},
        {"'\\\"'", "unknown escape sequence"},
        {"\"\\x1\"", "illegal character in escape sequence"},
        {"\"\\400\"", "invalid Unicode code point"},
        {"\"\\ud800\"", "invalid Unicode code point"},
        {"\"\\U00110000\"", "invalid Unicode code point"},
        {"\"\\u12", "escape sequence not terminated"},
        {"\"\xff\"", "invalid UTF-8 rune"},
        {"\"\xef\xbf\xbd\"", "invalid UTF-8 rune"},
        {"a ! b", "unexpected character after '!'"},
        {"a =~ b", "unexpected character after '='"},
        {"{a!b}", "unexpected character after '!' inside braces"},
        {"{", "unexpected end of input inside braces"},
        {"{{", "unexpected left brace inside braces"},
        {"{a:b}", "unexpected character inside braces"},
        {"(", "unclosed left parenthesis"},
        {"x[5m", "unclosed left bracket"},
        {")", "unexpected right parenthesis"},
        {"]", "unexpected right bracket"},
        {"x[5m[", "unexpected left bracket"},
        {"x[5m:1m:1m]", "unexpected repeated colon"},
        {"x[:1m]", "unexpected colon before duration"},
        {"x[step():1m]", "unexpected colon before duration"},
        {"x[abc]", "unexpected character in duration expression"},
        {"x[# c\n5m]", "unexpected character in duration expression"},
        {"x[", "unexpected end of input in duration expression"},
        {"5x", "bad number or duration syntax"},
        {"0x1e", "bad number or duration syntax"},
        {"1__0", "bad number or duration syntax"},
        {"1.2.3", "bad number or duration syntax"},
        {"$", "unexpected character"},
        {"\xc3\xa9", "unexpected character"},
    };
    for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
        char *got = kinds(cases[i][0]);
        if (!strstr(got, cases[i][1])) print_message("%s: got %s, want %s\n", cases[i][0], got, cases[i][1]);
        assert_non_null(strstr(got, cases[i][1]));
        mem_free(got);
    }
}

static void expect_number(const char *text, double want)
{
    double v = 0;
    assert_true(literal_number(str_of(text), &v));
    if (f64_bits(v) != f64_bits(want)) print_message("%s gives %g\n", text, v);
    assert_true(f64_bits(v) == f64_bits(want));
}

static void test_numbers(void **state)
{
    (void)state;
    expect_number("42", 42);
    expect_number("0x1F", 31);
    expect_number("0X_ff", 255);
    expect_number("010", 8);
    expect_number("08", 8); /* no octal number, so decimal */
    expect_number("0_10", 8);
    expect_number("1_000.5", 1000.5);
    expect_number("1e3", 1000);
    expect_number(".5", 0.5);
    expect_number("5.", 5);
    expect_number("0.1", 0.1);
    expect_number("inf", (double)INFINITY);
    expect_number("9223372036854775808", 9223372036854775808.0);
    expect_number("0777777777777777777777777", 777777777777777777777777.0); /* too big for octal */
    double v;
    assert_true(literal_number(STR("NaN"), &v) && isnan(v));
    static const char *const bad[] = {
        "", "1e", "1e+", "1__0", "_1", "1_", "1_.5", "0x", "0xffffffffffffffffff", "1e400", "0x1e5p", "."};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++)
        assert_false(literal_number(str_of(bad[i]), &v));
}

static void expect_duration(int64_t ms, const char *text)
{
    struct buf b = {0};
    literal_print_duration(ms, &b);
    assert_true(str_eq(buf_as_str(&b), str_of(text)));
    buf_deinit(&b);
}

static void test_durations(void **state)
{
    (void)state;
    int64_t ns;
    assert_true(literal_duration(STR("1h30m"), &ns, NULL));
    assert_int_equal(ns, INT64_C(5400000000000));
    assert_true(literal_duration(STR("1y2w3d4h5m6s7ms"), &ns, NULL));
    assert_int_equal(ns / 1000000, INT64_C(31536000000) + 1209600000 + 259200000 + 14400000 + 300000 + 6000 + 7);
    assert_true(literal_duration(STR("0"), &ns, NULL));
    assert_int_equal(ns, 0);
    static const char *const bad[] = {"",   "5", "m", "5x", "1m1h", "1m1m", "1.5h", "300y", "99999999999999999999s",
                                      "1hm"};
    for (size_t i = 0; i < ARRAY_LEN(bad); i++) {
        const char *reason = NULL;
        assert_false(literal_duration(str_of(bad[i]), &ns, &reason));
        assert_non_null(reason);
    }
    expect_duration(0, "0s");
    expect_duration(5400000, "1h30m");
    expect_duration(INT64_C(90) * 86400000, "90d");
    expect_duration(INT64_C(14) * 86400000, "2w");
    expect_duration(INT64_C(365) * 86400000, "1y");
    expect_duration(-61001, "-1m1s1ms");
    assert_int_equal(literal_seconds_to_ns(1e30), INT64_MAX);
    assert_int_equal(literal_seconds_to_ns(-1e30), INT64_MIN);
    assert_int_equal(literal_seconds_to_ns((double)NAN), 0);
}

static void test_keyword_index(void **state)
{
    (void)state;
    /* each keyword is found in any case, also by its length's slot */
    static const char *const words[] = {"by",          "on",         "or",          "and",      "bool",
                                        "step",        "atan2",      "range",       "start",    "max_of",
                                        "unless",      "without",    "quantile",    "smoothed", "limit_ratio",
                                        "group_right", "group_left", "count_values"};
    for (size_t i = 0; i < ARRAY_LEN(words); i++) {
        struct lexer l;
        struct token t;
        lexer_init(&l, str_of(words[i]));
        assert_true(lexer_next(&l, &t));
        assert_int_not_equal(t.kind, TOKEN_IDENTIFIER);
    }
    char *got = kinds("counts bys fillx count_valuesx");
    assert_string_equal(got, "name name name name");
    mem_free(got);
}

/* Any string, quoted and read back, is itself. */
static void test_strings_round_trip(void **state)
{
    (void)state;
    struct rng rng;
    rng_seed(&rng, test_seed());
    for (int round = 0; round < 2000; round++) {
        char bytes[24];
        size_t n = rng_below(&rng, sizeof bytes);
        for (size_t i = 0; i < n; i++)
            bytes[i] = rng_below(&rng, 3) ? (char)rng_below(&rng, 256) : "\"\\\n\xc3\xa9`'"[rng_below(&rng, 7)];
        struct buf quoted = {0};
        literal_print_string((str){bytes, n}, &quoted);
        struct lexer l;
        struct token t;
        lexer_init(&l, buf_as_str(&quoted));
        assert_true(lexer_next(&l, &t));
        assert_int_equal(t.kind, TOKEN_STRING);
        assert_int_equal(t.end, quoted.n);
        struct arena a = {0};
        assert_true(str_eq(literal_unquote(buf_as_str(&quoted), &a), (str){bytes, n}));
        arena_deinit(&a);
        buf_deinit(&quoted);
    }
}

static void test_strings(void **state)
{
    (void)state;
    expect_text("\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"", "\"\\a\\b\\f\\n\\r\\t\\v\\\\\\\"\"");
    expect_text("'it\\'s \"x\"'", "\"it's \\\"x\\\"\"");
    expect_text("`raw \\n`", "\"raw \\\\n\"");
    expect_text("\"\\x41\\101\\u0041\\U00000041\"", "\"AAAA\"");
    expect_text("\"\xc3\xa9\\u00e9\\xff\\u00ad\"", "\"\xc3\xa9\xc3\xa9\\xff\\u00ad\"");
    expect_text("\"\\ufffd\"", "\"\\ufffd\"");
    expect_text("\"\\U0001f600\\ue000\"", "\"\xf0\x9f\x98\x80\\ue000\"");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tokens),        cmocka_unit_test(test_failures),
        cmocka_unit_test(test_numbers),       cmocka_unit_test(test_durations),
        cmocka_unit_test(test_keyword_index), cmocka_unit_test(test_strings_round_trip),
        cmocka_unit_test(test_strings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
