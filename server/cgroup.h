/*
 * cgroup.h: the memory and CPU time that control groups leave to this process.
 */
#ifndef VARVE_SERVER_CGROUP_H
#define VARVE_SERVER_CGROUP_H

#include "storage/base/types.h"

struct cgroup_limits {
    uint64_t memory; /* bytes; UINT64_MAX = no limit */
    double cores;    /* CPU seconds a second; 0 = no limit */
};

/*
 * Reads /proc and /sys below `root` ("" on a real machine; tests make trees up). Limits of the process's own group and
 * of all groups around it that can be seen count; the lowest wins. What can't be read limits nothing. Any thread.
 */
void cgroup_read(const char *root, struct cgroup_limits *out);

#define CGROUP_PATH_MAX 1024

/* A group's folder, and how much of its path is the mount point, beyond which no group lies. */
struct cgroup_place {
    char dir[CGROUP_PATH_MAX];
    size_t top;
    bool unified; /* v2 */
};

/*
 * The folders that hold this process's limits, from the texts of /proc/self/cgroup and /proc/self/mountinfo. Returns
 * how many of `max` were filled; lines that make no sense are passed over. Pure; any thread.
 */
size_t cgroup_places(str groups, str mounts, struct cgroup_place *out, size_t max);

#endif
