/*
 * config.c: the option table, and the parsers of its value types.
 *
 * One row an option: flag, type, place in struct config, default as text, help. --help, the
 * environment's names and the defaults all come from the table; a new option is a new row and a
 * field. Nothing is read or opened here, so a wrong value is found before anything happens.
 */
#include "server/config.h"

#include <ctype.h>
#include <stdio.h>

#include "storage/base/num.h"
#include "storage/storage.h"

enum option_type { OPTION_TEXT, OPTION_FLAG, OPTION_COUNT, OPTION_SIZE, OPTION_DURATION, OPTION_CHOICE };

struct choice {
    const char *name;
    int value;
};

struct option {
    const char *flag;
    enum option_type type;
    size_t at; /* in struct config */
    const char *initial;
    const char *help;
    const struct choice *choices; /* OPTION_CHOICE: up to a NULL name */
};

static const struct choice compressions[] = {{"gzip", COMPRESSION_GZIP}, {"off", COMPRESSION_OFF}, {NULL, 0}};
static const struct choice wal_syncs[] = {
    {"always", WAL_SYNC_ALWAYS}, {"1s", WAL_SYNC_1S}, {"off", WAL_SYNC_OFF}, {NULL, 0}};
static const struct choice log_levels[] = {
    {"debug", LOG_DEBUG}, {"info", LOG_INFO}, {"warn", LOG_WARN}, {"error", LOG_ERROR}, {NULL, 0}};
static const struct choice log_formats[] = {{"logfmt", 0}, {"json", 1}, {NULL, 0}};

#define AT(field) offsetof(struct config, field)

