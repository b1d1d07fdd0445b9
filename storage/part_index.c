/*
 * part_index.c: the sparse indexes of a part: where frames are and what each of them starts with.
 *
 * Every index is one section of the file, compressed as one zframe:
 *
 *   frames    per frame kind, per frame: varint gap since the end of the kind's previous frame (the
 *             first: since the file header), varint bytes in the file, u32 low half of its checksum
 *   series    per series frame: varint first series - that of the frame before (the first: 0)
 *   symbols   per symbol frame: varint as above for symbols, varint length, bytes of the first symbol
 *   postings  per postings frame: varint name, varint value
 *
 * Counts are in the footer. A loaded index is immutable and owned by its part (or verifier).
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

void part_index_encode_frames(const struct part_frames *frames, struct buf *out)
{
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++) {
        uint64_t end = PART_HEADER_SIZE;
        for (size_t i = 0; i < frames[kind].n; i++) {
            const struct part_frame *f = &frames[kind].v[i];
            buf_varint(out, f->offset - end);
            buf_varint(out, f->disk);
            buf_u32(out, f->check);
            end = f->offset + f->disk;
        }
    }
}

void part_index_encode_numbers(const uint32_t *v, size_t n, struct buf *out)
{
    for (size_t i = 0; i < n; i++)
        buf_varint(out, v[i] - (i > 0 ? v[i - 1] : 0));
}

void part_index_encode_symbol(uint32_t distance, str s, struct buf *out)
{
    buf_varint(out, distance);
    buf_lenstr(out, s);
}

void part_index_encode_key(struct part_key key, struct buf *out)
{
    buf_varint(out, key.name);
    buf_varint(out, key.value);
}

/* ---- decoding ----------------------------------------------------------------------------------------------- */

/* The expanded bytes of one section, verified; *data is from mem_alloc. */
static err read_section(struct env *env, struct env_file *file, const struct part_section *s, struct zctx *z,
                        uint8_t **data, size_t *n)
{
    err e = NULL;
    size_t disk, raw;
    uint8_t *bytes = mem_alloc(s->size), *out = NULL;
    TRY_OUT(env->ops->file_read(file, bytes, s->size, s->offset));
    if (checksum64(bytes, s->size) != s->checksum) {
        e = err_corrupt("section with a bad checksum");
        goto out;
    }
    TRY_OUT(zframe_sizes(bytes, PART_SECTION_RAW_MAX, &disk, &raw));
    if (disk != s->size) {
        e = err_corrupt("section of %llu bytes holds %zu", (unsigned long long)s->size, disk);
        goto out;
    }
    out = mem_alloc(raw + 1); /* never of size zero */
    TRY_OUT(zframe_get(z, bytes, disk, out, raw));
    *data = out;
    *n = raw;
    out = NULL;
out:
    mem_free(out);
    mem_free(bytes);
    return err_wrap(e, "offset %llu", (unsigned long long)s->offset);
}

static bool decode_frame_kind(struct cursor *c, uint32_t n, uint64_t file_end, struct part_frames *out)
{
    uint64_t end = PART_HEADER_SIZE;
    if (n > cursor_left(c)) return false;
    out->v = mem_alloc((n + 1) * sizeof *out->v);
    out->n = out->cap = n;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t gap = cursor_varint(c), disk = cursor_varint(c);
        uint32_t sum = cursor_u32(c);
        if (gap > file_end - end || disk > file_end - end - gap || disk < ZFRAME_HEADER || disk > UINT32_MAX)
            return false;
        out->v[i] = (struct part_frame){end + gap, (uint32_t)disk, sum};
        end += gap + disk;
    }
    return !c->failed;
}

static bool decode_frames(struct cursor c, const struct part_footer *f, struct part_index *ix)
{
    uint64_t end = f->meta.bytes - PART_FOOTER_SIZE - PART_TAIL_SIZE;
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++) {
        if (!decode_frame_kind(&c, f->n_frames[kind], end, &ix->frames[kind])) return false;
        ix->bytes += ix->frames[kind].n * sizeof *ix->frames[kind].v;
    }
    return cursor_left(&c) == 0;
}

/* First numbers increase, start at 0 and stay below limit. */
static bool next_first(struct cursor *c, uint32_t i, uint64_t limit, uint32_t *v)
{
    uint64_t delta = cursor_varint(c);
    if (i == 0) {
        v[0] = 0;
        return delta == 0 && limit > 0;
    }
    if (delta == 0 || delta >= limit || v[i - 1] + delta >= limit) return false;
    v[i] = (uint32_t)(v[i - 1] + delta);
    return !c->failed;
}

