/*
 * query.h: the one header of the query room: PromQL text → plan → vectors → JSON.
 *
 * All functions may be called from any thread; one call runs in the calling thread. What a call
 * allocates is freed when it returns, but for the answer in the caller's buf. Answers are the `data` member of the
 * Prometheus API's JSON, without envelope.
 */
#ifndef VARVE_QUERY_H
#define VARVE_QUERY_H

#include <stdatomic.h>

#include "storage/storage.h"

struct query_engine;

struct query_options {
    struct db *db;           /* borrowed */
    struct metrics *metrics; /* borrowed, may be NULL */
    struct log *log;
    int64_t lookback_ms;  /* 0 = 5 min */
    int64_t timeout_ms;   /* 0 = 2 min */
    uint64_t max_samples; /* samples a query may hold or read per step window; 0 = 50 M */
    size_t max_memory;    /* bytes a query may hold; 0 = 256 MiB */
    uint32_t max_points;  /* points per series of a range query; 0 = 11,000 */
    bool experimental;
    uint32_t threads;          /* that one query may use; 0, 1 = the caller's only */
    size_t result_cache_bytes; /* for answers of range queries; 0 = none are kept */
};

struct query_engine *query_create(const struct query_options *o);
void query_destroy(struct query_engine *q);
/* Memory that running queries hold for rows and columns, to the MiB. */
size_t query_bytes(const struct query_engine *q);
/* Memory of kept answers; and to forget them all. */
size_t query_results_bytes(const struct query_engine *q);
void query_results_forget(struct query_engine *q);

/* What one call was asked; all times ms since the epoch. */
struct query_request {
    str text;
    int64_t start_ms, end_ms; /* instant: equal */
    int64_t step_ms;          /* 0 = instant */
    int64_t timeout_ms;       /* 0 = engine's */
    int64_t lookback_ms;      /* 0 = engine's */
    uint64_t limit;           /* series in the answer; 0 = all */
    bool stats, stats_per_step, explain;
    bool nocache;                   /* neither look for a kept answer nor keep this one; so do stats and explain */
    uint64_t queued_ns;             /* time spent waiting before the call, for stats */
    bool round;                     /* numbers of vectors, matrices and scalars are rounded to ... */
    int round_digits;               /* ... so many decimal digits; negative: tens, hundreds */
    const struct match_sets *extra; /* every selector is confined to their union; NULL or n = 0: to nothing */
    const atomic_bool *canceled;    /* set by the server when the client goes away; may be NULL */
};

/* Messages that go beside the data: arrays of strings, owned by the caller (query_notes_deinit). */
struct query_notes {
    char **warnings, **infos;
    uint32_t n_warnings, n_infos;
    uint64_t samples; /* read by the query, also when it failed */
};
void query_notes_deinit(struct query_notes *n);

/* {"resultType":...,"result":...[,"stats":...]} appended to out. */
err query_run(struct query_engine *q, const struct query_request *rq, struct buf *out, struct query_notes *notes)
    __attribute__((warn_unused_result));

/* One match[] argument parsed: a set of matchers. Several sets are a union. */
struct match_sets {
    struct arena arena;
    struct match_set *sets;
    uint32_t n;
};
/* Parses n match[] texts; ERR_INVALID names the one that is wrong. Deinit also after an error. */
err match_sets_parse(const str *texts, uint32_t n, struct match_sets *out) __attribute__((warn_unused_result));

/* What a request is confined to, whatever its query or match[] says: VictoriaMetrics's extra_label and extra_filters.
 * All labels must be there, and one of the filters (selectors) must fit, if there are any. */
struct match_extra {
    const struct label *labels;
    const str *filters;
    uint32_t n_labels, n_filters;
};
/* Each match[] (none: everything) and each filter together, with the labels: n * n_filters sets. No set at all if
 * nothing is asked and nothing confines. ERR_INVALID as above. */
err match_sets_parse_confined(const str *texts, uint32_t n, const struct match_extra *extra, struct match_sets *out)
    __attribute__((warn_unused_result));
void match_sets_deinit(struct match_sets *s);