static const struct option options[] = {
    {"web.listen-address", OPTION_TEXT, AT(listen), ":8428",
     "addresses to listen on, separated by commas; without a host: all interfaces, IPv4 and IPv6", NULL},
    {"web.max-body-size", OPTION_SIZE, AT(max_body_bytes), "64MiB",
     "largest request body as received; at most a quarter of the memory limit", NULL},
    {"web.max-connections", OPTION_COUNT, AT(max_connections), "10000", "connections open at once", NULL},
    {"web.cors.origin", OPTION_TEXT, AT(cors_origin), ".*",
     "regular expression of the origins that browsers may call from; empty: none", NULL},
    {"web.enable-admin-api", OPTION_FLAG, AT(admin_api), "false",
     "let clients delete series (delete_series and clean_tombstones under /api/v1/admin/tsdb)", NULL},
    {"web.enable-lifecycle", OPTION_FLAG, AT(lifecycle), "false", "let clients end the server (/-/quit, /-/reload)",
     NULL},
    {"web.compression", OPTION_CHOICE, AT(compression), "gzip", "compress answers for clients that ask for it",
     compressions},
    {"web.threads", OPTION_COUNT, AT(web_threads), "0", "event loops; 0: one a core, 4 at most", NULL},
    {"web.header-timeout", OPTION_DURATION, AT(head_timeout_ms), "10s", "longest a request's headers may take to come",
     NULL},
    {"web.body-timeout", OPTION_DURATION, AT(body_timeout_ms), "30s", "longest pause inside a request's body", NULL},
    {"web.idle-timeout", OPTION_DURATION, AT(idle_timeout_ms), "2m", "longest pause between requests of a connection",
     NULL},
    {"storage.path", OPTION_TEXT, AT(storage_path), "varve-data", "data directory", NULL},
    {"storage.retention", OPTION_DURATION, AT(retention_ms), "1y", "how long samples are kept; 0: for ever", NULL},
    {"storage.future-window", OPTION_DURATION, AT(future_ms), "2d",
     "how far in the future a sample's timestamp may lie", NULL},
    {"storage.wal-sync", OPTION_CHOICE, AT(wal_sync), "always",
     "when the log is synced: before a write is acknowledged, each second, or by the system", wal_syncs},
    {"storage.min-free-disk", OPTION_SIZE, AT(min_free_disk), "100MiB", "free space below which writes are refused",
     NULL},
    {"storage.head-max-bytes", OPTION_SIZE, AT(head_max_bytes), "0",
     "memory for samples not yet in parts; 0: from the memory limit", NULL},
    {"storage.wal-max-bytes", OPTION_SIZE, AT(wal_max_bytes), "0",
     "size of the log at which the head is written out; 0: the engine's", NULL},
    {"storage.cache-bytes", OPTION_SIZE, AT(cache_bytes), "0", "cache of decoded data; 0: from the memory limit", NULL},
    {"storage.dedup-interval", OPTION_DURATION, AT(dedup_ms), "0",
     "keep only the last sample of each interval when merging; 0: keep all", NULL},
    {"storage.max-exemplars", OPTION_COUNT, AT(max_exemplars), "100000",
     "exemplars kept, of all series together: the newest push out the oldest; 0: none", NULL},
    {"storage.snapshots-max-age", OPTION_DURATION, AT(snapshot_max_ms), "3d",
     "age at which snapshots with names of the server's are removed; 0: never", NULL},
    {"memory.limit", OPTION_SIZE, AT(memory_limit), "0",
     "memory that budgets are derived from; 0: 60% of the container's or machine's", NULL},
    {"query.timeout", OPTION_DURATION, AT(query_timeout_ms), "2m", "longest a query may run", NULL},
    {"query.max-samples", OPTION_COUNT, AT(query_max_samples), "50000000", "samples one query may hold", NULL},
    {"query.max-memory", OPTION_SIZE, AT(query_max_memory), "0", "memory one query may use; 0: from the memory limit",
     NULL},
    {"query.concurrency", OPTION_COUNT, AT(query_concurrency), "0",
     "queries that run at once, others wait; 0: one a core, 4 at least", NULL},
    {"query.threads", OPTION_COUNT, AT(query_threads), "0",
     "threads that one query over many series may use; 0: one a core, 8 at most", NULL},
    {"query.cache-bytes", OPTION_SIZE, AT(query_cache_bytes), "0",
     "answers to range queries that are kept for the next refresh; 0: from the memory limit, 1: none", NULL},
    {"query.lookback-delta", OPTION_DURATION, AT(lookback_ms), "5m",
     "how old the newest sample of a series may be to count as its value", NULL},
    {"query.log-slower-than", OPTION_DURATION, AT(query_slow_ms), "5s", "log queries that take longer; 0: none", NULL},
    {"query.experimental", OPTION_FLAG, AT(query_experimental), "false", "allow experimental functions", NULL},
    {"query.max-points", OPTION_COUNT, AT(query_max_points), "11000", "points per series of a range query", NULL},
    {"log.level", OPTION_CHOICE, AT(log_level), "info", "least important messages to log", log_levels},
    {"log.format", OPTION_CHOICE, AT(log_json), "logfmt", "form of the log", log_formats},
};

/* ---- values -------------------------------------------------------------------------------------------------- */

struct unit {
    const char *name;
    double factor;
};

static const struct unit durations[] = {{"ms", 1},    {"s", 1e3},       {"m", 6e4},        {"h", 3.6e6},
                                        {"d", 864e5}, {"w", 7 * 864e5}, {"y", 365 * 864e5}};
static const struct unit sizes[] = {{"B", 1},           {"KB", 1e3},           {"MB", 1e6},
                                    {"GB", 1e9},        {"TB", 1e12},          {"KiB", 1024.0},
                                    {"MiB", 1048576.0}, {"GiB", 1073741824.0}, {"TiB", 1099511627776.0}};

