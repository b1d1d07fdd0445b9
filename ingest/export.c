/*
 * export.c: samples out: the walk over the series, and JSON lines, the form that jsonl.c reads.
 *
 * Series by series, run by run: no more than a run's samples and one batch are in memory, however long
 * the range. A batch (a line of JSON) ends when it has max_rows samples, when samples turn from floats to
 * histograms or back, and with its series. Output goes out in pieces of about EMIT bytes. The other forms
 * are in export_text.c and export_csv.c. One call, one thread.
 */
#include "ingest/export_internal.h"
#include "ingest/hist_json.h"
#include "storage/base/alloc.h"

#define EMIT (64u << 10)
#define ROWS_DEFAULT 10000

static err emit(struct exporting *x, size_t from)
{
    if (x->out.n < from) return NULL;
    TRY(buf_status(&x->out, "an export"));
    bool go_on = x->emit(x->arg, buf_as_str(&x->out));
    buf_clear(&x->out);
    return go_on ? NULL : err_new(ERR_CANCELED, "export was stopped");
}

/* ---- JSON lines -------------------------------------------------------------------------------------------------- */

void export_put_labels(const struct labels *ls, struct json *j)
{
    json_object(j);
    for (uint32_t i = 0; i < ls->n; i++) {
        json_key_str(j, ls->v[i].name);
        json_str(j, ls->v[i].value);
    }
    json_object_end(j);
}

static err put_samples(struct exporting *x, struct json *j)
{
    json_key(j, x->is_hist ? "histograms" : "values");
    json_array(j);
    for (size_t i = 0; i < x->n; i++) {
        if (x->is_hist) {
            struct hist h;
            struct arena_mark mark = arena_mark(&x->blobs);
            TRY(hist_decode(x->hist[i], &x->blobs, &h));
            hist_json_print(&h, j);
            arena_rewind(&x->blobs, mark);
        } else {
            hist_json_double(x->v[i], j);
        }
    }
    json_array_end(j);
    return NULL;
}

static err json_samples(struct exporting *x)
{
    struct json j;
    json_init(&j, &x->out);
    json_object(&j);
    json_key(&j, "metric");
    export_put_labels(&x->labels, &j);
    TRY(put_samples(x, &j));
    json_key(&j, "timestamps");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++)
        json_i64(&j, x->t[i]);
    json_array_end(&j);
    json_object_end(&j);
    buf_u8(&x->out, '\n');
    return NULL;
}

const struct export_form export_form_json = {.hists = true, .samples = json_samples};

/* ---- the walk ---------------------------------------------------------------------------------------------------- */

/* Writes the samples gathered so far. */
static err end_batch(struct exporting *x)
{
    if (x->n == 0) return NULL;
    TRY(x->form->samples(x));
    x->in_series = x->any = true;
    x->n = 0;
    arena_reset(&x->blobs);
    return emit(x, EMIT);
}

static err add_sample(struct exporting *x, const struct samples *s, size_t i)
{
    bool is_hist = s->hist != NULL && s->hist[i].n > 0;
    if (is_hist && !x->form->hists) return NULL;
    if (x->n == x->max_rows || is_hist != x->is_hist) TRY(end_batch(x));
    x->is_hist = is_hist;
    x->t = mem_grow(x->t, &x->cap_t, x->n + 1, sizeof x->t[0]);
    x->v = mem_grow(x->v, &x->cap_v, x->n + 1, sizeof x->v[0]);
    x->t[x->n] = s->t[i];
    x->v[x->n] = s->v[i];
    if (is_hist) {
        x->hist = mem_grow(x->hist, &x->cap_hist, x->n + 1, sizeof x->hist[0]);
        x->hist[x->n] = (str){arena_dup(&x->blobs, s->hist[i].p, s->hist[i].n), s->hist[i].n};
    }
    x->n++;
    return NULL;
}

static err export_series(struct exporting *x, struct reader *r, size_t i, int64_t t_min, int64_t t_max)
{
    const struct sample_run *found;
    size_t n;
    arena_reset(&x->series);
    x->in_series = false;
    TRY(reader_labels(r, i, &x->series, &x->labels));
    TRY(reader_runs(r, i, t_min, t_max, &found, &n));
    if (n == 0) return NULL;
    struct sample_run *runs = arena_dup(&x->series, found, n * sizeof found[0]); /* reading samples ends theirs */
    for (size_t k = 0; k < n; k++) {
        struct samples s;
        TRY(reader_samples(r, i, runs[k].t_min, runs[k].t_max, &s));
        for (size_t at = 0; at < s.n; at++)
            TRY(add_sample(x, &s, at));
    }
    TRY(end_batch(x));
    if (x->in_series && x->form->end_series != NULL) x->form->end_series(x);
    return NULL;
}

static err export_all(struct exporting *x, struct selection *s, const struct ingest_export *rq)
{
    struct reader *r = reader_create(s);
    err e = NULL;
    if (x->form->begin != NULL) x->form->begin(x);
    for (size_t i = 0; i < selection_count(s) && e == NULL; i++)
        e = export_series(x, r, i, rq->t_min, rq->t_max);
    if (e == NULL && x->form->end != NULL) x->form->end(x);
    if (e == NULL) e = emit(x, 1);
    reader_destroy(r);
    return e;
}

err ingest_export(struct db *db, const struct ingest_export *rq, ingest_emit_fn emit_fn, void *arg)
{
    static const struct export_form *const forms[] = {[INGEST_EXPORT_JSON_LINES] = &export_form_json,
                                                      [INGEST_EXPORT_TEXT] = &export_form_text,
                                                      [INGEST_EXPORT_PROMAPI] = &export_form_promapi,
                                                      [INGEST_EXPORT_CSV] = &export_form_csv};
    struct exporting x = {.form = forms[rq->format], .emit = emit_fn, .arg = arg};
    x.max_rows = rq->max_rows > 0 ? rq->max_rows : ROWS_DEFAULT;
    struct select_options o = {.t_min = rq->t_min, .t_max = rq->t_max};
    struct selection *s = NULL;
    err e = NULL;
    if (rq->format == INGEST_EXPORT_CSV) TRY_OUT(export_csv_parse(rq->columns, &x.lifetime, &x.csv, &x.n_csv));
    TRY_OUT(storage_select_any(db, rq->sets, rq->n_sets, &o, &s));
    e = export_all(&x, s, rq);
out:
    selection_destroy(s);
    buf_deinit(&x.out);
    buf_deinit(&x.line);
    arena_deinit(&x.series);
    arena_deinit(&x.blobs);
    arena_deinit(&x.lifetime);
    mem_free(x.t);
    mem_free(x.v);
    mem_free(x.hist);
    return e;
}
