/*
 * buf.h: a growing byte buffer with a sticky error, for encoders and writers.
 *
 * Writers append without checking each call; a buffer over its cap sets `failed` and ignores what
 * follows, and the caller looks once, at the end. Numbers are little-endian. Not thread-safe.
 */
#ifndef VARVE_STORAGE_BASE_BUF_H
#define VARVE_STORAGE_BASE_BUF_H

#include "storage/base/err.h"

struct buf {
    uint8_t *data; /* heap, owned */
    size_t n;      /* bytes used */
    size_t cap;    /* bytes allocated */
    size_t max;    /* never grow beyond; 0 = no cap */
    bool failed;   /* the cap was hit; contents are incomplete */
};

/* {0} is an empty buffer without a cap. */
void buf_deinit(struct buf *b);
static inline void buf_clear(struct buf *b)
{
    b->n = 0;
    b->failed = false;
}

/* Makes room for n more bytes and returns where they go (not yet counted in b->n); NULL if over the cap. */
uint8_t *buf_reserve(struct buf *b, size_t n);

void buf_put(struct buf *b, const void *p, size_t n);
void buf_str(struct buf *b, str s);
static inline void buf_u8(struct buf *b, uint8_t v)
{
    bool room = b->n < b->cap && !b->failed;
    uint8_t *p = __builtin_expect(room, 1) ? b->data + b->n : buf_reserve(b, 1);
    if (p == NULL) return;
    *p = v;
    b->n++;
}
void buf_u16(struct buf *b, uint16_t v);
void buf_u32(struct buf *b, uint32_t v);
void buf_u64(struct buf *b, uint64_t v);
void buf_varint(struct buf *b, uint64_t v); /* LEB128 */
void buf_zigzag(struct buf *b, int64_t v);  /* zigzag + LEB128 */
void buf_lenstr(struct buf *b, str s);      /* varint length + bytes */
void buf_printf(struct buf *b, const char *format, ...) __attribute__((format(printf, 2, 3)));
void buf_set_u32(struct buf *b, size_t at, uint32_t v); /* overwrite at an offset already written */
void buf_set_u64(struct buf *b, size_t at, uint64_t v);

static inline str buf_as_str(const struct buf *b)
{
    return (str){(const char *)b->data, b->n};
}

/* ERR_TOO_LARGE if the buffer failed, naming `what`. */
err buf_status(const struct buf *b, const char *what) __attribute__((warn_unused_result));

/*
 * The reading twin: a cursor over bytes that come from outside. Reading past the end or a malformed
 * varint sets `failed`, yields 0, and every later read yields 0 too; look once, at the end.
 */
struct cursor {
    const uint8_t *p, *end;
    bool failed;
};

static inline struct cursor cursor_of(const void *p, size_t n)
{
    return (struct cursor){(const uint8_t *)p, (const uint8_t *)p + n, false};
}
static inline size_t cursor_left(const struct cursor *c)
{
    return (size_t)(c->end - c->p);
}
uint8_t cursor_u8(struct cursor *c);
uint16_t cursor_u16(struct cursor *c);
uint32_t cursor_u32(struct cursor *c);
uint64_t cursor_u64(struct cursor *c);
uint64_t cursor_varint(struct cursor *c);
int64_t cursor_zigzag(struct cursor *c);
const uint8_t *cursor_bytes(struct cursor *c, size_t n); /* NULL and failed if fewer are left */
str cursor_lenstr(struct cursor *c);

#endif