/* One number and its unit off the front of *s; false if that is not what stands there. */
static bool take_quantity(str *s, const struct unit *units, size_t n_units, double *out)
{
    size_t digits = 0, letters = 0;
    while (digits < s->n && (isdigit((unsigned char)s->p[digits]) || s->p[digits] == '.'))
        digits++;
    while (digits + letters < s->n && isalpha((unsigned char)s->p[digits + letters]))
        letters++;
    str name = {s->p + digits, letters};
    double number;
    if (digits == 0 || !num_parse_double((str){s->p, digits}, &number)) return false;
    for (size_t i = 0; i < n_units; i++) {
        if (!str_eq(name, str_of(units[i].name))) continue;
        *out = number * units[i].factor;
        *s = (str){s->p + digits + letters, s->n - digits - letters};
        return true;
    }
    return false;
}

bool config_parse_duration(str s, int64_t *ms)
{
    double number, total = 0;
    if (s.n > 0 && isdigit((unsigned char)s.p[s.n - 1])) { /* plain seconds */
        if (!isdigit((unsigned char)s.p[0]) || !num_parse_double(s, &number)) return false;
        total = number * 1e3;
        s.n = 0;
    } else if (s.n == 0) {
        return false;
    }
    while (s.n > 0) {
        if (!take_quantity(&s, durations, ARRAY_LEN(durations), &number)) return false;
        total += number;
    }
    if (!(total >= 0 && total < 9e15)) return false;
    *ms = (int64_t)total;
    return true;
}

bool config_parse_size(str s, uint64_t *bytes)
{
    double number;
    int64_t plain;
    if (num_parse_i64(s, &plain)) {
        *bytes = (uint64_t)plain;
        return plain >= 0;
    }
    if (!take_quantity(&s, sizes, ARRAY_LEN(sizes), &number) || s.n > 0 || !(number < 9e18)) return false;
    *bytes = (uint64_t)number;
    return true;
}

static bool parse_flag(str s, bool *v)
{
    if (str_eq(s, STR("true")) || str_eq(s, STR("1")))
        *v = true;
    else if (str_eq(s, STR("false")) || str_eq(s, STR("0")))
        *v = false;
    else
        return false;
    return true;
}

static bool parse_choice(const struct option *o, str s, int *v)
{
    for (const struct choice *c = o->choices; c->name != NULL; c++) {
        if (!str_eq(s, str_of(c->name))) continue;
        *v = c->value;
        return true;
    }
    return false;
}

static bool parse_count(str s, uint64_t *v)
{
    int64_t n;
    if (!num_parse_i64(s, &n) || n < 0) return false;
    *v = (uint64_t)n;
    return true;
}

/* Stores the value; text is the caller's for as long as c lives. */
static bool option_set(struct config *c, const struct option *o, const char *text)
{
    void *at = (char *)c + o->at;
    str s = str_of(text);
    switch (o->type) {
    case OPTION_TEXT:
        *(const char **)at = text;
        return true;
    case OPTION_FLAG:
        return parse_flag(s, at);
    case OPTION_COUNT:
        return parse_count(s, at);
    case OPTION_SIZE:
        return config_parse_size(s, at);
    case OPTION_DURATION:
        return config_parse_duration(s, at);
    case OPTION_CHOICE:
        return parse_choice(o, s, at);
    }
    return false;
}

static const char *expected(const struct option *o, char *text, size_t n)
{
    switch (o->type) {
    case OPTION_FLAG:
        return "true or false";
    case OPTION_COUNT:
        return "a number";
    case OPTION_SIZE:
        return "a size, such as 512MiB";
    case OPTION_DURATION:
        return "a duration, such as 15d or 1h30m";
    case OPTION_CHOICE:
        break;
    case OPTION_TEXT:
        return "a text";
    }
    size_t at = (size_t)snprintf(text, n, "one of");
    for (const struct choice *c = o->choices; c->name != NULL && at < n; c++)
        at += (size_t)snprintf(text + at, n - at, " %s", c->name);
    return text;
}

static err option_apply(struct config *c, const struct option *o, const char *source, const char *text)
{
    char room[128];
    if (option_set(c, o, text)) return NULL;
    return err_new(ERR_INVALID, "%s: \"%s\" is not %s", source, text, expected(o, room, sizeof room));
}

