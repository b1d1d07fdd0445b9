/*
 * plan.h: what will be executed: the tree of a query with every decision taken that needs no data.
 *
 * Built in two passes over the syntax tree. The first makes nodes bottom-up, evaluates duration
 * expressions and finds out which parts do not depend on the step. The second goes top-down and gives
 * each node its grid (subqueries have their own, step-invariant parts a single step), computes the
 * exact time range of every selector, and lets equal selectors share one selection.
 * Everything lives in the query's arena. A plan is read-only while it runs, but for the selections.
 */
#ifndef VARVE_QUERY_PLAN_H
#define VARVE_QUERY_PLAN_H

#include "query/ast.h"
#include "query/functions.h"
#include "query/value.h"

enum plan_kind {
    PLAN_NUMBER,    /* a constant scalar */
    PLAN_STRING,    /* a string: result of a query, or argument of a function */
    PLAN_SELECT,    /* an instant vector from storage */
    PLAN_SAMPLES,   /* a range vector as it is: only the root of an instant query, or a rollup's argument */
    PLAN_ROLLUP,    /* a range function; kid 0 is its PLAN_SAMPLES */
    PLAN_AGGREGATE, /* kid 0 the vector, kid 1 the parameter if there is one */
    PLAN_BINARY,    /* kids 0 and 1 */
    PLAN_NEGATE,
    PLAN_CALL, /* FN_MAP, FN_DATE, FN_SPECIAL over kids */
};

/* One selection of series: what equal selectors share. */
struct plan_select {
    const struct matcher *matchers;
    uint32_t n_matchers;
    str name;               /* the metric name, if a matcher demands one; n = 0 otherwise */
    int64_t t_min, t_max;   /* union of what its users need */
    struct match_set *sets; /* by exec: the matchers, confined to what the request may see; a union */
    uint32_t n_sets;
    struct selection *selection; /* opened by exec */
    struct plan_select *next;
};

/* Where a selector or subquery looks, seen from a step: windows end at (at or step time) - offset. */
struct plan_window {
    int64_t range;  /* window length: range, or lookback of an instant selector */
    int64_t offset; /* may be negative */
    bool has_at;
    int64_t at;
    bool anchored, smoothed;
    bool find_hints;                /* only counts and sums of histograms matter: reset hints are found on the way */
    struct plan_select *select;     /* samples come from storage, ... */
    int64_t select_min, select_max; /* this user's part of it, ... */
    struct plan_node *inner;        /* ... or from a subquery, */
    int64_t inner_step;
};

struct plan_node {
    enum plan_kind kind;
    enum value_type type;
    const struct expr *expr; /* what it was made from: position, operator, labels */
    struct grid grid;        /* where it is evaluated; one step if it is repeated */
    uint32_t repeat;         /* steps of the consumer's grid that the one step is repeated to; 0 = as grid */
    bool invariant;          /* does not depend on the step */
    bool may_repeat;         /* rows of equal labels may occur, at different steps */
    uint8_t counted;         /* enum tally_kind: how its samples count for stats; tally.c */
    struct plan_node **kids;
    uint32_t n_kids;
    union {
        double number;
        str string;
        struct plan_window window; /* PLAN_SELECT, PLAN_SAMPLES */
        const struct function *fn; /* PLAN_ROLLUP, PLAN_CALL */
    };
};

struct tally;

struct plan {
    struct plan_node *root;
    struct plan_select *selects;
    struct grid grid;         /* of the query */
    int64_t start, end, step; /* as asked; step 0 = instant */
    int64_t lookback;
    uint32_t n_nodes;
    struct tally *tally; /* NULL: nobody asked; tally.h */
};

struct plan_request {
    int64_t start_ms, end_ms, step_ms; /* step 0 = instant */
    int64_t lookback_ms;
    int64_t default_subquery_step_ms;
    uint64_t max_steps; /* of a subquery's inner grid; ERR_LIMIT beyond */
};

/* e is a checked tree and must outlive the plan. ERR_INVALID for durations that come out wrong. */
err plan_build(const struct expr *e, const struct plan_request *rq, struct arena *a, struct plan **out)
    __attribute__((warn_unused_result));

/* The step count seen by the consumer. */
static inline uint32_t plan_steps(const struct plan_node *n)
{
    return n->repeat ? n->repeat : n->grid.n;
}

/* The child that is the range vector of a PLAN_ROLLUP. */
static inline const struct plan_node *plan_samples_of(const struct plan_node *rollup)
{
    return rollup->kids[0];
}

/* Value of a duration: literal or expression. plan_duration.c */
err plan_duration(const struct duration *d, const struct plan_request *rq, int64_t *ms)
    __attribute__((warn_unused_result));

#endif
