/*
 * test_regex.c: patterns mean what RE2 means by them, are refused when RE2 refuses them, and end in
 * bounded time. Expected results were taken down from RE2's and Go's documentation, not from our code.
 */
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <cmocka.h>

#include "storage/base/alloc.h"
#include "storage/base/buf.h"
#include "storage/base/env.h"
#include "storage/base/rng.h"
#include "storage/regex.h"

static struct regex *compiled(str pattern)
{
    struct regex *re = NULL;
    err e = regex_create(pattern, &re);
    if (e) fail_msg("%.*s: %s", STR_ARG(pattern), err_message(e));
    return re;
}

static enum regex_result match_once(const char *pattern, const char *subject)
{
    struct regex *re = compiled(str_of(pattern));
    enum regex_result r = regex_match(re, str_of(subject));
    regex_destroy(re);
    return r;
}

static void expect(const char *pattern, const char *subject, bool yes)
{
    enum regex_result r = match_once(pattern, subject);
    if (r != (yes ? REGEX_YES : REGEX_NO)) fail_msg("`%s` on `%s` gave %d", pattern, subject, r);
}

static void test_matches(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *yes[6], *no[6];
    } table[] = {
        {"", {""}, {"a"}},
        {"foo", {"foo"}, {"", "fo", "fooo", "xfoo"}},
        {"foo|bar", {"foo", "bar"}, {"foobar", "fo", "ba"}},
        {"a(b|c)d", {"abd", "acd"}, {"ad", "abcd"}},
        {".*", {"", "a", "a\nb", "\xc3\xa9"}, {NULL}},
        {".+", {"a", "\n"}, {""}},
        {"foo.*", {"foo", "foobar", "foo\n"}, {"fo", "xfoo"}},
        {"foo.+", {"foox", "foo\xc3\xa9"}, {"foo", "fo"}},
        {".*foo", {"foo", "xfoo"}, {"foox"}},
        {".+foo", {"xfoo", "foofoo"}, {"foo"}},
        {".*foo.*", {"foo", "xfoo", "foox", "xfoox"}, {"fo", ""}},
        {".+foo.+", {"xfoox", "foofoofoo", "xfoofoo"}, {"foo", "xfoo", "foox", "foofoo"}},
        {"a.*b.*c", {"abc", "axbxc", "abbcc"}, {"acb", "ab", "ac"}},
        {"a.*a", {"aa", "aba"}, {"a"}},
        {"a.+a", {"axa", "aaa"}, {"aa"}},
        {".*.+", {"a"}, {""}},
        {".+.+", {"ab", "\xc3\xa9\xc3\xa9"}, {"a", "\xc3\xa9"}},
        {"(foo|bar).*-(x|y)", {"foo-x", "bar123-y"}, {"foo", "foo-z"}},
        {"web-[0-3]", {"web-0", "web-3"}, {"web-4"}},
        {"web-[0-9]+", {"web-0", "web-12345"}, {"web-", "web-a"}},
        {"(?i)foo", {"foo", "FOO", "fOo"}, {"fo"}},
        {"(?i)\xc3\xa9", {"\xc3\x89"}, {"e"}},
        {"(?i:a)b", {"Ab", "ab"}, {"AB"}},
        {"a(?i)b|c", {"aB", "C"}, {"Ab"}},
        {"(?-s)a.b", {"axb"}, {"a\nb"}},
        {"(?-s).*", {"ab"}, {"a\nb"}},
        {"a.b", {"a\nb"}, {"ab"}},
        {"[^a]", {"b", "\n", "\xe2\x82\xac"}, {"a", ""}},
        {"[]a]", {"]", "a"}, {"b"}},
        {"[^]a]", {"b"}, {"]", "a"}},
        {"[a-]", {"a", "-"}, {"b"}},
        {"[-a]", {"a", "-"}, {"b"}},
        {"[a\\-z]", {"a", "-", "z"}, {"b"}},
        {"[[:alpha:]]+", {"abC"}, {"a1", "\xc3\xa9"}},
        {"[[:^alpha:]]", {"1", "\xc3\xa9"}, {"a"}},
        {"[[:cntrl:]]", {"\x01", "\x7f"}, {"a", " "}},
        {"[[:^cntrl:]]", {"a", " ", "\xc3\xa9"}, {"\x01", "\x7f"}},
        {"[[:ascii:]]", {"a"}, {"\xc3\xa9"}},
        {"[[:word:]-]+", {"a_1-"}, {"a b"}},
        {"[[=a]", {"[", "=", "a"}, {"b"}},
        {"\\d+\\D", {"12x"}, {"12", "1x2"}},
        {"\\s", {" ", "\t", "\n", "\f", "\r"}, {"\v", "\xc2\xa0"}},
        {"[[:space:]]", {"\v"}, {"x"}},
        {"[\\s]", {" "}, {"\v"}},
        {"\\S", {"\v", "a"}, {" "}},
        {"\\w+", {"aZ_9"}, {"\xc3\xa9", "-"}},
        {"[^\\d]", {"a"}, {"1"}},
        {"[^\\D]", {"1"}, {"a"}},
        {"\\pN+", {"12", "\xe2\x85\xa7"}, {"a"}},
        {"\\p{Greek}", {"\xce\xb1"}, {"a"}},
        {"\\P{Greek}", {"a"}, {"\xce\xb1"}},
        {"\\p{^Greek}", {"a"}, {"\xce\xb1"}},
        {"[\\p{Lu}\\d]", {"A", "1", "\xc3\x89"}, {"a"}},
        {"[^\\pL]", {"1"}, {"a", "\xc3\xa9"}},
        {"\\pZ", {" "}, {"a"}},
        {"\\Qa.b\\E.", {"a.bx"}, {"axbx"}},
        {"\\Qa.b", {"a.b"}, {"axb"}},
        {"\\Qab\\E+", {"ab", "abb"}, {"abab"}},
        {"\\x41\\x{42}\\103", {"ABC"}, {"abc"}},
        {"\\.\\_\\-\\/\\@", {"._-/@"}, {"x_-/@"}},
        {"\\a\\f\\t\\n\\r\\v", {"\a\f\t\n\r\v"}, {"a"}},
        {"^foo$", {"foo"}, {"foo\n", "xfoo"}},
        {"^(?:^a|b$)$", {"a", "b"}, {"ab"}},
        {"\\Aa\\z", {"a"}, {"a\n"}},
        {"a^b", {NULL}, {"ab", "a\nb"}},
        {"(?m)a$\n^b", {"a\nb"}, {"ab"}},
        {"(?m)a$\n^", {"a\n"}, {"a"}},
        {"\\bfoo\\b.*", {"foo", "foo bar"}, {"foobar"}},
        {"foo\\Bbar", {"foobar"}, {"foo"}},
        {"x{2}", {"xx"}, {"x", "xxx"}},
        {"x{2,}", {"xx", "xxxx"}, {"x"}},
        {"x{1,3}y", {"xy", "xxxy"}, {"y", "xxxxy"}},
        {"x{,2}", {"x{,2}"}, {"xx"}},
        {"x{a}", {"x{a}"}, {"x"}},
        {"x{01}", {"x{01}"}, {"x"}},
        {"a{0}b", {"b"}, {"ab"}},
        {"a}b]", {"a}b]"}, {"a"}},
        {"a??b", {"b", "ab"}, {"aab"}},
        {"(?U)a+b", {"ab", "aab"}, {"b"}},
        {"(?P<n>a)(?<m>b)", {"ab"}, {"a"}},
        {"(?is-mU:A.)", {"a\n"}, {"a"}},
        {"(a|b)*c", {"c", "abbac"}, {"ab"}},
        {"(|a)+", {"", "aa"}, {"b"}},
        {"()", {""}, {"a"}},
        {"a||b", {"a", "", "b"}, {"ab"}},
        {"(?:)", {""}, {"a"}},
        {"^*", {""}, {"a"}},
        {"[^\\x00-\\x{10FFFF}]", {NULL}, {"a", ""}},
        {"[\\x00-\\x{10FFFF}]", {"a", "\xf0\x9f\x98\x80"}, {""}},
        {"\\x{d800}", {NULL}, {"a"}},
        {"[\\x{d800}-\\x{e000}]", {"\xee\x80\x80"}, {"a"}},
        {"\xc3\xa9+", {"\xc3\xa9", "\xc3\xa9\xc3\xa9"}, {"\xc3\xa9\xa9"}},
        {"caf\xc3\xa9.*", {"caf\xc3\xa9", "caf\xc3\xa9s"}, {"cafe"}},
        {"[\xc3\xa9-\xc3\xab]", {"\xc3\xaa"}, {"\xc3"}},
        {"(ab){2,3}", {"abab", "ababab"}, {"ab", "abababab"}},
        {"(?:ab)?c", {"c", "abc"}, {"ac"}},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        for (size_t k = 0; k < 6 && table[i].yes[k]; k++)
            expect(table[i].pattern, table[i].yes[k], true);
        for (size_t k = 0; k < 6 && table[i].no[k]; k++)
            expect(table[i].pattern, table[i].no[k], false);
    }
}

