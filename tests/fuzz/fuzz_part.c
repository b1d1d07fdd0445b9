/*
 * fuzz_part.c: reads part files that are not what a writer made.
 *
 * The first input byte chooses: 0: the rest is a file as it is. Else the rest are edits of a small good
 * part, made below the checksums: each edit changes bytes of one expanded frame, index or the footer, and
 * the file is put together again around it, so that what decodes behind the checksums is reached. The file
 * is then verified, printed, searched, and read whole; all of that must end in data or ERR_CORRUPT.
 *
 *   edit: u8 which frame or index (modulo their number; the last is the footer), u16 place, u8 operation
 *         (0 set, 1 add, 2 insert, 3 delete, 4 truncate), u8 value
 */
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/matcher.h"
#include "storage/part_format.h"
#include "storage/part_write.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n);

/* ---- a machine with one file in memory ---------------------------------------------------------------------- */

struct env_file {
    struct buf bytes;
};

struct memory {
    struct env env; /* first */
    struct env_file file;
};

static err memory_open(struct env *env, const char *path, enum env_open how, struct env_file **out)
{
    (void)path;
    struct memory *m = (struct memory *)env;
    if (how == ENV_CREATE) buf_clear(&m->file.bytes);
    *out = &m->file;
    return NULL;
}

static err memory_read(struct env_file *f, void *p, size_t n, uint64_t offset)
{
    if (offset > f->bytes.n || n > f->bytes.n - offset) return err_corrupt("short read");
    memcpy(p, f->bytes.data + offset, n);
    return NULL;
}

static err memory_append(struct env_file *f, const void *p, size_t n)
{
    buf_put(&f->bytes, p, n);
    return NULL;
}

static err memory_sync(struct env_file *f)
{
    (void)f;
    return NULL;
}

static err memory_size(struct env_file *f, uint64_t *size)
{
    *size = f->bytes.n;
    return NULL;
}

static void memory_close(struct env_file *f)
{
    (void)f;
}

static err memory_unlink(struct env *env, const char *path)
{
    (void)env, (void)path;
    return NULL;
}

static void memory_random(struct env *env, void *p, size_t n)
{
    (void)env;
    memset(p, 7, n);
}

static const struct env_ops memory_ops = {.file_open = memory_open,
                                          .file_read = memory_read,
                                          .file_append = memory_append,
                                          .file_sync = memory_sync,
                                          .file_size = memory_size,
                                          .file_close = memory_close,
                                          .unlink = memory_unlink,
                                          .random = memory_random};

/* ---- a small good part, in pieces --------------------------------------------------------------------------- */

#define T0 INT64_C(1698796800000)
#define SERIES 40
#define PIECES_MAX 64

struct piece {
    enum part_frame_kind kind;
    struct buf raw;
};

struct pieces {
    struct piece frames[PIECES_MAX];
    size_t n_frames;
    struct buf sections[PART_SECTIONS]; /* that of the frames is made anew */
    struct part_footer footer;
};

static void must(err e)
{
    if (e == NULL) return;
    fprintf(stderr, "fuzz_part: %s\n", err_message(e));
    abort();
}

static void write_series(struct part_writer *w, uint32_t i)
{
    uint32_t pairs[] = {0, 4 + i % 3, 2, 7 + i / 3, 3, 4};
    int64_t t[300];
    double v[300];
    size_t n = i == 5 ? 300 : 1 + i % 20;
    for (size_t k = 0; k < n; k++) {
        t[k] = T0 + (int64_t)(i % 4) * 100000000 + (int64_t)k * 15000;
        v[k] = i % 3 == 0 ? 1.5 : (double)(k * k) / 4;
    }
    must(part_writer_series(w, pairs, i % 5 == 4 ? 2 : 3));
    must(part_writer_floats(w, t, v, n));
    if (i % 7 != 0) return;
    struct buf blob = {0};
    struct hist_span span = {2, 2};
    struct hist h = {.schema = 3, .count = 5, .sum = i, .n_positive_spans = 1, .n_positive = 2};
    h.positive_spans = &span;
    h.positive = (double[]){2, 3};
    must(hist_validate(&h));
    hist_encode(&h, &blob);
    str bytes = buf_as_str(&blob);
    t[0] += 7;
    must(part_writer_hists(w, t, &bytes, 1));
    buf_deinit(&blob);
}

