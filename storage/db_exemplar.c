/*
 * db_exemplar.c: exemplars on their way into the ring and the log, back from the log, and out to queries.
 *
 * They pass behind the samples of their batch, under append_lock: the ring decides which of them it takes, and those
 * go into one log record, which defines their series as a batch would. Before the log segments of a flushed head go,
 * the ring is written to a file (db_save_exemplars); a replay starts behind that file's write number.
 */
#include "storage/base/limits.h"
#include "storage/db_internal.h"

void db_exemplars_init(struct db *db)
{
    struct metrics *m = db->o.metrics;
    const char *rejected = "varve_storage_exemplars_rejected_total", *help = "Exemplars not stored, by reason.";
    db->metrics.exemplars = metrics_counter(m, "varve_storage_exemplars_total", NULL, "Exemplars appended.");
    db->metrics.exemplars_late = metrics_counter(m, rejected, "reason=\"out_of_order\"", help);
    db->metrics.exemplars_unknown = metrics_counter(m, rejected, "reason=\"unknown_series\"", help);
    db->metrics.exemplars_bad = metrics_counter(m, rejected, "reason=\"bad_labels_or_time\"", help);
    if (db->o.max_exemplars > 0) db->exemplars = exemplars_create(&db->key, db->o.max_exemplars);
}

/* ---- appending -------------------------------------------------------------------------------------------------- */

/* The series of exemplar i, by its alias, else by its labels; SERIES_NONE if no sample of it was seen: an exemplar
 * makes no series. */
static uint32_t find_series(struct db *db, const struct batch *b, uint32_t i, uint32_t *alias)
{
    struct registry *r = db->registry;
    *alias = registry_find(r, b->exemplars[i].alias, *alias);
    if (*alias != ALIAS_NONE) return registry_alias_series(r, *alias);
    struct labels ls = {0};
    err e = b->resolve(b->resolve_arg, b->n_series + i, &db->scratch.arena, &ls);
    if (e == NULL) e = labels_canonicalize(&ls);
    uint32_t known = e == NULL ? registry_find(r, labels_id(&db->key, &ls), ALIAS_NONE) : ALIAS_NONE;
    err_free(e);
    if (known == ALIAS_NONE) return SERIES_NONE;
    *alias = registry_add(r, b->exemplars[i].alias, &ls);
    return registry_alias_series(r, *alias);
}

/* Adds exemplar i to the ring. True if it has to go into the log. */
static bool add_one(struct db *db, const struct batch *b, uint32_t i, uint32_t handle, struct append_result *result)
{
    struct arena *a = &db->scratch.arena;
    struct exemplar x = b->exemplars[i].x;
    int64_t latest = db->o.future_ms > 0 ? db_now(db) + db->o.future_ms : LIMIT_TIME_MAX;
    enum exemplar_fate fate = EXEMPLAR_TOO_LONG;
    err e = labels_canonicalize(&x.labels);
    if (e == NULL && x.t >= LIMIT_TIME_MIN && x.t <= latest) {
        struct labels series = registry_labels(db->registry, handle, a);
        fate = exemplars_add(db->exemplars, &series, &x, db->seq + 1);
    }
    err_free(e);
    switch (fate) {
    case EXEMPLAR_STORED:
        result->exemplars++;
        wal_exemplar_encode(&db->scratch.exemplars, handle, &x);
        return true;
    case EXEMPLAR_REPEATED: /* it is there, as the sender wants it to be */
        result->exemplars++;
        return false;
    case EXEMPLAR_OUT_OF_ORDER:
        if (result->exemplars_late++ == 0) result->first_late = i;
        return false;
    case EXEMPLAR_TOO_LONG:
        break;
    }
    counter_inc(db->metrics.exemplars_bad);
    return false;
}

static void put_record(struct db *db, uint32_t n)
{
    struct append_scratch *s = &db->scratch;
    size_t at = wal_record_begin(&s->record);
    wal_exemplars_encode(&s->record, &s->defs, &s->exemplars, n);
    wal_record_end(&s->record, at, WAL_EXEMPLARS, ++db->seq);
    wal_put(db->wal, db->seq, &s->record);
}

void db_append_exemplars_locked(struct db *db, const struct batch *b, struct append_result *result)
{
    if (b->n_exemplars == 0 || db->exemplars == NULL) return;
    struct append_scratch *s = &db->scratch;
    uint32_t generation = wal_generation(db->wal), stored = 0, alias = ALIAS_NONE;
    wal_defs_clear(&s->defs);
    buf_clear(&s->exemplars);
    for (uint32_t i = 0; i < b->n_exemplars; i++) {
        arena_reset(&s->arena);
        uint32_t handle = find_series(db, b, i, &alias);
        if (handle == SERIES_NONE) {
            counter_inc(db->metrics.exemplars_unknown);
        } else if (add_one(db, b, i, handle, result)) {
            db_define_series(db, handle, generation);
            stored++;
        }
    }
    counter_add(db->metrics.exemplars, stored);
    counter_add(db->metrics.exemplars_late, result->exemplars_late);
    if (stored == 0) return;
    put_record(db, stored);
    result->seq = db->seq;
}

/* ---- flush and recovery ----------------------------------------------------------------------------------------- */

err db_save_exemplars(struct db *db)
{
    return db->exemplars == NULL ? NULL : exemplars_save(db->exemplars, db->env, db->path, false);
}

err db_load_exemplars(struct db *db)
{
    if (db->exemplars == NULL) return NULL;
    err e = exemplars_load(db->exemplars, db->env, db->path);
    /* Numbers of a log whose end a crash took are not given out again: a replay would take them for what is here. */
    if (exemplars_seq(db->exemplars) > db->seq) db->seq = exemplars_seq(db->exemplars);
    if (err_code(e) != ERR_CORRUPT) return e;
    log_error(db->log, "the file of exemplars is damaged, they are lost", "error=\"%s\"", err_message(e));
    err_free(e);
    return NULL;
}

void db_replay_exemplar(struct db *db, uint32_t handle, const struct exemplar *x, uint64_t seq, struct arena *a)
{
    if (db->exemplars == NULL) return;
    struct labels series = registry_labels(db->registry, handle, a);
    exemplars_add(db->exemplars, &series, x, seq);
}

err db_flush_exemplars(struct db *db)
{
    pthread_mutex_lock(&db->append_lock);
    bool alone = head_is_empty(db->head) && wal_bytes(db->wal) >= db->o.wal_max_bytes;
    if (alone) db->head->wal_gen = db->head->defined_gen = wal_rotate(db->wal);
    uint32_t generation = db->head->wal_gen;
    pthread_mutex_unlock(&db->append_lock);
    if (!alone) return NULL;
    TRY(db_save_exemplars(db));
    TRY(db_commit(db, &(struct db_change){.wal_floor = generation}));
    return wal_retire(db->wal, generation);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

err storage_exemplars(struct db *db, const struct exemplar_selector *s, size_t n, int64_t t_min, int64_t t_max,
                      struct arena *a, struct exemplar_series **out, size_t *n_out)
{
    *out = NULL;
    *n_out = 0;
    return db->exemplars == NULL ? NULL : exemplars_select(db->exemplars, s, n, t_min, t_max, a, out, n_out);
}
