/*
 * db_internal.h: the database's fields and the calls between the db_*.c and select*.c units.
 *
 * Locks, in the order they may be taken:
 *   flush_lock     one flush at a time: turning the head over, writing frozen heads out
 *   merge_lock     one merge at a time
 *   manifest_lock  changes of the part list: from reading the view to swapping it
 *   append_lock    the write path: registry, active head, write numbers, the log's newest segment
 *   view_lock      the pointer to the current view; held for a copy only
 * The log and the registry have their own locks, taken last.
 */
#ifndef VARVE_STORAGE_DB_INTERNAL_H
#define VARVE_STORAGE_DB_INTERNAL_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/changes.h"
#include "storage/creations.h"
#include "storage/head.h"
#include "storage/manifest.h"
#include "storage/part.h"
#include "storage/series.h"
#include "storage/storage.h"
#include "storage/wal.h"

struct view_part {
    struct part *part;
    uint64_t clean_seq; /* deletes up to this number are applied to its bytes */
};

/* What a reader sees: immutable, reference counted, holds references to all it lists. */
struct view {
    atomic_uint refs;
    struct view_part *parts; /* by partition, then write numbers */
    size_t n_parts;
    struct head **heads; /* oldest first; the last one is active */
    size_t n_heads;
    struct tombstone **tombstones;
    size_t n_tombstones;
};

/* Scratch of the write path; guarded by append_lock. */
struct append_scratch {
    uint32_t *handles, *counts;
    size_t handles_cap, counts_cap;
    struct sample_set kept; /* samples of a batch that lost some */
    struct wal_defs defs;
    struct buf record, exemplars; /* exemplars: encoded, of the record at hand */
    struct arena arena;
};

struct db_metrics {
    struct counter *samples, *batches, *new_series, *rejected_old, *rejected_new, *rejected_labels, *rejected_busy;
    struct counter *flushes, *flush_failures, *flushed_samples, *flushed_bytes;
    struct counter *merges, *merge_failures, *merged_samples, *merged_bytes;
    struct counter *retired_parts, *wal_damaged, *lost_parts;
    struct counter *exemplars, *exemplars_late, *exemplars_unknown, *exemplars_bad;
    struct histogram *flush_seconds, *merge_seconds;
};

struct db {
    struct env *env;
    struct storage_options o; /* defaults filled in; path points to `path` */
    char *path, *parts_dir, *wal_dir, *snapshots_dir;
    struct env_file *lock_file;
    struct hash_key key;
    struct fcache *cache;
    struct block_pool pool; /* memory of heads */
    struct log *log;
    struct db_metrics metrics;

    pthread_mutex_t append_lock;
    struct registry *registry; /* guarded by append_lock */
    struct creations *creations;
    struct changes *changes; /* noted whenever what readers see changes */
    struct head *head;       /* active; guarded by append_lock */
    uint64_t seq;            /* last write number given out; guarded by append_lock */
    struct wal *wal;
    struct append_scratch scratch;
    atomic_bool read_only;
    atomic_uint frozen;          /* heads waiting to be written out */
    atomic_uint merging;         /* merges under way */
    struct exemplars *exemplars; /* NULL: none are kept; added to under append_lock */

    pthread_mutex_t view_lock;
    struct view *view; /* guarded by view_lock */

    pthread_mutex_t manifest_lock;
    uint64_t manifest_generation, next_part; /* guarded by manifest_lock */
    uint32_t wal_floor;                      /* guarded by manifest_lock */
    uint64_t durable_seq;                    /* covered by parts; guarded by manifest_lock */

    pthread_mutex_t flush_lock, merge_lock;
    pthread_mutex_t wake_lock;
    pthread_cond_t flush_wake, merge_wake;
    pthread_cond_t room;           /* a head was written out; with wake_lock */
    bool flush_asked, merge_asked; /* guarded by wake_lock */
    atomic_bool stopping;
    atomic_bool merges_off; /* asked to stop: a merge that runs ends soon, none begins */
    bool threads_started;
    pthread_t flusher, merger;
    int64_t disk_checked_ns, retention_checked_ms, trimmed_ns; /* the flusher's */