/* Series in storage order: by metric, then by value of "b". */
static void write_good(struct memory *m, struct part_footer *footer)
{
    static const str symbols[] = {{"__name__", 8}, {"a", 1},   {"b", 1},   {"c", 1},   {"m0", 2},  {"m1", 2},
                                  {"m2", 2},       {"v00", 3}, {"v01", 3}, {"v02", 3}, {"v03", 3}, {"v04", 3},
                                  {"v05", 3},      {"v06", 3}, {"v07", 3}, {"v08", 3}, {"v09", 3}, {"v10", 3},
                                  {"v11", 3},      {"v12", 3}, {"v13", 3}};
    struct part_meta meta = {.id = 1, .partition = 646, .seq_min = 1, .seq_max = 2};
    struct part_writer *w;
    must(part_writer_create(&m->env, "good", &meta, symbols, ARRAY_LEN(symbols), &w));
    for (uint32_t metric = 0; metric < 3; metric++)
        for (uint32_t i = metric; i < SERIES; i += 3)
            write_series(w, i);
    must(part_writer_finish(w, &meta));
    part_writer_destroy(w);
    const struct buf *b = &m->file.bytes;
    must(part_footer_decode(b->data, b->n, b->n, footer));
}

static void take_section(struct memory *m, struct zctx *z, const struct part_section *s, struct buf *raw)
{
    size_t disk, size;
    const uint8_t *p = m->file.bytes.data + s->offset;
    must(zframe_sizes(p, PART_SECTION_RAW_MAX, &disk, &size));
    uint8_t *to = buf_reserve(raw, size + 1);
    must(zframe_get(z, p, disk, to, size));
    raw->n = size;
}

static struct pieces *make_pieces(void)
{
    struct pieces *all = mem_zalloc(sizeof *all);
    struct memory m = {.env = {.ops = &memory_ops}};
    struct zctx *z = zctx_create();
    struct part_index *ix;
    write_good(&m, &all->footer);
    must(part_index_load(&m.env, &m.file, &all->footer, &ix));
    for (size_t i = 0; i < PART_SECTIONS; i++)
        take_section(&m, z, &all->footer.sections[i], &all->sections[i]);
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++) {
        for (size_t i = 0; i < ix->frames[kind].n; i++) {
            check(all->n_frames < PIECES_MAX);
            struct part_section s = {.offset = ix->frames[kind].v[i].offset};
            all->frames[all->n_frames].kind = (enum part_frame_kind)kind;
            take_section(&m, z, &s, &all->frames[all->n_frames++].raw);
        }
    }
    part_index_destroy(ix);
    zctx_destroy(z);
    buf_deinit(&m.file.bytes);
    return all;
}

/* ---- edits -------------------------------------------------------------------------------------------------- */

struct edit {
    uint8_t which, operation, value;
    uint16_t place;
};

static void edit_bytes(struct buf *b, const struct edit *x)
{
    if (b->n == 0) return;
    size_t at = x->place % b->n;
    if (x->operation % 5 == 0) b->data[at] = x->value;
    if (x->operation % 5 == 1) b->data[at] += x->value;
    if (x->operation % 5 == 2) {
        buf_u8(b, 0);
        memmove(b->data + at + 1, b->data + at, b->n - at - 1);
        b->data[at] = x->value;
    }
    if (x->operation % 5 == 3) {
        memmove(b->data + at, b->data + at + 1, b->n - at - 1);
        b->n--;
    }
    if (x->operation % 5 == 4) b->n = at;
}

/* Frames and sections in order, then the footer, with checksums that fit. */
static void assemble(const struct pieces *good, struct buf *raw, struct memory *m, const struct edit *edits, size_t n)
{
    struct part_sink sink;
    struct part_footer f = good->footer;
    must(part_sink_open(&sink, &m->env, "bad"));
    part_footer_encode_header(f.meta.id, &sink.pending);
    for (size_t i = 0; i < good->n_frames; i++)
        must(part_sink_frame(&sink, good->frames[i].kind, &raw[i]));
    struct buf *frames = &raw[good->n_frames + PART_SECTION_FRAMES];
    buf_clear(frames);
    part_index_encode_frames(sink.frames, frames);
    for (size_t k = 0; k < n; k++)
        if (edits[k].which % (good->n_frames + PART_SECTIONS + 1) == good->n_frames + PART_SECTION_FRAMES)
            edit_bytes(frames, &edits[k]);
    for (size_t i = 0; i < PART_SECTIONS; i++)
        must(part_sink_section(&sink, &raw[good->n_frames + i], &f.sections[i]));
    f.meta.bytes = sink.at + sink.pending.n + PART_FOOTER_SIZE + PART_TAIL_SIZE;
    size_t at = sink.pending.n;
    part_footer_encode(&f, &sink.pending);
    for (size_t k = 0; k < n; k++)
        if (edits[k].which % (good->n_frames + PART_SECTIONS + 1) == good->n_frames + PART_SECTIONS)
            sink.pending.data[at + edits[k].place % PART_FOOTER_SIZE] = edits[k].value;
    buf_set_u64(&sink.pending, at + PART_FOOTER_SIZE + 8, checksum64(sink.pending.data + at, PART_FOOTER_SIZE + 8));
    must(part_sink_flush(&sink));
    part_sink_close(&sink);
}

