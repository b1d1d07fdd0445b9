/*
 * Unit cgroup: limits from made-up trees of /proc and /sys: both versions, nested, namespaced, damaged.
 */
#include "tests/unit/testing.h"

#include <ftw.h>
#include <sys/stat.h>
#include <unistd.h>

#include "server/cgroup.h"
#include "storage/base/alloc.h"

struct tree {
    char root[64];
};

static int setup(void **state)
{
    struct tree *t = mem_zalloc(sizeof *t);
    snprintf(t->root, sizeof t->root, "/tmp/varve-cgroup-XXXXXX");
    if (mkdtemp(t->root) == NULL) return -1;
    *state = t;
    return 0;
}

static int remove_entry(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
    (void)st, (void)kind, (void)walk;
    return remove(path);
}

static int teardown(void **state)
{
    struct tree *t = *state;
    nftw(t->root, remove_entry, 16, FTW_DEPTH | FTW_PHYS);
    mem_free(t);
    return 0;
}

/* Writes a file of the tree, with the folders on the way. */
static void put(const struct tree *t, const char *path, const char *text)
{
    char full[512];
    snprintf(full, sizeof full, "%s%s", t->root, path);
    for (char *slash = strchr(full + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        mkdir(full, 0755);
        *slash = '/';
    }
    FILE *f = fopen(full, "w");
    assert_non_null(f);
    fputs(text, f);
    fclose(f);
}

static struct cgroup_limits read_tree(const struct tree *t)
{
    struct cgroup_limits limits;
    cgroup_read(t->root, &limits);
    return limits;
}

#define V2_MOUNT "30 23 0:26 / /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw,nsdelegate\n"

static void test_nothing_limits_nothing(void **state)
{
    struct cgroup_limits limits = read_tree(*state);
    assert_true(limits.memory == UINT64_MAX);
    assert_true(limits.cores == 0);
}

/* In a container with a namespace of its own: the group is the mounted root. */
static void test_v2_container(void **state)
{
    struct tree *t = *state;
    put(t, "/proc/self/cgroup", "0::/\n");
    put(t, "/proc/self/mountinfo", "1 0 8:1 / / rw - ext4 /dev/sda rw\n" V2_MOUNT);
    put(t, "/sys/fs/cgroup/memory.max", "134217728\n");
    put(t, "/sys/fs/cgroup/cpu.max", "150000 100000\n");
    struct cgroup_limits limits = read_tree(t);
    assert_int_equal(limits.memory, 134217728);
    assert_true(limits.cores == 1.5);

    put(t, "/sys/fs/cgroup/memory.max", "max\n");
    put(t, "/sys/fs/cgroup/cpu.max", "max 100000\n");
    limits = read_tree(t);
    assert_true(limits.memory == UINT64_MAX);
    assert_true(limits.cores == 0);

    put(t, "/sys/fs/cgroup/memory.high", "1000000\n");
    assert_int_equal(read_tree(t).memory, 1000000);
}

/* On a host, a service in a slice: the lowest limit on the way up counts, whichever level it is on. */
static void test_v2_nested(void **state)
{
    struct tree *t = *state;
    put(t, "/proc/self/cgroup", "0::/kubepods.slice/pod1/web\n");
    put(t, "/proc/self/mountinfo", V2_MOUNT);
    put(t, "/sys/fs/cgroup/kubepods.slice/pod1/web/memory.max", "max\n");
    put(t, "/sys/fs/cgroup/kubepods.slice/pod1/web/cpu.max", "200000 100000\n");
    put(t, "/sys/fs/cgroup/kubepods.slice/pod1/memory.max", "500\n");
    put(t, "/sys/fs/cgroup/kubepods.slice/pod1/cpu.max", "50000 100000\n");
    put(t, "/sys/fs/cgroup/kubepods.slice/memory.max", "700\n");
    struct cgroup_limits limits = read_tree(t);
    assert_int_equal(limits.memory, 500);
    assert_true(limits.cores == 0.5);

    put(t, "/sys/fs/cgroup/memory.max", "300\n");
    assert_int_equal(read_tree(t).memory, 300);
}

/* Docker on v1 without namespaces: the container's group is mounted, /proc names it from the host's root. */
static void test_v1_container(void **state)
{
    struct tree *t = *state;
    put(t, "/proc/self/cgroup",
        "9:name=systemd:/docker/3f\n4:memory:/docker/3f\n3:cpuset:/docker/3f\n2:cpu,cpuacct:/docker/3f\n0::/docker/"
        "3f\n");
    put(t, "/proc/self/mountinfo",
        "40 39 0:30 /docker/3f /sys/fs/cgroup/systemd ro master:5 - cgroup cgroup rw,xattr,name=systemd\n"
        "41 39 0:31 /docker/3f /sys/fs/cgroup/memory ro,nosuid master:6 shared:7 - cgroup cgroup rw,memory\n"
        "42 39 0:32 /docker/3f /sys/fs/cgroup/cpu,cpuacct ro - cgroup cgroup rw,cpu,cpuacct\n");
    put(t, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "134217728\n");
    put(t, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "250000\n");
    put(t, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_period_us", "100000\n");
    struct cgroup_limits limits = read_tree(t);
    assert_int_equal(limits.memory, 134217728);
    assert_true(limits.cores == 2.5);

    put(t, "/sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n"); /* how v1 says none */
    put(t, "/sys/fs/cgroup/cpu,cpuacct/cpu.cfs_quota_us", "-1\n");
    limits = read_tree(t);
    assert_true(limits.memory > INT64_C(1) << 60);
    assert_true(limits.cores == 0);
}

/* v1 on a host: the group's own folder and those around it. */
static void test_v1_nested(void **state)
{
    struct tree *t = *state;
    put(t, "/proc/self/cgroup", "4:memory:/a/b\n2:cpu:/\n0::/\n");
    put(t, "/proc/self/mountinfo",
        "41 39 0:31 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        "42 39 0:32 / /sys/fs/cgroup/cpu rw - cgroup cgroup rw,cpu\n"
        "43 39 0:33 / /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
    put(t, "/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", "900\n");
    put(t, "/sys/fs/cgroup/memory/a/memory.limit_in_bytes", "800\n");
    put(t, "/sys/fs/cgroup/memory/c/memory.limit_in_bytes", "1\n");
    put(t, "/sys/fs/cgroup/unified/cpu.max", "25000 100000\n"); /* the hybrid layout */
    struct cgroup_limits limits = read_tree(t);
    assert_int_equal(limits.memory, 800);
    assert_true(limits.cores == 0.25);
}

/* The group can't be seen from here: what is mounted is all there is. */
static void test_group_elsewhere(void **state)
{
    static const char *const groups[] = {"0::/..\n", "0::/other/place\n", "0::/docker/3f2\n",
                                         "0::/docker/3f/../../x\n"};
    struct tree *t = *state;
    put(t, "/proc/self/mountinfo", "30 23 0:26 /docker/3f /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    put(t, "/sys/fs/cgroup/memory.max", "77\n");
    put(t, "/sys/fs/memory.max", "1\n"); /* above the mount point: no group */
    for (size_t i = 0; i < ARRAY_LEN(groups); i++) {
        put(t, "/proc/self/cgroup", groups[i]);
        assert_int_equal(read_tree(t).memory, 77);
    }
    put(t, "/sys/fs/cgroup/in/memory.max", "66\n");
    put(t, "/proc/self/cgroup", "0::/docker/3f/in\n");
    assert_int_equal(read_tree(t).memory, 66);
}

static void test_escapes(void **state)
{
    struct tree *t = *state;
    put(t, "/proc/self/cgroup", "0::/\n");
    put(t, "/proc/self/mountinfo", "30 23 0:26 / /sys/a\\040b rw - cgroup2 cgroup2 rw\n");
    put(t, "/sys/a b/memory.max", "55\n");
    assert_int_equal(read_tree(t).memory, 55);
}

static void test_nonsense(void **state)
{
    static const char *const texts[] = {
        "", "\n\n", "0", "0:", "0::", "0::x\n", "::/\n", "4:memory", ":::/::\n", "0::/\\9\\\n"};
    static const char *const mounts[] = {"",
                                         "-\n",
                                         "1 2 3 4 5 - cgroup2\n",
                                         "30 23 0:26 / /sys/fs/cgroup rw",
                                         "30 23 0:26 / / rw - cgroup2 c rw\n",
                                         "30 23 0:26 / /\\000x rw - cgroup2 c rw\n"};
    struct tree *t = *state;
    for (size_t i = 0; i < ARRAY_LEN(texts); i++)
        for (size_t k = 0; k < ARRAY_LEN(mounts); k++) {
            put(t, "/proc/self/cgroup", texts[i]);
            put(t, "/proc/self/mountinfo", mounts[k]);
            assert_true(read_tree(t).memory == UINT64_MAX);
        }
    put(t, "/proc/self/cgroup", "0::/\n");
    put(t, "/proc/self/mountinfo", V2_MOUNT);
    static const char *const values[] = {"", "x", "-5", "0", "max"};
    for (size_t i = 0; i < ARRAY_LEN(values); i++) {
        put(t, "/sys/fs/cgroup/memory.max", values[i]);
        put(t, "/sys/fs/cgroup/cpu.max", values[i]);
        struct cgroup_limits limits = read_tree(t);
        assert_true(limits.memory == UINT64_MAX);
        assert_true(limits.cores == 0);
    }
}

/* A group deeper than any path: the limits around it still count. */
static void test_too_deep(void **state)
{
    struct tree *t = *state;
    char group[4096] = "0::";
    for (int i = 0; i < 400; i++)
        strcat(group, "/abcdef");
    put(t, "/proc/self/cgroup", group);
    put(t, "/proc/self/mountinfo", V2_MOUNT);
    put(t, "/sys/fs/cgroup/memory.max", "44\n");
    assert_int_equal(read_tree(t).memory, 44);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_nothing_limits_nothing, setup, teardown),
        cmocka_unit_test_setup_teardown(test_v2_container, setup, teardown),
        cmocka_unit_test_setup_teardown(test_v2_nested, setup, teardown),
        cmocka_unit_test_setup_teardown(test_v1_container, setup, teardown),
        cmocka_unit_test_setup_teardown(test_v1_nested, setup, teardown),
        cmocka_unit_test_setup_teardown(test_group_elsewhere, setup, teardown),
        cmocka_unit_test_setup_teardown(test_escapes, setup, teardown),
        cmocka_unit_test_setup_teardown(test_nonsense, setup, teardown),
        cmocka_unit_test_setup_teardown(test_too_deep, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
