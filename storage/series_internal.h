/* series_internal.h: the registry's fields, for series.c and series_order.c only. */
#ifndef VARVE_STORAGE_SERIES_INTERNAL_H
#define VARVE_STORAGE_SERIES_INTERNAL_H

#include "storage/base/map.h"
#include "storage/series.h"

struct alias {
    struct hash128 hash;
    uint32_t series;
    uint32_t next;
};

struct value_list {
    uint32_t value;
    uint32_t n, cap;
    uint32_t *handles;
};

struct name_values {
    uint32_t name;
    uint32_t *lists; /* numbers of value lists */
    size_t n, cap;
};

struct registry {
    atomic_uint refs;
    pthread_rwlock_t lock; /* guards symbols' index, lists, names, by_name, by_pair */
    struct symbols symbols;
    struct pages aliases, series, pairs;
    uint32_t *slots; /* alias number + 1; the writer's */
    size_t n_slots;
    uint32_t n_aliases, n_pairs;
    _Atomic uint32_t n_series;
    struct pages lists;
    uint32_t n_lists;
    struct pages names;
    uint32_t n_names;
    struct map by_name; /* name symbol → names number */
    struct map by_pair; /* (name, value) symbols → list number */
    size_t list_bytes;
    uint32_t *order_series, *order_symbols; /* the flusher's */
    uint32_t n_order_series, n_order_symbols;
};

#endif