static void test_refusals(void **state)
{
    (void)state;
    static const char *const table[] = {
        "(",
        ")",
        "a)b(",
        "(a",
        "a)",
        "[a",
        "[",
        "[]",
        "[^]",
        "*",
        "+a",
        "?",
        "(*a)",
        "|*",
        "a**",
        "a*+",
        "a++",
        "a?+",
        "a{2}{3}",
        "a{2}*",
        "a{1001}",
        "a{0,1001}",
        "a{2,1}",
        "(a{100}){11}",
        "((a{10}){11}){10}",
        "(?=a)",
        "(?!a)",
        "(?<=a)",
        "(?<!a)",
        "(?>a)",
        "(?#c)",
        "(?R)",
        "(?1)",
        "(?&n)",
        "(?P=n)",
        "(?P>n)",
        "(?(1)a|b)",
        "(?|a|b)",
        "(?C)",
        "(?'n'a)",
        "\\1",
        "(a)\\1",
        "\\8",
        "\\g1",
        "\\k<n>",
        "\\C",
        "\\G",
        "\\R",
        "\\X",
        "\\K",
        "\\Z",
        "\\N",
        "\\h",
        "\\H",
        "\\e",
        "\\cA",
        "\\o{17}",
        "\\E",
        "\\u0041",
        "\\",
        "a\\",
        "\\x",
        "\\x1",
        "\\x{}",
        "\\x{110000}",
        "\\x{1",
        "(?x)a b",
        "(?)",
        "(?i",
        "(?-)",
        "(?i-)",
        "(?i--s)",
        "(?z)",
        "(?P<>a)",
        "(?P<1-a>a)",
        "(?P<n",
        "(?P<n>a)(?P<n>b)",
        "[b-a]",
        "[a-\\d]",
        "[[:foo:]]",
        "\\pX",
        "\\p{Nope}",
        "\\p{sc:Greek}",
        "\\p{L&}",
        "\\p{Greek",
        "\\p",
        "\\p{Xan}",
        "\xff",
        "a\xc3",
        "(*UTF)a",
        "(*ACCEPT)",
        "[[:alpha:]",
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct regex *re = NULL;
        err e = regex_create(str_of(table[i]), &re);
        if (e == NULL) fail_msg("`%s` was accepted", table[i]);
        assert_int_equal(err_code(e), ERR_INVALID);
        assert_non_null(strstr(err_message(e), "error parsing regexp: "));
        err_free(e);
    }
}

