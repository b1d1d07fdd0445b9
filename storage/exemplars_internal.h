/*
 * exemplars_internal.h: the ring as exemplars.c and exemplars_file.c see it.
 */
#ifndef VARVE_STORAGE_EXEMPLARS_INTERNAL_H
#define VARVE_STORAGE_EXEMPLARS_INTERNAL_H

#include <pthread.h>

#include "storage/base/map.h"
#include "storage/exemplars.h"

struct ring_series {
    struct hash128 id;
    struct labels labels;    /* behind this struct, in the same allocation */
    uint64_t oldest, newest; /* numbers of entries; only if n > 0 */
    uint32_t n;              /* entries; 0: no longer in the map */
    uint32_t refs;           /* the map's, and queries' */
    size_t bytes;
    uint64_t written; /* its number in the file being written */
};

struct ring_entry {
    struct ring_series *series;
    struct exemplar *x; /* with its labels, in one allocation; owned */
    uint64_t next;      /* the next newer entry of the series; only if there is one */
    size_t bytes;       /* of x */
};

struct exemplars {
    pthread_mutex_t lock;
    const struct hash_key *key;
    struct ring_entry *slots;
    size_t cap, max;
    uint64_t first, next; /* numbers */
    struct map series;    /* identity → struct ring_series * */
    size_t bytes, bytes_max;
    uint64_t seq;       /* newest write number seen */
    uint64_t saved_seq; /* that of the last file; the saver's */
};

struct ring_entry *exemplars_entry(const struct exemplars *e, uint64_t number);

#endif
