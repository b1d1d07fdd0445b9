/*
 * fuzz_remote_read.c: any bytes as a remote read request, packed and as they are; what parses is answered both ways
 * from a small database. Refusals are ERR_INVALID (or a size, of what comes packed); answers hold their bounds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "query/query.h"
#include "storage/base/snappy.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct state {
    char path[64];
    struct db *db;
    struct query_engine *engine;
};

static struct state fuzz; /* the process's */

static err resolve(void *arg, uint32_t i, struct arena *a, struct labels *out)
{
    static const char *const names[] = {"up", "down", "http.requests"};
    (void)arg;
    out->n = 2;
    out->v = arena_alloc(a, 2 * sizeof *out->v);
    out->v[0] = (struct label){LABEL_NAME, str_of(names[i])};
    out->v[1] = (struct label){STR("job"), STR("a")};
    return NULL;
}

/* The folder goes when the run ends by itself; a crash keeps it. */
__attribute__((destructor)) static void close_all(void)
{
    char command[128];
    if (fuzz.db == NULL) return;
    query_destroy(fuzz.engine);
    storage_abandon(fuzz.db);
    snprintf(command, sizeof command, "rm -rf %s", fuzz.path);
    if (system(command) != 0) abort();
}

static void open_all(void)
{
    static const int64_t t[] = {1000, 2000, 3000};
    static const double v[] = {1, 2, 3};
    if (fuzz.db != NULL) return;
    snprintf(fuzz.path, sizeof fuzz.path, "/tmp/varve-fuzz-XXXXXX");
    if (mkdtemp(fuzz.path) == NULL) abort();
    struct storage_options o = {.path = fuzz.path, .wal_sync = WAL_SYNC_OFF, .retention_ms = INT64_MAX / 4};
    if (storage_open(&o, &fuzz.db) != NULL) abort();
    struct batch_series rows[3];
    for (uint32_t i = 0; i < 3; i++)
        rows[i] = (struct batch_series){.alias = {.hi = i + 1, .lo = 7}, .raw = "x", .raw_bytes = 1, .n = 1};
    struct batch b = {.series = rows, .n_series = 3, .t = t, .v = v, .n_samples = 3, .resolve = resolve};
    struct append_result r;
    if (storage_append(fuzz.db, &b, &r) != NULL || r.accepted != 3) abort();
    struct query_options qo = {.db = fuzz.db, .timeout_ms = 5000};
    fuzz.engine = query_create(&qo);
}

static bool check_frame(void *arg, str bytes)
{
    (void)arg;
    if (bytes.n < 6 || bytes.n > (1u << 20) + 16) abort();
    return true;
}

static void check_outcome(err e)
{
    enum err_code code = err_code(e);
    if (code != ERR_OK && code != ERR_LIMIT && code != ERR_TIMEOUT) abort(); /* regexes and budgets have limits */
    err_free(e);
}

static void read_both(const struct read_request *rq)
{
    struct buf packed = {0}, raw = {.max = 1u << 30};
    err e = query_read_samples(fuzz.engine, rq, NULL, &packed);
    if (e == NULL && snappy_expand(packed.data, packed.n, &raw) != NULL) abort();
    check_outcome(e);
    check_outcome(query_read_chunks(fuzz.engine, rq, NULL, check_frame, NULL));
    buf_deinit(&packed);
    buf_deinit(&raw);
}

static void request(str body)
{
    struct read_request *rq = NULL;
    err e = query_read_parse(body, &rq);
    enum err_code code = err_code(e);
    if (code != ERR_OK && code != ERR_INVALID && code != ERR_TOO_LARGE && code != ERR_LIMIT) abort();
    if (e == NULL) read_both(rq);
    err_free(e);
    query_read_destroy(rq);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct buf packed = {0};
    open_all();
    snappy_pack(data, size, &packed);
    request(buf_as_str(&packed));
    request((str){(const char *)data, size});
    buf_deinit(&packed);
    return 0;
}
