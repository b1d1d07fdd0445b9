/*
 * functions.h: the one table of PromQL functions: name, argument types, result type, code.
 *
 * The parser and the checks use the signature, the executor the code. Adding a function is adding a
 * row (functions.c) and its code.
 */
#ifndef VARVE_QUERY_FUNCTIONS_H
#define VARVE_QUERY_FUNCTIONS_H

#include "query/ast.h"

#define FUNCTION_ARGS_MAX 4

/* How the executor runs it; each class has its own code pointer type (exec.h). */
enum function_class {
    FN_ROLLUP,  /* one range vector argument (others scalar): rollup.c */
    FN_MAP,     /* value by value over a vector, scalars as parameters: abs, round, clamp, ... */
    FN_DATE,    /* minute(), hour(v), ...: FN_MAP with the evaluation time as default argument */
    FN_SPECIAL, /* has its own operator: absent, sort, label_replace, histogram_quantile, time, vector, scalar, info ...
                 */
};

struct function {
    const char *name;
    enum function_class class;
    enum value_type result;
    uint8_t n_types; /* entries of types */
    int8_t variadic; /* 0: exactly n_types args; k > 0: up to k of the last may be missing;
                        -1: the last type repeats any number of times (also none) */
    enum value_type types[FUNCTION_ARGS_MAX];
    bool experimental; /* needs --query.experimental */
    uint16_t code;     /* enum of the class, functions.c */
};

/* NULL if there is none of that name (names are lower case, exact). */
const struct function *function_find(str name);
/* All, sorted by name. */
const struct function *function_table(size_t *n);

#endif
