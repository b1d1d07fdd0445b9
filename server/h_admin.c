/*
 * h_admin.c: operations on the whole database, on a slow worker: delete, flush, merge, snapshots.
 *
 * Paths and answers are those of Prometheus (/api/v1/admin/tsdb) and VictoriaMetrics (/snapshot,
 * /internal), so their scripts work. A call returns when its work is done and durable.
 */
#include "server/args.h"
#include "server/handlers.h"
#include "storage/base/alloc.h"
#include "storage/base/num.h"

/* 204 or the error. */
static void done(struct exchange *x, err e)
{
    if (e != NULL)
        answer_err(&x->out, e);
    else
        x->out.status = 204;
}

static err delete_series(struct server *s, struct exchange *x, struct match_sets *sets)
{
    int64_t start, end;
    TRY(args_match(x, true, sets));
    TRY(args_range(x, &start, &end));
    for (uint32_t i = 0; i < sets->n; i++)
        TRY(storage_delete(s->db, sets->sets[i].m, sets->sets[i].n, start, end));
    return NULL;
}

void h_admin_delete_series(struct server *s, struct exchange *x)
{
    struct match_sets sets = {0};
    err e = delete_series(s, x, &sets);
    match_sets_deinit(&sets);
    done(x, e);
}

void h_admin_clean_tombstones(struct server *s, struct exchange *x)
{
    done(x, storage_merge(s->db, -1));
}

/* ---- snapshots ----------------------------------------------------------------------------------------------- */

void h_admin_snapshot(struct server *s, struct exchange *x)
{
    char *name = NULL;
    err e = storage_snapshot(s->db, NULL, &name);
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    answer_data_begin(&x->out);
    struct json j;
    json_init(&j, &x->out.body);
    json_object(&j);
    json_key(&j, "name");
    json_cstr(&j, name);
    json_object_end(&j);
    answer_data_end(&x->out, NULL);
    mem_free(name);
}

/* {"status":"ok" and what the caller adds before json_object_end. */
static void ok_begin(struct exchange *x, struct json *j)
{
    answer_reset(&x->out);
    x->out.status = 200;
    json_init(j, &x->out.body);
    json_object(j);
    json_key(j, "status");
    json_cstr(j, "ok");
}

void h_admin_snapshot_create(struct server *s, struct exchange *x)
{
    char *name = NULL;
    struct json j;
    err e = storage_snapshot(s->db, NULL, &name);
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    ok_begin(x, &j);
    json_key(&j, "snapshot");
    json_cstr(&j, name);
    json_object_end(&j);
    mem_free(name);
}

static void add_snapshot(void *arg, str name)
{
    json_str(arg, name);
}

void h_admin_snapshot_list(struct server *s, struct exchange *x)
{
    struct json j;
    ok_begin(x, &j);
    json_key(&j, "snapshots");
    json_array(&j);
    err e = storage_snapshot_list(s->db, add_snapshot, &j);
    json_array_end(&j);
    json_object_end(&j);
    if (e != NULL) answer_err(&x->out, e);
}

void h_admin_snapshot_delete(struct server *s, struct exchange *x)
{
    str name = args_text(x, "snapshot");
    err e = name.n > 0 ? storage_snapshot_delete(s->db, name)
                       : err_new(ERR_INVALID, "invalid parameter \"snapshot\": it is missing");
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    struct json j;
    ok_begin(x, &j);
    json_object_end(&j);
}

void h_admin_snapshot_delete_all(struct server *s, struct exchange *x)
{
    struct json j;
    size_t removed;
    err e = storage_snapshots_remove(s->db, INT64_MAX, &removed);
    if (e != NULL) {
        answer_err(&x->out, e);
        return;
    }
    ok_begin(x, &j);
    json_object_end(&j);
}

/* ---- flush and merge ----------------------------------------------------------------------------------------- */

void h_admin_force_flush(struct server *s, struct exchange *x)
{
    err e = storage_flush(s->db);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        answer_text(&x->out, 200, "");
}

/* "2026_11" → the months since 1970; -1 = all, for no text. */
static err parse_partition(str text, int32_t *out)
{
    int64_t year, month;
    *out = -1;
    if (text.n == 0) return NULL;
    bool shaped = text.n == 7 && text.p[4] == '_' && num_parse_i64((str){text.p, 4}, &year) &&
                  num_parse_i64((str){text.p + 5, 2}, &month);
    if (!shaped || year < 1970 || month < 1 || month > 12)
        return err_new(ERR_INVALID, "invalid parameter \"partition_prefix\": it is not YYYY_MM");
    *out = (int32_t)((year - 1970) * 12 + month - 1);
    return NULL;
}

void h_admin_force_merge(struct server *s, struct exchange *x)
{
    int32_t partition;
    err e = parse_partition(args_text(x, "partition_prefix"), &partition);
    if (e == NULL) e = storage_merge(s->db, partition);
    if (e != NULL)
        answer_err(&x->out, e);
    else
        answer_text(&x->out, 200, "");
}

void h_admin_forget_results(struct server *s, struct exchange *x)
{
    query_results_forget(s->engine);
    answer_text(&x->out, 200, "");
}
