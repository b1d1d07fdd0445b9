/*
 * exec.h: the executor: operators that yield one row at a time, and what they share.
 *
 * exec_open turns a plan node into an operator. op_next yields rows until *more is false; a row lives
 * until the next call on the same operator (value.h). Operators are owned by the exec and closed all
 * at once by exec_deinit, in any state, so an error anywhere needs no clean-up on its way up.
 * An exec belongs to one thread at a time; a query over many series may have several, one a slice (slices.h).
 */
#ifndef VARVE_QUERY_EXEC_H
#define VARVE_QUERY_EXEC_H

#include "query/budget.h"
#include "query/notes.h"
#include "query/plan.h"
#include "storage/base/map.h"
#include "storage/base/worker.h"

struct exec_slice;

/* Part i of n of the series that a selection has. */
struct exec_stretch {
    unsigned i, n;
};

struct exec {
    struct db *db;
    const struct hash_key *hash;
    struct plan *plan;
    struct arena *arena; /* query lifetime; borrowed */
    struct budget *budget;
    struct notes *notes;
    uint64_t max_series;            /* of one selection; 0 = no limit */
    struct worker *helpers;         /* threads that may run slices; NULL: none */
    struct exec_stretch slice;      /* which series its selectors walk */
    struct exec_slice *slices;      /* its parts that ran on their own, newest first */
    struct op *ops;                 /* all that were opened, newest first */
    uint64_t series;                /* rows read from storage */
    const struct match_sets *extra; /* every selection is confined to them; NULL: to nothing */
    bool timed;                     /* operators take their time: explain */
    struct usage *usage;            /* counts the metric names that are asked for; NULL: nobody does */
};

struct op {
    err (*next)(struct op *op, struct row *row, bool *more);
    void (*close)(struct op *op); /* heap of its own beside scratch; may be NULL */
    struct exec *x;
    const struct plan_node *node;
    uint32_t n;              /* steps of its rows */
    struct arena scratch;    /* freed when the op is closed; what it holds is up to the op */
    uint64_t rows;           /* yielded */
    uint64_t ns;             /* spent in it and below, if exec.timed */
    uint64_t samples, bytes; /* decoded by its own reader, and of their columns; if exec.timed */
    struct op *opened_before;
};

void exec_init(struct exec *x, struct db *db, const struct hash_key *hash, struct plan *plan, struct arena *arena,
               struct budget *budget, struct notes *notes);
void exec_deinit(struct exec *x); /* closes operators, slices and selections */
void exec_close_ops(struct exec *x);
/* The slice after *at (NULL: the newest), which becomes *at; NULL after the last. slices.c */
const struct exec *exec_slice_at(const struct exec *x, const struct exec_slice **at);
void exec_slices_close(struct exec *x); /* slices.c */

err exec_open(struct exec *x, const struct plan_node *node, struct op **out) __attribute__((warn_unused_result));
err op_next_timed(struct op *op, struct row *row, bool *more) __attribute__((warn_unused_result));
static inline err op_next(struct op *op, struct row *row, bool *more)
{
    err e = __builtin_expect(op->x->timed, 0) ? op_next_timed(op, row, more) : op->next(op, row, more);
    op->rows += e == NULL && *more;
    return e;
}

/* A scalar node's values, one a step of the consumer's grid; memory of the query. */
err exec_column(struct exec *x, const struct plan_node *node, double **out) __attribute__((warn_unused_result));
/* The selection behind a selector, opened at first use. */
err exec_selection(struct exec *x, struct plan_select *s, struct selection **out) __attribute__((warn_unused_result));
/* n columns of doubles that stay for the query's life, counted against the budget. */
err exec_columns(struct exec *x, size_t n_columns, uint32_t n_steps, double **out) __attribute__((warn_unused_result));
/* n_steps histogram pointers, all NULL, counted against the budget. */
err exec_hist_column(struct exec *x, uint32_t n_steps, struct hist ***out) __attribute__((warn_unused_result));

/* For operators: a zeroed op of `size` bytes that begins with a struct op, registered. n is the node's step count. */
void *op_new(struct exec *x, const struct plan_node *node, size_t size, err (*next)(struct op *, struct row *, bool *),
             void (*close)(struct op *));

/* ---- rows that are kept --------------------------------------------------------------------------- */

struct held_row {
    struct labels labels; /* deep copies in the query's arena */
    double *v;
    struct hist **h;
    bool drop_name;
};
struct held_rows {
    struct held_row *v; /* query arena */
    size_t n, cap;
};
/* Copies a row (labels too) into the query's arena. */
err held_add(struct exec *x, struct held_rows *rows, struct row *row, uint32_t n_steps)
    __attribute__((warn_unused_result));
/* All rows of an operator. */
err held_collect(struct op *op, struct held_rows *rows) __attribute__((warn_unused_result));
/* A held row as a row to yield. */
static inline struct row held_as_row(const struct held_row *h)
{
    return (struct row){.v = h->v, .h = h->h, .drop_name = h->drop_name, .resolved = true, .labels = h->labels};
}
/* Rows of equal labels become one; ERR_EXECUTION if two have a sample at the same step. */
err held_merge(struct exec *x, struct held_rows *rows, uint32_t n_steps) __attribute__((warn_unused_result));
err error_same_labelset(void) __attribute__((warn_unused_result));

/* ---- operators, one constructor a file ------------------------------------------------------------ */

/* What the rows of a selector hold: its samples' values, or their times or start timestamps in seconds. */
enum select_yield { SELECT_VALUES, SELECT_TIMES, SELECT_STARTS };
err op_select_open(struct exec *x, const struct plan_node *node, enum select_yield yield, struct op **out);
err op_rollup_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_absent_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_absent_over_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_aggregate_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_rank_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_count_values_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_quantile_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_scalar_binary_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_join_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_set_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_map_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_special_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_label_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_sort_open(struct exec *x, const struct plan_node *node, struct op **out);
err op_buckets_open(struct exec *x, const struct plan_node *node, struct op **out);
/* Rounds what another operator yields; and the same for a single value. */
err op_digits_open(struct exec *x, struct op *inner, int digits, struct op **out);
double op_digits_scale(int digits); /* ten to the power */
double op_digits_round(double v, double scale);
err op_info_open(struct exec *x, const struct plan_node *node, struct op **out);

#endif
