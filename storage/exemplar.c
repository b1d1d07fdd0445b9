/*
 * exemplar.c: comparing, encoding and decoding exemplars (exemplar.h). Stateless; any thread.
 *
 * The last resort of the order is Prometheus's own hash of a label set, so that what a Prometheus keeps of
 * several exemplars of one moment, and sends on, is kept here too:
 *   XXH64 of { u8 length (or 0xff and u24), name, u8 length (or 0xff and u24), value } *
 */
#include "storage/exemplar.h"

#include "storage/base/assert.h"

#define TEXT_MAX (4 * EXEMPLAR_RUNES_MAX)                  /* bytes: a character has four at most */
#define HASHED_MAX (TEXT_MAX + 2 * EXEMPLAR_RUNES_MAX * 4) /* and there are as many before a string at most */

/* Characters of valid UTF-8: all bytes but those that continue one. */
static size_t count_runes(str s)
{
    size_t n = 0;
    for (size_t i = 0; i < s.n; i++)
        n += ((uint8_t)s.p[i] & 0xc0) != 0x80;
    return n;
}

bool exemplar_fits(const struct exemplar *x)
{
    size_t runes = 0, bytes = 0;
    if (x->labels.n > EXEMPLAR_RUNES_MAX) return false;
    for (uint32_t i = 0; i < x->labels.n; i++) {
        const struct label *l = &x->labels.v[i];
        bytes += l->name.n + l->value.n;
        if (bytes > TEXT_MAX) return false;
        runes += count_runes(l->name) + count_runes(l->value);
    }
    return runes <= EXEMPLAR_RUNES_MAX;
}

bool exemplar_eq(const struct exemplar *a, const struct exemplar *b)
{
    if ((a->has_t || b->has_t) && a->t != b->t) return false;
    return a->v == b->v && labels_eq(&a->labels, &b->labels);
}

static uint8_t *put_hashed(uint8_t *p, str s)
{
    if (s.n < 255) {
        *p++ = (uint8_t)s.n;
    } else {
        *p++ = 255;
        for (int shift = 0; shift < 24; shift += 8)
            *p++ = (uint8_t)(s.n >> shift);
    }
    if (s.n > 0) memcpy(p, s.p, s.n);
    return p + s.n;
}

static uint64_t labels_hash(const struct labels *ls)
{
    uint8_t bytes[HASHED_MAX], *p = bytes;
    for (uint32_t i = 0; i < ls->n; i++)
        p = put_hashed(put_hashed(p, ls->v[i].name), ls->v[i].value);
    check(p <= bytes + sizeof bytes);
    return hash_xxh64(bytes, (size_t)(p - bytes));
}

bool exemplar_before(const struct exemplar *a, const struct exemplar *b)
{
    if (a->t != b->t) return a->t < b->t;
    if (a->v < b->v) return true;
    return a->v == b->v && labels_hash(&a->labels) < labels_hash(&b->labels);
}

void exemplar_encode(const struct exemplar *x, struct buf *out)
{
    buf_u8(out, x->has_t);
    buf_zigzag(out, x->t);
    buf_u64(out, f64_bits(x->v));
    buf_varint(out, x->labels.n);
    for (uint32_t i = 0; i < x->labels.n; i++) {
        buf_lenstr(out, x->labels.v[i].name);
        buf_lenstr(out, x->labels.v[i].value);
    }
}

void exemplar_decode(struct cursor *c, struct arena *a, struct exemplar *out)
{
    uint8_t flags = cursor_u8(c);
    *out = (struct exemplar){.has_t = flags == 1, .t = cursor_zigzag(c)};
    out->v = f64_from_bits(cursor_u64(c));
    uint64_t n = cursor_varint(c);
    if (flags > 1 || n > EXEMPLAR_RUNES_MAX || n > cursor_left(c) / 2) c->failed = true;
    if (c->failed) return;
    out->labels = (struct labels){arena_alloc(a, n * sizeof(struct label) + 1), (uint32_t)n};
    for (uint64_t i = 0; i < n; i++) {
        out->labels.v[i].name = cursor_lenstr(c);
        out->labels.v[i].value = cursor_lenstr(c);
    }
}
