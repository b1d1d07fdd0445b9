/*
 * protobuf.h: reading protobuf messages field by field, without copying; private to the ingest room.
 * Source: protobuf encoding documentation. Groups are refused: no message we take has them.
 */
#ifndef VARVE_INGEST_PROTOBUF_H
#define VARVE_INGEST_PROTOBUF_H

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

#endif
