/*
 * protobuf.c: protobuf messages, read field by field without copying, and written.
 *
 *   message = { tag value }     tag = varint: field number << 3 | wire type
 *   value   = varint | 8 bytes | 4 bytes | varint length and that many bytes
 *
 * A reader is two pointers into the caller's bytes. What doesn't fit sets `bad` and leaves the position
 * where the trouble is, so that errors can name an offset. Stateless; any thread.
 */
#include "storage/base/protobuf.h"

static const uint8_t *fixed(struct pb *m, const uint8_t *p, size_t n, uint64_t *v)
{
    if ((size_t)(m->end - p) < n) return NULL;
    *v = 0;
    memcpy(v, p, n); /* little-endian, as the machine is */
    return p + n;
}

static const uint8_t *value(struct pb *m, const uint8_t *p, struct pb_field *f)
{
    switch (f->wire) {
    case PB_VARINT:
        return varint_get(p, m->end, &f->u);
    case PB_FIXED64:
        return fixed(m, p, 8, &f->u);
    case PB_FIXED32:
        return fixed(m, p, 4, &f->u);
    case PB_BYTES:
        p = varint_get(p, m->end, &f->u);
        if (p == NULL || f->u > (uint64_t)(m->end - p)) return NULL;
        f->bytes = (str){(const char *)p, f->u};
        return p + f->u;
    default:
        return NULL;
    }
}

bool pb_next(struct pb *m, struct pb_field *f)
{
    uint64_t tag;
    if (m->p == m->end || m->bad) return false;
    const uint8_t *p = varint_get(m->p, m->end, &tag);
    if (p != NULL && tag >= 8 && tag <= UINT32_MAX) {
        *f = (struct pb_field){.number = (uint32_t)(tag >> 3), .wire = (enum pb_wire)(tag & 7), .bytes = STR("")};
        p = value(m, p, f);
    } else {
        p = NULL;
    }
    m->bad = p == NULL;
    if (m->bad) return false;
    m->p = p;
    return true;
}

bool pb_doubles(const struct pb_field *f, double *v, uint32_t max, uint32_t *n)
{
    if (f->wire == PB_FIXED64) {
        if (*n == max) return false;
        v[(*n)++] = f64_from_bits(f->u);
        return true;
    }
    size_t count = f->bytes.n / 8;
    if (f->wire != PB_BYTES || f->bytes.n % 8 != 0 || count > max - *n) return false;
    if (count) memcpy(v + *n, f->bytes.p, f->bytes.n);
    *n += (uint32_t)count;
    return true;
}

bool pb_sint64s(const struct pb_field *f, int64_t *v, uint32_t max, uint32_t *n)
{
    if (f->wire == PB_VARINT) {
        if (*n == max) return false;
        v[(*n)++] = unzigzag(f->u);
        return true;
    }
    if (f->wire != PB_BYTES) return false;
    const uint8_t *p = (const uint8_t *)f->bytes.p, *end = p + f->bytes.n;
    while (p < end) {
        uint64_t u;
        if (*n == max || (p = varint_get(p, end, &u)) == NULL) return false;
        v[(*n)++] = unzigzag(u);
    }
    return true;
}

/* ---- writing ------------------------------------------------------------------------------------------------ */

static void put_tag(struct buf *out, uint32_t number, enum pb_wire wire)
{
    buf_varint(out, (uint64_t)number << 3 | wire);
}

void pb_put_u64(struct buf *out, uint32_t number, uint64_t v)
{
    put_tag(out, number, PB_VARINT);
    buf_varint(out, v);
}

void pb_put_sint(struct buf *out, uint32_t number, int64_t v)
{
    pb_put_u64(out, number, zigzag(v));
}

void pb_put_double(struct buf *out, uint32_t number, double v)
{
    put_tag(out, number, PB_FIXED64);
    buf_u64(out, f64_bits(v));
}

void pb_put_bytes(struct buf *out, uint32_t number, str bytes)
{
    put_tag(out, number, PB_BYTES);
    buf_lenstr(out, bytes);
}

size_t pb_begin(struct buf *out, uint32_t number)
{
    put_tag(out, number, PB_BYTES);
    return out->n;
}

void pb_end(struct buf *out, size_t start)
{
    uint8_t length[VARINT_MAX];
    if (out->failed) return;
    size_t n = out->n - start, digits = (size_t)(varint_put(length, n) - length);
    if (buf_reserve(out, digits) == NULL) return;
    memmove(out->data + start + digits, out->data + start, n);
    memcpy(out->data + start, length, digits);
    out->n += digits;
}
