/*
 * result.c: from an operator's rows to the JSON of the Prometheus API.
 *
 * Metric names that were to be dropped go here, at last, so this is also where two rows may turn out
 * to be one series (they are merged) or to contradict each other (an error). An instant vector streams
 * into the buffer; a matrix must be sorted and is held until all rows are there. After an error the
 * buffer's contents are of no use. Called by the query's thread.
 *
 *   {"metric":{...},"value":[t,"v"]}                                    vector
 *   {"metric":{...},"values":[[t,"v"],...],"histograms":[[t,{...}],...]}  matrix
 */
#include "query/result.h"

#include <stdlib.h>

#include "storage/base/num.h"

/* ---- parts --------------------------------------------------------------------------------------------- */

void result_labels(struct json *j, const struct labels *ls)
{
    json_object(j);
    for (uint32_t i = 0; i < ls->n; i++) {
        json_key_str(j, ls->v[i].name);
        json_str(j, ls->v[i].value);
    }
    json_object_end(j);
}

void label_printer_init(struct label_printer *p)
{
    p->n = 0; /* the rest is written before it is read */
}

static bool same_place(const struct label *a, const struct label *b)
{
    return a->name.p == b->name.p && a->name.n == b->name.n && a->value.p == b->value.p && a->value.n == b->value.n;
}

/* Copies the texts of pairs i ... end - 1, which follow each other. They move with the buffer. */
static void copy_pairs(struct label_printer *p, struct buf *out, uint32_t i, uint32_t end)
{
    size_t from = p->v[i].from, n = p->v[end - 1].to - from, at = out->n;
    uint8_t *to = buf_reserve(out, n);
    if (to == NULL) return;
    memcpy(to, out->data + from, n);
    out->n += n;
    for (; i < end; i++) {
        p->v[i].from += at - from;
        p->v[i].to += at - from;
    }
}

static void put_pair(struct printed_label *to, struct buf *out, const struct label *pair)
{
    struct json j;
    json_init(&j, out);
    to->pair = *pair;
    to->from = out->n;
    json_key_str(&j, pair->name);
    json_str(&j, pair->value);
    to->to = out->n;
}

void label_printer_put(struct label_printer *p, struct json *j, const struct labels *ls)
{
    struct buf *out = j->out;
    json_raw(j, STR("{"));
    for (uint32_t i = 0; i < ls->n;) {
        if (i > 0) buf_u8(out, ',');
        uint32_t end = i;
        while (end < ls->n && end < p->n && same_place(&ls->v[end], &p->v[end].pair))
            end++;
        if (end > i) {
            copy_pairs(p, out, i, end);
            i = end;
        } else {
            put_pair(&p->v[i], out, &ls->v[i]);
            i++;
        }
    }
    p->n = ls->n;
    buf_u8(out, '}');
}

static void put_metric(struct json *j, const struct labels *ls)
{
    json_key(j, "metric");
    result_labels(j, ls);
}

/* 0: (a,b]  1: [a,b)  2: (a,b)  3: [a,b] */
static int64_t boundary_rule(const struct hist_bucket *b)
{
    if (b->lower_inclusive) return b->upper_inclusive ? 3 : 1;
    return b->upper_inclusive ? 0 : 2;
}

static void put_hist(struct json *j, const struct hist *h)
{
    struct arena scratch = {0};
    size_t n;
    const struct hist_bucket *b = hist_buckets(h, &scratch, &n);
    json_object(j);
    json_key(j, "count");
    json_sample_value(j, h->count);
    json_key(j, "sum");
    json_sample_value(j, h->sum);
    bool any = false;
    for (size_t i = 0; i < n; i++) {
        if (b[i].count == 0) continue;
        if (!any) {
            json_key(j, "buckets");
            json_array(j);
            any = true;
        }
        json_array(j);
        json_i64(j, boundary_rule(&b[i]));
        json_sample_value(j, b[i].lower);
        json_sample_value(j, b[i].upper);
        json_sample_value(j, b[i].count);
        json_array_end(j);
    }
    if (any) json_array_end(j);
    json_object_end(j);
    arena_deinit(&scratch);
}

static void put_point(struct json *j, int64_t ms, double v)
{
    json_array(j);
    json_ms(j, ms);
    json_sample_value(j, v);
    json_array_end(j);
}

static void put_hist_point(struct json *j, int64_t ms, const struct hist *h)
{
    json_array(j);
    json_ms(j, ms);
    put_hist(j, h);
    json_array_end(j);
}

static void begin(struct json *j, struct buf *out, const char *type)
{
    json_init(j, out);
    json_object(j);
    json_key(j, "resultType");
    json_cstr(j, type);
    json_key(j, "result");
}

void result_scalar(int64_t ms, double v, struct buf *out)
{
    struct json j;
    begin(&j, out, "scalar");
    put_point(&j, ms, v);
}

void result_string(int64_t ms, str s, struct buf *out)
{
    struct json j;
    begin(&j, out, "string");
    json_array(&j);
    json_ms(&j, ms);
    json_str(&j, s);
    json_array_end(&j);
}

/* ---- vector ------------------------------------------------------------------------------------------------ */

