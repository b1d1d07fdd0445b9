/*
 * inspect.c: offline checks of a whole data directory (storage_verify) and dumps of single files
 * (storage_inspect), built from the same decoders as the server.
 *
 * Both only read, take no lock, and go on after damage: what is still good is worth knowing too.
 */
#include <inttypes.h>
#include <stdio.h>

#include "storage/base/alloc.h"
#include "storage/manifest.h"
#include "storage/part.h"
#include "storage/partition.h"
#include "storage/storage.h"
#include "storage/wal.h"

struct verification {
    struct env *env;
    struct buf *out;
    uint64_t faults;
    const char *path; /* of the file at hand */
    struct arena arena;
};

static void fault(struct verification *v, const char *path, const char *what)
{
    v->faults++;
    buf_printf(v->out, "%s: %s\n", path, what);
}

static void fault_err(struct verification *v, const char *path, err e)
{
    if (e == NULL) return;
    fault(v, path, err_message(e));
    err_free(e);
}

static void part_fault(void *arg, uint64_t offset, const char *what)
{
    struct verification *v = arg;
    buf_printf(v->out, "%s: offset %" PRIu64 ": %s\n", v->path, offset, what);
}

static void verify_part(struct verification *v, const char *path)
{
    uint64_t faults = 0;
    v->path = path;
    err e = part_verify(v->env, path, part_fault, v, &faults);
    v->faults += faults;
    fault_err(v, path, e);
}

static err verify_record(void *arg, const struct wal_record *r, const uint8_t *payload)
{
    struct verification *v = arg;
    struct wal_content c;
    arena_reset(&v->arena);
    err e = wal_record_decode(r, payload, &v->arena, &c);
    if (e == NULL) return NULL;
    char what[256];
    snprintf(what, sizeof what, "record of write %" PRIu64 ": %s", r->seq, err_message(e));
    fault(v, v->path, what);
    err_free(e);
    return NULL;
}

static void verify_segment(struct verification *v, const char *path)
{
    struct wal_scan scan;
    v->path = path;
    err e = wal_read(v->env, path, verify_record, v, &scan);
    if (e == NULL && scan.damaged > 0) {
        char what[128];
        snprintf(what, sizeof what, "offset %" PRIu64 ": damaged log records (%" PRIu64 " stretches)", scan.damage_at,
                 scan.damaged);
        fault(v, path, what);
    }
    if (e == NULL && scan.torn_tail > 0)
        buf_printf(v->out, "%s: note: ends in %" PRIu64 " bytes of an unfinished record, as after a crash\n", path,
                   scan.torn_tail);
    fault_err(v, path, e);
}

static void verify_log(struct verification *v, const char *dir, uint32_t floor)
{
    uint32_t *generations;
    size_t n;
    err e = wal_list(v->env, dir, &generations, &n);
    if (err_code(e) == ERR_NOT_FOUND) {
        err_free(e);
        return;
    }
    if (e != NULL) {
        fault_err(v, dir, e);
        return;
    }
    for (size_t i = 0; i < n; i++) {
        char path[4096];
        wal_path(path, sizeof path, dir, generations[i]);
        if (generations[i] >= floor) verify_segment(v, path);
    }
    mem_free(generations);
}

static void verify_exemplars(struct verification *v, const char *dir)
{
    char path[4096];
    struct buf out = {0};
    snprintf(path, sizeof path, "%s/%s", dir, EXEMPLARS_FILE);
    err e = exemplars_inspect(v->env, path, 0, &out);
    buf_deinit(&out);
    if (err_code(e) == ERR_NOT_FOUND)
        err_free(e); /* there never were any, or none was flushed yet */
    else
        fault_err(v, path, e);
}

err storage_verify(struct env *env, const char *path, struct buf *out, uint64_t *faults)
{
    if (env == NULL) env = env_posix();
    struct verification v = {.env = env, .out = out};
    struct manifest m;
    struct hash_key key;
    char name[4096], month[32];
    err e = manifest_read(env, path, "MANIFEST", &m);
    if (err_code(e) == ERR_NOT_FOUND) {
        snprintf(name, sizeof name, "%s/wal", path);
        uint32_t *generations;
        size_t n;
        err listed = wal_list(env, name, &generations, &n);
        if (listed != NULL) {
            err_free(listed);
            return err_wrap(e, "not a data directory");
        }
        mem_free(generations);
        err_free(e); /* nothing was flushed yet */
        e = NULL;
    }
    snprintf(name, sizeof name, "%s/MANIFEST", path);
    if (e == NULL && m.generation > 0) e = manifest_verify(env, path);
    fault_err(&v, name, e);
    snprintf(name, sizeof name, "%s/IDENTITY", path);
    fault_err(&v, name, identity_open(env, path, false, &key));
    for (size_t i = 0; i < m.n_parts; i++) {
        partition_name(m.parts[i].meta.partition, month);
        snprintf(name, sizeof name, "%s/parts/%s-%012" PRIu64 ".part", path, month, m.parts[i].meta.id);
        verify_part(&v, name);
    }
    verify_exemplars(&v, path);
    snprintf(name, sizeof name, "%s/wal", path);
    verify_log(&v, name, m.wal_floor);
    buf_printf(out, "%zu parts, %zu deletes: %" PRIu64 " faults\n", m.n_parts, m.n_tombstones, v.faults);
    manifest_deinit(&m);
    arena_deinit(&v.arena);
    *faults = v.faults;
    return NULL;
}

