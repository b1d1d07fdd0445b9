/*
 * head.c: in-memory samples by series (head.h).
 *
 * A chunk is one arena object: header, then cap doubles, then cap 32-bit time offsets from `base`
 * (the chunk's first sample; an offset may be negative). A sample that does not fit the offset, or is
 * of the other kind, starts a new chunk. Histogram chunks keep pointers to arena blobs as values.
 */
#include "storage/head.h"

enum { CHUNK_FIRST = 6, CHUNK_MAX = 192 };

enum chunk_kind { CHUNK_FLOAT, CHUNK_HIST };

struct head_chunk {
    _Atomic(struct head_chunk *) next;
    int64_t base; /* ms */
    _Atomic uint16_t n;
    uint16_t cap;
    uint8_t kind;
    double v[]; /* cap values, then cap int32_t offsets */
};

struct head_blob {
    double sum;
    uint32_t n;
    char bytes[];
};

static int32_t *chunk_offsets(const struct head_chunk *c)
{
    return (int32_t *)(c->v + c->cap);
}

struct head *head_create(struct registry *r, uint32_t wal_gen)
{
    struct head *h = mem_zalloc(sizeof *h);
    atomic_init(&h->refs, 1);
    h->registry = registry_ref(r);
    h->wal_gen = wal_gen;
    pages_init(&h->slots, sizeof(struct head_slot));
    atomic_init(&h->t_min, INT64_MAX);
    atomic_init(&h->t_max, INT64_MIN);
    h->seq_min = UINT64_MAX;
    return h;
}

struct head *head_ref(struct head *h)
{
    atomic_fetch_add_explicit(&h->refs, 1, memory_order_relaxed);
    return h;
}

