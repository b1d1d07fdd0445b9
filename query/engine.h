/*
 * engine.h: the engine as the room's own files see it.
 */
#ifndef VARVE_QUERY_ENGINE_H
#define VARVE_QUERY_ENGINE_H

#include "query/budget.h"
#include "query/query.h"

struct query_engine {
    struct query_options o; /* defaults filled in */
    const struct hash_key *hash;
    struct worker *helpers; /* of queries over many series; NULL: none */
    struct counter *queries, *samples, *reads, *steps, *steps_known;
    struct histogram *seconds;
    atomic_size_t bytes;          /* that running queries hold, in steps of a MiB each */
    struct usage *usage;          /* of metric names */
    struct result_cache *results; /* of range queries; NULL: none are kept */
};

#endif
