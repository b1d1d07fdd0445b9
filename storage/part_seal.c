/*
 * part_seal.c: the end of a part file: symbols, postings, alive sets, indexes, footer.
 *
 *   symbol frame    pack, groups of 16; per string: varint bytes shared with the string before, varint
 *                   bytes that follow, those bytes. A group's first shares none.
 *   postings frame  pack, groups of 16; per set, sorted by (name, value): varint name, varint value, varint
 *                   bytes, the set (postings.c). Within a group the name is a distance to the name before;
 *                   if that is 0 the value is too.
 *   alive frame     one set: the series with a block that touches that day. One frame a day of the part's
 *                   range; no frames if every series is alive on every day, or the range is too long.
 *
 * After the sync the footer and the indexes are read back with the reader's own code, so that a part that
 * this program could not open again is never announced to the manifest.
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

static err close_pack(struct part_sink *sink, enum part_frame_kind kind, struct part_pack *pack)
{
    if (pack->n == 0) return NULL;
    part_pack_seal(pack);
    err e = part_sink_frame(sink, kind, &pack->bytes);
    part_pack_clear(pack);
    return e;
}

/* ---- symbols ------------------------------------------------------------------------------------------------ */

static size_t shared_prefix(str a, str b)
{
    size_t n = a.n < b.n ? a.n : b.n, i = 0;
    while (i < n && a.p[i] == b.p[i])
        i++;
    return i;
}

static void put_symbol(struct part_pack *pack, str before, str s)
{
    size_t shared = part_pack_next(pack, PART_GROUP_SYMBOLS, 0) ? 0 : shared_prefix(before, s);
    buf_varint(&pack->bytes, shared);
    buf_lenstr(&pack->bytes, (str){s.p + shared, s.n - shared});
}

static err write_symbols(const struct part_seal *s, uint32_t n, struct buf *index)
{
    struct part_pack pack = {0};
    size_t spelled = 0;
    uint32_t first_before = 0;
    err e = NULL;
    for (uint32_t i = 0; i < n; i++) {
        str symbol = s->symbols[i];
        if (symbol.n > LIMIT_LABEL_VALUE || (i > 0 && str_cmp(s->symbols[i - 1], symbol) >= 0)) {
            e = err_new(ERR_INVALID, "symbol %u is out of order or too long", i);
            goto out;
        }
        if (pack.bytes.n >= LIMIT_FRAME_TARGET || spelled + symbol.n > PART_SYMBOL_PAGE_MAX) {
            TRY_OUT(close_pack(s->sink, PART_FRAME_SYMBOL, &pack));
            spelled = 0;
        }
        if (pack.n == 0) {
            part_index_encode_symbol(i - first_before, symbol, index);
            first_before = i;
        }
        put_symbol(&pack, i > 0 ? s->symbols[i - 1] : (str){0}, symbol);
        spelled += symbol.n;
    }
    e = close_pack(s->sink, PART_FRAME_SYMBOL, &pack);
out:
    part_pack_deinit(&pack);
    return e;
}

/* ---- postings ----------------------------------------------------------------------------------------------- */

static void put_key(struct part_pack *pack, struct part_key before, struct part_key key)
{
    if (part_pack_next(pack, PART_GROUP_POSTINGS, 0)) {
        buf_varint(&pack->bytes, key.name);
        buf_varint(&pack->bytes, key.value);
        return;
    }
    buf_varint(&pack->bytes, key.name - before.name);
    buf_varint(&pack->bytes, key.name == before.name ? key.value - before.value : key.value);
}

static err write_postings(const struct part_seal *s, struct buf *index)
{
    struct part_pack pack = {0};
    struct part_key before = {0};
    struct buf set = {0};
    err e = NULL;
    for (size_t i = 0; i < part_gather_count(s->gather); i++) {
        size_t n_runs;
        struct part_key key = part_gather_key(s->gather, i);
        const uint32_t *runs = part_gather_runs(s->gather, i, &n_runs);
        buf_clear(&set);
        postings_encode_runs(runs, n_runs, &set);
        if (pack.bytes.n + set.n / 2 >= LIMIT_FRAME_TARGET) TRY_OUT(close_pack(s->sink, PART_FRAME_POSTINGS, &pack));
        if (pack.n == 0) part_index_encode_key(key, index);
        put_key(&pack, before, key);
        buf_lenstr(&pack.bytes, buf_as_str(&set));
        before = key;
    }
    e = close_pack(s->sink, PART_FRAME_POSTINGS, &pack);
out:
    buf_deinit(&set);
    part_pack_deinit(&pack);
    return e;
}

