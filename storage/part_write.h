/*
 * part_write.h: writes one part file, front to back.
 *
 * The caller declares all strings first (sorted, unique; their rank is their symbol number), then
 * feeds series in storage order (labels_cmp_storage, strictly increasing), for each its samples in
 * time order; the writer cuts blocks, interns timestamp columns, packs frames, gathers postings, and
 * seals all with a footer. The file is complete and synced when part_writer_finish returns; naming it
 * in the manifest is the caller's. One thread.
 */
#ifndef VARVE_STORAGE_PART_WRITE_H
#define VARVE_STORAGE_PART_WRITE_H

#include "storage/base/env.h"
#include "storage/labels.h"

struct part_writer;

/* What a part knows of itself; kept in its footer and in the manifest. */
struct part_meta {
    uint64_t id;               /* number of the part, also in its file name; unique for ever in a database */
    int32_t partition;         /* UTC month: (year - 1970) * 12 + month0 */
    uint32_t level;            /* merges that led to it: 0 = flushed from the head */
    uint64_t seq_min, seq_max; /* write sequence numbers it covers */
    int64_t t_min, t_max;      /* of its samples */
    uint64_t samples, series, blocks;
    uint64_t bytes; /* size of the file */
};

/* symbols: sorted, unique, borrowed until part_writer_destroy. meta: id, partition, level, seq_* are taken from here.
 */
err part_writer_create(struct env *env, const char *path, const struct part_meta *meta, const str *symbols,
                       uint32_t n_symbols, struct part_writer **out) __attribute__((warn_unused_result));

/* Begins the next series: n_pairs (name, value) symbol numbers, 2 * n_pairs entries, sorted by name. A series that
 * gets no samples leaves no trace. */
err part_writer_series(struct part_writer *w, const uint32_t *pairs, uint32_t n_pairs)
    __attribute__((warn_unused_result));
/* Samples of the current series: t strictly increasing, also over several calls; any n. */
err part_writer_floats(struct part_writer *w, const int64_t *t, const double *v, size_t n)
    __attribute__((warn_unused_result));
/* The same for histogram samples (canonical blobs); they may interleave in time with the floats. */
err part_writer_hists(struct part_writer *w, const int64_t *t, const str *blobs, size_t n)
    __attribute__((warn_unused_result));
/* The same with start timestamps: 0 = none; start NULL: none has one. */
err part_writer_floats_started(struct part_writer *w, const int64_t *t, const double *v, const int64_t *start, size_t n)
    __attribute__((warn_unused_result));
err part_writer_hists_started(struct part_writer *w, const int64_t *t, const str *blobs, const int64_t *start, size_t n)
    __attribute__((warn_unused_result));
/* For merges: a block of the current series as another part has it: its times, and its columns as
 * part_read_encoded gives them. It becomes a block of its own, whatever its size; order as above. */
struct part_block;
err part_writer_copy_block(struct part_writer *w, const struct part_block *b, const int64_t *t, str columns)
    __attribute__((warn_unused_result));

uint64_t part_writer_samples(const struct part_writer *w);

/* Writes the rest, syncs the file, fills *meta. A part without samples is an error of the caller (check). */
err part_writer_finish(struct part_writer *w, struct part_meta *meta) __attribute__((warn_unused_result));
/* Frees; unlinks the file unless finish succeeded. NULL allowed. */
void part_writer_destroy(struct part_writer *w);

#endif
