/*
 * cgroup.c: control groups, both versions, nested and namespaced.
 *
 * /proc/self/cgroup says in which group the process is, seen from the root of its hierarchy; mountinfo
 * says which part of a hierarchy is mounted where:
 *
 *   cgroup     0::/kubepods/pod1/web                     v2: no controllers named
 *              4:memory:/docker/3f                       v1: one hierarchy for some controllers
 *   mountinfo  36 25 0:29 /docker/3f /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory
 *              id up  dev root       mount point            opts - type  source super-options
 *
 * The group's folder is the mount point and the group's path without the mounted root. A path outside
 * of it ("/..", another container's) means the mount point itself: all that can be seen. A limit set
 * on any folder between there and the mount point holds for the process, so the lowest counts.
 * Text from the kernel, but under other containers' control: nothing in it is believed for a length.
 */
#include "server/cgroup.h"

#include <stdio.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/buf.h"

#define TEXT_MAX (1u << 20) /* of /proc files: hosts with thousands of mounts have some 100 KiB */
#define PLACES_MAX 8

/* ---- words of lines ------------------------------------------------------------------------------------------- */

/* Takes what stands before the next `by` (or all) off the front of *s. */
static str take(str *s, char by)
{
    const char *at = memchr(s->p, by, s->n);
    str word = {s->p, at == NULL ? s->n : (size_t)(at - s->p)};
    size_t used = word.n + (at != NULL);
    *s = (str){s->p + used, s->n - used};
    return word;
}

/* True if the comma-separated list has the word. */
static bool list_has(str list, const char *word)
{
    while (list.n > 0)
        if (str_eq(take(&list, ','), str_of(word))) return true;
    return false;
}

/* Which of the two controllers that matter a list names. */
enum { HAS_MEMORY = 1, HAS_CPU = 2 };

static unsigned controllers_of(str list)
{
    return (list_has(list, "memory") ? HAS_MEMORY : 0) | (list_has(list, "cpu") ? HAS_CPU : 0);
}

/* ---- mountinfo ------------------------------------------------------------------------------------------------ */

struct mount {
    str root, point; /* as written: blanks are \040 */
    bool unified;
    unsigned controllers; /* v1 */
};

/* False if the line is no mount of a control group hierarchy. */
static bool parse_mount(str line, struct mount *m)
{
    for (int i = 0; i < 3; i++)
        take(&line, ' ');
    m->root = take(&line, ' ');
    m->point = take(&line, ' ');
    while (line.n > 0 && !str_eq(take(&line, ' '), STR("-"))) /* options, and optional fields */
        ;
    str type = take(&line, ' ');
    take(&line, ' ');
    m->unified = str_eq(type, STR("cgroup2"));
    m->controllers = controllers_of(line);
    if (m->root.n == 0 || m->root.p[0] != '/' || m->point.n == 0 || m->point.p[0] != '/') return false;
    return m->unified || (str_eq(type, STR("cgroup")) && m->controllers != 0);
}

/* Appends a path whose blanks, tabs, line ends and backslashes are octal escapes. False if it is too long. */
static bool put_path(struct cgroup_place *place, size_t *n, str path)
{
    for (size_t i = 0; i < path.n; i++) {
        char c = path.p[i];
        if (c == '\\' && i + 3 < path.n) {
            c = (char)((path.p[i + 1] - '0') * 64 + (path.p[i + 2] - '0') * 8 + (path.p[i + 3] - '0'));
            i += 3;
        }
        if (c == '\0' || *n + 1 >= sizeof place->dir) return false;
        place->dir[(*n)++] = c;
    }
    place->dir[*n] = '\0';
    return true;
}

/* ---- groups --------------------------------------------------------------------------------------------------- */

static bool goes_up(str path)
{
    while (path.n > 0)
        if (str_eq(take(&path, '/'), STR(".."))) return true;
    return false;
}

/* The group's path below the mounted root; empty if it lies elsewhere. */
static str below(str group, str root)
{
    str nothing = {group.p, 0};
    if (goes_up(group)) return nothing;
    if (str_eq(root, STR("/"))) return group;
    if (!str_starts_with(group, root)) return nothing;
    str rest = {group.p + root.n, group.n - root.n};
    return rest.n == 0 || rest.p[0] == '/' ? rest : nothing;
}

static bool place_group(str group, const struct mount *m, struct cgroup_place *place)
{
    size_t n = 0;
    if (!put_path(place, &n, m->point)) return false;
    place->top = n;
    place->unified = m->unified;
    str rest = below(group, m->root);
    if (n + rest.n >= sizeof place->dir) return true; /* too deep to name: what is around it counts still */
    memcpy(place->dir + n, rest.p, rest.n);
    n += rest.n;
    while (n > place->top && place->dir[n - 1] == '/')
        n--;
    place->dir[n] = '\0';
    return memchr(place->dir, '\0', n) == NULL;
}

