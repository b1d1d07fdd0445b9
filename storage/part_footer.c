/*
 * part_footer.c: the ends of a part file: the header in front, footer and tail behind.
 *
 *   header   0  u64 magic "VARVPART"     8  u32 version    12  u32 zero       16  u64 part id
 *
 *   footer   0  u32 features             4  u32 version of the column encodings
 *            8  u32 sections            12  u32 frame kinds
 *           16  u64 part id             24  i32 partition  28  u32 level
 *           32  u64 first sequence      40  u64 last sequence
 *           48  i64 first time          56  i64 last time
 *           64  u64 samples  72  u64 series  80  u64 blocks  88  u64 bytes of the file
 *           96  u32 symbols           100  u32 time columns  104  i32 first day of the alive sets
 *          108  u32 frames of each kind, 7 times
 *          136  per section, 4 times: u32 kind, u32 zero, u64 offset, u64 bytes, u64 XXH3-64 of them
 *   tail   264  u32 bytes of the footer  4  u32 version     8  u64 XXH3-64 of the footer and the 8 bytes
 *                                                              before this field
 *               16  u64 magic "VARVPEND"
 *
 * Opening reads the tail end of the file only. Whatever the footer claims is checked here for being
 * possible in a file of that size, so that others may use it without asking again.
 */
#include "storage/part_format.h"

static_assert(PART_FOOTER_SIZE == 264, "the layout above");

void part_footer_encode_header(uint64_t id, struct buf *out)
{
    buf_u64(out, PART_MAGIC);
    buf_u32(out, PART_VERSION);
    buf_u32(out, 0);
    buf_u64(out, id);
}

err part_footer_check_header(const uint8_t *p, uint64_t id)
{
    struct cursor c = cursor_of(p, PART_HEADER_SIZE);
    if (cursor_u64(&c) != PART_MAGIC) return err_corrupt("no part file: bad magic at its start");
    uint32_t version = cursor_u32(&c), zero = cursor_u32(&c);
    if (version != PART_VERSION || zero != 0) return err_corrupt("header of version %u", version);
    uint64_t found = cursor_u64(&c);
    if (found != id)
        return err_corrupt("header says part %llu, footer part %llu", (unsigned long long)found,
                           (unsigned long long)id);
    return NULL;
}

static void put_meta(const struct part_meta *m, struct buf *out)
{
    buf_u64(out, m->id);
    buf_u32(out, (uint32_t)m->partition);
    buf_u32(out, m->level);
    buf_u64(out, m->seq_min);
    buf_u64(out, m->seq_max);
    buf_u64(out, (uint64_t)m->t_min);
    buf_u64(out, (uint64_t)m->t_max);
    buf_u64(out, m->samples);
    buf_u64(out, m->series);
    buf_u64(out, m->blocks);
    buf_u64(out, m->bytes);
}

static void get_meta(struct cursor *c, struct part_meta *m)
{
    m->id = cursor_u64(c);
    m->partition = (int32_t)cursor_u32(c);
    m->level = cursor_u32(c);
    m->seq_min = cursor_u64(c);
    m->seq_max = cursor_u64(c);
    m->t_min = (int64_t)cursor_u64(c);
    m->t_max = (int64_t)cursor_u64(c);
    m->samples = cursor_u64(c);
    m->series = cursor_u64(c);
    m->blocks = cursor_u64(c);
    m->bytes = cursor_u64(c);
}

void part_footer_encode(const struct part_footer *f, struct buf *out)
{
    size_t start = out->n;
    buf_u32(out, f->features);
    buf_u32(out, PART_COLUMN_VERSION);
    buf_u32(out, PART_SECTIONS);
    buf_u32(out, PART_FRAME_KINDS);
    put_meta(&f->meta, out);
    buf_u32(out, f->n_symbols);
    buf_u32(out, f->n_columns);
    buf_u32(out, (uint32_t)f->alive_first_day);
    for (size_t i = 0; i < PART_FRAME_KINDS; i++)
        buf_u32(out, f->n_frames[i]);
    for (uint32_t i = 0; i < PART_SECTIONS; i++) {
        buf_u32(out, i);
        buf_u32(out, 0);
        buf_u64(out, f->sections[i].offset);
        buf_u64(out, f->sections[i].size);
        buf_u64(out, f->sections[i].checksum);
    }
    buf_u32(out, (uint32_t)(out->n - start));
    buf_u32(out, PART_VERSION);
    if (!out->failed) buf_u64(out, checksum64(out->data + start, out->n - start));
    buf_u64(out, PART_TAIL_MAGIC);
}

