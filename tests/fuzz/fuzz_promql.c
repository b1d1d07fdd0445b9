/* Fuzzes the query text: no input crashes or leaks; what parses prints, its print parses, and prints as itself; the
 * tree and the layout can be written. The first byte switches the experimental parts. */
#include "query/parser.h"
#include "query/query.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

/* Ranges below a millisecond print as 0s, which is refused, as in Prometheus. */
static bool holds_tiny_duration(str s)
{
    for (size_t i = 0; i + 1 < s.n; i++) {
        bool digit_before = i > 0 && s.p[i - 1] >= '0' && s.p[i - 1] <= '9';
        if (s.p[i] == '0' && s.p[i + 1] == 's' && !digit_before) return true;
    }
    return false;
}

static void check_round_trip(const struct expr *e, bool experimental)
{
    struct buf text = {0}, again = {0};
    struct arena arena = {0};
    struct expr *parsed = NULL;
    promql_print(e, &text);
    err failure = holds_tiny_duration(buf_as_str(&text))
                      ? err_new(ERR_INVALID, "skipped")
                      : promql_parse(buf_as_str(&text), experimental, &arena, &parsed);
    if (failure) {
        /* the print of 250 levels may need more; nothing else may fail */
        check(strstr(err_message(failure), "too deeply") || strstr(err_message(failure), "too long") ||
              strstr(err_message(failure), "skipped"));
        err_free(failure);
    } else {
        promql_print(parsed, &again);
        check(str_eq(buf_as_str(&text), buf_as_str(&again)));
        expr_deinit(parsed);
    }
    buf_deinit(&text);
    buf_deinit(&again);
    arena_deinit(&arena);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    if (n == 0) return 0;
    bool experimental = data[0] % 2 == 0;
    char *bytes = mem_dup(data + 1, n - 1); /* exact size: ASan sees a step beyond */
    str text = {bytes, n - 1};
    struct arena arena = {0};
    struct expr *e;
    err failure = promql_parse(text, experimental, &arena, &e);
    struct buf out = {0};
    if (failure) {
        check(err_code(failure) == ERR_INVALID);
        err_free(failure);
    } else {
        check_round_trip(e, experimental);
        expr_deinit(e);
        failure = query_parse_tree(text, experimental, &out);
        check(!failure);
        buf_clear(&out);
        err_free(query_format(text, experimental, &out)); /* may be too large */
    }
    struct matcher *m;
    uint32_t n_matchers;
    failure = promql_parse_selector(text, &arena, &m, &n_matchers);
    for (uint32_t i = 0; !failure && i < n_matchers; i++)
        matcher_deinit(&m[i]);
    err_free(failure);
    int64_t ms;
    err_free(query_parse_time(text, &ms));
    err_free(query_parse_duration(text, &ms));
    buf_deinit(&out);
    arena_deinit(&arena);
    mem_free(bytes);
    return 0;
}
