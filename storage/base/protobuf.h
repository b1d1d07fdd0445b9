/*
 * protobuf.h: protobuf messages: reading them field by field, without copying, and writing them into a buf.
 * Source: protobuf encoding documentation. Groups are refused: no message we take has them.
 */
#ifndef VARVE_STORAGE_BASE_PROTOBUF_H
#define VARVE_STORAGE_BASE_PROTOBUF_H

#include "storage/base/buf.h"
#include "storage/base/varint.h"

enum pb_wire { PB_VARINT = 0, PB_FIXED64 = 1, PB_BYTES = 2, PB_FIXED32 = 5 };

struct pb {
    const uint8_t *p, *end;
    bool bad; /* malformed at p */
};

struct pb_field {
    uint32_t number;
    enum pb_wire wire;
    uint64_t u; /* varint, fixed64 or fixed32 */
    str bytes;  /* PB_BYTES; else empty, but never a null pointer */
};

static inline struct pb pb_of(str bytes)
{
    const uint8_t *p = (const uint8_t *)(bytes.n ? bytes.p : ""); /* no arithmetic on a null pointer */
    return (struct pb){p, p + bytes.n, false};
}

/* The next field of the message; false at its end or when it is malformed (m->bad). */
bool pb_next(struct pb *m, struct pb_field *f);

/* Repeated scalars come packed, or one a field. Appends doubles to v (room for max); false if malformed or too many. */
bool pb_doubles(const struct pb_field *f, double *v, uint32_t max, uint32_t *n);
/* The same for sint64. */
bool pb_sint64s(const struct pb_field *f, int64_t *v, uint32_t max, uint32_t *n);

/* ---- writing: each appends one field, zeros too */

void pb_put_u64(struct buf *out, uint32_t number, uint64_t v); /* also int32, int64, bool and enum values */
void pb_put_sint(struct buf *out, uint32_t number, int64_t v);
void pb_put_double(struct buf *out, uint32_t number, double v);
void pb_put_bytes(struct buf *out, uint32_t number, str bytes);

/* A message within a message: what is appended between begin and end. Returns where it starts, for pb_end. */
size_t pb_begin(struct buf *out, uint32_t number);
/* Puts the length before it, which moves it. */
void pb_end(struct buf *out, size_t start);

#endif
