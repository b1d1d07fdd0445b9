/*
 * lexer.c: PromQL text → tokens.
 *
 * Three states, as Prometheus has them, because the same bytes mean different things in each:
 *
 *   statements     keywords, operators, numbers, strings       '{' -> braces   '[' -> duration start
 *   braces         names, match operators, strings, commas      '}' -> statements
 *   duration start after '[': arithmetic, step() and so on      first number -> statements within brackets
 *
 * Within brackets letters are duration functions only and ':' is a token. Keywords are taken in any
 * case, function names are not. The lexer never backs up over a token and looks at each byte a bounded
 * number of times, but for `fill`, which looks ahead over space to the next parenthesis. Strings are
 * validated here and decoded by literal.c.
 */
#include "query/lexer.h"

#include "query/literal.h"

/* ---- characters --------------------------------------------------------------------------------- */

static bool is_space(int c)
{
    return c == ' ' || c == '\t' || c == '\n' || c == '\r';
}

static bool is_digit(int c)
{
    return c >= '0' && c <= '9';
}

static bool is_alpha(int c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

static bool is_word(int c)
{
    return is_alpha(c) || is_digit(c);
}

static bool is_hex(int c)
{
    return is_digit(c) || (c >= 'a' && c <= 'f') || (c >= 'A' && c <= 'F');
}

/* The byte `ahead` of the lexer, -1 behind the end. */
static int peek_at(const struct lexer *l, size_t ahead)
{
    return l->at + ahead < l->text.n ? (uint8_t)l->text.p[l->at + ahead] : -1;
}

static int peek(const struct lexer *l)
{
    return peek_at(l, 0);
}

static bool accept(struct lexer *l, const char *set)
{
    int c = peek(l);
    if (c <= 0 || !strchr(set, c)) return false;
    l->at++;
    return true;
}

/* ---- failures ----------------------------------------------------------------------------------- */

static bool fail_text(struct lexer *l, uint32_t at, const char *reason, str shown)
{
    l->error_at = at;
    l->error = reason;
    l->error_text = shown;
    l->at = (uint32_t)l->text.n;
    return false;
}

static bool fail(struct lexer *l, uint32_t at, const char *reason)
{
    return fail_text(l, at, reason, (str){NULL, 0});
}

/* Fails because of the character at `at`, which may be none. */
static bool fail_char(struct lexer *l, uint32_t at, const char *reason)
{
    if (at >= l->text.n) return fail(l, at, "unexpected end of input");
    size_t n;
    literal_rune(l->text, at, &n);
    return fail_text(l, at, reason, (str){l->text.p + at, n});
}

/* ---- words -------------------------------------------------------------------------------------- */

/* Ordered by length, so that a word is compared with those of its own length only. */
static const struct keyword {
    const char *text;
    enum token_kind kind;
    int op;
} KEYWORDS[] = {
    {"by", TOKEN_BY, 0},
    {"on", TOKEN_ON, 0},
    {"or", TOKEN_OPERATOR, OP_OR},
    {"and", TOKEN_OPERATOR, OP_AND},
    {"avg", TOKEN_AGGREGATOR, AGG_AVG},
    {"end", TOKEN_END, 0},
    {"inf", TOKEN_NUMBER, 0},
    {"max", TOKEN_AGGREGATOR, AGG_MAX},
    {"min", TOKEN_AGGREGATOR, AGG_MIN},
    {"nan", TOKEN_NUMBER, 0},
    {"sum", TOKEN_AGGREGATOR, AGG_SUM},
    {"bool", TOKEN_BOOL, 0},
    {"fill", TOKEN_FILL, 0},
    {"step", TOKEN_STEP, 0},
    {"topk", TOKEN_AGGREGATOR, AGG_TOPK},
    {"atan2", TOKEN_OPERATOR, OP_ATAN2},
    {"count", TOKEN_AGGREGATOR, AGG_COUNT},
    {"group", TOKEN_AGGREGATOR, AGG_GROUP},
    {"range", TOKEN_RANGE, 0},
    {"start", TOKEN_START, 0},
    {"limitk", TOKEN_AGGREGATOR, AGG_LIMITK},
    {"max_of", TOKEN_MAX_OF, 0},
    {"min_of", TOKEN_MIN_OF, 0},
    {"offset", TOKEN_OFFSET, 0},
    {"stddev", TOKEN_AGGREGATOR, AGG_STDDEV},
    {"stdvar", TOKEN_AGGREGATOR, AGG_STDVAR},
    {"unless", TOKEN_OPERATOR, OP_UNLESS},
    {"bottomk", TOKEN_AGGREGATOR, AGG_BOTTOMK},
    {"without", TOKEN_WITHOUT, 0},
    {"anchored", TOKEN_ANCHORED, 0},
    {"ignoring", TOKEN_IGNORING, 0},
    {"quantile", TOKEN_AGGREGATOR, AGG_QUANTILE},
    {"smoothed", TOKEN_SMOOTHED, 0},
    {"fill_left", TOKEN_FILL_LEFT, 0},
    {"fill_right", TOKEN_FILL_RIGHT, 0},
    {"group_left", TOKEN_GROUP_LEFT, 0},
    {"group_right", TOKEN_GROUP_RIGHT, 0},
    {"limit_ratio", TOKEN_AGGREGATOR, AGG_LIMIT_RATIO},
    {"count_values", TOKEN_AGGREGATOR, AGG_COUNT_VALUES},
};

/* First keyword of each length; the one of the next length ends it. */
static const uint8_t KEYWORDS_OF_LENGTH[] = {0, 0, 0, 3, 11, 15, 20, 27, 29, 33, 34, 36, 38, 39};
#define KEYWORD_LENGTH_MAX 12

static const struct keyword *find_keyword(str word)
{
    if (word.n > KEYWORD_LENGTH_MAX) return NULL;
    char lower[KEYWORD_LENGTH_MAX] = {0};
    for (size_t i = 0; i < word.n; i++)
        lower[i] = word.p[i] >= 'A' && word.p[i] <= 'Z' ? (char)(word.p[i] | 0x20) : word.p[i];
    for (size_t i = KEYWORDS_OF_LENGTH[word.n]; i < KEYWORDS_OF_LENGTH[word.n + 1]; i++)
        if (memcmp(lower, KEYWORDS[i].text, word.n) == 0) return &KEYWORDS[i];
    return NULL;
}

static bool emit(struct lexer *l, struct token *t, enum token_kind kind)
{
    t->kind = kind;
    t->end = l->at;
    return true;
}

static bool emit_op(struct lexer *l, struct token *t, enum binary_op op, uint32_t bytes)
{
    l->at += bytes;
    t->op = op;
    return emit(l, t, TOKEN_OPERATOR);
}

static bool before_left_paren(const struct lexer *l)
{
    size_t ahead = 0;
    while (is_space(peek_at(l, ahead)))
        ahead++;
    return peek_at(l, ahead) == '(';
}

static bool lex_word(struct lexer *l, struct token *t)
{
    bool colon = false;
    for (; is_word(peek(l)) || peek(l) == ':'; l->at++)
        colon |= peek(l) == ':';
    if (colon) return emit(l, t, TOKEN_METRIC);
    const struct keyword *k = find_keyword((str){l->text.p + t->start, l->at - t->start});
    if (!k) return emit(l, t, TOKEN_IDENTIFIER);
    if (k->kind >= TOKEN_FILL && k->kind <= TOKEN_FILL_RIGHT && !before_left_paren(l))
        return emit(l, t, TOKEN_IDENTIFIER);
    t->op = k->op;
    return emit(l, t, k->kind);
}

/* step, range, min_of or max_of in brackets. */
static bool lex_duration_word(struct lexer *l, struct token *t)
{
    while (is_alpha(peek(l)))
        l->at++;
    const struct keyword *k = find_keyword((str){l->text.p + t->start, l->at - t->start});
    if (k && k->kind >= TOKEN_MAX_OF && k->kind != TOKEN_START) return emit(l, t, k->kind);
    return fail_char(l, t->start, "unexpected character in duration expression");
}

/* ---- numbers ------------------------------------------------------------------------------------ */

/* One mark of a number that is no digit, at l->at; false if what follows it can't be. */
static bool scan_dot(struct lexer *l, bool *dot, bool hex)
{
    l->at++;
    bool again = *dot;
    *dot = true;
    return !again && !hex && !accept(l, "_.");
}

static bool scan_exponent(struct lexer *l, bool *exponent)
{
    l->at++;
    bool again = *exponent;
    *exponent = true;
    accept(l, "+-");
    return !again && !accept(l, "._eE") && peek(l) >= 0;
}

static bool scan_underscore(struct lexer *l)
{
    l->at++;
    return !accept(l, "._eE") && peek(l) >= 0;
}

static bool is_number_digit(int c, bool hex)
{
    return hex ? is_hex(c) : is_digit(c);
}

/* The digits of one number from l->at on. Rather a superset of numbers: literal_number has the last word. A hexadecimal
 * e is an exponent when it is the second digit, as Prometheus reads it: 0x1e is malformed at the end of the text. */
static bool scan_number(struct lexer *l)
{
    uint32_t first = l->at;
    bool hex = peek(l) == '0' && (peek_at(l, 1) == 'x' || peek_at(l, 1) == 'X');
    if (hex) {
        l->at += 2;
        accept(l, "_");
    }
    bool dot = false, exponent = false, ok = true;
    if (is_number_digit(peek(l), hex)) l->at++;
    while (ok) {
        int c = peek(l);
        if (c == '.')
            ok = scan_dot(l, &dot, hex);
        else if (c == 'e' || c == 'E')
            ok = scan_exponent(l, &exponent);
        else if (c == '_')
            ok = scan_underscore(l);
        else if (is_number_digit(c, hex))
            while (is_number_digit(peek(l), hex))
                l->at++;
        else
            break;
    }
    return ok && l->at > first && !is_word(peek(l));
}

/* What makes the digits before it a duration: a unit, then more digits and units. */
static bool scan_units(struct lexer *l)
{
    if (!accept(l, "smhdwy")) return false;
    accept(l, "s");
    while (is_digit(peek(l))) {
        while (is_digit(peek(l)))
            l->at++;
        if (!accept(l, "smhdw")) return false;
        accept(l, "s");
    }
    return !is_word(peek(l));
}

static bool lex_number(struct lexer *l, struct token *t)
{
    if (scan_number(l)) return emit(l, t, TOKEN_NUMBER);
    if (scan_units(l)) return emit(l, t, TOKEN_DURATION);
    return fail_text(l, t->start, "bad number or duration syntax", (str){l->text.p + t->start, l->at - t->start});
}

/* ---- strings ------------------------------------------------------------------------------------ */

/* `digits` digits of the base; their value must be a code point that is no surrogate, or a byte. */
static bool check_code(struct lexer *l, int digits, unsigned base, uint32_t most)
{
    uint32_t value = 0;
    for (int i = 0; i < digits; i++, l->at++) {
        int c = peek(l);
        if (c < 0) return fail(l, l->at, "escape sequence not terminated");
        if (!is_hex(c) || (base == 8 && (c < '0' || c > '7')))
            return fail_char(l, l->at, "illegal character in escape sequence");
        value = value * base + (uint32_t)(is_digit(c) ? c - '0' : (c | 0x20) - 'a' + 10);
    }
    if (value > most || (value >= 0xd800 && value < 0xe000))
        return fail(l, l->at, "escape sequence is an invalid Unicode code point");
    return true;
}

/* Behind a backslash. */
static bool check_escape(struct lexer *l, int quote)
{
    int c = peek(l);
    if (c < 0) return fail(l, l->at, "escape sequence not terminated");
    if (c >= '0' && c <= '7') return check_code(l, 3, 8, 255);
    l->at++;
    if (c == 'x') return check_code(l, 2, 16, 255);
    if (c == 'u') return check_code(l, 4, 16, 0x10ffff);
    if (c == 'U') return check_code(l, 8, 16, 0x10ffff);
    if (c == quote || (c && strchr("abfnrtv\\", c))) return true;
    return fail_char(l, l->at - 1, "unknown escape sequence");
}

static bool lex_string(struct lexer *l, struct token *t)
{
    int quote = peek(l);
    l->at++;
    for (;;) {
        int c = peek(l);
        if (c < 0 || (c == '\n' && quote != '`'))
            return fail(l, t->start, quote == '`' ? "unterminated raw string" : "unterminated quoted string");
        if (c >= 0x80) {
            size_t n;
            int32_t rune = literal_rune(l->text, l->at, &n);
            /* the replacement character counts as a decoding failure, as it does in Prometheus */
            if (rune < 0 || rune == 0xfffd) return fail(l, l->at, "invalid UTF-8 rune");
            l->at += (uint32_t)n;
            continue;
        }
        l->at++;
        if (c == quote) return emit(l, t, TOKEN_STRING);
        if (c == '\\' && quote != '`' && !check_escape(l, quote)) return false;
    }
}

/* ---- states ------------------------------------------------------------------------------------- */

static bool lex_braces(struct lexer *l, struct token *t)
{
    int c = peek(l);
    if (c < 0) return fail(l, t->start, "unexpected end of input inside braces");
    if (is_alpha(c)) {
        while (is_word(peek(l)))
            l->at++;
        return emit(l, t, TOKEN_IDENTIFIER);
    }
    switch (c) {
    case '"':
    case '\'':
    case '`':
        return lex_string(l, t);
    case ',':
        l->at++;
        return emit(l, t, TOKEN_COMMA);
    case '}':
        l->at++;
        l->in_braces = false;
        return emit(l, t, TOKEN_RIGHT_BRACE);
    case '=':
        l->at++;
        return emit(l, t, accept(l, "~") ? TOKEN_EQUAL_REGEX : TOKEN_EQUAL);
    case '!':
        l->at++;
        if (accept(l, "~")) return emit(l, t, TOKEN_NOT_REGEX);
        if (peek(l) == '=') return emit_op(l, t, OP_NE, 1);
        return fail_char(l, l->at, "unexpected character after '!' inside braces");
    case '{':
        return fail(l, t->start, "unexpected left brace inside braces");
    default:
        return fail_char(l, t->start, "unexpected character inside braces");
    }
}

static bool lex_bracket(struct lexer *l, struct token *t)
{
    l->at++;
    if (l->text.p[t->start] == '[') {
        if (l->in_brackets) return fail(l, t->start, "unexpected left bracket inside brackets");
        l->in_brackets = l->at_duration = true;
        l->seen_colon = false;
        return emit(l, t, TOKEN_LEFT_BRACKET);
    }
    if (!l->in_brackets) return fail(l, t->start, "unexpected right bracket");
    l->in_brackets = l->at_duration = false;
    return emit(l, t, TOKEN_RIGHT_BRACKET);
}

static bool lex_paren(struct lexer *l, struct token *t)
{
    bool left = peek(l) == '(';
    l->at++;
    l->parens += left ? 1 : -1;
    if (l->parens < 0) return fail(l, t->start, "unexpected right parenthesis");
    return emit(l, t, left ? TOKEN_LEFT_PAREN : TOKEN_RIGHT_PAREN);
}

/* In brackets. A colon behind step() alone is refused unless some bracket before held a number: Prometheus's rule. */
static bool lex_colon(struct lexer *l, struct token *t)
{
    if (l->at_duration && !l->seen_bracket_num)
        return fail(l, t->start, "unexpected colon before duration in duration expression");
    if (l->seen_colon) return fail(l, t->start, "unexpected repeated colon in brackets");
    l->seen_colon = true;
    l->at++;
    return emit(l, t, TOKEN_COLON);
}

/* Operators that a comparison sign may begin. */
static bool lex_comparison(struct lexer *l, struct token *t, int c)
{
    int next = peek_at(l, 1);
    switch (c) {
    case '=':
        if (next == '=') return emit_op(l, t, OP_EQ, 2);
        if (next == '~') return fail(l, t->start, "unexpected character after '=': '~'");
        l->at++;
        return emit(l, t, TOKEN_EQUAL);
    case '!':
        if (next == '=') return emit_op(l, t, OP_NE, 2);
        return fail_char(l, t->start + 1, "unexpected character after '!'");
    case '<':
        if (next == '=') return emit_op(l, t, OP_LE, 2);
        return next == '/' ? emit_op(l, t, OP_TRIM_UPPER, 2) : emit_op(l, t, OP_LT, 1);
    default:
        if (next == '=') return emit_op(l, t, OP_GE, 2);
        return next == '/' ? emit_op(l, t, OP_TRIM_LOWER, 2) : emit_op(l, t, OP_GT, 1);
    }
}

/* Arithmetic, parentheses, brackets, comma: what statements and duration starts share. */
static bool lex_common(struct lexer *l, struct token *t, int c)
{
    switch (c) {
    case '+':
        return emit_op(l, t, OP_ADD, 1);
    case '-':
        return emit_op(l, t, OP_SUB, 1);
    case '*':
        return emit_op(l, t, OP_MUL, 1);
    case '/':
        return emit_op(l, t, OP_DIV, 1);
    case '%':
        return emit_op(l, t, OP_MOD, 1);
    case '^':
        return emit_op(l, t, OP_POW, 1);
    case '(':
    case ')':
        return lex_paren(l, t);
    case '[':
    case ']':
        return lex_bracket(l, t);
    case ',':
        l->at++;
        return emit(l, t, TOKEN_COMMA);
    default:
        return fail_char(l, t->start,
                         l->at_duration ? "unexpected character in duration expression" : "unexpected character");
    }
}

static bool lex_duration_start(struct lexer *l, struct token *t, int c)
{
    if (c < 0) return fail(l, t->start, "unexpected end of input in duration expression");
    if (is_alpha(c)) return lex_duration_word(l, t);
    if (is_digit(c) || (c == '.' && is_digit(peek_at(l, 1)))) {
        l->at_duration = false;
        l->seen_bracket_num = true;
        return lex_number(l, t);
    }
    if (c == ':') return lex_colon(l, t);
    if (c == '[') return fail_char(l, t->start, "unexpected character in duration expression");
    return lex_common(l, t, c);
}

static bool lex_end(struct lexer *l, struct token *t)
{
    if (l->parens > 0) return fail(l, t->start, "unclosed left parenthesis");
    if (l->in_brackets) return fail(l, t->start, "unclosed left bracket");
    return emit(l, t, TOKEN_EOF);
}

static bool lex_statements(struct lexer *l, struct token *t, int c)
{
    if (c < 0) return lex_end(l, t);
    if (is_digit(c) || (c == '.' && is_digit(peek_at(l, 1)))) return lex_number(l, t);
    if (is_alpha(c) || c == ':') {
        if (!l->in_brackets) return lex_word(l, t);
        return c == ':' ? lex_colon(l, t) : lex_duration_word(l, t);
    }
    switch (c) {
    case '"':
    case '\'':
    case '`':
        return lex_string(l, t);
    case '{':
        l->at++;
        l->in_braces = true;
        return emit(l, t, TOKEN_LEFT_BRACE);
    case '@':
        l->at++;
        return emit(l, t, TOKEN_AT);
    case '=':
    case '!':
    case '<':
    case '>':
        return lex_comparison(l, t, c);
    default:
        return lex_common(l, t, c);
    }
}

/* Duration starts take no comments: Prometheus's rule. */
static void skip_space(struct lexer *l)
{
    for (;;) {
        while (is_space(peek(l)))
            l->at++;
        if (peek(l) != '#' || l->at_duration) return;
        while (peek(l) >= 0 && peek(l) != '\n' && peek(l) != '\r')
            l->at++;
    }
}

void lexer_init(struct lexer *l, str text)
{
    *l = (struct lexer){.text = text};
}

bool lexer_next(struct lexer *l, struct token *t)
{
    skip_space(l);
    *t = (struct token){.start = l->at, .end = l->at};
    if (l->in_braces) return lex_braces(l, t);
    if (l->at_duration) return lex_duration_start(l, t, peek(l));
    return lex_statements(l, t, peek(l));
}
