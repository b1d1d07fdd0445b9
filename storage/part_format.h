/*
 * part_format.h: what the files of the part room share: the bytes of a part file and the state behind
 * its handles. Private to storage/part*.c; outsiders include part.h and part_write.h.
 *
 * storage/FORMAT.md draws the same layout for people who have only the bytes.
 */
#ifndef VARVE_STORAGE_PART_FORMAT_H
#define VARVE_STORAGE_PART_FORMAT_H

#include <pthread.h>
#include <stdatomic.h>

#include "storage/base/limits.h"
#include "storage/base/zframe.h"
#include "storage/column_value.h"
#include "storage/part.h"

#define PART_VERSION 1
#define PART_COLUMN_VERSION 1 /* of the column encodings inside data frames */

/* What a reader must know to read a part. A part that makes no use of a feature does not name it, so that servers from
 * before it can read the part. */
#define PART_FEATURE_STARTS 1u /* some blocks have start timestamps */
#define PART_FEATURES_KNOWN PART_FEATURE_STARTS

#define PART_MAGIC UINT64_C(0x5452415056524156)      /* the bytes "VARVPART" */
#define PART_TAIL_MAGIC UINT64_C(0x444e455056524156) /* the bytes "VARVPEND" */

#define PART_HEADER_SIZE 24 /* magic u64, version u32, zero u32, part id u64 */
#define PART_TAIL_SIZE 24   /* footer bytes u32, version u32, footer checksum u64, tail magic u64 */

#define PART_DAY_MS INT64_C(86400000)
/* The day of a time, counted from the epoch. */
static inline int32_t part_day_of(int64_t t)
{
    return (int32_t)(t / PART_DAY_MS - (t % PART_DAY_MS < 0));
}
#define PART_DAYS_MAX 64           /* a part over more days has no alive sets */
#define PART_COLUMNS_PER_FRAME 512 /* rows of the time column table in one frame */
#define PART_COLUMN_ROW 32         /* bytes of one row */
#define PART_AGGREGATES_MIN 256    /* samples from which a block stores aggregates */
#define PART_GROUP_SYMBOLS 16      /* records between restarts */
#define PART_GROUP_POSTINGS 16
#define PART_GROUP_SERIES 8
#define PART_GROUP_BYTES 1024                /* series records also restart after so many bytes */
#define PART_SECTION_RAW_MAX (256u << 20)    /* raw bytes of one index section */
#define PART_SYMBOL_PAGE_MAX (1u << 20)      /* bytes of all strings of one symbol frame, spelled out */
#define PART_FLUSH_BYTES ((size_t)256 << 10) /* the writer hands bytes to the file in such pieces */

/* ---- frames: zframe.h's, numbered from 0 within each kind, in file order ------------------------------------ */

enum part_frame_kind {
    PART_FRAME_VALUE,    /* value columns of float and histogram blocks, and start columns behind theirs */
    PART_FRAME_TIME,     /* timestamp columns, back to back */
    PART_FRAME_COLUMN,   /* rows of the time column table */
    PART_FRAME_SERIES,   /* pack of series records */
    PART_FRAME_SYMBOL,   /* pack of strings */
    PART_FRAME_POSTINGS, /* pack of (name, value, set) */
    PART_FRAME_ALIVE,    /* one set: the series alive on one day */
    PART_FRAME_KINDS
};

/* Index sections: each one zframe, loaded at first use. */
enum part_section_kind {
    PART_SECTION_FRAMES,   /* where all frames are */
    PART_SECTION_SERIES,   /* first series of each series frame */
    PART_SECTION_SYMBOLS,  /* first symbol of each symbol frame */
    PART_SECTION_POSTINGS, /* first (name, value) of each postings frame */
    PART_SECTIONS
};

struct part_section {
    uint64_t offset, size, checksum; /* of the section's bytes in the file */
};

struct part_footer {
    struct part_meta meta;
    uint32_t features; /* PART_FEATURE_ bits */
    uint32_t n_symbols, n_columns;
    int32_t alive_first_day; /* days since the epoch; meaningful with alive frames only */
    uint32_t n_frames[PART_FRAME_KINDS];
    struct part_section sections[PART_SECTIONS];
};

/* part_footer.c */
#define PART_FOOTER_SIZE (16 + 80 + 12 + 4 * PART_FRAME_KINDS + 32 * PART_SECTIONS)
void part_footer_encode_header(uint64_t id, struct buf *out);
err part_footer_check_header(const uint8_t *p, uint64_t id) __attribute__((warn_unused_result));
/* Footer and tail. */
void part_footer_encode(const struct part_footer *f, struct buf *out);
/* From the last n bytes of a file of `size` bytes; n >= PART_FOOTER_SIZE + PART_TAIL_SIZE unless the file is smaller.
 */
