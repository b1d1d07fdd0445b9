/*
 * creations.c: counters of new series by metric, and the filter that knows the old ones (creations.h).
 *
 *   filter   levels, each twice the size of the one before and filled to the end: 16 bits an identity
 *   level    blocks of 512 bits; an identity sets 4 bits of one block
 *   counters by metric name: 12 slots of five minutes, a ring
 *
 * The filters are the writer's alone; the counters are guarded by `lock`.
 */
#include "storage/creations.h"

#include <pthread.h>

#include "storage/base/alloc.h"
#include "storage/base/map.h"

#define LEVELS_MAX 20
#define FIRST_LEVEL 4096 /* identities */
#define BLOCK_WORDS 8
#define IDS_A_BLOCK 32

#define SLOTS 12
#define SLOT_MS (INT64_C(5) * 60000)
#define METRICS_MAX 20000

struct filter {
    uint64_t *levels[LEVELS_MAX];
    unsigned n_levels;
    uint64_t room; /* identities that the newest level still takes */
};

struct metric_creations {
    int64_t newest; /* number of the slot written last */
    uint32_t slots[SLOTS];
};

struct creations {
    struct filter before, now; /* identities in the last registry, and in the current one; the writer's */
    const struct hash_key *key;
    pthread_mutex_t lock;
    int64_t since_ms;
    struct strmap *metrics; /* name → struct metric_creations */
    int64_t swept;          /* slot in which silent names were last dropped */
};

/* ---- the filter ------------------------------------------------------------------------------------------------- */

static uint64_t level_blocks(unsigned level)
{
    return ((uint64_t)FIRST_LEVEL << level) / IDS_A_BLOCK;
}

static uint64_t *block_of(const struct filter *f, unsigned level, struct hash128 id)
{
    return f->levels[level] + (id.lo & (level_blocks(level) - 1)) * BLOCK_WORDS;
}

/* Bit i of the four that stand for an identity: 9 bits of its hash. */
static uint32_t bit_of(struct hash128 id, unsigned i)
{
    return (uint32_t)(id.hi >> (9 * i)) & (64 * BLOCK_WORDS - 1);
}

static void filter_add(struct filter *f, struct hash128 id)
{
    if (f->room == 0) {
        if (f->n_levels == LEVELS_MAX) return; /* 4 G identities */
        f->levels[f->n_levels] = mem_zalloc(level_blocks(f->n_levels) * BLOCK_WORDS * sizeof(uint64_t));
        f->room = (uint64_t)FIRST_LEVEL << f->n_levels++;
    }
    f->room--;
    uint64_t *block = block_of(f, f->n_levels - 1, id);
    for (unsigned i = 0; i < 4; i++)
        block[bit_of(id, i) / 64] |= UINT64_C(1) << bit_of(id, i) % 64;
}

static bool filter_has(const struct filter *f, struct hash128 id)
{
    for (unsigned level = f->n_levels; level-- > 0;) {
        const uint64_t *block = block_of(f, level, id);
        unsigned set = 0;
        for (unsigned i = 0; i < 4; i++)
            set += block[bit_of(id, i) / 64] >> bit_of(id, i) % 64 & 1;
        if (set == 4) return true;
    }
    return false;
}

static void filter_deinit(struct filter *f)
{
    for (unsigned i = 0; i < f->n_levels; i++)
        mem_free(f->levels[i]);
    *f = (struct filter){0};
}

/* ---- counters --------------------------------------------------------------------------------------------------- */

static uint64_t count_at(const struct metric_creations *m, int64_t slot)
{
    uint64_t n = 0;
    for (int64_t s = m->newest; s > m->newest - SLOTS && s > slot - SLOTS && s >= 0; s--)
        n += m->slots[s % SLOTS];
    return n;
}