static bool decode_series(struct cursor c, const struct part_footer *f, struct part_index *ix)
{
    uint32_t n = f->n_frames[PART_FRAME_SERIES];
    if (n == 0 || n > cursor_left(&c)) return false;
    ix->series_first = mem_alloc(n * sizeof *ix->series_first);
    ix->bytes += n * sizeof *ix->series_first;
    for (uint32_t i = 0; i < n; i++)
        if (!next_first(&c, i, f->meta.series, ix->series_first)) return false;
    return !c.failed && cursor_left(&c) == 0;
}

static bool decode_symbols(struct cursor c, const struct part_footer *f, struct part_index *ix)
{
    uint32_t n = f->n_frames[PART_FRAME_SYMBOL];
    size_t left = cursor_left(&c), used = 0;
    if (n > left || (n == 0) != (f->n_symbols == 0)) return false;
    ix->symbol_first = mem_alloc((n + 1) * sizeof *ix->symbol_first);
    ix->symbol_string = mem_alloc((n + 1) * sizeof *ix->symbol_string);
    ix->strings = mem_alloc(left + 1);
    ix->bytes += n * (sizeof *ix->symbol_first + sizeof *ix->symbol_string) + left;
    for (uint32_t i = 0; i < n; i++) {
        if (!next_first(&c, i, f->n_symbols, ix->symbol_first)) return false;
        str s = cursor_lenstr(&c);
        if (c.failed) return false;
        if (i > 0 && str_cmp(ix->symbol_string[i - 1], s) >= 0) return false;
        if (s.n > 0) memcpy(ix->strings + used, s.p, s.n);
        ix->symbol_string[i] = (str){ix->strings + used, s.n};
        used += s.n;
    }
    return cursor_left(&c) == 0;
}

static bool decode_postings(struct cursor c, const struct part_footer *f, struct part_index *ix)
{
    uint32_t n = f->n_frames[PART_FRAME_POSTINGS];
    if (n > cursor_left(&c)) return false;
    ix->postings_first = mem_alloc((n + 1) * sizeof *ix->postings_first);
    ix->bytes += n * sizeof *ix->postings_first;
    for (uint32_t i = 0; i < n; i++) {
        uint64_t name = cursor_varint(&c), value = cursor_varint(&c);
        if (name >= f->n_symbols || value >= f->n_symbols) return false;
        struct part_key key = {(uint32_t)name, (uint32_t)value}, last = ix->postings_first[i > 0 ? i - 1 : 0];
        if (i > 0 && (key.name < last.name || (key.name == last.name && key.value <= last.value))) return false;
        ix->postings_first[i] = key;
    }
    return !c.failed && cursor_left(&c) == 0;
}

typedef bool (*decode_fn)(struct cursor c, const struct part_footer *f, struct part_index *ix);
static const struct {
    decode_fn decode;
    const char *name;
} sections[PART_SECTIONS] = {
    [PART_SECTION_FRAMES] = {decode_frames, "frames"},
    [PART_SECTION_SERIES] = {decode_series, "series"},
    [PART_SECTION_SYMBOLS] = {decode_symbols, "symbols"},
    [PART_SECTION_POSTINGS] = {decode_postings, "postings"},
};

err part_index_load(struct env *env, struct env_file *file, const struct part_footer *f, struct part_index **out)
{
    struct part_index *ix = mem_zalloc(sizeof *ix);
    struct zctx *z = zctx_create();
    err e = NULL;
    ix->bytes = sizeof *ix;
    for (size_t i = 0; i < PART_SECTIONS; i++) {
        uint8_t *data = NULL;
        size_t n = 0;
        TRY_OUT(read_section(env, file, &f->sections[i], z, &data, &n));
        bool ok = sections[i].decode(cursor_of(data, n), f, ix);
        mem_free(data);
        if (!ok) {
            e = err_corrupt("offset %llu: malformed index of %s", (unsigned long long)f->sections[i].offset,
                            sections[i].name);
            goto out;
        }
    }
    *out = ix;
    ix = NULL;
out:
    zctx_destroy(z);
    part_index_destroy(ix);
    return e;
}

void part_index_destroy(struct part_index *ix)
{
    if (ix == NULL) return;
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++)
        mem_free(ix->frames[kind].v);
    mem_free(ix->series_first);
    mem_free(ix->symbol_first);
    mem_free(ix->symbol_string);
    mem_free(ix->strings);
    mem_free(ix->postings_first);
    mem_free(ix);
}