/* ---- sources ------------------------------------------------------------------------------------------------- */

#define VARIABLE_MAX 64

/* storage.path → VARVE_STORAGE_PATH */
static void variable_name(const struct option *o, char *out)
{
    int n = snprintf(out, VARIABLE_MAX, "VARVE_%s", o->flag);
    for (int i = 6; i < n && i < VARIABLE_MAX; i++)
        out[i] = isalnum((unsigned char)out[i]) ? (char)toupper((unsigned char)out[i]) : '_';
}

static err load_environment(struct config *c, char **environment)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        char name[VARIABLE_MAX];
        variable_name(&options[i], name);
        size_t n = strlen(name);
        for (char **e = environment; e != NULL && *e != NULL; e++)
            if (strncmp(*e, name, n) == 0 && (*e)[n] == '=') TRY(option_apply(c, &options[i], name, *e + n + 1));
    }
    return NULL;
}

static const struct option *option_find(str flag)
{
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        if (str_eq(flag, str_of(options[i].flag))) return &options[i];
    return NULL;
}

/* --name=value, --name value, --switch, --no-switch. *i moves over a value that is a word of its own. */
static err load_flag(struct config *c, int argc, char **argv, int *i)
{
    const char *word = argv[*i];
    const char *name = word + 2;
    const char *equals = strchr(name, '=');
    str flag = {name, equals != NULL ? (size_t)(equals - name) : strlen(name)};
    const struct option *o = option_find(flag);
    if (o == NULL && equals == NULL && strncmp(name, "no-", 3) == 0) {
        o = option_find(str_of(name + 3));
        if (o != NULL && o->type == OPTION_FLAG) return option_apply(c, o, word, "false");
        o = NULL;
    }
    if (o == NULL) return err_new(ERR_INVALID, "unknown flag --%.*s (see --help)", STR_ARG(flag));
    char source[VARIABLE_MAX];
    snprintf(source, sizeof source, "--%s", o->flag);
    if (equals != NULL) return option_apply(c, o, source, equals + 1);
    if (o->type == OPTION_FLAG) return option_apply(c, o, source, "true");
    if (*i + 1 >= argc) return err_new(ERR_INVALID, "%s needs a value", source);
    *i += 1;
    return option_apply(c, o, source, argv[*i]);
}

err config_load(struct config *c, int argc, char **argv, char **environment, char **rest, int *n_rest)
{
    *c = (struct config){0};
    *n_rest = 0;
    for (size_t i = 0; i < ARRAY_LEN(options); i++)
        TRY(option_apply(c, &options[i], options[i].flag, options[i].initial));
    TRY(load_environment(c, environment));
    for (int i = 1; i < argc; i++) {
        if (strncmp(argv[i], "--", 2) == 0)
            TRY(load_flag(c, argc, argv, &i));
        else if (argv[i][0] == '-' && argv[i][1] != '\0')
            return err_new(ERR_INVALID, "unknown flag %s (flags begin with --, see --help)", argv[i]);
        else
            rest[(*n_rest)++] = argv[i];
    }
    return NULL;
}

/* ---- the other way round ------------------------------------------------------------------------------------- */

void config_print_duration(int64_t ms, struct buf *out)
{
    static const struct {
        const char *name;
        int64_t ms;
        bool whole; /* only if nothing is left over: 1y, but not 1y1d */
    } units[] = {{"y", INT64_C(365) * 86400000, true},
                 {"w", INT64_C(7) * 86400000, true},
                 {"d", 86400000, false},
                 {"h", 3600000, false},
                 {"m", 60000, false},
                 {"s", 1000, false},
                 {"ms", 1, false}};
    if (ms == 0) buf_str(out, STR("0"));
    for (size_t i = 0; i < ARRAY_LEN(units); i++) {
        int64_t n = ms / units[i].ms;
        if (n == 0 || (units[i].whole && n * units[i].ms != ms)) continue;
        buf_printf(out, "%lld%s", (long long)n, units[i].name);
        ms -= n * units[i].ms;
    }
}

