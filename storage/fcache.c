/*
 * fcache.c: the cache of decoded frames.
 *
 * Entries are spread over shards by a hash of (part, offset). A shard is a mutex, a chained hash table
 * and a ring of entries with a CLOCK hand. Invariants:
 *
 *   1. An entry is in its shard's table and ring, both or neither; only the shard's lock changes that.
 *   2. pins > 0 keeps an entry where it is. Pins are taken under the lock, so an entry found unpinned
 *      under the lock stays unpinned until the lock is released; they are dropped without it.
 *   3. A shard holds at most its share of the bytes, except for what is pinned and for its newest entry.
 *
 * Loading happens outside the lock. Several threads may load the same frame; the first to insert it
 * wins and the others drop their copy. The cache owns data and entries; a reader owns only its pin.
 */
#include "storage/fcache.h"

#include <pthread.h>
#include <stdatomic.h>

#include "storage/base/alloc.h"
#include "storage/base/assert.h"
#include "storage/scratch.h"

#define SHARDS_MAX 16
#define SHARD_BYTES_MIN ((size_t)512 << 10) /* fewer shards rather than smaller ones */
#define BUCKETS_MIN 64                      /* power of two */

struct entry {
    struct fcache_entry pub; /* first: readers see this */
    uint64_t part, offset;
    struct entry *next_in_bucket;
    struct entry *prev, *next; /* the ring */
    atomic_uint pins;
    atomic_bool used; /* since the hand last passed */
};

struct shard {
    pthread_mutex_t lock;
    struct entry **buckets; /* all below: guarded by lock */
    size_t n_buckets, n;
    size_t bytes;
    struct entry *hand; /* NULL when empty */
};

struct fcache {
    size_t shard_max_bytes;
    size_t n_shards; /* power of two */
    struct counter *hits, *misses, *evictions;
    struct scratch_pool scratch;
    struct shard shards[SHARDS_MAX];
};

static uint64_t mix(uint64_t part, uint64_t offset)
{
    uint64_t x = (part * UINT64_C(0x9e3779b97f4a7c15)) ^ offset;
    x = (x ^ (x >> 32)) * UINT64_C(0xd6e8feb86659fd93);
    x = (x ^ (x >> 29)) * UINT64_C(0xd6e8feb86659fd93);
    return x ^ (x >> 32);
}

static size_t entry_bytes(const struct entry *e)
{
    return sizeof *e + e->pub.n;
}

static double read_bytes(void *arg)
{
    return (double)fcache_bytes(arg);
}

struct fcache *fcache_create(size_t max_bytes, struct metrics *metrics)
{
    struct fcache *c = mem_zalloc(sizeof *c);
    scratch_pool_init(&c->scratch);
    c->n_shards = 1;
    while (c->n_shards < SHARDS_MAX && max_bytes / (c->n_shards * 2) >= SHARD_BYTES_MIN)
        c->n_shards *= 2;
    c->shard_max_bytes = max_bytes / c->n_shards;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *s = &c->shards[i];
        check(pthread_mutex_init(&s->lock, NULL) == 0);
        s->n_buckets = BUCKETS_MIN;
        s->buckets = mem_zalloc(s->n_buckets * sizeof(struct entry *));
    }
    c->hits = metrics_counter(metrics, "varve_cache_hits_total", "", "Frames found decoded in the cache.");
    c->misses = metrics_counter(metrics, "varve_cache_misses_total", "", "Frames read from disk and decoded.");
    c->evictions = metrics_counter(metrics, "varve_cache_evictions_total", "", "Frames dropped for others.");
    if (metrics != NULL)
        metrics_callback(metrics, "gauge", "varve_cache_bytes", "", "Bytes of decoded frames in memory.", read_bytes,
                         c);
    return c;
}

/* ---- a shard's table and ring, lock held -------------------------------------------------------------------- */

static struct entry **bucket_of(struct shard *s, uint64_t part, uint64_t offset)
{
    /* the low bits chose the shard */
    return &s->buckets[(mix(part, offset) >> 8) & (s->n_buckets - 1)];
}

static struct entry *find_locked(struct shard *s, uint64_t part, uint64_t offset)
{
    struct entry *e = *bucket_of(s, part, offset);
    while (e != NULL && (e->part != part || e->offset != offset))
        e = e->next_in_bucket;
    return e;
}

static void grow_locked(struct shard *s)
{
    struct entry **old = s->buckets;
    size_t n_old = s->n_buckets;
    s->n_buckets *= 2;
    s->buckets = mem_zalloc(s->n_buckets * sizeof(struct entry *));
    for (size_t i = 0; i < n_old; i++) {
        for (struct entry *e = old[i], *next; e != NULL; e = next) {
            next = e->next_in_bucket;
            struct entry **bucket = bucket_of(s, e->part, e->offset);
            e->next_in_bucket = *bucket;
            *bucket = e;
        }
    }
    mem_free(old);
}

static void insert_locked(struct shard *s, struct entry *e)
{
    if (s->n >= s->n_buckets) grow_locked(s);
    struct entry **bucket = bucket_of(s, e->part, e->offset);
    e->next_in_bucket = *bucket;
    *bucket = e;
    if (s->hand == NULL) {
        s->hand = e->prev = e->next = e;
    } else { /* behind the hand: the last it will come to */
        e->next = s->hand;
        e->prev = s->hand->prev;
        e->prev->next = e;
        e->next->prev = e;
    }
    s->n++;
    s->bytes += entry_bytes(e);
}