static err get_counts(struct cursor *c, struct part_footer *f)
{
    uint32_t columns;
    f->features = cursor_u32(c);
    columns = cursor_u32(c);
    if ((f->features & ~PART_FEATURES_KNOWN) != 0)
        return err_corrupt("features %#x are not known to this version", f->features);
    if (columns != PART_COLUMN_VERSION) return err_corrupt("column encodings of version %u", columns);
    uint32_t n_sections = cursor_u32(c), n_kinds = cursor_u32(c);
    if (n_sections != PART_SECTIONS || n_kinds != PART_FRAME_KINDS)
        return err_corrupt("footer with other sections or frame kinds");
    get_meta(c, &f->meta);
    f->n_symbols = cursor_u32(c);
    f->n_columns = cursor_u32(c);
    f->alive_first_day = (int32_t)cursor_u32(c);
    for (size_t i = 0; i < PART_FRAME_KINDS; i++)
        f->n_frames[i] = cursor_u32(c);
    return NULL;
}

static err get_sections(struct cursor *c, uint64_t end, struct part_footer *f)
{
    for (uint32_t i = 0; i < PART_SECTIONS; i++) {
        uint32_t kind = cursor_u32(c), zero = cursor_u32(c);
        struct part_section *s = &f->sections[i];
        s->offset = cursor_u64(c);
        s->size = cursor_u64(c);
        s->checksum = cursor_u64(c);
        bool inside = s->offset >= PART_HEADER_SIZE && s->offset <= end && s->size <= end - s->offset;
        if (kind != i || zero != 0 || !inside || s->size < ZFRAME_HEADER || s->size > PART_SECTION_RAW_MAX)
            return err_corrupt("section %u is misplaced", i);
    }
    return NULL;
}

/* What readers rely on without asking again. */
static err check_sense(const struct part_footer *f)
{
    const struct part_meta *m = &f->meta;
    if (m->t_min > m->t_max || m->t_min < LIMIT_TIME_MIN || m->t_max > LIMIT_TIME_MAX || m->seq_min > m->seq_max)
        return err_corrupt("footer with impossible ranges");
    if (m->series == 0 || m->series > UINT32_MAX - 1 || m->blocks < m->series || m->samples < m->blocks)
        return err_corrupt("footer with impossible counts");
    uint64_t frames = 0;
    for (size_t i = 0; i < PART_FRAME_KINDS; i++)
        frames += f->n_frames[i];
    if (frames > m->bytes / ZFRAME_HEADER || f->n_frames[PART_FRAME_ALIVE] > PART_DAYS_MAX)
        return err_corrupt("footer with impossible frame counts");
    uint64_t rows = ((uint64_t)f->n_columns + PART_COLUMNS_PER_FRAME - 1) / PART_COLUMNS_PER_FRAME;
    if (rows != f->n_frames[PART_FRAME_COLUMN]) return err_corrupt("time columns and their frames disagree");
    return NULL;
}

err part_footer_decode(const uint8_t *p, size_t n, uint64_t size, struct part_footer *f)
{
    *f = (struct part_footer){0};
    if (size < PART_HEADER_SIZE + PART_FOOTER_SIZE + PART_TAIL_SIZE || n < PART_FOOTER_SIZE + PART_TAIL_SIZE)
        return err_corrupt("file of %llu bytes is too short for a part", (unsigned long long)size);
    p += n - PART_FOOTER_SIZE - PART_TAIL_SIZE;
    struct cursor tail = cursor_of(p + PART_FOOTER_SIZE, PART_TAIL_SIZE), c = cursor_of(p, PART_FOOTER_SIZE);
    uint32_t bytes = cursor_u32(&tail), version = cursor_u32(&tail);
    uint64_t checksum = cursor_u64(&tail);
    if (cursor_u64(&tail) != PART_TAIL_MAGIC) return err_corrupt("no complete part file: bad magic at its end");
    if (version != PART_VERSION) return err_corrupt("part of version %u", version);
    if (bytes != PART_FOOTER_SIZE) return err_corrupt("footer of %u bytes", bytes);
    if (checksum != checksum64(p, PART_FOOTER_SIZE + 8)) return err_corrupt("footer with a bad checksum");
    TRY(get_counts(&c, f));
    if (f->meta.bytes != size)
        return err_corrupt("file of %llu bytes, its footer says %llu", (unsigned long long)size,
                           (unsigned long long)f->meta.bytes);
    TRY(get_sections(&c, size - PART_FOOTER_SIZE - PART_TAIL_SIZE, f));
    return check_sense(f);
}
