/*
 * storage.h: the one header of the storage room that outsiders include.
 *
 * A `struct db` owns one data directory. Writers hand in batches; readers open selections. Samples
 * have int64 timestamps (ms since the epoch) and double values (kept bit for bit) or native
 * histograms (canonical blobs, column_hist.h). Every function may be called from any thread unless
 * it says otherwise.
 */
#ifndef VARVE_STORAGE_H
#define VARVE_STORAGE_H

#include "storage/base/env.h"
#include "storage/base/log.h"
#include "storage/base/metrics.h"
#include "storage/column_hist.h"
#include "storage/exemplars.h"
#include "storage/labels.h"
#include "storage/matcher.h"

struct db;

enum wal_sync { WAL_SYNC_ALWAYS, WAL_SYNC_1S, WAL_SYNC_OFF };

/* Called on the WAL thread when all batches up to and including `seq` have been settled: durable (e NULL) or failed.
 * On failure the numbers in (previous settled, seq] failed; e is borrowed. Must not block. */
typedef void (*storage_settled_fn)(void *arg, uint64_t seq, const struct err *e);

struct storage_options {
    struct env *env;      /* borrowed; NULL = env_posix() */
    const char *path;     /* data directory, made if absent */
    int64_t retention_ms; /* samples older than now - retention are refused and dropped */
    int64_t future_ms;    /* samples newer than now + future are refused */
    enum wal_sync wal_sync;
    uint64_t min_free_disk;     /* bytes; below it the database is read-only */
    size_t head_max_bytes;      /* sample memory at which the head is flushed; 0 = 96 MiB */
    uint64_t wal_max_bytes;     /* log size at which the head is flushed; 0 = 128 MiB */
    int64_t head_max_age_ms;    /* age of the head's first sample at which it is flushed; 0 = 2 h */
    size_t cache_bytes;         /* decoded frames; 0 = 32 MiB */
    uint32_t max_exemplars;     /* exemplars kept; 0 = none */
    unsigned merge_threads;     /* 0 = 1 */
    int64_t snapshot_max_ms;    /* age at which snapshots are removed; 0 = never */
    int64_t dedup_ms;           /* keep the last sample of each interval when merging; 0 = off */
    struct log *log;            /* borrowed, NULL = silent */
    struct metrics *metrics;    /* borrowed, NULL = none */
    storage_settled_fn settled; /* may be NULL */
    void *settled_arg;
};

/* Opens: lock, manifest, footers, WAL replay. ERR_LOCKED if another process has it. */
err storage_open(const struct storage_options *options, struct db **out) __attribute__((warn_unused_result));
/* Stops background work, flushes the head to parts, frees. Returns what went wrong in the final flush. */
err storage_close(struct db *db) __attribute__((warn_unused_result));
/* Ends without flushing, as a crash would (tests). What was acknowledged is in the log. */
void storage_abandon(struct db *db);

/* ---- writing ------------------------------------------------------------------------------------------------ */

/* The key that aliases are hashed with. */
const struct hash_key *storage_hash_key(const struct db *db);

/* One run of samples of one series in a batch. */
struct batch_series {
    struct hash128 alias; /* keyed hash of the label bytes as received, mixed with a tag of the protocol */
    const void *raw;      /* those bytes, for `resolve`; borrowed until storage_append returns */
    uint32_t raw_bytes;
    uint32_t n; /* samples of this run: the next n of the batch */
};

/* An exemplar of a batch: of a series that some sample made known, in this batch or before. */
struct batch_exemplar {
    struct hash128 alias; /* of the series, as in batch_series */
    const void *raw;      /* likewise */
    uint32_t raw_bytes;
    struct exemplar x; /* labels in any order, which storage sorts in place; borrowed until storage_append returns */
};

/*
 * Fills `out` with the label set of batch series i, or from n_series on of the series of exemplar i - n_series: strings
 * may point into raw or the arena; storage sorts, checks and copies. Called only for aliases not seen before. An error
 * rejects that series (its samples are counted).
 */
typedef err (*batch_resolve_fn)(void *arg, uint32_t i, struct arena *a, struct labels *out);