static void free_entry(struct entry *e)
{
    mem_free((void *)e->pub.data);
    mem_free(e);
}

static void remove_locked(struct shard *s, struct entry *e)
{
    struct entry **at = bucket_of(s, e->part, e->offset);
    while (*at != e)
        at = &(*at)->next_in_bucket;
    *at = e->next_in_bucket;
    if (s->hand == e) s->hand = e->next == e ? NULL : e->next;
    e->prev->next = e->next;
    e->next->prev = e->prev;
    s->n--;
    s->bytes -= entry_bytes(e);
    free_entry(e);
}

/* Frees unpinned, unused entries until the shard fits. Two turns of the hand find all that may go. */
static uint64_t evict_locked(struct fcache *c, struct shard *s, const struct entry *keep)
{
    uint64_t evicted = 0;
    for (size_t steps = 2 * s->n; s->bytes > c->shard_max_bytes && steps > 0 && s->hand != NULL; steps--) {
        struct entry *e = s->hand;
        s->hand = e->next;
        if (e == keep || atomic_load_explicit(&e->pins, memory_order_acquire) > 0) continue;
        if (atomic_exchange_explicit(&e->used, false, memory_order_relaxed)) continue;
        remove_locked(s, e);
        evicted++;
    }
    return evicted;
}

/* ---- what callers see --------------------------------------------------------------------------------------- */

static struct shard *shard_of(struct fcache *c, uint64_t part, uint64_t offset)
{
    return &c->shards[mix(part, offset) & (c->n_shards - 1)];
}

static void pin_locked(struct entry *e)
{
    atomic_fetch_add_explicit(&e->pins, 1, memory_order_relaxed);
    atomic_store_explicit(&e->used, true, memory_order_relaxed);
}

/* Inserts what was loaded, unless another thread did meanwhile. */
static const struct fcache_entry *publish(struct fcache *c, struct shard *s, struct entry *mine)
{
    pthread_mutex_lock(&s->lock);
    struct entry *e = find_locked(s, mine->part, mine->offset);
    uint64_t evicted = 0;
    if (e == NULL) {
        e = mine;
        insert_locked(s, e);
        evicted = evict_locked(c, s, e);
    }
    pin_locked(e);
    pthread_mutex_unlock(&s->lock);
    if (e != mine) free_entry(mine);
    if (evicted > 0) counter_add(c->evictions, evicted);
    return &e->pub;
}

err fcache_get(struct fcache *c, uint64_t part, uint64_t offset, fcache_load_fn load, void *arg,
               const struct fcache_entry **out)
{
    struct shard *s = shard_of(c, part, offset);
    pthread_mutex_lock(&s->lock);
    struct entry *e = find_locked(s, part, offset);
    if (e != NULL) pin_locked(e);
    pthread_mutex_unlock(&s->lock);
    if (e != NULL) {
        counter_inc(c->hits);
        *out = &e->pub;
        return NULL;
    }
    counter_inc(c->misses);
    uint8_t *data = NULL;
    size_t n = 0;
    TRY(load(arg, offset, &data, &n));
    e = mem_zalloc(sizeof *e);
    e->pub = (struct fcache_entry){data, n};
    e->part = part;
    e->offset = offset;
    *out = publish(c, s, e);
    return NULL;
}

void fcache_unpin(struct fcache *c, const struct fcache_entry *e)
{
    (void)c;
    struct entry *own = (struct entry *)e;
    unsigned before = atomic_fetch_sub_explicit(&own->pins, 1, memory_order_release);
    check(before > 0);
}

void fcache_forget(struct fcache *c, uint64_t part)
{
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *s = &c->shards[i];
        pthread_mutex_lock(&s->lock);
        struct entry *e = s->hand;
        for (size_t left = s->n; left > 0; left--) {
            struct entry *next = e->next;
            if (e->part == part && atomic_load_explicit(&e->pins, memory_order_acquire) == 0) remove_locked(s, e);
            e = next;
        }
        pthread_mutex_unlock(&s->lock);
    }
}

size_t fcache_bytes(const struct fcache *c)
{
    size_t sum = 0;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *s = (struct shard *)&c->shards[i]; /* a lock is taken in a const cache too */
        pthread_mutex_lock(&s->lock);
        sum += s->bytes;
        pthread_mutex_unlock(&s->lock);
    }
    return sum;
}

void fcache_destroy(struct fcache *c)
{
    if (c == NULL) return;
    for (size_t i = 0; i < c->n_shards; i++) {
        struct shard *s = &c->shards[i];
        while (s->hand != NULL) {
            check(atomic_load(&s->hand->pins) == 0);
            remove_locked(s, s->hand);
        }
        mem_free(s->buckets);
        pthread_mutex_destroy(&s->lock);
    }
    scratch_pool_deinit(&c->scratch);
    mem_free(c);
}

struct scratch_pool *fcache_scratch(struct fcache *c)
{
    return &c->scratch;
}
