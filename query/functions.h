/*
 * functions.h: the one table of PromQL functions: name, argument types, result type, code.
 *
 * The parser and the checks use the signature, the executor the code. Adding a function is adding a
 * row (functions.c) and its code.
 */
#ifndef VARVE_QUERY_FUNCTIONS_H
#define VARVE_QUERY_FUNCTIONS_H

#include "query/ast.h"

#define FUNCTION_ARGS_MAX 5

/* How the executor runs it; each class has its own code pointer type (exec.h). */
enum function_class {
    FN_ROLLUP,  /* one range vector argument (others scalar): rollup.c */
    FN_MAP,     /* value by value over a vector, scalars as parameters: abs, round, clamp, ... */
    FN_DATE,    /* minute(), hour(v), ...: FN_MAP with the evaluation time as default argument */
    FN_SPECIAL, /* has its own operator: absent, sort, label_replace, histogram_quantile, time, vector, scalar, info ...
                 */
};

/* Codes of FN_ROLLUP. The range vector is the only argument but where said. */
enum rollup_code {
    ROLLUP_AVG,
    ROLLUP_CHANGES,
    ROLLUP_COUNT,
    ROLLUP_DELTA,
    ROLLUP_DERIV,
    ROLLUP_DOUBLE_EXPONENTIAL, /* (range, smoothing factor, trend factor) */
    ROLLUP_FIRST,
    ROLLUP_IDELTA,
    ROLLUP_INCREASE,
    ROLLUP_IRATE,
    ROLLUP_LAST,
    ROLLUP_MAD,
    ROLLUP_MAX,
    ROLLUP_MIN,
    ROLLUP_PREDICT_LINEAR, /* (range, seconds ahead) */
    ROLLUP_PRESENT,
    ROLLUP_QUANTILE, /* (quantile, range) */
    ROLLUP_RATE,
    ROLLUP_RESETS,
    ROLLUP_STDDEV,
    ROLLUP_STDVAR,
    ROLLUP_SUM,
    ROLLUP_TS_OF_FIRST,
    ROLLUP_TS_OF_LAST,
    ROLLUP_TS_OF_MAX,
    ROLLUP_TS_OF_MIN,
    ROLLUP_CODES,
};

/* Codes of FN_MAP: (vector, scalars...). */
enum map_code {
    MAP_ABS,
    MAP_ACOS,
    MAP_ACOSH,
    MAP_ASIN,
    MAP_ASINH,
    MAP_ATAN,
    MAP_ATANH,
    MAP_CEIL,
    MAP_CLAMP,     /* (v, min, max) */
    MAP_CLAMP_MAX, /* (v, max) */
    MAP_CLAMP_MIN, /* (v, min) */
    MAP_COS,
    MAP_COSH,
    MAP_DEG,
    MAP_EXP,
    MAP_FLOOR,
    MAP_HISTOGRAM_AVG, /* of histogram samples; floats give nothing */
    MAP_HISTOGRAM_COUNT,
    MAP_HISTOGRAM_STDDEV,
    MAP_HISTOGRAM_STDVAR,
    MAP_HISTOGRAM_SUM,
    MAP_LN,
    MAP_LOG10,
    MAP_LOG2,
    MAP_RAD,
    MAP_ROUND, /* (v[, to nearest]) */
    MAP_SGN,
    MAP_SIN,
    MAP_SINH,
    MAP_SQRT,
    MAP_TAN,
    MAP_TANH,
    MAP_CODES,
};

/* Codes of FN_DATE: ([vector of unix seconds]). */
enum date_code {
    DATE_DAY_OF_MONTH,
    DATE_DAY_OF_WEEK,
    DATE_DAY_OF_YEAR,
    DATE_DAYS_IN_MONTH,
    DATE_HOUR,
    DATE_MINUTE,
    DATE_MONTH,
    DATE_YEAR,
    DATE_CODES,
};

/* Codes of FN_SPECIAL; arguments as the table in functions.c says. */
enum special_code {
    SPECIAL_ABSENT,
    SPECIAL_ABSENT_OVER_TIME,
    SPECIAL_DEFAULT_ROLLUP, /* (range or instant vector) */
    SPECIAL_END,
    SPECIAL_HISTOGRAM_FRACTION,
    SPECIAL_HISTOGRAM_QUANTILE,
    SPECIAL_HISTOGRAM_QUANTILES,
    SPECIAL_INFO,
    SPECIAL_LABEL_JOIN,
    SPECIAL_LABEL_REPLACE,
    SPECIAL_MAX_OF,
    SPECIAL_MIN_OF,
    SPECIAL_PI,
    SPECIAL_RANGE,
    SPECIAL_SCALAR,
    SPECIAL_SORT,
    SPECIAL_SORT_BY_LABEL,
    SPECIAL_SORT_BY_LABEL_DESC,
    SPECIAL_SORT_DESC,
    SPECIAL_START,
    SPECIAL_START_TIMESTAMP,
    SPECIAL_STEP,
    SPECIAL_TIME,
    SPECIAL_TIMESTAMP,
    SPECIAL_VECTOR,
    SPECIAL_CODES,
};

struct function {
    const char *name;
    enum function_class class;
    enum value_type result;
    uint8_t n_types; /* entries of types */
    int8_t variadic; /* 0: exactly n_types args; k > 0: n_types - 1 args, then 0..k more of the last type;
                        -1: n_types - 1 args, then any number of the last type (also none) */
    enum value_type types[FUNCTION_ARGS_MAX];
    bool experimental; /* needs --query.experimental */
    uint16_t code;     /* rollup_code, map_code, date_code or special_code */
};

/* NULL if there is none of that name (names are lower case, exact). */
const struct function *function_find(str name);
/* All, sorted by name. */
const struct function *function_table(size_t *n);

#endif
