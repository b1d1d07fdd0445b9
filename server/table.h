/*
 * table.h: rows of cells as aligned text or as CSV.
 */
#ifndef VARVE_SERVER_TABLE_H
#define VARVE_SERVER_TABLE_H

#include "storage/base/arena.h"
#include "storage/base/buf.h"

enum table_align { TABLE_LEFT, TABLE_RIGHT };

/* A row begins with table_row; its cells are added in the order of the columns, and those not added are empty. */
struct table {
    struct arena *arena; /* borrowed: columns and rows live in it. Cells' text is borrowed, not copied */
    str *names;
    enum table_align *aligns;
    size_t n_columns;
    str *cells; /* row by row; heap, table_deinit */
    size_t n_cells, cap_cells;
    size_t at; /* column of the next cell */
};

/* An empty table of that many columns (one at least), to be named by table_column in order. */
void table_init(struct table *t, size_t n_columns, struct arena *a);
void table_deinit(struct table *t);
void table_column(struct table *t, size_t i, str name, enum table_align align);
void table_row(struct table *t);
void table_cell(struct table *t, str text);
size_t table_rows(const struct table *t);

/*
 * Appends the table as text: columns two spaces apart, as wide as their longest cell in characters. Control characters
 * of cells are written as escapes, so that stored text can't drive a terminal. bold: escape codes around the names.
 */
void table_print(const struct table *t, bool bold, struct buf *out);
/* Appends it as CSV (RFC 4180), names first. */
void table_print_csv(const struct table *t, struct buf *out);

/* Appends s, its control characters as \n, \t, \x1b. */
void table_safe_text(struct buf *out, str s);

#endif
