/*
 * fuzz_export_csv.c: any bytes as the columns of a CSV export, and rows in those columns: as many fields in each row
 * as in the first, when read as RFC 4180 has it.
 */
#include "ingest/export_internal.h"

#include "storage/base/assert.h"

/* Fields of each row, by an independent reading; false if quotes are not as they should be. */
static bool count_fields(str text, size_t *first, bool *even)
{
    bool quoted = false, begin = true;
    size_t fields = 1, rows = 0;
    *even = true;
    for (size_t i = 0; i < text.n; i++) {
        char c = text.p[i];
        if (quoted) {
            if (c != '"') continue;
            if (i + 1 < text.n && text.p[i + 1] == '"')
                i++;
            else
                quoted = false;
            continue;
        }
        if (c == '"' && !begin) return false;
        quoted = c == '"';
        begin = c == ',' || c == '\n';
        fields += c == ',';
        if (c != '\n') continue;
        if (rows++ == 0) *first = fields;
        if (fields != *first) *even = false;
        fields = 1;
    }
    return !quoted && rows == 4;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct label labels[] = {{LABEL_NAME, STR("m")}, {STR("a"), STR("\",\n")}, {STR("job"), STR("")}};
    int64_t t[] = {-62135596800001, 0, INT64_C(253402300799999)};
    double v[] = {0.1, -1e300, 1.0 / 3};
    struct exporting x = {.labels = {labels, ARRAY_LEN(labels)}, .t = t, .v = v, .n = 3};
    size_t first = 0;
    bool even = false;
    err e = export_csv_parse((str){(const char *)data, size}, &x.lifetime, &x.csv, &x.n_csv);
    if (e == NULL) {
        check(x.n_csv > 0);
        export_form_csv.begin(&x);
        e = export_form_csv.samples(&x);
        check(e == NULL);
        check(count_fields(buf_as_str(&x.out), &first, &even));
        check(even);
        check(first == x.n_csv);
    }
    err_free(e);
    buf_deinit(&x.out);
    arena_deinit(&x.lifetime);
    return 0;
}
