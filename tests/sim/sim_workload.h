/*
 * sim_workload.h: random lives of a database on the simulated machine, each decided by one seed.
 */
#ifndef VARVE_TESTS_SIM_WORKLOAD_H
#define VARVE_TESTS_SIM_WORKLOAD_H

#include "storage/base/types.h"

struct sim_report {
    bool failed;
    unsigned failed_step;
    char message[1024]; /* what went wrong first */
    /* how much was done */
    uint64_t batches, samples, crashes, starts, kills, failed_calls, deletes, merges, flushes, snapshots, read_samples;
};

struct sim_options {
    uint64_t seed;
    bool lying_disk; /* syncs report success and do nothing: a correct test must notice */
    bool trace;      /* steps and changing calls on stderr */
};

/* Runs one life and adds to *report. True if every promise held. */
bool sim_workload_run(const struct sim_options *o, struct sim_report *report);

#endif