/* ---- inspect ---------------------------------------------------------------------------------------------------- */

struct dump {
    struct buf *out;
    int detail;
    struct arena arena;
};

static void dump_sample(struct dump *d, const struct wal_batch *b, uint32_t handle, uint32_t i)
{
    buf_printf(d->out, "  sample series=%u t=%" PRId64 " v=%.17g", handle, b->t[i], b->v[i]);
    if (b->start != NULL && b->start[i] != 0) buf_printf(d->out, " start=%" PRId64, b->start[i]);
    buf_str(d->out, STR("\n"));
}

static void dump_batch(struct dump *d, const struct wal_batch *b)
{
    buf_printf(d->out, " symbols=%u series=%u runs=%u samples=%u\n", b->n_symbols, b->n_series, b->n_runs,
               b->n_samples);
    if (d->detail < 1) return;
    for (uint32_t i = 0; i < b->n_symbols; i++)
        buf_printf(d->out, "  symbol %u \"%.*s\"\n", b->symbols[i].number, STR_ARG(b->symbols[i].text));
    for (uint32_t i = 0; i < b->n_series; i++) {
        buf_printf(d->out, "  series %u:", b->series[i].handle);
        for (uint32_t k = 0; k < b->series[i].n_pairs; k++)
            buf_printf(d->out, " %u=%u", b->series[i].symbols[2 * k], b->series[i].symbols[2 * k + 1]);
        buf_str(d->out, STR("\n"));
    }
    for (uint32_t i = 0, at = 0; d->detail > 1 && i < b->n_runs; i++)
        for (uint32_t k = 0; k < b->counts[i]; k++, at++)
            dump_sample(d, b, b->handles[i], at);
}

static void dump_exemplars(struct dump *d, const struct wal_content *c)
{
    if (c->n_exemplars > 0) buf_printf(d->out, "  exemplars=%u\n", c->n_exemplars);
    for (uint32_t i = 0; d->detail > 1 && i < c->n_exemplars; i++) {
        const struct exemplar *x = &c->exemplars[i].x;
        buf_printf(d->out, "  exemplar series=%u t=%" PRId64 " v=%.17g ", c->exemplars[i].handle, x->t, x->v);
        labels_print(&x->labels, d->out);
        buf_str(d->out, STR("\n"));
    }
}

static err dump_record(void *arg, const struct wal_record *r, const uint8_t *payload)
{
    struct dump *d = arg;
    struct wal_content c;
    buf_printf(d->out, "record seq=%" PRIu64 " type=%u bytes=%u", r->seq, r->type, r->bytes);
    arena_reset(&d->arena);
    err e = wal_record_decode(r, payload, &d->arena, &c);
    if (e == NULL) {
        dump_batch(d, &c.batch);
        dump_exemplars(d, &c);
        return NULL;
    }
    buf_printf(d->out, " %s\n", err_message(e));
    err_free(e);
    return NULL;
}

static err inspect_segment(struct env *env, const char *path, int detail, struct buf *out)
{
    struct dump d = {.out = out, .detail = detail};
    struct wal_scan scan;
    err e = wal_read(env, path, dump_record, &d, &scan);
    arena_deinit(&d.arena);
    TRY(e);
    buf_printf(out, "log segment records=%" PRIu64 " bytes=%" PRIu64 " damaged=%" PRIu64 " torn_tail=%" PRIu64 "\n",
               scan.records, scan.bytes, scan.damaged, scan.torn_tail);
    return NULL;
}

static bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), k = strlen(end);
    return n >= k && memcmp(s + n - k, end, k) == 0;
}

err storage_inspect(struct env *env, const char *path, int detail, struct buf *out)
{
    if (env == NULL) env = env_posix();
    if (ends_with(path, ".part")) return part_inspect(env, path, detail, out);
    if (ends_with(path, ".wal")) return inspect_segment(env, path, detail, out);
    const char *base = strrchr(path, '/');
    base = base == NULL ? path : base + 1;
    if (strcmp(base, EXEMPLARS_FILE) == 0) return exemplars_inspect(env, path, detail, out);
    if (strcmp(base, "MANIFEST") != 0 && strcmp(base, "MANIFEST.prev") != 0)
        return err_new(ERR_INVALID, "%s: not a file of Varve's: expected *.part, *.wal, MANIFEST or EXEMPLARS", path);
    char dir[4096];
    snprintf(dir, sizeof dir, "%.*s", base == path ? 1 : (int)(base - path - 1), base == path ? "." : path);
    struct manifest m;
    err e = manifest_read(env, dir, base, &m);
    if (e == NULL) manifest_print(&m, out);
    manifest_deinit(&m);
    return e;
}
