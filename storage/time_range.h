/* time_range.h: a small list of inclusive time ranges (ms), in any order. {0} is empty. One thread. */
#ifndef VARVE_STORAGE_TIME_RANGE_H
#define VARVE_STORAGE_TIME_RANGE_H

#include "storage/base/alloc.h"
#include "storage/base/types.h"

struct time_range {
    int64_t t_min, t_max;
};

struct time_ranges {
    struct time_range *v;
    size_t n, cap;
};

static inline void time_ranges_add(struct time_ranges *r, int64_t t_min, int64_t t_max)
{
    if (r->n == r->cap) r->v = mem_grow(r->v, &r->cap, r->n + 1, sizeof *r->v);
    r->v[r->n++] = (struct time_range){t_min, t_max};
}

/* True if one range holds all of [t_min, t_max]. */
static inline bool time_ranges_cover(const struct time_ranges *r, int64_t t_min, int64_t t_max)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].t_min <= t_min && r->v[i].t_max >= t_max) return true;
    return false;
}

static inline bool time_ranges_touch(const struct time_ranges *r, int64_t t_min, int64_t t_max)
{
    for (size_t i = 0; i < r->n; i++)
        if (r->v[i].t_min <= t_max && r->v[i].t_max >= t_min) return true;
    return false;
}

static inline void time_ranges_deinit(struct time_ranges *r)
{
    mem_free(r->v);
    *r = (struct time_ranges){0};
}

#endif
