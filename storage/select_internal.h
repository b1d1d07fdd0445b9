/*
 * select_internal.h: what select.c, reader.c and label_values.c share: which series of a part or head are meant.
 */
#ifndef VARVE_STORAGE_SELECT_INTERNAL_H
#define VARVE_STORAGE_SELECT_INTERNAL_H

#include "storage/db_internal.h"
#include "storage/time_range.h"

/* Where a series of a selection has samples. */
struct source {
    uint32_t where; /* view->parts[where], or view->heads[where - n_parts] */
    uint32_t id;    /* series number in the part, handle in the head's registry */
};

struct selection {
    struct db *db;
    struct view *view;
    int64_t t_min, t_max;
    uint32_t *first; /* n + 1 entries: sources of series i are [first[i], first[i + 1]), oldest writes first */
    struct source *sources;
    size_t n;
};

/* Selection bounds, cut to the retention. */
struct time_range select_range(struct db *db, const struct select_options *o);

/* True if some delete may hold for samples of this part in the range. */
bool part_has_deletes(const struct view *v, size_t part, int64_t t_min, int64_t t_max);
/* Deleted ranges of one series (by its labels) in a part. */
err part_deletes(const struct view *v, size_t part, const struct labels *ls, struct time_ranges *out)
    __attribute__((warn_unused_result));
/* Labels of a part's series: the array in the arena, the strings as long as the cursor. */
err part_labels(struct part_cursor *c, const uint32_t *pairs, uint32_t n_pairs, struct arena *a, struct labels *out)
    __attribute__((warn_unused_result));

#endif
