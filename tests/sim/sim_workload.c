/*
 * sim_workload.c: one random life of a database: operations, faults, crashes, and what must hold.
 *
 * The rules:
 *   R1  after a crash and a new start every settled sample reads back bit for bit, the last write wins;
 *   R2  samples that were not settled are there or not, but nothing else ever is;
 *   R3  a delete that returned OK holds, for what was written before it and nothing later;
 *   R4  the same after failing calls without a crash, also while they fail;
 *   R5  without a fault or a crash no call fails; once faults end, the database takes writes again;
 *   R6  a database can be opened after every crash, and leaves no handle open when it ends;
 *   R7  a snapshot holds what it held when it was made, whatever comes after.
 * The model (sim_model.h) knows what is settled; reads are compared in sim_verify.c.
 */
#include "tests/sim/sim_world.h"

#include "storage/base/alloc.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

bool sim_fail(struct sim_world *w, const char *format, ...)
{
    if (w->report->failed) return false;
    va_list args;
    w->report->failed = true;
    w->report->failed_step = w->step;
    va_start(args, format);
    vsnprintf(w->report->message, sizeof w->report->message, format, args);
    va_end(args);
    return false;
}

bool sim_expect(struct sim_world *w, err e, const char *what)
{
    if (e == NULL) return true;
    bool excused = (sim_env_crashed(w->sim) || w->faults) && err_code(e) != ERR_CORRUPT;
    if (!excused) sim_fail(w, "%s failed: %s (%s)", what, err_message(e), err_code_name(err_code(e)));
    err_free(e);
    return excused;
}

/* ---- settling ----------------------------------------------------------------------------------------------- */

static void on_settled(void *arg, uint64_t seq, const struct err *e)
{
    struct sim_world *w = arg;
    w->settled_seq = seq;
    if (e != NULL) {
        w->failed_seq = seq;
        sim_model_unsettle(w->model, seq);
    } else if (w->plan.options.wal_sync == WAL_SYNC_ALWAYS) {
        sim_model_settle(w->model, seq);
    }
}

static bool do_wait(struct sim_world *w)
{
    uint64_t seq = w->last_seq;
    if (seq == 0) return true;
    err e = storage_wait(w->db, seq);
    if (e == NULL && w->settled_seq < seq)
        return sim_fail(w, "wait returned before batch %llu settled", (unsigned long long)seq);
    return sim_expect(w, e, "wait");
}

/* Some call of some kind will fail, once, some times or for good. */
static void arm_fault(struct sim_world *w)
{
    static const unsigned calls[] = {SIM_CALLS,  SIM_CHANGES,         SIM_SYNC,     SIM_SYNC | SIM_DIR_SYNC,
                                     SIM_APPEND, SIM_RENAME,          SIM_DIR_SYNC, SIM_CREATE,
                                     SIM_READ,   SIM_OPEN | SIM_READ, SIM_UNLINK,   SIM_LINK};
    unsigned kind = calls[rng_below(&w->rng, ARRAY_LEN(calls))];
    uint64_t nth = 1 + rng_below(&w->rng, w->plan.crash_reach);
    uint64_t times = rng_chance(&w->rng, 0.6) ? 1 : rng_chance(&w->rng, 0.5) ? 1 + rng_below(&w->rng, 5) : SIM_FOREVER;
    sim_env_fail(w->sim, kind, nth, times, rng_chance(&w->rng, 0.3) ? ENOSPC : EIO);
    w->faults = true;
}

static void end_faults(struct sim_world *w)
{
    sim_env_fail_never(w->sim);
    sim_env_capacity(w->sim, UINT64_MAX);
    w->faults = false;
}

/* ---- start and end ------------------------------------------------------------------------------------------ */

static bool check_handles(struct sim_world *w)
{
    unsigned n = sim_env_open_handles(w->sim);
    return n == 0 || sim_fail(w, "%u handles left open", n);
}

static struct storage_options options_of(struct sim_world *w)
{
    struct storage_options o = w->plan.options;
    o.settled = on_settled;
    o.settled_arg = w;
    return o;
}