static void test_error_names_place(void **state)
{
    (void)state;
    struct regex *re;
    err e = regex_create(STR("ab(?=c)"), &re);
    assert_string_equal(err_message(e),
                        "error parsing regexp: invalid or unsupported Perl syntax: `(?=c)` at position 3");
    err_free(e);
}

static void test_literals(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *literals; /* joined by commas; NULL: none */
    } table[] = {
        {"a", "a"},
        {"b|a|b", "a,b"},
        {"ab(c|d)", "abc,abd"},
        {"^a$|^b$", "a,b"},
        {"x[ab]?", "x,xa,xb"},
        {"", ""},
        {"(?i)1-2", "1-2"},
        {"(?i)a", NULL},
        {"a.*", NULL},
        {"[a-z0-9]", "0,1,2,3,4,5,6,7,8,9,a,b,c,d,e,f,g,h,i,j,k,l,m,n,o,p,q,r,s,t,u,v,w,x,y,z"},
        {"[^a]", NULL},
        {"a+", NULL},
        {"(?m)^a$", NULL},
        {"a\\b", NULL},
        {"(a|b){2}", "aa,ab,ba,bb"},
        {"a{0}", ""},
        {"[\\x{d7ff}\\x{d800}]", "\xed\x9f\xbf"},
        {"(a)(b)|c", "ab,c"},
        {"\\Qa|b\\E|c", "a|b,c"},
        {"a.b", NULL},
        {"(?:(?:a|b)(?:c|d))(?:e|f)", "ace,acf,ade,adf,bce,bcf,bde,bdf"},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct regex *re = compiled(str_of(table[i].pattern));
        size_t n;
        const str *literals = regex_literals(re, &n);
        struct buf joined = {0};
        for (size_t k = 0; k < n; k++) {
            if (k) buf_u8(&joined, ',');
            buf_str(&joined, literals[k]);
        }
        if (table[i].literals == NULL)
            assert_int_equal(n, 0);
        else if (n == 0 || !str_eq(buf_as_str(&joined), str_of(table[i].literals)))
            fail_msg("`%s` gave %zu literals: %.*s", table[i].pattern, n, (int)joined.n, joined.data);
        buf_deinit(&joined);
        regex_destroy(re);
    }
}

