/*
 * self.c: /metrics.
 *
 * Request counters are made when a route answers with a code for the first time, so the page shows
 * what happens instead of hundreds of zeros; two loops that make one at the same time get the same
 * from the registry. The table of pointers is read without a lock on the hot path. Process and storage figures are
 * taken once a page (self_print) and handed out by callbacks from that snapshot; pages are printed one at a time.
 */
#include "server/self.h"

#include <stdio.h>

#include "server/active.h"
#include "server/machine.h"
#include "server/route.h"
#include "storage/base/alloc.h"
#include "storage/base/assert.h"

struct figure;

static const int codes[] = {200, 204, 304, 400, 404, 405, 408, 413, 415, 417, 422, 429, 431, 499, 500, 501, 503, 505};
#define OTHER_CODE ARRAY_LEN(codes)

struct route_counters {
    struct counter *_Atomic by_code[OTHER_CODE + 1];
    struct histogram *_Atomic seconds;
};

/* All figures of one moment. */
struct snapshot {
    struct machine_usage usage;
    struct storage_stats stats;
    struct mem_pages pages;
    uint64_t heap, connections, bodies, corruptions, waiting, running, queries_bytes, results_bytes;
    double lowest_s;
    bool ready;
};

/* What a callback of the registry gets. */
struct reading {
    const struct self *self;
    const struct figure *figure;
};

#define READINGS_MAX 96

struct self {
    struct server *server;
    struct route_counters *routes; /* one more than routes: requests that fit none */
    pthread_mutex_t printing;      /* guards `now`, which the callbacks read meanwhile */
    struct snapshot now;
    struct reading readings[READINGS_MAX];
    size_t n_readings;
};

/* ---- requests ------------------------------------------------------------------------------------------------ */

static size_t code_index(int status)
{
    for (size_t i = 0; i < ARRAY_LEN(codes); i++)
        if (codes[i] == status) return i;
    return OTHER_CODE;
}

static const char *route_name(size_t i)
{
    return i < route_count() ? route_at(i)->path : "other";
}

static struct counter *make_counter(struct self *self, size_t route, size_t code, int status)
{
    char labels[160];
    snprintf(labels, sizeof labels, "path=\"%s\",code=\"%d\"", route_name(route), status);
    struct counter *c = metrics_counter(self->server->metrics, "varve_http_requests_total", labels,
                                        "Requests answered, by path and status code.");
    atomic_store(&self->routes[route].by_code[code], c);
    return c;
}

static struct histogram *make_histogram(struct self *self, size_t route)
{
    char labels[128];
    snprintf(labels, sizeof labels, "path=\"%s\"", route_name(route));
    struct histogram *h = metrics_histogram(self->server->metrics, "varve_http_request_duration_seconds", labels,
                                            "Time from a complete request to its answer, by path.");
    atomic_store(&self->routes[route].seconds, h);
    return h;
}

void self_observe(struct self *self, const struct exchange *x)
{
    size_t route = x->route != NULL ? route_index(x->route) : route_count();
    size_t code = code_index(x->out.status);
    struct counter *c = atomic_load_explicit(&self->routes[route].by_code[code], memory_order_acquire);
    if (c == NULL) c = make_counter(self, route, code, x->out.status);
    counter_inc(c);
    if (x->route == NULL || x->start_ns == 0) return;
    struct histogram *h = atomic_load_explicit(&self->routes[route].seconds, memory_order_acquire);
    if (h == NULL) h = make_histogram(self, route);
    histogram_observe(h, (double)(uv_hrtime() - x->start_ns) / 1e9);
}

/* ---- figures ------------------------------------------------------------------------------------------------- */

/* One row a figure: what it is called and where its value lies in struct snapshot. */
enum figure_type { FIGURE_U64, FIGURE_F64, FIGURE_BOOL };

struct figure {
    const char *kind, *name, *help;
    enum figure_type type;
    size_t at;
};

#define AT(field) offsetof(struct snapshot, field)

