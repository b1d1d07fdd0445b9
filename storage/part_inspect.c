/*
 * part_inspect.c: a part file as text, for people. Read-only; stops at the first damage it meets and says
 * so in the text, since what came before is worth having.
 *
 *   detail 0: footer, sections, frames    1: also series    2: also blocks
 */
#include "storage/labels.h"
#include "storage/part_format.h"
#include "storage/partition.h"

#define CACHE_BYTES ((size_t)4 << 20)

static const char *const frame_names[PART_FRAME_KINDS] = {
    [PART_FRAME_VALUE] = "values",    [PART_FRAME_TIME] = "times",     [PART_FRAME_COLUMN] = "time columns",
    [PART_FRAME_SERIES] = "series",   [PART_FRAME_SYMBOL] = "symbols", [PART_FRAME_POSTINGS] = "postings",
    [PART_FRAME_ALIVE] = "alive days"};
static const char *const section_names[PART_SECTIONS] = {[PART_SECTION_FRAMES] = "frames",
                                                         [PART_SECTION_SERIES] = "series",
                                                         [PART_SECTION_SYMBOLS] = "symbols",
                                                         [PART_SECTION_POSTINGS] = "postings"};

static void print_footer(const struct part_footer *f, struct buf *out)
{
    const struct part_meta *m = &f->meta;
    char month[32];
    partition_name(m->partition, month);
    buf_printf(out, "part %llu  partition %s  level %u  version %d\n", (unsigned long long)m->id, month, m->level,
               PART_VERSION);
    buf_printf(out, "  writes  %llu .. %llu\n", (unsigned long long)m->seq_min, (unsigned long long)m->seq_max);
    buf_printf(out, "  times   %lld .. %lld\n", (long long)m->t_min, (long long)m->t_max);
    buf_printf(out, "  samples %llu  series %llu  blocks %llu  symbols %u  time columns %u\n",
               (unsigned long long)m->samples, (unsigned long long)m->series, (unsigned long long)m->blocks,
               f->n_symbols, f->n_columns);
    buf_printf(out, "  bytes   %llu  (%.4f a sample)\n", (unsigned long long)m->bytes,
               (double)m->bytes / (double)m->samples);
    if (f->features & PART_FEATURE_STARTS) buf_str(out, STR("  some samples have start timestamps\n"));
    if (f->n_frames[PART_FRAME_ALIVE] > 0)
        buf_printf(out, "  alive sets of %u days from day %d\n", f->n_frames[PART_FRAME_ALIVE], f->alive_first_day);
    for (size_t i = 0; i < PART_SECTIONS; i++)
        buf_printf(out, "  index of %-9s offset %-12llu bytes %llu\n", section_names[i],
                   (unsigned long long)f->sections[i].offset, (unsigned long long)f->sections[i].size);
}

static void print_frames(const struct part_index *ix, uint64_t samples, struct buf *out)
{
    for (size_t kind = 0; kind < PART_FRAME_KINDS; kind++) {
        uint64_t bytes = 0;
        for (size_t i = 0; i < ix->frames[kind].n; i++)
            bytes += ix->frames[kind].v[i].disk;
        buf_printf(out, "  frames of %-13s %-8zu bytes %-12llu (%.4f a sample)\n", frame_names[kind],
                   ix->frames[kind].n, (unsigned long long)bytes, (double)bytes / (double)samples);
    }
}

static void print_block(const struct part_block *b, struct buf *out)
{
    buf_printf(out, "    %s %u samples  %lld .. %lld  times %u:%u+%u", b->kind == BLOCK_HIST ? "histograms" : "floats",
               b->n, (long long)b->t_min, (long long)b->t_max, b->time_frame, b->time_offset, b->time_bytes);
    if (b->constant)
        buf_printf(out, "  constant %.17g", b->agg.first);
    else
        buf_printf(out, "  values %u:%u+%u", b->value_frame, b->value_offset, b->value_bytes);
    if (b->start_bytes > 0) buf_printf(out, "  starts +%u", b->start_bytes);
    if (b->has_aggregates && !b->constant)
        buf_printf(out, "  first %.17g last %.17g min %.17g max %.17g sum %.17g resets %.17g", b->agg.first,
                   b->agg.last, b->agg.min, b->agg.max, b->agg.sum, b->agg.resets);
    buf_str(out, STR("\n"));
}

static err print_series(struct part_cursor *c, uint32_t id, int detail, struct buf *out)
{
    struct part_series s;
    struct label pairs[LIMIT_LABELS];
    TRY(part_series(c, id, &s));
    for (uint32_t i = 0; i < s.n_pairs; i++) {
        TRY(part_symbol(c, s.pairs[2 * i], &pairs[i].name));
        TRY(part_symbol(c, s.pairs[2 * i + 1], &pairs[i].value));
    }
    buf_printf(out, "  series %u  blocks %u  ", id, s.n_blocks);
    labels_print(&(struct labels){pairs, s.n_pairs}, out);
    buf_str(out, STR("\n"));
    for (uint32_t k = 0; k < s.n_blocks && detail > 1; k++)
        print_block(&s.blocks[k], out);
    return NULL;
}

static err print_part(struct part *p, struct part_cursor *c, int detail, struct buf *out)
{
    print_footer(&p->footer, out);
    TRY(part_cursor_index(c));
    print_frames(c->ix, p->footer.meta.samples, out);
    for (uint32_t id = 0; detail > 0 && id < p->footer.meta.series && !out->failed; id++)
        TRY(print_series(c, id, detail, out));
    return NULL;
}

err part_inspect(struct env *env, const char *path, int detail, struct buf *out)
{
    static const struct hash_key no_key; /* identities are not asked for */
    struct part *p;
    struct fcache *cache = fcache_create(CACHE_BYTES, NULL);
    err e = part_open(env, path, &no_key, cache, &p);
    if (e == NULL) {
        struct part_cursor *c = part_cursor_create(p);
        e = print_part(p, c, detail, out);
        part_cursor_destroy(c);
        part_unref(p);
    }
    fcache_destroy(cache);
    if (err_code(e) != ERR_CORRUPT) return e;
    buf_printf(out, "damaged: %s\n", err_message(e));
    err_free(e);
    return NULL;
}
