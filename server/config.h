/*
 * config.h: what the operator can set: one table of options, filled from flags and the environment.
 *
 * A flag wins over the environment, which wins over the default. Every option exists in both:
 * --storage.path is VARVE_STORAGE_PATH. Filled once at start; read-only afterwards, any thread.
 */
#ifndef VARVE_SERVER_CONFIG_H
#define VARVE_SERVER_CONFIG_H

#include "storage/base/buf.h"

#define CONFIG_LISTEN_MAX 8

struct config {
    /* web */
    const char *listen; /* comma-separated addresses */
    uint64_t max_body_bytes;
    uint64_t max_connections;
    const char *cors_origin;
    bool admin_api, lifecycle;
    int compression; /* enum config_compression */
    uint64_t web_threads;
    int64_t head_timeout_ms, body_timeout_ms, idle_timeout_ms;
    /* storage */
    const char *storage_path;
    int64_t retention_ms; /* 0 = unlimited */
    int64_t future_ms;
    int wal_sync; /* enum wal_sync */
    uint64_t min_free_disk;
    uint64_t head_max_bytes, wal_max_bytes, cache_bytes; /* 0 = derived */
    int64_t dedup_ms;
    int64_t snapshot_max_ms; /* 0 = never */
    uint64_t max_exemplars;  /* 0 = none are kept */
    /* memory */
    uint64_t memory_limit; /* 0 = derived */
    /* query */
    int64_t query_timeout_ms, lookback_ms;
    int64_t query_slow_ms; /* 0 = none is logged */
    uint64_t query_max_samples, query_max_memory, query_concurrency, query_max_points, query_threads;
    uint64_t query_cache_bytes; /* 0 = derived */
    bool query_experimental;
    /* log */
    int log_level; /* enum log_level */
    int log_json;
};

enum config_compression { COMPRESSION_OFF, COMPRESSION_GZIP };

/*
 * Fills c from defaults, the environment and argv[1..argc). Words that are no flags are left, in order, in
 * rest[*n_rest] (room for argc). ERR_INVALID names the flag or variable and what is wrong. Strings are those of argv
 * and environment.
 */
err config_load(struct config *c, int argc, char **argv, char **environment, char **rest, int *n_rest)
    __attribute__((warn_unused_result));
/* Fills in what depends on the machine: memory, threads, budgets. */
void config_derive(struct config *c, uint64_t machine_memory, unsigned cores);

void config_print_help(struct buf *out);

/* The options as they are in effect, in the table's order: flag, and the value appended as a flag would take it. True
 * from config_option: the value is a text or a word, so YAML has to have it in quotes. */
size_t config_option_count(void);
str config_option_flag(size_t i);
bool config_option(const struct config *c, size_t i, struct buf *value);

/* "15d", "1h30m", "1y", "500ms", "0" and plain seconds → ms; "512MiB", "1GB", plain bytes. */
bool config_parse_duration(str s, int64_t *ms);
bool config_parse_size(str s, uint64_t *bytes);
/* The other way round, exactly: "1h30m", "64MiB", "0". */
void config_print_duration(int64_t ms, struct buf *out);
void config_print_size(uint64_t bytes, struct buf *out);

#endif
