/*
 * head.c: in-memory samples by series (head.h).
 *
 * A chunk is a header and `cap` packed samples of 12 bytes: a 32-bit time offset from the chunk's base
 * (its first sample; it may be negative) and the value. So an append writes one cache line besides
 * the slot, whose neighbours the next appends use. A sample whose offset does not fit, or that is of
 * another kind, starts a new chunk. Values of histogram chunks are pointers to blobs. Floats that have a
 * start timestamp are a kind of their own, of 20 bytes: the start comes last.
 *
 * tail word:  63..32 place of the last chunk (0, 1, 2 ...)   17..16 its kind   15..0 its samples
 */
#include "storage/head.h"

enum { CHUNK_FIRST = 6, CHUNK_DOUBLINGS = 5 }; /* 6, 12, 24, 48, 96, 192, 192 ... samples */

enum chunk_kind { CHUNK_FLOAT, CHUNK_HIST, CHUNK_START };

#define SAMPLE_BYTES 12
#define STARTED_BYTES 20
#define SMALL_BLOCK ((size_t)64 << 10)

struct head_chunk {
    _Atomic(struct head_chunk *) next;
    int64_t base;    /* ms */
    uint16_t sealed; /* samples, once a later chunk is linked */
    uint8_t kind;
    char samples[];
};

struct head_block {
    struct head_block *next;
    size_t bytes; /* POOL_BLOCK: it belongs to the pool */
};

struct head_blob {
    double sum;
    int64_t start;
    uint32_t n;
    char bytes[];
};

static uint64_t tail_of(uint64_t place, enum chunk_kind kind, uint32_t n)
{
    return place << 32 | (uint64_t)kind << 16 | n;
}
static uint32_t tail_samples(uint64_t tail)
{
    return (uint16_t)tail;
}
static enum chunk_kind tail_kind(uint64_t tail)
{
    return (enum chunk_kind)(tail >> 16 & 3);
}
static uint32_t tail_place(uint64_t tail)
{
    return (uint32_t)(tail >> 32);
}
static uint32_t capacity_at(uint32_t place)
{
    return (uint32_t)CHUNK_FIRST << (place < CHUNK_DOUBLINGS ? place : CHUNK_DOUBLINGS);
}

static size_t sample_bytes(unsigned kind)
{
    return kind == CHUNK_START ? STARTED_BYTES : SAMPLE_BYTES;
}

struct head *head_create(struct registry *r, struct block_pool *pool, uint32_t wal_gen)
{
    struct head *h = mem_zalloc(sizeof *h);
    atomic_init(&h->refs, 1);
    h->registry = registry_ref(r);
    h->pool = pool;
    h->wal_gen = h->defined_gen = wal_gen;
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
    for (struct head_block *b = h->blocks, *next; b != NULL; b = next) {
        next = b->next;
        if (b->bytes == POOL_BLOCK)
            block_pool_give(h->pool, b);
        else
            mem_free(b);
    }
    mem_free(h);
}

/* ---- writing ---------------------------------------------------------------------------------------------------- */

/* A small head costs little: the first block is 64 KiB, the others come from the pool. Too large objects get their own.
 */
static void add_block(struct head *h, size_t need)
{
    size_t bytes = h->blocks == NULL ? SMALL_BLOCK : POOL_BLOCK;
    if (sizeof(struct head_block) + need > bytes) bytes = sizeof(struct head_block) + need;
    struct head_block *b = bytes == POOL_BLOCK ? block_pool_take(h->pool) : mem_alloc(bytes);
    b->bytes = bytes;
    b->next = h->blocks;
    h->blocks = b;
    h->at = (char *)(b + 1);
    h->end = (char *)b + bytes;
}

static void *take_bytes(struct head *h, size_t n)
{
    n = (n + 7) & ~(size_t)7;
    if ((size_t)(h->end - h->at) < n) add_block(h, n);
    void *p = h->at;
    h->at += n;
    atomic_store_explicit(&h->bytes, atomic_load_explicit(&h->bytes, memory_order_relaxed) + n, memory_order_relaxed);
    return p;
}

