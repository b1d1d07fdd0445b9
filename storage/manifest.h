/*
 * manifest.h: what a data directory consists of: the parts, the deletes, where the log begins.
 *
 * Written whole to MANIFEST.tmp, synced, renamed over MANIFEST, the directory synced; the one before is
 * kept as MANIFEST.prev. A reader sees the old state or the new one. Layout:
 *
 *   0  "VRVMAN01"   8 u32 version
 *   then varint: generation, next part number, write number, first live log segment,
 *     n parts, per part: varint id, zigzag partition, varint level, seq_min, seq_max, zigzag t_min, t_max,
 *              varint samples, series, blocks, bytes, clean_seq
 *     n deletes, each as tombstone.c writes it
 *   last 8 bytes: XXH3-64 of all before
 *   then all of that once more: damage to one copy costs nothing, above all no delete
 *
 * The file IDENTITY holds the hash key, written once:  0 "VRVIDN01"  8 u32 version  12 key (192)  204 XXH3-64.
 */
#ifndef VARVE_STORAGE_MANIFEST_H
#define VARVE_STORAGE_MANIFEST_H

#include "storage/base/env.h"
#include "storage/part_write.h"
#include "storage/tombstone.h"

#define MANIFEST_VERSION 1

struct manifest_part {
    struct part_meta meta;
    uint64_t clean_seq; /* deletes up to this number have been applied to its bytes */
};

struct manifest {
    uint64_t generation; /* counts the writes of the manifest */
    uint64_t next_part;
    uint64_t seq;       /* last write number that parts cover */
    uint32_t wal_floor; /* log segments below it are obsolete */
    struct manifest_part *parts;
    size_t n_parts;
    struct tombstone **tombstones;
    size_t n_tombstones;
};

err manifest_write(struct env *env, const char *dir, const struct manifest *m) __attribute__((warn_unused_result));
/* name: "MANIFEST" or "MANIFEST.prev". ERR_NOT_FOUND if there is none, ERR_CORRUPT if it is damaged. *m needs
 * manifest_deinit. */
err manifest_read(struct env *env, const char *dir, const char *name, struct manifest *m)
    __attribute__((warn_unused_result));
/* ERR_CORRUPT if either copy in MANIFEST is damaged (manifest_read is content with one). */
err manifest_verify(struct env *env, const char *dir) __attribute__((warn_unused_result));
void manifest_deinit(struct manifest *m);
void manifest_print(const struct manifest *m, struct buf *out);

/* Reads the key, or makes one if the file is absent and `create`. */
err identity_open(struct env *env, const char *dir, bool create, struct hash_key *key)
    __attribute__((warn_unused_result));

#endif