/* One try; w->db stays NULL if it failed for a reason that may be. */
static bool try_open(struct sim_world *w)
{
    struct storage_options o = options_of(w);
    w->last_seq = w->settled_seq = w->failed_seq = 0;
    err e = storage_open(&o, &w->db);
    if (e == NULL) {
        w->report->starts++;
        return true;
    }
    w->db = NULL;
    return sim_expect(w, e, "open") && check_handles(w);
}

/* Calls may fail while the database opens: then it refuses or comes up whole, and comes up once they don't. */
static bool open_through_faults(struct sim_world *w)
{
    bool faulty = rng_chance(&w->rng, w->plan.fault_while_opening);
    if (faulty) arm_fault(w);
    bool ok = try_open(w);
    end_faults(w);
    if (!ok || !faulty || w->db != NULL || sim_env_crashed(w->sim)) return ok;
    return try_open(w);
}

static void restart_machine(struct sim_world *w)
{
    static const enum sim_crash_style styles[] = {SIM_CRASH_MIXED, SIM_CRASH_MIXED, SIM_CRASH_LOSE, SIM_CRASH_KEEP,
                                                  SIM_CRASH_PREFIX};
    sim_env_restart(w->sim, styles[rng_below(&w->rng, ARRAY_LEN(styles))]);
    end_faults(w);
    w->report->crashes++;
}

static void abandon(struct sim_world *w)
{
    if (w->db != NULL) storage_abandon(w->db);
    w->db = NULL;
    sim_model_unsettle(w->model, UINT64_MAX);
}

static bool check_snapshot(struct sim_world *w)
{
    if (w->snapshot == NULL) return true;
    struct storage_options o = w->plan.options;
    struct db *db = NULL;
    o.path = w->snapshot;
    err e = storage_open(&o, &db);
    if (e != NULL) return sim_expect(w, e, "opening the snapshot");
    bool ok = sim_verify_all(w, db, w->snapshot_model, false);
    if (!ok && strlen(w->report->message) + 16 < sizeof w->report->message) strcat(w->report->message, " (snapshot)");
    if (rng_chance(&w->rng, 0.5)) return sim_expect(w, storage_close(db), "closing the snapshot") && ok;
    storage_abandon(db);
    return ok;
}

/* The machine is down: power on until the database opens, then all must be there. */
static bool recover_from_crash(struct sim_world *w)
{
    abandon(w);
    if (!check_handles(w)) return false;
    restart_machine(w);
    for (;;) {
        if (rng_chance(&w->rng, w->plan.crash_while_opening))
            sim_env_crash_after(w->sim, 1 + rng_below(&w->rng, w->plan.crash_reach));
        if (!open_through_faults(w)) return false;
        if (!sim_env_crashed(w->sim)) break;
        abandon(w);
        restart_machine(w);
    }
    sim_env_crash_never(w->sim);
    return sim_verify_all(w, w->db, w->model, true) && sim_verify_labels(w) && check_snapshot(w);
}

/* The machine lives: faults off, then the database must open at once. */
static bool start_again(struct sim_world *w)
{
    end_faults(w);
    if (!open_through_faults(w)) return false;
    if (w->db == NULL) return sim_env_crashed(w->sim); /* the planned crash came: the main loop goes on from there */
    return sim_verify_all(w, w->db, w->model, false) && sim_verify_labels(w);
}

static bool do_reopen(struct sim_world *w)
{
    err e = storage_close(w->db);
    w->db = NULL;
    if (e == NULL)
        sim_model_settle(w->model, UINT64_MAX);
    else
        sim_model_unsettle(w->model, UINT64_MAX);
    return sim_expect(w, e, "close") && check_handles(w) && (sim_env_crashed(w->sim) || start_again(w));
}

static bool do_kill(struct sim_world *w)
{
    w->report->kills++;
    abandon(w);
    if (!check_handles(w)) return false;
    if (sim_env_crashed(w->sim)) return true;
    sim_env_kill_process(w->sim);
    return start_again(w);
}

static bool do_crash(struct sim_world *w)
{
    uint64_t after = rng_below(&w->rng, w->plan.crash_reach);
    if (after == 0)
        sim_env_crash_now(w->sim);
    else
        sim_env_crash_after(w->sim, after);
    return true;
}

/* ---- operations --------------------------------------------------------------------------------------------- */

