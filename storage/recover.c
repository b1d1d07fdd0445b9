/*
 * recover.c: see recover.h.
 *
 * Replay needs as much memory as the head had: the log is bounded by --storage.wal-max-bytes, and a
 * head that grows beyond twice its budget meanwhile is written out at once. The log stays until the
 * normal flush; when it is replayed again, its records up to the manifest's write number are passed over.
 */
#include "storage/recover.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

/* ---- parts ------------------------------------------------------------------------------------------------------ */

struct part_files {
    struct part_file {
        uint64_t id;
        char name[64];
    } * v;
    size_t n, cap;
};

/* YYYY-MM-<number>.part */
static bool parse_part_name(str name, uint64_t *id)
{
    const char *dash = memrchr(name.p, '-', name.n);
    if (dash == NULL || name.n < 6 || name.n >= 64 || memcmp(name.p + name.n - 5, ".part", 5) != 0) return false;
    *id = 0;
    for (const char *p = dash + 1; p < name.p + name.n - 5; p++) {
        if (*p < '0' || *p > '9' || *id > UINT64_MAX / 10 - 1) return false;
        *id = *id * 10 + (uint64_t)(*p - '0');
    }
    return true;
}

static void note_part(void *arg, str name, bool is_dir)
{
    struct part_files *l = arg;
    uint64_t id;
    if (is_dir || !parse_part_name(name, &id)) return;
    l->v = mem_grow(l->v, &l->cap, l->n + 1, sizeof *l->v);
    struct part_file *f = &l->v[l->n++];
    f->id = id;
    memcpy(f->name, name.p, name.n);
    f->name[name.n] = '\0';
}

static err quarantine(struct db *db, const char *path)
{
    char dir[4096], to[8192];
    const char *base = strrchr(path, '/');
    snprintf(dir, sizeof dir, "%s/quarantine", db->path);
    snprintf(to, sizeof to, "%s/%s", dir, base == NULL ? path : base + 1);
    TRY(db->env->ops->mkdir(db->env, dir));
    TRY(db->env->ops->rename(db->env, path, to));
    TRY(db->env->ops->dir_sync(db->env, dir));
    return db->env->ops->dir_sync(db->env, db->parts_dir);
}

/* A part that the manifest names but that can't be opened: the rest goes on without it. */
static err lose_part(struct db *db, const struct part_meta *m, const char *path, err why)
{
    enum err_code code = err_code(why);
    if (code != ERR_CORRUPT && code != ERR_NOT_FOUND) return why;
    counter_inc(db->metrics.lost_parts);
    log_error(db->log, code == ERR_CORRUPT ? "damaged part moved to quarantine" : "part is missing",
              "path=%s t_min=%" PRId64 " t_max=%" PRId64 " samples=%" PRIu64 " error=\"%s\"", path, m->t_min, m->t_max,
              m->samples, err_message(why));
    err_free(why);
    return code == ERR_CORRUPT ? quarantine(db, path) : NULL;
}

static err open_listed(struct db *db, const struct manifest *m, struct view_part *parts, size_t *n)
{
    for (size_t i = 0; i < m->n_parts; i++) {
        char path[4096];
        db_part_path(db, &m->parts[i].meta, path, sizeof path);
        struct view_part *p = &parts[*n];
        p->clean_seq = m->parts[i].clean_seq;
        err e = part_open(db->env, path, &db->key, db->cache, &p->part);
        if (e != NULL)
            TRY(lose_part(db, &m->parts[i].meta, path, e));
        else
            (*n)++;
    }
    return NULL;
}

/* Leftovers of flushes and merges that a crash cut short, or whose removal it cut short. */
static err remove_orphans(struct db *db, const struct manifest *m)
{
    struct part_files files = {0};
    err e = db->env->ops->dir_list(db->env, db->parts_dir, note_part, &files);
    for (size_t i = 0; i < files.n && e == NULL; i++) {
        bool listed = false;
        for (size_t k = 0; k < m->n_parts && !listed; k++)
            listed = m->parts[k].meta.id == files.v[i].id;
        if (files.v[i].id >= db->next_part) db->next_part = files.v[i].id + 1;
        if (listed) continue;
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", db->parts_dir, files.v[i].name);
        e = db->env->ops->unlink(db->env, path);
    }
    mem_free(files.v);
    return e;
}