void head_unref(struct head *h)
{
    if (h == NULL || atomic_fetch_sub_explicit(&h->refs, 1, memory_order_acq_rel) != 1) return;
    registry_unref(h->registry);
    pages_deinit(&h->slots);
    arena_deinit(&h->chunks);
    mem_free(h);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

static void head_count_bytes(struct head *h, size_t bytes)
{
    atomic_store_explicit(&h->bytes, atomic_load_explicit(&h->bytes, memory_order_relaxed) + bytes,
                          memory_order_relaxed);
}

/* An empty chunk for a sample at t, not yet linked. */
static struct head_chunk *chunk_create(struct head *h, const struct head_chunk *last, int64_t t, enum chunk_kind kind)
{
    unsigned cap = last == NULL ? CHUNK_FIRST : 2u * last->cap;
    if (cap > CHUNK_MAX) cap = CHUNK_MAX;
    size_t bytes = sizeof *last + cap * (sizeof(double) + sizeof(int32_t));
    struct head_chunk *c = arena_alloc(&h->chunks, bytes);
    head_count_bytes(h, bytes);
    atomic_init(&c->next, NULL);
    atomic_init(&c->n, 0);
    c->base = t;
    c->cap = (uint16_t)cap;
    c->kind = (uint8_t)kind;
    return c;
}

static bool chunk_takes(const struct head_chunk *c, int64_t t, enum chunk_kind kind)
{
    if (c == NULL || atomic_load_explicit(&c->n, memory_order_relaxed) == c->cap || c->kind != kind) return false;
    int64_t offset = t - c->base;
    return offset == (int32_t)offset;
}

/* Puts one sample behind the slot's last. */
static void slot_append(struct head *h, struct head_slot *slot, int64_t t, double v, enum chunk_kind kind)
{
    struct head_chunk *c = slot->last, *before = NULL;
    bool fresh = !chunk_takes(c, t, kind);
    if (fresh) {
        before = c;
        c = chunk_create(h, before, t, kind);
    }
    uint16_t n = atomic_load_explicit(&c->n, memory_order_relaxed);
    c->v[n] = v;
    chunk_offsets(c)[n] = (int32_t)(t - c->base);
    atomic_store_explicit(&c->n, (uint16_t)(n + 1), memory_order_release);
    if (!fresh) return;
    slot->last = c;
    if (before == NULL)
        atomic_store_explicit(&slot->first, c, memory_order_release);
    else
        atomic_store_explicit(&before->next, c, memory_order_release);
}

/* The bits of a pointer to a copy of the blob, as a value. */
static double keep_blob(struct head *h, double sum, str blob)
{
    struct head_blob *kept = arena_alloc(&h->chunks, sizeof *kept + blob.n);
    head_count_bytes(h, sizeof *kept + blob.n);
    kept->sum = sum;
    kept->n = (uint32_t)blob.n;
    memcpy(kept->bytes, blob.p, blob.n);
    return f64_from_bits((uint64_t)(uintptr_t)kept);
}

static void widen_range(struct head *h, int64_t t)
{
    if (t < atomic_load_explicit(&h->t_min, memory_order_relaxed))
        atomic_store_explicit(&h->t_min, t, memory_order_relaxed);
    if (t > atomic_load_explicit(&h->t_max, memory_order_relaxed))
        atomic_store_explicit(&h->t_max, t, memory_order_relaxed);
}

void head_append(struct head *h, uint32_t handle, const int64_t *t, const double *v, const str *hist, uint32_t n)
{
    struct head_slot *slot = pages_at(&h->slots, handle);
    if (slot == NULL) slot = pages_make(&h->slots, handle);
    if (slot->last == NULL && n > 0) atomic_fetch_add_explicit(&h->series, 1, memory_order_relaxed);
    for (uint32_t i = 0; i < n; i++) {
        widen_range(h, t[i]);
        if (hist != NULL && hist[i].n > 0)
            slot_append(h, slot, t[i], keep_blob(h, v[i], hist[i]), CHUNK_HIST);
        else
            slot_append(h, slot, t[i], v[i], CHUNK_FLOAT);
    }
    atomic_store_explicit(&h->samples, atomic_load_explicit(&h->samples, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

void head_prefetch(const struct head *h, uint32_t handle)
{
    const struct head_slot *slot = pages_at(&h->slots, handle);
    if (slot == NULL || slot->last == NULL) return;
    const struct head_chunk *c = slot->last;
    __builtin_prefetch(c, 1);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

static const struct head_chunk *first_chunk(const struct head *h, uint32_t handle)
{
    const struct head_slot *slot = pages_at(&h->slots, handle);
    return slot == NULL ? NULL : atomic_load_explicit(&slot->first, memory_order_acquire);
}

bool head_has(const struct head *h, uint32_t handle)
{
    return first_chunk(h, handle) != NULL;
}

static void chunk_read(const struct head_chunk *c, int64_t t_min, int64_t t_max, struct sample_set *out)
{
    uint32_t n = atomic_load_explicit(&c->n, memory_order_acquire);
    const int32_t *offsets = chunk_offsets(c);
    sample_set_reserve(out, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t t = c->base + offsets[i];
        if (t < t_min || t > t_max) continue;
        if (c->kind == CHUNK_FLOAT) {
            sample_set_push(out, t, c->v[i]);
        } else {
            const struct head_blob *blob = (const struct head_blob *)(uintptr_t)f64_bits(c->v[i]);
            sample_set_push_hist(out, t, blob->sum, (str){blob->bytes, blob->n});
        }
    }
}

void head_read(const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max, struct sample_set *out)
{
    for (const struct head_chunk *c = first_chunk(h, handle); c != NULL;
         c = atomic_load_explicit(&c->next, memory_order_acquire))
        chunk_read(c, t_min, t_max, out);
}

bool head_touches(const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max)
{
    for (const struct head_chunk *c = first_chunk(h, handle); c != NULL;
         c = atomic_load_explicit(&c->next, memory_order_acquire)) {
        uint32_t n = atomic_load_explicit(&c->n, memory_order_acquire);
        for (uint32_t i = 0; i < n; i++) {
            int64_t t = c->base + chunk_offsets(c)[i];
            if (t >= t_min && t <= t_max) return true;
        }
    }
    return false;
}
