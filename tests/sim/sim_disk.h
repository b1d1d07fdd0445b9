/*
 * sim_disk.h: an in-memory disk that forgets what was not synced.
 *
 * Every file and directory exists twice: as the running system sees it (the page cache's view) and
 * as the platter has it (durable). Writes, truncations and changes of names go to the view and to a
 * list of pending changes; sync moves them to the platter. A crash decides the fate of each pending
 * change and makes the platter the view.
 *
 * Functions return 0 or an errno value. Single-threaded; owned by the simulated env.
 */
#ifndef VARVE_TESTS_SIM_DISK_H
#define VARVE_TESTS_SIM_DISK_H

#include "storage/base/rng.h"
#include "storage/base/types.h"

#define SIM_SECTOR 512 /* what a disk writes whole or not at all, if it keeps its promises */

struct sim_disk;
struct sim_node; /* a file or a directory; counted references */

/* What a crash does to pending changes. */
enum sim_crash_style {
    SIM_CRASH_MIXED,  /* each one on its own: kept, lost, cut short, or some of its sectors garbage */
    SIM_CRASH_LOSE,   /* all are lost */
    SIM_CRASH_KEEP,   /* all are kept: the process died, the kernel wrote on */
    SIM_CRASH_PREFIX, /* kept in order up to some point, the rest is lost */
};
#define SIM_CRASH_STYLES 4

/* rng is borrowed and decides all fates. */
struct sim_disk *sim_disk_create(struct rng *rng);
void sim_disk_destroy(struct sim_disk *d);

/* Paths are taken from the root, absolute or not; empty parts and "." are skipped. NULL if there is none. Borrowed. */
struct sim_node *sim_disk_find(struct sim_disk *d, const char *path);
/* A new empty file, or the existing one truncated. Borrowed. */
int sim_disk_create_file(struct sim_disk *d, const char *path, struct sim_node **out);
int sim_disk_rename(struct sim_disk *d, const char *from, const char *to);
int sim_disk_link(struct sim_disk *d, const char *from, const char *to);
int sim_disk_unlink(struct sim_disk *d, const char *path); /* a missing file is fine */
int sim_disk_mkdir(struct sim_disk *d, const char *path);  /* with parents; durable at once, as env_posix's is */
int sim_disk_rmdir(struct sim_disk *d, const char *path);
int sim_disk_sync_dir(struct sim_disk *d, const char *path);

typedef void (*sim_name_fn)(void *arg, str name, bool is_dir);
int sim_disk_list(struct sim_disk *d, const char *path, sim_name_fn fn, void *arg);

void sim_disk_crash(struct sim_disk *d, enum sim_crash_style style);
/* Bytes of all files that can still be reached, by name or by an open handle. */
uint64_t sim_disk_used(const struct sim_disk *d);

/* Files. The view's bytes: valid until the next change of the file. */
struct sim_node *sim_node_ref(struct sim_node *n);
void sim_node_unref(struct sim_disk *d, struct sim_node *n);
bool sim_node_is_dir(const struct sim_node *n);
str sim_node_view(const struct sim_node *n);
str sim_node_durable(const struct sim_node *n);
void sim_node_write(struct sim_node *n, uint64_t offset, const void *p, size_t bytes);
void sim_node_truncate(struct sim_node *n, uint64_t size);
void sim_node_sync(struct sim_node *n);
/* A sync that fails, as Linux's does: the pending writes meet their fates now, no later sync will write them, and
 * the view may go on showing them or show what is on the platter. */
void sim_node_sync_failed(struct sim_disk *d, struct sim_node *n);
/* Changes bits behind everyone's back, in the view and on the platter. */
void sim_node_flip(struct sim_node *n, uint64_t offset, uint8_t mask);

#endif