static void put_vector_row(struct json *j, const struct row *row, const struct labels *ls, int64_t ms)
{
    json_object(j);
    put_metric(j, ls);
    if (row_has_hist(row, 0)) {
        json_key(j, "histogram");
        put_hist_point(j, ms, row->h[0]);
    } else {
        json_key(j, "value");
        put_point(j, ms, row->v[0]);
    }
    json_object_end(j);
}

static err vector_rows(struct op *op, uint64_t limit, struct json *j, struct map *seen, bool *truncated)
{
    struct label_key all = {.hash = op->x->hash, .except = true};
    struct arena_mark mark = arena_mark(op->x->arena);
    int64_t ms = grid_time(&op->x->plan->grid, 0);
    struct row row;
    bool more, added;
    uint64_t n = 0;
    for (;; arena_rewind(op->x->arena, mark)) {
        TRY(op_next(op, &row, &more));
        if (!more) return NULL;
        mark = arena_mark(op->x->arena); /* operators may have put down what lasts */
        if (!row_has(&row, 0)) continue;
        TRY(row_resolve(&row));
        struct labels ls = row.drop_name ? labels_drop_metadata(&row.labels, op->x->arena) : row.labels;
        if (row.drop_name || op->node->may_repeat) { /* other rows cannot be alike */
            map_put(seen, label_key_hash(&all, &ls), 0, &added);
            if (!added) return error_same_labelset();
        }
        *truncated = limit && n++ >= limit;
        if (!*truncated) put_vector_row(j, &row, &ls, ms);
    }
}

err result_vector(struct op *op, uint64_t limit, struct buf *out, bool *truncated)
{
    struct json j;
    struct map seen = {0};
    *truncated = false;
    begin(&j, out, "vector");
    json_array(&j);
    err e = vector_rows(op, limit, &j, &seen, truncated);
    json_array_end(&j);
    map_deinit(&seen);
    return e;
}

/* ---- matrix -------------------------------------------------------------------------------------------------- */

static int compare_held(const void *a, const void *b)
{
    return labels_cmp(&((const struct held_row *)a)->labels, &((const struct held_row *)b)->labels);
}

/* The beginning of each step's point, [1700000000.5," : the same for all series. */
struct stamps {
    char *text; /* STAMP_MAX bytes each */
    uint8_t *n;
};
#define STAMP_MAX 32
#define STAMP_TAIL 10000 /* what four digits count */

static size_t put_stamp(int64_t ms, char *p)
{
    size_t n = 0;
    p[n++] = '[';
    n += num_format_ms(ms, p + n);
    memcpy(p + n, ",\"", 2);
    return n + 2;
}

/* Neighbours mostly differ in the last four digits of their whole seconds only. */
static struct stamps stamps_of(const struct grid *g, struct arena *a)
{
    struct stamps s = {arena_alloc(a, (size_t)g->n * STAMP_MAX + 1), arena_alloc(a, g->n + 1)};
    const int64_t span = STAMP_TAIL * 1000;
    for (uint32_t i = 0; i < g->n; i++) {
        char *p = s.text + (size_t)i * STAMP_MAX;
        int64_t ms = grid_time(g, i), before = i > 0 ? grid_time(g, i - 1) : -1;
        bool near = before >= span && ms % 1000 == 0 && before % 1000 == 0 && before / span == ms / span;
        if (!near) {
            s.n[i] = (uint8_t)put_stamp(ms, p);
            continue;
        }
        memcpy(p, p - STAMP_MAX, STAMP_MAX);
        s.n[i] = s.n[i - 1];
        num_put_4((unsigned)(ms / 1000 % STAMP_TAIL), p + s.n[i] - 2 - 4);
    }
    return s;
}

/* The hot loop of large answers: text is put together in place. A value like the one before is not formatted anew. */
static void put_values(struct buf *out, const struct stamps *s, const double *v, uint32_t n)
{
    char text[NUM_DOUBLE_MAX + 4];
    size_t text_n = 0;
    uint64_t formatted = STALE_NAN_BITS; /* whose text it is: none yet */
    buf_u8(out, '[');
    for (uint32_t i = 0; i < n; i++) {
        if (is_stale_nan(v[i])) continue;
        char *p = (char *)buf_reserve(out, STAMP_MAX + NUM_DOUBLE_MAX + 4), *at = p;
        if (!p) return;
        if (text_n > 0) *at++ = ',';
        memcpy(at, s->text + (size_t)i * STAMP_MAX, STAMP_MAX);
        at += s->n[i];
        if (f64_bits(v[i]) != formatted) {
            formatted = f64_bits(v[i]);
            text_n = num_format_double(v[i], text);
            memcpy(text + text_n, "\"]", 2);
            text_n += 2;
        }
        at = mempcpy(at, text, text_n);
        out->n += (size_t)(at - p);
    }
    buf_u8(out, ']');
}

static bool any_float(const double *v, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (!is_stale_nan(v[i])) return true;
    return false;
}