/* Drops names without a creation in the last hour, once a slot at most. */
static void sweep(struct creations *c, int64_t slot)
{
    if (c->swept == slot) return;
    c->swept = slot;
    struct strmap *kept = strmap_create(c->key);
    size_t at = 0;
    str name;
    void *value;
    while (strmap_next(c->metrics, &at, &name, &value)) {
        if (count_at(value, slot) > 0)
            strmap_put(kept, name, value, NULL);
        else
            mem_free(value);
    }
    strmap_destroy(c->metrics);
    c->metrics = kept;
}

static struct metric_creations *counters_of(struct creations *c, str metric, int64_t slot)
{
    void **found = strmap_get(c->metrics, metric);
    if (found != NULL) return *found;
    if (strmap_count(c->metrics) >= METRICS_MAX) sweep(c, slot);
    if (strmap_count(c->metrics) >= METRICS_MAX) metric = (str){"", 0};
    bool added;
    void **at = strmap_put(c->metrics, metric, NULL, &added);
    if (added) {
        struct metric_creations *m = mem_zalloc(sizeof *m);
        m->newest = slot;
        *at = m;
    }
    return *at;
}

/* A clock that was set back counts in the newest slot. */
static void count_one(struct metric_creations *m, int64_t slot)
{
    int64_t fresh = slot - m->newest < SLOTS ? slot - m->newest : SLOTS;
    for (int64_t i = 0; i < fresh; i++)
        m->slots[(slot - i) % SLOTS] = 0;
    if (slot > m->newest) m->newest = slot;
    m->slots[m->newest % SLOTS]++;
}

/* ---- the whole -------------------------------------------------------------------------------------------------- */

struct creations *creations_create(const struct hash_key *key)
{
    struct creations *c = mem_zalloc(sizeof *c);
    c->key = key;
    pthread_mutex_init(&c->lock, NULL);
    c->since_ms = INT64_MAX;
    c->metrics = strmap_create(key);
    return c;
}

void creations_destroy(struct creations *c)
{
    if (c == NULL) return;
    size_t at = 0;
    str name;
    void *value;
    while (strmap_next(c->metrics, &at, &name, &value))
        mem_free(value);
    strmap_destroy(c->metrics);
    filter_deinit(&c->before);
    filter_deinit(&c->now);
    pthread_mutex_destroy(&c->lock);
    mem_free(c);
}

void creations_begin(struct creations *c, int64_t since_ms)
{
    pthread_mutex_lock(&c->lock);
    c->since_ms = since_ms;
    pthread_mutex_unlock(&c->lock);
}

void creations_add(struct creations *c, struct hash128 id, str metric, int64_t now_ms)
{
    filter_add(&c->now, id);
    if (now_ms < 0 || filter_has(&c->before, id)) return;
    pthread_mutex_lock(&c->lock);
    if (now_ms >= c->since_ms) count_one(counters_of(c, metric, now_ms / SLOT_MS), now_ms / SLOT_MS);
    pthread_mutex_unlock(&c->lock);
}

void creations_turn_over(struct creations *c)
{
    filter_deinit(&c->before);
    c->before = c->now;
    c->now = (struct filter){0};
}

uint64_t creations_of(struct creations *c, str metric, int64_t now_ms)
{
    pthread_mutex_lock(&c->lock);
    void **found = strmap_get(c->metrics, metric);
    uint64_t n = found == NULL ? 0 : count_at(*found, now_ms / SLOT_MS);
    pthread_mutex_unlock(&c->lock);
    return n;
}

void creations_each(struct creations *c, int64_t now_ms, creations_fn fn, void *arg)
{
    size_t at = 0;
    str name;
    void *value;
    pthread_mutex_lock(&c->lock);
    while (strmap_next(c->metrics, &at, &name, &value)) {
        uint64_t n = count_at(value, now_ms / SLOT_MS);
        if (n > 0) fn(arg, name, n);
    }
    pthread_mutex_unlock(&c->lock);
}

int64_t creations_since(struct creations *c)
{
    pthread_mutex_lock(&c->lock);
    int64_t since = c->since_ms;
    pthread_mutex_unlock(&c->lock);
    return since;
}