/* ---- alive sets --------------------------------------------------------------------------------------------- */

/* True if some series has no sample on some day, and so the sets say something. */
static bool alive_varies(const struct part_seal *s, int32_t first, int32_t last, uint64_t n_series)
{
    for (int32_t day = first; day <= last; day++) {
        size_t n;
        const uint32_t *runs = part_gather_day(s->gather, (unsigned)(day - s->mask_day), &n);
        if (n != 1 || runs[0] != 0 || runs[1] != n_series - 1) return true;
    }
    return false;
}

static err write_alive(const struct part_seal *s, struct part_footer *f)
{
    int32_t first = part_day_of(f->meta.t_min), last = part_day_of(f->meta.t_max);
    if (!s->has_days || !alive_varies(s, first, last, f->meta.series)) return NULL;
    struct buf set = {0};
    err e = NULL;
    f->alive_first_day = first;
    for (int32_t day = first; day <= last; day++) {
        size_t n;
        const uint32_t *runs = part_gather_day(s->gather, (unsigned)(day - s->mask_day), &n);
        buf_clear(&set);
        postings_encode_runs(runs, n, &set);
        TRY_OUT(part_sink_frame(s->sink, PART_FRAME_ALIVE, &set));
    }
out:
    buf_deinit(&set);
    return e;
}

/* ---- indexes and footer ------------------------------------------------------------------------------------- */

static err write_footer(struct part_sink *sink, struct part_footer *f)
{
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++) {
        if (sink->frames[kind].n > UINT32_MAX) return err_new(ERR_TOO_LARGE, "too many frames for one part");
        f->n_frames[kind] = (uint32_t)sink->frames[kind].n;
    }
    f->meta.bytes = sink->at + sink->pending.n + PART_FOOTER_SIZE + PART_TAIL_SIZE;
    part_footer_encode(f, &sink->pending);
    TRY(part_sink_flush(sink));
    return sink->env->ops->file_sync(sink->file);
}

static err write_indexes(const struct part_seal *s, struct part_footer *f, const struct buf *symbols,
                         const struct buf *postings)
{
    struct buf raw = {0};
    err e = NULL;
    part_index_encode_frames(s->sink->frames, &raw);
    TRY_OUT(part_sink_section(s->sink, &raw, &f->sections[PART_SECTION_FRAMES]));
    buf_clear(&raw);
    part_index_encode_numbers(s->series_first, s->sink->frames[PART_FRAME_SERIES].n, &raw);
    TRY_OUT(part_sink_section(s->sink, &raw, &f->sections[PART_SECTION_SERIES]));
    TRY_OUT(part_sink_section(s->sink, symbols, &f->sections[PART_SECTION_SYMBOLS]));
    TRY_OUT(part_sink_section(s->sink, postings, &f->sections[PART_SECTION_POSTINGS]));
out:
    buf_deinit(&raw);
    return e;
}

static err read_back(struct part_sink *sink, const struct part_footer *f)
{
    uint8_t end[PART_FOOTER_SIZE + PART_TAIL_SIZE];
    struct part_footer found;
    struct part_index *ix = NULL;
    uint64_t size = 0;
    TRY(sink->env->ops->file_size(sink->file, &size));
    if (size != f->meta.bytes)
        return err_corrupt("wrote %llu bytes, the file has %llu", (unsigned long long)f->meta.bytes,
                           (unsigned long long)size);
    TRY(sink->env->ops->file_read(sink->file, end, sizeof end, size - sizeof end));
    TRY(part_footer_decode(end, sizeof end, size, &found));
    TRY(part_index_load(sink->env, sink->file, &found, &ix));
    part_index_destroy(ix);
    return NULL;
}

err part_seal_write(const struct part_seal *s, struct part_footer *f)
{
    struct buf symbols = {0}, postings = {0};
    err e = NULL;
    part_gather_finish(s->gather, (uint32_t)f->meta.series);
    TRY_OUT(write_symbols(s, f->n_symbols, &symbols));
    TRY_OUT(write_postings(s, &postings));
    TRY_OUT(write_alive(s, f));
    TRY_OUT(write_indexes(s, f, &symbols, &postings));
    TRY_OUT(write_footer(s->sink, f));
    e = err_wrap(read_back(s->sink, f), "reading back");
out:
    buf_deinit(&symbols);
    buf_deinit(&postings);
    return e;
}
