/*
 * tombstone.c: see tombstone.h. As bytes (inside the manifest): varint seq, zigzag t_min, zigzag t_max, varint n,
 * then per matcher: one byte match_op, length and bytes of name, length and bytes of value.
 */
#include "storage/tombstone.h"

#include "storage/base/alloc.h"
#include "storage/base/assert.h"

#define TOMBSTONE_MATCHERS_MAX 1000

err tombstone_create(uint64_t seq, int64_t t_min, int64_t t_max, const struct matcher *m, size_t n,
                     struct tombstone **out)
{
    check(n <= TOMBSTONE_MATCHERS_MAX);
    struct tombstone *t = mem_zalloc(sizeof *t);
    atomic_init(&t->refs, 1);
    t->seq = seq;
    t->t_min = t_min;
    t->t_max = t_max;
    t->m = arena_alloc(&t->arena, n * sizeof *t->m + 1);
    for (size_t i = 0; i < n; i++) {
        err e = matcher_init(&t->m[i], m[i].op, arena_str(&t->arena, m[i].name), arena_str(&t->arena, m[i].value));
        if (e != NULL) {
            tombstone_unref(t);
            return e;
        }
        t->n++;
    }
    *out = t;
    return NULL;
}

struct tombstone *tombstone_ref(struct tombstone *t)
{
    atomic_fetch_add_explicit(&t->refs, 1, memory_order_relaxed);
    return t;
}

void tombstone_unref(struct tombstone *t)
{
    if (t == NULL || atomic_fetch_sub_explicit(&t->refs, 1, memory_order_acq_rel) != 1) return;
    for (uint32_t i = 0; i < t->n; i++)
        matcher_deinit(&t->m[i]);
    arena_deinit(&t->arena);
    mem_free(t);
}

void tombstone_encode(const struct tombstone *t, struct buf *out)
{
    buf_varint(out, t->seq);
    buf_zigzag(out, t->t_min);
    buf_zigzag(out, t->t_max);
    buf_varint(out, t->n);
    matchers_encode(t->m, t->n, out);
}

err tombstone_decode(struct cursor *c, struct tombstone **out)
{
    uint64_t seq = cursor_varint(c);
    int64_t t_min = cursor_zigzag(c), t_max = cursor_zigzag(c);
    uint64_t n = cursor_varint(c);
    if (c->failed || n > TOMBSTONE_MATCHERS_MAX) return err_corrupt("malformed delete");
    struct matcher *m = mem_zalloc(n * sizeof *m + 1);
    for (uint64_t i = 0; i < n; i++) {
        m[i].op = (enum match_op)(cursor_u8(c) & 3);
        m[i].name = cursor_lenstr(c);
        m[i].value = cursor_lenstr(c);
    }
    err e = c->failed ? err_corrupt("malformed delete") : tombstone_create(seq, t_min, t_max, m, n, out);
    mem_free(m);
    return e;
}

void tombstone_print(const struct tombstone *t, struct buf *out)
{
    buf_printf(out, "delete seq<=%llu t=%lld..%lld {", (unsigned long long)t->seq, (long long)t->t_min,
               (long long)t->t_max);
    for (uint32_t i = 0; i < t->n; i++) {
        if (i > 0) buf_str(out, STR(","));
        matcher_print(&t->m[i], out);
    }
    buf_str(out, STR("}"));
}