static bool do_flush(struct sim_world *w)
{
    err e = storage_flush(w->db);
    w->report->flushes++;
    if (e == NULL) sim_model_settle(w->model, UINT64_MAX);
    return sim_expect(w, e, "flush");
}

static bool do_merge(struct sim_world *w)
{
    w->report->merges++;
    return sim_expect(w, storage_merge(w->db, -1), "merge");
}

static bool do_delete(struct sim_world *w)
{
    struct arena a = {0};
    struct matcher m;
    sim_verify_matcher(w, &a, &m);
    const struct sim_series *s = &w->model->series[rng_below(&w->rng, w->plan.series)];
    int64_t middle = s->n ? s->cells[rng_below(&w->rng, s->n)].t : w->env->ops->now_ms(w->env);
    int64_t t_min = middle - (int64_t)rng_below(&w->rng, 1 << rng_below(&w->rng, 30));
    int64_t t_max = middle + (int64_t)rng_below(&w->rng, 1 << rng_below(&w->rng, 30));
    err e = storage_delete(w->db, &m, 1, t_min, t_max);
    for (uint32_t id = 0; id < w->model->n; id++)
        if (sim_verify_matches(&m, id)) sim_model_delete(w->model, id, t_min, t_max, e == NULL);
    w->report->deletes++;
    matcher_deinit(&m);
    arena_deinit(&a);
    return sim_expect(w, e, "delete");
}

static char *snapshot_path(str name)
{
    char path[256];
    snprintf(path, sizeof path, SIM_PATH "/snapshots/%.*s", STR_ARG(name));
    return mem_dup_str(str_of(path));
}

static void note_snapshot(void *arg, str name)
{
    struct sim_world *w = arg;
    char *path = snapshot_path(name);
    w->snapshot_listed |= w->snapshot != NULL && strcmp(path, w->snapshot) == 0;
    mem_free(path);
}

/* The newest snapshot is in the list, or not, as it should be. */
static bool check_snapshot_list(struct sim_world *w, bool listed)
{
    w->snapshot_listed = false;
    err e = storage_snapshot_list(w->db, note_snapshot, w);
    if (e != NULL || w->faults) return sim_expect(w, e, "listing snapshots");
    return w->snapshot_listed == listed ||
           sim_fail(w, "snapshot %s is %s the list", w->snapshot, listed ? "missing in" : "still in");
}

static void forget_snapshot(struct sim_world *w)
{
    mem_free(w->snapshot);
    sim_model_destroy(w->snapshot_model);
    w->snapshot = NULL;
    w->snapshot_model = NULL;
}

static bool do_snapshot_delete(struct sim_world *w)
{
    err e = storage_snapshot_delete(w->db, str_of(strrchr(w->snapshot, '/') + 1));
    bool gone = e == NULL;
    bool ok = sim_expect(w, e, "deleting a snapshot") && (!gone || check_snapshot_list(w, false));
    forget_snapshot(w);
    return ok;
}

static bool do_snapshot(struct sim_world *w)
{
    char *name = NULL;
    if (w->snapshot != NULL && rng_chance(&w->rng, 0.3)) return do_snapshot_delete(w);
    err e = storage_snapshot(w->db, NULL, &name);
    if (e != NULL) return sim_expect(w, e, "snapshot");
    forget_snapshot(w);
    w->snapshot = snapshot_path(str_of(name));
    mem_free(name);
    w->snapshot_model = sim_model_clone(w->model);
    sim_model_settle(w->snapshot_model, UINT64_MAX);
    w->report->snapshots++;
    return check_snapshot_list(w, true) && check_snapshot(w);
}

static bool do_fault(struct sim_world *w)
{
    arm_fault(w);
    return true;
}

static bool do_full(struct sim_world *w)
{
    sim_env_capacity(w->sim, sim_disk_used(sim_env_disk(w->sim)) + rng_below(&w->rng, 20000));
    w->faults = true;
    return true;
}

