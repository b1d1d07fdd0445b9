/*
 * machine.c: cgroup limits (v2, then v1), affinity, and /proc/self.
 *
 * A container sees the whole machine's RAM and cores in the ordinary places; its limits stand in the
 * cgroup files, which are read as seen from inside (the process's own cgroup is the root there).
 * Missing files mean no limit. Any thread.
 */
#include "server/machine.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* First line of a small file; false if it can't be read. */
static bool read_line(const char *path, char *out, size_t n)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    bool ok = fgets(out, (int)n, f) != NULL;
    fclose(f);
    return ok;
}

static uint64_t cgroup_memory(void)
{
    static const char *const paths[] = {"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"};
    char line[64];
    for (size_t i = 0; i < ARRAY_LEN(paths); i++) {
        if (!read_line(paths[i], line, sizeof line)) continue;
        uint64_t bytes = strtoull(line, NULL, 10); /* "max" is 0 */
        if (bytes > 0) return bytes;
    }
    return UINT64_MAX;
}

uint64_t machine_memory(void)
{
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    uint64_t limit = cgroup_memory();
    return limit < ram ? limit : ram;
}

/* Cores that the quota amounts to; 0 if there is none. */
static double cgroup_cores(void)
{
    char line[64];
    double quota = 0, period = 0;
    if (read_line("/sys/fs/cgroup/cpu.max", line, sizeof line)) {
        char *end;
        quota = strtod(line, &end); /* "max" is 0 */
        period = strtod(end, NULL);
    } else if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_quota_us", line, sizeof line)) {
        quota = strtod(line, NULL);
        if (read_line("/sys/fs/cgroup/cpu/cpu.cfs_period_us", line, sizeof line)) period = strtod(line, NULL);
    }
    return quota > 0 && period > 0 ? quota / period : 0;
}

unsigned machine_cores(void)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    double quota = cgroup_cores();
    if (quota > 0 && quota < n) n = (int)(quota + 0.999);
    return n > 0 ? (unsigned)n : 1;
}

void machine_raise_files(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
    limit.rlim_cur = limit.rlim_max;
    setrlimit(RLIMIT_NOFILE, &limit);
}

static uint64_t count_files(void)
{
    uint64_t n = 0;
    DIR *d = opendir("/proc/self/fd");
    if (d == NULL) return 0;
    for (struct dirent *e = readdir(d); e != NULL; e = readdir(d))
        n += e->d_name[0] != '.';
    closedir(d);
    return n > 0 ? n - 1 : 0; /* without the one of this listing */
}

static double boot_time(void)
{
    char line[256];
    double at = 0;
    FILE *f = fopen("/proc/stat", "re");
    if (f == NULL) return 0;
    while (fgets(line, sizeof line, f) != NULL)
        if (strncmp(line, "btime ", 6) == 0) at = strtod(line + 6, NULL);
    fclose(f);
    return at;
}

/* Fields of /proc/self/stat are numbered from 1 in proc(5); those behind the name begin with 3. */
enum { STAT_UTIME = 14, STAT_STIME = 15, STAT_THREADS = 20, STAT_START = 22, STAT_VSIZE = 23, STAT_RSS = 24 };

void machine_usage(struct machine_usage *u)
{
    *u = (struct machine_usage){.open_files = count_files()};
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0) u->max_files = limit.rlim_cur;
    char line[1024];
    if (!read_line("/proc/self/stat", line, sizeof line)) return;
    const char *at = strrchr(line, ')'); /* the name may hold anything */
    if (at == NULL) return;
    at += 3; /* ") " and the state letter */
    double v[STAT_RSS + 1] = {0};
    for (int i = 4; i <= STAT_RSS; i++) {
        char *end;
        v[i] = strtod(at, &end);
        at = end;
    }
    double tick = (double)sysconf(_SC_CLK_TCK);
    u->cpu_s = (v[STAT_UTIME] + v[STAT_STIME]) / tick;
    u->start_s = boot_time() + v[STAT_START] / tick;
    u->threads = (uint64_t)v[STAT_THREADS];
    u->virtual_bytes = (uint64_t)v[STAT_VSIZE];
    u->resident = (uint64_t)v[STAT_RSS] * (uint64_t)sysconf(_SC_PAGESIZE);
}