struct batch {
    struct batch_series *series; /* in the order received */
    uint32_t n_series;
    const int64_t *t;     /* all samples, series by series */
    const double *v;      /* value of each; ignored where hist[i].n > 0 */
    const str *hist;      /* NULL if the batch has no histograms; else canonical blob of sample i, or n = 0 */
    const int64_t *start; /* NULL, or the start timestamp of each sample (ms since the epoch; 0 = none) */
    uint32_t n_samples;
    const struct batch_exemplar *exemplars;
    uint32_t n_exemplars;
    batch_resolve_fn resolve;
    void *resolve_arg;
    bool require_name; /* a series without __name__ is rejected */
};

struct append_result {
    uint64_t seq;      /* settles when the WAL has it; 0 = nothing was written */
    uint32_t accepted; /* samples, histograms among them */
    uint32_t accepted_hists;
    uint32_t too_old, too_new; /* samples outside retention or the future window */
    uint32_t bad_labels;       /* samples of series that were rejected */
    err first;             /* why the first rejected series or sample was rejected; owned by the caller; NULL if none */
    uint32_t first_series; /* its number in the batch */
    uint32_t exemplars;    /* that are stored, those that were before among them; the others are not said but for: */
    uint32_t exemplars_late; /* those that belong before the newest of their series */
    uint32_t first_late;     /* number of the first of them in the batch; only if exemplars_late > 0 */
};

/*
 * Appends a batch: rows with good labels and times go in, the others are counted in *result. Visible to reads when
 * it returns; durable when `seq` settles (storage_wait, or options.settled). Returns an error only if nothing was
 * written: ERR_READ_ONLY, ERR_IO, ERR_BUSY (memory is full and flushes lag).
 */
err storage_append(struct db *db, const struct batch *batch, struct append_result *result)
    __attribute__((warn_unused_result));
/* Blocks until seq is settled; its outcome. seq 0 is settled. */
err storage_wait(struct db *db, uint64_t seq) __attribute__((warn_unused_result));

/* Metric metadata, as remote write and exposition formats carry it; kept in memory, bounded. */
struct metric_metadata {
    str metric, type, help, unit; /* type: "counter", "gauge", ... */
};
void storage_metadata_put(struct db *db, const struct metric_metadata *m);
typedef bool (*storage_metadata_fn)(void *arg, const struct metric_metadata *m);          /* false stops */
void storage_metadata_each(struct db *db, str metric, storage_metadata_fn fn, void *arg); /* metric.n = 0: all */

/* ---- what has changed, for those who keep answers (changes.h) ---- */

/* The version of now, to be taken before the first look at what an answer depends on. */
uint64_t storage_version(struct db *db);
/* Samples before this time (ms) are as they were at the version: INT64_MAX: all; INT64_MIN: nobody knows. */
int64_t storage_unchanged_before(struct db *db, uint64_t version);
/* Oldest time (ms) that is shown; INT64_MIN if all is. It rises with the clock, which no version tells. */
int64_t storage_retention_start(struct db *db);

/* ---- reading ------------------------------------------------------------------------------------------------ */

struct selection; /* a consistent view: series that matched, in labels order of storage */
struct reader;    /* one thread's reading state over a selection */

struct select_options {
    int64_t t_min, t_max; /* inclusive, ms */
    uint64_t max_series;  /* ERR_LIMIT beyond; 0 = no limit */
};

/* Matchers that must all be satisfied. */
struct match_set {
    struct matcher *m;
    uint32_t n;
};

/* Series that satisfy all matchers and may have samples in [t_min, t_max]. */
err storage_select(struct db *db, const struct matcher *m, size_t n, const struct select_options *o,
                   struct selection **out) __attribute__((warn_unused_result));
/* Series that satisfy one of n sets of matchers at least; each is there once. */
err storage_select_any(struct db *db, const struct match_set *sets, size_t n, const struct select_options *o,
                       struct selection **out) __attribute__((warn_unused_result));
void selection_destroy(struct selection *s); /* NULL allowed; no readers may be left */
size_t selection_count(const struct selection *s);

/* Readers of one selection may run in parallel, each in one thread. */
struct reader *reader_create(struct selection *s);
void reader_destroy(struct reader *r);