static void test_prefix_and_empty(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *prefix;
        bool empty;
    } table[] = {
        {"foo.*", "foo", false},
        {"foo|fob", "fo", false},
        {"(foo|fob)x[0-9]+", "fo", false},
        {"", "", true},
        {"a*", "", true},
        {"a+b", "a", false},
        {"abc+", "abc", false},
        {"(?i)abc", "", false},
        {"ab(?i)c", "ab", false},
        {"^web-[0-9]+$", "web-", false},
        {"a?", "", true},
        {".*", "", true},
        {"\xc3\xa9.*|\xc3\xaa.*", "", false},
        {"(ab){2,}", "ab", false},
        {"x(?:|y)", "x", false},
        {"\\bab", "ab", false},
        {"(|a)b*", "", true},
    };
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct regex *re = compiled(str_of(table[i].pattern));
        str prefix = regex_prefix(re);
        if (!str_eq(prefix, str_of(table[i].prefix)))
            fail_msg("`%s` gave prefix `%.*s`", table[i].pattern, STR_ARG(prefix));
        if (regex_matches_empty(re) != table[i].empty) fail_msg("`%s`: empty", table[i].pattern);
        regex_destroy(re);
    }
}

static void test_replace(void **state)
{
    (void)state;
    static const struct {
        const char *pattern, *subject, *replacement, *result; /* NULL: no match */
    } table[] = {
        {"(.*)-(.*)", "web-1", "$2/$1", "1/web"},
        {"(.*)-(.*)", "a-b-c", "$1|$2", "a-b|c"},
        {"(.*?)-(.*)", "a-b-c", "$1|$2", "a|b-c"},
        {"(?P<x>a+)(b?)", "aaa", "${x}[$2]$$", "aaa[]$"},
        {"foo", "foo", "[$0]", "[foo]"},
        {"foo.*", "foobar", "$0$1", "foobar"},
        {"foo", "bar", "x", NULL},
        {"(a)|(b)", "b", "<$1$2>", "<b>"},
        {"(a)(b)(c)", "abc", "$1x-${1}x", "-ax"},
        {"(a)", "a", "$", "$"},
        {"(a)", "a", "${1", "${1"},
        {"(a)", "a", "${}$-", "${}$-"},
        {"(a)", "a", "$01${00}", ""},
        {"(a|b)", "a", "$1", "a"},
        {"(?P<n1>x)", "x", "$n1.$n", "x."},
        {"", "", "v", "v"},
        {"(a)", "a", "$99999999999", ""},
        {"a*", "aa", "$2", ""},
    };
    struct arena a = {0};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct regex *re = compiled(str_of(table[i].pattern));
        bool matched;
        str out = {0};
        err e = regex_replace(re, str_of(table[i].subject), str_of(table[i].replacement), &a, &matched, &out);
        assert_null(e);
        assert_int_equal(matched, table[i].result != NULL);
        if (matched && !str_eq(out, str_of(table[i].result)))
            fail_msg("`%s` on `%s` with `%s` gave `%.*s`", table[i].pattern, table[i].subject, table[i].replacement,
                     STR_ARG(out));
        regex_destroy(re);
    }
    arena_deinit(&a);
}