/* True if another part holds all that this one does: an input of a merge whose removal was cut short. */
static bool is_superseded(const struct view_part *parts, size_t n, size_t i)
{
    const struct part_meta *m = part_meta(parts[i].part);
    for (size_t k = 0; k < n; k++) {
        const struct part_meta *o = part_meta(parts[k].part);
        if (k != i && o->partition == m->partition && o->seq_min <= m->seq_min && o->seq_max >= m->seq_max &&
            o->level > m->level)
            return true;
    }
    return false;
}

/* Without a manifest: every part file that opens counts, deletes come from the manifest before. */
static err rebuild(struct db *db, struct view_part **parts, size_t *n)
{
    struct part_files files = {0};
    err e = db->env->ops->dir_list(db->env, db->parts_dir, note_part, &files);
    struct view_part *all = mem_zalloc(files.n * sizeof *all + 1);
    size_t opened = 0;
    for (size_t i = 0; i < files.n && e == NULL; i++) {
        char path[4096];
        snprintf(path, sizeof path, "%s/%s", db->parts_dir, files.v[i].name);
        if (files.v[i].id >= db->next_part) db->next_part = files.v[i].id + 1;
        err why = part_open(db->env, path, &db->key, db->cache, &all[opened].part);
        if (why != NULL)
            e = lose_part(db, &(struct part_meta){.id = files.v[i].id}, path, why);
        else
            opened++;
    }
    *parts = mem_zalloc(opened * sizeof **parts + 1);
    *n = 0;
    for (size_t i = 0; i < opened; i++) {
        if (is_superseded(all, opened, i)) continue;
        part_ref(all[i].part);
        (*parts)[(*n)++] = all[i];
    }
    for (size_t i = 0; i < opened; i++)
        part_unref(all[i].part);
    mem_free(all);
    mem_free(files.v);
    return e;
}

static err rebuild_manifest(struct db *db, struct manifest *m, struct view_part **parts, size_t *n, err damage)
{
    log_error(db->log, "the manifest is lost and is rebuilt from the parts", "error=\"%s\"", err_message(damage));
    err_free(damage);
    manifest_deinit(m);
    err e = manifest_read(db->env, db->path, "MANIFEST.prev", m); /* for its deletes */
    if (e != NULL) manifest_deinit(m);
    err_free(e);
    m->wal_floor = 0;
    return rebuild(db, parts, n);
}

static bool has_parts(struct db *db)
{
    struct part_files files = {0};
    err_free(db->env->ops->dir_list(db->env, db->parts_dir, note_part, &files));
    mem_free(files.v);
    return files.n > 0;
}

/* The last write number given out, as far as parts and deletes know. */
static uint64_t newest_seq(const struct manifest *m, const struct view_part *parts, size_t n)
{
    uint64_t seq = m->seq;
    for (size_t i = 0; i < n; i++)
        if (part_meta(parts[i].part)->seq_max > seq) seq = part_meta(parts[i].part)->seq_max;
    for (size_t i = 0; i < m->n_tombstones; i++)
        if (m->tombstones[i]->seq > seq) seq = m->tombstones[i]->seq;
    return seq;
}

#define AHEAD_MS (INT64_C(24) * 3600 * 1000)
#define AHEAD_BYTES (UINT64_C(16) << 20) /* of a part */

/* After a start the first queries are about the newest day, and the disk has nothing else to do. */
static void read_ahead(const struct view_part *parts, size_t n)
{
    int64_t newest = INT64_MIN;
    for (size_t i = 0; i < n; i++)
        if (part_meta(parts[i].part)->t_max > newest) newest = part_meta(parts[i].part)->t_max;
    for (size_t i = 0; i < n; i++)
        if (newest - part_meta(parts[i].part)->t_max <= AHEAD_MS) part_will_read(parts[i].part, AHEAD_BYTES);
}

err recover_parts(struct db *db)
{
    struct manifest m;
    struct view_part *parts = NULL;
    size_t n = 0;
    err e = manifest_read(db->env, db->path, "MANIFEST", &m);
    if (err_code(e) == ERR_NOT_FOUND && !has_parts(db)) { /* a new database */
        err_free(e);
        e = NULL;
    }
    bool rebuilt = err_code(e) == ERR_CORRUPT || err_code(e) == ERR_NOT_FOUND;
    if (!rebuilt) TRY_OUT(e);
    db->next_part = m.next_part;
    if (rebuilt) {
        TRY_OUT(rebuild_manifest(db, &m, &parts, &n, e));
    } else {
        parts = mem_zalloc(m.n_parts * sizeof *parts + 1);
        TRY_OUT(remove_orphans(db, &m));
        TRY_OUT(open_listed(db, &m, parts, &n));
    }
    read_ahead(parts, n);
    if (db->next_part == 0) db->next_part = 1;
    db->manifest_generation = m.generation;
    db->wal_floor = m.wal_floor;
    db->durable_seq = rebuilt ? 0 : m.seq; /* how much of the log lost parts held is not known: all of it counts */
    db->seq = newest_seq(&m, parts, n);
    db->view = view_create(parts, n, NULL);
    db->view->tombstones = mem_realloc(db->view->tombstones, (m.n_tombstones + 1) * sizeof(struct tombstone *));
    for (size_t i = 0; i < m.n_tombstones; i++)
        db->view->tombstones[db->view->n_tombstones++] = tombstone_ref(m.tombstones[i]);
out:
    for (size_t i = 0; i < n; i++)
        part_unref(parts[i].part);
    mem_free(parts);
    manifest_deinit(&m);
    return e;
}