static void make_edited(const struct pieces *good, struct memory *m, const uint8_t *data, size_t n)
{
    struct buf raw[PIECES_MAX + PART_SECTIONS] = {0};
    struct edit edits[64];
    size_t n_edits = 0, n_raw = good->n_frames + PART_SECTIONS;
    struct cursor c = cursor_of(data, n);
    for (size_t i = 0; i < n_raw; i++)
        buf_str(&raw[i], buf_as_str(i < good->n_frames ? &good->frames[i].raw : &good->sections[i - good->n_frames]));
    while (cursor_left(&c) >= 5 && n_edits < ARRAY_LEN(edits)) {
        struct edit x = {.which = cursor_u8(&c), .place = cursor_u16(&c)};
        x.operation = cursor_u8(&c);
        x.value = cursor_u8(&c);
        size_t which = x.which % (n_raw + 1);
        if (which < n_raw && which != good->n_frames + PART_SECTION_FRAMES) edit_bytes(&raw[which], &x);
        edits[n_edits++] = x;
    }
    assemble(good, raw, m, edits, n_edits);
    for (size_t i = 0; i < n_raw; i++)
        buf_deinit(&raw[i]);
}

/* ---- reading ------------------------------------------------------------------------------------------------ */

static void only_corrupt(err e)
{
    check(e == NULL || err_code(e) == ERR_CORRUPT);
    err_free(e);
}

static bool take_string(void *arg, str s)
{
    *(size_t *)arg += s.n;
    return true;
}

static void search(struct part_cursor *c, enum match_op op, const char *name, const char *value)
{
    struct matcher m;
    struct postings *found;
    must(matcher_init(&m, op, str_of(name), str_of(value)));
    err e = part_find(c, &m, 1, T0, T0 + 200000000, &found);
    if (e == NULL) {
        size_t sum = 0;
        only_corrupt(part_label_names(c, found, take_string, &sum));
        postings_destroy(found);
    }
    only_corrupt(e);
    matcher_deinit(&m);
}

static void read_series(struct part_cursor *c, uint32_t id)
{
    struct part_series s;
    struct hash128 h;
    struct arena a = {0};
    static int64_t t[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    static double v[LIMIT_BLOCK_SAMPLES + COLUMN_VALUE_PAD];
    static str blobs[LIMIT_BLOCK_SAMPLES];
    err e = part_series(c, id, &s);
    for (uint32_t k = 0; e == NULL && k < s.n_blocks; k++)
        e = s.blocks[k].kind == BLOCK_FLOAT ? part_read_floats(c, &s.blocks[k], t, v)
                                            : part_read_hists(c, &s.blocks[k], t, blobs, &a);
    if (e == NULL) e = part_series_id(c, &s, &h);
    only_corrupt(e);
    arena_deinit(&a);
}

static void read_part(struct memory *m)
{
    static const struct hash_key key;
    struct fcache *cache = fcache_create(1 << 20, NULL);
    struct part *p;
    err e = part_open(&m->env, "bad", &key, cache, &p);
    if (e == NULL) {
        struct part_cursor *c = part_cursor_create(p);
        size_t sum = 0;
        search(c, MATCH_EQ, "__name__", "m1");
        search(c, MATCH_RE, "b", "v0.*");
        search(c, MATCH_NRE, "b", ".*1|");
        only_corrupt(part_label_values(c, STR("b"), NULL, take_string, &sum));
        for (uint64_t i = 0; i < part_meta(p)->series && i < 2 * SERIES; i++)
            read_series(c, (uint32_t)(i * 7 % part_meta(p)->series));
        part_cursor_destroy(c);
        part_unref(p);
    }
    only_corrupt(e);
    fcache_destroy(cache);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    static struct pieces *good;
    struct memory m = {.env = {.ops = &memory_ops}};
    struct buf text = {.max = 1 << 20};
    uint64_t faults;
    if (n == 0) return 0;
    if (good == NULL) good = make_pieces();
    if (data[0] == 0)
        buf_put(&m.file.bytes, data + 1, n - 1);
    else
        make_edited(good, &m, data + 1, n - 1);
    read_part(&m);
    only_corrupt(part_verify(&m.env, "bad", NULL, NULL, &faults));
    if (n == 1 && data[0] != 0) check(faults == 0);
    only_corrupt(part_inspect(&m.env, "bad", 2, &text));
    buf_deinit(&text);
    buf_deinit(&m.file.bytes);
    return 0;
}
