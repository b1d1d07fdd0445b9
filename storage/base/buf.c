/*
 * buf.c: byte buffer with a sticky error, and its reading twin, the cursor.
 *
 * Invariants: n <= cap; cap <= max when max is set; once `failed` nothing is written any more, so a
 * half-written value is never followed by another. A failed cursor stands at its end and yields
 * zeros. The buf owns its bytes, a cursor only looks. Not thread-safe.
 */
#include "storage/base/buf.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/base/varint.h"

#include <assert.h>
#include <stdarg.h>
#include <stdio.h>

#define BUF_MIN 64

void buf_deinit(struct buf *b)
{
    mem_free(b->data);
    *b = (struct buf){.max = b->max};
}

static void grow(struct buf *b, size_t need)
{
    size_t cap = b->cap < BUF_MIN ? BUF_MIN : b->cap * 2;
    if (cap < need) cap = need;
    if (b->max && cap > b->max) cap = b->max;
    b->data = mem_realloc(b->data, cap);
    b->cap = cap;
}

uint8_t *buf_reserve(struct buf *b, size_t n)
{
    size_t need;
    if (b->failed) return NULL;
    if (__builtin_add_overflow(b->n, n, &need) || need > SIZE_MAX / 4 || (b->max && need > b->max)) {
        b->failed = true;
        return NULL;
    }
    if (__builtin_expect(need > b->cap || !b->data, 0)) grow(b, need);
    return b->data + b->n;
}

void buf_put(struct buf *b, const void *p, size_t n)
{
    if (n == 0) return;
    uint8_t *to = buf_reserve(b, n);
    if (!to) return;
    memcpy(to, p, n);
    b->n += n;
}

void buf_str(struct buf *b, str s)
{
    buf_put(b, s.p, s.n);
}

/* The machine is little-endian, as the formats are. */
static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "formats are written as the machine holds them");

void buf_u16(struct buf *b, uint16_t v)
{
    buf_put(b, &v, sizeof v);
}

void buf_u32(struct buf *b, uint32_t v)
{
    buf_put(b, &v, sizeof v);
}

void buf_u64(struct buf *b, uint64_t v)
{
    buf_put(b, &v, sizeof v);
}

void buf_varint(struct buf *b, uint64_t v)
{
    uint8_t bytes[VARINT_MAX];
    buf_put(b, bytes, (size_t)(varint_put(bytes, v) - bytes));
}

void buf_zigzag(struct buf *b, int64_t v)
{
    buf_varint(b, zigzag(v));
}

void buf_lenstr(struct buf *b, str s)
{
    buf_varint(b, s.n);
    buf_str(b, s);
}

void buf_printf(struct buf *b, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    int n = vsnprintf(NULL, 0, format, args);
    va_end(args);
    check(n >= 0);
    /* one byte more for vsnprintf's NUL; under the cap it may not fit, then the text goes by a copy */
    size_t length = (size_t)n;
    if (b->max && b->n + length + 1 > b->max) {
        char *copy = mem_alloc(length + 1);
        va_start(args, format);
        vsnprintf(copy, length + 1, format, args);
        va_end(args);
        buf_put(b, copy, length);
        mem_free(copy);
        return;
    }
    char *to = (char *)buf_reserve(b, length + 1);
    if (!to) return;
    va_start(args, format);
    vsnprintf(to, length + 1, format, args);
    va_end(args);
    b->n += length;
}

static void overwrite(struct buf *b, size_t at, const void *p, size_t n)
{
    if (b->failed) return; /* the offset may lie in what was not written */
    check(at <= b->n);
    check(n <= b->n - at);
    memcpy(b->data + at, p, n);
}

void buf_set_u32(struct buf *b, size_t at, uint32_t v)
{
    overwrite(b, at, &v, sizeof v);
}

void buf_set_u64(struct buf *b, size_t at, uint64_t v)
{
    overwrite(b, at, &v, sizeof v);
}

err buf_status(const struct buf *b, const char *what)
{
    if (!b->failed) return NULL;
    return err_new(ERR_TOO_LARGE, "%s is over its limit of %zu bytes", what, b->max);
}

/* ---- cursor */

static void cursor_fail(struct cursor *c)
{
    c->failed = true;
    c->p = c->end;
}

/* Copies n bytes out, or zeros on failure. */
static void take(struct cursor *c, void *to, size_t n)
{
    const uint8_t *from = cursor_bytes(c, n);
    if (from)
        memcpy(to, from, n);
    else
        memset(to, 0, n);
}

uint8_t cursor_u8(struct cursor *c)
{
    uint8_t v;
    take(c, &v, sizeof v);
    return v;
}

uint16_t cursor_u16(struct cursor *c)
{
    uint16_t v;
    take(c, &v, sizeof v);
    return v;
}

uint32_t cursor_u32(struct cursor *c)
{
    uint32_t v;
    take(c, &v, sizeof v);
    return v;
}

uint64_t cursor_u64(struct cursor *c)
{
    uint64_t v;
    take(c, &v, sizeof v);
    return v;
}

uint64_t cursor_varint(struct cursor *c)
{
    uint64_t v;
    const uint8_t *next = varint_get(c->p, c->end, &v);
    if (!next) {
        cursor_fail(c);
        return 0;
    }
    c->p = next;
    return v;
}

int64_t cursor_zigzag(struct cursor *c)
{
    return unzigzag(cursor_varint(c));
}

const uint8_t *cursor_bytes(struct cursor *c, size_t n)
{
    if (c->failed || n > cursor_left(c)) {
        cursor_fail(c);
        return NULL;
    }
    const uint8_t *p = c->p;
    c->p += n;
    return p;
}

str cursor_lenstr(struct cursor *c)
{
    uint64_t n = cursor_varint(c);
    const uint8_t *p = n <= cursor_left(c) ? cursor_bytes(c, (size_t)n) : NULL;
    if (!p) {
        cursor_fail(c);
        return (str){"", 0};
    }
    return (str){(const char *)p, (size_t)n};
}