struct meta_request {
    const struct match_sets *match; /* NULL or n = 0: everything (not for series) */
    int64_t start_ms, end_ms;
    uint64_t limit; /* 0 = all; a truncated answer adds a warning */
};
/* JSON arrays, appended to out. */
err query_series(struct query_engine *q, const struct meta_request *rq, struct buf *out, struct query_notes *notes)
    __attribute__((warn_unused_result));
err query_label_names(struct query_engine *q, const struct meta_request *rq, struct buf *out, struct query_notes *notes)
    __attribute__((warn_unused_result));
err query_label_values(struct query_engine *q, str name, const struct meta_request *rq, struct buf *out,
                       struct query_notes *notes) __attribute__((warn_unused_result));
/* The same of exemplars in [start_ms, end_ms], of the series that the expression's selectors match. */
err query_exemplars(struct query_engine *q, str text, int64_t start_ms, int64_t end_ms, struct buf *out)
    __attribute__((warn_unused_result));

/* ---- remote read: Prometheus's protocol for raw samples, several queries a request */

struct read_request;
enum query_read_type { QUERY_READ_SAMPLES, QUERY_READ_CHUNKS }; /* numbers of the protocol */

/* A request's body, a snappy block. ERR_INVALID names what is wrong. */
err query_read_parse(str body, struct read_request **out) __attribute__((warn_unused_result));
void query_read_destroy(struct read_request *rq); /* NULL allowed */
/* Which answer the client prefers, of those we have. */
enum query_read_type query_read_type(const struct read_request *rq);

/* The answer in one piece, a snappy block, appended to out. Its samples and bytes count as a query's. */
err query_read_samples(struct query_engine *q, const struct read_request *rq, const atomic_bool *canceled,
                       struct buf *out) __attribute__((warn_unused_result));
/* The answer as frames of chunks, handed to emit one by one; that may block, and stops all by false (ERR_CANCELED). */
typedef bool (*query_emit_fn)(void *arg, str bytes);
err query_read_chunks(struct query_engine *q, const struct read_request *rq, const atomic_bool *canceled,
                      query_emit_fn emit, void *arg) __attribute__((warn_unused_result));

/* How often each stored metric name was queried since the start, least first. */
struct name_stats_request {
    uint64_t limit;        /* names in the answer */
    uint64_t requests_max; /* only names queried at most so often; 0: never; UINT64_MAX: any */
    str pattern;           /* n > 0: only names in which this regular expression fits somewhere */
};
/* Members of a JSON object, without its braces: "statsCollectedSince":...,"statsCollectedRecordsTotal":...,
 * "records":[...]. A selector without a metric name counts for all names that it met, up to a minute late. */
err query_name_stats(struct query_engine *q, const struct name_stats_request *rq, struct buf *out)
    __attribute__((warn_unused_result));
void query_name_stats_reset(struct query_engine *q);

/* /federate: the newest sample of each series in the lookback window, in a format that scrapers read. */
struct federate_request {
    const struct match_sets *match; /* n = 0: an empty answer */
    int64_t now_ms;
    bool protobuf; /* delimited MetricFamily messages, with native histograms; else text, without */
    bool utf8;     /* names as they are; else what old readers don't know becomes '_' */
    const atomic_bool *canceled;
};
err query_federate(struct query_engine *q, const struct federate_request *rq, struct buf *out)
    __attribute__((warn_unused_result));

/* Text helpers of the HTTP API. Time: unix seconds (float, exponent) or RFC 3339. Duration: see promql_parse_duration.
 */
err query_parse_time(str text, int64_t *ms) __attribute__((warn_unused_result));
err query_parse_duration(str text, int64_t *ms) __attribute__((warn_unused_result));

/* /api/v1/format_query: the query laid out over lines, as one JSON string. experimental as in query_options. */
err query_format(str text, bool experimental, struct buf *out) __attribute__((warn_unused_result));
/* /api/v1/parse_query: the syntax tree as JSON. */
err query_parse_tree(str text, bool experimental, struct buf *out) __attribute__((warn_unused_result));

#endif
