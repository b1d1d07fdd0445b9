/*
 * sim_env.h: the simulated machine: env.h over sim_disk, with faults on demand.
 *
 * One seed decides everything: clock, randomness, fates. `threads` is false. Faults:
 *   - a crash at the N-th changing call from now: that call happens, halfway or not at all, and every
 *     call after it fails with "simulated crash" until sim_env_restart, which deals the fates and
 *     leaves what survived. Handles from before the crash can only be closed.
 *   - failing calls: EIO or ENOSPC at the N-th call of chosen kinds, once or until further notice;
 *   - a disk of limited size: appends beyond it write what fits and fail with ENOSPC;
 *   - flipped bits in a named file.
 */
#ifndef VARVE_TESTS_SIM_ENV_H
#define VARVE_TESTS_SIM_ENV_H

#include "storage/base/env.h"
#include "tests/sim/sim_disk.h"

/* Kinds of calls, as a mask. */
enum sim_call {
    SIM_OPEN = 1 << 0,   /* file_open for reading or appending */
    SIM_CREATE = 1 << 1, /* file_open ENV_CREATE, lock */
    SIM_READ = 1 << 2,
    SIM_APPEND = 1 << 3,
    SIM_SYNC = 1 << 4,
    SIM_TRUNCATE = 1 << 5,
    SIM_RENAME = 1 << 6,
    SIM_LINK = 1 << 7,
    SIM_UNLINK = 1 << 8,
    SIM_MKDIR = 1 << 9,
    SIM_RMDIR = 1 << 10,
    SIM_DIR_SYNC = 1 << 11,
    SIM_LIST = 1 << 12, /* dir_list, file_size, free_space */
};
#define SIM_CHANGES                                                                                                    \
    (SIM_CREATE | SIM_APPEND | SIM_SYNC | SIM_TRUNCATE | SIM_RENAME | SIM_LINK | SIM_UNLINK | SIM_MKDIR | SIM_RMDIR |  \
     SIM_DIR_SYNC)
#define SIM_CALLS (SIM_CHANGES | SIM_OPEN | SIM_READ | SIM_LIST)
#define SIM_FOREVER UINT64_MAX

struct sim_env;

struct sim_env *sim_env_create(uint64_t seed);
void sim_env_destroy(struct sim_env *s); /* all handles must be closed */
struct env *sim_env_env(struct sim_env *s);
struct sim_disk *sim_env_disk(struct sim_env *s);

/* ---- crashes */
void sim_env_crash_after(struct sim_env *s, uint64_t changes); /* 1 = the next changing call */
void sim_env_crash_now(struct sim_env *s);
void sim_env_crash_never(struct sim_env *s); /* calls off a crash that has not come yet */
bool sim_env_crashed(const struct sim_env *s);
/* Power back on. Also ends a process that was merely abandoned: its lock goes, crash or not. */
void sim_env_restart(struct sim_env *s, enum sim_crash_style style);
/* True for the error that calls on a crashed machine give. */
bool sim_env_is_crash(const struct err *e);
/* The process died, the machine did not: locks go, handles turn invalid, pending writes stay pending. */
void sim_env_kill_process(struct sim_env *s);
unsigned sim_env_open_handles(const struct sim_env *s);

/* ---- failing calls: the nth call (1 = next) of `calls` fails with errnum, and `times` - 1 more of them after it */
void sim_env_fail(struct sim_env *s, unsigned calls, uint64_t nth, uint64_t times, int errnum);
void sim_env_fail_never(struct sim_env *s);
uint64_t sim_env_failures(const struct sim_env *s);       /* calls failed on purpose so far, full disk included */
void sim_env_capacity(struct sim_env *s, uint64_t bytes); /* UINT64_MAX = no limit */

/* A disk that reports success of syncs and does nothing: to see that a test notices. */
void sim_env_lie(struct sim_env *s, bool on);

/* ---- clock and traces */
void sim_env_advance(struct sim_env *s, int64_t ms);
uint64_t sim_env_changes(const struct sim_env *s); /* changing calls so far */
/* Prints every changing call to stderr (VARVE_SIM_TRACE). */
void sim_env_trace(struct sim_env *s, bool on);

/* ---- damage: ENOENT or EINVAL (offset beyond the end) or 0 */
int sim_env_flip(struct sim_env *s, const char *path, uint64_t offset, uint8_t mask);

#endif