/* Canonical labels of series i; strings and array are valid as long as the arena and the selection. */
err reader_labels(struct reader *r, size_t i, struct arena *a, struct labels *out) __attribute__((warn_unused_result));
/* The same without copying: strings are valid as long as the reader. */
err reader_labels_shared(struct reader *r, size_t i, struct arena *a, struct labels *out)
    __attribute__((warn_unused_result));

/* One series' samples in [t_min, t_max], strictly increasing in time, duplicates settled (last write wins). */
struct samples {
    const int64_t *t;
    const double *v; /* value; for a histogram sample: its sum field (so that stale markers show) */
    const str *hist; /* NULL if none of them is a histogram; else blob or n = 0 */
    size_t n;
    const int64_t *start; /* NULL if none has a start timestamp; else ms since the epoch, 0 = none */
};
/* Reads series i within [t_min, t_max] (inside the selection's range). Memory is the reader's until its next call. */
err reader_samples(struct reader *r, size_t i, int64_t t_min, int64_t t_max, struct samples *out)
    __attribute__((warn_unused_result));

/*
 * Whole blocks instead of samples: the runs that make up series i in [t_min, t_max], in time order. A run with
 * `covered` true is one block wholly inside the range, not overlapped by anything else, with aggregates and without
 * start timestamps: it needs no decoding. Others must be read with reader_samples(run.t_min, run.t_max). Memory is the
 * reader's until its next call.
 */
struct sample_run {
    int64_t t_min, t_max; /* first and last sample of a covered run; the range to read otherwise */
    uint32_t n;           /* samples of a covered run */
    bool covered;
    double first, last, min, max, sum, resets; /* of a covered run: see part.h, block_aggregates */
};
err reader_runs(struct reader *r, size_t i, int64_t t_min, int64_t t_max, const struct sample_run **out, size_t *n)
    __attribute__((warn_unused_result));

/* How much was read so far: samples decoded, bytes of frames fetched. */
void reader_stats(const struct reader *r, uint64_t *samples, uint64_t *bytes);

/* What the ring of exemplars holds: see exemplars_select. */
err storage_exemplars(struct db *db, const struct exemplar_selector *s, size_t n, int64_t t_min, int64_t t_max,
                      struct arena *a, struct exemplar_series **out, size_t *n_out) __attribute__((warn_unused_result));

/* Distinct strings in byte order, over all series that match and may have samples in the range. Return false to stop.
 */
typedef bool (*storage_string_fn)(void *arg, str s);
err storage_label_names(struct db *db, const struct matcher *m, size_t n, const struct select_options *o,
                        storage_string_fn fn, void *arg) __attribute__((warn_unused_result));
err storage_label_values(struct db *db, str name, const struct matcher *m, size_t n, const struct select_options *o,
                         storage_string_fn fn, void *arg) __attribute__((warn_unused_result));

/*
 * Who has the series: the live ones, that is those the registry knows: all that were written to since the start or
 * since dead ones were last forgotten (db_flush.c).
 */
struct matcher_set {
    const struct matcher *m;
    size_t n;
};
struct cardinality_options {
    const struct matcher_set *sets; /* only series that satisfy one of them; n_sets = 0: all */
    size_t n_sets;
    str focus;          /* a label whose values are ranked by their series; n = 0: none */
    size_t top;         /* rows of a ranking */
    int64_t timeout_ms; /* ERR_TIMEOUT beyond; 0 = no limit */
};
struct cardinality_row {
    str name; /* a label's name, a metric's, or name=value */
    uint64_t n;
};
struct cardinality_ranking { /* largest first, then by name */
    struct cardinality_row *rows;
    size_t n;
};
struct cardinality {
    struct arena arena; /* owns all of it */
    uint64_t series, label_pairs;
    struct cardinality_ranking series_by_metric, series_by_pair, series_by_label, series_by_focus;
    struct cardinality_ranking values_by_label;
    struct cardinality_ranking bytes_by_label; /* length of the values, once a series */
    struct cardinality_ranking
        created_by_metric;    /* series of the last hour; with sets, of the metrics that have a series in one */
    int64_t created_since_ms; /* from when on those are counted */
};
/* Takes about a second for 10 million series, in turns: writers wait for none of them long. Deinit also after an error.
 */
