/*
 * matcher.c: one condition on one label.
 *
 * A matcher borrows its name and value and owns its compiled regex. An absent label is an empty
 * value: `foo=""` and `foo!~".+"` hold for series without foo. Immutable once made: any thread.
 */
#include "storage/matcher.h"

err matcher_init(struct matcher *m, enum match_op op, str name, str value)
{
    *m = (struct matcher){.op = op, .name = name, .value = value};
    if (op == MATCH_EQ || op == MATCH_NE) return NULL;
    return regex_create(value, &m->re);
}

void matcher_deinit(struct matcher *m)
{
    regex_destroy(m->re);
    m->re = NULL;
}

err matcher_match(const struct matcher *m, str value, bool *matched)
{
    *matched = false;
    if (m->re == NULL) {
        *matched = str_eq(m->value, value) == (m->op == MATCH_EQ);
        return NULL;
    }
    enum regex_result r = regex_match(m->re, value);
    if (r == REGEX_LIMIT)
        return err_new(ERR_LIMIT, "regular expression \"%.*s\" needs too many steps on a value of label \"%.*s\"",
                       STR_ARG(m->value), STR_ARG(m->name));
    *matched = (r == REGEX_YES) == (m->op == MATCH_RE);
    return NULL;
}

bool matcher_matches_empty(const struct matcher *m)
{
    switch (m->op) {
    case MATCH_EQ:
        return m->value.n == 0;
    case MATCH_NE:
        return m->value.n > 0;
    case MATCH_RE:
        return regex_matches_empty(m->re);
    case MATCH_NRE:
        return !regex_matches_empty(m->re);
    }
    return false;
}

err matchers_match(const struct matcher *m, size_t n, const struct labels *ls, bool *matched)
{
    *matched = true;
    for (size_t i = 0; i < n && *matched; i++)
        TRY(matcher_match(&m[i], labels_get(ls, m[i].name), matched));
    return NULL;
}

const char *match_op_text(enum match_op op)
{
    static const char *const text[] = {[MATCH_EQ] = "=", [MATCH_NE] = "!=", [MATCH_RE] = "=~", [MATCH_NRE] = "!~"};
    return text[op];
}

void matchers_encode(const struct matcher *m, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++) {
        buf_u8(out, (uint8_t)m[i].op);
        buf_lenstr(out, m[i].name);
        buf_lenstr(out, m[i].value);
    }
}

void matcher_print(const struct matcher *m, struct buf *out)
{
    label_print_name(m->name, out);
    buf_str(out, str_of(match_op_text(m->op)));
    label_print_quoted(m->value, out);
}