static double milliseconds_since(uint64_t start_ns)
{
    return (double)(env_posix()->ops->mono_ns(env_posix()) - start_ns) / 1e6;
}

static void test_catastrophes_end(void **state)
{
    (void)state;
    static const char *const table[] = {
        "(a+)+$",
        "(a|a)*b",
        "(a*)*b",
        "(a|aa)+b",
        "([a-z]+)*[0-9]",
        "(.*)*x",
        "(x+x+)+y|(a+a+)+y",
        "(a?){50}a{50}b",
        "(.*a){20}b",
        "(?i)(a+)+[^a]b",
        "(((a*)*)*)*b",
        "(.*)(.*)(.*)(.*)(.*)[0-9]",
    };
    static const size_t lengths[] = {30, 1000, 60000};
    for (size_t i = 0; i < ARRAY_LEN(table); i++) {
        struct regex *re = compiled(str_of(table[i]));
        for (size_t k = 0; k < ARRAY_LEN(lengths); k++) {
            static const char tail[] = "b0xy!"; /* what a look at required characters would miss */
            size_t n = lengths[k] + sizeof tail - 1;
            char *subject = mem_alloc(n);
            memset(subject, 'a', lengths[k]);
            memcpy(subject + lengths[k], tail, sizeof tail - 1);
            uint64_t start = env_posix()->ops->mono_ns(env_posix());
            enum regex_result r = regex_match(re, (str){subject, n});
            double ms = milliseconds_since(start);
            if (getenv("VARVE_SHOW")) printf("%-32s %6zu: %d %8.2f ms\n", table[i], lengths[k], r, ms);
            assert_int_not_equal(r, REGEX_YES);
            if (ms > 2000) fail_msg("`%s` took %.0f ms on %zu bytes", table[i], ms, n); /* generous: sanitizers */
            mem_free(subject);
        }
        regex_destroy(re);
    }
}

static void test_large_patterns(void **state)
{
    (void)state;
    struct buf pattern = {0};
    for (int i = 0; i < 15000; i++)
        buf_printf(&pattern, "%spod-%d", i ? "|" : "", i);
    struct regex *re = compiled(buf_as_str(&pattern));
    size_t n;
    regex_literals(re, &n);
    assert_int_equal(n, 0); /* over what it may name, but matched as a set all the same */
    assert_int_equal(regex_match(re, STR("pod-14999")), REGEX_YES);
    assert_int_equal(regex_match(re, STR("pod-15000")), REGEX_NO);
    regex_destroy(re);
    buf_clear(&pattern);
    for (int i = 0; i < 50000; i++)
        buf_str(&pattern, STR("("));
    err e = regex_create(buf_as_str(&pattern), &re);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
    buf_clear(&pattern);
    for (int i = 0; i < 300000; i++)
        buf_str(&pattern, STR("a"));
    e = regex_create(buf_as_str(&pattern), &re);
    assert_int_equal(err_code(e), ERR_INVALID);
    err_free(e);
    buf_clear(&pattern);
    for (int i = 0; i < 190; i++) /* a product that must not be written out */
        buf_str(&pattern, STR("[abc]"));
    re = compiled(buf_as_str(&pattern));
    regex_literals(re, &n);
    assert_int_equal(n, 0);
    regex_destroy(re);
    buf_deinit(&pattern);
}

