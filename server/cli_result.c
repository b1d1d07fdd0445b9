/*
 * cli_result.c: results of queries as tables, lists and CSV.
 *
 * A table has a column for each label name that any series has, the metric's name first; a series
 * without it has an empty cell. Values stay the text that the server sent. No input or output here:
 * text goes to a buffer, so that a fuzzer can drive it. Stateless.
 */
#include "server/cli_result.h"

#include <stdlib.h>
#include <time.h>

#include "server/table.h"
#include "storage/base/alloc.h"
#include "storage/base/num.h"

#define NAMES_MAX 1000 /* columns; beyond, a table helps nobody */

/* ---- columns ------------------------------------------------------------------------------------------------- */

struct names {
    str *v;
    size_t n, cap;
};

static bool names_have(const struct names *names, str name)
{
    for (size_t i = 0; i < names->n; i++)
        if (str_eq(names->v[i], name)) return true;
    return false;
}

/* __name__ first, the others in byte order. */
static int compare_names(const void *a, const void *b)
{
    const str *x = a, *y = b;
    bool first = str_eq(*x, LABEL_NAME), second = str_eq(*y, LABEL_NAME);
    return first || second ? second - first : str_cmp(*x, *y);
}

static err collect_names(const struct api_result *r, struct names *names)
{
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->series[i].n_labels; k++) {
            str name = r->series[i].labels[k].name;
            if (names_have(names, name)) continue;
            if (names->n == NAMES_MAX)
                return err_new(ERR_LIMIT, "more than %d label names: too many for columns; use --format=json",
                               NAMES_MAX);
            names->v = mem_grow(names->v, &names->cap, names->n + 1, sizeof *names->v);
            names->v[names->n++] = name;
        }
    if (names->n > 1) qsort(names->v, names->n, sizeof *names->v, compare_names);
    return NULL;
}

static struct labels labels_of(const struct api_series *s)
{
    return (struct labels){s->labels, (uint32_t)s->n_labels};
}

static void add_label_cells(struct table *t, const struct names *names, const struct api_series *s)
{
    struct labels ls = labels_of(s);
    for (size_t i = 0; i < names->n; i++)
        table_cell(t, labels_get(&ls, names->v[i]));
}

static str value_of(const struct api_sample *s, struct arena *a)
{
    return s->histogram ? arena_printf(a, "{count:%.*s, sum:%.*s}", STR_ARG(s->v), STR_ARG(s->sum)) : s->v;
}

/* 2026-11-30T16:00:00Z, with milliseconds if there are any; the text itself if it is no time of ours. */
static str clock_of(str seconds, struct arena *a)
{
    double s;
    if (!num_parse_double(seconds, &s) || !(s > -6e10 && s < 2.5e11)) return seconds;
    int64_t ms = (int64_t)(s * 1000 + (s < 0 ? -0.5 : 0.5)), rest = (ms % 1000 + 1000) % 1000;
    time_t whole = (time_t)((ms - rest) / 1000);
    struct tm tm;
    char text[64];
    if (gmtime_r(&whole, &tm) == NULL || strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &tm) == 0) return seconds;
    return rest != 0 ? arena_printf(a, "%s.%03dZ", text, (int)rest) : arena_printf(a, "%sZ", text);
}

/* ---- forms --------------------------------------------------------------------------------------------------- */

static void vector_table(const struct api_result *r, const struct names *names, struct arena *a, bool bold,
                         struct buf *out)
{
    struct table t;
    table_init(&t, names->n + 1, a);
    for (size_t i = 0; i < names->n; i++)
        table_column(&t, i, names->v[i], TABLE_LEFT);
    table_column(&t, names->n, STR("value"), TABLE_RIGHT);
    for (size_t i = 0; i < r->n; i++) {
        table_row(&t);
        add_label_cells(&t, names, &r->series[i]);
        table_cell(&t, r->series[i].n_samples > 0 ? value_of(&r->series[i].samples[0], a) : (str){0});
    }
    table_print(&t, bold, out);
    table_deinit(&t);
}

