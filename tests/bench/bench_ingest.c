/*
 * bench_ingest.c: what a remote write sample costs before storage: snappy, the walk, the hash; and all
 * of it with storage behind. Prints nanoseconds a sample, the best of several rounds.
 *
 *   bench_ingest [bodies]     bodies: a file made by `loadgen gen` (compressed requests of 5,000 samples)
 *
 * Without a file it makes bodies of its own: 20 of 5,000 known series, six labels, some 137 bytes each.
 * They are compressed by libsnappy, if that is installed; else the snappy figure is left out.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "ingest/admit.h"
#include "ingest/remote_write.h"
#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/base/snappy.h"

#define ROUNDS 15
#define BODIES_MAX 4096

struct body {
    str packed, raw; /* packed: n = 0 if there is no compressor */
    size_t samples;
};

struct bench {
    struct body bodies[BODIES_MAX];
    size_t n, samples, raw_bytes;
    struct db *db;
};

/* Of this thread's processor time: other programs on the machine must not count. */
static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void stop(err e)
{
    fprintf(stderr, "bench_ingest: %s\n", err_message(e));
    exit(1);
}

/* ---- bodies ------------------------------------------------------------------------------------- */

static void put_label(struct buf *b, const char *name, const char *value)
{
    buf_u8(b, 0x0a);
    buf_varint(b, strlen(name) + strlen(value) + 4);
    buf_u8(b, 0x0a);
    buf_lenstr(b, str_of(name));
    buf_u8(b, 0x12);
    buf_lenstr(b, str_of(value));
}

static void put_series(struct buf *body, int host, int number, int64_t t)
{
    struct buf s = {0};
    char name[64], instance[32], device[32];
    snprintf(name, sizeof name, "node_something_measured_%d_total", number % 100);
    snprintf(instance, sizeof instance, "host-%05d:9100", host);
    snprintf(device, sizeof device, "dev%d", number / 100);
    put_label(&s, "__name__", name);
    put_label(&s, "dc", "dc1");
    put_label(&s, "device", device);
    put_label(&s, "instance", instance);
    put_label(&s, "job", "node");
    put_label(&s, "mode", "idle");
    buf_u8(&s, 0x12);
    buf_varint(&s, 16);
    buf_u8(&s, 0x09);
    buf_u64(&s, f64_bits(number * 1.5 + (double)(t % 1000)));
    buf_u8(&s, 0x10);
    buf_varint(&s, (uint64_t)t);
    buf_u8(body, 0x0a);
    buf_lenstr(body, buf_as_str(&s));
    buf_deinit(&s);
}

static str compressed(str raw)
{
    typedef int (*compress_fn)(const char *in, size_t n, char *out, size_t *out_n);
    void *lib = dlopen("libsnappy.so.1", RTLD_NOW);
    void *symbol = lib ? dlsym(lib, "snappy_compress") : NULL;
    compress_fn compress;
    memcpy(&compress, &symbol, sizeof compress);
    if (symbol == NULL) return (str){0};
    size_t n = raw.n + raw.n / 6 + 64;
    char *out = mem_alloc(n);
    return compress(raw.p, raw.n, out, &n) == 0 ? (str){out, n} : (str){0};
}

static void make_bodies(struct bench *b)
{
    int64_t now = env_posix()->ops->now_ms(env_posix());
    for (b->n = 0; b->n < 20; b->n++) {
        struct buf raw = {0};
        for (int i = 0; i < 5000; i++)
            put_series(&raw, (int)b->n * 5 + i / 1000, i % 1000, now);
        b->bodies[b->n] = (struct body){compressed(buf_as_str(&raw)), buf_as_str(&raw), 5000};
    }
}

/* The file's layout is loadgen's: a head of 32 bytes; then for each body a record of 24 bytes, which begins with
 * u32 size, raw size, samples, and the body, padded to 8. */
static void read_bodies(struct bench *b, const char *path)
{
    struct env *env = env_posix();
    struct env_file *file;
    uint64_t size = 0;
    err e = env->ops->file_open(env, path, ENV_READ, &file);
    if (e == NULL) e = env->ops->file_size(file, &size);
    if (e) stop(e);
    uint8_t *data = mem_alloc(size);
    if ((e = env->ops->file_read(file, data, size, 0)) != NULL) stop(e);
    env->ops->file_close(file);
    struct cursor c = cursor_of(data, size);
    cursor_bytes(&c, 32);
    while (cursor_left(&c) > 0 && b->n < BODIES_MAX) {
        struct body *body = &b->bodies[b->n++];
        uint32_t bytes = cursor_u32(&c), raw_bytes = cursor_u32(&c);
        struct buf raw = {.max = LIMIT_BODY_RAW};
        body->samples = cursor_u32(&c);
        cursor_bytes(&c, 12);
        body->packed = (str){(const char *)cursor_bytes(&c, bytes), bytes};
        cursor_bytes(&c, -bytes & 7u);
        if ((e = snappy_expand(body->packed.p, bytes, &raw)) != NULL) stop(e);
        if (raw.n != raw_bytes || c.failed) stop(err_new(ERR_INVALID, "%s is no file of bodies", path));
        body->raw = buf_as_str(&raw);
    }
}