/* start: of CHUNK_START only. */
static inline void put_sample(struct head_chunk *c, uint32_t i, enum chunk_kind kind, int32_t offset, double v,
                              int64_t start)
{
    char *at = c->samples + (size_t)i * sample_bytes(kind);
    memcpy(at, &offset, sizeof offset);
    memcpy(at + sizeof offset, &v, sizeof v);
    if (kind == CHUNK_START) memcpy(at + SAMPLE_BYTES, &start, sizeof start);
}

/* A further chunk with its first sample. */
static void slot_extend(struct head *h, struct head_slot *slot, uint64_t tail, enum chunk_kind kind, int64_t t,
                        double v, int64_t start)
{
    struct head_chunk *before = slot->last;
    uint32_t place = before == NULL ? 0 : tail_place(tail) + 1;
    struct head_chunk *c = take_bytes(h, sizeof *c + (size_t)capacity_at(place) * sample_bytes(kind));
    atomic_store_explicit(&h->chunks, atomic_load_explicit(&h->chunks, memory_order_relaxed) + 1, memory_order_relaxed);
    atomic_init(&c->next, NULL);
    c->base = t;
    c->kind = (uint8_t)kind;
    put_sample(c, 0, kind, 0, v, start);
    if (before == NULL) {
        atomic_fetch_add_explicit(&h->series, 1, memory_order_relaxed);
        atomic_store_explicit(&slot->first, c, memory_order_release);
    } else {
        before->sealed = (uint16_t)tail_samples(tail);
        atomic_store_explicit(&before->next, c, memory_order_release);
    }
    slot->last = c;
    slot->base = t;
    atomic_store_explicit(&slot->tail, tail_of(place, kind, 1), memory_order_release);
}

/* Inline: with a kind known at the call, nothing of the other kinds is left. */
static inline void slot_append(struct head *h, struct head_slot *slot, enum chunk_kind kind, int64_t t, double v,
                               int64_t start)
{
    uint64_t tail = atomic_load_explicit(&slot->tail, memory_order_relaxed);
    uint32_t n = tail_samples(tail);
    int64_t offset = t - slot->base;
    bool fits =
        slot->last != NULL && n < capacity_at(tail_place(tail)) && tail_kind(tail) == kind && offset == (int32_t)offset;
    if (!fits) {
        slot_extend(h, slot, tail, kind, t, v, start);
        return;
    }
    put_sample(slot->last, n, kind, (int32_t)offset, v, start);
    atomic_store_explicit(&slot->tail, tail + 1, memory_order_release);
}

