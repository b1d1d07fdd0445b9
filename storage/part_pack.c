/*
 * part_pack.c: frames of small records that are delta-coded against each other, with restarts.
 *
 *   record bytes ...
 *   per group:  u32 offset of its first record, u32 number of that record within the frame
 *   u32 groups
 *   u32 records
 *
 * A reader finds a record by binary search over the groups and a short scan. A pack being built belongs
 * to the writer and is reused from frame to frame; a view borrows the frame's bytes and trusts none of
 * them: whatever the table says, what it yields lies inside the frame.
 */
#include "storage/base/alloc.h"
#include "storage/part_format.h"

#define GROUP_BYTES 8
#define TRAILER_BYTES 8

void part_pack_deinit(struct part_pack *k)
{
    buf_deinit(&k->bytes);
    mem_free(k->groups);
    *k = (struct part_pack){0};
}

void part_pack_clear(struct part_pack *k)
{
    buf_clear(&k->bytes);
    k->n_groups = 0;
    k->n = 0;
}

bool part_pack_next(struct part_pack *k, uint32_t max_n, size_t max_bytes)
{
    uint32_t record = k->n++;
    if (k->n_groups > 0) {
        const struct part_group *g = &k->groups[k->n_groups - 1];
        if (record - g->first < max_n && (max_bytes == 0 || k->bytes.n - g->offset < max_bytes)) return false;
    }
    k->groups = mem_grow(k->groups, &k->cap_groups, k->n_groups + 1, sizeof *k->groups);
    k->groups[k->n_groups++] = (struct part_group){(uint32_t)k->bytes.n, record};
    return true;
}

void part_pack_seal(struct part_pack *k)
{
    for (size_t i = 0; i < k->n_groups; i++) {
        buf_u32(&k->bytes, k->groups[i].offset);
        buf_u32(&k->bytes, k->groups[i].first);
    }
    buf_u32(&k->bytes, (uint32_t)k->n_groups);
    buf_u32(&k->bytes, k->n);
}

bool part_pack_open(const uint8_t *p, size_t n, struct part_pack_view *v)
{
    if (n < TRAILER_BYTES) return false;
    struct cursor c = cursor_of(p + n - TRAILER_BYTES, TRAILER_BYTES);
    v->n_groups = cursor_u32(&c);
    v->n = cursor_u32(&c);
    n -= TRAILER_BYTES;
    if (v->n_groups == 0 || v->n_groups > n / GROUP_BYTES || v->n < v->n_groups) return false;
    v->p = p;
    v->bytes = n - GROUP_BYTES * (size_t)v->n_groups;
    v->groups = p + v->bytes;
    return part_pack_group(v, 0).offset == 0 && part_pack_group(v, 0).first == 0;
}

struct part_group part_pack_group(const struct part_pack_view *v, uint32_t g)
{
    struct cursor c = cursor_of(v->groups + GROUP_BYTES * (size_t)g, GROUP_BYTES);
    struct part_group group;
    group.offset = cursor_u32(&c);
    group.first = cursor_u32(&c);
    return group;
}

uint32_t part_pack_group_of(const struct part_pack_view *v, uint32_t i)
{
    uint32_t low = 0, high = v->n_groups; /* group low starts at or before i */
    while (high - low > 1) {
        uint32_t middle = low + (high - low) / 2;
        if (part_pack_group(v, middle).first <= i)
            low = middle;
        else
            high = middle;
    }
    return low;
}

struct cursor part_pack_from(const struct part_pack_view *v, uint32_t g)
{
    size_t at = part_pack_group(v, g).offset;
    if (at > v->bytes) at = v->bytes;
    return cursor_of(v->p + at, v->bytes - at);
}
