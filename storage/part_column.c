/*
 * part_column.c: the table of time columns of a part.
 *
 * All series of one scrape target have the same timestamps, so a column is written once and series refer
 * to it by number. Row i of the table says where column i is and what range it spans:
 *
 *    0  i64 first time    8  i64 last time   16  u32 time frame   20  u32 offset in it
 *   24  u32 bytes        28  u32 timestamps
 *
 * Rows lie in frames of PART_COLUMNS_PER_FRAME.
 *
 * The writer finds equal columns by a 128-bit hash keyed with random bytes of its own, as series are
 * known by theirs. Its table of hashes grows up to SLOTS_MAX slots; then a new column takes the place of
 * an old one, which costs a second copy of that column at worst. One thread.
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define SLOTS_MIN 1024u /* powers of two */
#define SLOTS_MAX (1u << 20)
#define PROBES 8u

struct slot {
    struct hash128 hash;
    uint32_t column_plus_1; /* 0 = free */
};

struct part_column_table {
    struct slot *slots;
    uint32_t n_slots, n;
};

void part_column_put(const struct part_column *c, struct buf *out)
{
    buf_u64(out, (uint64_t)c->t_min);
    buf_u64(out, (uint64_t)c->t_max);
    buf_u32(out, c->frame);
    buf_u32(out, c->offset);
    buf_u32(out, c->bytes);
    buf_u32(out, c->n);
}

struct part_column part_column_get(const uint8_t *row)
{
    struct part_column c;
    memcpy(&c.t_min, row, 8);
    memcpy(&c.t_max, row + 8, 8);
    memcpy(&c.frame, row + 16, 4);
    memcpy(&c.offset, row + 20, 4);
    memcpy(&c.bytes, row + 24, 4);
    memcpy(&c.n, row + 28, 4);
    return c;
}

struct part_column_table *part_column_table_create(void)
{
    struct part_column_table *t = mem_zalloc(sizeof *t);
    t->n_slots = SLOTS_MIN;
    t->slots = mem_zalloc(t->n_slots * sizeof *t->slots);
    return t;
}

void part_column_table_destroy(struct part_column_table *t)
{
    if (t == NULL) return;
    mem_free(t->slots);
    mem_free(t);
}

/* The slot that holds the hash, else a free one near its home, else its home. */
static struct slot *slot_of(struct part_column_table *t, struct hash128 hash)
{
    uint32_t home = (uint32_t)hash.lo & (t->n_slots - 1);
    for (uint32_t i = 0; i < PROBES; i++) {
        struct slot *s = &t->slots[(home + i) & (t->n_slots - 1)];
        if (s->column_plus_1 == 0 || hash128_eq(s->hash, hash)) return s;
    }
    return &t->slots[home];
}

static void grow(struct part_column_table *t)
{
    struct slot *old = t->slots;
    uint32_t n_old = t->n_slots;
    t->n_slots *= 2;
    t->slots = mem_zalloc(t->n_slots * sizeof *t->slots);
    for (uint32_t i = 0; i < n_old; i++)
        if (old[i].column_plus_1 != 0) *slot_of(t, old[i].hash) = old[i];
    mem_free(old);
}

uint32_t part_column_intern(struct part_column_table *t, struct hash128 hash, uint32_t fresh)
{
    struct slot *s = slot_of(t, hash);
    if (s->column_plus_1 != 0 && hash128_eq(s->hash, hash)) return s->column_plus_1 - 1;
    if (t->n >= t->n_slots / 2 && t->n_slots < SLOTS_MAX) {
        grow(t);
        s = slot_of(t, hash);
    }
    *s = (struct slot){hash, fresh + 1};
    t->n++;
    return fresh;
}
