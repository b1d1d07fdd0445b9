/*
 * wal_record.h: the records of the write-ahead log as bytes and back. No I/O.
 *
 *   segment:  header (24)  record  record  ...
 *   header    0  "VRVWAL01"     8  u32 format version   12 u32 generation   16 u64 XXH3-64 of bytes 0..15
 *   record    0  u32 magic "VREC"   4  u32 payload bytes   8  u64 write number
 *            16  u64 XXH3-64 of the payload   24 u32 type   28 u32 low half of XXH3-64 of bytes 0..27
 *            32  payload
 *
 * The header of a record is checked apart from its payload: a damaged payload costs that record only, a
 * damaged header costs what lies up to the next good one.
 *
 * Payload of a batch (integers are LEB128, signed ones zigzag):
 *   n symbols   { number, length, bytes } *        strings that this segment has not named yet
 *   n series    { handle, n pairs, { symbol } * }  series that it has not defined yet
 *   n runs      { handle - handle before } *
 *   1 byte      1: every run has one sample; 0: { samples of the run } * follows
 *   n samples   { t - t before } *
 *   values      n samples * 8 bytes, little-endian
 *   n hist      { sample index, length, blob } *   histogram samples (their value is the sum field)
 *   n starts    { sample index - index before (the first: the index), t - start } *   only in records of type 2
 * Handles and symbol numbers mean something inside their segment only.
 *
 * Payload of exemplars (type 3):
 *   n symbols, n series   as in a batch
 *   n exemplars  { handle, exemplar (exemplar.h) } *   in the order in which they came
 */
#ifndef VARVE_STORAGE_WAL_RECORD_H
#define VARVE_STORAGE_WAL_RECORD_H

#include "storage/base/arena.h"
#include "storage/base/buf.h"
#include "storage/exemplar.h"

#define WAL_VERSION 1
#define WAL_SEGMENT_HEADER 24
#define WAL_RECORD_HEADER 32

/* Servers that do not know start timestamps or exemplars refuse a record of a later type by its number. */
enum wal_type { WAL_BATCH = 1, WAL_BATCH_STARTS = 2, WAL_EXEMPLARS = 3 };

struct wal_record {
    uint32_t type;
    uint32_t bytes; /* payload */
    uint64_t seq;
    uint64_t checksum; /* of the payload */
};

void wal_segment_header(struct buf *out, uint32_t generation);
err wal_segment_parse(const uint8_t *p, uint32_t *generation) __attribute__((warn_unused_result));

/* Leaves room for a header; returns where it goes. */
size_t wal_record_begin(struct buf *out);
/* Fills the header of the record that began at `at`. */
void wal_record_end(struct buf *out, size_t at, enum wal_type type, uint64_t seq);
/* Reads a record header; false if the 32 bytes are none. */
bool wal_record_parse(const uint8_t *p, struct wal_record *out);
bool wal_record_payload_ok(const struct wal_record *r, const uint8_t *payload);

/* A batch as the log sees it. Encoding: defs are ready-made bytes. Decoding: arrays live in the arena, strings in the
 * payload. */
struct wal_symbol {
    uint32_t number;
    str text;
};
struct wal_series {
    uint32_t handle, n_pairs;
    uint32_t *symbols; /* 2 * n_pairs */
};
struct wal_batch {
    struct wal_symbol *symbols;
    uint32_t n_symbols;
    struct wal_series *series;
    uint32_t n_series;
    const uint32_t *handles; /* of each run */
    const uint32_t *counts;  /* samples of each run */
    uint32_t n_runs;
    const int64_t *t;
    const double *v;
    const str *hist;      /* NULL if there are none; else n = 0: a float */
    const int64_t *start; /* NULL if there are none; else 0 = none */
    uint32_t n_samples;
};

/* Definitions gathered while a batch is prepared. */
struct wal_defs {
    struct buf symbols, series; /* encoded entries */
    uint32_t n_symbols, n_series;
};
void wal_defs_symbol(struct wal_defs *d, uint32_t number, str text);
void wal_defs_series(struct wal_defs *d, uint32_t handle, const uint32_t *pairs, uint32_t n_pairs);
void wal_defs_clear(struct wal_defs *d);
void wal_defs_deinit(struct wal_defs *d);

/* Appends the payload of a batch: the definitions, and runs, t, v, hist, start of b. Returns the type that the record
 * has to have. */
enum wal_type wal_batch_encode(struct buf *out, const struct wal_defs *defs, const struct wal_batch *b);

struct wal_exemplar {
    uint32_t handle;
    struct exemplar x;
};
/* Appends the payload of a record of exemplars: definitions and n exemplars, already encoded. */
void wal_exemplars_encode(struct buf *out, const struct wal_defs *defs, const struct buf *exemplars, uint32_t n);
void wal_exemplar_encode(struct buf *out, uint32_t handle, const struct exemplar *x);

/* What a record of any type holds: a batch, or definitions and exemplars. */
struct wal_content {
    struct wal_batch batch; /* symbols and series; of exemplars nothing else */
    const struct wal_exemplar *exemplars;
    uint32_t n_exemplars;
};
/* ERR_UNSUPPORTED: a type that this server does not know. */
err wal_record_decode(const struct wal_record *r, const uint8_t *payload, struct arena *a, struct wal_content *out)
    __attribute__((warn_unused_result));

#endif
