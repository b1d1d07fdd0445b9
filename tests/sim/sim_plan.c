/*
 * sim_plan.c: what one seed decides (swarm testing): sizes, weights and rates differ widely between
 * seeds and many operations are switched off in each, so that runs have personalities and rare
 * combinations come up that uniform weights would drown.
 */
#include "tests/sim/sim_world.h"

#define DAY_MS INT64_C(86400000)

static const char *const op_names[OP_COUNT] = {
    "append", "wait",  "tick", "flush",   "merge", "delete", "snapshot", "reopen", "kill",
    "crash",  "fault", "full", "recover", "read",  "verify", "advance",  "labels",
};

const char *sim_op_name(enum sim_op op)
{
    return op_names[op];
}

size_t sim_plan_pick(struct rng *r, const unsigned *weights, size_t n)
{
    uint64_t sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += weights[i];
    uint64_t at = rng_below(r, sum);
    size_t i = 0;
    while (at >= weights[i])
        at -= weights[i++];
    return i;
}

/* About as many values near `from` as near `to`, on a logarithmic scale. */
static uint64_t log_uniform(struct rng *r, uint64_t from, uint64_t to)
{
    uint64_t top = from;
    while (top < to && rng_chance(r, 0.75))
        top *= 2;
    if (top > to) top = to;
    return from + rng_below(r, top - from + 1);
}

static void draw_weights(struct rng *r, struct sim_plan *p)
{
    static const unsigned usual[OP_COUNT] = {
        [OP_APPEND] = 40,  [OP_WAIT] = 15,  [OP_TICK] = 10,  [OP_FLUSH] = 3,   [OP_MERGE] = 2,  [OP_DELETE] = 4,
        [OP_SNAPSHOT] = 2, [OP_REOPEN] = 2, [OP_KILL] = 2,   [OP_CRASH] = 4,   [OP_FAULT] = 5,  [OP_FULL] = 1,
        [OP_RECOVER] = 4,  [OP_READ] = 6,   [OP_VERIFY] = 1, [OP_ADVANCE] = 3, [OP_LABELS] = 2,
    };
    for (size_t i = 0; i < OP_COUNT; i++) {
        unsigned factor = rng_chance(r, 0.25) ? 0 : (unsigned)(1 + rng_below(r, 6));
        p->op_weight[i] = usual[i] * factor;
    }
    p->op_weight[OP_APPEND] += 20;
    static const unsigned times[TIME_COUNT] = {20, 6, 5, 4, 1, 1};
    for (size_t i = 0; i < TIME_COUNT; i++)
        p->time_weight[i] = rng_chance(r, 0.3) ? 0 : times[i] * (unsigned)(1 + rng_below(r, 4));
    p->time_weight[TIME_NEXT] += 5;
}

static void draw_options(struct rng *r, struct storage_options *o)
{
    static const int64_t retention[] = {40 * DAY_MS, 400 * DAY_MS, 4000 * DAY_MS, 4000 * DAY_MS};
    *o = (struct storage_options){
        .path = SIM_PATH,
        .retention_ms = retention[rng_below(r, ARRAY_LEN(retention))],
        .future_ms = DAY_MS,
        .wal_sync = rng_chance(r, 0.85)  ? WAL_SYNC_ALWAYS
                    : rng_chance(r, 0.5) ? WAL_SYNC_1S
                                         : WAL_SYNC_OFF,
        .head_max_bytes = rng_chance(r, 0.8) ? (size_t)log_uniform(r, 2048, 1 << 18) : 0,
        .wal_max_bytes = rng_chance(r, 0.8) ? log_uniform(r, 1024, 1 << 18) : 0,
        .head_max_age_ms = rng_chance(r, 0.3) ? (int64_t)log_uniform(r, 1000, 1 << 24) : 0,
        .min_free_disk = rng_chance(r, 0.5) ? 4096 : 0,
        .cache_bytes = (size_t)log_uniform(r, 1 << 14, 1 << 20),
        .merge_threads = 1,
    };
}

void sim_plan_draw(struct sim_world *w)
{
    struct rng *r = &w->rng;
    struct sim_plan *p = &w->plan;
    *p = (struct sim_plan){
        .steps = (unsigned)log_uniform(r, 20, 200),
        .series = (unsigned)log_uniform(r, 1, 150),
        .batch_max = (unsigned)log_uniform(r, 2, rng_chance(r, 0.95) ? 400 : 6000),
        .crash_reach = (unsigned)log_uniform(r, 1, 200),
        .bad_labels = rng_chance(r, 0.3) ? 0.05 : 0,
        .histograms = rng_chance(r, 0.3) ? 0.2 : 0,
        .starts = rng_chance(r, 0.4) ? 0.3 : 0,
        .special_values = rng_chance(r, 0.5) ? 0.2 : 0.01,
        .crash_while_opening = rng_chance(r, 0.5) ? 0.4 : 0,
        .fault_while_opening = rng_chance(r, 0.5) ? 0.3 : 0,
    };
    draw_weights(r, p);
    draw_options(r, &p->options);
    p->options.env = w->env;
}

enum sim_op sim_plan_next(struct sim_world *w)
{
    return (enum sim_op)sim_plan_pick(&w->rng, w->plan.op_weight, OP_COUNT);
}
