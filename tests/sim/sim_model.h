/*
 * sim_model.h: what the database must answer, kept naively: series → time → the outcomes that are allowed.
 *
 * A cell (one series at one time) has a set of settled outcomes and, in the order written, the
 * writes since then that are not settled. An unsettled write is PENDING (the engine took it: reads show
 * it until a crash) or a MAYBE (it failed, or a crash came before it was settled: it may show or not,
 * for good). Deletes are writes of "absent". Observing a cell after a crash leaves one outcome.
 */
#ifndef VARVE_TESTS_SIM_MODEL_H
#define VARVE_TESTS_SIM_MODEL_H

#include "storage/base/types.h"

/* What a read of one cell gives. All-zero is "absent". */
struct sim_value {
    bool present;
    uint32_t hist; /* 0: a float; else number of a histogram (the workload's), and bits are its sum's */
    uint64_t bits;
    int64_t start; /* timestamp; 0: none */
};

struct sim_write {
    uint64_t seq; /* 0 for a MAYBE */
    struct sim_value value;
};

struct sim_cell {
    int64_t t;
    struct sim_value *settled; /* at least one outcome */
    size_t n_settled, cap_settled;
    struct sim_write *writes; /* unsettled, oldest first */
    size_t n_writes, cap_writes;
};

struct sim_series {
    bool attempted; /* a write to it was tried: it may have been registered */
    struct sim_cell *cells;
    size_t n, cap; /* by time */
};

struct sim_model {
    struct sim_series *series;
    size_t n;
};

struct sim_model *sim_model_create(size_t series);
struct sim_model *sim_model_clone(const struct sim_model *m);
void sim_model_destroy(struct sim_model *m); /* NULL allowed */

/* A write the engine took under seq; seq 0: one that failed, which may have happened all the same. */
void sim_model_write(struct sim_model *m, size_t series, int64_t t, struct sim_value v, uint64_t seq);
/* Pending writes up to seq are durable. */
void sim_model_settle(struct sim_model *m, uint64_t seq);
/* Pending writes up to seq failed. UINT64_MAX: a crash. */
void sim_model_unsettle(struct sim_model *m, uint64_t seq);
/* A delete of what was written so far; sure = it returned OK. */
void sim_model_delete(struct sim_model *m, size_t series, int64_t t_min, int64_t t_max, bool sure);
/* The first cell at or after t; the series' n if there is none. */
size_t sim_model_find(const struct sim_series *s, int64_t t);

bool sim_value_eq(struct sim_value a, struct sim_value b);
/* True if a read may give v now. */
bool sim_cell_allows(const struct sim_cell *c, struct sim_value v);
/* After a crash: v was read, so v it is from now on. */
void sim_cell_observe(struct sim_cell *c, struct sim_value v);
/* True if some sample must be in [t_min, t_max]. */
bool sim_series_must_exist(const struct sim_series *s, int64_t t_min, int64_t t_max);

#endif
