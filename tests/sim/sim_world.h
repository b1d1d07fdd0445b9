/*
 * sim_world.h: one simulated life of a database: the machine, the engine on it, the model beside it.
 * Private to the workload's files: sim_workload.c (what happens), sim_feed.c (what is written),
 * sim_verify.c (what must be read), sim_plan.c (what a seed decides).
 */
#ifndef VARVE_TESTS_SIM_WORLD_H
#define VARVE_TESTS_SIM_WORLD_H

#include "storage/storage.h"
#include "tests/sim/sim_env.h"
#include "tests/sim/sim_model.h"
#include "tests/sim/sim_workload.h"

#define SIM_PATH "data"
#define SIM_HISTS 8
#define SIM_SLACK_MS 5000 /* distance to the retention's edge below which the model is not sure */

enum sim_op {
    OP_APPEND,
    OP_WAIT,
    OP_TICK,
    OP_FLUSH,
    OP_MERGE,
    OP_DELETE,
    OP_SNAPSHOT,
    OP_REOPEN,  /* a clean end and a new start */
    OP_KILL,    /* the process dies, the machine lives */
    OP_CRASH,   /* the machine dies, now or at one of the next changing calls */
    OP_FAULT,   /* calls begin to fail */
    OP_FULL,    /* the disk gets small */
    OP_RECOVER, /* faults end */
    OP_READ,    /* one series or one matcher */
    OP_VERIFY,  /* everything */
    OP_ADVANCE, /* time passes */
    OP_LABELS,
    OP_COUNT,
};

/* Where a sample's time comes from. */
enum sim_time { TIME_NEXT, TIME_NEAR, TIME_SAME, TIME_MONTHS, TIME_TOO_OLD, TIME_TOO_NEW, TIME_COUNT };

/* What one seed decides at its start. */
struct sim_plan {
    unsigned steps, series, batch_max;
    unsigned op_weight[OP_COUNT];
    unsigned time_weight[TIME_COUNT];
    unsigned crash_reach;           /* a planned crash comes within so many changing calls */
    double bad_labels, histograms;  /* chance of each run */
    double starts;                  /* chance of start timestamps, of each run */
    double special_values;          /* chance of each value */
    double crash_while_opening;     /* chance of each start after a crash */
    double fault_while_opening;     /* chance of each start */
    struct storage_options options; /* sizes, ages, retention */
};

struct sim_world {
    uint64_t seed;
    struct rng rng;
    struct sim_plan plan;
    struct sim_env *sim;
    struct env *env;
    struct db *db; /* NULL while down */
    struct sim_model *model;
    int64_t *last_t; /* of each series: the newest time written */
    struct buf hist[SIM_HISTS];
    double hist_sum[SIM_HISTS];

    bool faults;                      /* errors are expected */
    uint64_t last_seq;                /* newest number the engine gave out */
    uint64_t settled_seq, failed_seq; /* newest settled, newest failed */
    char *snapshot;                   /* path of the newest snapshot, NULL if none */
    bool snapshot_listed;             /* seen in the list just asked for */
    struct sim_model *snapshot_model; /* what it must hold */
    unsigned step;
    struct sim_report *report;
};

/* Draws the plan of w->seed. */
void sim_plan_draw(struct sim_world *w);
enum sim_op sim_plan_next(struct sim_world *w);
size_t sim_plan_pick(struct rng *r, const unsigned *weights, size_t n);
const char *sim_op_name(enum sim_op op);

/* Records a failure (the first one counts). Always false. */
bool sim_fail(struct sim_world *w, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* Ends e. True if it was NULL or may happen now: the machine has crashed, or faults are on. */
bool sim_expect(struct sim_world *w, err e, const char *what);

/* ---- sim_feed.c: series, values, batches */
/* The labels of series id: canonical, or as a careless sender writes them. Strings in the arena. */
void sim_feed_labels(uint32_t id, bool careless, struct arena *a, struct labels *out);
void sim_feed_init(struct sim_world *w); /* histograms */
void sim_feed_deinit(struct sim_world *w);
/* Appends one random batch and tells the model. */
bool sim_feed_append(struct sim_world *w);
/* Appends one sample and waits; true if it is durable. */
bool sim_feed_probe(struct sim_world *w);
/* The number of a histogram by its bytes; 0 if it was never written. */
uint32_t sim_feed_hist_number(const struct sim_world *w, str blob);

/* ---- sim_verify.c: reads against a model; false = a failure was recorded */
/* All series, all time. observe: what is read is what is there from now on. */
bool sim_verify_all(struct sim_world *w, struct db *db, struct sim_model *m, bool observe);
bool sim_verify_some(struct sim_world *w);
bool sim_verify_labels(struct sim_world *w);
/* A random matcher that both sides understand, and what it says about a series. */
void sim_verify_matcher(struct sim_world *w, struct arena *a, struct matcher *m);
bool sim_verify_matches(const struct matcher *m, uint32_t id);

#endif
