/*
 * wal.h: the write-ahead log: segments of records, one sync for all that wait.
 *
 * The appender (under the database's append lock) puts records; the log's thread writes what has
 * gathered, syncs, and settles the write numbers in order. A segment whose write or sync failed is
 * never written again: the records on their way fail, and the next record begins a new segment, which
 * must define its series anew (wal_generation tells). Without threads (env.threads false), wal_drain
 * does the thread's work in the caller.
 *
 * A segment is deleted by wal_retire once all it holds is in parts.
 */
#ifndef VARVE_STORAGE_WAL_H
#define VARVE_STORAGE_WAL_H

#include "storage/storage.h"
#include "storage/wal_record.h"

struct wal;

struct wal_options {
    struct env *env;
    const char *dir; /* exists */
    enum wal_sync sync;
    uint32_t generation; /* of the first segment; higher than any on disk */
    uint64_t seq;        /* settled so far */
    struct log *log;
    struct metrics *metrics;
    storage_settled_fn settled;
    void *settled_arg;
};

err wal_open(const struct wal_options *o, struct wal **out) __attribute__((warn_unused_result));
/* Writes and syncs what is queued, closes the segments (they stay on disk). */
void wal_close(struct wal *w);
/* Ends at once; what is queued is lost, as in a crash. */
void wal_abandon(struct wal *w);

/* ---- the appender */

/* The generation that the next record goes to; begins a new segment if the current one failed. */
uint32_t wal_generation(struct wal *w);
/* Queues one record (made by wal_record_begin/end with this seq). Takes the buffer's content, leaves it empty. */
void wal_put(struct wal *w, uint64_t seq, struct buf *record);
/* Begins a new segment; returns its generation. */
uint32_t wal_rotate(struct wal *w);
/* Does the thread's work here when there is none. Not under the append lock: it settles. */
void wal_drain(struct wal *w);

/* ---- anyone */

/* Blocks until seq is settled; ERR_IO, ERR_NO_SPACE ... if it failed. */
err wal_wait(struct wal *w, uint64_t seq) __attribute__((warn_unused_result));
/* Deletes the segments below the generation, after the log's thread is done with them. */
err wal_retire(struct wal *w, uint32_t generation) __attribute__((warn_unused_result));
uint64_t wal_bytes(const struct wal *w);   /* of the current segment */
uint64_t wal_written(const struct wal *w); /* bytes, since it was opened */
/* All segments that are not retired yet. */
void wal_totals(struct wal *w, uint64_t *segments, uint64_t *bytes);
void wal_path(char *out, size_t n, const char *dir, uint32_t generation);

/* ---- reading back */

/* Generations on disk, increasing; *out is heap memory. */
err wal_list(struct env *env, const char *dir, uint32_t **out, size_t *n) __attribute__((warn_unused_result));

struct wal_scan {
    uint64_t records, bytes;
    uint64_t damaged;   /* records or stretches lost to damage that more good records follow */
    uint64_t torn_tail; /* bytes at the end that are no whole record: a crash's usual trace */
    uint64_t damage_at; /* offset of the first damage */
};
/* Called for each good record in order. An error stops the scan. */
typedef err (*wal_record_fn)(void *arg, const struct wal_record *r, const uint8_t *payload);
/* Reads one segment with bounded memory. Damage is counted, not an error. */
err wal_read(struct env *env, const char *path, wal_record_fn fn, void *arg, struct wal_scan *scan)
    __attribute__((warn_unused_result));

#endif