err part_footer_decode(const uint8_t *p, size_t n, uint64_t size, struct part_footer *f)
    __attribute__((warn_unused_result));

/* ---- the indexes in memory ---------------------------------------------------------------------------------- */

struct part_frame {
    uint64_t offset;
    uint32_t disk;  /* bytes in the file, zframe header included */
    uint32_t check; /* low half of the frame's own checksum: the frame that was written here, no other */
};

struct part_frames {
    struct part_frame *v;
    size_t n, cap;
};

struct part_key {
    uint32_t name, value;
};

struct part_index {
    struct part_frames frames[PART_FRAME_KINDS];
    uint32_t *series_first; /* of each series frame */
    uint32_t *symbol_first; /* of each symbol frame */
    str *symbol_string;     /* its string, in strings */
    char *strings;
    struct part_key *postings_first; /* of each postings frame */
    size_t bytes;
};

/* part_index.c */
void part_index_encode_frames(const struct part_frames *frames, struct buf *out);
void part_index_encode_numbers(const uint32_t *v, size_t n, struct buf *out);
/* One more symbol frame, its first symbol and that's distance to the one of the frame before. */
void part_index_encode_symbol(uint32_t distance, str s, struct buf *out);
/* One more postings frame. */
void part_index_encode_key(struct part_key key, struct buf *out);
/* Reads, verifies and decodes all index sections of a file. */
err part_index_load(struct env *env, struct env_file *file, const struct part_footer *f, struct part_index **out)
    __attribute__((warn_unused_result));
void part_index_destroy(struct part_index *ix); /* NULL allowed */

/* ---- packs: frames of small records with restarts ----------------------------------------------------------- */

/*
 * Records back to back; every so often a group starts, whose first record depends on none before it.
 *
 *   record bytes ...
 *   per group: u32 offset of its first record, u32 number of that record within the frame
 *   u32 groups, u32 records
 */
struct part_pack {
    struct buf bytes;
    struct part_group {
        uint32_t offset, first;
    } * groups;
    size_t n_groups, cap_groups;
    uint32_t n; /* records */
};

/* part_pack.c */
void part_pack_deinit(struct part_pack *k);
void part_pack_clear(struct part_pack *k);
/* Call before each record; true if the record starts a group: after max_n records or max_bytes (0: any). */
bool part_pack_next(struct part_pack *k, uint32_t max_n, size_t max_bytes);
void part_pack_seal(struct part_pack *k); /* appends the table of groups; bytes is the frame then */

struct part_pack_view {
    const uint8_t *p;      /* records */
    size_t bytes;          /* of records */
    const uint8_t *groups; /* table */
    uint32_t n_groups, n;
};
/* False on malformed bytes. */
bool part_pack_open(const uint8_t *p, size_t n, struct part_pack_view *v);
struct part_group part_pack_group(const struct part_pack_view *v, uint32_t g);
/* The group that holds record i. */
uint32_t part_pack_group_of(const struct part_pack_view *v, uint32_t i);
/* The bytes from a group's first record to the end of the records. */
struct cursor part_pack_from(const struct part_pack_view *v, uint32_t g);

/* ---- series records ----------------------------------------------------------------------------------------- */

/* One series, and what the next record of its group is written against. */
struct part_record {
    uint32_t n_pairs;
    uint32_t n_blocks;
    struct part_block *blocks; /* n, times and time place come from the time column table */
    uint32_t *columns;         /* time column of each block */
    size_t cap_blocks, cap_columns;
    uint32_t value_frame, value_offset; /* where the next value column is expected */
    uint8_t fresh[LIMIT_LABELS];        /* decoding clears fresh[i] where pair i changed; for caches kept beside it */
    uint32_t pairs[2 * LIMIT_LABELS];   /* last, and never read beyond n_pairs: see part_cursor_create */
};

/* part_record.c */
void part_record_deinit(struct part_record *r);
void part_record_reset(struct part_record *r); /* before a group's first record */
/* Makes room for n blocks. */
void part_record_reserve(struct part_record *r, size_t n);
/* Appends `r` as it differs from `last`, then makes `last` equal to it (but for the blocks' contents). */
void part_record_encode(struct part_record *last, const struct part_record *r, struct buf *out);
/* Reads the next record over the previous one. False on malformed bytes. */
bool part_record_decode(struct part_record *r, struct cursor *c);
/* Doubles as a varint where they are short decimals. */
void part_record_put_number(double v, struct buf *out);
double part_record_get_number(struct cursor *c);

