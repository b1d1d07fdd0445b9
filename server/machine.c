/*
 * machine.c: memory, cores, and /proc/self.
 *
 * A container sees the whole machine's RAM and cores in the ordinary places; its limits are those of its
 * control groups (cgroup.c). Any thread.
 */
#include "server/machine.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "server/cgroup.h"

/* First line of a small file; false if it can't be read. */
static bool read_line(const char *path, char *out, size_t n)
{
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    bool ok = fgets(out, (int)n, f) != NULL;
    fclose(f);
    return ok;
}

uint64_t machine_memory(void)
{
    struct cgroup_limits limits;
    uint64_t ram = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    cgroup_read("", &limits);
    return limits.memory < ram ? limits.memory : ram;
}

unsigned machine_cores(void)
{
    struct cgroup_limits limits;
    cpu_set_t set; /* follows cpusets too */
    CPU_ZERO(&set);
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    cgroup_read("", &limits);
    if (limits.cores > 0 && limits.cores < n) n = (int)(limits.cores + 0.999);
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
