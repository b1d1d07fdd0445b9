/*
 * table.c: rows of cells as aligned text or as CSV.
 *
 * Cells lie in one array, row by row; widths are found in one pass when the table is printed. Width is
 * counted in code points: right for all scripts whose characters take one place. One thread's.
 */
#include "server/table.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define GAP 2

void table_init(struct table *t, size_t n_columns, struct arena *a)
{
    check(n_columns > 0);
    *t = (struct table){.arena = a, .n_columns = n_columns};
    t->names = arena_zalloc(a, n_columns * sizeof *t->names);
    t->aligns = arena_zalloc(a, n_columns * sizeof *t->aligns);
}

void table_deinit(struct table *t)
{
    mem_free(t->cells);
    t->cells = NULL;
}

void table_column(struct table *t, size_t i, str name, enum table_align align)
{
    check(i < t->n_columns);
    t->names[i] = name;
    t->aligns[i] = align;
}

void table_row(struct table *t)
{
    t->cells = mem_grow(t->cells, &t->cap_cells, t->n_cells + t->n_columns, sizeof *t->cells);
    memset(t->cells + t->n_cells, 0, t->n_columns * sizeof *t->cells);
    t->n_cells += t->n_columns;
    t->at = 0;
}

void table_cell(struct table *t, str text)
{
    check(t->at < t->n_columns && t->n_cells > 0);
    t->cells[t->n_cells - t->n_columns + t->at++] = text;
}

size_t table_rows(const struct table *t)
{
    return t->n_cells / t->n_columns;
}

/* ---- text ---------------------------------------------------------------------------------------------------- */

static bool is_control(unsigned char c)
{
    return c < 0x20 || c == 0x7f;
}

/* U+0080 to U+009F, controls of the terminal too: 0xc2 and what follows. */
static bool is_c1(str s, size_t i)
{
    return (uint8_t)s.p[i] == 0xc2 && i + 1 < s.n && (uint8_t)s.p[i + 1] < 0xa0;
}

void table_safe_text(struct buf *out, str s)
{
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n')
            buf_str(out, STR("\\n"));
        else if (c == '\t')
            buf_str(out, STR("\\t"));
        else if (is_control(c))
            buf_printf(out, "\\x%02x", c);
        else if (is_c1(s, i))
            buf_printf(out, "\\u%04x", (uint8_t)s.p[++i]);
        else
            buf_u8(out, c);
    }
}

/* Places that table_safe_text's output takes up. */
static size_t width_of(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++) {
        unsigned char c = (unsigned char)s.p[i];
        if (c == '\n' || c == '\t')
            n += 2;
        else if (is_control(c))
            n += 4;
        else if (is_c1(s, i)) {
            n += 6;
            i++;
        } else
            n += (c & 0xc0) != 0x80;
    }
    return n;
}

static void pad(struct buf *out, size_t n)
{
    uint8_t *to = buf_reserve(out, n);
    if (to == NULL || n == 0) return;
    memset(to, ' ', n);
    out->n += n;
}

static void print_line(const struct table *t, const str *cells, const size_t *widths, struct buf *out)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        size_t blank = widths[i] - width_of(cells[i]);
        bool last = i + 1 == t->n_columns;
        if (t->aligns[i] == TABLE_RIGHT) pad(out, blank);
        table_safe_text(out, cells[i]);
        if (t->aligns[i] == TABLE_LEFT && !last) pad(out, blank);
        if (!last) pad(out, GAP);
    }
}

void table_print(const struct table *t, bool bold, struct buf *out)
{
    size_t *widths = arena_alloc(t->arena, t->n_columns * sizeof *widths);
    for (size_t i = 0; i < t->n_columns; i++)
        widths[i] = width_of(t->names[i]);
    for (size_t k = 0; k < t->n_cells; k += t->n_columns)
        for (size_t i = 0; i < t->n_columns; i++) {
            size_t w = width_of(t->cells[k + i]);
            if (w > widths[i]) widths[i] = w;
        }
    if (bold) buf_str(out, STR("\033[1m"));
    print_line(t, t->names, widths, out);
    buf_str(out, bold ? STR("\033[0m\n") : STR("\n"));
    for (size_t k = 0; k < t->n_cells; k += t->n_columns) {
        print_line(t, t->cells + k, widths, out);
        buf_str(out, STR("\n"));
    }
}

/* ---- CSV ----------------------------------------------------------------------------------------------------- */

static void print_field(struct buf *out, str s)
{
    bool quote = false;
    for (size_t i = 0; i < s.n && !quote; i++)
        quote = s.p[i] == ',' || s.p[i] == '"' || s.p[i] == '\n' || s.p[i] == '\r';
    if (!quote) {
        buf_str(out, s);
        return;
    }
    buf_u8(out, '"');
    for (size_t i = 0; i < s.n; i++) {
        if (s.p[i] == '"') buf_u8(out, '"');
        buf_u8(out, (uint8_t)s.p[i]);
    }
    buf_u8(out, '"');
}

static void print_record(const struct table *t, const str *cells, struct buf *out)
{
    for (size_t i = 0; i < t->n_columns; i++) {
        if (i > 0) buf_u8(out, ',');
        print_field(out, cells[i]);
    }
    buf_str(out, STR("\r\n"));
}

void table_print_csv(const struct table *t, struct buf *out)
{
    print_record(t, t->names, out);
    for (size_t k = 0; k < t->n_cells; k += t->n_columns)
        print_record(t, t->cells + k, out);
}