/* ---- aggregates --------------------------------------------------------------------------------------------- */

/* part_aggregate.c */
/* False if a value or the sum is not finite. */
bool part_aggregate(const double *v, size_t n, struct block_aggregates *a);
/* Of n times the same value. */
bool part_aggregate_constant(double v, size_t n, struct block_aggregates *a);

/* ---- rows of the time column table -------------------------------------------------------------------------- */

struct part_column {
    int64_t t_min, t_max;
    uint32_t frame, offset, bytes, n;
};

/* part_column.c */
void part_column_put(const struct part_column *c, struct buf *out);
struct part_column part_column_get(const uint8_t *row);

/* The writer's memory of the columns written so far, by keyed hash of their timestamps. Bounded. */
struct part_column_table;
struct part_column_table *part_column_table_create(void);
void part_column_table_destroy(struct part_column_table *t);
/* The number of an equal column, or `fresh` after remembering it under that number. */
uint32_t part_column_intern(struct part_column_table *t, struct hash128 hash, uint32_t fresh);

/* ---- postings being gathered -------------------------------------------------------------------------------- */

/* part_gather.c */
struct part_gather;
struct part_gather *part_gather_create(void);
void part_gather_destroy(struct part_gather *g);
/* Series `id` (0, 1, 2 ...) has these pairs and was alive on the days of the mask. */
void part_gather_add(struct part_gather *g, uint32_t id, const uint32_t *pairs, uint32_t n_pairs, uint64_t days);
/* Ends at n series: sorts. */
void part_gather_finish(struct part_gather *g, uint32_t n);
/* The keys in order and the runs of series of each. */
size_t part_gather_count(const struct part_gather *g);
struct part_key part_gather_key(const struct part_gather *g, size_t i);
const uint32_t *part_gather_runs(const struct part_gather *g, size_t i, size_t *n);
/* Runs of the series alive on one day of the mask. */
const uint32_t *part_gather_day(const struct part_gather *g, unsigned day, size_t *n);

/* ---- the file being written --------------------------------------------------------------------------------- */

/* Appends frames and sections to a file in pieces of PART_FLUSH_BYTES and keeps account of them. */
struct part_sink {
    struct env *env;
    struct env_file *file;
    struct zctx *z;
    struct buf pending; /* not yet handed to the file */
    uint64_t at;        /* offset of its first byte */
    struct part_frames frames[PART_FRAME_KINDS];
};

/* part_sink.c */
err part_sink_open(struct part_sink *s, struct env *env, const char *path) __attribute__((warn_unused_result));
void part_sink_close(struct part_sink *s); /* frees; a zeroed sink is fine */
/* Compresses raw bytes as the next frame of its kind. */
err part_sink_frame(struct part_sink *s, enum part_frame_kind kind, const struct buf *raw)
    __attribute__((warn_unused_result));
/* Compresses an index section. */
err part_sink_section(struct part_sink *s, const struct buf *raw, struct part_section *out)
    __attribute__((warn_unused_result));
err part_sink_flush(struct part_sink *s) __attribute__((warn_unused_result));

/* What the end of the file is made from. */
struct part_seal {
    struct part_sink *sink;
    const str *symbols;
    struct part_gather *gather;
    const uint32_t *series_first;
    bool has_days;    /* the gather's masks are right */
    int32_t mask_day; /* day that bit 0 of the masks stands for */
};
/* part_seal.c */
/* Writes symbols, postings, alive sets, indexes, footer; syncs; reads the indexes back. f: meta (but for bytes) and
 * counts of symbols and columns are set, the rest is filled. */
err part_seal_write(const struct part_seal *s, struct part_footer *f) __attribute__((warn_unused_result));

/* ---- open parts --------------------------------------------------------------------------------------------- */

struct part {
    atomic_uint refs;
    atomic_bool damaged, delete_on_unref;
    struct env *env;
    struct env_file *file;
    char *path;
    struct hash_key key;
    struct fcache *cache;
    struct part_footer footer;
    pthread_mutex_t lock;               /* guards loading of index */
    _Atomic(struct part_index *) index; /* NULL until first use */
};