void config_print_size(uint64_t bytes, struct buf *out)
{
    static const char *const names[] = {"", "KiB", "MiB", "GiB", "TiB"};
    size_t unit = 0;
    while (bytes > 0 && bytes % 1024 == 0 && unit + 1 < ARRAY_LEN(names)) {
        bytes /= 1024;
        unit++;
    }
    buf_printf(out, "%llu%s", (unsigned long long)bytes, names[unit]);
}

size_t config_option_count(void)
{
    return ARRAY_LEN(options);
}

str config_option_flag(size_t i)
{
    return str_of(options[i].flag);
}

bool config_option(const struct config *c, size_t i, struct buf *value)
{
    const struct option *o = &options[i];
    const void *at = (const char *)c + o->at;
    switch (o->type) {
    case OPTION_TEXT:
        buf_str(value, str_of(*(const char *const *)at));
        break;
    case OPTION_FLAG:
        buf_str(value, str_of(*(const bool *)at ? "true" : "false"));
        break;
    case OPTION_COUNT:
        buf_printf(value, "%llu", (unsigned long long)*(const uint64_t *)at);
        break;
    case OPTION_SIZE:
        config_print_size(*(const uint64_t *)at, value);
        break;
    case OPTION_DURATION:
        config_print_duration(*(const int64_t *)at, value);
        break;
    case OPTION_CHOICE:
        for (const struct choice *choice = o->choices; choice->name != NULL; choice++)
            if (choice->value == *(const int *)at) buf_str(value, str_of(choice->name));
        break;
    }
    return o->type == OPTION_TEXT || o->type == OPTION_CHOICE;
}

/* ---- budgets ------------------------------------------------------------------------------------------------- */

static uint64_t at_most(uint64_t v, uint64_t max)
{
    return v < max ? v : max;
}

void config_derive(struct config *c, uint64_t machine_memory, unsigned cores)
{
    const uint64_t mib = 1u << 20;
    if (c->memory_limit == 0) c->memory_limit = machine_memory / 10 * 6;
    if (c->memory_limit < 32 * mib) c->memory_limit = 32 * mib;
    if (c->head_max_bytes == 0) c->head_max_bytes = at_most(c->memory_limit / 6, 96 * mib);
    if (c->cache_bytes == 0) c->cache_bytes = at_most(c->memory_limit / 16, 64 * mib);
    if (c->query_cache_bytes == 0) c->query_cache_bytes = at_most(c->memory_limit / 32, 64 * mib);
    if (c->query_max_memory == 0) c->query_max_memory = at_most(c->memory_limit / 4, 1024 * mib);
    c->max_body_bytes = at_most(c->max_body_bytes, c->memory_limit / 4);
    if (c->web_threads == 0) c->web_threads = at_most(cores, 4);
    if (c->query_threads == 0) c->query_threads = at_most(cores, 8);
    if (c->query_concurrency == 0) c->query_concurrency = cores > 4 ? cores : 4;
}

/* ---- help ---------------------------------------------------------------------------------------------------- */

void config_print_help(struct buf *out)
{
    buf_str(out, STR("Options, each also as an environment variable (--storage.path: VARVE_STORAGE_PATH):\n\n"));
    for (size_t i = 0; i < ARRAY_LEN(options); i++) {
        const struct option *o = &options[i];
        char room[128];
        buf_printf(out, "  --%s%s%s\n      %s", o->flag, o->type == OPTION_FLAG ? "" : "=",
                   o->type == OPTION_FLAG ? "" : o->initial, o->help);
        if (o->type == OPTION_CHOICE) buf_printf(out, " (%s)", expected(o, room, sizeof room));
        buf_str(out, STR("\n"));
    }
}
