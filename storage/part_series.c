/*
 * part_series.c: series records through a cursor: labels and blocks of one series, and its identity.
 *
 * The cursor stands after one record. The next one is read over it; any other is reached from the start of
 * its group. Blocks get their times and the place of their time column from the time column table when a
 * series is asked for, not for those passed over.
 */
#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/part_format.h"

static uint32_t frame_end(const struct part_cursor *c, uint32_t frame)
{
    bool last = frame + 1 == c->ix->frames[PART_FRAME_SERIES].n;
    return last ? (uint32_t)c->p->footer.meta.series : c->ix->series_first[frame + 1];
}

/* Puts the cursor before the first record of the group that holds series id. */
static err seek_group(struct part_cursor *c, uint32_t id)
{
    struct part_place *at = &c->place;
    const struct fcache_entry *e;
    at->ok = false;
    at->frame = part_cursor_frame_of(c->ix->series_first, c->ix->frames[PART_FRAME_SERIES].n, id);
    TRY(part_cursor_frame(c, PART_FRAME_SERIES, at->frame, &e));
    uint32_t first = c->ix->series_first[at->frame];
    if (!part_pack_open(e->data, e->n, &at->view) || at->view.n != frame_end(c, at->frame) - first)
        return part_cursor_corrupt(c, PART_FRAME_SERIES, at->frame, "malformed series frame");
    uint32_t g = part_pack_group_of(&at->view, id - first);
    struct part_group group = part_pack_group(&at->view, g);
    at->group_end = g + 1 < at->view.n_groups ? part_pack_group(&at->view, g + 1).first : at->view.n;
    if (group.first > id - first || at->group_end <= id - first)
        return part_cursor_corrupt(c, PART_FRAME_SERIES, at->frame, "series groups out of order");
    at->rest = part_pack_from(&at->view, g);
    at->id = first + group.first - 1; /* wraps for the first of all */
    part_record_reset(&c->record);
    return NULL;
}

/* Makes `record` the record of series id. */
static err seek(struct part_cursor *c, uint32_t id)
{
    struct part_place *at = &c->place;
    if (at->ok && at->id == id) return NULL;
    bool ahead =
        at->ok && id > at->id && id < frame_end(c, at->frame) && id - c->ix->series_first[at->frame] < at->group_end;
    if (!ahead) TRY(seek_group(c, id));
    at->ok = false;
    c->resolved = false;
    while (at->id != id) {
        if (!part_record_decode(&c->record, &at->rest))
            return part_cursor_corrupt(c, PART_FRAME_SERIES, at->frame, "malformed series record");
        at->id++;
    }
    at->ok = true;
    return NULL;
}

err part_series_pairs(struct part_cursor *c, uint32_t id, const uint32_t **pairs, uint32_t *n_pairs)
{
    check(id < c->p->footer.meta.series);
    TRY(part_cursor_index(c));
    TRY(seek(c, id));
    *pairs = c->record.pairs;
    *n_pairs = c->record.n_pairs;
    return NULL;
}

static bool column_is_sane(const struct part_column *col, const struct part_meta *m)
{
    return col->n >= 1 && col->n <= LIMIT_BLOCK_SAMPLES && col->t_min <= col->t_max && col->t_min >= m->t_min &&
           col->t_max <= m->t_max;
}

static err resolve_block(struct part_cursor *c, struct part_block *b, uint32_t number)
{
    const struct fcache_entry *e;
    uint32_t frame = number / PART_COLUMNS_PER_FRAME;
    size_t at = number % PART_COLUMNS_PER_FRAME * (size_t)PART_COLUMN_ROW;
    TRY(part_cursor_frame(c, PART_FRAME_COLUMN, frame, &e));
    if (at + PART_COLUMN_ROW > e->n)
        return part_cursor_corrupt(c, PART_FRAME_COLUMN, frame, "time column table cut off");
    struct part_column col = part_column_get(e->data + at);
    if (!column_is_sane(&col, &c->p->footer.meta))
        return part_cursor_corrupt(c, PART_FRAME_COLUMN, frame, "impossible time column");
    b->n = col.n;
    b->t_min = col.t_min;
    b->t_max = col.t_max;
    b->time_frame = col.frame;
    b->time_offset = col.offset;
    b->time_bytes = col.bytes;
    if (b->constant) b->has_aggregates = part_aggregate_constant(b->agg.first, b->n, &b->agg);
    return NULL;
}

err part_series(struct part_cursor *c, uint32_t id, struct part_series *out)
{
    check(id < c->p->footer.meta.series);
    TRY(part_cursor_index(c));
    TRY(seek(c, id));
    struct part_record *r = &c->record;
    for (uint32_t k = 0; k < r->n_blocks && !c->resolved; k++)
        TRY(resolve_block(c, &r->blocks[k], r->columns[k]));
    c->resolved = true;
    *out = (struct part_series){r->n_pairs, r->pairs, r->n_blocks, r->blocks};
    return NULL;
}

static err pair_hash(struct part_cursor *c, uint32_t name, uint32_t value, struct hash128 *out)
{
    struct hash128 a, b;
    TRY(part_symbol_hash(c, name, &a));
    TRY(part_symbol_hash(c, value, &b));
    *out = hash128_pair(a, b);
    return NULL;
}

err part_series_id(struct part_cursor *c, const struct part_series *s, struct hash128 *out)
{
    struct hash128 sum = {0, 0};
    bool current = s->pairs == c->record.pairs; /* then hashes of unchanged pairs are at hand */
    for (uint32_t i = 0; i < s->n_pairs; i++) {
        struct hash128 h;
        if (current && c->record.fresh[i]) {
            h = c->pair_hash[i];
        } else {
            TRY(pair_hash(c, s->pairs[2 * i], s->pairs[2 * i + 1], &h));
        }
        if (current) {
            c->pair_hash[i] = h;
            c->record.fresh[i] = 1;
        }
        sum = hash128_add(sum, h);
    }
    *out = sum;
    return NULL;
}
