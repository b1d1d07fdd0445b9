/*
 * hist.h: the shape of a canonical histogram blob, for the column that transposes blobs. Private to the
 * two units; the public side is column_hist.h.
 */
#ifndef VARVE_STORAGE_HIST_H
#define VARVE_STORAGE_HIST_H

#include "storage/column_hist.h"

/* A blob is its layout (everything but counts and sum), then `numbers` counts, then the sum. */
struct hist_layout {
    size_t bytes;      /* of the layout */
    uint32_t positive; /* buckets */
    uint32_t negative;
    bool is_float; /* counts are 8 bytes each, else varints */
};

/* Reads over the layout at the cursor. False if it is malformed. */
bool hist_layout_read(struct cursor *c, struct hist_layout *l);
/* Count, zero count, buckets. */
static inline size_t hist_layout_numbers(const struct hist_layout *l)
{
    return (size_t)2 + l->positive + l->negative;
}

#endif
