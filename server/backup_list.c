/*
 * backup_list.c: writes and reads the list of files of a backup.
 *
 * The list is text, so that people can read it and standard tools can check the sums. What is read is
 * input from outside: the checksum of the list is verified first, then each line must have its exact
 * form, and paths must stay inside the backup. Stateless.
 */
#include "server/backup_list.h"

#include <inttypes.h>
#include <stdlib.h>

#include "storage/base/alloc.h"
#include "storage/base/hash.h"
#include "storage/base/num.h"

#define HEAD "varve backup 1\n"
#define SUM_DIGITS 16
#define END_BYTES (4 + SUM_DIGITS + 1) /* "end ", digits, line end */
#define PATH_BYTES_MAX 1024

int backup_file_compare(const void *a, const void *b)
{
    const struct backup_file *x = a, *y = b;
    return str_cmp(x->path, y->path);
}

void backup_list_print(const struct backup_list *list, struct buf *out)
{
    size_t from = out->n;
    buf_str(out, STR(HEAD));
    for (size_t i = 0; i < list->n; i++) {
        const struct backup_file *f = &list->v[i];
        buf_printf(out, "file %016" PRIx64 " %" PRIu64 " %" PRId64 " %" PRIu64 " %" PRIu64 " %.*s\n", f->sum, f->bytes,
                   f->mtime_ns, f->inode, f->device, STR_ARG(f->path));
    }
    buf_printf(out, "end %016" PRIx64 "\n", checksum64(out->data + from, out->n - from));
}

/* ---- reading ------------------------------------------------------------------------------------------------- */

/* The next word of *line, up to a space, which is taken too. */
static str take_word(str *line)
{
    const char *end = line->n > 0 ? memchr(line->p, ' ', line->n) : NULL;
    str word = {line->p, end != NULL ? (size_t)(end - line->p) : line->n};
    size_t taken = word.n + (end != NULL);
    *line = (str){line->p + taken, line->n - taken};
    return word;
}

static bool parse_sum(str s, uint64_t *out)
{
    static const char digits[] = "0123456789abcdef";
    if (s.n != SUM_DIGITS) return false;
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        const char *at = memchr(digits, s.p[i], sizeof digits - 1);
        if (at == NULL) return false;
        *out = *out << 4 | (uint64_t)(at - digits);
    }
    return true;
}

/* Decimal digits alone. */
static bool parse_u64(str s, uint64_t *out)
{
    *out = 0;
    for (size_t i = 0; i < s.n; i++) {
        uint64_t digit = (uint64_t)(s.p[i] - '0');
        if (s.p[i] < '0' || s.p[i] > '9' || *out > (UINT64_MAX - digit) / 10) return false;
        *out = *out * 10 + digit;
    }
    return s.n > 0;
}

/* Names and single slashes; no name "." or "..". */
static bool path_is_safe(str s)
{
    size_t from = 0;
    if (s.n == 0 || s.n > PATH_BYTES_MAX) return false;
    for (size_t i = 0; i <= s.n; i++) {
        if (i < s.n && ((unsigned char)s.p[i] < 0x20 || s.p[i] == 0x7f)) return false;
        if (i < s.n && s.p[i] != '/') continue;
        str name = {s.p + from, i - from};
        if (name.n == 0 || str_eq(name, STR(".")) || str_eq(name, STR(".."))) return false;
        from = i + 1;
    }
    return true;
}

static bool parse_file(str line, struct arena *a, struct backup_file *f)
{
    bool good = str_eq(take_word(&line), STR("file")) && parse_sum(take_word(&line), &f->sum) &&
                parse_u64(take_word(&line), &f->bytes) && num_parse_i64(take_word(&line), &f->mtime_ns) &&
                parse_u64(take_word(&line), &f->inode) && parse_u64(take_word(&line), &f->device);
    if (!good || !path_is_safe(line)) return false;
    f->path = arena_str(a, line);
    return true;
}

static err check_sum(str *text)
{
    uint64_t sum;
    if (text->n < sizeof HEAD - 1 + END_BYTES) return err_corrupt("the list of files is cut off");
    str end = {text->p + text->n - END_BYTES, END_BYTES};
    str body = {text->p, text->n - END_BYTES};
    bool shaped = str_starts_with(end, STR("end ")) && parse_sum((str){end.p + 4, SUM_DIGITS}, &sum) &&
                  end.p[END_BYTES - 1] == '\n';
    if (!shaped) return err_corrupt("the list of files is cut off");
    if (sum != checksum64(body.p, body.n)) return err_corrupt("the list of files is damaged: its checksum differs");
    if (!str_starts_with(body, STR(HEAD))) return err_corrupt("the list of files is of an unknown version");
    *text = (str){body.p + sizeof HEAD - 1, body.n - (sizeof HEAD - 1)};
    return NULL;
}

static size_t count_lines(str text)
{
    size_t n = 0;
    for (size_t i = 0; i < text.n; i++)
        n += text.p[i] == '\n';
    return n;
}

err backup_list_parse(str text, struct arena *a, struct backup_list *out)
{
    *out = (struct backup_list){0};
    TRY(check_sum(&text));
    out->v = arena_zalloc(a, count_lines(text) * sizeof *out->v + 1);
    while (text.n > 0) {
        const char *end = memchr(text.p, '\n', text.n);
        struct backup_file *f = &out->v[out->n];
        str line = {text.p, end != NULL ? (size_t)(end - text.p) : text.n};
        if (end == NULL || !parse_file(line, a, f)) return err_corrupt("line %zu of the list is malformed", out->n + 2);
        if (out->n > 0 && str_cmp(f[-1].path, f->path) >= 0) return err_corrupt("the list of files is not sorted");
        out->n++;
        text = (str){text.p + line.n + 1, text.n - line.n - 1};
    }
    return NULL;
}

const struct backup_file *backup_list_find(const struct backup_list *list, str path)
{
    struct backup_file key = {.path = path};
    if (list->n == 0) return NULL;
    return bsearch(&key, list->v, list->n, sizeof *list->v, backup_file_compare);
}