/* part.c */
/* The indexes, loaded at the first call. */
err part_load_index(struct part *p, const struct part_index **out) __attribute__((warn_unused_result));
/* Marks the part damaged, and makes the error. */
err part_corrupt(struct part *p, uint64_t offset, const char *what) __attribute__((warn_unused_result, cold));
/* Puts path and offset before an error of decoding and marks the part damaged if it is corruption. */
err part_blame(struct part *p, uint64_t offset, err e) __attribute__((warn_unused_result, cold));
/* Reads, verifies and expands one frame; *data is from mem_alloc. disk: scratch. */
err part_read_frame(struct part *p, struct zctx *z, struct buf *disk, const struct part_frame *f, uint8_t **data,
                    size_t *n) __attribute__((warn_unused_result));

/* ---- cursors ------------------------------------------------------------------------------------------------ */

#define PART_PINS 10        /* frames a cursor keeps pinned beside symbols */
#define PART_TIME_COLUMNS 8 /* decoded time columns a cursor keeps */

struct part_pin {
    const struct fcache_entry *e; /* NULL: free */
    uint32_t frame;
};

struct part_time {
    uint32_t frame, offset, n; /* n = 0: free */
    size_t cap;
    int64_t *t;
};

/* Where in the series frames a cursor stands: after record `id`. */
struct part_place {
    bool ok;
    uint32_t id, frame;
    struct part_pack_view view; /* the frame, pinned */
    uint32_t group_end;         /* first record of the next group, within the frame */
    struct cursor rest;         /* bytes after the record */
};

struct part_cursor {
    struct part *p;
    const struct part_index *ix; /* NULL until first use */
    struct part_pin pins[PART_PINS];
    uint8_t pin_at[PART_FRAME_KINDS]; /* which of a kind's pins goes next */
    struct part_time times[PART_TIME_COLUMNS];
    unsigned time_at;
    const struct fcache_entry **symbols; /* one a symbol frame, pinned at first use; NULL until then */
    struct part_place place;
    bool resolved;                          /* the record's blocks know their times */
    struct part_record record;              /* the series at place */
    struct hash128 pair_hash[LIMIT_LABELS]; /* of the record's pairs, valid where record.fresh */
};

/* part_cursor.c */
err part_cursor_index(struct part_cursor *c) __attribute__((warn_unused_result)); /* makes sure of c->ix */
/* The frame, pinned until some others of its kind were asked for. Not for postings and alive sets. */
err part_cursor_frame(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, const struct fcache_entry **out)
    __attribute__((warn_unused_result));
/* A pin of any kind that the caller drops with part_cursor_release. */
err part_cursor_hold(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, const struct fcache_entry **out)
    __attribute__((warn_unused_result));
void part_cursor_release(struct part_cursor *c, const struct fcache_entry *e); /* NULL allowed */
/* Damage found in a frame: marks the part and makes the error. */
err part_cursor_corrupt(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, const char *what)
    __attribute__((warn_unused_result, cold));
/* The same from what a decoder said. */
err part_cursor_blame(struct part_cursor *c, enum part_frame_kind kind, uint32_t frame, err e)
    __attribute__((warn_unused_result));
/* Greatest i < n with first[i] <= x; first[0] <= x. */
uint32_t part_cursor_frame_of(const uint32_t *first, size_t n, uint32_t x);

/* part_symbol.c */
/* Rewrites a symbol frame as it is kept in the cache: strings spelled out, with their keyed hashes. Takes *data. */
err part_symbol_expand(const struct hash_key *key, uint8_t **data, size_t *n) __attribute__((warn_unused_result));
err part_symbol_hash(struct part_cursor *c, uint32_t symbol, struct hash128 *out) __attribute__((warn_unused_result));
/* The first symbol >= s (symbol count if none); *equal tells whether it is s. */
err part_symbol_lower_bound(struct part_cursor *c, str s, uint32_t *symbol, bool *equal)
    __attribute__((warn_unused_result));

/* part_entry.c: walking postings */
struct part_entry {
    struct part_key key;
    str set;  /* postings_encode's bytes, in the pinned frame */
    bool end; /* there is no entry */
    /* private */
    struct part_cursor *c;
    const struct fcache_entry *e;
    struct part_pack_view view;
    uint32_t frame, group;
    uint32_t at, group_end; /* records of the frame read so far; first record of the next group */
    struct cursor rest;
};
/* The first entry >= key. Drop with part_entry_close, also after an error. */
err part_entry_seek(struct part_cursor *c, struct part_key key, struct part_entry *it)
    __attribute__((warn_unused_result));
err part_entry_next(struct part_entry *it) __attribute__((warn_unused_result));
void part_entry_close(struct part_entry *it);

#endif
