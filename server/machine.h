/*
 * machine.h: what this process may use of the machine, as its container or the kernel says, and what it uses.
 */
#ifndef VARVE_SERVER_MACHINE_H
#define VARVE_SERVER_MACHINE_H

#include "storage/base/types.h"

uint64_t machine_memory(void);  /* bytes: the cgroup's limit or the RAM */
unsigned machine_cores(void);   /* by affinity and the cgroup's quota, at least 1 */
void machine_raise_files(void); /* soft limit of open files up to the hard one */

struct machine_usage {
    double cpu_s, start_s; /* user + system time; start, seconds since the epoch */
    uint64_t resident, virtual_bytes;
    uint64_t open_files, max_files, threads;
};
void machine_usage(struct machine_usage *u);

#endif