static const struct figure process_figures[] = {
    {"counter", "process_cpu_seconds_total", "User and system CPU time, in seconds.", FIGURE_F64, AT(usage.cpu_s)},
    {"gauge", "process_start_time_seconds", "Start of the process, seconds since the epoch.", FIGURE_F64,
     AT(usage.start_s)},
    {"gauge", "process_resident_memory_bytes", "Resident memory.", FIGURE_U64, AT(usage.resident)},
    {"gauge", "process_virtual_memory_bytes", "Virtual memory.", FIGURE_U64, AT(usage.virtual_bytes)},
    {"gauge", "process_open_fds", "Open file descriptors.", FIGURE_U64, AT(usage.open_files)},
    {"gauge", "process_max_fds", "Largest number of open file descriptors allowed.", FIGURE_U64, AT(usage.max_files)},
    {"gauge", "process_threads", "Threads.", FIGURE_U64, AT(usage.threads)},
    {"gauge", "varve_heap_bytes", "Heap memory given out by the allocator.", FIGURE_U64, AT(heap)},
    {"gauge", "varve_allocator_active_bytes", "Pages that the allocator has given out parts of.", FIGURE_U64,
     AT(pages.active)},
    {"gauge", "varve_allocator_resident_bytes", "Pages of the allocator in memory.", FIGURE_U64, AT(pages.resident)},
    {"gauge", "varve_allocator_retained_bytes", "Address space that the allocator keeps without pages.", FIGURE_U64,
     AT(pages.retained)},
    {"gauge", "varve_http_connections", "Open HTTP connections.", FIGURE_U64, AT(connections)},
    {"gauge", "varve_http_body_bytes", "Memory held by request bodies.", FIGURE_U64, AT(bodies)},
    {"gauge", "varve_query_running", "Queries that workers run now; short ones on the loops are not among them.",
     FIGURE_U64, AT(running)},
    {"gauge", "varve_query_waiting", "Queries waiting for a free worker.", FIGURE_U64, AT(waiting)},
    {"gauge", "varve_ready", "1 when the storage is open and requests are served.", FIGURE_BOOL, AT(ready)},
    {"counter", "varve_corruption_errors_total", "Damaged bytes met when reading.", FIGURE_U64, AT(corruptions)},
};

static const struct figure storage_figures[] = {
    {"gauge", "varve_storage_head_series", "Series with samples in the head.", FIGURE_U64, AT(stats.head_series)},
    {"gauge", "varve_storage_head_samples", "Samples in the head.", FIGURE_U64, AT(stats.head_samples)},
    {"gauge", "varve_storage_head_bytes", "Memory of the head's samples.", FIGURE_U64, AT(stats.head_bytes)},
    {"gauge", "varve_storage_registry_series", "Series known to the registry.", FIGURE_U64, AT(stats.registry_series)},
    {"gauge", "varve_storage_symbols", "Distinct label strings in memory.", FIGURE_U64, AT(stats.symbols)},
    {"gauge", "varve_storage_wal_bytes", "Size of the write-ahead log.", FIGURE_U64, AT(stats.wal_bytes)},
    {"gauge", "varve_storage_wal_segments", "Segments of the write-ahead log.", FIGURE_U64, AT(stats.wal_segments)},
    {"gauge", "varve_storage_parts", "Part files.", FIGURE_U64, AT(stats.parts)},
    {"gauge", "varve_storage_part_samples", "Samples in parts.", FIGURE_U64, AT(stats.part_samples)},
    {"gauge", "varve_storage_part_bytes", "Size of all parts.", FIGURE_U64, AT(stats.part_bytes)},
    {"gauge", "varve_storage_damaged_parts", "Parts with damage found.", FIGURE_U64, AT(stats.damaged_parts)},
    {"gauge", "varve_storage_cache_bytes", "Decoded frames in the cache.", FIGURE_U64, AT(stats.cache_bytes)},
    {"gauge", "varve_storage_exemplars", "Exemplars kept.", FIGURE_U64, AT(stats.exemplars.exemplars)},
    {"gauge", "varve_storage_exemplar_series", "Series that have exemplars.", FIGURE_U64, AT(stats.exemplars.series)},
    {"gauge", "varve_storage_exemplar_bytes", "Memory of the exemplars and their series.", FIGURE_U64,
     AT(stats.exemplars.bytes)},
    {"gauge", "varve_storage_partitions", "Months that have parts.", FIGURE_U64, AT(stats.partitions)},
    {"gauge", "varve_storage_merges_running", "Merges under way.", FIGURE_U64, AT(stats.merges_running)},
    {"gauge", "varve_storage_snapshots", "Snapshots kept.", FIGURE_U64, AT(stats.snapshots)},
    {"gauge", "varve_storage_write_amplification_ratio",
     "Bytes of parts written by flushes and merges for each byte written to the log, since the start.", FIGURE_F64,
     AT(stats.write_amplification)},
    {"gauge", "varve_storage_read_only", "1 when low disk space makes the database refuse writes.", FIGURE_BOOL,
     AT(stats.read_only)},
    {"gauge", "prometheus_tsdb_lowest_timestamp_seconds", "Time of the oldest sample, as Thanos asks for it.",
     FIGURE_F64, AT(lowest_s)},
};

