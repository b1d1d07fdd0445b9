/* What the tests of the query text's units share: a query in, its canonical text or its error out. */
#ifndef VARVE_TESTS_QUERY_TEXT_H
#define VARVE_TESTS_QUERY_TEXT_H

#include "tests/unit/testing.h"

#include "query/parser.h"
#include "storage/base/alloc.h"

/* The canonical text, or "error: <message>"; free with mem_free. */
static inline char *query_text_with(str query, bool experimental)
{
    struct arena a = {0};
    struct buf out = {0};
    struct expr *e;
    err failure = promql_parse(query, experimental, &a, &e);
    if (failure) {
        assert_int_equal(err_code(failure), ERR_INVALID);
        assert_null(e);
        buf_printf(&out, "error: %s", err_message(failure));
        err_free(failure);
    } else {
        promql_print(e, &out);
        expr_deinit(e);
    }
    char *text = mem_dup_str(buf_as_str(&out));
    buf_deinit(&out);
    arena_deinit(&a);
    return text;
}

static inline char *query_text(const char *query)
{
    return query_text_with(str_of(query), true);
}

/* The query parses, prints as `want`, and that prints as itself. */
static inline void expect_text(const char *query, const char *want)
{
    char *got = query_text(query);
    if (strcmp(got, want) != 0) print_message("query: %s\n", query);
    assert_string_equal(got, want);
    char *again = query_text(got);
    assert_string_equal(again, want);
    mem_free(again);
    mem_free(got);
}

/* The query is refused with a message that contains `part`. */
static inline void expect_error(const char *query, const char *part)
{
    char *got = query_text(query);
    bool ok = strncmp(got, "error: ", 7) == 0 && strstr(got, part) != NULL;
    if (!ok) print_message("query: %s\ngot:   %s\nwant:  %s\n", query, got, part);
    assert_true(ok);
    mem_free(got);
}

#endif
