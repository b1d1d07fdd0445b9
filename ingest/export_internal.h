/*
 * export_internal.h: what the walk over the series (export.c) and the forms of the answer share.
 */
#ifndef VARVE_INGEST_EXPORT_INTERNAL_H
#define VARVE_INGEST_EXPORT_INTERNAL_H

#include "ingest/ingest.h"
#include "storage/base/json.h"

struct exporting;

/* A form of the answer. Each function appends to x->out; NULL: there is nothing to add at that point. */
struct export_form {
    bool hists;                              /* has a way to write native histograms; else they are left out */
    void (*begin)(struct exporting *x);      /* before the first series */
    err (*samples)(struct exporting *x);     /* x->n samples of the series, n > 0; may come several times */
    void (*end_series)(struct exporting *x); /* after a series that had samples */
    void (*end)(struct exporting *x);
};

struct exporting {
    const struct export_form *form;
    ingest_emit_fn emit;
    void *arg;
    struct buf out;
    struct labels labels;
    struct arena series; /* labels and runs of the current series */
    struct arena blobs;  /* histograms of the current line */
    size_t max_rows, n, cap_t, cap_v, cap_hist;
    int64_t *t;
    double *v;
    str *hist; /* if is_hist */
    bool is_hist;
    bool in_series;         /* samples of it were written */
    bool any;               /* some series was written */
    struct arena lifetime;  /* what a form keeps for the whole export: */
    struct csv_column *csv; /* ... the columns of CSV */
    uint32_t n_csv;
    struct buf line; /* ... what stands before each sample of the series, in text */
};

extern const struct export_form export_form_json;    /* export.c */
extern const struct export_form export_form_text;    /* export_text.c */
extern const struct export_form export_form_promapi; /* export_text.c */
extern const struct export_form export_form_csv;     /* export_csv.c */

void export_put_labels(const struct labels *ls, struct json *j); /* {"name":"value",...} */

/* One column of CSV. */
enum csv_kind { CSV_LABEL, CSV_VALUE, CSV_UNIX_S, CSV_UNIX_MS, CSV_UNIX_NS, CSV_RFC3339, CSV_LAYOUT };
struct csv_column {
    enum csv_kind kind;
    str text; /* the column as asked for */
    str arg;  /* name of the label; layout of the time */
};
/* `__name__,label,__value__,__timestamp__:unix_s` → columns; strings point into the text. ERR_INVALID names the one
 * that is wrong. */
err export_csv_parse(str format, struct arena *a, struct csv_column **out, uint32_t *n)
    __attribute__((warn_unused_result));

#endif