/* The bits of a pointer to a copy of the blob, as a value. */
static double keep_blob(struct head *h, double sum, int64_t start, str blob)
{
    struct head_blob *kept = take_bytes(h, sizeof *kept + blob.n);
    kept->sum = sum;
    kept->start = start;
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

/* One sample of any kind. Not inline: it would crowd the registers of the loop over plain floats. */
__attribute__((noinline)) static void append_any(struct head *h, struct head_slot *slot, int64_t t, double v, str blob,
                                                 int64_t start)
{
    if (blob.n > 0)
        slot_append(h, slot, CHUNK_HIST, t, keep_blob(h, v, start, blob), 0);
    else if (start != 0)
        slot_append(h, slot, CHUNK_START, t, v, start);
    else
        slot_append(h, slot, CHUNK_FLOAT, t, v, 0);
}

void head_append(struct head *h, uint32_t handle, const int64_t *t, const double *v, const str *hist,
                 const int64_t *start, uint32_t n)
{
    const str none = {0};
    struct head_slot *slot = pages_at(&h->slots, handle);
    if (slot == NULL) slot = pages_make(&h->slots, handle);
    for (uint32_t i = 0; i < n; i++) {
        widen_range(h, t[i]);
        if (hist == NULL && start == NULL)
            slot_append(h, slot, CHUNK_FLOAT, t[i], v[i], 0);
        else
            append_any(h, slot, t[i], v[i], hist == NULL ? none : hist[i], start == NULL ? 0 : start[i]);
    }
    atomic_store_explicit(&h->samples, atomic_load_explicit(&h->samples, memory_order_relaxed) + n,
                          memory_order_relaxed);
}

bool head_is_new(const struct head *h, uint32_t handle)
{
    const struct head_slot *slot = pages_at(&h->slots, handle);
    return slot == NULL || slot->last == NULL;
}

void head_prefetch(const struct head *h, uint32_t handle)
{
    const struct head_slot *slot = pages_at(&h->slots, handle);
    if (slot == NULL || slot->last == NULL) return;
    uint64_t tail = atomic_load_explicit(&slot->tail, memory_order_relaxed);
    const char *at = slot->last->samples + tail_samples(tail) * sample_bytes(tail_kind(tail));
    __builtin_prefetch(at, 1);
}

/* ---- reading ---------------------------------------------------------------------------------------------------- */

/* A walk over the chunks that were there when it began. */
struct walk {
    const struct head_chunk *chunk; /* NULL at the end */
    uint64_t tail;
    uint32_t place;
    uint32_t n; /* samples of the current chunk */
};

static void walk_count(struct walk *w)
{
    if (w->chunk != NULL) w->n = w->place == tail_place(w->tail) ? tail_samples(w->tail) : w->chunk->sealed;
}

static struct walk walk_start(const struct head *h, uint32_t handle)
{
    struct walk w = {0};
    const struct head_slot *slot = pages_at(&h->slots, handle);
    if (slot == NULL) return w;
    w.tail = atomic_load_explicit(&slot->tail, memory_order_acquire);
    if (w.tail != 0) w.chunk = atomic_load_explicit(&slot->first, memory_order_acquire);
    walk_count(&w);
    return w;
}

static void walk_next(struct walk *w)
{
    bool last = w->place == tail_place(w->tail);
    w->chunk = last ? NULL : atomic_load_explicit(&w->chunk->next, memory_order_acquire);
    w->place++;
    walk_count(w);
}

static int64_t sample_time(const struct head_chunk *c, uint32_t i)
{
    int32_t offset;
    memcpy(&offset, c->samples + i * sample_bytes(c->kind), sizeof offset);
    return c->base + offset;
}

static double sample_value(const struct head_chunk *c, uint32_t i)
{
    double v;
    memcpy(&v, c->samples + i * sample_bytes(c->kind) + sizeof(int32_t), sizeof v);
    return v;
}

/* Of a CHUNK_START. */
static int64_t sample_start(const struct head_chunk *c, uint32_t i)
{
    int64_t start;
    memcpy(&start, c->samples + (size_t)i * STARTED_BYTES + SAMPLE_BYTES, sizeof start);
    return start;
}

bool head_has(const struct head *h, uint32_t handle)
{
    return walk_start(h, handle).chunk != NULL;
}

static void chunk_read(const struct head_chunk *c, uint32_t n, int64_t t_min, int64_t t_max, struct sample_set *out)
{
    sample_set_reserve(out, n);
    for (uint32_t i = 0; i < n; i++) {
        int64_t t = sample_time(c, i);
        if (t < t_min || t > t_max) continue;
        if (c->kind != CHUNK_HIST) {
            sample_set_push(out, t, sample_value(c, i));
            if (c->kind == CHUNK_START) sample_set_mark_start(out, sample_start(c, i));
        } else {
            const struct head_blob *blob = (const struct head_blob *)(uintptr_t)f64_bits(sample_value(c, i));
            sample_set_push_hist(out, t, blob->sum, (str){blob->bytes, blob->n});
            sample_set_mark_start(out, blob->start);
        }
    }
}

void head_read(const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max, struct sample_set *out)
{
    for (struct walk w = walk_start(h, handle); w.chunk != NULL; walk_next(&w))
        chunk_read(w.chunk, w.n, t_min, t_max, out);
}

bool head_touches(const struct head *h, uint32_t handle, int64_t t_min, int64_t t_max)
{
    for (struct walk w = walk_start(h, handle); w.chunk != NULL; walk_next(&w)) {
        for (uint32_t i = 0; i < w.n; i++) {
            int64_t t = sample_time(w.chunk, i);
            if (t >= t_min && t <= t_max) return true;
        }
    }
    return false;
}