/* Faults end: within a few ticks the database must take writes again, on its own. */
static bool do_recover(struct sim_world *w)
{
    sim_env_fail_never(w->sim);
    sim_env_capacity(w->sim, UINT64_MAX);
    if (!w->faults) return true;
    for (int i = 0; i < 8; i++) {
        if (!sim_expect(w, storage_tick(w->db), "tick")) return false;
        bool alive = sim_feed_probe(w);
        if (sim_env_crashed(w->sim)) return true;
        if (alive) {
            w->faults = false;
            return sim_expect(w, storage_tick(w->db), "tick after faults") && sim_verify_all(w, w->db, w->model, false);
        }
        sim_env_advance(w->sim, 15000);
    }
    return sim_fail(w, "faults ended, but the database takes no writes");
}

static bool do_advance(struct sim_world *w)
{
    int64_t ms = (int64_t)rng_below(&w->rng, UINT64_C(1) << rng_below(&w->rng, 32));
    sim_env_advance(w->sim, ms);
    return sim_expect(w, storage_tick(w->db), "tick");
}

static bool run_op(struct sim_world *w, enum sim_op op)
{
    switch (op) {
    case OP_APPEND:
        return sim_feed_append(w);
    case OP_WAIT:
        return do_wait(w);
    case OP_TICK:
        return sim_expect(w, storage_tick(w->db), "tick");
    case OP_FLUSH:
        return do_flush(w);
    case OP_MERGE:
        return do_merge(w);
    case OP_DELETE:
        return do_delete(w);
    case OP_SNAPSHOT:
        return do_snapshot(w);
    case OP_REOPEN:
        return do_reopen(w);
    case OP_KILL:
        return do_kill(w);
    case OP_CRASH:
        return do_crash(w);
    case OP_FAULT:
        return do_fault(w);
    case OP_FULL:
        return do_full(w);
    case OP_RECOVER:
        return do_recover(w);
    case OP_READ:
        return sim_verify_some(w);
    case OP_VERIFY:
        return sim_verify_all(w, w->db, w->model, false);
    case OP_ADVANCE:
        return do_advance(w);
    case OP_LABELS:
        return sim_verify_labels(w);
    case OP_COUNT:
        break;
    }
    return false;
}

/* ---- a life ------------------------------------------------------------------------------------------------- */

static void world_init(struct sim_world *w, const struct sim_options *o, struct sim_report *report)
{
    *w = (struct sim_world){.seed = o->seed, .report = report};
    rng_seed(&w->rng, o->seed);
    w->sim = sim_env_create(o->seed);
    w->env = sim_env_env(w->sim);
    sim_env_lie(w->sim, o->lying_disk);
    sim_env_trace(w->sim, o->trace);
    sim_plan_draw(w);
    w->model = sim_model_create(w->plan.series);
    w->last_t = mem_alloc(w->plan.series * sizeof *w->last_t);
    for (unsigned i = 0; i < w->plan.series; i++)
        w->last_t[i] = w->env->ops->now_ms(w->env);
    sim_feed_init(w);
}

static void world_deinit(struct sim_world *w)
{
    if (w->db != NULL) storage_abandon(w->db);
    sim_feed_deinit(w);
    mem_free(w->snapshot);
    sim_model_destroy(w->snapshot_model);
    sim_model_destroy(w->model);
    mem_free(w->last_t);
    w->report->failed_calls += sim_env_failures(w->sim);
    if (sim_env_open_handles(w->sim) == 0) sim_env_destroy(w->sim);
}

static bool live(struct sim_world *w, bool trace)
{
    if (!try_open(w) || w->db == NULL) return false;
    for (w->step = 1; w->step <= w->plan.steps; w->step++) {
        enum sim_op op = sim_plan_next(w);
        if (trace) fprintf(stderr, "step %u %s\n", w->step, sim_op_name(op));
        if (!run_op(w, op)) return false;
        if (sim_env_crashed(w->sim) && !recover_from_crash(w)) return false;
    }
    /* The end of every life: a last crash, then a clean end, and all must be there both times. */
    sim_env_crash_now(w->sim);
    return recover_from_crash(w) && do_reopen(w);
}

bool sim_workload_run(const struct sim_options *o, struct sim_report *report)
{
    struct sim_world w;
    world_init(&w, o, report);
    bool ok = live(&w, o->trace);
    if (!ok && !report->failed) sim_fail(&w, "stopped without a reason");
    if (w.db != NULL) {
        storage_abandon(w.db);
        w.db = NULL;
    }
    if (ok) ok = check_handles(&w);
    world_deinit(&w);
    return ok;
}