#define MEMORY(field)                                                                                                  \
    {                                                                                                                  \
        "gauge", "varve_memory_bytes",                                                                                 \
            "Memory by purpose; what the heap has beyond is buffers and records of connections and requests.",         \
            FIGURE_U64, AT(field)                                                                                      \
    }

static const struct {
    const char *labels;
    struct figure figure;
} purposes[] = {{"purpose=\"head\"", MEMORY(stats.head_bytes)},
                {"purpose=\"cache\"", MEMORY(stats.cache_bytes)},
                {"purpose=\"registry\"", MEMORY(stats.registry_bytes)},
                {"purpose=\"part_indexes\"", MEMORY(stats.part_index_bytes)},
                {"purpose=\"exemplars\"", MEMORY(stats.exemplars.bytes)},
                {"purpose=\"queries\"", MEMORY(queries_bytes)},
                {"purpose=\"results\"", MEMORY(results_bytes)},
                {"purpose=\"request_bodies\"", MEMORY(bodies)}};

static double figure_read(void *arg)
{
    const struct reading *r = arg;
    const char *at = (const char *)&r->self->now + r->figure->at;
    uint64_t bits = 0;
    memcpy(&bits, at, r->figure->type == FIGURE_BOOL ? sizeof(bool) : sizeof bits);
    return r->figure->type == FIGURE_F64 ? f64_from_bits(bits) : (double)bits;
}

/* Oldest sample anywhere, in seconds; 0 if there is none. */
static double lowest_time(const struct storage_stats *st)
{
    int64_t t = INT64_MAX;
    if (st->head_samples > 0 && st->head_t_min < t) t = st->head_t_min;
    if (st->parts > 0 && st->part_t_min < t) t = st->part_t_min;
    return t == INT64_MAX ? 0 : (double)t / 1e3;
}

static void snapshot_take(struct snapshot *now, struct server *s)
{
    machine_usage(&now->usage);
    now->heap = mem_in_use();
    now->pages = mem_pages();
    now->connections = atomic_load(&s->connections);
    now->bodies = atomic_load(&s->body_bytes);
    now->corruptions = err_corrupt_count();
    now->ready = server_is_ready(s);
    if (!now->ready) return;
    now->waiting = worker_queued(s->queries);
    now->running = active_count(s->active);
    now->queries_bytes = query_bytes(s->engine);
    now->results_bytes = query_results_bytes(s->engine);
    storage_stats(s->db, &now->stats);
    now->lowest_s = lowest_time(&now->stats);
}

static double build_info(void *arg)
{
    (void)arg;
    return 1;
}

static void register_figure(struct self *self, const struct figure *f, const char *labels)
{
    check(self->n_readings < READINGS_MAX);
    struct reading *r = &self->readings[self->n_readings++];
    *r = (struct reading){self, f};
    metrics_callback(self->server->metrics, f->kind, f->name, labels, f->help, figure_read, r);
}

static void register_figures(struct self *self, const struct figure *f, size_t n)
{
    for (size_t i = 0; i < n; i++)
        register_figure(self, &f[i], NULL);
}

struct self *self_create(struct server *s)
{
    struct self *self = mem_zalloc(sizeof *self);
    self->server = s;
    self->routes = mem_zalloc((route_count() + 1) * sizeof *self->routes);
    pthread_mutex_init(&self->printing, NULL);
    metrics_callback(s->metrics, "gauge", "varve_build_info",
                     "version=\"" VARVE_VERSION "\",revision=\"" VARVE_REVISION "\"", "Always 1; what was built.",
                     build_info, self);
    register_figures(self, process_figures, ARRAY_LEN(process_figures));
    return self;
}

void self_destroy(struct self *self)
{
    if (self == NULL) return;
    pthread_mutex_destroy(&self->printing);
    mem_free(self->routes);
    mem_free(self);
}

void self_register_storage(struct self *self)
{
    register_figures(self, storage_figures, ARRAY_LEN(storage_figures));
    for (size_t i = 0; i < ARRAY_LEN(purposes); i++)
        register_figure(self, &purposes[i].figure, purposes[i].labels);
}

void self_print(struct self *self, struct buf *out)
{
    pthread_mutex_lock(&self->printing);
    snapshot_take(&self->now, self->server);
    metrics_print(self->server->metrics, out);
    pthread_mutex_unlock(&self->printing);
}
