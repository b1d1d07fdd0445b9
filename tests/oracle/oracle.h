/*
 * oracle.h: a naive PromQL evaluator, the judge of the differential fuzzer.
 *
 * It takes the checked tree (query/ast.h) and raw samples in plain arrays, and evaluates node by node over the whole
 * grid of steps, by rescanning: nothing is streamed, shared, cached or moved along. Written from the documentation of
 * the language, not from the engine. Floats only. All memory is the arena of the evaluation; one thread.
 *
 * Errors are sticky (`failed`). `ambiguous` says that the language leaves the answer open here (ties in topk, which
 * series limitk takes, dates of absurd numbers ...): such a query proves nothing and is not compared.
 */
#ifndef VARVE_TESTS_ORACLE_ORACLE_H
#define VARVE_TESTS_ORACLE_ORACLE_H

#include "query/ast.h"
#include "storage/base/arena.h"

/* Raw samples of one series, strictly increasing in time; stale markers included. */
struct oracle_series {
    struct labels labels;
    int64_t *t;
    double *v;
    size_t n;
};

struct oracle_data {
    struct oracle_series *series;
    size_t n;
};

/* Steps start, start + step, ...: n of them. */
struct oracle_grid {
    int64_t start, step;
    size_t n;
};

/* One series of results: at step i a value if has[i]. */
struct oracle_row {
    struct labels labels;
    bool drop_name; /* the metric name goes when the query ends, unless a label function sets it anew */
    bool *has;
    double *v;
};

struct oracle_matrix {
    struct oracle_row *rows;
    size_t n, cap;
};

struct oracle_sample {
    struct labels labels;
    bool drop_name;
    double v;
};

/* What an expression is at one step. */
struct oracle_vector {
    struct oracle_sample *s;
    size_t n, cap;
};

/* A range vector before it is cut into windows: all its points; window of step i: (end_i - range, end_i]. */
struct oracle_range {
    struct oracle_series *rows;
    bool *drop_name;
    size_t n;
    int64_t range;
    const struct modifiers *mod;
};

struct oracle {
    const struct oracle_data *data;
    struct arena *arena;
    int64_t start, end; /* of the query: what @ start() and @ end() mean */
    int64_t step;       /* of the query; 0 = instant */
    int64_t lookback_ms, subquery_step_ms;
    bool failed, ambiguous, finishing;
    bool counted;    /* a variance or slope was made: its last bit depends on the way of counting */
    const char *why; /* of failed or ambiguous */
};

/* The answer of a query. A range vector (instant queries only) comes as raw points. */
struct oracle_answer {
    enum value_type type;
    struct oracle_grid grid;
    struct oracle_matrix matrix;
    struct oracle_range points;
};

/* Evaluates a whole query: names that were to be dropped are gone, equal series merged. */
struct oracle_answer oracle_run(struct oracle *o, const struct expr *e, struct oracle_grid grid);

/* ---- shared by the oracle's own files ---------------------------------------------------------------------- */

void oracle_fail(struct oracle *o, const char *why);
void oracle_unsure(struct oracle *o, const char *why);

struct oracle_matrix oracle_eval(struct oracle *o, struct oracle_grid g, const struct expr *e);
struct oracle_range oracle_eval_range(struct oracle *o, struct oracle_grid g, const struct expr *e);
/* A duration in ms, literal or computed. */
int64_t oracle_duration(const struct oracle *o, const struct duration *d);
/* Where the window of a step at `ts` ends: @ and offset applied. */
int64_t oracle_pin(const struct oracle *o, const struct modifiers *m, int64_t ts);
const struct expr *oracle_unwrap(const struct expr *e); /* without parentheses */

struct oracle_row *oracle_add_row(struct oracle *o, struct oracle_matrix *m, struct oracle_grid g, struct labels ls,
                                  bool drop_name);
struct oracle_vector oracle_at(struct oracle *o, const struct oracle_matrix *m, size_t step);
void oracle_push(struct oracle *o, struct oracle_vector *v, struct labels ls, bool drop_name, double value);
/* Adds a step's vector to the matrix. Two samples with the same labels are an error in the answer; on the way there the
 * reference sees them in range queries only. */
void oracle_collect(struct oracle *o, struct oracle_matrix *m, struct oracle_grid g, size_t step,
                    const struct oracle_vector *v);
double oracle_scalar_at(const struct oracle_matrix *m, size_t step);

struct labels oracle_labels_keep(struct oracle *o, const struct labels *ls, const str *names, size_t n);
struct labels oracle_labels_drop(struct oracle *o, const struct labels *ls, const str *names, size_t n);
struct labels oracle_labels_drop_name(struct oracle *o, const struct labels *ls);
struct labels oracle_labels_set(struct oracle *o, const struct labels *ls, str name, str value); /* n = 0: removes */
bool oracle_names_have(const str *names, size_t n, str name);

struct oracle_matrix oracle_call(struct oracle *o, struct oracle_grid g, const struct expr *e);
struct oracle_matrix oracle_aggregate(struct oracle *o, struct oracle_grid g, const struct expr *e);
struct oracle_matrix oracle_binary(struct oracle *o, struct oracle_grid g, const struct expr *e);
struct oracle_matrix oracle_classic(struct oracle *o, struct oracle_grid g, const struct expr *e);
struct oracle_matrix oracle_relabel(struct oracle *o, struct oracle_grid g, const struct expr *e);

/* One window through a range function; a and b are its scalar arguments. False: no result. */
struct oracle_window {
    const int64_t *t;
    const double *v;
    size_t n;
    int64_t start, end, now; /* (start, end], and the step's time */
    double a, b;
};
bool oracle_rollup(struct oracle *o, str function, const struct oracle_window *w, double *out);

/* Compensated addition. */
struct oracle_sum {
    double sum, c;
};
void oracle_sum_add(struct oracle_sum *s, double v);
double oracle_mean(const double *v, size_t n);
double oracle_variance(struct oracle *o, const double *v, size_t n);
double oracle_quantile(struct oracle *o, double q, const double *v, size_t n);

#endif