/* Globs and the engine must agree: the same language written so that it is expanded, and so that it is not. */
static void test_globs_against_engine(void **state)
{
    (void)state;
    const char *given = getenv("VARVE_SEED");
    uint64_t seed = given ? strtoull(given, NULL, 10) : (uint64_t)time(NULL);
    printf("seed %llu\n", (unsigned long long)seed);
    struct rng rng;
    rng_seed(&rng, seed);
    static const char *const pieces[] = {"a", "b", "ab", ".*", ".+", "(a|b)", "[ab]", "a?", "\xc3\xa9", "(?:.*b|a)"};
    for (int round = 0; round < 300; round++) {
        struct buf simple = {0}, engine = {0};
        for (uint64_t i = rng_below(&rng, 6); i > 0; i--)
            buf_str(&simple, str_of(pieces[rng_below(&rng, ARRAY_LEN(pieces))]));
        buf_printf(&engine, "(?:%.*s)(?:[^\\x00-\\x{10ffff}]*)", (int)simple.n, (const char *)simple.data);
        struct regex *a = compiled(buf_as_str(&simple)), *b = compiled(buf_as_str(&engine));
        for (int k = 0; k < 60; k++) {
            struct buf subject = {0};
            for (uint64_t i = rng_below(&rng, 7); i > 0; i--)
                buf_str(&subject, rng_chance(&rng, 0.2)   ? STR("\xc3\xa9")
                                  : rng_chance(&rng, 0.5) ? STR("a")
                                                          : STR("b"));
            if (regex_match(a, buf_as_str(&subject)) != regex_match(b, buf_as_str(&subject)))
                fail_msg("`%.*s` on `%.*s`", (int)simple.n, (const char *)simple.data, (int)subject.n,
                         (const char *)subject.data);
            buf_deinit(&subject);
        }
        regex_destroy(a);
        regex_destroy(b);
        buf_deinit(&simple);
        buf_deinit(&engine);
    }
}

static void *match_many(void *arg)
{
    const struct regex *re = arg;
    static const str yes = {"abbabbabbabbabc", 15}, no = {"abbabbabbabbabx", 15};
    for (int i = 0; i < 2000; i++)
        if (regex_match(re, yes) != REGEX_YES || regex_match(re, no) != REGEX_NO) return arg;
    return NULL;
}

static void test_threads_share_one(void **state)
{
    (void)state;
    struct regex *re = compiled(STR("(a|b)*c"));
    pthread_t threads[12]; /* more than the pool keeps */
    for (size_t i = 0; i < ARRAY_LEN(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, match_many, re), 0);
    for (size_t i = 0; i < ARRAY_LEN(threads); i++) {
        void *failed;
        pthread_join(threads[i], &failed);
        assert_null(failed);
    }
    regex_destroy(re);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_matches),
        cmocka_unit_test(test_refusals),
        cmocka_unit_test(test_error_names_place),
        cmocka_unit_test(test_literals),
        cmocka_unit_test(test_prefix_and_empty),
        cmocka_unit_test(test_replace),
        cmocka_unit_test(test_catastrophes_end),
        cmocka_unit_test(test_large_patterns),
        cmocka_unit_test(test_globs_against_engine),
        cmocka_unit_test(test_threads_share_one),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