static void print_selector(const struct api_series *s, struct buf *out)
{
    struct buf text = {0};
    struct labels ls = labels_of(s);
    labels_print(&ls, &text);
    table_safe_text(out, buf_as_str(&text));
    buf_str(out, STR("\n"));
    buf_deinit(&text);
}

static void series_block(const struct api_series *s, struct arena *a, bool bold, struct buf *out)
{
    struct arena_mark mark = arena_mark(a);
    struct table t;
    table_init(&t, 3, a);
    table_column(&t, 1, STR("time"), TABLE_LEFT);
    table_column(&t, 2, STR("value"), TABLE_RIGHT);
    for (size_t i = 0; i < s->n_samples; i++) {
        table_row(&t);
        table_cell(&t, (str){0}); /* indents */
        table_cell(&t, clock_of(s->samples[i].t, a));
        table_cell(&t, value_of(&s->samples[i], a));
    }
    print_selector(s, out);
    table_print(&t, bold, out);
    table_deinit(&t);
    arena_rewind(a, mark);
}

err cli_result_table(const struct api_result *r, struct arena *a, bool bold, struct buf *out)
{
    if (r->kind == API_SCALAR || r->kind == API_STRING) {
        table_safe_text(out, r->series[0].samples[0].v);
        buf_str(out, STR("\n"));
        return NULL;
    }
    if (r->n == 0) return NULL;
    if (r->kind == API_MATRIX) {
        for (size_t i = 0; i < r->n; i++)
            series_block(&r->series[i], a, bold, out);
        return NULL;
    }
    struct names names = {0};
    err e = collect_names(r, &names);
    if (e == NULL) vector_table(r, &names, a, bold, out);
    mem_free(names.v);
    return e;
}

static void csv_rows(const struct api_result *r, const struct names *names, struct arena *a, struct buf *out)
{
    struct table t;
    table_init(&t, names->n + 2, a);
    for (size_t i = 0; i < names->n; i++)
        table_column(&t, i, names->v[i], TABLE_LEFT);
    table_column(&t, names->n, STR("timestamp"), TABLE_LEFT);
    table_column(&t, names->n + 1, STR("value"), TABLE_LEFT);
    for (size_t i = 0; i < r->n; i++)
        for (size_t k = 0; k < r->series[i].n_samples; k++) {
            table_row(&t);
            add_label_cells(&t, names, &r->series[i]);
            table_cell(&t, r->series[i].samples[k].t);
            table_cell(&t, value_of(&r->series[i].samples[k], a));
        }
    table_print_csv(&t, out);
    table_deinit(&t);
}

err cli_result_csv(const struct api_result *r, struct arena *a, struct buf *out)
{
    struct names names = {0};
    err e = collect_names(r, &names);
    if (e == NULL) csv_rows(r, &names, a, out);
    mem_free(names.v);
    return e;
}

static void series_rows(const struct api_result *r, const struct names *names, struct arena *a, struct buf *out)
{
    struct table t;
    table_init(&t, names->n, a);
    for (size_t i = 0; i < names->n; i++)
        table_column(&t, i, names->v[i], TABLE_LEFT);
    for (size_t i = 0; i < r->n; i++) {
        table_row(&t);
        add_label_cells(&t, names, &r->series[i]);
    }
    table_print_csv(&t, out);
    table_deinit(&t);
}

err cli_result_series_csv(const struct api_result *r, struct arena *a, struct buf *out)
{
    struct names names = {0};
    err e = collect_names(r, &names);
    if (e == NULL && names.n > 0) series_rows(r, &names, a, out);
    mem_free(names.v);
    return e;
}

static int compare_series(const void *a, const void *b)
{
    struct labels x = labels_of(*(const struct api_series *const *)a);
    struct labels y = labels_of(*(const struct api_series *const *)b);
    return labels_cmp(&x, &y);
}

void cli_result_selectors(const struct api_result *r, struct buf *out)
{
    const struct api_series **order = mem_alloc(r->n * sizeof(struct api_series *) + 1);
    for (size_t i = 0; i < r->n; i++)
        order[i] = &r->series[i];
    if (r->n > 1) qsort(order, r->n, sizeof *order, compare_series);
    for (size_t i = 0; i < r->n; i++)
        print_selector(order[i], out);
    mem_free(order);
}