/* ---- what is measured --------------------------------------------------------------------------- */

typedef void (*measured_fn)(struct bench *b, void *arg);

static void measure(struct bench *b, const char *what, measured_fn fn, void *arg)
{
    double best = 1e9;
    for (int i = 0; i < ROUNDS; i++) {
        double start = seconds();
        fn(b, arg);
        double took = seconds() - start;
        if (took < best) best = took;
    }
    printf("%-44s %7.1f ns/sample %7.0f MB/s\n", what, best * 1e9 / (double)b->samples,
           (double)b->raw_bytes / best / 1e6);
}

static void expand_all(struct bench *b, void *arg)
{
    struct buf *out = arg;
    for (size_t i = 0; i < b->n; i++) {
        buf_clear(out);
        err e = snappy_expand(b->bodies[i].packed.p, b->bodies[i].packed.n, out);
        if (e) stop(e);
    }
}

static void walk(struct admit *a, str raw)
{
    remote_write_decode(a, raw);
    if (a->failure) stop(a->failure);
    rows_clear(a->rows);
}

static void walk_all(struct bench *b, void *arg)
{
    for (size_t i = 0; i < b->n; i++)
        walk(arg, b->bodies[i].raw);
}

static void decode_all(struct bench *b, void *arg)
{
    static struct buf out = {.max = LIMIT_BODY_RAW};
    for (size_t i = 0; i < b->n; i++) {
        buf_clear(&out);
        err e = snappy_expand(b->bodies[i].packed.p, b->bodies[i].packed.n, &out);
        if (e) stop(e);
        walk(arg, buf_as_str(&out));
    }
}

struct whole {
    struct ingest *in;
    struct ingest_scratch *scratch;
};

static void handle_all(struct bench *b, void *arg)
{
    struct whole *w = arg;
    for (size_t i = 0; i < b->n; i++) {
        struct body *body = &b->bodies[i];
        struct ingest_request rq = {.format = INGEST_REMOTE_WRITE, .body = body->packed};
        if (body->packed.n == 0) rq.body = body->raw, rq.content_encoding = STR("identity");
        struct ingest_reply reply;
        ingest_handle(w->in, w->scratch, &rq, &reply);
        if (reply.status != 204) stop(err_new(ERR_INTERNAL, "%.*s", (int)reply.body.n, (char *)reply.body.data));
    }
}

int main(int argc, char **argv)
{
    static struct bench b;
    struct rows rows = {0};
    struct arena arena = {0};
    struct buf out = {.max = LIMIT_BODY_RAW};
    char path[] = "/tmp/varve-bench-XXXXXX", command[64];
    if (argc > 1)
        read_bodies(&b, argv[1]);
    else
        make_bodies(&b);
    for (size_t i = 0; i < b.n; i++) {
        b.samples += b.bodies[i].samples;
        b.raw_bytes += b.bodies[i].raw.n;
    }
    if (mkdtemp(path) == NULL) return 1;
    struct storage_options o = {.path = path, .wal_sync = WAL_SYNC_OFF};
    err e = storage_open(&o, &b.db);
    if (e) stop(e);
    struct ingest_options io = {.db = b.db};
    struct whole w = {.in = ingest_create(&io)};
    w.scratch = ingest_scratch_create(w.in);
    struct protocol protocol;
    protocol_init(&protocol, NULL, "bench");
    struct admit a = {.db = b.db, .protocol = &protocol, .rows = &rows, .arena = &arena, .key = storage_hash_key(b.db)};
    a.parse = remote_write_labels;
    admit_init_tag(&a);
    printf("%zu bodies, %zu samples, %.1f raw bytes a sample\n", b.n, b.samples,
           (double)b.raw_bytes / (double)b.samples);
    if (b.bodies[0].packed.n > 0) {
        measure(&b, "snappy", expand_all, &out);
        measure(&b, "snappy + walk + hash", decode_all, &a);
    }
    measure(&b, "walk + hash", walk_all, &a);
    measure(&b, "whole request, storage included", handle_all, &w);
    storage_abandon(b.db);
    snprintf(command, sizeof command, "rm -rf %s", path);
    return system(command);
}
