/*
 * wal_read.c: lists segments and reads them back with bounded memory (wal.h).
 *
 * A window slides over the file. A record header that checks out is trusted for its length, so a
 * damaged payload costs one record; where no header is found, the window is searched byte by byte for
 * the next one. What can't be read at the very end is a torn tail, not damage.
 */
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/limits.h"
#include "storage/wal.h"

#define WINDOW (1u << 20)

struct list {
    uint32_t *v;
    size_t n, cap;
};

static void note_segment(void *arg, str name, bool is_dir)
{
    struct list *l = arg;
    if (is_dir || name.n != 14 || memcmp(name.p + 10, ".wal", 4) != 0) return;
    uint64_t generation = 0;
    for (int i = 0; i < 10; i++) {
        if (name.p[i] < '0' || name.p[i] > '9') return;
        generation = generation * 10 + (uint64_t)(name.p[i] - '0');
    }
    if (generation > UINT32_MAX) return;
    l->v = mem_grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    l->v[l->n++] = (uint32_t)generation;
}

static int compare_u32(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

err wal_list(struct env *env, const char *dir, uint32_t **out, size_t *n)
{
    struct list l = {0};
    err e = env->ops->dir_list(env, dir, note_segment, &l);
    if (l.n > 0) qsort(l.v, l.n, sizeof *l.v, compare_u32);
    *out = l.v;
    *n = l.n;
    if (e != NULL) {
        mem_free(l.v);
        *out = NULL;
        *n = 0;
    }
    return e;
}

struct window {
    struct env *env;
    struct env_file *file;
    uint64_t size;  /* of the file */
    uint64_t at;    /* offset of the next byte to look at */
    uint64_t start; /* offset of data[0] */
    struct buf data;
};

/* The n bytes at w->at, or NULL if the file ends before. */
static err window_get(struct window *w, size_t n, const uint8_t **out)
{
    *out = NULL;
    if (w->at + n > w->size) return NULL;
    if (w->at < w->start || w->at + n > w->start + w->data.n) {
        uint64_t want = n > WINDOW ? n : WINDOW;
        if (want > w->size - w->at) want = w->size - w->at;
        buf_clear(&w->data);
        uint8_t *p = buf_reserve(&w->data, want);
        TRY(w->env->ops->file_read(w->file, p, want, w->at));
        w->data.n = want;
        w->start = w->at;
    }
    *out = w->data.data + (w->at - w->start);
    return NULL;
}

/* Moves on to the next record header at or after w->at; false in *found at the end of the file. */
static err find_record(struct window *w, struct wal_record *r, bool *found)
{
    for (;; w->at++) {
        const uint8_t *p;
        TRY(window_get(w, WAL_RECORD_HEADER, &p));
        *found = p != NULL && wal_record_parse(p, r);
        if (p == NULL || *found) return NULL;
    }
}

static void note_damage(struct wal_scan *scan, uint64_t at)
{
    if (scan->damaged++ == 0) scan->damage_at = at;
}

static err read_records(struct window *w, wal_record_fn fn, void *arg, struct wal_scan *scan)
{
    uint64_t lost_at = UINT64_MAX; /* start of a stretch not understood so far */
    while (w->at < w->size) {
        uint64_t from = w->at;
        struct wal_record r;
        bool found;
        TRY(find_record(w, &r, &found));
        if (w->at > from && lost_at == UINT64_MAX) lost_at = from;
        if (!found) break;
        uint64_t record_at = w->at;
        const uint8_t *payload;
        w->at += WAL_RECORD_HEADER;
        TRY(window_get(w, r.bytes, &payload));
        if (payload == NULL || !wal_record_payload_ok(&r, payload)) {
            if (lost_at == UINT64_MAX) lost_at = record_at;
            /* A whole record with bad bytes is skipped; one that is cut off ends the file, unless others lie inside. */
            w->at = payload == NULL ? record_at + 1 : w->at + r.bytes;
            continue;
        }
        if (lost_at != UINT64_MAX) note_damage(scan, lost_at);
        lost_at = UINT64_MAX;
        TRY(fn(arg, &r, payload));
        scan->records++;
        scan->bytes += WAL_RECORD_HEADER + r.bytes;
        w->at += r.bytes;
    }
    if (lost_at != UINT64_MAX) scan->torn_tail = w->size - lost_at;
    return NULL;
}

err wal_read(struct env *env, const char *path, wal_record_fn fn, void *arg, struct wal_scan *scan)
{
    *scan = (struct wal_scan){0};
    struct window w = {.env = env};
    err e = NULL;
    TRY(env->ops->file_open(env, path, ENV_READ, &w.file));
    TRY_OUT(env->ops->file_size(w.file, &w.size));
    if (w.size < WAL_SEGMENT_HEADER) {
        scan->torn_tail = w.size;
        goto out;
    }
    const uint8_t *p;
    uint32_t generation;
    TRY_OUT(window_get(&w, WAL_SEGMENT_HEADER, &p));
    e = wal_segment_parse(p, &generation);
    if (err_code(e) == ERR_UNSUPPORTED) goto out;
    bool header_bad = e != NULL;
    err_free(e);
    e = NULL;
    w.at = header_bad ? 1 : WAL_SEGMENT_HEADER;
    TRY_OUT(read_records(&w, fn, arg, scan));
    /* A damaged header before good records is damage; a file of nothing but garbage is a torn creation. */
    if (header_bad && scan->records > 0 && scan->damaged == 0) note_damage(scan, 0);
out:
    buf_deinit(&w.data);
    env->ops->file_close(w.file);
    return err_wrap(e, "%s", path);
}