static void put_matrix_row(struct json *j, const struct held_row *r, const struct grid *g, const struct stamps *s)
{
    json_object(j);
    put_metric(j, &r->labels);
    if (any_float(r->v, g->n)) {
        json_key(j, "values");
        json_raw(j, (str){0});
        put_values(j->out, s, r->v, g->n);
    }
    bool hists = false;
    for (uint32_t i = 0; r->h && i < g->n; i++) {
        if (!r->h[i]) continue;
        if (!hists) {
            json_key(j, "histograms");
            json_array(j);
            hists = true;
        }
        put_hist_point(j, grid_time(g, i), r->h[i]);
    }
    if (hists) json_array_end(j);
    json_object_end(j);
}

static void drop_names(struct held_rows *rows, struct arena *a)
{
    for (size_t i = 0; i < rows->n; i++) {
        if (rows->v[i].drop_name) rows->v[i].labels = labels_drop_metadata(&rows->v[i].labels, a);
        rows->v[i].drop_name = false;
    }
}

err result_rows(struct op *op, struct held_rows *rows)
{
    TRY(held_collect(op, rows));
    drop_names(rows, op->x->arena);
    TRY(held_merge(op->x, rows, op->n));
    if (rows->n > 1) qsort(rows->v, rows->n, sizeof *rows->v, compare_held);
    return NULL;
}

err result_matrix(struct exec *x, const struct held_rows *rows, const struct grid *g, uint64_t limit, struct buf *out,
                  bool *truncated)
{
    *truncated = limit && rows->n > limit;
    struct stamps stamps = stamps_of(g, x->arena);
    struct json j;
    begin(&j, out, "matrix");
    json_array(&j);
    for (size_t i = 0; i < rows->n && (limit == 0 || i < limit); i++) {
        put_matrix_row(&j, &rows->v[i], g, &stamps);
        TRY(budget_tick(x->budget, 0));
    }
    json_array_end(&j);
    return NULL;
}

/* ---- range vector ---------------------------------------------------------------------------------------------- */

struct held_series {
    struct labels labels;
    int64_t *t;
    double *v;
    struct hist **h;
    size_t n;
};

static err hold_series(struct exec *x, struct series *s, struct held_series *out)
{
    struct row *row = &s->labels;
    TRY(row_resolve(row));
    struct labels ls = row->drop_name ? labels_drop_metadata(&row->labels, x->arena) : row->labels;
    TRY(budget_hold(x->budget, s->n, 2 * sizeof(double) * s->n));
    *out = (struct held_series){.labels = labels_keep(&ls, x->arena),
                                .t = arena_dup(x->arena, s->t, s->n * sizeof *s->t),
                                .v = arena_dup(x->arena, s->v, s->n * sizeof *s->v),
                                .n = s->n};
    if (!s->h) return NULL;
    out->h = arena_zalloc(x->arena, s->n * sizeof(struct hist *));
    for (size_t i = 0; i < s->n; i++)
        if (s->h[i]) out->h[i] = hist_copy(x->arena, s->h[i]);
    return NULL;
}

static int compare_series(const void *a, const void *b)
{
    return labels_cmp(&((const struct held_series *)a)->labels, &((const struct held_series *)b)->labels);
}

static void put_series(struct json *j, const struct held_series *s)
{
    json_object(j);
    put_metric(j, &s->labels);
    for (int pass = 0; pass < 2; pass++) { /* floats, then histograms */
        bool open = false;
        for (size_t i = 0; i < s->n; i++) {
            bool hist = s->h && s->h[i];
            if (hist != (pass == 1)) continue;
            if (!open) {
                json_key(j, pass ? "histograms" : "values");
                json_array(j);
                open = true;
            }
            if (hist)
                put_hist_point(j, s->t[i], s->h[i]);
            else
                put_point(j, s->t[i], s->v[i]);
        }
        if (open) json_array_end(j);
    }
    json_object_end(j);
}

static err collect_series(struct source *s, struct held_series **out, size_t *n)
{
    struct exec *x = s->op->x;
    struct series in;
    size_t cap = 0;
    bool more;
    *n = 0;
    *out = NULL;
    for (;;) {
        TRY(source_next(s, &in, &more));
        if (!more) return NULL;
        if (*n == cap) {
            cap = cap ? cap * 2 : 16;
            struct held_series *v = arena_alloc(x->arena, cap * sizeof *v);
            if (*n) memcpy(v, *out, *n * sizeof *v);
            *out = v;
        }
        TRY(hold_series(x, &in, &(*out)[*n]));
        (*n)++;
    }
}

err result_samples(struct source *s, uint64_t limit, struct buf *out, bool *truncated)
{
    struct held_series *series;
    size_t n;
    TRY(collect_series(s, &series, &n));
    if (n > 1) qsort(series, n, sizeof *series, compare_series);
    for (size_t i = 1; i < n; i++)
        if (labels_eq(&series[i - 1].labels, &series[i].labels)) return error_same_labelset();
    *truncated = limit && n > limit;
    if (*truncated) n = limit;
    struct json j;
    begin(&j, out, "matrix");
    json_array(&j);
    for (size_t i = 0; i < n; i++)
        put_series(&j, &series[i]);
    json_array_end(&j);
    return NULL;
}
