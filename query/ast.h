/*
 * ast.h: the syntax tree of a PromQL expression. Nodes, strings and arrays live in the query's arena.
 *
 * Positions are byte offsets into the query text, [start, end). Durations are milliseconds. Types and
 * names follow the Prometheus 3 documentation of the language.
 *
 * Chains of left-associative operators (a + b + c ...) are trees that lean left and may be thousands of
 * nodes high (bounded: PROMQL_HEIGHT_MAX): walk `lhs` in a loop and recurse into `rhs` only; all other
 * nesting is bounded by PROMQL_DEPTH_MAX.
 */
#ifndef VARVE_QUERY_AST_H
#define VARVE_QUERY_AST_H

#include "storage/matcher.h"

enum value_type { TYPE_NONE, TYPE_SCALAR, TYPE_STRING, TYPE_VECTOR, TYPE_MATRIX };

enum expr_kind {
    EXPR_NUMBER,
    EXPR_STRING,
    EXPR_SELECTOR, /* metric{...} [offset] [@]; an instant vector */
    EXPR_RANGE,    /* selector[5m]; a range vector */
    EXPR_SUBQUERY, /* expr[5m:1m] */
    EXPR_CALL,
    EXPR_AGGREGATE,
    EXPR_BINARY,
    EXPR_UNARY,
    EXPR_PAREN,
    EXPR_STEP,   /* step() inside a duration expression */
    EXPR_QRANGE, /* range() inside a duration expression */
};

/* Text and precedence: ast.c. Set operators last. */
enum binary_op {
    OP_ADD,
    OP_SUB,
    OP_MUL,
    OP_DIV,
    OP_MOD,
    OP_POW,
    OP_ATAN2,
    OP_EQ,
    OP_NE,
    OP_LT,
    OP_GT,
    OP_LE,
    OP_GE,
    OP_TRIM_UPPER,
    OP_TRIM_LOWER, /* histograms: `</` and `>/` */
    OP_AND,
    OP_OR,
    OP_UNLESS,
};

enum aggregate_op {
    AGG_SUM,
    AGG_AVG,
    AGG_MIN,
    AGG_MAX,
    AGG_COUNT,
    AGG_GROUP,
    AGG_STDDEV,
    AGG_STDVAR,
    AGG_TOPK,
    AGG_BOTTOMK,
    AGG_QUANTILE,
    AGG_COUNT_VALUES,
    AGG_LIMITK,
    AGG_LIMIT_RATIO,
};

enum at_kind { AT_NONE, AT_TIME, AT_START, AT_END };

/* A duration: a literal, or an expression that the plan evaluates, in seconds: EXPR_NUMBER, EXPR_STEP, EXPR_QRANGE,
 * EXPR_PAREN, EXPR_UNARY (only minus), EXPR_BINARY (+ - * / % ^), EXPR_CALL of min_of or max_of with two arguments. All
 * of them have TYPE_SCALAR. */
struct duration {
    int64_t ms;
    struct expr *expr; /* NULL when literal */
};

/* offset and @, as written on selectors and subqueries. */
struct modifiers {
    struct duration offset;
    bool has_offset;
    enum at_kind at;
    int64_t at_ms; /* AT_TIME */
    bool anchored, smoothed;
};

struct selector {
    str name; /* as written before the braces; empty if none. Also present as a matcher on __name__ */
    struct matcher *matchers;
    uint32_t n_matchers;
    struct modifiers mod;
};

enum vector_card { CARD_ONE_TO_ONE, CARD_MANY_TO_ONE, CARD_ONE_TO_MANY, CARD_MANY_TO_MANY };

struct matching {
    enum vector_card card;
    bool on;     /* on(...) rather than ignoring(...) */
    bool given;  /* on or ignoring was written */
    str *labels; /* of on/ignoring */
    uint32_t n_labels;
    str *include; /* of group_left/group_right */
    uint32_t n_include;
    bool fill_left, fill_right; /* fill modifiers: values for sides without a match */
    double fill_left_value, fill_right_value;
    bool fill_both; /* written as one fill(x), which sets both sides */
};

struct function; /* functions.h */

struct expr {
    enum expr_kind kind;
    enum value_type type;
    uint32_t start, end;
    uint32_t height;  /* nodes on the longest way down, this one included */
    bool is_duration; /* EXPR_NUMBER that was written as a duration (1h30m); number holds its seconds */
    union {
        double number; /* EXPR_NUMBER */
        str string;    /* EXPR_STRING, unquoted */
        struct selector selector;
        struct {
            struct expr *selector; /* EXPR_SELECTOR, possibly in parentheses removed by the parser */
            struct duration range;
        } range;
        struct {
            struct expr *inner;
            struct duration range, step; /* step.ms 0 without expr: the default (evaluation) interval */
            bool has_step;
            struct modifiers mod;
        } subquery;
        struct {
            const struct function *fn;
            struct expr **args;
            uint32_t n_args;
        } call;
        struct {
            enum aggregate_op op;
            struct expr *inner;
            struct expr *param; /* NULL if the operator has none */
            str *grouping;
            uint32_t n_grouping;
            bool without;
            bool grouped; /* by or without was written */
        } aggregate;
        struct {
            enum binary_op op;
            struct expr *lhs, *rhs;
            bool return_bool;
            struct matching matching; /* vector op vector only */
        } binary;
        struct {
            bool negate; /* '-' rather than '+' */
            struct expr *inner;
        } unary;
        struct expr *paren;
    };
};

const char *value_type_name(enum value_type t);      /* "scalar", "string", "instant vector", "range vector" */
const char *binary_op_text(enum binary_op op);       /* "+", "and", ... */
int binary_op_precedence(enum binary_op op);         /* 1 (or) ... 6 (^): higher binds tighter */
bool binary_op_is_comparison(enum binary_op op);     /* == != < > <= >= */
bool binary_op_is_set(enum binary_op op);            /* and, or, unless */
bool aggregate_op_has_param(enum aggregate_op op);   /* topk, quantile, ... */
const char *aggregate_op_text(enum aggregate_op op); /* "sum", ... */
/* The chain that leans left from top: its n operators from the innermost (whose lhs is no binary node) up to top, in a.
 * top must be binary. */
struct expr **expr_chain(const struct expr *top, struct arena *a, uint32_t *n);
/* Calls fn with e and every node below it, in no order that matters. Chains of left operands are a loop, other nesting
 * is recursion, which PROMQL_DEPTH_MAX bounds. NULL allowed. */
void expr_walk(struct expr *e, void (*fn)(void *arg, struct expr *e), void *arg);
/* Frees what nodes own outside the arena (regexes). NULL allowed. */
void expr_deinit(struct expr *e);

#endif