/* ---- log -------------------------------------------------------------------------------------------------------- */

struct replay {
    struct db *db;
    struct arena arena;
    uint32_t *symbols, *handles; /* of the segment → of the registry, SERIES_NONE where undefined */
    size_t symbols_cap, handles_cap;
    uint64_t samples, undefined;
    uint64_t parts_seq;     /* writes up to this number are in parts */
    uint64_t exemplars_seq; /* exemplars up to this number were in their file */
    bool relieved;          /* a part was written meanwhile */
};

/* Makes map[number] exist; new entries say "undefined". */
static uint32_t *entry(uint32_t **map, size_t *cap, uint32_t number)
{
    if (number >= *cap) {
        size_t old = *cap;
        *map = mem_grow(*map, cap, (size_t)number + 1, sizeof **map);
        for (size_t i = old; i < *cap; i++)
            (*map)[i] = SERIES_NONE;
    }
    return &(*map)[number];
}

static err replay_definitions(struct replay *r, const struct wal_batch *b)
{
    for (uint32_t i = 0; i < b->n_symbols; i++) {
        if (b->symbols[i].number >= PAGES_MAX * PAGE_ELEMENTS) return err_corrupt("symbol number out of range");
        *entry(&r->symbols, &r->symbols_cap, b->symbols[i].number) =
            registry_symbol(r->db->registry, b->symbols[i].text);
    }
    for (uint32_t i = 0; i < b->n_series; i++) {
        struct wal_series *s = &b->series[i];
        if (s->handle >= PAGES_MAX * PAGE_ELEMENTS) return err_corrupt("series handle out of range");
        bool known = true;
        for (uint32_t k = 0; k < 2 * s->n_pairs; k++) {
            uint32_t number = s->symbols[k];
            s->symbols[k] = number < r->symbols_cap ? r->symbols[number] : SERIES_NONE;
            known &= s->symbols[k] != SERIES_NONE;
        }
        if (!known) continue; /* its strings were in a damaged record */
        uint32_t before = registry_count(r->db->registry);
        uint32_t alias = registry_add_pairs(r->db->registry, s->symbols, s->n_pairs);
        if (registry_count(r->db->registry) > before)
            creations_add(r->db->creations, registry_id(r->db->registry, before), (str){0}, 0);
        *entry(&r->handles, &r->handles_cap, s->handle) = registry_alias_series(r->db->registry, alias);
    }
    return NULL;
}

/* The sums of histogram samples stand in as their values, as storage_append made them. */
static void replay_runs(struct replay *r, const struct wal_batch *b)
{
    struct head *h = r->db->head;
    uint32_t at = 0;
    for (uint32_t i = 0; i < b->n_runs; at += b->counts[i++]) {
        uint32_t number = b->handles[i];
        uint32_t handle = number < r->handles_cap ? r->handles[number] : SERIES_NONE;
        if (handle == SERIES_NONE) {
            r->undefined += b->counts[i];
            continue;
        }
        head_append(h, handle, b->t + at, b->v + at, b->hist == NULL ? NULL : b->hist + at,
                    b->start == NULL ? NULL : b->start + at, b->counts[i]);
        r->samples += b->counts[i];
    }
}

static void replay_exemplars(struct replay *r, const struct wal_content *c, uint64_t seq)
{
    if (seq <= r->exemplars_seq) return;
    for (uint32_t i = 0; i < c->n_exemplars; i++) {
        uint32_t number = c->exemplars[i].handle;
        uint32_t handle = number < r->handles_cap ? r->handles[number] : SERIES_NONE;
        if (handle != SERIES_NONE) db_replay_exemplar(r->db, handle, &c->exemplars[i].x, seq, &r->arena);
    }
}