    pthread_mutex_t metadata_lock;
    struct strmap *metadata;
};

/* ---- db.c */

struct view *db_view(struct db *db); /* a reference to the current view */
void view_unref(struct view *v);     /* NULL allowed */
int64_t db_now(const struct db *db);
/* Oldest time that is kept; INT64_MIN if all is. */
int64_t db_retention_start(const struct db *db);
void db_ask_flush(struct db *db);
void db_ask_merge(struct db *db);

/* Definitions that the log segment lacks of one series, into scratch.defs. Under append_lock. */
void db_define_series(struct db *db, uint32_t handle, uint32_t generation);

/* ---- db_commit.c: the only place where parts come and go */

struct db_change {
    const struct view_part *add; /* parts opened and complete; the view takes its own references */
    size_t n_add;
    struct part *const *remove;
    size_t n_remove;
    struct tombstone *tombstone;    /* one delete to add, or NULL */
    const struct head *written_out; /* a frozen head that `add` replaces, or NULL */
    uint32_t wal_floor;             /* 0 = as it is */
    uint64_t durable_seq;           /* 0 = as it is */
};
/* Writes the manifest, then swaps the view. On an error the old view holds, and the new files stay where they are. */
err db_commit(struct db *db, const struct db_change *change) __attribute__((warn_unused_result));
/* Number and path for a new part. */
uint64_t db_new_part(struct db *db, int32_t partition, char *path, size_t n);
void db_part_path(const struct db *db, const struct part_meta *m, char *path, size_t n);
/* A view with these parts (references taken), the tombstones and heads of `from`, or nothing if from is NULL. */
struct view *view_create(const struct view_part *parts, size_t n_parts, const struct view *from);
void view_swap_locked(struct db *db, struct view *v); /* under view_lock; drops the old one */

/* ---- db_flush.c */

/* Freezes the active head and begins a new one. seq (NULL allowed) gets a write number of its own, higher than
 * all that is frozen, lower than all that comes. */
void db_turn_over(struct db *db, uint64_t *seq);
/* Writes all frozen heads out. */
err db_flush_frozen(struct db *db) __attribute__((warn_unused_result));
/* Writes one head out as parts and commits them; wal_floor 0 leaves the log as it is. */
err db_write_head(struct db *db, struct head *h, uint32_t wal_floor) __attribute__((warn_unused_result));
bool db_head_is_full(struct db *db);

/* ---- db_merge.c */

err db_merge_due(struct db *db, bool *did) __attribute__((warn_unused_result)); /* one merge, if one is due */
size_t db_merges_waiting(const struct view *v);                                 /* partitions in which a merge is due */
err db_retain(struct db *db) __attribute__((warn_unused_result));               /* drops parts beyond the retention */

/* ---- db_exemplar.c */

void db_exemplars_init(struct db *db); /* metrics, and the ring if there is to be one */
/* The exemplars of a batch, after its samples: ring, log record, the counts in *result. */
void db_append_exemplars_locked(struct db *db, const struct batch *b, struct append_result *result);
/* The ring to its file, if it changed: before log segments go. Under flush_lock, or at recovery. */
err db_save_exemplars(struct db *db) __attribute__((warn_unused_result));
/* The ring from its file, after db->seq is known from the parts. A damaged file is logged. */
err db_load_exemplars(struct db *db) __attribute__((warn_unused_result));
void db_replay_exemplar(struct db *db, uint32_t handle, const struct exemplar *x, uint64_t seq, struct arena *a);
/* A log that is full of exemplars while the head is empty: they go to the file, the log begins anew. Under
 * flush_lock, with no frozen heads. */
err db_flush_exemplars(struct db *db) __attribute__((warn_unused_result));

/* ---- db_open.c */

void db_check_disk(struct db *db);

/* ---- db.c */

void db_metadata_destroy(struct db *db);

#endif