err storage_cardinality(struct db *db, const struct cardinality_options *o, struct cardinality *out)
    __attribute__((warn_unused_result));
void cardinality_deinit(struct cardinality *c);

/* ---- operations --------------------------------------------------------------------------------------------- */

/* Deletes samples in [t_min, t_max] of matching series written so far; visible at once, durable on return. */
err storage_delete(struct db *db, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max)
    __attribute__((warn_unused_result));
err storage_flush(struct db *db) __attribute__((warn_unused_result)); /* head → parts, waits */
/* Merges each partition into one part (partition < 0: all), waits. ERR_BUSY once merges are stopped. */
err storage_merge(struct db *db, int32_t partition) __attribute__((warn_unused_result));
/* The process is about to end: running merges end within a series or so, with nothing changed, none begin. Any thread.
 */
void storage_stop_merges(struct db *db);
/* Hard-linked copy under <path>/snapshots/<name>; name is made when NULL. *out: heap string, the caller's. */
err storage_snapshot(struct db *db, const char *name, char **out) __attribute__((warn_unused_result));
typedef void (*storage_snapshot_fn)(void *arg, str name);
err storage_snapshot_list(struct db *db, storage_snapshot_fn fn, void *arg) __attribute__((warn_unused_result));
err storage_snapshot_delete(struct db *db, str name) __attribute__((warn_unused_result));

/* Deletes the snapshots taken before that time, by their names: those whose name someone chose stay. INT64_MAX: all,
 * those too. */
err storage_snapshots_remove(struct db *db, int64_t before_ms, size_t *removed) __attribute__((warn_unused_result));

/* Background work that is due (flush, merge, retention, low disk), done in the caller; for env.threads == false. */
err storage_tick(struct db *db) __attribute__((warn_unused_result));

struct storage_stats {
    uint64_t head_series, head_samples, head_bytes, head_chunks;
    int64_t head_t_min, head_t_max; /* INT64_MAX, INT64_MIN when empty */
    uint64_t registry_series, symbols;
    uint64_t wal_bytes, wal_segments;
    uint64_t parts, part_samples, part_bytes, damaged_parts;
    int64_t part_t_min, part_t_max;
    uint64_t partitions, part_index_bytes; /* months with parts; indexes of parts in memory */
    uint64_t registry_bytes;
    uint64_t merges_running, snapshots;
    double write_amplification; /* bytes of parts written, by flushes and merges, for one written to the log */
    uint64_t cache_bytes;
    struct exemplars_stats exemplars;
    bool read_only;
};
void storage_stats(struct db *db, struct storage_stats *out);

/* One part file, as people want to see it. */
struct storage_part {
    const char *name;        /* of the file; valid during the call */
    char partition_name[32]; /* "2026-11": the UTC month of its samples */
    int32_t partition;
    uint32_t level; /* merges that led to it: 0 = written from the head */
    uint64_t series, samples, blocks, bytes;
    uint64_t resident_bytes; /* of its indexes in memory */
    int64_t t_min, t_max;
    bool damaged; /* damage was met in it */
};
typedef void (*storage_part_fn)(void *arg, const struct storage_part *p);
/* All parts: by partition, then in write order. */
void storage_parts_each(struct db *db, storage_part_fn fn, void *arg);

struct storage_disk {
    const char *path;                        /* the data directory; as long as the database */
    uint64_t free_bytes, total_bytes;        /* of the file system it lies on */
    uint64_t wal_segments, wal_bytes;        /* all segments of this run that are still on disk */
    uint64_t merges_running, merges_waiting; /* waiting: partitions with a merge that is due */
    uint64_t merges;                         /* done since the start */
};
/* ERR_IO if the file system does not tell its free space; all else is filled in then too. */
err storage_disk(struct db *db, struct storage_disk *out) __attribute__((warn_unused_result));

/* Offline: checks a whole data directory, prints one line a fault to out, *faults counts. ERR only if it can't start.
 */
err storage_verify(struct env *env, const char *path, struct buf *out, uint64_t *faults)
    __attribute__((warn_unused_result));
/* Offline: prints what a file is (manifest, WAL segment, part, exemplars). */
err storage_inspect(struct env *env, const char *path, int detail, struct buf *out) __attribute__((warn_unused_result));

#endif
