/*
 * export.c: samples out as JSON lines, in the form jsonl.c reads.
 *
 * Series by series, run by run: no more than a run's samples and one line are in memory, however long
 * the range. A line ends when it has max_rows samples, when samples turn from floats to histograms or
 * back, and with its series. Output goes out in pieces of about EMIT bytes. One call, one thread.
 */
#include "ingest/hist_json.h"
#include "ingest/ingest.h"
#include "storage/base/alloc.h"

#define EMIT (64u << 10)
#define ROWS_DEFAULT 10000

struct exporting {
    ingest_emit_fn emit;
    void *arg;
    struct buf out;
    struct labels labels;
    struct arena series; /* labels and runs of the current series */
    struct arena blobs;  /* histograms of the current line */
    size_t max_rows, n, cap_t, cap_v, cap_hist;
    int64_t *t;
    double *v;
    str *hist; /* of the line, if is_hist */
    bool is_hist;
};

static err emit(struct exporting *x, size_t from)
{
    if (x->out.n < from) return NULL;
    bool go_on = x->emit(x->arg, buf_as_str(&x->out));
    buf_clear(&x->out);
    return go_on ? NULL : err_new(ERR_CANCELED, "export was stopped");
}

static void print_metric(const struct labels *ls, struct json *j)
{
    json_key(j, "metric");
    json_object(j);
    for (uint32_t i = 0; i < ls->n; i++) {
        json_key_str(j, ls->v[i].name);
        json_str(j, ls->v[i].value);
    }
    json_object_end(j);
}

static err print_samples(struct exporting *x, struct json *j)
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

/* Writes the samples gathered so far as one line. */
static err end_line(struct exporting *x)
{
    struct json j;
    if (x->n == 0) return NULL;
    json_init(&j, &x->out);
    json_object(&j);
    print_metric(&x->labels, &j);
    TRY(print_samples(x, &j));
    json_key(&j, "timestamps");
    json_array(&j);
    for (size_t i = 0; i < x->n; i++)
        json_i64(&j, x->t[i]);
    json_array_end(&j);
    json_object_end(&j);
    buf_u8(&x->out, '\n');
    x->n = 0;
    arena_reset(&x->blobs);
    return emit(x, EMIT);
}

static err add_sample(struct exporting *x, const struct samples *s, size_t i)
{
    bool is_hist = s->hist != NULL && s->hist[i].n > 0;
    if (x->n == x->max_rows || is_hist != x->is_hist) TRY(end_line(x));
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
    return end_line(x);
}

err ingest_export_json(struct db *db, const struct matcher *m, size_t n, int64_t t_min, int64_t t_max, size_t max_rows,
                       ingest_emit_fn emit_fn, void *arg)
{
    struct exporting x = {.emit = emit_fn, .arg = arg, .max_rows = max_rows ? max_rows : ROWS_DEFAULT};
    struct select_options o = {.t_min = t_min, .t_max = t_max};
    struct selection *s = NULL;
    TRY(storage_select(db, m, n, &o, &s));
    struct reader *r = reader_create(s);
    err e = NULL;
    for (size_t i = 0; i < selection_count(s) && e == NULL; i++)
        e = export_series(&x, r, i, t_min, t_max);
    if (e == NULL) e = emit(&x, 1);
    reader_destroy(r);
    selection_destroy(s);
    buf_deinit(&x.out);
    arena_deinit(&x.series);
    arena_deinit(&x.blobs);
    mem_free(x.t);
    mem_free(x.v);
    mem_free(x.hist);
    return e;
}