/* Writes an oversized head out; a fresh one goes on. */
static err relieve(struct replay *r)
{
    struct db *db = r->db;
    if (atomic_load(&db->head->bytes) < 2 * db->o.head_max_bytes) return NULL;
    TRY(db_write_head(db, db->head, 0));
    struct head *fresh = head_create(db->registry, &db->pool, db->head->wal_gen);
    head_unref(db->head);
    db->head = fresh;
    r->relieved = true;
    return NULL;
}

static err replay_record(void *arg, const struct wal_record *record, const uint8_t *payload)
{
    struct replay *r = arg;
    struct db *db = r->db;
    struct wal_content c;
    arena_reset(&r->arena);
    TRY(wal_record_decode(record, payload, &r->arena, &c));
    TRY(replay_definitions(r, &c.batch));
    if (record->seq > db->seq) db->seq = record->seq;
    if (record->type == WAL_EXEMPLARS) {
        replay_exemplars(r, &c, record->seq);
        return NULL;
    }
    /* What is in parts must not come again, as a later write than what has overwritten it there. */
    if (record->seq <= r->parts_seq) return NULL;
    replay_runs(r, &c.batch);
    if (record->seq < db->head->seq_min) db->head->seq_min = record->seq;
    if (record->seq > db->head->seq_max) db->head->seq_max = record->seq;
    return relieve(r);
}

static err replay_segment(struct replay *r, uint32_t generation)
{
    struct db *db = r->db;
    char path[4096];
    wal_path(path, sizeof path, db->wal_dir, generation);
    for (size_t i = 0; i < r->symbols_cap; i++)
        r->symbols[i] = SERIES_NONE;
    for (size_t i = 0; i < r->handles_cap; i++)
        r->handles[i] = SERIES_NONE;
    struct wal_scan scan;
    TRY(wal_read(db->env, path, replay_record, r, &scan));
    if (scan.damaged > 0) {
        counter_add(db->metrics.wal_damaged, scan.damaged);
        log_error(db->log, "log segment is damaged, its other records were replayed",
                  "path=%s damaged=%" PRIu64 " first_at=%" PRIu64, path, scan.damaged, scan.damage_at);
    }
    if (scan.torn_tail > 0)
        log_info(db->log, "log segment ends in an unfinished record", "path=%s bytes=%" PRIu64, path, scan.torn_tail);
    return NULL;
}

static void join_view(struct db *db)
{
    struct view *v = view_create(db->view->parts, db->view->n_parts, db->view);
    v->heads[v->n_heads++] = head_ref(db->head);
    view_swap_locked(db, v);
}

err recover_log(struct db *db, uint32_t *generation)
{
    uint32_t *generations;
    size_t n;
    TRY(wal_list(db->env, db->wal_dir, &generations, &n));
    uint64_t start = db->env->ops->mono_ns(db->env);
    struct replay r = {.db = db, .parts_seq = db->durable_seq};
    if (db->exemplars != NULL) r.exemplars_seq = exemplars_seq(db->exemplars);
    uint32_t next = db->wal_floor > 0 ? db->wal_floor : 1;
    db->registry = registry_create(&db->key);
    size_t first = 0;
    while (first < n && generations[first] < db->wal_floor)
        first++;
    db->head = head_create(db->registry, &db->pool, first < n ? generations[first] : next);
    err e = NULL;
    for (size_t i = first; i < n && e == NULL; i++) {
        e = replay_segment(&r, generations[i]);
        next = generations[i] + 1;
    }
    if (n > 0 && generations[n - 1] >= next) next = generations[n - 1] + 1;
    *generation = next;
    /* All of the log is in parts: it is done with. A delete, which relies on that of an empty head, would not hold. */
    if (e == NULL && r.relieved && head_is_empty(db->head)) {
        e = db_save_exemplars(db);
        if (e == NULL) e = db_commit(db, &(struct db_change){.wal_floor = next});
    }
    if (e == NULL) {
        if (!head_is_empty(db->head)) {
            db->head->born_ns = start + 1;
            db->head->defined_gen = 0;
        }
        join_view(db);
        log_info(db->log, "log replayed", "segments=%zu samples=%" PRIu64 " series=%u lost=%" PRIu64 " seconds=%.3f",
                 n - first, r.samples, registry_count(db->registry), r.undefined,
                 (double)(db->env->ops->mono_ns(db->env) - start) / 1e9);
    }
    arena_deinit(&r.arena);
    mem_free(r.symbols);
    mem_free(r.handles);
    mem_free(generations);
    return e;
}