/* The mounts that show the hierarchy of one line of /proc/self/cgroup. */
static size_t places_of(str line, str mounts, struct cgroup_place *out, size_t max)
{
    size_t n = 0;
    take(&line, ':');
    str controllers = take(&line, ':');
    unsigned wanted = controllers_of(controllers);
    bool unified = controllers.n == 0;
    if (line.n == 0 || line.p[0] != '/') return 0;
    while (mounts.n > 0 && n < max) {
        struct mount m;
        if (!parse_mount(take(&mounts, '\n'), &m) || m.unified != unified) continue;
        if (!unified && (m.controllers & wanted) == 0) continue;
        n += place_group(line, &m, &out[n]);
    }
    return n;
}

size_t cgroup_places(str groups, str mounts, struct cgroup_place *out, size_t max)
{
    size_t n = 0;
    while (groups.n > 0 && n < max)
        n += places_of(take(&groups, '\n'), mounts, out + n, max - n);
    return n;
}

/* ---- limits --------------------------------------------------------------------------------------------------- */

/* The first line of a small file; false if it can't be read. */
static bool read_line(const char *root, const char *dir, const char *name, char *out, size_t n)
{
    char path[2 * CGROUP_PATH_MAX];
    int length = snprintf(path, sizeof path, "%s%s/%s", root, dir, name);
    if (length < 0 || (size_t)length >= sizeof path) return false;
    FILE *f = fopen(path, "re");
    if (f == NULL) return false;
    bool ok = fgets(out, (int)n, f) != NULL;
    fclose(f);
    return ok;
}

/* "max", nonsense and 0 limit nothing. */
static void lower_memory(const char *root, const char *dir, const char *name, struct cgroup_limits *out)
{
    char line[64];
    if (!read_line(root, dir, name, line, sizeof line)) return;
    uint64_t bytes = strtoull(line, NULL, 10);
    if (bytes > 0 && line[0] != '-' && bytes < out->memory) out->memory = bytes;
}

static void lower_cores(double quota, double period, struct cgroup_limits *out)
{
    if (!(quota > 0) || !(period > 0)) return;
    double cores = quota / period;
    if (out->cores == 0 || cores < out->cores) out->cores = cores;
}

static void read_unified(const char *root, const char *dir, struct cgroup_limits *out)
{
    char line[64];
    lower_memory(root, dir, "memory.max", out);
    lower_memory(root, dir, "memory.high", out); /* beyond it the kernel throttles: no place to live either */
    if (!read_line(root, dir, "cpu.max", line, sizeof line)) return;
    char *end;
    double quota = strtod(line, &end); /* "max" is 0 */
    lower_cores(quota, strtod(end, NULL), out);
}

static void read_v1(const char *root, const char *dir, struct cgroup_limits *out)
{
    char quota[64], period[64];
    lower_memory(root, dir, "memory.limit_in_bytes", out);
    if (read_line(root, dir, "cpu.cfs_quota_us", quota, sizeof quota) &&
        read_line(root, dir, "cpu.cfs_period_us", period, sizeof period))
        lower_cores(strtod(quota, NULL), strtod(period, NULL), out); /* quota -1: none */
}

/* From the group's own folder up to the mount point. */
static void read_place(const char *root, struct cgroup_place *place, struct cgroup_limits *out)
{
    for (;;) {
        if (place->unified)
            read_unified(root, place->dir, out);
        else
            read_v1(root, place->dir, out);
        char *slash = strrchr(place->dir + place->top, '/');
        if (slash == NULL) return;
        *slash = '\0';
    }
}

/* A file of /proc, whole or its first TEXT_MAX bytes; empty if it can't be read. */
static void read_text(const char *root, const char *name, struct buf *out)
{
    char path[CGROUP_PATH_MAX], piece[4096];
    snprintf(path, sizeof path, "%s/proc/self/%s", root, name);
    FILE *f = fopen(path, "re");
    if (f == NULL) return;
    for (size_t n; out->n < TEXT_MAX && (n = fread(piece, 1, sizeof piece, f)) > 0;)
        buf_put(out, piece, n);
    fclose(f);
}

void cgroup_read(const char *root, struct cgroup_limits *out)
{
    struct cgroup_place places[PLACES_MAX];
    struct buf groups = {0}, mounts = {0};
    *out = (struct cgroup_limits){.memory = UINT64_MAX};
    read_text(root, "cgroup", &groups);
    read_text(root, "mountinfo", &mounts);
    size_t n = cgroup_places(buf_as_str(&groups), buf_as_str(&mounts), places, PLACES_MAX);
    for (size_t i = 0; i < n; i++)
        read_place(root, &places[i], out);
    buf_deinit(&groups);
    buf_deinit(&mounts);
}
